//! Shared by the tests: a directory with locks, and this program run again as another process.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tenure_host::kernel_lock::{HeldLock, LockDir, LockError, LockName, Patience, Sharing};
use tenure_host::{lock_table, pause};

use crate::{contention, files, holding};

pub const TASK: &str = "TENURE_HOST_LOCK_TASK";
const MARK: &str = "answer: ";
/// The test that does the tasks.
pub const TASK_ARGS: [&str; 5] = [
    "--exact",
    "worker::does_its_task",
    "--include-ignored",
    "--nocapture",
    "--test-threads=1",
];
pub const SOON: Duration = Duration::from_secs(30);

/// Polls until there is an answer.
#[track_caller]
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        pause::sleep(Duration::from_millis(1));
    }
}

/// A directory with locks in it.
pub struct Place {
    pub dir: tempfile::TempDir,
    pub locks: LockDir,
}

impl Place {
    pub fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let locks = LockDir::open(&dir.path().join("locks")).unwrap();
        Place { dir, locks }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn try_lock(&self, name: &str) -> Result<HeldLock, LockError> {
        self.locks.try_lock(&plain(name), Sharing::Exclusive)
    }

    /// How many wait for a lock, according to the kernel.
    pub fn waiting(&self, name: &str) -> usize {
        lock_table::state(&self.locks, &plain(name)).waiting
    }

    /// Starts this program again to do a task here.
    pub fn start(&self, task: &str) -> Worker {
        let (send, receive) = channel();
        let dir = self.dir.path().to_str().unwrap();
        let process = Process::start(&format!("{dir} {task}"), 0, &send);
        Worker { process, receive }
    }

    /// A process that holds a lock.
    pub fn holder(&self, name: &str) -> Worker {
        let worker = self.start(&format!("hold {name}"));
        assert_eq!(worker.says(), "held");
        worker
    }
}

pub fn plain(name: &str) -> LockName {
    LockName::plain(name).unwrap()
}

pub fn is_held<T>(outcome: Result<T, LockError>) -> bool {
    match outcome {
        Ok(_) => false,
        Err(LockError::Held { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

/// This program, run again; it is killed and reaped with the test.
pub struct Process(pub Child);

pub type Said = (usize, Option<String>);

impl Process {
    /// Starts it; its output arrives with `tag`, and `None` at its end.
    pub fn start(task: &str, tag: usize, said: &Sender<Said>) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(TASK_ARGS)
            .env(TASK, task)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (said, out) = (said.clone(), child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            // The receiver may be gone.
            lines
                .filter_map(|line| Some(line.split_once(MARK)?.1.to_owned()))
                .for_each(|answer| drop(said.send((tag, Some(answer)))));
            drop(said.send((tag, None)));
        });
        Process(child)
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, signal).unwrap();
    }

    /// Kills it with -9 and reaps it.
    pub fn kill9(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub fn state(&self) -> char {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let after = text.rsplit_once(") ").unwrap().1;
        after.chars().next().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // For a process that was already reaped the error means nothing.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// One process and its output.
pub struct Worker {
    pub process: Process,
    pub receive: Receiver<Said>,
}

impl Worker {
    #[track_caller]
    pub fn says(&self) -> String {
        let said = self.receive.recv_timeout(SOON).expect("it says something");
        said.1.expect("it goes on")
    }

    pub fn is_silent(&self) -> bool {
        self.receive.try_recv().is_err()
    }

    /// Closes its stdin and waits for a good end.
    #[track_caller]
    pub fn finish(mut self) {
        drop(self.process.0.stdin.take());
        assert!(self.process.0.wait().unwrap().success());
    }
}

pub fn say(text: &str) {
    println!("\n{MARK}{text}");
}

/// Until the test closes it, or kills us.
pub fn wait_for_test() {
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// The other side of [`Process::start`].
#[test]
#[ignore = "other tests run it as a process of its own"]
fn does_its_task() {
    let task = std::env::var_os(TASK).expect("a test gives it a task");
    let task = task.into_string().unwrap();
    let words: Vec<&str> = task.split(' ').collect();
    let dir = Path::new(words[0]);
    let locks = LockDir::open(&dir.join("locks")).unwrap();
    let lock = |name: &str, sharing| {
        locks
            .lock(&plain(name), sharing, Patience::Endless)
            .unwrap()
    };
    match words[1..] {
        ["hold", name] => {
            let held = lock(name, Sharing::Exclusive);
            say("held");
            wait_for_test();
            held.unlock();
        }
        ["share", name] => {
            let held = lock(name, Sharing::Shared);
            say("held");
            wait_for_test();
            held.unlock();
        }
        ["leave", name] => {
            let held = lock(name, Sharing::Exclusive);
            held.pass_on().unwrap();
            let line = "sleep 1000 >/dev/null 2>&1 & echo $!";
            let shell = Command::new("sh").args(["-c", line]).output().unwrap();
            say(String::from_utf8(shell.stdout).unwrap().trim());
            std::mem::forget(held);
        }
        ["outlive", name] => holding::outlive(dir, &locks, name),
        ["count", slot, quota] => {
            contention::count(dir, &locks, slot.parse().unwrap(), quota.parse().unwrap());
        }
        ["turns", slot] => contention::turns(dir, &locks, slot.parse().unwrap()),
        ["write", name, letter, rounds] => {
            files::write(&dir.join(name), letter, rounds.parse().unwrap());
        }
        ["mirror", rounds] => files::mirror(dir, &locks, rounds.parse().unwrap()),
        _ => panic!("no such task: {task}"),
    }
}
