//! `tenure doctor`: each damage is found, named, repaired where that is said, and a healthy installation is left alone.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env, poll, scratch_git};

use crate::support::lease::impatient;
use crate::support::line::{SOON, crew, handle, register, run, session, take, text};
use crate::support::skip::skipped;
use crate::support::transcript::{claude, file_of, line_of};

/// What a report has, by code.
fn codes(report: &Value) -> BTreeSet<String> {
    let findings = report["doctor"]["findings"].as_array().expect("a list");
    findings.iter().map(|one| text(&one["code"])).collect()
}

#[track_caller]
fn doctor(env: &Env, code: i32, more: &[&str]) -> Value {
    let words = [&["doctor", "--json"], more].concat();
    let output = env.tenure(&words);
    assert_eq!(output.code, code, "{output}");
    output.json()
}

#[track_caller]
fn healthy(env: &Env) {
    let report = doctor(env, 0, &[]);
    assert_eq!(report["doctor"]["findings"], json!([]), "{report}");
}

/// Finds this one thing, and says what it was found by; returns the finding.
#[track_caller]
fn finds(env: &Env, code: &str) -> Value {
    let report = doctor(env, 6, &[]);
    let findings = report["doctor"]["findings"].as_array().expect("a list");
    let one = findings.iter().find(|one| one["code"] == code);
    let one = one
        .unwrap_or_else(|| panic!("{code} is missing: {report}"))
        .clone();
    let can_help = one["fix"].is_string() || one["advice"].is_string();
    assert!(can_help, "it says what helps: {one}");
    one
}

/// Repairs it, and finds nothing afterwards.
#[track_caller]
fn is_fixed(env: &Env, code: &str) -> Value {
    assert!(finds(env, code)["fix"].is_string());
    let report = doctor(env, 0, &["--fix"]);
    let repaired = report["doctor"]["repaired"].as_array().expect("a list");
    assert!(repaired.iter().any(|one| one["code"] == code), "{report}");
    healthy(env);
    report
}

fn database(env: &Env) -> Connection {
    Connection::open(env.state().join("tenure.db")).expect("the environment is ours")
}

/// Changes rows behind tenure's back.
fn plant(env: &Env, sql: &str) {
    let plain = database(env);
    plain
        .execute_batch("PRAGMA foreign_keys = OFF")
        .expect("sql");
    plain.execute_batch(sql).expect("sql");
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the environment is ours");
}

fn config(env: &Env, name: &str, content: &str) -> std::path::PathBuf {
    let file = env.home().join(".config/tenure").join(name);
    fs::create_dir_all(file.parent().expect("a directory")).expect("the environment is ours");
    fs::write(&file, content).expect("the environment is ours");
    mode(&file, 0o600);
    file
}

#[test]
fn a_healthy_installation_has_no_findings_and_nothing_is_made() {
    let env = crate::env();
    healthy(&env);
    assert!(!env.state().join("tenure.db").exists());
    let (ann, bob) = (session(&env, "ann"), claude(&env, "bbb"));
    env.tenure(&["install", "claude"]).ok();
    take(&ann, "wp:1");
    take(&bob, "wp:2");
    ann.tenure(&["release", "wp:1"]).ok();
    healthy(&env);
    let before = fs::read_dir(env.state()).expect("it is there").count();
    let fixed = doctor(&env, 0, &["--fix"]);
    assert_eq!(fixed["doctor"]["backup"], Value::Null, "{fixed}");
    assert_eq!(
        fs::read_dir(env.state()).expect("it is there").count(),
        before
    );
    assert!(
        env.tenure(&["doctor"])
            .ok()
            .stdout
            .contains("checks passed")
    );
}

#[test]
fn settings_that_cannot_be_read() {
    let env = crate::env();
    let file = config(&env, "config.toml", "lease = ");
    let found = finds(&env, "settings_unreadable");
    assert!(found.to_string().contains("config.toml"), "{found}");
    fs::write(&file, "").expect("it is ours");
    healthy(&env);
}

#[test]
fn settings_of_a_project_that_are_ignored() {
    let (env, [ann]) = crew(["ann"]);
    let dir = env.dir().join("web");
    scratch_git(&dir, Some(&env.own_remote("web")));
    fs::write(dir.join(".tenure.toml"), "store = \"/tmp/other.db\"\n").expect("it is ours");
    let report = ann.tenure_in(&dir, &["doctor", "--json"]).fails(6).json();
    assert!(codes(&report).contains("setting_ignored"), "{report}");
    fs::remove_file(dir.join(".tenure.toml")).expect("it is ours");
    let report = ann.tenure_in(&dir, &["doctor", "--json"]).ok().json();
    assert!(!codes(&report).contains("setting_ignored"), "{report}");
}

#[test]
fn settings_that_others_can_write() {
    let env = crate::env();
    let file = config(&env, "config.toml", "");
    mode(&file, 0o622);
    finds(&env, "settings_writable");
    is_fixed(&env, "settings_writable");
    assert_eq!(file.metadata().expect("it is there").mode() & 0o777, 0o600);
}

#[test]
fn a_state_directory_that_others_can_enter() {
    let (env, [_ann]) = crew(["ann"]);
    for open in [0o755, 0o777] {
        mode(&env.state(), open);
        let report = is_fixed(&env, "state_dir_open");
        assert_eq!(
            report["doctor"]["backup"],
            Value::Null,
            "modes change no data"
        );
        assert_eq!(
            env.state().metadata().expect("it is there").mode() & 0o777,
            0o700
        );
    }
}

#[test]
fn files_that_others_can_read() {
    let (env, [_ann]) = crew(["ann"]);
    mode(&env.state().join("tenure.db"), 0o644);
    is_fixed(&env, "file_modes");
}

#[test]
fn files_of_another_user() {
    let (env, [_ann]) = crew(["ann"]);
    let file = env.state().join("locks-of-root");
    fs::write(&file, "").expect("it is ours");
    mode(&file, 0o600);
    if std::os::unix::fs::chown(&file, Some(54_321), None).is_err() {
        return skipped("only root gives a file to another user");
    }
    finds(&env, "foreign_owner");
    fs::remove_file(&file).expect("it is ours");
    healthy(&env);
}

#[test]
fn a_store_that_cannot_be_used_and_the_way_out() {
    let (env, [ann]) = crew(["ann"]);
    let backup = env.dir().join("one.db").display().to_string();
    env.tenure(&["store", "backup", &backup]).ok();
    fs::write(env.state().join("tenure.db"), "not a database").expect("it is ours");
    let found = finds(&env, "store_unusable");
    assert!(found.to_string().contains("store_damaged"), "{found}");
    assert!(
        !found.to_string().contains("tenure store restore"),
        "models run what they read"
    );
    env.tenure(&["store", "restore", "--yes", &backup]).ok();
    let kept = codes(&doctor(&env, 0, &[]));
    assert!(kept.is_empty(), "{kept:?}");
    ann.tenure(&["whoami"]).ok();
}

#[test]
fn content_that_is_damaged() {
    let (env, [_ann]) = crew(["ann"]);
    plant(
        &env,
        "INSERT INTO metadata VALUES ('nobody', 'team', 'blue')",
    );
    let found = finds(&env, "store_integrity");
    assert!(found.to_string().contains("metadata"), "{found}");
    plant(&env, "DELETE FROM metadata");
    healthy(&env);
}

#[test]
fn a_log_that_grew() {
    let (env, [ann]) = crew(["ann"]);
    let plain = database(&env);
    plain
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .expect("a setting");
    plain
        .execute_batch(
            "PRAGMA wal_autocheckpoint = 0; \
             UPDATE events SET evidence = hex(zeroblob(3000000)) WHERE id = 1",
        )
        .expect("sql");
    drop(plain);
    let report = is_fixed(&env, "store_log_long");
    // The backup from before is whole.
    let backup = text(&report["doctor"]["backup"]);
    let kept = Connection::open(&backup).expect("a database");
    let sound = kept.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(sound.as_deref(), Ok("ok"));
    ann.tenure(&["whoami"]).ok();
}

#[test]
fn another_store_that_is_in_use() {
    let (env, [_ann]) = crew(["ann"]);
    let usual = env.home().join(".local/state/tenure");
    fs::create_dir_all(&usual).expect("the environment is ours");
    fs::copy(env.state().join("tenure.db"), usual.join("tenure.db")).expect("it is ours");
    let found = finds(&env, "second_store");
    assert!(found.to_string().contains(".local/state"), "{found}");
    fs::remove_file(usual.join("tenure.db")).expect("it is ours");
    healthy(&env);
}

#[test]
fn events_that_were_not_recorded() {
    let (env, [ann]) = crew(["ann"]);
    let now = ann.tenure_shell("date +%s%3N").ok().stdout;
    let at: i64 = now.trim().parse().expect("milliseconds");
    let line = json!({"at": at, "agent": "claude", "why": "the disk is full"});
    let log = env.state().join("outages.log");
    fs::write(&log, format!("{line}\n")).expect("it is ours");
    mode(&log, 0o600);
    let found = finds(&env, "events_missed");
    assert!(found.to_string().contains("the disk is full"), "{found}");
    fs::remove_file(&log).expect("it is ours");
    healthy(&env);
}

#[test]
fn sessions_that_are_dead_and_open() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let eve = session(&env, "eve");
    take(&ann, "wp:1");
    eve.kill9();
    assert!(finds(&env, "session_dead_open")["fix"].is_string());
    // Every list of sessions records the deaths that it proves, this one too.
    healthy(&env);
    ann.kill9();
    let report = doctor(&env, 0, &["--fix"]);
    assert_eq!(report["doctor"]["repaired"][0]["code"], "session_dead_open");
    assert!(report["doctor"]["backup"].is_string(), "{report}");
    take(&bob, "wp:1");
}

#[test]
fn rows_that_cannot_be_read() {
    let (env, [_ann, bob]) = crew(["ann", "bob"]);
    let name = handle(&bob);
    plant(
        &env,
        &format!("UPDATE sessions SET agent = '??' WHERE handle = '{name}'"),
    );
    finds(&env, "rows_unreadable");
    plant(
        &env,
        &format!("UPDATE sessions SET agent = 'bob' WHERE handle = '{name}'"),
    );
    healthy(&env);
}

#[test]
fn two_sessions_in_one_conversation() {
    let env = crate::env();
    let (ann, bob) = (env.agent("claude"), env.agent("claude"));
    register(&ann, "claude", "--native-id c-1");
    healthy(&env);
    register(&bob, "claude", "--native-id c-1");
    finds(&env, "session_twin");
    finds(&env, "sessions_collide");
    bob.tenure(&["end"]).ok();
    healthy(&env);
}

#[test]
fn what_the_dead_left_running() {
    let (env, [ann]) = crew(["ann"]);
    let orphan = ann.orphan(Cmd::new("sleep").arg("1000"));
    ann.kill9();
    env.tenure(&["ps"]).ok();
    let found = finds(&env, "session_survivors");
    assert!(found.to_string().contains(&orphan.to_string()), "{found}");
    let end = Cmd::new("kill").args(["-9".to_owned(), orphan.to_string()]);
    env.agent("sh").run(end).ok();
    poll(SOON, "it is gone", || {
        (env.tenure(&["doctor", "--json"]).code == 0).then_some(())
    });
}

#[test]
fn a_holder_that_is_silent() {
    let mut env = crate::env();
    env.set("TENURE_STALLED_AFTER", "1ms");
    let ann = claude(&env, "aaa");
    take(&ann, "wp:1");
    let prompt = json!({"hook_event_name": "UserPromptSubmit", "session_id": "aaa", "cwd": env.work(), "prompt": "go"});
    ann.tenure_stdin(&["hook", "claude"], &prompt.to_string())
        .ok();
    let found = finds(&env, "holder_silent");
    assert!(found.to_string().contains("wp:1"), "{found}");
    ann.tenure(&["release", "wp:1"]).ok();
    let codes = codes(&env.tenure(&["doctor", "--json"]).json());
    assert!(!codes.contains("holder_silent"), "{codes:?}");
}

#[test]
fn a_holder_of_whom_nobody_can_tell() {
    let env = impatient();
    let ann = session(&env, "ann");
    take(&ann, "wp:1");
    healthy(&env);
    plant(
        &env,
        "UPDATE sessions SET pid_ns = pid_ns + 1; UPDATE lives SET pid_ns = pid_ns + 1",
    );
    let found = finds(&env, "holder_unknown");
    assert!(found.to_string().contains("wp:1"), "{found}");
}

#[test]
fn a_claim_that_was_lost_and_nobody_told_it() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    run(&bob, 0, "takeover wp:1 --reason stuck");
    finds(&env, "claim_lost_untold");
    ann.tenure(&["whoami"]).ok();
    healthy(&env);
}

#[test]
fn a_transcript_that_is_torn_or_of_another_session() {
    let env = crate::env();
    let (_ann, _bob) = (claude(&env, "aaa"), claude(&env, "bbb"));
    env.tenure(&["install", "claude"]).ok();
    healthy(&env);
    let file = file_of(&env, "aaa");
    fs::write(
        &file,
        format!("{}{}{{\"sess", line_of("aaa"), line_of("bbb")),
    )
    .expect("it is ours");
    let found = finds(&env, "transcript_damaged");
    assert!(found.to_string().contains("line 2"), "{found}");
    fs::write(&file, line_of("aaa")).expect("it is ours");
    healthy(&env);
    let theirs = file_of(&env, "bbb");
    plant(
        &env,
        &format!(
            "DELETE FROM transcripts WHERE native_id = 'bbb'; \
             UPDATE transcripts SET path = '{}' WHERE native_id = 'aaa'",
            theirs.display()
        ),
    );
    finds(&env, "transcript_foreign");
}

#[test]
fn a_conversation_that_its_agent_no_longer_has() {
    let env = crate::env();
    let ann = claude(&env, "0c4c2c6e-8a4b-4b8e-9d8e-1f2a3b4c5d6e");
    run(
        &ann,
        0,
        "conversation set claude wp:1 11111111-8a4b-4b8e-9d8e-1f2a3b4c5d6e",
    );
    let found = finds(&env, "conversation_gone");
    assert!(found.to_string().contains("11111111"), "{found}");
}

#[test]
fn a_mirror_that_cannot_be_written() {
    let (env, [ann]) = crew(["ann"]);
    let session = text(&run(&ann, 0, "whoami")["session"]["id"]);
    plant(
        &env,
        &format!(
            "INSERT INTO mirror_failures VALUES ('/none/file', '{session}', 'no such directory', 1)"
        ),
    );
    finds(&env, "mirror_failed");
    plant(&env, "DELETE FROM mirror_failures");
    healthy(&env);
}

#[test]
fn a_session_that_is_not_whom_its_environment_names() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let other = text(&run(&bob, 0, "whoami")["session"]["id"]);
    let wrong = [("TENURE_SESSION", Some(other.as_str()))];
    let report = ann
        .tenure_env(&wrong, &["doctor", "--json"])
        .fails(6)
        .json();
    assert!(codes(&report).contains("identity_wrong"), "{report}");
    ann.tenure(&["doctor"]).ok();
    healthy(&env);
}

#[test]
fn hooks_that_are_missing_or_outdated() {
    let env = crate::env();
    let settings = env.home().join(".claude/settings.json");
    fs::create_dir_all(settings.parent().expect("a directory")).expect("it is ours");
    fs::write(&settings, "{}").expect("it is ours");
    finds(&env, "hooks_missing");
    env.tenure(&["install", "claude"]).ok();
    healthy(&env);
    let installed = fs::read_to_string(&settings).expect("it is there");
    let own = env.tenure_path().display().to_string();
    assert!(installed.contains(&own), "{installed}");
    fs::write(&settings, installed.replace(&own, "/gone/tenure")).expect("it is ours");
    is_fixed(&env, "hooks_outdated");
    assert!(
        fs::read_to_string(&settings)
            .expect("it is there")
            .contains(&own)
    );
}

#[test]
fn a_dispatch_toml_that_is_wrong() {
    let env = crate::env();
    let file = config(&env, "dispatch.toml", "[forge.x]\nkind = 1\n");
    finds(&env, "dispatch_config");
    fs::remove_file(file).expect("it is ours");
    healthy(&env);
}

#[test]
fn a_server_that_is_away_and_its_keeper() {
    let mut env = crate::env();
    env.set("TENURE_STORE", "postgres://ann@127.0.0.1:1/work");
    let found = codes(&doctor(&env, 6, &[]));
    for code in ["store_unusable", "server_away", "keeper_missing"] {
        assert!(found.contains(code), "{code}: {found:?}");
    }
}

#[test]
fn a_program_beside_that_is_of_another_version() {
    let env = crate::env();
    let dir = env.dir().join("bin2");
    fs::create_dir(&dir).expect("the environment is ours");
    let own = dir.join("tenure");
    fs::copy(env.tenure_path(), &own).expect("it is ours");
    let beside = dir.join("tenure-server");
    fs::write(&beside, "#!/bin/sh\necho tenure 0.0.1\n").expect("it is ours");
    mode(&beside, 0o755);
    let agent = env.agent("ann");
    let asked = |agent: &Agent| {
        let words = Cmd::new(own.to_str().expect("text")).args(["doctor", "--json"]);
        codes(&agent.run(words).json())
    };
    assert!(asked(&agent).contains("program_beside"));
    fs::remove_file(&beside).expect("it is ours");
    assert!(!asked(&agent).contains("program_beside"));
}

#[test]
fn a_job_that_waits_for_a_person() {
    let env = crate::env();
    let ann = session(&env, "ann");
    ann.tenure(&["run", "ann", "wp:1", "--prompt", "hello", "--queue"])
        .ok();
    healthy(&env);
    plant(
        &env,
        "UPDATE jobs SET state = 'parked', parked_for = 'attempts', parked_why = 'it did not start', parked_until = NULL",
    );
    let found = finds(&env, "job_parked");
    assert!(found.to_string().contains("it did not start"), "{found}");
}

/// Repairs while agents work, again and again: nothing is lost and nobody is refused.
#[test]
fn repairs_while_agents_work_lose_nothing() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            for number in 0..60 {
                take(&ann, &format!("wp:{number}"));
            }
        });
        for _ in 0..5 {
            let dies = session(&env, "eve");
            take(&dies, "wp:eve");
            dies.kill9();
            doctor(&env, 0, &["--fix"]);
            take(&bob, "wp:eve");
            bob.tenure(&["release", "wp:eve"]).ok();
        }
        working.join().expect("it ends");
    });
    let held = env
        .tenure(&["claims", "--limit", "0", "--json"])
        .ok()
        .json();
    assert_eq!(held["claims"].as_array().map(Vec::len), Some(60));
}
