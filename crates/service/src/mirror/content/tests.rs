use super::*;
use crate::mirror::compare::disagreements;
use crate::session::view::{NameView, ProcessView};

fn session(id: &str) -> SessionView {
    SessionView {
        resume: None,
        daemon: None,
        survivors: None,
        survivors_unsure: None,
        last_words: None,
        host: None,
        id: id.into(),
        handle: "claude-k7qd".into(),
        agent: "claude".into(),
        native_id: Some("native-1".into()),
        native_ids: None,
        hosted: false,
        state: "live",
        why: "pid 7 is running".into(),
        activity: None,
        activity_since: None,
        activity_by: None,
        activity_why: None,
        activity_until: None,
        asks: None,
        finished: false,
        rank: None,
        collides_with: None,
        lost: None,
        place: None,
        end_kind: None,
        wrote: None,
        twin_of: None,
        parent: None,
        title: None,
        title_by: None,
        twins: None,
        dir: "/srv/web".into(),
        repo: None,
        branch: None,
        branch_at: None,
        process: ProcessView {
            host_id: Some("host".into()),
            boot_id: Some("boot".into()),
            pid_ns: Some(1),
            pid: Some(7),
            start_ticks: Some(99),
            life: 1,
            verified: true,
        },
        registered: None,
        started_at: Timestamp(1_700_000_000_000),
        last_seen_at: Timestamp(1_700_000_001_000),
        lease_until: None,
        ended_at: None,
        end_reason: None,
        claims: None,
        waits_for: None,
    }
}

fn context() -> SessionContext {
    SessionContext {
        session: session("one"),
        metadata: BTreeMap::from([("team".to_owned(), "blue".to_owned())]),
        missions: vec![ParticipantView {
            mission: "041-login".into(),
            participant_id: "01ARZ3NDEKTSV4RRFFQ69G5FAV".into(),
            session: NameView {
                id: "one".into(),
                handle: "claude-k7qd".into(),
            },
            role: "developer".into(),
            focus: Some("wp:WP01".into()),
            run_id: Some("r-7".into()),
            api_url: None,
            drive: "active",
            state: "live",
            why: String::new(),
            dir: "/srv/web".into(),
            joined_at: Timestamp(1_700_000_000_500),
            last_activity_at: Timestamp(1_700_000_000_700),
            collides_with: Vec::new(),
            revision: 1,
        }],
        active: Some(("041-login".into(), Timestamp(1_700_000_000_600))),
        read_at: Timestamp(1_700_000_002_000),
    }
}

const FORMATS: [Format; 3] = [Format::Json, Format::Pact, Format::SpecKitty];

#[test]
fn what_was_just_written_agrees() {
    for format in FORMATS {
        for document in documents(format, &context(), &[]) {
            let found = disagreements(&document.text(None), "file", &context());
            assert_eq!(found, [], "{document:?}");
        }
    }
}

#[test]
fn the_formats_have_the_fields_that_their_tools_read() {
    let names = |document: &Document| {
        let mut names: Vec<String> = document.fields.keys().cloned().collect();
        names.retain(|name| name != "tenure");
        names.sort();
        names.join(" ")
    };
    let pact = documents(Format::Pact, &context(), &[]);
    assert_eq!(
        names(&pact[0]),
        "project_dir session_id started_at team_name"
    );
    assert_eq!(pact[0].fields["session_id"], "native-1");
    assert_eq!(pact[0].fields["team_name"], "blue");
    let kitty = documents(Format::SpecKitty, &context(), &[]);
    assert_eq!(
        kitty[0].below.as_deref(),
        Some("missions/041-login/session.json")
    );
    assert_eq!(
        names(&kitty[0]),
        "drive_intent focus joined_at last_activity_at mission_id mission_run_id participant_id role \
         saas_api_url session_token"
    );
    assert_eq!(kitty[1].below.as_deref(), Some("session.json"));
    assert_eq!(names(&kitty[1]), "active_mission_id last_switched_at");
}

#[test]
fn f_d12_fields_of_others_are_kept_in_the_same_participants_file_alone() {
    let document = &documents(Format::SpecKitty, &context(), &[])[0];
    let theirs = json!({
        "participant_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "session_token": "secret", "colour": "red",
        "role": "old", "ended_at": "2026-01-01T00:00:00Z",
    });
    let read = |text: String| serde_json::from_str::<Value>(&text).expect("it is JSON");
    let merged = read(document.text(Some(&theirs.to_string())));
    assert_eq!(
        (&merged["session_token"], &merged["colour"]),
        (&json!("secret"), &json!("red"))
    );
    assert_eq!(merged["role"], "developer");
    assert_eq!(merged["ended_at"], Value::Null, "it goes on");
    let other = theirs
        .to_string()
        .replace("01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAX");
    let merged = read(document.text(Some(&other)));
    assert_eq!(
        (&merged["session_token"], &merged["colour"]),
        (&json!(""), &Value::Null)
    );
    assert!(read(document.text(Some("{torn"))).is_object());
}

#[test]
fn an_ended_session_is_marked_in_every_format() {
    let mut ended = context();
    ended.session.ended_at = Some(Timestamp(1_700_000_001_500));
    for format in FORMATS {
        for document in documents(format, &ended, &[]) {
            let text = document.text(None);
            assert!(text.contains("2023-11-14T22:13:21.500Z"), "{text}");
            let found = disagreements(&text, "file", &context());
            let fields: Vec<_> = found.iter().map(|fault| fault.field).collect();
            assert_eq!(fields, ["ended_at"], "{text}");
        }
    }
}

#[test]
fn a_stale_file_is_told_apart_field_by_field() {
    let fixture = json!({
        "team_name": "pact-test", "session_id": "aaaaaaaa-1111-2222-3333-444444444444",
        "project_dir": "/tmp/pytest-of-user/project", "started_at": "2026-01-01T00:00:00",
    });
    let fields = |text: &str| {
        let found = disagreements(text, "file", &context());
        found.iter().map(|fault| fault.field).collect::<Vec<_>>()
    };
    assert_eq!(
        fields(&fixture.to_string()),
        ["session_id", "project_dir", "started_at", "team_name"]
    );
    let old = json!({"session_id": "native-1", "started_at": "2020-01-01T00:00:00Z"});
    assert_eq!(fields(&old.to_string()), ["started_at"]);
    let other = documents(
        Format::Json,
        &SessionContext {
            session: session("two"),
            ..context()
        },
        &[],
    );
    assert_eq!(fields(&other[0].text(None)), ["tenure.session"]);
    let mut moved = context();
    moved.session.process.pid = Some(8);
    moved.session.process.life = 2;
    let moved = documents(Format::Pact, &moved, &[]);
    assert_eq!(fields(&moved[0].text(None)), ["tenure.life", "tenure.pid"]);
    for nobody in ["", "{", "[]", "{}", "{\"colour\": 1}", "null"] {
        assert_eq!(fields(nobody), ["file"], "{nobody}");
    }
    let kitty = documents(Format::SpecKitty, &context(), &[])[0].text(None);
    let kitty = kitty
        .replace("\"developer\"", "\"reviewer\"")
        .replace("\"wp:WP01\"", "null");
    assert_eq!(fields(&kitty), ["role", "focus"]);
}

#[test]
fn a_users_fields_are_added_unless_the_session_has_a_value_of_its_own() {
    let fields = [("team_name", "session-native"), ("colour", "red")];
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut plain = context();
    plain.metadata.clear();
    let file = &documents(Format::Pact, &plain, &fields)[0].fields;
    assert_eq!(
        (&file["team_name"], &file["colour"]),
        (&json!("session-native"), &json!("red"))
    );
    let file = &documents(Format::Pact, &context(), &fields)[0].fields;
    assert_eq!(file["team_name"], "blue", "set with `tenure meta set team`");
    let kitty = documents(Format::SpecKitty, &plain, &fields);
    assert_eq!(kitty[0].fields["colour"], "red");
    assert_eq!(kitty[1].fields.get("colour"), None, "the pointer");
}

#[test]
fn a_file_is_right_until_something_but_a_heartbeat_changes() {
    for format in FORMATS {
        for document in documents(format, &context(), &[]) {
            let text = document.text(None);
            assert!(document.is_in(&text), "{text}");
            let mut later = context();
            later.read_at = Timestamp(1_700_000_009_000);
            later.session.last_seen_at = Timestamp(1_700_000_009_000);
            later.session.activity = Some("busy");
            later.missions[0].last_activity_at = Timestamp(1_700_000_009_000);
            let later = documents(format, &later, &[]);
            let same = later.iter().find(|one| one.below == document.below);
            assert!(same.is_some_and(|one| one.is_in(&text)), "{text}");
            for wrong in ["", "{", "{}", &text.replace("\"one\"", "\"two\"")] {
                assert!(!document.is_in(wrong), "{wrong}");
            }
        }
    }
    let pact = &documents(Format::Pact, &context(), &[])[0];
    let text = pact.text(None);
    assert!(!pact.is_in(&text.replace("/srv/web", "/tmp/fixture")));
}
