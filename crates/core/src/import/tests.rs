use serde_json::json;

use super::*;
use crate::id::worker_name;

fn verdicts(entries: &[ImportEntry]) -> Vec<(String, String)> {
    let said = |entry: &ImportEntry| match &entry.content {
        Ok(Record::Conversation(one)) => {
            let worker = worker_name(one.agent.as_str(), one.role.label());
            format!("{worker} {} {}", one.item, one.native_id)
        }
        Ok(Record::Session(one)) => {
            format!("{} in {} until {}", one.native_id, one.dir, one.ended_at)
        }
        Ok(Record::Participant(one)) => {
            format!("{} {} {}", one.participant, one.role, one.joined_at)
        }
        Ok(Record::Pointer(mission)) => format!("-> {mission}"),
        Err(NotTaken::Refused(why)) => format!("refused: {why}"),
        Err(NotTaken::Left(why)) => format!("left: {why}"),
    };
    entries
        .iter()
        .map(|entry| (entry.name.clone(), said(entry)))
        .collect()
}

fn checked(entries: &[ImportEntry], expected: &[(&str, &str)]) {
    let expected: Vec<(String, String)> = expected
        .iter()
        .map(|(name, said)| ((*name).to_owned(), (*said).to_owned()))
        .collect();
    assert_eq!(verdicts(entries), expected);
}

/// The contamination that began it all: a channel's key got the id of a session that was delegated to, and its
/// transcript; another names a file of a third.
#[test]
fn entries_with_the_id_or_the_transcript_of_another_are_refused() {
    let file = json!({
        "agent:main:main": {"sessionId": "5f0c2a1e", "sessionFile": "/h/sessions/5f0c2a1e.jsonl", "updatedAt": 1},
        "agent:main:telegram:group:7": {"sessionId": "delegate-9b", "sessionFile": "/h/sessions/delegate-9b.jsonl", "updatedAt": 2},
        "agent:main:subagent:1": {"sessionId": "subagent-1", "updatedAt": 3},
        "agent:main:discord": {"sessionId": "77aa", "sessionFile": "/h/sessions/5f0c2a1e.jsonl", "updatedAt": 4},
        "agent:main:irc": {"sessionId": "5f0c2a1e", "updatedAt": 5},
        "agent:main:new": {"updatedAt": 6},
    });
    let entries = openclaw::sessions_json(&file.to_string(), "sessions.json").unwrap();
    checked(
        &entries,
        &[
            (
                "agent:main:main",
                "openclaw session:agent:main:main 5f0c2a1e",
            ),
            (
                "agent:main:telegram:group:7",
                "refused: delegate-9b is the id of a spawned session, but this key is not one's",
            ),
            (
                "agent:main:subagent:1",
                "openclaw session:agent:main:subagent:1 subagent-1",
            ),
            (
                "agent:main:discord",
                "refused: its transcript 5f0c2a1e.jsonl belongs to another session than its id 77aa",
            ),
            (
                "agent:main:irc",
                "refused: 5f0c2a1e is the session id of agent:main:main, which had it first",
            ),
            ("agent:main:new", "left: it has no session id"),
        ],
    );
}

#[test]
fn a_database_names_the_first_owner_of_an_id() {
    let cell = |text: &str| Some(text.to_owned());
    let rows = [
        vec![cell("agent:main:A"), cell("a1"), cell("agent:main:B")],
        vec![cell("agent:main:B"), cell("a1"), cell("agent:main:B")],
        vec![cell("agent:main:C"), None, None],
    ];
    let found = openclaw::rows(&rows, "db");
    checked(
        &found,
        &[
            ("agent:main:A", "openclaw session:agent:main:A a1"),
            (
                "agent:main:B",
                "refused: a1 is the session id of agent:main:A, which had it first; its window has moved here",
            ),
            ("agent:main:C", "left: it has no session id"),
        ],
    );
}

#[test]
fn a_window_that_moved_to_a_key_which_no_longer_has_its_id_is_named() {
    let cell = |text: &str| Some(text.to_owned());
    let rows = [
        vec![cell("agent:main:A"), cell("a1"), cell("agent:main:B")],
        vec![cell("agent:main:B"), cell("b2"), cell("agent:main:B")],
        vec![cell("agent:main:C"), cell("c1"), None],
    ];
    let found = openclaw::rows(&rows, "db");
    checked(
        &found,
        &[
            ("agent:main:A", "openclaw session:agent:main:A a1"),
            ("agent:main:B", "openclaw session:agent:main:B b2"),
            ("agent:main:C", "openclaw session:agent:main:C c1"),
            (
                "a1",
                "refused: its window names agent:main:B, but it is the session id of agent:main:A",
            ),
        ],
    );
}

#[test]
fn workers_that_are_no_agents_become_roles() {
    let layouts = [
        json!({"boss": {"acme/web": {"6": "s1"}}}),
        json!({"boss:acme/web#6": {"session_id": "s1"}}),
        json!({"sessions": {"boss/acme/web/6": "s1"}}),
        json!([{"agent": "boss", "repo": "acme/web", "issue": 6, "session_id": "s1"}]),
    ];
    for layout in layouts {
        let found = claude_hooks::sessions_json(&layout.to_string(), "f").unwrap();
        let said: Vec<String> = verdicts(&found).into_iter().map(|(_, said)| said).collect();
        assert_eq!(said, ["claude as boss issue:acme/web#6 s1"], "{layout}");
    }
    let codex =
        json!({"codex:acme/web!9": "s2", "boss:web": "s3", "boss:acme/web#7": 5}).to_string();
    checked(
        &claude_hooks::sessions_json(&codex, "f").unwrap(),
        &[
            ("codex:acme/web!9", "codex pr:acme/web#9 s2"),
            (
                "boss:web",
                "refused: \"boss:web\" does not name agent, repository and number",
            ),
            (
                "boss:acme/web#7",
                "refused: it is neither a session id nor an object",
            ),
        ],
    );
}

#[test]
fn a_name_without_a_number_is_no_item() {
    for name in [
        "boss:acme/web",
        "boss:acme/web5",
        "boss:acme/wéb",
        "boss:acme/web é",
        "boss:acme/web#é",
    ] {
        let file = json!({name: "s1"}).to_string();
        let said = format!("refused: {name:?} does not name agent, repository and number");
        checked(
            &claude_hooks::sessions_json(&file, "f").unwrap(),
            &[(name, said.as_str())],
        );
    }
}

#[test]
fn a_key_that_is_there_twice_is_refused_both_times_and_depth_is_bounded() {
    let twice = r#"{"boss:acme/web#6": "s1", "boss:acme/web#6": "s2"}"#;
    let said = "refused: the file has this key more than once";
    checked(
        &claude_hooks::sessions_json(twice, "f").unwrap(),
        &[("boss:acme/web#6", said), ("boss:acme/web#6", said)],
    );
    let deep = format!("{}{}", "{\"a\":".repeat(5000), "}".repeat(5000));
    assert!(
        openclaw::sessions_json(&deep, "f")
            .unwrap_err()
            .contains("recursion")
    );
    assert!(openclaw::sessions_json("[]", "f").is_err());
}

#[test]
fn a_key_that_is_there_twice_below_others_is_refused_and_the_rest_is_read() {
    let said = "refused: the file has this key more than once";
    let nested = r#"{"boss": {"acme/web": {"6": "s1", "6": "s2", "7": "s3"}, "acme/api": {"1": "s4"}, "acme/api": {}},
        "sessions": {"boss:acme/web#8": "s5", "boss:acme/web#8": "s6",
            "boss:acme/web#9": {"session_id": "s7", "session_id": "s8"},
            "boss:acme/web#10": {"session_id": "s9", "more": [{"x": 1, "x": 2}]}}}"#;
    checked(
        &claude_hooks::sessions_json(nested, "f").unwrap(),
        &[
            ("boss acme/web 6", said),
            ("boss acme/web 6", said),
            ("boss acme/web 7", "claude as boss issue:acme/web#7 s3"),
            ("boss acme/api", said),
            ("boss acme/api", said),
            ("boss:acme/web#8", said),
            ("boss:acme/web#8", said),
            (
                "boss:acme/web#9",
                "refused: it has session_id more than once",
            ),
            ("boss:acme/web#10", "refused: it has x more than once"),
        ],
    );
    let list =
        r#"[{"agent": "boss", "repo": "acme/web", "issue": 6, "issue": 7, "session_id": "s1"}]"#;
    checked(
        &claude_hooks::sessions_json(list, "f").unwrap(),
        &[("entry 1", "refused: it has issue more than once")],
    );
    let inside = r#"{"agent:main:A": {"sessionId": "a1", "sessionId": "a2"}, "agent:main:B": {"sessionId": "b1"}}"#;
    checked(
        &openclaw::sessions_json(inside, "f").unwrap(),
        &[
            ("agent:main:A", "refused: it has sessionId more than once"),
            ("agent:main:B", "openclaw session:agent:main:B b1"),
        ],
    );
    let mission = spec_kitty::mission("m", r#"{"mission_id": "m", "more": {"a": 1, "a": 2}}"#, "f");
    checked(&[mission], &[("m", "refused: it has a more than once")]);
}

#[test]
fn metadata_of_ehg_that_names_two_parents_or_is_cut_off_is_refused() {
    let with = |metadata: &str| {
        let row = json!({"session_id": "s1", "created_at": "2026-03-06 22:22:38+00", "status": "released",
            "metadata": metadata});
        verdicts(&ehg::row(row.as_object().unwrap(), "f"))
            .remove(0)
            .1
    };
    let twice = with(r#"{"parent_session_id": "a", "parent_session_id": "b"}"#);
    let said = "refused: its metadata: it has parent_session_id more than once";
    assert_eq!(twice, said);
    assert!(with(r#"{"parent_session_id": "#).starts_with("refused: its metadata: "));
    for fine in ["", "{}", "[]", "null"] {
        assert!(with(fine).starts_with("s1 in unknown"), "{fine}");
    }
    let rows = ehg::json_row(r#"{"session_id": "s1", "session_id": "s2"}"#, "t");
    checked(
        &rows,
        &[("a row", "refused: it has session_id more than once")],
    );
}

#[test]
fn a_mission_keeps_who_joined_when_and_as_whom() {
    let file = json!({
        "mission_id": "041-login", "mission_run_id": "run-7", "participant_id": "01HZY3C5J8Q9X2V4T6W8Y0A1B2",
        "role": "developer", "joined_at": "2026-02-15T13:12:20.111712+00:00",
        "last_activity_at": "2026-02-15T14:00:00", "drive_intent": "active", "focus": "wp:WP03",
        "session_token": "s3cret", "saas_api_url": "https://kitty.example/api",
    });
    let taken = spec_kitty::mission("041-login", &file.to_string(), "f");
    checked(
        &[taken],
        &[(
            "041-login",
            "01HZY3C5J8Q9X2V4T6W8Y0A1B2 developer 2026-02-15T13:12:20.111Z",
        )],
    );
    let elsewhere = spec_kitty::mission("042-x", &file.to_string(), "f");
    assert!(
        verdicts(&[elsewhere])[0]
            .1
            .starts_with("refused: it is the file of mission 041-login")
    );
    let pointer = spec_kitty::pointer(r#"{"active_mission_id": "041-login"}"#, "f");
    checked(&[pointer], &[("active mission", "-> 041-login")]);
}

#[test]
fn a_row_of_ehg_is_history_and_its_claim_a_command() {
    let row = json!({
        "session_id": "session_ab12", "created_at": "2026-03-06 22:22:38.605+00", "heartbeat_at": "2026-03-06 23:00:00+00",
        "status": "active", "sd_id": "SD-LEO-001", "hostname": "box", "metadata": {"parent_session_id": "session_aa"},
    });
    let found = ehg::row(row.as_object().unwrap(), "claude_sessions");
    checked(
        &found,
        &[
            (
                "session_ab12",
                "session_ab12 in unknown until 2026-03-06T23:00:00.000Z",
            ),
            (
                "SD-LEO-001",
                "left: the claim of session_ab12 is open there; take it with: tenure claim sd:SD-LEO-001",
            ),
        ],
    );
    let Ok(Record::Session(one)) = &found[0].content else {
        panic!("{found:?}");
    };
    assert_eq!(
        one.parent.as_ref().map(NativeId::as_str),
        Some("session_aa")
    );
}

#[test]
fn a_session_of_pact_is_its_directory_and_its_file() {
    let file =
        json!({"session_id": "c0ffee", "team_name": "pact-c0ffee", "project_dir": "/home/me/web",
        "plugin_root": "", "started_at": "2026-05-14T00:00:00Z"})
        .to_string();
    let written = Timestamp(1_778_800_000_000);
    let taken = pact::context("web", "c0ffee", &file, "f", written);
    let Ok(Record::Session(one)) = &taken.content else {
        panic!("{taken:?}");
    };
    let named = [("team_name", "pact-c0ffee"), ("project", "web")];
    assert_eq!(
        one.metadata,
        named.map(|(name, value)| (name, value.to_owned()))
    );
    assert!(
        verdicts(&[taken])[0]
            .1
            .starts_with("c0ffee in /home/me/web")
    );
    let other = pact::context("web", "beef", &file, "f", written);
    assert!(
        verdicts(&[other])[0]
            .1
            .starts_with("refused: it is the file of session c0ffee")
    );
    let escaped = file.replace("c0ffee", "../../x");
    let refused = pact::context("web", "../../x", &escaped, "f", written);
    assert!(verdicts(&[refused])[0].1.starts_with("refused: "));
}
