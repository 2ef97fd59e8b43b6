//! Bad input for missions, and rows that somebody edited by hand.

use serde_json::{Value, json};
use tenure_testkit::{Agent, Env};

use crate::support::line::{crew, handle, refused, run, text};
use crate::support::mission::{join, participants};

/// Changes the store behind tenure's back.
fn edit(env: &Env, sql: &str) {
    let store = rusqlite::Connection::open(env.state().join("tenure.db")).expect("it opens");
    store
        .execute_batch("PRAGMA foreign_keys = OFF")
        .expect("it is off");
    store.execute_batch(sql).expect(sql);
}

#[track_caller]
fn rejects(agent: &Agent, code: i32, words: &[&str]) -> String {
    let output = agent.tenure(words).fails(code);
    assert!(
        output.stderr.contains("error: ") && output.stderr.contains("hint: "),
        "{output}"
    );
    output.stderr
}

#[test]
fn f_i15_bad_ids_roles_focuses_and_drives_are_refused_and_change_nothing() {
    let (env, [ann]) = crew(["ann"]);
    let long = "m".repeat(129);
    for id in ["..", "/etc/x", "", &long, "\u{430}bc", "a/b", "-x"] {
        rejects(
            &ann,
            2,
            &["mission", "join", "--role", "developer", "--", id],
        );
    }
    for id in ["..", "/etc/x", ""] {
        rejects(&ann, 2, &["mission", "use", id]);
        rejects(&ann, 2, &["mission", "status", "--mission", id]);
    }
    for role in ["", "  ", "a\nb"] {
        rejects(&ann, 2, &["mission", "join", "m", "--role", role]);
    }
    let short = "01ARZ3NDEKTSV4RRFFQ69G5FA";
    let odd = ["I", "L", "O", "U"].map(|digit| format!("{short}{digit}"));
    let odd = odd.iter().map(String::as_str);
    for id in odd.chain([
        short,
        "",
        "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
        "7ZZZZZZZZZZZZZZZZZZZZZZZZZZ",
    ]) {
        rejects(
            &ann,
            2,
            &[
                "mission",
                "join",
                "m",
                "--role",
                "developer",
                "--participant",
                id,
            ],
        );
    }
    assert_eq!(run(&ann, 0, "mission list --all")["missions"], json!([]));
    join(&ann, "m");
    for focus in ["wp:", "step:", "WP01", "wp: x", "", "issue:1"] {
        rejects(&ann, 2, &["mission", "focus", focus]);
    }
    for drive in ["sideways", "", "Active"] {
        rejects(&ann, 2, &["mission", "drive", drive]);
    }
    let row = participants(&env, "m").remove(0);
    assert_eq!(
        (&row["focus"], &row["drive"], &row["revision"]),
        (&Value::Null, &json!("inactive"), &json!(0))
    );
    let whose = ["mission", "use", "m", "--for", "everybody"];
    ann.tenure(&whose).fails(2);
}

#[test]
fn roles_may_be_restricted_by_the_settings() {
    let (_env, [ann]) = crew(["ann"]);
    let listed = [("TENURE_MISSIONS_ROLES", Some("developer, reviewer"))];
    let join = |role| ["mission", "join", "m", "--role", role, "--json"];
    let error = ann.tenure_env(&listed, &join("boss")).fails(6).json()["error"].clone();
    assert!(
        error["hints"].to_string().contains("developer, reviewer"),
        "{error}"
    );
    ann.tenure_env(&listed, &join("reviewer")).ok();
    let stricter = [("TENURE_MISSIONS_ROLES", Some("developer"))];
    let check = ann
        .tenure_env(&stricter, &["mission", "check", "--json"])
        .fails(6)
        .json();
    assert_eq!(check["error"]["faults"][0]["field"], "role");
    ann.tenure_env(&stricter, &["mission", "focus", "wp:1"])
        .fails(6);
    ann.tenure(&["mission", "focus", "wp:1"]).ok();
}

/// A rule, and an edit of the row that breaks it.
const BROKEN: &[(&str, &str)] = &[
    ("participant_id", "participant = 'short'"),
    (
        "participant_id",
        "participant = '01ARZ3NDEKTSV4RRFFQ69G5FAU'",
    ),
    (
        "participant_id",
        "participant = '8ZZZZZZZZZZZZZZZZZZZZZZZZZ'",
    ),
    ("role", "role = ''"),
    ("role", "role = '   '"),
    ("focus", "focus = 'wp:'"),
    ("focus", "focus = 'WP01'"),
    ("drive", "drive = 'sideways'"),
    ("joined_at", "joined_at = active_at + 1"),
    ("last_activity_at", "active_at = 9223372036854775807"),
];

#[test]
fn a_row_that_breaks_a_rule_stops_its_own_participant_and_changes_nothing() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    join(&bob, "m");
    let own = handle(&ann);
    for (field, broken) in BROKEN {
        join(&ann, "m");
        let id = text(&run(&ann, 0, "whoami")["session"]["id"]);
        edit(
            &env,
            &format!("UPDATE participants SET {broken} WHERE session = '{id}'"),
        );
        for line in [
            "mission focus wp:1",
            "mission drive active",
            "mission join m --role x",
            "mission use m",
            "mission check",
            "mission check --all",
        ] {
            let error = refused(&ann, 6, "invalid", line);
            let faults = error["faults"].as_array().expect("a list");
            assert_eq!(faults.len(), 1, "{broken}: {error}");
            assert_eq!(faults[0]["field"], *field, "{broken}: {error}");
            assert_eq!(faults[0]["subject"], own.as_str());
            let hint = &faults[0]["hints"][0];
            assert_eq!(hint["verb"], "mission", "{error}");
            assert_eq!(hint["args"], json!(["leave", "m"]), "{error}");
        }
        // For others it is a warning.
        let shown = run(&bob, 0, "mission status");
        assert_eq!(
            shown["participants"].as_array().map(Vec::len),
            Some(1),
            "{broken}"
        );
        assert_eq!(shown["faults"][0]["field"], *field);
        let warned = run(&bob, 0, "mission focus wp:2")["warnings"].to_string();
        assert!(warned.contains(&own), "{broken}: {warned}");
        run(&ann, 0, "mission leave m");
    }
    run(&ann, 0, "mission check --all");
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let (env, [ann]) = crew(["ann"]);
    join(&ann, "m");
    edit(
        &env,
        "UPDATE participants SET participant = '', role = '', drive = 'on', focus = 'x', joined_at = active_at + 5",
    );
    let said = rejects(&ann, 6, &["mission", "focus", "wp:1"]);
    for field in ["participant_id", "role", "drive", "focus", "joined_at"] {
        assert!(said.contains(&format!(", {field} ")), "{field}: {said}");
    }
    assert!(
        said.contains("\"on\"") && said.contains("5 faults"),
        "{said}"
    );
}

#[test]
fn a_mission_that_is_not_stored_is_a_fault_of_its_rows() {
    let (env, [ann]) = crew(["ann"]);
    join(&ann, "m");
    edit(&env, "UPDATE participants SET mission = '../x'");
    let error = refused(&ann, 6, "invalid", "mission check --all");
    let fields = error["faults"].to_string();
    assert!(
        fields.contains("../x") && fields.contains("pointer"),
        "{error}"
    );
    run(&ann, 0, "mission leave ../x");
    edit(&env, "DELETE FROM missions");
    let error = refused(&ann, 4, "no_mission", "mission focus wp:1");
    let clear = r#""--clear","--for","session""#;
    assert!(error["hints"].to_string().contains(clear), "{error}");
    run(&ann, 0, "mission use --clear");
    run(&ann, 0, "mission check --all");
}

#[test]
fn a_pointer_that_was_edited_is_said_and_how_to_clear_it() {
    let (env, [ann]) = crew(["ann"]);
    join(&ann, "m");
    for broken in ["../x", "gone", ""] {
        edit(&env, &format!("UPDATE pointers SET mission = '{broken}'"));
        let error = refused(&ann, 4, "no_mission", "mission focus wp:1");
        assert_eq!(error["passed_over"][0]["value"], broken);
        let clear = r#"["use","--clear","--for","session"]"#;
        assert!(error["hints"].to_string().contains(clear), "{error}");
        let own = run(&ann, 0, "whoami");
        assert_eq!(own["pointer"]["passed_over"][0]["value"], broken);
        refused(&ann, 6, "invalid", "verify");
        run(&ann, 0, "mission focus wp:1 --mission m");
    }
    run(&ann, 0, "mission use --clear");
    run(&ann, 0, "verify");
}
