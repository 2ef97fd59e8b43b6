//! Processes that hold a lock, and those that want it.

use std::path::PathBuf;

use serde_json::Value;
use tenure_testkit::{Agent, Background, Cmd, Env, Output, poll};

use super::line::{SOON, text};
use super::waiter::ends;

/// A command that runs under a lock until its file is removed; the environment's end removes it too.
pub struct Lock {
    pub wrapper: Background,
    pub command: u32,
    pub flag: PathBuf,
}

impl Lock {
    /// Starts `tenure lock LINE -- CMD` and waits until the command runs.
    #[track_caller]
    pub fn runs(env: &Env, agent: &Agent, line: &str) -> Lock {
        let flag = env
            .dir()
            .join(format!("{}.flag", line.replace([' ', '/'], "-")));
        std::fs::write(&flag, "").expect("the environment's directory is writable");
        let wrapper = agent.start(lock(line, &while_there(&flag)));
        let command = poll(SOON, "the command runs", || {
            assert!(wrapper.is_alive(), "{}", wrapper.stderr());
            let said = wrapper.stdout();
            said.strip_suffix('\n')?.strip_prefix("runs ")?.parse().ok()
        });
        Lock {
            wrapper,
            command,
            flag,
        }
    }

    /// Lets the command end, and waits for the wrapper.
    #[track_caller]
    pub fn ends(self) -> Output {
        std::fs::remove_file(&self.flag).expect("it was not ended before");
        ends(self.wrapper)
    }
}

/// A line that says its pid and goes on, as one process, as long as the file is there.
pub fn while_there(flag: &std::path::Path) -> String {
    let flag = flag.display();
    format!(
        "mkfifo {flag}.pipe; exec 9<>{flag}.pipe; echo runs $$; \
         while [ -e {flag} ]; do read -t 0.02 -u 9 || true; done"
    )
}

/// `tenure lock LINE -- bash -c COMMAND`.
pub fn lock(line: &str, command: &str) -> Cmd {
    let words = line.split_whitespace();
    Cmd::new("tenure")
        .arg("lock")
        .args(words)
        .args(["--", "bash", "-c", command])
}

/// Runs `true` under a lock, as nobody.
#[track_caller]
pub fn attempt(env: &Env, line: &str) -> Output {
    let words = ["lock"].into_iter().chain(line.split_whitespace());
    let words: Vec<&str> = words.chain(["--json", "--", "true"]).collect();
    let said = env.tenure(&words);
    assert_eq!(said.stdout, "", "stdout is the command's: {said}");
    said
}

#[track_caller]
pub fn free(env: &Env, line: &str) {
    attempt(env, line).ok();
}

/// The object that ends stderr.
#[track_caller]
pub fn report(said: &Output) -> Value {
    let last = said.stderr.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}\n{said}"))
}

/// Asserts that a lock was not had, for this reason, and returns what was said.
#[track_caller]
pub fn refused(said: &Output, code: i32, kind: &str) -> String {
    assert_eq!(said.code, code, "{said}");
    let error = report(said)["error"].clone();
    assert_eq!(error["kind"], kind, "{said}");
    assert!(error["hints"][0]["why"].is_string(), "{said}");
    text(&error["message"])
}

#[track_caller]
pub fn held(env: &Env, line: &str) {
    refused(&attempt(env, line), 125, "held");
}

pub fn kill9(agent: &Agent, pid: u32) {
    agent
        .run(Cmd::new("kill").args(["-9".to_owned(), pid.to_string()]))
        .ok();
}

/// What `tenure locks` says of a lock.
#[track_caller]
pub fn shown(env: &Env, name: &str) -> Value {
    let all = env.tenure(&["locks", "--json"]).ok().json()["locks"].clone();
    let mut all = all.as_array().expect("a list").iter();
    let found = all.find(|lock| lock["name"] == name);
    found
        .unwrap_or_else(|| panic!("{name} is not shown: {all:?}"))
        .clone()
}

#[track_caller]
pub fn waits(env: &Env, agent: &Agent, name: &str, cmd: Cmd) -> Background {
    let before = shown(env, name)["waiting"].as_u64().expect("a number");
    let waiter = agent.start(cmd);
    poll(SOON, "it waits", || {
        assert!(waiter.is_alive(), "{}", waiter.stderr());
        (shown(env, name)["waiting"].as_u64()? > before).then_some(())
    });
    waiter
}
