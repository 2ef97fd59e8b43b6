//! A store that cannot be used, and output that cannot be written.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tenure_testkit::{Cmd, Env};

use super::page::Page;
use crate::support::line::{session, take};

pub(super) fn store(env: &mut Env, page: &mut Page) {
    let (claude, codex) = (session(env, "claude"), session(env, "codex"));
    let file = env.state().join("tenure.db");
    take(&claude, "wp:1");
    take(&codex, "wp:2");
    page.learn(env);
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
}

pub(super) fn store_copy(env: &mut Env, page: &mut Page) {
    let claude = session(env, "claude");
    let file = env.state().join("tenure.db").display().to_string();
    let to = env.dir().join("new/tenure.db").display().to_string();
    let none = env.dir().join("none.db").display().to_string();
    take(&claude, "wp:1");
    page.learn(env);
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
}

pub(super) fn store_backup(env: &mut Env, page: &mut Page) {
    let claude = session(env, "claude");
    take(&claude, "wp:1");
    let at = |name: &str| env.dir().join(name).display().to_string();
    let (file, all, text) = (at("one.db"), at("all.jsonl"), at("text"));
    fs::write(&text, "text").expect("the environment is writable");
    page.learn(env);
    page.title("A backup");
    page.run(&claude, &format!("tenure store backup {file}"));
    page.run(&claude, &format!("tenure store backup {file}"));
    page.run(&claude, "tenure store backup /none/one.db");
    let empty = format!("TENURE_HOME={}", at("empty"));
    page.run(
        &claude,
        &format!("{empty} tenure store backup {}", at("two.db")),
    );
    page.title("What cannot be restored");
    page.run(&claude, &format!("tenure store restore {file}"));
    page.run(&claude, &format!("tenure store restore --yes {text}"));
    page.run(
        &claude,
        &format!("tenure store restore --yes {}", at("none")),
    );
    page.title("Restored");
    page.run(&claude, &format!("tenure store restore --yes {file}"));
    page.run(&claude, "tenure guard wp:1");
    page.run(&claude, "tenure log --limit 1");
    page.title("All rows as text");
    page.run(&claude, &format!("tenure export {all}"));
    page.run(&claude, &format!("tenure import tenure {text}"));
    page.run(&claude, &format!("tenure import tenure {all} --apply"));
    let other = format!("TENURE_HOME={}", at("other"));
    page.run(&claude, &format!("{other} tenure import tenure {all}"));
    page.run(
        &claude,
        &format!("{other} tenure import tenure {all} --apply"),
    );
    page.run(
        &claude,
        &format!("{other} tenure import tenure {all} --apply"),
    );
}

pub(super) fn doctor(env: &mut Env, page: &mut Page) {
    let (claude, codex) = (session(env, "claude"), session(env, "codex"));
    let file = env.state().join("tenure.db");
    take(&codex, "wp:1");
    page.learn(env);
    page.title("Nothing is wrong");
    page.run(&claude, "tenure doctor");
    page.title("What can be repaired");
    let mode = |mode| {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(&file, mode).expect("the state is ours");
    };
    mode(0o644);
    page.run(&claude, "tenure doctor");
    page.run(&claude, "tenure doctor --fix");
    codex.kill9();
    page.run(&claude, "tenure doctor --fix");
    page.title("A store that cannot be used");
    fs::write(&file, "not a database").expect("it is ours");
    page.run(&claude, "tenure doctor");
}

pub(super) fn gc(env: &mut Env, page: &mut Page) {
    let (claude, codex) = (session(env, "claude"), session(env, "codex"));
    take(&claude, "wp:1");
    page.learn(env);
    codex.tenure(&["end"]).ok();
    page.title("Nothing is that old");
    page.run(&claude, "tenure gc");
    page.title("What ended long ago");
    let forgotten = |env: &Env, table: &str, column: &str| {
        let file = env.state().join("tenure.db");
        let sql = format!("UPDATE {table} SET {column} = {column} - 3456000000");
        let plain = rusqlite::Connection::open(file).expect("it is ours");
        plain.execute_batch(&sql).expect("it is ours");
    };
    forgotten(env, "sessions", "closed_at");
    page.run(&claude, "tenure gc --older-than 20d");
    forgotten(env, "events", "at");
    take(&claude, "wp:2");
    page.run(&claude, "tenure gc --older-than 20d");
    page.run(&claude, "tenure gc --older-than 20d --apply");
    page.run(&claude, "tenure gc --older-than 20d --apply");
}

/// A store on a server that cannot be reached: a keeper can still run, but it knows nothing yet.
pub(super) fn keeper(env: &mut Env, page: &mut Page) {
    let claude = session(env, "claude");
    take(&claude, "wp:1");
    page.learn(env);
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
}
