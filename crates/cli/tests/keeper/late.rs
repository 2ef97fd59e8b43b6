//! Hooks that may not wait for a slow store: what it answers is said with the next event.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::postgres::{Proxy, Server};
use tenure_testkit::{Agent, Cmd, Env, Output, poll};

use crate::machine::{Machine, SOON, kept_at, proxied};

/// An answer over the slow link takes longer than a hook waits, and a whole event less than a hook may take.
const SETTINGS: &[(&str, &str)] = &[("TENURE_HOST_LEASE", "10m"), ("TENURE_HOOK_WAIT", "10ms")];
const SLOW: Duration = Duration::from_millis(8);
const EARLIER: &str = "about an earlier tool call: ";

/// A server behind a link, and a machine that is reached through it.
struct Scene {
    server: Server,
    env: Env,
    proxy: Proxy,
    through: String,
}

impl Scene {
    fn new() -> Scene {
        let server = Server::own(&["log_statement = 'all'"]);
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

    /// The files of late answers.
    fn kept(&self) -> Vec<PathBuf> {
        let all = fs_err::read_dir(self.env.dir().join("a/late")).into_iter();
        let all = all.flatten().flatten().map(|entry| entry.path());
        all.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
            .collect()
    }

    /// The processes that ask the store for a hook.
    fn asking(&self) -> usize {
        let home = self.env.dir().join("a").display().to_string();
        let has = |file: PathBuf, text: &str| {
            let bytes = fs_err::read(file).unwrap_or_default();
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        let all = fs_err::read_dir("/proc").unwrap().flatten();
        all.filter(|entry| has(entry.path().join("cmdline"), "--late"))
            .filter(|entry| has(entry.path().join("environ"), &home))
            .count()
    }

    /// What a write says to an agent that reads its hook's output to the end.
    fn writes_into_a_pipe(&self, agent: &Agent) -> String {
        let line = format!("{} hook claude 2>&1 | cat", env!("CARGO_BIN_EXE_tenure"));
        let hook = Cmd::new("sh")
            .args(["-c", &line])
            .env(
                "TENURE_HOME",
                self.env.dir().join("a").display().to_string(),
            )
            .env("TENURE_STORE", self.through.clone());
        let event = event(agent, "PreToolUse", write());
        agent.run(hook.stdin(event.to_string())).ok().stdout
    }

    /// Waits until no process asks the store for a hook that is over.
    fn quiet(&self) {
        poll(SOON, "no process stays behind", || {
            (self.asking() == 0).then_some(())
        });
    }

    /// How often an event reached the store.
    fn events(&self) -> usize {
        let log = fs_err::read_to_string(self.server.dir().join("log")).unwrap();
        let is_one = |line: &&str| line.contains("FROM notices");
        log.lines().filter(is_one).count()
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

fn hook(machine: &Machine<'_>, agent: &Agent, name: &str, more: Value) -> Output {
    let event = event(agent, name, more);
    let said = agent.run(machine.hook("claude").stdin(event.to_string()));
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said}");
    said
}

fn starts(machine: &Machine<'_>) -> Agent {
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
    scene.quiet();
    scene.proxy.delay(SLOW);
    assert_eq!(writes(&a, &claude), "");
    scene.quiet();
    let [kept] = &scene.kept()[..] else {
        panic!("one answer is kept: {:?}", scene.kept());
    };
    let words = fs_err::read(kept).unwrap();
    // What another conversation does says none of it.
    assert_eq!(reads(&a, &other), "");
    // The store is still slow, and not needed for this.
    let next = reads(&a, &claude);
    assert_eq!(next.matches(EARLIER).count(), 2, "model and person: {next}");
    assert!(next.contains("tenure warning: "), "{next}");
    assert!(next.contains("shared.txt"), "{next}");
    scene.proxy.delay(Duration::ZERO);
    scene.quiet();
    assert_eq!(reads(&a, &claude), "");
    assert!(scene.kept().is_empty());
    // An event that the keeper answers says it too.
    poll(SOON, "the keeper answers the event", || {
        fs_err::write(kept, &words).unwrap();
        let before = scene.events();
        assert!(reads(&a, &claude).contains(EARLIER));
        scene.quiet();
        (scene.events() == before).then_some(())
    });
    assert_eq!(reads(&a, &claude), "");
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
    scene.quiet();
    let pending = "SELECT count(*) FROM tenure.notices WHERE delivered_at IS NULL";
    assert_eq!(scene.server.ask(pending), ["0"]);
    scene.proxy.delay(Duration::ZERO);
    let next = reads(&a, &claude);
    assert_eq!(next.matches(words).count(), 1, "{next}");
    assert!(next.contains("urgent"), "{next}");
    scene.quiet();
    assert!(!reads(&a, &claude).contains(words));
    scene.quiet();
    assert!(scene.kept().is_empty());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_hook_is_over_before_the_process_that_asks_for_it_and_an_end_forgets_what_that_kept() {
    let scene = Scene::new();
    let a = scene.machine();
    let _keeper_runs = a.session("codex");
    let claude = starts(&a);
    writes(&a, &claude);
    scene.quiet();
    scene.proxy.freeze(true);
    assert_eq!(scene.writes_into_a_pipe(&claude), "");
    assert_eq!(scene.asking(), 1, "it holds the pipe of the hook");
    // It gives up, and that is an answer as well.
    scene.quiet();
    scene.proxy.freeze(false);
    assert_eq!(scene.kept().len(), 1);
    let said = reads(&a, &claude);
    let words = format!("{EARLIER}tenure cannot record this session");
    assert!(said.contains(&words), "{said}");
    scene.quiet();
    scene.proxy.freeze(true);
    assert_eq!(writes(&a, &claude), "");
    scene.quiet();
    scene.proxy.freeze(false);
    hook(&a, &claude, "SessionEnd", json!({"reason": "exit"}));
    assert!(scene.kept().is_empty());
}
