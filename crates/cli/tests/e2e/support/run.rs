//! Runs of scripted agents.

use serde_json::Value;
use tenure_testkit::{Agent, Background, Cmd, Env, Output, poll};

use super::line::SOON;

/// Starts `tenure run` with the words of a line and a prompt.
pub fn start(agent: &Agent, line: &str) -> Background {
    agent.start(command(line))
}

fn command(line: &str) -> Cmd {
    let words = line.split_whitespace();
    let prompt = ["--prompt", "do it"];
    Cmd::new("tenure").arg("run").args(words).args(prompt)
}

/// Runs it to its end.
#[track_caller]
pub fn run(agent: &Agent, line: &str) -> Output {
    agent.run(command(line))
}

/// All runs, the newest first.
#[track_caller]
pub fn all(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["runs", "--json"]).ok().json();
    answer["runs"].as_array().expect("a list").clone()
}

/// The only run, or the newest.
#[track_caller]
pub fn newest(env: &Env) -> Value {
    all(env).into_iter().next().expect("a run")
}

/// Waits until the newest run is like this.
#[track_caller]
pub fn until(env: &Env, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    poll(SOON, what, || {
        let runs = env.tenure(&["runs", "--json"]).ok().json();
        runs["runs"].get(0).filter(|run| is(run)).cloned()
    })
}

/// Waits until the newest run has ended; its outcome.
#[track_caller]
pub fn outcome(env: &Env) -> String {
    let run = until(env, "the run ends", |run| run["state"] == "ended");
    run["outcome"].as_str().expect("an outcome").to_owned()
}

/// The pid of the runner of a run: the parent of its agent.
#[track_caller]
pub fn runner_of(run: &Value) -> u32 {
    let agent = pid_of(run);
    let stat = tenure_testkit::pinned::Stat::read(agent).expect("its agent lives");
    stat.parent
}

#[track_caller]
pub fn pid_of(run: &Value) -> u32 {
    let pid = run["pid"]
        .as_u64()
        .unwrap_or_else(|| panic!("no agent lives in {run}"));
    u32::try_from(pid).expect("a pid")
}

/// Kills a process with -9 and waits until it is gone.
#[track_caller]
pub fn kill9(agent: &Agent, pid: u32) {
    agent
        .run(Cmd::new("kill").args(["-9".to_owned(), pid.to_string()]))
        .ok();
    poll(SOON, "it is gone", || is_gone(pid).then_some(()));
}

pub fn is_gone(pid: u32) -> bool {
    tenure_testkit::pinned::Stat::read(pid).is_none_or(|stat| stat.state == 'Z')
}

/// The lines of `--json`.
#[track_caller]
pub fn lines(said: &Output) -> Vec<Value> {
    let read = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}\n{said}"))
    };
    said.stdout.lines().map(read).collect()
}
