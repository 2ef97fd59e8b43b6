//! Hooks that may not wait for a slow store: what it answers is said with the next event.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_testkit::postgres::{PostgresServer, Proxy};
use tenure_testkit::{Agent, Env, Output, Signal, poll};

use crate::machine::{Machine, SOON, kept_at, proxied, signal};

/// An answer over the slow link takes longer than a hook waits, and a whole event less than a hook may take.
const SETTINGS: &[(&str, &str)] = &[("TENURE_HOST_LEASE", "10m"), ("TENURE_HOOK_WAIT", "50ms")];
const SLOW: Duration = Duration::from_millis(5);
const EARLIER: &str = "about an earlier tool call: ";

/// A server behind a link, and a machine that is reached through it.
struct Scene {
    server: PostgresServer,
    env: Env,
    proxy: Proxy,
    through: String,
}

impl Scene {
    fn new() -> Scene {
        let server = PostgresServer::own(&["log_statement = 'all'"]);
        let env = kept_at(&server.url("tenure"), SETTINGS);
        let (proxy, through) = proxied(&server);
        Scene {
            server,
            env,
            proxy,
            through,
        }
    }

    fn machine(&self) -> Machine<'_> {
        Machine::new(&self.env, "a").through(self.through.clone())
    }

    /// Waits until this many warnings and messages are pending in the store.
    fn pending(&self, count: usize) {
        let pending = "SELECT count(*) FROM tenure.notices WHERE delivered_at IS NULL";
        poll(SOON, "notices are pending", || {
            (self.server.ask(pending) == [count.to_string()]).then_some(())
        });
    }
}

fn event(agent: &Agent, name: &str, more: Value) -> Value {
    let mut event = json!({
        "hook_event_name": name,
        "session_id": format!("7f3c-{}", agent.pid()),
        "cwd": "/tmp",
    });
    let Value::Object(more) = more else {
        panic!("an object");
    };
    event.as_object_mut().unwrap().extend(more);
    event
}

pub fn hook(machine: &Machine<'_>, agent: &Agent, name: &str, more: Value) -> Output {
    let event = event(agent, name, more);
    let said = agent.run(machine.hook("claude").stdin(event.to_string()));
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said}");
    said
}

/// A hook that may say on stderr what is wrong.
pub fn hook_saying(machine: &Machine<'_>, agent: &Agent, name: &str, more: Value) -> Output {
    let event = event(agent, name, more);
    let said = agent.run(machine.hook("claude").stdin(event.to_string()));
    assert_eq!(said.code, 0, "{said}");
    said
}

pub fn starts(machine: &Machine<'_>) -> Agent {
    let agent = machine.env_agent("claude");
    hook(
        machine,
        &agent,
        "SessionStart",
        json!({"source": "startup"}),
    );
    agent
}

fn write() -> Value {
    json!({"tool_name": "Write", "tool_input": {"file_path": "/tmp/shared.txt"}})
}

fn writes(machine: &Machine<'_>, agent: &Agent) -> String {
    hook(machine, agent, "PreToolUse", write()).stdout
}

fn reads(machine: &Machine<'_>, agent: &Agent) -> String {
    let tool = json!({"tool_name": "Read", "tool_input": {"file_path": "/tmp/a"}});
    hook(machine, agent, "PostToolUse", tool).stdout
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_warning_that_comes_too_late_is_said_once_with_the_next_event() {
    let scene = Scene::new();
    let a = scene.machine();
    let _keeper_runs = a.session("codex");
    let (other, claude) = (starts(&a), starts(&a));
    writes(&a, &other);
    scene.proxy.delay(SLOW);
    assert_eq!(writes(&a, &claude), "");
    let found = "SELECT count(*) FROM tenure.events WHERE kind = 'session.write_conflict'";
    poll(SOON, "the conflict is found", || {
        (scene.server.ask(found) == ["1"]).then_some(())
    });
    scene.proxy.delay(Duration::ZERO);
    // What another conversation does says none of it.
    assert!(!reads(&a, &other).contains(EARLIER));
    let next = said(&a, &claude, EARLIER);
    assert_eq!(next.matches(EARLIER).count(), 2, "model and person: {next}");
    assert!(next.contains("shared.txt"), "{next}");
    scene.pending(0);
    assert_eq!(reads(&a, &claude), "");
}

/// What the first event that is answered in time says; those before it say nothing.
fn said(machine: &Machine<'_>, agent: &Agent, words: &str) -> String {
    poll(SOON, "the next event says it", || {
        let said = reads(machine, agent);
        assert!(said.is_empty() || said.contains(words), "{said}");
        Some(said).filter(|said| !said.is_empty())
    })
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_notice_in_an_answer_that_comes_too_late_is_told_once_with_the_next_event() {
    let scene = Scene::new();
    let a = scene.machine();
    let codex = a.session("codex");
    let claude = starts(&a);
    a.run(&claude, 0, "claim wp:1");
    a.run(&codex, 0, "takeover wp:1 --reason urgent");
    let words = "tenure notice (lost)";
    scene.proxy.delay(SLOW);
    assert_eq!(reads(&a, &claude), "");
    scene.pending(1);
    scene.proxy.delay(Duration::ZERO);
    let next = said(&a, &claude, words);
    assert_eq!(next.matches(words).count(), 1, "{next}");
    assert!(next.contains("urgent"), "{next}");
    scene.pending(0);
    assert!(!reads(&a, &claude).contains(words));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn f_s06_a_store_that_hangs_holds_up_no_event_but_a_start_an_end_and_a_write_that_may_be_blocked() {
    let scene = Scene::new();
    let a = scene.machine();
    let _keeper_runs = a.session("codex");
    let claude = starts(&a);
    let timed = |name: &str, more: &Value| {
        let began = Instant::now();
        let said = hook_saying(&a, &claude, name, more.clone());
        (began.elapsed(), said)
    };
    let events = [
        ("UserPromptSubmit", json!({"prompt": "go"})),
        ("PreToolUse", write()),
        (
            "Notification",
            json!({"message": "Claude needs your permission"}),
        ),
        ("Stop", json!({})),
    ];
    // The limit of a hook is 1.4 s. On a busy machine one in several is quick enough.
    let there = events.iter().map(|(name, more)| timed(name, more).0).max();
    scene.proxy.freeze(true);
    for (name, more) in &events {
        let (took, _) = timed(name, more);
        let most = Duration::from_millis(600) + there.unwrap();
        assert!(took < most, "{name} took {took:?}");
    }
    // It is said once, and counted.
    let heard = poll(SOON, "the outage is said", || {
        let said = hook_saying(&a, &claude, "UserPromptSubmit", json!({"prompt": "go"})).stdout;
        Some(said).filter(|said| !said.is_empty())
    });
    assert!(
        heard.contains("tenure cannot record this session"),
        "{heard}"
    );
    let log = fs_err::read_to_string(scene.env.dir().join("a/outages.log")).unwrap();
    assert!(log.lines().count() > 1, "{log}");
    scene.proxy.freeze(false);
    poll(SOON, "events are recorded again", || {
        hook_saying(&a, &claude, "Stop", json!({}));
        let shown = a.ask(&claude, "whoami");
        (shown.code == 0 && shown.json()["session"]["activity"] == "idle").then_some(())
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn an_event_is_one_process_and_no_connection() {
    let scene = Scene::new();
    let a = scene.machine();
    let _keeper_runs = a.session("codex");
    let claude = starts(&a);
    let opened = "SELECT sessions FROM pg_stat_database WHERE datname = current_database()";
    let before = scene.server.ask(opened);
    for _ in 0..3 {
        hook(&a, &claude, "UserPromptSubmit", json!({"prompt": "go"}));
    }
    let now = scene.server.ask(opened);
    let number = |answer: &[String]| answer[0].parse::<u64>().unwrap();
    assert!(
        number(&now) <= number(&before) + 1,
        "only the question itself connects"
    );
    let shown = a.run(&claude, 0, "whoami");
    assert_eq!(shown["session"]["activity"], "busy", "{shown}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_hook_whose_time_is_over_does_not_call_the_keeper_silent() {
    let server = PostgresServer::own(&[]);
    let env = kept_at(&server.url("tenure"), &[("TENURE_HOOK_WAIT", "1ms")]);
    let a = Machine::new(&env, "a");
    let _keeper_runs = a.session("codex");
    let claude = starts(&a);
    for number in 0..10 {
        // Each is another event, so that the store is asked, and none is answered within a millisecond.
        let prompt = json!({"prompt": number.to_string()});
        hook(&a, &claude, "UserPromptSubmit", prompt);
    }
    assert!(
        !env.dir().join("a/outages.log").exists(),
        "all were recorded"
    );
}

/// An end that the store does not take in time is recorded later, as the agent reported it.
fn ends_while(hold_up: impl Fn(&Scene, &Machine<'_>, bool)) {
    let scene = Scene::new();
    let a = scene.machine();
    let _keeper_runs = a.session("codex");
    let claude = starts(&a);
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    let id = a.run(&claude, 0, "whoami")["session"]["id"].clone();
    let id = id.as_str().unwrap();
    hold_up(&scene, &a, true);
    let reason = json!({"reason": "prompt_input_exit"});
    hook_saying(&a, &claude, "SessionEnd", reason);
    claude.kill9();
    hold_up(&scene, &a, false);
    let closed =
        format!("SELECT closed_by || ' ' || end_kind FROM tenure.sessions WHERE id = '{id}'");
    let closed = poll(SOON, "the session is closed", || {
        scene
            .server
            .ask(&closed)
            .into_iter()
            .next()
            .filter(|row| !row.is_empty())
    });
    assert_eq!(closed, "end left");
    let held = "SELECT count(*) FROM tenure.holds WHERE ended_at IS NULL";
    assert_eq!(scene.server.ask(held), ["0"]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn an_end_that_the_store_does_not_take_is_recorded_later() {
    ends_while(|scene, _, is_held_up| scene.proxy.freeze(is_held_up));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn an_end_that_the_keeper_does_not_take_is_recorded_later() {
    // It is killed with the event that it has not read yet, and its parent starts another.
    let keeper = std::cell::Cell::new(0);
    ends_while(|_, a, is_held_up| {
        if is_held_up {
            keeper.set(a.keeper_pid());
            signal(keeper.get(), Signal::STOP);
        } else {
            signal(keeper.get(), Signal::KILL);
        }
    });
}
