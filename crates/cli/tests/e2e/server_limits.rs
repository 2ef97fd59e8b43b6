//! A store on a server: clocks of clients, a pooler that stands still, connections that are used up, passwords.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_testkit::postgres::{Bouncer, PoolMode, PostgresServer};
use tenure_testkit::{Agent, Cmd, Env};

use crate::support::line::{refused, run, session, take};
use crate::support::server::{on, own};

const TEN_YEARS: i64 = 10 * 365 * 86_400;

/// Compiles the library that shifts a process's clock.
fn skewed_clock(env: &Env) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/skewed_clock.c");
    let library = env.dir().join("skewed_clock.so");
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .output()
        .expect("the C compiler can be run");
    assert!(output.status.success(), "{output:?}");
    library
}

/// What one client is told, without what differs from run to run.
fn told(agent: &Agent, library: &Path, skew: i64, home: Option<&Path>, line: &str) -> Value {
    let words = line.split_whitespace().chain(["--json"]);
    let mut cmd = Cmd::new("tenure")
        .args(words)
        .env("LD_PRELOAD", library.display().to_string())
        .env("TENURE_TEST_SKEW", skew.to_string());
    if let Some(home) = home {
        cmd = cmd.env("TENURE_HOME", home.display().to_string());
    }
    let output = agent.run(cmd);
    let answer = output.json();
    json!({
        "code": output.code,
        "kind": answer["error"]["kind"],
        "epoch": answer["claim"]["epoch"],
        "state": answer["session"]["state"],
        "liveness": answer["session"]["liveness"],
        "sessions": answer["sessions"].as_array().map(Vec::len),
    })
}

/// The answers of one life of a store, where two clients have these clocks.
fn answers(server: &PostgresServer, skews: [i64; 2]) -> Vec<Value> {
    let env = on(&server.url(&server.new_schema()));
    let library = skewed_clock(&env);
    let (claude, codex) = (env.agent("claude"), env.agent("codex"));
    let gemini = env.agent("gemini");
    let clock = |cmd: Cmd| -> i64 {
        let shown = claude.run(cmd.arg("+%s")).ok().stdout;
        shown.trim().parse().expect("seconds")
    };
    let shifted = Cmd::new("date")
        .env("LD_PRELOAD", library.display().to_string())
        .env("TENURE_TEST_SKEW", skews[0].to_string());
    let off = clock(shifted) - clock(Cmd::new("date")) - skews[0];
    assert!(off.abs() < 3600, "{off}");
    // Another host, which cannot see the holder's process and judges by its lease.
    let away = env.dir().join("away");
    let mine = |line: &str| told(&claude, &library, skews[0], None, line);
    let theirs = |line: &str| told(&codex, &library, skews[1], None, line);
    let afar = |line: &str| told(&gemini, &library, skews[1], Some(&away), line);
    let register =
        |name: &str, agent: &Agent| format!("register --agent {name} --pid {}", agent.pid());
    vec![
        mine(&register("claude", &claude)),
        theirs(&register("codex", &codex)),
        mine("claim wp:1"),
        theirs("claim wp:1"),
        afar(&register("gemini", &gemini)),
        afar("claim wp:1"),
        afar("ps"),
        mine("guard wp:1 --epoch 1"),
        theirs("takeover wp:1 --reason test"),
        mine("guard wp:1 --epoch 1"),
        mine("renew --for 1h"),
        theirs("release wp:1"),
        mine("claim wp:1"),
        theirs("whoami"),
        theirs("end"),
        mine("ps"),
    ]
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s02_clocks_of_clients_change_no_answer() {
    let server = PostgresServer::shared();
    let expected = answers(&server, [0, 0]);
    assert_eq!(expected[2]["epoch"], 1, "{expected:?}");
    assert_eq!(expected[3]["code"], 3, "{expected:?}");
    assert_ne!(expected[5]["code"], 0, "{expected:?}");
    for skews in [[TEN_YEARS, -TEN_YEARS], [-TEN_YEARS, TEN_YEARS]] {
        assert_eq!(answers(&server, skews), expected, "{skews:?}");
    }
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s06_a_pooler_that_stands_still_holds_up_no_hook_and_no_command_beyond_its_limit() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    let bouncer = Bouncer::start(&server, PoolMode::Transaction, 3);
    let env = on(&bouncer.url(&schema));
    let claude = session(&env, "claude");
    let event =
        r#"{"session_id":"n-1","cwd":"/","hook_event_name":"UserPromptSubmit","prompt":"x"}"#;
    let timed = |does: &dyn Fn() -> tenure_testkit::Output| {
        let begun = Instant::now();
        let output = does();
        (output, begun.elapsed())
    };
    let hook = || claude.tenure_stdin(&["hook", "claude"], event);
    let claim = || claude.tenure(&["claim", "wp:1", "--json"]);
    let (_, usual) = timed(&hook);
    let pid = rustix::process::Pid::from_raw(i32::try_from(bouncer.pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let (answered, took) = timed(&hook);
    let (refused, waited) = timed(&claim);
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    assert_eq!(answered.code, 0, "{answered}");
    let slack = usual * 4;
    assert!(
        took < Duration::from_secs(2) + slack,
        "{took:?}, usually {usual:?}"
    );
    assert_eq!(refused.code, 8, "{refused}");
    assert!(waited < Duration::from_secs(8) + slack, "{waited:?}");
    run(&claude, 0, "claim wp:2");
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn commands_go_on_with_the_last_connections_of_a_server() {
    let (server, env) = own(&[
        "max_connections = 100",
        "superuser_reserved_connections = 0",
    ]);
    let agents: Vec<Agent> = (0..6)
        .map(|n| session(&env, &format!("agent{n}")))
        .collect();
    let (dir, port) = (server.socket_dir().display().to_string(), server.port());
    std::thread::scope(|scope| {
        for _ in 0..90 {
            scope.spawn(|| PostgresServer::hold_at(&dir, port, "SELECT pg_sleep(120)"));
        }
        let count = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        tenure_testkit::poll(Duration::from_secs(60), "90 are taken", || {
            (server.ask(count) == ["90"]).then_some(())
        });
        let epochs: Vec<_> = agents
            .iter()
            .enumerate()
            .map(|(number, agent)| scope.spawn(move || take(agent, &format!("wp:{number}"))))
            .collect();
        for epoch in epochs {
            assert_eq!(epoch.join().unwrap(), 1);
        }
        server.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
        );
    });
}

/// Read before anything is connected to.
#[test]
fn a_password_file_that_others_can_read_is_refused() {
    let env = crate::env();
    let file = env.dir().join("password");
    std::fs::write(&file, "open sesame\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let claude = env.agent("claude");
    let shown = file.display();
    let lines = [
        (
            format!("postgres://ann@127.0.0.1:1/work?password_file={shown}"),
            None,
        ),
        (
            format!("postgres://ann@127.0.0.1:1/work?passfile={shown}"),
            None,
        ),
        (
            "postgres://ann@127.0.0.1:1/work".to_owned(),
            Some(shown.to_string()),
        ),
    ];
    for (url, pass_file) in &lines {
        let variables = [
            ("TENURE_STORE", Some(url.as_str())),
            ("PGPASSFILE", pass_file.as_deref()),
        ];
        let refused = claude.tenure_env(&variables, &["ps", "--json"]).fails(8);
        let message = refused.json()["error"]["message"].to_string();
        assert!(message.contains("others can read"), "{refused}");
        assert!(!refused.to_string().contains("sesame"), "{refused}");
    }
}

/// Half of a schema is damage; nothing is repaired by connecting.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_schema_that_lacks_a_table_is_named_as_damaged() {
    let (server, env) = own(&["full_page_writes = off"]);
    let claude = session(&env, "claude");
    let status = run(&claude, 0, "store status");
    let warnings = status["store"]["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 2, "{status}");
    assert!(
        warnings.contains(&json!("full_page_writes = off")),
        "{status}"
    );
    server.run("DROP TABLE tenure.doubts");
    let error = refused(&claude, 8, "store_damaged", "claim issue:acme/web#1");
    assert!(
        error["message"].as_str().unwrap().contains("doubts"),
        "{error}"
    );
    server.run("DROP TABLE tenure.events CASCADE");
    refused(&claude, 8, "store_unmigrated", "claim wp:1");
}
