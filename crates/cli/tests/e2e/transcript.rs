//! Transcripts: one session's file and no other's, whatever the store was made to say.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use tenure_testkit::{Agent, Env};

use crate::env;
use crate::support::line::{events, handle, refused, register, run, session, text};
use crate::support::transcript::{append, claude, fails, file_of, line_of};

/// What was recorded as contamination so far.
fn contaminations(agent: &Agent) -> Vec<Value> {
    let all = events(agent, "--limit 1000").into_iter();
    all.filter(|event| event["kind"] == "contamination")
        .collect()
}

/// Opens the store behind tenure's back.
fn database(env: &Env) -> Connection {
    Connection::open(env.state().join("tenure.db")).expect("the environment is ours")
}

/// Makes the stored transcript of one session another's file, by hand.
fn inject(env: &Env, victim: &str, path: &Path) {
    let db = database(env);
    let path = path.to_str().expect("the environment is ours");
    db.execute("DELETE FROM transcripts WHERE path = ?1", [path])
        .expect("the environment is ours");
    let sql = "UPDATE transcripts SET path = ?1 WHERE native_id = ?2";
    assert_eq!(
        db.execute(sql, params![path, victim])
            .expect("the environment is ours"),
        1
    );
}

/// What was set aside: the path, for each conversation.
fn quarantine(env: &Env) -> Vec<(String, String)> {
    let db = database(env);
    let mut all = db
        .prepare("SELECT native_id, path FROM quarantine ORDER BY id")
        .expect("the environment is ours");
    let rows = all
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("the environment is ours");
    rows.collect::<Result<_, _>>()
        .expect("the environment is ours")
}

/// Both sides of a contamination are in the record: whose it would have been, and whose it is.
#[track_caller]
fn names_both(event: &Value, path: &Path, one: &str, other: &str) {
    let told = event.to_string();
    for part in [path.to_str().expect("the environment is ours"), one, other] {
        assert!(told.contains(part), "{part} is missing: {event}");
    }
}

#[test]
fn f_t01_another_sessions_file_is_refused_at_registration_and_recorded_with_both_sides() {
    for known in [true, false] {
        let env = env();
        let bob = if known {
            claude(&env, "bbb")
        } else {
            env.agent("claude")
        };
        register(&bob, "claude", "--native-id bbb");
        let ann = claude(&env, "aaa");
        let theirs = file_of(&env, "bbb");
        fs::create_dir_all(theirs.parent().unwrap()).unwrap();
        fs::write(&theirs, line_of("bbb")).unwrap();
        let line = format!(
            "register --agent claude --pid {} --native-id aaa --transcript {}",
            ann.pid(),
            theirs.display()
        );
        refused(&ann, 6, "invalid", &line);
        let recorded = contaminations(&ann);
        assert_eq!(recorded.len(), 1, "{recorded:?}");
        names_both(&recorded[0], &theirs, &handle(&ann), &handle(&bob));
        let shown = run(&ann, 0, &format!("transcript show {}", handle(&ann)));
        assert_eq!(
            shown["transcript"]["path"],
            file_of(&env, "aaa").to_str().unwrap()
        );
        let shown = run(&bob, 0, &format!("transcript show {}", handle(&bob)));
        assert_eq!(shown["transcript"]["path"], theirs.to_str().unwrap());
        let new = env.agent("claude");
        let line = format!(
            "register --agent claude --pid {} --native-id ccc --transcript {}",
            new.pid(),
            theirs.display()
        );
        refused(&new, 6, "invalid", &line);
        assert_eq!(contaminations(&bob).len(), 2);
        names_both(&contaminations(&bob)[1], &theirs, "ccc", &handle(&bob));
        refused(&new, 4, "no_session", "whoami");
        assert_eq!(fs::read_to_string(&theirs).unwrap(), line_of("bbb"));
    }
}

#[test]
fn f_t01_an_injected_row_is_found_at_the_next_use_refused_recorded_and_derived_again() {
    for act in ["show", "verify", "append"] {
        let env = env();
        let (ann, bob) = (claude(&env, "aaa"), claude(&env, "bbb"));
        let (own, theirs) = (file_of(&env, "aaa"), file_of(&env, "bbb"));
        inject(&env, "aaa", &theirs);
        let me = handle(&ann);
        let said = match act {
            "append" => append(&ann, &me, &line_of("aaa")),
            act => ann.tenure(&["transcript", act, &me, "--json"]),
        };
        assert_eq!(said.code, if act == "verify" { 6 } else { 0 }, "{said}");
        let shown = said.json()["transcript"].clone();
        assert_eq!(
            shown["path"],
            own.to_str().unwrap(),
            "derived again: {shown}"
        );
        assert_eq!(
            fs::read_to_string(&theirs).unwrap(),
            line_of("bbb"),
            "{act}"
        );
        let recorded = contaminations(&ann);
        assert_eq!(recorded.len(), 1, "{recorded:?}");
        names_both(&recorded[0], &theirs, &me, &handle(&bob));
        assert_eq!(
            quarantine(&env),
            [("aaa".to_owned(), theirs.to_str().unwrap().to_owned())]
        );
        if act != "append" {
            assert!(text(&shown["quarantined"]).contains(theirs.to_str().unwrap()));
        }
        let again = run(&ann, 0, &format!("transcript show {me}"))["transcript"].clone();
        assert_eq!(
            (&again["path"], &again["quarantined"]),
            (&shown["path"], &Value::Null)
        );
        assert_eq!(contaminations(&ann).len(), 1, "once");
        let lines = if act == "append" { 2 } else { 1 };
        assert_eq!(
            fs::read_to_string(&own).unwrap(),
            line_of("aaa").repeat(lines)
        );
        let theirs_shown = run(&bob, 0, &format!("transcript show {}", handle(&bob)));
        assert_eq!(theirs_shown["transcript"]["path"], theirs.to_str().unwrap());
    }
}

/// The file that the rule gives is recorded as the transcript of a session of another agent.
#[test]
fn f_t01_a_derived_path_that_is_anothers_is_refused_and_recorded() {
    let env = env();
    let (ann, bob) = (env.agent("mine"), env.agent("claude"));
    let file = file_of(&env, "aaa");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, line_of("aaa")).unwrap();
    let more = format!("--native-id aaa --transcript {}", file.display());
    register(&ann, "mine", &more);
    register(&bob, "claude", "--native-id aaa");
    let me = handle(&bob);
    refused(&bob, 6, "invalid", &format!("transcript show {me}"));
    fails(&append(&bob, &me, "{}\n"), 6, "invalid");
    assert_eq!(fs::read_to_string(&file).unwrap(), line_of("aaa"));
    let recorded = contaminations(&ann);
    names_both(&recorded[0], &file, &me, &handle(&ann));
}

#[test]
fn f_t01_two_spellings_of_one_file_are_one_transcript() {
    let env = env();
    let (real, link) = (env.dir().join("real"), env.dir().join("link"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    let (ann, bob) = (env.agent("mine"), env.agent("yours"));
    let own = real.join("aaa.jsonl");
    register(
        &ann,
        "mine",
        &format!("--native-id aaa --transcript {}", own.display()),
    );
    let line = format!(
        "register --agent yours --pid {} --native-id aaa --transcript",
        bob.pid()
    );
    refused(&bob, 6, "invalid", &format!("{line} {}", own.display()));
    refused(
        &bob,
        6,
        "invalid",
        &format!("{line} {}/aaa.jsonl", link.display()),
    );
    assert_eq!(contaminations(&ann).len(), 2);
}

#[test]
fn f_t02_a_subagents_id_or_file_never_becomes_a_sessions() {
    let env = env();
    let ann = claude(&env, "aaa");
    let before = contaminations(&ann).len();
    let subagent = file_of(&env, "aaa")
        .with_extension("")
        .join("subagents/aaa.jsonl");
    let agent_file = file_of(&env, "agent-a1b2");
    let new = env.agent("claude");
    let register = |more: &str| {
        refused(
            &new,
            6,
            "invalid",
            &format!("register --agent claude --pid {} {more}", new.pid()),
        );
    };
    register("--native-id agent-a1b2");
    register(&format!(
        "--native-id ccc --transcript {}",
        agent_file.display()
    ));
    register(&format!(
        "--native-id aaa --source event --transcript {}",
        subagent.display()
    ));
    assert_eq!(contaminations(&ann).len(), before + 3, "each is recorded");
    refused(&new, 4, "no_session", "whoami");
    let other = env.agent("openclaw");
    refused(
        &other,
        6,
        "invalid",
        &format!(
            "register --agent openclaw --pid {} --native-id agent:main:subagent:1",
            other.pid()
        ),
    );
    let ids = run(&ann, 0, "whoami")["session"]["native_ids"].clone();
    assert_eq!(ids.as_array().map(Vec::len), Some(1), "{ids}");
}

#[test]
fn f_t03_what_was_wrong_once_is_wrong_whatever_brings_it_back() {
    let env = env();
    let (ann, _bob) = (claude(&env, "aaa"), claude(&env, "bbb"));
    let (own, theirs) = (file_of(&env, "aaa"), file_of(&env, "bbb"));
    let me = handle(&ann);
    inject(&env, "aaa", &theirs);
    let parts = ["tenure.db", "tenure.db-wal", "tenure.db-shm"];
    let aside = |part: &str| env.dir().join(format!("old-{part}"));
    for part in parts {
        fs::copy(env.state().join(part), aside(part)).ok();
    }
    let good = |lines: usize| {
        let said = append(&ann, &me, &line_of("aaa")).ok().json();
        assert_eq!(said["transcript"]["path"], own.to_str().unwrap());
        assert_eq!(fs::read_to_string(&theirs).unwrap(), line_of("bbb"));
        assert_eq!(fs::read_to_string(&own).unwrap().lines().count(), lines);
    };
    good(2);
    let line = format!(
        "register --agent claude --pid {} --native-id aaa --transcript {}",
        ann.pid(),
        theirs.display()
    );
    refused(&ann, 6, "invalid", &line);
    good(3);
    assert_eq!(contaminations(&ann).len(), 2);
    // An old copy of the database takes the place of the store.
    for part in parts {
        fs::remove_file(env.state().join(part)).ok();
        fs::copy(aside(part), env.state().join(part)).ok();
    }
    let stored: String = database(&env)
        .query_row(
            "SELECT path FROM transcripts WHERE native_id = 'aaa'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(stored, theirs.to_str().unwrap());
    good(4);
    assert_eq!(contaminations(&ann).len(), 1, "recorded in this one");
    assert_eq!(quarantine(&env).len(), 1);
}

#[test]
fn verify_reports_each_bad_line_by_its_number_and_changes_nothing() {
    let env = env();
    let ann = claude(&env, "aaa");
    let (own, me) = (file_of(&env, "aaa"), handle(&ann));
    let good = run(&ann, 0, &format!("transcript verify {me}"))["transcript"].clone();
    assert_eq!((&good["lines"], &good["problems"]), (&json!(1), &json!([])));
    let bad = format!(
        "{}{{\"a\":\n{}\n{}{{\"sessionId\":\"aa",
        line_of("aaa"),
        "{\"type\":\"summary\"}",
        line_of("bbb")
    );
    fs::write(&own, &bad).unwrap();
    let modified = || fs::metadata(&own).unwrap().modified().unwrap();
    let before = modified();
    let found = run(&ann, 6, &format!("transcript verify {me}"))["transcript"].clone();
    let problems: Vec<(u64, String)> = found["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| (problem["line"].as_u64().unwrap(), text(&problem["kind"])))
        .collect();
    let expected =
        [(2, "malformed"), (4, "foreign"), (5, "torn")].map(|(line, kind)| (line, kind.to_owned()));
    assert_eq!(problems, expected, "{found}");
    assert!(text(&found["problems"][1]["what"]).contains("bbb"));
    let people = ann.tenure(&["transcript", "verify", &me]).fails(6);
    assert!(people.stdout.contains("line 4: foreign"), "{people}");
    assert_eq!(
        (fs::read_to_string(&own).unwrap(), modified()),
        (bad, before)
    );
    fs::remove_file(&own).unwrap();
    refused(&ann, 4, "not_found", &format!("transcript verify {me}"));
    assert!(!own.exists());
}

#[test]
fn a_twins_transcript_is_the_owners() {
    let env = env();
    let ann = claude(&env, "aaa");
    let twin = env.agent("claude");
    let file = file_of(&env, "aaa");
    let born = register(
        &twin,
        "claude",
        &format!("--native-id aaa --transcript {}", file.display()),
    );
    assert_eq!(born["session"]["registered"], "twin");
    let path = |agent: &Agent| {
        run(agent, 0, &format!("transcript show {}", handle(agent)))["transcript"]["path"].clone()
    };
    assert_eq!(path(&twin), path(&ann));
    append(&twin, &handle(&twin), &line_of("aaa")).ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), line_of("aaa").repeat(2));
    assert_eq!(contaminations(&ann), [Value::Null; 0]);
    let owned: Vec<String> = {
        let db = database(&env);
        let mut all = db.prepare("SELECT session FROM transcripts").unwrap();
        let rows = all.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    assert_eq!(owned, [text(&run(&ann, 0, "whoami")["session"]["id"])]);
}

/// An agent whose files have no rule of their own place is asked where they are.
#[test]
fn a_session_without_a_known_file_is_told_what_to_do() {
    let env = env();
    let ann = env.agent("mine");
    let born = register(&ann, "mine", "--native-id aaa");
    let me = text(&born["session"]["handle"]);
    let error = refused(&ann, 4, "not_found", &format!("transcript show {me}"));
    let hints = error["hints"].to_string();
    assert!(hints.contains("--transcript"), "{error}");
    let bob = session(&env, "bob");
    refused(
        &bob,
        4,
        "not_found",
        &format!("transcript show {}", handle(&bob)),
    );
}
