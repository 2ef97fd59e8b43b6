//! Calls that wait in line.

use std::time::Duration;

use serde_json::Value;
use tenure_testkit::{Agent, Background, Cmd, Env, Output, poll};

use super::line::SOON;

/// A waiter that nothing wakes looks again only after 30 seconds.
pub const AT_ONCE: Duration = Duration::from_secs(10);

/// Asks as nobody, who changes nothing.
#[track_caller]
pub fn why(env: &Env, key: &str) -> Value {
    env.tenure(&["why", key, "--json"]).ok().json()
}

/// Who holds a key, and its epoch.
#[track_caller]
pub fn holder(env: &Env, key: &str) -> (Option<String>, u64) {
    let claim = why(env, key)["claim"].clone();
    let handle = claim["holder"]["handle"].as_str().map(str::to_owned);
    (handle, claim["epoch"].as_u64().expect("an epoch"))
}

/// The pids of those who wait for a key, in order.
pub fn in_line(env: &Env, key: &str) -> Vec<u32> {
    let waiters = why(env, key)["why"]["waiters"].clone();
    let waiters = waiters.as_array().expect("a list");
    let pid = |waiter: &Value| {
        waiter["pid"]
            .as_u64()
            .and_then(|pid| u32::try_from(pid).ok())
    };
    waiters.iter().map(|one| pid(one).expect("a pid")).collect()
}

/// Starts tenure with the words of a line and `--json`, and returns when it waits for the key.
#[track_caller]
pub fn waits(env: &Env, agent: &Agent, key: &str, line: &str) -> Background {
    let words = line.split_whitespace().chain(["--json"]);
    let waiter = agent.start(Cmd::new("tenure").args(words));
    poll(SOON, "it waits", || {
        assert!(waiter.is_alive(), "{}{}", waiter.stdout(), waiter.stderr());
        in_line(env, key).contains(&waiter.pid).then_some(())
    });
    waiter
}

/// The answer of a command that ends at once.
#[track_caller]
pub fn ends(command: Background) -> Output {
    poll(AT_ONCE, "it ends", || (!command.is_alive()).then_some(()));
    command.wait()
}
