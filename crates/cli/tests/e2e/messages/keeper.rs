//! A keeper that is asked nonsense, and one that answers nonsense.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tenure_core::time::Timestamp;
use tenure_testkit::{Agent, Background, Cmd, Env, Output, poll};

use super::page::Page;
use crate::env;
use crate::support::line::SOON;
use crate::support::mount::with_mounts;
use crate::support::skip::skipped;

/// A keeper in the foreground, whose store is away.
fn start(agent: &Agent) -> Background {
    let keeper = agent.start(Cmd::new("tenure").arg("keeper"));
    poll(SOON, "it runs", || {
        let shown = agent.tenure(&["keeper", "status", "--json"]).json();
        let local = &shown["keeper"]["local"];
        local["away_since"].is_string().then_some(())
    });
    keeper
}

/// The file of a keeper with this end.
fn file(env: &Env, end: &str) -> PathBuf {
    let files = std::fs::read_dir(env.state().join("keeper")).expect("a keeper ran");
    let mut files = files.map(|file| file.expect("an entry").path());
    files
        .find(|file| file.to_string_lossy().ends_with(end))
        .expect("a keeper made it")
}

/// Shows what a keeper answers to these bytes.
fn asks(page: &mut Page, agent: &Agent, socket: &Path, typed: &str, bytes: &[u8]) {
    let mut stream = UnixStream::connect(socket).expect("a keeper");
    // A keeper that has heard enough closes the connection meanwhile.
    stream.write_all(bytes).ok();
    let mut stdout = String::new();
    stream.read_to_string(&mut stdout).ok();
    let output = Output {
        code: 0,
        stdout,
        stderr: String::new(),
    };
    let typed = format!("{typed} | nc -U {}", socket.display());
    page.show(agent.pid(), &typed, output, None);
}

/// Listens in the place of a keeper, and gives this answer to each question.
fn answers(socket: &Path, count: usize, answer: &str) -> std::thread::JoinHandle<()> {
    std::fs::remove_file(socket).ok();
    let listener = UnixListener::bind(socket).expect("the state is ours");
    let answer = format!("{answer}\n");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().take(count).flatten() {
            let mut asked = [0; 1024];
            assert!(stream.read(&mut asked).expect("a question") > 0);
            stream.write_all(answer.as_bytes()).ok();
        }
    })
}

#[test]
fn keeper() {
    let mut env = env();
    let mut page = Page::new("94-keeper-answers", &env);
    env.set("TENURE_STORE", "postgres://ann:secret@127.0.0.1:1/work");
    let codex = env.agent("codex");
    page.title("What a keeper answers to nonsense");
    let keeper = start(&codex);
    let socket = file(&env, ".sock");
    let name = socket.file_stem().expect("a name").to_string_lossy();
    page.replace(&name, "1000-4026531836-2c26b46b68ff");
    asks(&mut page, &codex, &socket, "echo hello", b"hello\n");
    asks(
        &mut page,
        &codex,
        &socket,
        "echo '{\"v\":2,\"ask\":\"status\"}'",
        b"{\"v\":2,\"ask\":\"status\"}\n",
    );
    let long = vec![b'x'; (64 << 10) + 1];
    let typed = "head -c 65537 /dev/zero | tr '\\0' x";
    asks(&mut page, &codex, &socket, typed, &long);
    page.title("A keeper that cannot be told to stop");
    let hidden = socket.with_extension("hidden");
    std::fs::rename(&socket, &hidden).expect("the state is ours");
    let mark = socket.with_extension("stop");
    std::fs::create_dir(&mark).expect("the state is ours");
    page.run(&codex, "tenure keeper stop");
    std::fs::remove_dir(&mark).expect("it is ours");
    std::fs::rename(&hidden, &socket).expect("the state is ours");
    page.title("A keeper in the foreground, when it is stopped");
    codex.tenure(&["keeper", "stop"]).ok();
    page.show(codex.pid(), "tenure keeper", keeper.wait(), None);
    page.title("Another program in the keeper's place");
    let status = |more: Value| {
        let mut status = json!({
            "id": "k-k7qd2m4zw9", "pid": 20100, "version": "0.1.0",
            "store": "postgres://ann@127.0.0.1:1/work", "started_at": now(), "renewed_at": null,
            "away_since": null, "away_why": null, "sessions": 1, "claims": 2,
        });
        if let (Value::Object(all), Value::Object(more)) = (&mut status, more) {
            all.extend(more);
        }
        json!({"status": status}).to_string()
    };
    for (answer, fails) in [
        ("hello".to_owned(), true),
        ("\"accepted\"".to_owned(), true),
        (json!({"refused": "it is not the hour"}).to_string(), true),
        (status(json!({})), false),
        (status(json!({"away_since": now()})), false),
    ] {
        let answering = answers(&socket, if fails { 2 } else { 1 }, &answer);
        page.run(&codex, "tenure keeper status");
        answering.join().expect("it answered");
    }
    std::fs::remove_file(&socket).expect("it is ours");
    page.title("Stages of a keeper that are started by hand");
    let kind = Some("keeper_failed");
    page.run_once(&codex, "tenure __keeper nonsense --lock 3", kind);
    let order = json!({
        "store": "postgres://ann@127.0.0.1:1/work", "dir": env.state(),
        "lease": 60000, "lock_delay": 1000, "host_lease": 60000,
    });
    let stage = "tenure __keeper keep --lock 3";
    page.feed_once(&codex, &order.to_string(), stage, None);
    page.check_without_sessions();
}

/// A program finds its own path there.
#[test]
fn hidden_proc() {
    let env = env();
    let mut page = Page::new("94-keeper-without-proc", &env);
    let codex = env.agent("codex");
    if codex.run(with_mounts("mount -t tmpfs none /proc")).code != 0 {
        skipped("this machine lets us mount nothing");
        return;
    }
    page.title("Where /proc is hidden");
    let tenure = env.tenure_path().display();
    let script = format!("mount -t tmpfs none /proc; exec {tenure} keeper unit");
    let hidden = codex.run(with_mounts(&script));
    page.show(codex.pid(), "tenure keeper unit", hidden, Some("internal"));
    page.check_without_sessions();
}

fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.expect("it is after 1970").as_millis();
    Timestamp(i64::try_from(now).expect("it is long before the end of time"))
}
