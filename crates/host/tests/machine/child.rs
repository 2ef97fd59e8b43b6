//! Shared by the tests: children that are always reaped, this test program run again as another process, and
//! polling for a state with a deadline.

use std::io::Write;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tenure_core::id::HostId;
use tenure_core::process::Observer;
use tenure_core::world::World;
use tenure_host::machine::Machine;

const TASK: &str = "TENURE_HOST_TEST_TASK";
const MARK: &str = "answer: ";

/// A child of the test that is killed and reaped with it.
pub struct Owned(pub Child);

impl Owned {
    pub fn start(program: &str, arguments: &[&str]) -> Owned {
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Owned(child)
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Kills and reaps it.
    pub fn end(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // For a process that was already reaped the error means nothing.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub fn observer() -> Observer {
    Machine::new(HostId::new("test"))
        .unwrap()
        .observer()
        .clone()
}

/// Reports, past the harness, that a test did not run.
pub fn skipped(why: &str) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let mut stderr = std::io::stderr().lock();
    writeln!(stderr, "skipped {name}: {why}").unwrap();
}

/// Polls until there is an answer.
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::yield_now();
    }
}

/// A command that runs this program again to do one task, through `wrapper` if there is one.
pub fn again(wrapper: &[&str], task: &str) -> Command {
    let own = std::env::current_exe().unwrap();
    let mut words: Vec<&str> = wrapper.to_vec();
    words.extend([
        own.to_str().unwrap(),
        "--exact",
        "child::does_its_task",
        "--include-ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .env(TASK, task)
        .stdin(Stdio::null());
    command
}

/// The output of the task, line by line.
pub fn answers(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    // The test harness may have written on the same line before.
    text.lines()
        .filter_map(|line| line.split_once(MARK).map(|(_, answer)| answer.to_owned()))
        .collect()
}

/// The other side of [`again`].
#[test]
#[ignore = "other tests run it as a process of its own"]
fn does_its_task() {
    let task = std::env::var(TASK).expect("a test gives it a task");
    let (verb, rest) = task.split_once(' ').unwrap_or((&task, ""));
    let answer = |text: &dyn std::fmt::Display| println!("\n{MARK}{text}");
    match verb {
        "observe" => {
            let seen = observer();
            answer(&seen.pid_ns);
            answer(&seen.proc_is_own);
            answer(&seen.boot.private);
            let (chain, broken) = tenure_host::process::chain(&seen);
            answer(&chain.len());
            answer(&broken.is_some());
        }
        "look" => answer(&format!(
            "{:?}",
            tenure_host::process::look(rest.parse().unwrap())
        )),
        "starved" => {
            // What must be open is: no descriptor is left for anything else.
            let limit = rustix::process::Rlimit {
                current: Some(3),
                maximum: Some(3),
            };
            rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
            for pid in rest.split(' ') {
                answer(&format!(
                    "{:?}",
                    tenure_host::process::look(pid.parse().unwrap())
                ));
            }
        }
        "steady" => answer(&tenure_host::clock::now(&observer().boot).steady),
        "open" => answer(
            &tenure_host::state_dir::StateDir::open(rest.as_ref())
                .unwrap()
                .host(),
        ),
        other => panic!("no such task: {other}"),
    }
}
