//! A store that cannot be used, and output that cannot be written.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rusqlite::Connection;
use tenure_testkit::Cmd;

use super::page::Page;
use crate::env;
use crate::support::line::{session, take};
use crate::support::waiter::{ends, waits};

#[test]
fn stores() {
    let env = env();
    let mut page = Page::new("90-store", &env);
    let (claude, codex) = (session(&env, "claude"), session(&env, "codex"));
    let file = env.state().join("tenure.db");
    take(&claude, "wp:1");
    take(&codex, "wp:2");
    page.learn(&env);
    page.title("The store");
    page.run(&claude, "tenure store status");
    page.run(&claude, "tenure store migrate");
    page.title("A store on a server");
    for url in [
        "postgres://ann:secret@db.example:port/work",
        "postgres://ann:secret@db.example/work?sslmode=prefer",
        "postgres://ann:secret@127.0.0.1:1/work",
    ] {
        page.run(
            &claude,
            &format!("TENURE_STORE='{url}' tenure store status"),
        );
    }
    page.title("A damaged row");
    let spoil = |sql: &str| crate::support::forge::forge(&env, sql);
    spoil("UPDATE holds SET means = 'magic' WHERE key = 'wp:1'");
    page.run(&codex, "tenure claims");
    page.run(&codex, "tenure ps");
    page.run(&codex, "tenure claim wp:1");
    spoil("UPDATE holds SET means = 'claim' WHERE key = 'wp:1'");
    take(&codex, "wp:4");
    page.title("A log that was removed");
    let (log, away) = (env.state().join("tenure.db-wal"), env.dir().join("away"));
    fs::rename(&log, &away).expect("it is ours");
    page.run(&claude, "tenure claim wp:1");
    fs::rename(&away, &log).expect("it is ours");
    page.title("A copied state directory");
    let copy = env.dir().join("copy");
    let words = [
        "-a".to_owned(),
        env.state().display().to_string(),
        copy.display().to_string(),
    ];
    claude.run(Cmd::new("cp").args(words)).ok();
    let there = format!("TENURE_HOME={}", copy.display());
    page.run(&claude, &format!("{there} tenure guard wp:1"));
    page.run(&claude, &format!("{there} tenure log --limit 1"));
    for gone in ["tenure.db-wal", "tenure.db-shm"] {
        fs::remove_file(copy.join(gone)).expect("it is ours");
    }
    page.run(&claude, &format!("{there} tenure claims"));
    page.run(&claude, &format!("{there} tenure status"));
    page.run(&claude, &format!("{there} tenure log --limit 1"));
    page.title("Not a database");
    let whole = fs::read(&file).expect("it is ours");
    fs::write(&file, "not a database").expect("it is ours");
    page.run(&claude, "tenure ps");
    fs::write(&file, &whole).expect("it is ours");
    page.title("A state directory that others can write to");
    let mode = |mode| {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(env.state(), mode).expect("the state is ours");
    };
    mode(0o777);
    page.run(&claude, "tenure ps");
    page.run(&claude, "tenure lock build -- true");
    mode(0o700);
    page.title("A state directory that cannot be created");
    let missing = format!("TENURE_HOME={}/state tenure register", file.display());
    page.run(&env.agent("outsider"), &missing);
    page.run(&env.agent("outsider"), "TENURE_HOME=state tenure ps");
    page.title("A store that is locked by another process");
    let held = Connection::open(&file).expect("it is a database");
    held.execute_batch("BEGIN IMMEDIATE").expect("it is free");
    page.run(&claude, "tenure claim wp:3");
    drop(held);
    page.title("A store that was replaced while in use");
    let waiter = waits(&env, &codex, "wp:1", "claim wp:1 --wait 5m");
    let new = env.state().join("new");
    fs::copy(&file, &new).expect("it is ours");
    fs::rename(&new, &file).expect("it is ours");
    let mut said = ends(waiter);
    let object = said.json();
    said.stderr = format!(
        "error: {}\n",
        object["error"]["message"].as_str().expect("text")
    );
    for hint in object["error"]["hints"].as_array().expect("a list") {
        said.stderr
            .push_str(&format!("hint: {}\n", hint["why"].as_str().expect("text")));
    }
    said.stdout.clear();
    page.show(
        codex.pid(),
        "tenure claim wp:1 --wait 5m",
        said,
        Some("store_replaced"),
    );
    page.check(&env);
}

#[test]
fn copies() {
    let env = env();
    let mut page = Page::new("92-store-copy", &env);
    let claude = session(&env, "claude");
    let file = env.state().join("tenure.db").display().to_string();
    let to = env.dir().join("new/tenure.db").display().to_string();
    let none = env.dir().join("none.db").display().to_string();
    take(&claude, "wp:1");
    page.learn(&env);
    page.title("What cannot be copied");
    page.run(&claude, &format!("tenure store copy {none} {to}"));
    page.run(&claude, &format!("tenure store copy {file} {file}"));
    page.run(
        &claude,
        &format!("tenure store copy {file} postgres://ann:secret@127.0.0.1:1/work"),
    );
    page.run(
        &claude,
        &format!("tenure store copy {file} postgres://ann@127.0.0.1:1/work"),
    );
    page.title("A store moves");
    page.run(&claude, &format!("tenure store copy {file} {to}"));
    page.run(&claude, "tenure claim wp:2");
    page.run(&claude, &format!("TENURE_STORE={to} tenure guard wp:1"));
    page.run(&claude, &format!("TENURE_STORE={to} tenure log --limit 1"));
    page.run(&claude, &format!("tenure store copy {file} {to}"));
    let elsewhere = env.dir().join("other/tenure.db").display().to_string();
    page.run(&claude, &format!("tenure store copy {file} {elsewhere}"));
    page.check(&env);
}

#[test]
fn output() {
    let env = env();
    let mut page = Page::new("91-output", &env);
    let claude = session(&env, "claude");
    page.title("Output that cannot be written");
    for line in ["tenure ps >/dev/full", "tenure claim wp:1 >/dev/full"] {
        let said = claude.run(Cmd::shell(line));
        page.show(claude.pid(), line, said, Some("output_failed"));
    }
    page.check(&env);
}

/// A store on a server that cannot be reached: a keeper can still run, but it knows nothing yet.
#[test]
fn keepers() {
    let mut env = env();
    let mut page = Page::new("94-keeper", &env);
    let claude = session(&env, "claude");
    take(&claude, "wp:1");
    page.learn(&env);
    page.title("A store in a file");
    page.run(&claude, "tenure keeper status");
    page.run(&claude, "tenure keeper stop");
    page.run(&claude, "tenure keeper unit");
    env.set("TENURE_STORE", "postgres://ann:secret@127.0.0.1:1/work");
    let codex = env.agent("codex");
    page.title("A store on a server that is away");
    page.run(&codex, "tenure keeper status");
    page.run(&codex, "tenure guard wp:1");
    page.run(&codex, "tenure release wp:1");
    page.run(&codex, "tenure ps");
    page.title("A keeper that runs");
    let keeper = codex.start(Cmd::new("tenure").arg("keeper"));
    tenure_testkit::poll(std::time::Duration::from_secs(20), "it runs", || {
        let shown = codex.tenure(&["keeper", "status", "--json"]).json();
        let local = &shown["keeper"]["local"];
        local["away_since"].is_string().then_some(())
    });
    page.run(&codex, "tenure keeper");
    page.title("A keeper that does not answer");
    assert!(keeper.signal(rustix::process::Signal::STOP));
    page.run(&codex, "tenure keeper status");
    assert!(keeper.signal(rustix::process::Signal::CONT));
    keeper.kill9();
    assert_ne!(keeper.wait().code, 0);
    page.title("A keeper that cannot run");
    let dir = env.state().join("keeper");
    fs::remove_dir_all(&dir).expect("it is ours");
    fs::write(&dir, "in the way").expect("it is ours");
    page.run(&codex, "tenure keeper");
    page.check(&env);
}
