//! Taking over what other systems kept: a report without `apply` says what one with it does.

use tenure_core::conversation::Home;
use tenure_core::id::{HostId, WorkerRole};
use tenure_core::import::{Format, ImportEntry, PastConversation, PastSession, Record};
use tenure_core::time::Timestamp;
use tenure_service::{ImportRequest, MissionPlace};

use super::*;

fn entry(name: &str, record: Record) -> ImportEntry {
    ImportEntry {
        name: name.to_owned(),
        source: "a file".to_owned(),
        content: Ok(record),
    }
}

fn conversation(item: &str, id: &str) -> ImportEntry {
    let record = PastConversation {
        agent: AgentName::known("openclaw"),
        role: WorkerRole::default(),
        item: key(&format!("session:{item}")),
        native_id: NativeId::parse(id).unwrap(),
        dir: None,
        home: Some(Home {
            host: HostId::new("h"),
            user: "1000".to_owned(),
            agent_home: None,
            dir: "/srv/web".to_owned(),
            repo_host: None,
        }),
    };
    entry(item, Record::Conversation(Box::new(record)))
}

fn session(id: &str, parent: &str) -> ImportEntry {
    let record = PastSession {
        agent: AgentName::known("claude"),
        native_id: NativeId::parse(id).unwrap(),
        parent: NativeId::parse(parent).ok(),
        dir: "/srv/web".to_owned(),
        branch: None,
        started_at: Timestamp(1_000),
        ended_at: Timestamp(2_000),
        why: "over".to_owned(),
        metadata: Vec::new(),
    };
    entry(id, Record::Session(Box::new(record)))
}

/// The verdicts of an import with and without `apply`, which are the same.
#[track_caller]
fn judged(rig: &mut Rig, entries: &[ImportEntry]) -> Vec<(String, &'static str)> {
    let who = rig.here(&[1]);
    let here = MissionPlace {
        repo: None,
        user: "1000".to_owned(),
        roles: Vec::new(),
    };
    let mut both = [false, true].map(|apply| {
        let request = ImportRequest {
            format: Format::Ehg,
            source: "a file".to_owned(),
            entries: entries.to_vec(),
            apply,
        };
        let done = rig.call(&who, |service| service.import(&here, &request));
        let entries = done.unwrap().report.entries.into_iter();
        entries
            .map(|one| (one.name, one.verdict))
            .collect::<Vec<_>>()
    });
    assert_eq!(both[0], both[1]);
    std::mem::take(&mut both[1])
}

fn verdicts(found: &[(String, &'static str)]) -> Vec<&'static str> {
    found.iter().map(|(_, verdict)| *verdict).collect()
}

#[test]
fn a_conversation_that_two_files_have_is_judged_once() {
    let mut rig = Rig::new();
    let entries = [
        conversation("A", "a1"),
        conversation("A", "a1"),
        conversation("A", "a2"),
        conversation("B", "a1"),
    ];
    let found = judged(&mut rig, &entries);
    assert_eq!(verdicts(&found), ["taken", "left", "refused", "refused"]);
    let again = judged(&mut rig, &entries);
    assert_eq!(verdicts(&again), ["left", "left", "refused", "refused"]);
}

#[test]
fn sessions_get_their_parents_in_whatever_order_they_come() {
    let mut rig = Rig::new();
    let entries = [
        session("grandchild", "child"),
        session("child", "root"),
        session("root", ""),
        session("orphan", "late"),
        session("egg", "chicken"),
        session("chicken", "egg"),
        session("child", "orphan"),
    ];
    let found = judged(&mut rig, &entries);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "grandchild",
        "child",
        "root",
        "orphan",
        "egg",
        "chicken",
        "child",
    ];
    assert_eq!(names, expected, "in their own order");
    let taken = ["taken"; 6];
    assert_eq!(verdicts(&found)[..6], taken);
    assert_eq!(verdicts(&found)[6], "left");
    assert_eq!(parent(&mut rig, "grandchild").as_deref(), Some("child"));
    assert_eq!(parent(&mut rig, "child").as_deref(), Some("root"));
    assert_eq!(parent(&mut rig, "orphan"), None);
    assert_eq!(verdicts(&judged(&mut rig, &entries)), ["left"; 7]);
    let late = [session("late", ""), session("orphan", "late")];
    assert_eq!(verdicts(&judged(&mut rig, &late)), ["taken", "taken"]);
    assert_eq!(parent(&mut rig, "orphan").as_deref(), Some("late"));
    let circle = [session("late", "orphan")];
    assert_eq!(verdicts(&judged(&mut rig, &circle)), ["left"]);
}

/// The native id of a session's parent.
fn parent(rig: &mut Rig, native: &str) -> Option<String> {
    use tenure_core::store::{Store, TxMode};
    let claude = AgentName::known("claude");
    let id = NativeId::parse(native).unwrap();
    let mut tx = rig.store.begin(TxMode::Read).unwrap();
    let owner = tx.native_owner(&claude, &id).unwrap().unwrap();
    let parent = tx.session(owner).unwrap().unwrap().parent?;
    let parent = tx.session(parent.id).unwrap().unwrap();
    Some(parent.native_id.unwrap().to_string())
}
