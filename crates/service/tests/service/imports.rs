//! Taking over what other systems kept: a report without `apply` says what one with it does.

use tenure_core::conversation::Home;
use tenure_core::id::{HostId, WorkerRole};
use tenure_core::import::{Entry, Format, PastConversation, PastSession, Record};
use tenure_core::time::Timestamp;
use tenure_service::{Here, ImportRequest};

use super::*;

fn entry(name: &str, record: Record) -> Entry {
    Entry {
        name: name.to_owned(),
        source: "a file".to_owned(),
        content: Ok(record),
    }
}

fn conversation(item: &str, id: &str) -> Entry {
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

/// The verdicts of an import with and without `apply`, which are the same.
#[track_caller]
fn judged(rig: &mut Rig, entries: &[Entry]) -> Vec<(String, &'static str)> {
    let who = rig.here(&[1]);
    let here = Here {
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
