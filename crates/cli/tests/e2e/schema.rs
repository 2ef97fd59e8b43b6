//! What `--json` prints fits the JSON Schema that `tenure schema` prints. Each verb's own answer is checked with
//! the others' in output.rs; here are the schema itself, verbs of verbs, failures, and lines of streams.

use serde_json::{Value, json};
use tenure_testkit::{Cmd, poll};

use crate::env;
use crate::support::line::{SOON, crew, handle, run, take};
use crate::support::shape::{assert_fits, assert_sound};

#[test]
fn the_schema_is_a_sound_json_schema() {
    let env = env();
    let schema = env.tenure(&["schema"]).ok().json();
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    assert_sound(&schema);
    for name in [
        "answer", "failure", "error", "streamed", "session", "claim", "event",
    ] {
        assert!(schema["$defs"][name].is_object(), "{name}");
    }
    let wrapped = env.tenure(&["schema", "--json"]).ok().json();
    assert_eq!(wrapped["schema"], schema);
}

/// The checker finds what it should.
#[test]
fn an_answer_that_does_not_fit_is_found() {
    let env = env();
    let schema = env.tenure(&["schema"]).ok().json();
    let fits = |name: &'static str, value: Value| {
        std::panic::catch_unwind(|| assert_fits(&schema, name, &value)).is_ok()
    };
    let whole = || json!({"v": 1, "sessions": [], "notices": []});
    assert!(fits("ps.answer", whole()));
    for spoil in [
        json!({"v": 2, "sessions": [], "notices": []}),
        json!({"v": 1, "notices": []}),
        json!({"v": 1, "sessions": {}, "notices": []}),
        json!({"v": 1, "sessions": [{}], "notices": []}),
        json!({"v": 1, "sessions": [], "notices": [], "unheard": 1}),
        json!({"v": 1, "sessions": []}),
    ] {
        assert!(!fits("ps.answer", spoil.clone()), "{spoil}");
    }
}

#[test]
fn answers_of_verbs_of_verbs_fit_the_schema() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let schema = env.tenure(&["schema"]).ok().json();
    take(&ann, "wp:own");
    let other = handle(&bob);
    for line in [
        "ps -a --tree",
        "whoami",
        "claims --all",
        "claim wp:1 wp:2 --all",
        "guard --lost",
        "mission join m --role developer",
        "mission focus wp:1",
        "mission drive active",
        "mission status",
        "mission list",
        "mission use m --for session",
        "mission use",
        "mission check --all",
        "mission leave m",
        "meta set team blue",
        "meta get",
        "meta unset team",
        "renew --for 1m --reason test",
        "help claim",
        "help exit-codes",
        "man mission join",
        "install claude --dry-run",
        "install claude gemini codex",
        "uninstall claude --dry-run",
        "uninstall --all",
        "log --limit 3",
        "config",
        "--version",
        &format!("alive {other}"),
        &format!("show {other}"),
    ] {
        assert_fits(&schema, "answer", &run(&ann, 0, line));
    }
    let checked = ann.tenure(&["install", "--check", "--json"]);
    assert_fits(&schema, "answer", &checked.json());
}

#[test]
fn failures_fit_the_schema() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let schema = env.tenure(&["schema"]).ok().json();
    take(&ann, "wp:own");
    run(&ann, 0, "claim wp:done");
    run(&ann, 0, "release wp:done --done");
    for (code, line) in [
        (1, "claim wp:done"),
        (2, "claim"),
        (2, "nonsense"),
        (2, "claim nonsense"),
        (3, "claim wp:own"),
        (3, "guard wp:own"),
        (4, "show nobody"),
        (4, "mission status"),
        (4, "help nonsense"),
        (2, "mission join m --role developer --participant nonsense"),
        (7, "claim wp:own --wait 10ms"),
    ] {
        let failed = run(&bob, code, line);
        assert_fits(&schema, "failure", &failed);
    }
    run(&bob, 0, "takeover wp:own --reason stuck");
    assert_fits(&schema, "failure", &run(&ann, 5, "guard wp:own"));
    assert_fits(
        &schema,
        "failure",
        &env.tenure(&["whoami", "--json"]).json(),
    );
}

#[test]
fn lines_of_streams_and_reports_of_commands_fit_the_schema() {
    let (env, [ann]) = crew(["ann"]);
    let schema = env.tenure(&["schema"]).ok().json();
    take(&ann, "wp:1");
    let followed = ann.start(Cmd::new("tenure").args(["log", "-f", "--json"]));
    let watched = ann.start(Cmd::new("tenure").args(["ps", "--watch", "--json"]));
    let first = |what: &str, read: &dyn Fn() -> String| {
        let line = poll(SOON, what, || {
            let said = read();
            said.split_once('\n').map(|(line, _)| line.to_owned())
        });
        serde_json::from_str::<Value>(&line).expect(&line)
    };
    assert_fits(
        &schema,
        "streamed",
        &first("an event", &|| followed.stdout()),
    );
    assert_fits(&schema, "answer", &first("sessions", &|| watched.stdout()));
    followed.kill9();
    watched.kill9();
    for line in ["lock build --json -- true", "claim wp:2 --json -- true"] {
        let words: Vec<&str> = line.split(' ').collect();
        let said = ann.tenure(&words).ok().stderr;
        let report = said.lines().last().expect("a report");
        let report: Value = serde_json::from_str(report).expect(report);
        assert_fits(&schema, "answer", &report);
    }
    let locks = run(&ann, 0, "locks");
    assert!(!locks["locks"].as_array().expect("a list").is_empty());
    assert_fits(&schema, "answer", &locks);
}
