//! A store in a file that another version, another program or an accident changed.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;

use rusqlite::Connection;
use tenure_testkit::{Agent, Cmd, Output};

use super::page::Page;
use crate::env;
use crate::support::line::{session, take};

/// Changes a database and leaves no log beside it.
fn change(file: &Path, sql: &str) {
    let store = Connection::open(file).expect("it is there");
    store.execute_batch(sql).expect(sql);
}

/// Shows a command below a limit on the size of files. What it says goes through a pipe, which has no limit.
fn limited(page: &mut Page, agent: &Agent, line: &str) {
    let piped = format!("({line} 2>&1; echo $?) | cat");
    let all = agent.run(Cmd::shell(&piped)).ok().stdout;
    let (said, code) = all.trim_end().rsplit_once('\n').expect("it said something");
    let said = Output {
        code: code.parse().expect("a code"),
        stdout: String::new(),
        stderr: said.to_owned(),
    };
    page.show(agent.pid(), line, said, Some("store_unavailable"));
}

#[test]
fn files() {
    let env = env();
    let mut page = Page::new("90-store-file", &env);
    let claude = session(&env, "claude");
    let file = env.state().join("tenure.db");
    take(&claude, "wp:1");
    page.learn(&env);
    page.title("A store of another version");
    let numbers: (u32, String) = Connection::open(&file)
        .and_then(|store| {
            let number = store.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            let writer = "SELECT value FROM meta WHERE name = 'min_writer'";
            Ok((number, store.query_row(writer, [], |row| row.get(0))?))
        })
        .expect("it is a store");
    for changed in [
        "PRAGMA user_version = -1",
        "PRAGMA user_version = 0",
        "PRAGMA user_version = 5; DELETE FROM meta WHERE name = 'schema'",
        "PRAGMA user_version = 998; INSERT INTO meta VALUES ('schema', '998'); \
         UPDATE meta SET value = 'soon' WHERE name = 'min_writer'",
        "PRAGMA user_version = 20000000",
    ] {
        change(&file, changed);
        page.run(&claude, "tenure claims");
    }
    let (number, writer) = numbers;
    change(
        &file,
        &format!(
            "PRAGMA user_version = {number}; \
             UPDATE meta SET value = '{number}' WHERE name = 'schema'; \
             UPDATE meta SET value = '{writer}' WHERE name = 'min_writer'"
        ),
    );
    page.title("A database of another program");
    change(&file, "PRAGMA application_id = 7");
    page.run(&claude, "tenure claims");
    change(&file, "PRAGMA application_id = 1952804469");
    page.title("A link to a database");
    let away = env.dir().join("away.db");
    fs::rename(&file, &away).expect("it is ours");
    symlink(&away, &file).expect("it is ours");
    page.run(&claude, "tenure claims");
    fs::remove_file(&file).expect("it is ours");
    fs::rename(&away, &file).expect("it is ours");
    page.title("A log that was cut or exchanged");
    take(&claude, "wp:2");
    let log = env.state().join("tenure.db-wal");
    let whole = fs::read(&log).expect("it is ours");
    fs::write(&log, &whole[..40]).expect("it is ours");
    page.run(&claude, "tenure claims");
    fs::write(&log, &whole).expect("it is ours");
    let open = fs::File::options().write(true).open(&log);
    open.and_then(|log| log.write_all_at(b"salts of another", 16))
        .expect("it is ours");
    page.run(&claude, "tenure claims");
    fs::write(&log, &whole).expect("it is ours");
    page.title("A limit on the size of files");
    limited(&mut page, &claude, "ulimit -f 0; tenure claim wp:3");
    page.title("A directory instead of a file");
    page.run(&claude, "TENURE_STORE=/ tenure claims");
    page.title("A store with tables of its own");
    change(&file, "CREATE TABLE notes (text TEXT) STRICT");
    let to = env.dir().join("copy/tenure.db");
    let line = format!("tenure store copy {} {}", file.display(), to.display());
    page.run(&claude, &line);
    page.check(&env);
}
