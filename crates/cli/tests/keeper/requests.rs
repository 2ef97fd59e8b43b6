//! Commands and hooks through the keeper: one connection, no network of their own, events that repeat.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde_json::json;
use tenure_testkit::postgres::{PostgresServer, Proxy};
use tenure_testkit::{Agent, Cmd, Output, poll};

use crate::machine::{Machine, SOON, kept, kept_at};

/// A server that logs this, and an environment whose commands start keepers.
fn logging(setting: &str) -> (PostgresServer, tenure_testkit::Env) {
    let server = PostgresServer::own(&[setting]);
    let env = kept_at(&server.url("tenure"), &[("TENURE_HOST_LEASE", "10m")]);
    (server, env)
}

/// How many lines of the server's log contain these words.
fn logged(server: &PostgresServer, words: &str) -> usize {
    let log = fs_err::read_to_string(server.dir().join("log")).unwrap();
    log.lines().filter(|line| line.contains(words)).count()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn commands_use_the_one_connection_of_the_keeper() {
    let (server, env) = logging("log_connections = on");
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    let connected = || logged(&server, "application_name=tenure");
    let before = connected();
    assert!(before > 0);
    for line in ["claim wp:2", "guard wp:2", "ps", "release wp:2"] {
        a.run(&claude, 0, line);
    }
    assert_eq!(connected(), before);
}

/// A hook of an agent on a machine.
fn hook(machine: &Machine<'_>, agent: &Agent, event: &serde_json::Value) -> Output {
    agent.run(machine.command("hook claude").stdin(event.to_string()))
}

fn event(agent: &Agent, name: &str) -> serde_json::Value {
    json!({
        "hook_event_name": name,
        "session_id": format!("7f3c-{}", agent.pid()),
        "cwd": "/tmp",
        "source": "startup",
        "prompt": "go",
    })
}

fn used_tool(machine: &Machine<'_>, agent: &Agent) -> Output {
    let event = json!({
        "hook_event_name": "PostToolUse",
        "session_id": format!("7f3c-{}", agent.pid()),
        "cwd": "/tmp",
        "tool_name": "Read",
        "tool_input": {"file_path": "/tmp/a"},
    });
    hook(machine, agent, &event)
}

#[test]
#[ignore = "needs PostgreSQL"]
fn an_event_that_repeats_is_answered_by_the_keeper() {
    let (server, env) = logging("log_statement = 'all'");
    let a = Machine::new(&env, "a");
    let claude = a.env_agent("claude");
    a.run(&claude, 0, "ps");
    poll(SOON, "the keeper runs", || a.watched());
    hook(&a, &claude, &event(&claude, "SessionStart")).ok();
    poll(SOON, "the keeper watches it", || {
        (a.watched() == Some(1)).then_some(())
    });
    hook(&a, &claude, &event(&claude, "UserPromptSubmit")).ok();
    used_tool(&a, &claude).ok();
    // Of all that asks the store here, only events look for notices.
    let events = || logged(&server, "FROM notices");
    let before = events();
    assert!(before > 0);
    for _ in 0..3 {
        let said = used_tool(&a, &claude).ok();
        assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("", ""));
    }
    assert_eq!(events(), before, "the store was asked");
    // The end of a turn is news, and what was known before it is not.
    hook(&a, &claude, &event(&claude, "Stop")).ok();
    used_tool(&a, &claude).ok();
    assert!(events() > before);
    let shown = a.run(&claude, 0, "whoami");
    assert_eq!(shown["session"]["activity"], "busy", "{shown}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_command_without_a_network_reaches_the_store() {
    let server = PostgresServer::own(&[]);
    let env = kept_at(&server.url("tenure"), &[]);
    let url = server.tcp_url(Some(server.password()), "tenure");
    let a = Machine::new(&env, "a").through(url.clone());
    let claude = a.session("claude");
    let home = env.dir().join("a").display().to_string();
    let alone = |line: &str| {
        let tenure = env!("CARGO_BIN_EXE_tenure");
        let command = format!("exec unshare --net {tenure} {line} --json");
        let command = Cmd::new("sh").args(["-c", &command]);
        let command = command.env("TENURE_HOME", home.clone());
        claude.run(command.env("TENURE_STORE", url.clone()))
    };
    let claimed = alone("claim wp:1");
    if claimed.stderr.contains("unshare") {
        eprintln!("network namespaces are not allowed here: not run");
        return;
    }
    assert_eq!(claimed.code, 0, "{claimed}");
    a.run(&claude, 0, "guard wp:1");
    // Without a keeper there is no way.
    a.person(0, "keeper stop");
    let refused = alone("claim wp:2");
    assert_eq!(refused.code, 8, "{refused}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn many_commands_at_once_wait_for_their_turn() {
    let (server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    std::thread::scope(|scope| {
        for n in 0..16 {
            let (a, env) = (&a, &env);
            scope.spawn(move || {
                let one = env.agent("codex");
                let pid = one.pid();
                a.run(&one, 0, &format!("register --agent codex --pid {pid}"));
                a.run(&one, 0, &format!("claim wp:{n}"));
            });
        }
    });
    a.run(&claude, 0, "ps");
    let open =
        server.ask("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tenure'");
    assert_eq!(open[0], "1");
}

/// How long the slowest of one event each of these agents takes, all at once.
fn slowest(machine: &Machine<'_>, agents: &[Agent]) -> Duration {
    let together = Barrier::new(agents.len());
    std::thread::scope(|scope| {
        let timed = |agent| {
            let together = &together;
            scope.spawn(move || {
                together.wait();
                let began = Instant::now();
                used_tool(machine, agent).ok();
                began.elapsed()
            })
        };
        let all: Vec<_> = agents.iter().map(timed).collect();
        let took = all.into_iter().map(|one| one.join().unwrap());
        took.max().unwrap()
    })
}

#[test]
#[ignore = "needs PostgreSQL"]
fn hooks_wait_no_longer_than_they_may_for_a_store_that_stands_still() {
    const WAIT: Duration = Duration::from_millis(150);
    let server = PostgresServer::own(&[]);
    let env = kept_at(&server.url("tenure"), &[("TENURE_HOST_LEASE", "10m")]);
    let proxy = Proxy::start(server.port());
    let url = server.tcp_url(Some(server.password()), "tenure");
    let port = |port: u16| format!(":{port}/");
    let url = url.replace(&port(server.port()), &port(proxy.port()));
    let a = Machine::new(&env, "a").through(url);
    let agents: Vec<Agent> = (0..64).map(|_| a.env_agent("claude")).collect();
    let news = || {
        std::thread::scope(|scope| {
            for some in agents.chunks(16) {
                let a = &a;
                scope.spawn(move || {
                    for agent in some {
                        hook(a, agent, &event(agent, "UserPromptSubmit")).ok();
                    }
                });
            }
        });
    };
    news();
    let there = slowest(&a, &agents);
    // What the keeper knows of these events is not settled any more.
    news();
    proxy.freeze(true);
    let away = slowest(&a, &agents);
    proxy.freeze(false);
    assert!(away <= WAIT + there * 2, "{away:?} beside {there:?}");
}
