//! A test that dies leaves nothing behind, not even what was stopped or survived its agent.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tenure_testkit::Cmd;

use crate::{LONG, env, pin};

const TASK: &str = "TENURE_TESTKIT_TASK";
const MARK: &str = "pids:";

#[test]
fn a_test_that_dies_leaves_no_process() {
    all_end_with_the_test("crash::dies", 10);
}

/// Runs a test of this binary that says what it started, kills it, and sees all of that gone.
#[track_caller]
pub fn all_end_with_the_test(name: &str, number: usize) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--include-ignored", "--nocapture"])
        .env(TASK, "die")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(child.stdout.take().unwrap());
    let pids = std::io::BufRead::lines(lines)
        .find_map(|line| {
            line.unwrap()
                .split_once(MARK)
                .map(|(_, rest)| rest.to_owned())
        })
        .expect("the test that dies says what it started");
    let (dir, pids) = pids.split_once(' ').unwrap();
    let held: Vec<_> = pids
        .split_whitespace()
        .map(|pid| pin(pid.parse().unwrap()))
        .collect();
    assert_eq!(held.len(), number);
    assert!(held.iter().all(|process| !process.is_gone()));
    child.kill().unwrap();
    child.wait().unwrap();
    for process in held {
        assert!(process.wait_gone(LONG), "left: {:?}", process.started());
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
#[ignore = "another test runs it as a process of its own, and kills it"]
fn dies() {
    assert!(is_to_die(), "a test gives it this task");
    let env = env();
    let sleep = || Cmd::new("sleep").arg("1000");
    let agents = ["claude", "codex", "gemini"].map(|name| env.agent(name));
    let mut pids = vec![];
    for agent in &agents {
        pids.extend([agent.pid(), agent.start(sleep()).pid, agent.orphan(sleep())]);
    }
    let shell = env.shell_at_terminal();
    pids.push(shell.pid());
    agents[0].stop();
    agents[1].kill9();
    pids.remove(3);
    let terminal = env.agent_at_terminal("claude");
    pids.push(terminal.pid());
    wait_for_death(env.dir(), &pids);
}

/// Whether this process should be killed by [`all_end_with_the_test`].
pub fn is_to_die() -> bool {
    std::env::var_os(TASK).is_some()
}

/// Says what was started, and blocks.
pub fn wait_for_death(dir: &Path, pids: &[u32]) {
    let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
    let mut out = std::io::stdout();
    writeln!(out, "\n{MARK}{} {}", dir.display(), pids.join(" ")).unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
}
