//! A plain event that repeats another asks nobody, not even the keeper, and loses nothing by it.

use std::os::unix::net::UnixListener;

use serde_json::json;
use tenure_testkit::{Agent, poll};

use crate::late_answers::{hook, hook_saying, starts};
use crate::machine::{Machine, SOON, kept, kill9};

const SETTINGS: &[(&str, &str)] = &[("TENURE_HOST_LEASE", "10m"), ("TENURE_HOOK_WAIT", "50ms")];

/// What is said to an event that only shows that the agent is at work.
fn plain(machine: &Machine<'_>, agent: &Agent) -> String {
    let tool = json!({"tool_name": "Read", "tool_input": {"file_path": "/tmp/a"}});
    hook_saying(machine, agent, "PostToolUse", tool).stdout
}

/// Puts another socket in the keeper's place, which never answers; returns whether it was asked meanwhile.
fn asks_during(machine: &Machine<'_>, act: impl FnOnce()) -> bool {
    let socket = machine.file(".sock");
    let aside = socket.with_extension("aside");
    fs_err::rename(&socket, &aside).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    act();
    let asked = listener.accept().is_ok();
    fs_err::rename(&aside, &socket).unwrap();
    asked
}

/// Whether a plain event asks the keeper now.
fn asks(machine: &Machine<'_>, agent: &Agent) -> bool {
    asks_during(machine, || assert_eq!(plain(machine, agent), ""))
}

/// Sends plain events until one asks nobody. A busy machine may take longer than a note is good for.
fn settle(machine: &Machine<'_>, agent: &Agent) {
    poll(SOON, "a plain event asks nobody", || {
        plain(machine, agent);
        plain(machine, agent);
        (!asks(machine, agent)).then_some(())
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_plain_event_after_another_asks_nobody_until_an_event_says_something_new() {
    let (_server, env) = kept(SETTINGS);
    let a = Machine::new(&env, "a");
    let _keeper_runs = a.session("codex");
    let claude = starts(&a);
    settle(&a, &claude);
    hook(&a, &claude, "Stop", json!({}));
    assert!(asks(&a, &claude), "it rested");
    settle(&a, &claude);
    let stops = || {
        hook(&a, &claude, "Stop", json!({}));
    };
    assert!(asks_during(&a, stops), "the end of a turn is new");
    assert!(asks(&a, &claude), "nobody knows whether it is recorded");
    settle(&a, &claude);
    let _other = starts(&a);
    assert!(asks(&a, &claude), "another session started here");
    settle(&a, &claude);
    fs_err::remove_file(a.file(".generation")).unwrap();
    assert!(asks(&a, &claude), "nothing is known");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn what_is_stored_while_the_keeper_is_killed_is_told_by_the_next_one() {
    let (_server, env) = kept(SETTINGS);
    let (a, b) = (Machine::new(&env, "a"), Machine::new(&env, "b"));
    let _keeper_runs = a.session("codex");
    let gemini = b.session("gemini");
    let claude = starts(&a);
    let name = a.run(&claude, 0, "whoami")["session"]["handle"].clone();
    settle(&a, &claude);
    let killed = a.keeper_pid();
    b.run(
        &gemini,
        0,
        &format!("tell {} hello", name.as_str().unwrap()),
    );
    kill9(killed);
    let told = poll(SOON, "the notice is told", || {
        let said = plain(&a, &claude);
        said.contains("hello").then_some(said)
    });
    assert_eq!(told.matches("hello").count(), 1, "{told}");
    settle(&a, &claude);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_next_keeper_is_asked_again() {
    let (_server, env) = kept(SETTINGS);
    let a = Machine::new(&env, "a");
    let _keeper_runs = a.session("codex");
    let claude = starts(&a);
    settle(&a, &claude);
    let killed = a.keeper_pid();
    kill9(killed);
    poll(SOON, "another keeper runs", || {
        let pid = a.keeper()["pid"].as_u64()?;
        (pid != u64::from(killed)).then_some(())
    });
    assert!(asks(&a, &claude));
}
