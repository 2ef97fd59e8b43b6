//! `tenure store backup` and `restore`, `tenure export` and `import tenure`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::types::Value as Cell;
use serde_json::Value;
use tenure_testkit::postgres::PostgresServer;
use tenure_testkit::{Agent, Cmd, Env, poll};

use crate::support::line::{SOON, crew, session, take};

/// What every epoch is raised by.
const RAISE: u64 = 1 << 32;

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Runs tenure with another state directory.
#[track_caller]
fn there(agent: &Agent, home: &Path, code: i32, line: &str) -> Value {
    let mut args = words(line);
    args.push("--json");
    let home = home.to_str().expect("text");
    let variables = [("TENURE_HOME", Some(home)), ("TENURE_STORE", None)];
    let output = agent.tenure_env(&variables, &args);
    assert_eq!(output.code, code, "{line}\n{output}");
    output.json()
}

fn keys(answer: &Value) -> BTreeSet<String> {
    let claims = answer["claims"].as_array().expect("a list");
    let key = |claim: &Value| claim["key"].as_str().expect("a key").to_owned();
    claims.iter().map(key).collect()
}

#[track_caller]
fn backup(env: &Env, name: &str) -> PathBuf {
    let file = env.dir().join(name);
    let made = env.tenure(&["store", "backup", file.to_str().expect("text"), "--json"]);
    made.ok();
    file
}

fn restore(env: &Env, file: &Path) -> tenure_testkit::Output {
    let file = file.to_str().expect("text");
    env.tenure(&["store", "restore", "--yes", file, "--json"])
}

/// The numbers of the items that each writer has.
fn by_writer(held: &BTreeSet<String>) -> BTreeMap<&str, BTreeSet<u64>> {
    let mut all: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for key in held {
        let (at, number) = key["wp:".len()..].split_once('x').expect("an item of ours");
        let number = number.parse().expect("a number");
        all.entry(at).or_default().insert(number);
    }
    all
}

/// What happened up to the newest event of a backup is in it, and nothing else.
#[test]
fn a_backup_under_fifty_writers_is_the_state_of_one_moment() {
    let env = crate::env();
    let writers: Vec<Agent> = (0..50).map(|_| session(&env, "writer")).collect();
    let stop = AtomicBool::new(false);
    let backups: Vec<(PathBuf, BTreeSet<String>)> = std::thread::scope(|scope| {
        for (at, writer) in writers.iter().enumerate() {
            let stop = &stop;
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::SeqCst) {
                        break;
                    }
                    let key = format!("wp:{at}x{number}");
                    let answer = writer.tenure(&["claim", &key, "--json"]);
                    assert!(answer.code == 0, "{answer}");
                }
            });
        }
        let backups = (0..5).map(|number| {
            let before = keys(
                &env.tenure(&["claims", "--limit", "0", "--json"])
                    .ok()
                    .json(),
            );
            (backup(&env, &format!("{number}.db")), before)
        });
        let backups = backups.collect();
        stop.store(true, Ordering::SeqCst);
        backups
    });
    for (file, acknowledged) in &backups {
        let bytes = std::fs::read(file).expect("it was made");
        assert_eq!(bytes[18..20], [1, 1], "it needs no log");
        let plain = Connection::open(file).expect("it is a database");
        let one = |sql: &str| plain.query_row(sql, [], |row| row.get::<_, String>(0));
        assert_eq!(one("PRAGMA integrity_check").as_deref(), Ok("ok"));
        let granted = "SELECT key FROM events WHERE kind = 'claim.granted'";
        let events: BTreeSet<String> = texts(&plain, granted);
        let held = texts(&plain, "SELECT key FROM holds WHERE ended_at IS NULL");
        assert_eq!(events, held, "one moment");
        assert!(held.is_superset(acknowledged), "all that was acknowledged");
        let ids = "SELECT count(*), min(id), max(id) FROM events";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let (count, first, last): (i64, i64, i64) =
            plain.query_row(ids, [], read).expect("numbers");
        assert_eq!((first, last), (1, count), "the log has no gap");
        for (at, keys) in by_writer(&held) {
            let expected: BTreeSet<u64> = (0..keys.len() as u64).collect();
            assert_eq!(keys, expected, "writer {at}: one claim after the other");
        }
        let home = file.with_extension("home");
        std::fs::create_dir(&home).expect("the environment is writable");
        let line = format!("store restore --yes {}", file.display());
        there(&writers[0], &home, 0, &line);
        let shown = keys(&there(&writers[0], &home, 0, "claims --limit 0"));
        assert_eq!(shown, held);
        assert_eq!(
            std::fs::read(file).expect("it is there"),
            bytes,
            "it is as it was"
        );
    }
}

fn texts(conn: &Connection, sql: &str) -> BTreeSet<String> {
    let mut statement = conn.prepare(sql).expect("sql");
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("texts")
}

#[test]
fn a_restored_store_is_as_it_was_and_the_one_before_is_kept() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    let file = backup(&env, "one.db");
    ann.tenure(&["release", "wp:1"]).ok();
    assert_eq!(take(&bob, "wp:1"), 2);
    take(&bob, "wp:2");
    let restored = restore(&env, &file).ok().json()["restored"].clone();
    let held = keys(&env.tenure(&["claims", "--json"]).ok().json());
    assert_eq!(held, BTreeSet::from(["wp:1".to_owned()]));
    let guard = ann.tenure(&["guard", "wp:1", "--json"]).ok().json();
    assert_eq!(guard["claim"]["epoch"], RAISE + 1, "{guard}");
    ann.tenure(&["release", "wp:1"]).ok();
    assert_eq!(take(&bob, "wp:1"), RAISE + 2);
    let newest = env.tenure(&["log", "--limit", "1", "--json"]).ok().json();
    assert!(
        newest["events"][0]["cursor"].as_u64() > Some(8),
        "numbers go on: {newest}"
    );
    // And what was kept is a backup, whose epochs are not granted again.
    let kept = PathBuf::from(restored["kept"].as_str().expect("a file"));
    let again = restore(&env, &kept).ok().json();
    assert_eq!(again["restored"]["was_damaged"], false, "{again}");
    let guard = bob.tenure(&["guard", "wp:1", "--json"]).ok().json();
    assert_eq!(guard["claim"]["epoch"], 2 * RAISE + 2, "{guard}");
    bob.tenure(&["guard", "wp:2"]).ok();
}

#[test]
fn the_newest_three_copies_from_before_a_restore_are_kept() {
    let (env, [ann]) = crew(["ann"]);
    take(&ann, "wp:1");
    let file = backup(&env, "one.db");
    let copies = || {
        let names = std::fs::read_dir(env.state())
            .expect("it is there")
            .flatten();
        let copies = names.map(|one| one.file_name().to_string_lossy().into_owned());
        let copies: BTreeSet<String> = copies.filter(|name| name.contains(".before-")).collect();
        copies
    };
    let named = |numbers: &[u32]| -> BTreeSet<String> {
        let name = |number| format!("tenure.db.before-restore-{number}");
        numbers.iter().map(name).collect()
    };
    // Another command's copies are its own, and so is what a person put there.
    let others = ["tenure.db.before-doctor-1", "tenure.db.before-restore-mine"];
    for other in others {
        std::fs::write(env.state().join(other), "kept").expect("it is ours");
    }
    for number in 1..=5u32 {
        if number == 2 {
            std::fs::write(env.state().join("tenure.db"), "not a database").expect("it is ours");
        }
        let restored = restore(&env, &file).ok().json()["restored"].clone();
        let newest = restored["kept"].as_str().expect("a file");
        assert!(newest.ends_with(&format!("-{number}")), "{restored}");
        let left: Vec<u32> = (1..=number).rev().take(3).collect();
        let mut found = copies();
        for other in others {
            assert!(found.remove(other), "{found:?}");
        }
        // With the damaged one are its log and its mark.
        found.retain(|name| !name.contains("-restore-2"));
        let left = left.into_iter().filter(|number| *number != 2);
        let left: Vec<u32> = left.collect();
        assert_eq!(found, named(&left), "after restore {number}");
    }
    let rest = copies()
        .into_iter()
        .filter(|name| name.contains("-restore-2"));
    assert_eq!(rest.count(), 0, "all of it is gone");
    // What is restored stays as it is.
    restore(&env, &env.state().join("tenure.db.before-restore-3")).ok();
    let left = copies();
    assert!(named(&[3, 4, 5, 6]).is_subset(&left), "{left:?}");
}

#[test]
fn where_nothing_is_stored_nothing_is_written() {
    let env = crate::env();
    let ann = env.agent("ann");
    let (home, file) = (env.dir().join("none"), env.dir().join("new"));
    for line in ["store backup", "export"] {
        let none = there(&ann, &home, 4, &format!("{line} {}", file.display()));
        let message = none["error"]["message"].as_str().expect("a text");
        assert!(message.contains("nothing is stored yet"), "{none}");
        let hints = none["error"]["hints"].to_string();
        assert!(hints.contains("TENURE_HOME"), "{none}");
        assert!(!hints.contains("status"), "no other command helps: {none}");
        assert!(!home.exists() && !file.exists(), "{line}");
    }
}

#[test]
fn a_damaged_store_is_replaced_and_its_bytes_are_kept() {
    let (env, [ann]) = crew(["ann"]);
    take(&ann, "wp:1");
    let file = backup(&env, "one.db");
    let store = env.state().join("tenure.db");
    let garbled = |bytes: &mut Vec<u8>| bytes[4096..8192].fill(0xa5);
    let other = |bytes: &mut Vec<u8>| *bytes = b"not a database".to_vec();
    for (number, damage) in [garbled as fn(&mut Vec<u8>), other].iter().enumerate() {
        let plain = Connection::open(&store).expect("a database");
        plain
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .expect("a log");
        drop(plain);
        let mut bytes = std::fs::read(&store).expect("it is there");
        damage(&mut bytes);
        std::fs::write(&store, &bytes).expect("it is ours");
        let restored = restore(&env, &file).ok().json()["restored"].clone();
        assert_eq!(restored["was_damaged"], true, "{restored}");
        let kept = restored["kept"].as_str().expect("a file");
        assert_eq!(std::fs::read(kept).expect("it is kept"), bytes);
        let guard = ann.tenure(&["guard", "wp:1", "--json"]).ok().json();
        let epoch = guard["claim"]["epoch"].as_u64().expect("an epoch");
        assert!(epoch > RAISE * (number as u64 + 1), "{guard}");
        let log = ann.tenure(&["log", "--json"]).ok().to_string();
        assert!(!log.contains("lost its newest"), "{log}");
    }
}

#[test]
fn what_cannot_be_restored_is_refused_and_nothing_changes() {
    let (env, [ann]) = crew(["ann"]);
    take(&ann, "wp:1");
    let whole = std::fs::read(backup(&env, "one.db")).expect("it was made");
    let file = env.dir().join("bad.db");
    let mut flipped = whole.clone();
    flipped[4096..4196].fill(0x5a);
    let bad: [&[u8]; 4] = [b"", b"text", &whole[..whole.len() / 2], &flipped];
    for bytes in bad {
        std::fs::write(&file, bytes).expect("the environment is writable");
        let refused = restore(&env, &file).fails(6);
        assert!(refused.stdout.contains("nothing was changed"), "{refused}");
    }
    std::fs::remove_file(&file).expect("it is there");
    restore(&env, &file).fails(6);
    restore(&env, &env.state().join("tenure.db")).fails(2);
    Connection::open(&file)
        .and_then(|conn| conn.execute_batch("CREATE TABLE sessions (id)"))
        .expect("a database");
    restore(&env, &file).fails(6);
    let taken = file.to_str().expect("text");
    env.tenure(&["store", "backup", taken]).fails(1);
    env.tenure(&["store", "restore", taken]).fails(1);
    ann.tenure(&["guard", "wp:1", "--epoch", "1"]).ok();
    let names = std::fs::read_dir(env.dir()).expect("it is there").flatten();
    let left = names.filter(|one| one.file_name().to_string_lossy().ends_with(".tmp"));
    assert_eq!(left.count(), 0);
}

#[test]
fn a_killed_restore_leaves_the_old_store_or_the_new_one() {
    for damaged in [false, true] {
        let (env, [ann]) = crew(["ann"]);
        for number in 0..20 {
            take(&ann, &format!("wp:old{number}"));
        }
        let file = backup(&env, "old.db");
        take(&ann, "wp:new");
        let store = env.state().join("tenure.db");
        let mut killed = 0;
        for number in 0..25u64 {
            if damaged {
                std::fs::write(&store, "not a database").expect("it is ours");
            }
            let mut cmd = Cmd::new("tenure").args(["store", "restore", "--yes"]);
            cmd = cmd.args([file.to_str().expect("text")]);
            let running = ann.start(cmd);
            let (began, moment) = (Instant::now(), Duration::from_millis(2 * number));
            poll(SOON, "the moment of the kill", || {
                (began.elapsed() >= moment).then_some(())
            });
            if running.is_alive() {
                running.kill9();
                killed += 1;
            }
            let _code = running.wait();
            let seen = ann.tenure(&["claims", "--limit", "0", "--json"]);
            if damaged && seen.code == 8 {
                let again = restore(&env, &file);
                assert!(again.code == 0, "{again}");
            } else {
                let held = keys(&seen.ok().json());
                let old = held.iter().filter(|key| key.contains("old")).count();
                assert_eq!(old, 20, "{held:?}");
                assert!(held.len() == 20 || !damaged && held.contains("wp:new"));
            }
            take(&ann, "wp:new");
        }
        assert!(killed > 2, "{killed}");
    }
}

/// The rows of each table of a store in a file, but for what an import adds.
fn rows(home: &Path) -> Vec<(String, Vec<String>)> {
    let conn = Connection::open(home.join("tenure.db")).expect("a database");
    let tables = texts(
        &conn,
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'meta'",
    );
    let mut all = Vec::new();
    for table in tables {
        let filter = match table.as_str() {
            "events" => "WHERE mechanism <> 'import'",
            "notices" => "WHERE message NOT LIKE '%every epoch was raised%'",
            _ => "",
        };
        let columns = texts(
            &conn,
            &format!("SELECT name FROM pragma_table_info('{table}') WHERE name NOT LIKE 'lease_%'"),
        );
        let names: Vec<String> = columns.into_iter().collect();
        let sql = format!("SELECT {} FROM {table} {filter}", names.join(", "));
        let mut statement = conn.prepare(&sql).expect("sql");
        let found = statement.query_map([], |row| {
            let cells = (0..names.len()).map(|at| row.get::<_, Cell>(at));
            Ok(format!("{:?}", cells.collect::<Result<Vec<_>, _>>()?))
        });
        let mut found: Vec<String> = found
            .expect("rows")
            .collect::<Result<_, _>>()
            .expect("rows");
        found.sort();
        all.push((table, found));
    }
    all
}

/// A store with rows of many kinds.
fn lived_in(env: &Env) -> Agent {
    let (ann, bob) = (session(env, "claude"), session(env, "bob"));
    take(&ann, "wp:1");
    take(&ann, "wp:2");
    for line in [
        "release wp:2",
        "tell bob ü\u{1f980}\"\\",
        "meta set team blue",
        "mission join m --role developer",
        "conversation set claude wp:1 ses_1",
        "rename claude Login",
    ] {
        ann.tenure(&words(line)).ok();
    }
    bob.kill9();
    take(&ann, "wp:3");
    ann
}

#[test]
fn an_imported_export_is_equal_field_by_field_and_is_taken_once() {
    let env = crate::env();
    let ann = lived_in(&env);
    let file = env.dir().join("all.jsonl");
    let name = file.to_str().expect("text");
    let exported = env.tenure(&["export", name, "--json"]).ok().json();
    assert!(
        exported["exported"]["rows"].as_u64() > Some(20),
        "{exported}"
    );
    let bytes = std::fs::read(&file).expect("it was made");
    let home = env.dir().join("other");
    let shown = there(&ann, &home, 0, &format!("import tenure {name}"));
    assert_eq!(shown["import"]["applied"], false, "{shown}");
    assert!(!home.join("tenure.db").exists());
    let apply = format!("import tenure {name} --apply");
    there(&ann, &home, 0, &apply);
    assert_eq!(rows(&home), rows(&env.state()));
    let again = there(&ann, &home, 0, &apply);
    assert_eq!(again["import"]["taken"], 0, "{again}");
    assert_eq!(rows(&home), rows(&env.state()));
    let held = there(&ann, &home, 0, "claims");
    assert_eq!(held["claims"][0]["epoch"], RAISE + 1, "{held}");
    assert_eq!(
        std::fs::read(&file).expect("it is there"),
        bytes,
        "it is as it was"
    );
    // A store that has rows, and a file that is not whole.
    let before = rows(&env.state());
    for line in [&apply, &format!("import tenure {name}")] {
        let full = there(&ann, &env.state(), 1, line);
        assert_eq!(full["error"]["kind"], "not_empty", "{full}");
        let hints = full["error"]["hints"].to_string();
        assert!(hints.contains("TENURE_HOME=DIR"), "{full}");
    }
    assert_eq!(rows(&env.state()), before);
    std::fs::write(&file, &bytes[..bytes.len() - 12]).expect("it is ours");
    let torn = there(&ann, &env.dir().join("third"), 6, &apply);
    assert_eq!(torn["error"]["kind"], "invalid", "{torn}");
    assert!(!env.dir().join("third/tenure.db").exists());
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn exports_and_backups_go_from_a_file_to_a_server_and_back() {
    let server = PostgresServer::shared();
    let url = server.url(&server.new_schema());
    let env = crate::env();
    let ann = lived_in(&env);
    let on_server = |code: i32, line: &str| {
        let mut args = words(line);
        args.push("--json");
        let output = ann.tenure_env(&[("TENURE_STORE", Some(&url))], &args);
        assert_eq!(output.code, code, "{line}\n{output}");
        output.json()
    };
    let (first, second) = (env.dir().join("1.jsonl"), env.dir().join("2.jsonl"));
    env.tenure(&["export", first.to_str().expect("text")]).ok();
    on_server(0, &format!("import tenure {} --apply", first.display()));
    let guard = on_server(0, "guard wp:1");
    assert_eq!(guard["claim"]["epoch"], RAISE + 1, "{guard}");
    on_server(0, &format!("export {}", second.display()));
    let home = env.dir().join("back");
    there(
        &ann,
        &home,
        0,
        &format!("import tenure {} --apply", second.display()),
    );
    assert_eq!(rows(&home), rows(&env.state()));
    // A backup of the server, restored there and into a file.
    let backup = env.dir().join("server.db");
    on_server(0, &format!("store backup {}", backup.display()));
    on_server(0, "release wp:1");
    on_server(0, "claim wp:9");
    let restored = on_server(0, &format!("store restore --yes {}", backup.display()));
    let held = keys(&on_server(0, "claims"));
    assert_eq!(held, ["wp:1", "wp:3"].map(str::to_owned).into());
    let guard = on_server(0, "guard wp:1");
    assert_eq!(guard["claim"]["epoch"], 2 * RAISE + 1, "{guard}");
    let kept = restored["restored"]["kept"].as_str().expect("a file");
    let home = env.dir().join("kept");
    there(&ann, &home, 0, &format!("store restore --yes {kept}"));
    let held = keys(&there(&ann, &home, 0, "claims"));
    assert_eq!(held, ["wp:3", "wp:9"].map(str::to_owned).into());
}
