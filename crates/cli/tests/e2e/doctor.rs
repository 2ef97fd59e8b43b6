//! `tenure doctor`: each damage is found, named, repaired where that is said, and a healthy installation is left alone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde_json::{Value, json};
use tenure_doctor::Code;
use tenure_testkit::{Env, scratch_git};

use crate::support::doctor::{
    codes, config, database, doctor, finds, healthy, is_fixed, mode, plant,
};
use crate::support::line::{crew, handle, run, session, take, text};
use crate::support::mount::with_mounts;
use crate::support::skip::skipped;
use crate::support::transcript::{claude, file_of};

/// How a test plants what doctor finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plant {
    /// A real damage, which `--fix` repairs; nothing is found afterwards.
    Repaired,
    /// A real damage, which a person repairs.
    Named,
    /// A real damage on a server; `server_doctor.rs`, which runs in the stage `postgres`.
    OnServer,
    /// The rule that judges it is tested alone: it needs another version of tenure, another machine, or the like.
    Rule,
}
use Plant::{Named, OnServer, Repaired, Rule};

/// Every code of doctor's, how it is planted, and the test that does it.
const PLANTS: &[(&str, Plant, &str)] = &[
    ("settings_unreadable", Named, "settings_that_cannot_be_read"),
    (
        "setting_ignored",
        Named,
        "settings_of_a_project_that_are_ignored",
    ),
    (
        "settings_writable",
        Repaired,
        "settings_that_others_can_write",
    ),
    (
        "state_dir_open",
        Repaired,
        "a_state_directory_that_others_can_enter",
    ),
    ("file_modes", Repaired, "files_that_others_can_read"),
    ("foreign_owner", Named, "files_of_another_user"),
    ("disk_full", Named, "a_disk_that_is_almost_full"),
    (
        "store_unusable",
        Named,
        "a_store_that_cannot_be_used_and_the_way_out",
    ),
    ("store_integrity", Named, "content_that_is_damaged"),
    ("store_log_long", Repaired, "a_log_that_grew"),
    ("second_store", Named, "another_store_that_is_in_use"),
    (
        "agent_other_store",
        Named,
        "an_agent_that_runs_with_another_store",
    ),
    ("events_missed", Named, "events_that_were_not_recorded"),
    (
        "session_dead_open",
        Repaired,
        "sessions_that_are_dead_and_open",
    ),
    ("rows_unreadable", Named, "rows_that_cannot_be_read"),
    ("session_twin", Named, "two_sessions_in_one_conversation"),
    ("session_survivors", Named, "what_the_dead_left_running"),
    ("holder_silent", Named, "a_holder_that_is_silent"),
    ("holder_unknown", Named, "a_holder_of_whom_nobody_can_tell"),
    (
        "claim_lost_untold",
        Named,
        "a_claim_that_was_lost_and_nobody_told_it",
    ),
    (
        "sessions_collide",
        Named,
        "two_sessions_in_one_conversation",
    ),
    (
        "transcript_foreign",
        Named,
        "a_transcript_that_is_torn_or_of_another_session",
    ),
    (
        "transcript_damaged",
        Named,
        "a_transcript_that_is_torn_or_of_another_session",
    ),
    (
        "conversation_gone",
        Named,
        "a_conversation_that_its_agent_no_longer_has",
    ),
    ("mirror_failed", Named, "a_mirror_that_cannot_be_written"),
    (
        "mirror_left",
        Repaired,
        "a_mirror_that_shows_a_session_that_is_over",
    ),
    (
        "identity_wrong",
        Named,
        "a_session_that_is_not_whom_its_environment_names",
    ),
    ("hooks_missing", Named, "hooks_that_are_missing_or_outdated"),
    (
        "hooks_outdated",
        Repaired,
        "hooks_that_are_missing_or_outdated",
    ),
    ("hooks_duplicated", Repaired, "hooks_that_run_twice"),
    ("hooks_dead", Repaired, "hooks_of_a_program_that_is_gone"),
    (
        "hooks_untrusted",
        Named,
        "hooks_that_the_agent_does_not_trust",
    ),
    (
        "hooks_unreadable",
        Named,
        "settings_of_an_agent_that_cannot_be_read",
    ),
    (
        "openclaw_wrong",
        Repaired,
        "a_lock_of_openclaw_that_nobody_holds",
    ),
    (
        "program_beside",
        Named,
        "a_program_beside_that_is_of_another_version",
    ),
    ("server_away", Named, "a_server_that_is_away_and_its_keeper"),
    // Becoming a standby needs a second server and minutes.
    (
        "server_standby",
        Rule,
        "a_server_that_cannot_be_written_or_is_not_set_up",
    ),
    ("server_schema", OnServer, "a_schema_that_is_older"),
    (
        "server_unsafe",
        OnServer,
        "a_server_that_can_lose_what_it_confirmed",
    ),
    (
        "server_encoding",
        OnServer,
        "a_database_with_another_encoding",
    ),
    ("server_grants", OnServer, "a_role_that_lacks_rights"),
    (
        "keeper_missing",
        Named,
        "a_server_that_is_away_and_its_keeper",
    ),
    (
        "keeper_version",
        Rule,
        "a_keeper_of_another_version_without_an_answer_or_missing",
    ),
    (
        "keeper_away",
        Rule,
        "a_keeper_of_another_version_without_an_answer_or_missing",
    ),
    // The clock of a machine is not the test's to set.
    (
        "clock_apart",
        Rule,
        "clocks_that_are_apart_in_either_direction",
    ),
    ("dispatch_config", Named, "a_dispatch_toml_that_is_wrong"),
    ("wrap_fails", Named, "a_wrap_that_does_not_start"),
    (
        "endpoint_refuses",
        Named,
        "an_endpoint_that_refuses_every_delivery",
    ),
    ("forge_failing", Named, "a_forge_that_does_not_answer"),
    ("job_parked", Named, "a_job_that_waits_for_a_person"),
    ("job_unpublished", Named, "a_result_that_is_not_published"),
    ("job_left", Named, "a_run_past_its_timeout_without_a_runner"),
    ("check_failed", Named, "a_check_that_cannot_be_made"),
];

/// Where those tests are.
const TESTS: &[&str] = &[
    include_str!("doctor.rs"),
    include_str!("doctor_sessions.rs"),
    include_str!("doctor_setup.rs"),
    include_str!("server_doctor.rs"),
    include_str!("../../../doctor/src/team.rs"),
];

/// The text of a test.
#[track_caller]
fn body_of(test: &str) -> &'static str {
    let begins = format!("fn {test}()");
    let tests = TESTS.iter().flat_map(|file| file.split("#[test]"));
    let mut named = tests.filter(|text| {
        let head = text
            .lines()
            .find(|line| line.trim_start().starts_with("fn "));
        head.is_some_and(|head| head.contains(&begins))
    });
    named
        .next()
        .unwrap_or_else(|| panic!("there is no test {test}"))
}

#[test]
fn every_code_is_planted_by_a_test() {
    let mut planted = BTreeMap::new();
    for (code, plant, test) in PLANTS {
        assert_eq!(
            planted.insert(*code, *plant),
            None,
            "{code} is listed twice"
        );
        let body = body_of(test);
        let proof = match plant {
            Repaired => format!("is_fixed(&env, \"{code}\")"),
            Named | OnServer | Rule => format!("\"{code}\""),
        };
        assert!(body.contains(&proof), "{test} does not plant {code}");
    }
    let missing = Code::ALL.iter().map(|(code, _)| code.as_str());
    let missing: Vec<&str> = missing
        .filter(|code| planted.remove(code).is_none())
        .collect();
    assert!(missing.is_empty(), "no test plants these: {missing:?}");
    assert!(planted.is_empty(), "doctor has no such codes: {planted:?}");
    let real = PLANTS
        .iter()
        .filter(|(_, plant, _)| matches!(plant, Repaired | Named));
    assert!(real.count() >= 30, "issue 44 asks for 30 damages");
}

#[test]
fn every_code_is_in_the_docs_with_its_meaning() {
    let docs = include_str!("../../../../docs/doctor.md");
    for (code, meaning) in Code::ALL {
        let row = format!("| `{}` | {} |", code.as_str(), meaning.trim());
        assert!(docs.contains(&row), "docs/doctor.md lacks: {row}");
    }
    let rows = docs.lines().filter(|line| line.starts_with("| `"));
    assert_eq!(rows.count(), Code::ALL.len());
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
fn a_server_that_is_away_and_its_keeper() {
    let mut env = crate::env();
    env.set("TENURE_STORE", "postgres://ann@127.0.0.1:1/work");
    let found = codes(&doctor(&env, 6, &[]));
    for code in ["store_unusable", "server_away", "keeper_missing"] {
        assert!(found.contains(code), "{code}: {found:?}");
    }
}

#[test]
fn a_disk_that_is_almost_full() {
    let env = crate::env();
    let script = |size: &str| {
        format!(
            "mkdir -p $TENURE_HOME; mount -t tmpfs -o size={size},mode=700 tmpfs $TENURE_HOME
            tenure doctor --json"
        )
    };
    let agent = env.agent("sh");
    let seen = |size: &str| codes(&agent.run(with_mounts(&script(size))).json());
    assert!(seen("12m").contains("disk_full"));
    assert!(!seen("200m").contains("disk_full"));
}

#[test]
fn an_agent_that_runs_with_another_store() {
    let mut env = crate::env();
    env.set("TENURE_PS_UNMANAGED", "true");
    let home = env.home().display().to_string();
    let (ann, other) = (session(&env, "ann"), env.dir().join("other"));
    env.set("TENURE_HOME", other.display().to_string());
    let eve = session(&env, "claude");
    assert!(other.join("tenure.db").exists());
    // Agents of other tests are there too.
    let seen = || {
        let report = ann.tenure(&["doctor", "--json"]).json();
        let findings = report["doctor"]["findings"].as_array().expect("a list");
        let named = |pid: u32| {
            let its = format!("(pid {pid})");
            let is_its = |one: &&Value| {
                one["code"] == "agent_other_store" && text(&one["what"]).contains(&its)
            };
            findings.iter().find(is_its).cloned()
        };
        (named(ann.pid()), named(eve.pid()))
    };
    let (own, others) = seen();
    assert_eq!(own, None, "{home}");
    let others = others.expect("it is found");
    let named = others["evidence"].to_string();
    assert!(named.contains(&other.display().to_string()), "{named}");
    eve.kill9();
    assert_eq!(seen(), (None, None));
}

#[test]
fn a_check_that_cannot_be_made() {
    let (env, [_ann]) = crew(["ann"]);
    plant(&env, "ALTER TABLE mirror_failures RENAME TO elsewhere");
    let found = finds(&env, "check_failed");
    assert!(found.to_string().contains("mirrors"), "{found}");
    plant(&env, "ALTER TABLE elsewhere RENAME TO mirror_failures");
    healthy(&env);
}

/// Every row of every table.
fn rows(env: &Env) -> Vec<String> {
    let plain = database(env);
    let names = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
    let mut all = Vec::new();
    for table in selected(&plain, names) {
        let rows = selected(&plain, &format!("SELECT * FROM {table:?}"));
        all.extend(rows.into_iter().map(|row| format!("{table}: {row}")));
    }
    all
}

fn selected(plain: &Connection, query: &str) -> Vec<String> {
    let mut statement = plain.prepare(query).expect("it is a query");
    let columns = statement.column_count();
    let read = |row: &rusqlite::Row<'_>| -> rusqlite::Result<String> {
        let cells = (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at));
        let cells = cells.collect::<Result<Vec<_>, _>>()?;
        Ok(match cells.as_slice() {
            [rusqlite::types::Value::Text(only)] => only.clone(),
            cells => format!("{cells:?}"),
        })
    };
    let rows = statement.query_map([], read).expect("it can be read");
    rows.map(|row| row.expect("a row")).collect()
}

/// Deaths that are noticed, a notice for the session that asks, a foreign transcript, an old event, a mirror that is gone:
/// others record or repair all of this on the way.
#[test]
fn without_fix_nothing_is_changed() {
    let env = crate::env();
    let mirror = env.home().join("mirror.json");
    let setting = format!(
        "[[mirror]]\nformat = \"pact\"\npath = \"{}\"\n",
        mirror.display()
    );
    config(&env, "config.toml", &setting);
    let (ann, bob, eve) = (
        claude(&env, "aaa"),
        claude(&env, "bbb"),
        session(&env, "eve"),
    );
    take(&ann, "wp:1");
    run(&bob, 0, "takeover wp:1 --reason stuck");
    take(&eve, "wp:2");
    plant(
        &env,
        &format!(
            "UPDATE events SET at = 1 WHERE id = 1; DELETE FROM transcripts WHERE native_id = 'bbb'; \
             UPDATE transcripts SET path = '{}' WHERE native_id = 'aaa'",
            file_of(&env, "bbb").display()
        ),
    );
    eve.kill9();
    fs::remove_file(&mirror).expect("it was written");
    let before = rows(&env);
    for caller in [&ann, &bob] {
        let report = caller.tenure(&["doctor", "--json"]).fails(6).json();
        let found = codes(&report);
        for code in [
            "session_dead_open",
            "transcript_foreign",
            "claim_lost_untold",
        ] {
            assert!(found.contains(code), "{code}: {found:?}");
        }
    }
    assert_eq!(rows(&env), before);
    assert!(!mirror.exists(), "only --fix and other commands write it");
    let told = ann.tenure(&["whoami", "--json"]).ok().json();
    assert!(told["notices"].to_string().contains("wp:1"), "{told}");
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
