//! What is shown of conversations: whether they can be resumed, where they are, and lists of them.

use std::cell::RefCell;
use std::time::Duration;

use tenure_core::conversation::Home;
use tenure_core::conversation::fitness::{Existence, Left};
use tenure_core::event::EventFilter;
use tenure_core::id::{AgentName, HostId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::policy::Policy;
use tenure_core::witness::{Question, StoredConversation, Subject, Testimony, Witness};
use tenure_service::{ActFor, ListConversations, MissionPlace, Service, SetRequest};

use super::{ISSUE, PR, worker};
use crate::{Rig, key};

/// Says of each native id whether it exists, and keeps what it was asked.
struct Files {
    absent: &'static [&'static str],
    asked: RefCell<Vec<usize>>,
}

impl Witness for Files {
    fn testify(&self, about: &[Subject], _: Question) -> Vec<Testimony> {
        vec![Testimony::default(); about.len()]
    }

    fn have(&self, kept: &[StoredConversation]) -> Vec<Existence> {
        self.asked.borrow_mut().push(kept.len());
        let is_absent = |one: &StoredConversation| self.absent.contains(&one.native_id.as_str());
        let existence = |one: &StoredConversation| {
            if is_absent(one) {
                Existence::Absent
            } else {
                Existence::Present
            }
        };
        kept.iter().map(existence).collect()
    }
}

#[test]
fn f_r16_a_conversation_that_its_agent_deleted_is_unknown_and_found_as_a_dead_pointer() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    for (item, native_id) in [(ISSUE, "n1"), (PR, "gone"), ("wp:1", "n3")] {
        rig.set(&ann, item, native_id).unwrap();
    }
    let far = SetRequest {
        home: Home {
            host: HostId::new("elsewhere"),
            ..rig.home()
        },
        ..rig.set_request("wp:2", "far-gone")
    };
    rig.call(&ann, |service| {
        service.set_conversation(&ActFor::default(), &far)
    })
    .unwrap();
    let files = Files {
        absent: &["gone", "far-gone"],
        asked: RefCell::default(),
    };
    let (facts, here) = (ann.facts(), rig.home());
    let mut service =
        Service::new(&mut rig.store, &ann.world, &facts, Policy::default()).with_witness(&files);
    let mut seen = |item: &str| {
        let view = service.conversation(&worker(), &WorkerRole::default(), &key(item), &here);
        let view = view.unwrap().value;
        (view.fitness, view.existence)
    };
    assert_eq!(seen(ISSUE), (Some("resume"), Some("present")));
    assert_eq!(seen(PR), (Some("unknown"), Some("absent")));
    assert_eq!(seen("wp:2"), (Some("resume"), Some("cannot_tell")));
    let mut one_by_one = Vec::new();
    for item in [ISSUE, PR, "wp:1", "wp:2"] {
        let view = service.conversation(&worker(), &WorkerRole::default(), &key(item), &here);
        let view = view.unwrap().value;
        one_by_one.push((view.item, view.fitness, view.existence, view.elsewhere));
    }
    files.asked.borrow_mut().clear();
    let here = |_: &AgentName, _: &Key| here.clone();
    let list = service.conversations(&ListConversations::default(), &here);
    let list = list.unwrap().value.items.into_iter();
    let listed: Vec<_> = list
        .map(|view| (view.item, view.fitness, view.existence, view.elsewhere))
        .collect();
    assert_eq!(listed, one_by_one, "a list says the same");
    assert_eq!(*files.asked.borrow(), [3], "all were looked for in one go");
    files.asked.borrow_mut().clear();
    let dead = service.dead_pointers().unwrap().value;
    let dead: Vec<_> = dead.iter().map(|one| one.item.as_str()).collect();
    assert_eq!(dead, [PR]);
    assert_eq!(*files.asked.borrow(), [3], "all were looked for in one go");
}

#[test]
fn a_conversation_that_its_agent_deleted_is_logged_once_and_stays() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    rig.set(&ann, ISSUE, "n1").unwrap();
    rig.set(&ann, PR, "gone").unwrap();
    let files = Files {
        absent: &["gone", "gone-too"],
        asked: RefCell::default(),
    };
    let lost = |rig: &mut Rig| {
        let facts = ann.facts();
        let mut service = Service::new(&mut rig.store, &ann.world, &facts, Policy::default())
            .with_witness(&files);
        let found = service.sweep_conversations().unwrap().value;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].item, PR);
        let of_item = EventFilter {
            key: Some(key(PR)),
            ..EventFilter::default()
        };
        let events = service.log(&of_item, None).unwrap().value.items;
        let lost = events.iter().filter(|one| one.kind == "conversation.lost");
        lost.map(|one| one.evidence.clone()).collect::<Vec<_>>()
    };
    assert_eq!(lost(&mut rig), ["worker no longer has gone"]);
    assert_eq!(lost(&mut rig), ["worker no longer has gone"], "once");
    rig.set(&ann, PR, "gone-too").unwrap();
    assert_eq!(lost(&mut rig).len(), 2, "another one");
}

#[test]
fn a_conversation_elsewhere_is_shown_with_what_differs() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    rig.set(&ann, ISSUE, "n1").unwrap();
    let host = Home {
        host: HostId::new("elsewhere"),
        ..rig.home()
    };
    let user = Home {
        user: "0".into(),
        ..rig.home()
    };
    let moved = Home {
        agent_home: Some("/home/x/.codex-2".into()),
        ..rig.home()
    };
    let other_dir = Home {
        dir: "/other".into(),
        ..rig.home()
    };
    for (here, differs) in [
        (host, Some("host")),
        (user, Some("user")),
        (moved, Some("agent_home")),
        (other_dir, None),
    ] {
        let seen = rig.call(&ann, |service| {
            service.conversation(&worker(), &WorkerRole::default(), &key(ISSUE), &here)
        });
        assert_eq!(seen.unwrap().elsewhere, differs);
    }
}

#[test]
fn f_r19_what_the_newest_run_left_of_that_id_decides_whatever_older_ones_say() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    rig.set(&ann, ISSUE, "n1").unwrap();
    let fitness = |rig: &mut Rig| rig.get(&ann, ISSUE).unwrap().fitness;
    assert_eq!(fitness(&mut rig), Some("resume"));
    for (n, left, is) in [
        (1, Left::Sound, "resume"),
        (2, Left::Overflowed, "resume"),
        (3, Left::Unusable, "unusable"),
    ] {
        rig.clock.advance(Duration::from_secs(1));
        let run = rig.starts_run(n, ISSUE, 50);
        rig.ends_run(&run, "n1", left);
        assert_eq!(fitness(&mut rig), Some(is), "{left:?}");
    }
    rig.set(&ann, ISSUE, "n2").unwrap();
    assert_eq!(fitness(&mut rig), Some("resume"), "another id");
    rig.set(&ann, ISSUE, "n1").unwrap();
    assert_eq!(fitness(&mut rig), Some("unusable"), "the same id again");
}

#[test]
fn whoami_shows_the_conversation_that_a_session_is_in() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    rig.register(&ann, "n-ann");
    let mine = |rig: &mut Rig| {
        let who = rig.call(&ann, |service| {
            service.whoami(&ActFor::default(), &MissionPlace::default())
        });
        who.unwrap().conversation.map(|one| one.item)
    };
    assert_eq!(mine(&mut rig), None);
    rig.set(&ann, ISSUE, "n-ann").unwrap();
    assert_eq!(mine(&mut rig).as_deref(), Some(ISSUE));
}

#[test]
fn a_list_has_open_ones_and_follows_links() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    for (item, native_id) in [(ISSUE, "n1"), (PR, "own"), ("wp:1", "n3"), ("wp:2", "n4")] {
        rig.set(&ann, item, native_id).unwrap();
    }
    rig.link(&ann, PR, ISSUE).unwrap();
    rig.drops(&ann, "wp:1", false).unwrap();
    rig.call(&ann, |service| service.close_item(&key("wp:2")))
        .unwrap();
    let list = |rig: &mut Rig, request: ListConversations| {
        let home = rig.home();
        let here = |_: &AgentName, _: &Key| home.clone();
        let found = rig
            .call(&ann, |service| service.conversations(&request, &here))
            .unwrap();
        let items = found.items.into_iter();
        let short = items.map(|one| (one.root, one.native_id.unwrap(), one.set_aside));
        (short.collect::<Vec<_>>(), found.more)
    };
    let issue = (ISSUE.to_owned(), "n1".to_owned(), false);
    let aside = (PR.to_owned(), "own".to_owned(), true);
    let closed = ("wp:2".to_owned(), "n4".to_owned(), false);
    let all = ListConversations::default();
    assert_eq!(
        list(&mut rig, all.clone()),
        (vec![issue.clone(), aside.clone()], 0)
    );
    let of_pr = ListConversations {
        item: Some(key(PR)),
        ..all.clone()
    };
    assert_eq!(list(&mut rig, of_pr), (vec![issue.clone()], 0));
    let with_closed = ListConversations {
        all: true,
        ..all.clone()
    };
    assert_eq!(
        list(&mut rig, with_closed).0,
        [issue.clone(), aside, closed]
    );
    let one = ListConversations { limit: 1, ..all };
    assert_eq!(list(&mut rig, one), (vec![issue], 1));
}
