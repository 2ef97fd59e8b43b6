//! Conversations of agents and items, on a store that panics where one writes what it did not lock.

mod closing;
mod seen;

use tenure_core::conversation::fitness::Left;
use tenure_core::conversation::{Home, WhyEnded};
use tenure_core::event::EventFilter;
use tenure_core::id::{AgentName, NativeId, RunId, SessionId, WorkerRole};
use tenure_core::run::{Outcome, Run, RunEnd, Trigger, Usage};
use tenure_core::store::{Store, TxMode};
use tenure_core::time::Timestamp;
use tenure_service::answer::Class;
use tenure_service::error::Error;
use tenure_service::view::{ConversationView, LinkView};
use tenure_service::{ActFor, DropRequest, Dropped, LinkRequest, SetRequest};

use super::{Rig, Who, key, kind};

const ISSUE: &str = "issue:acme/web#6";
const PR: &str = "pr:acme/web#9";

fn worker() -> AgentName {
    AgentName::known("worker")
}

fn native(text: &str) -> NativeId {
    NativeId::parse(text).unwrap()
}

/// What a run would continue, in short: its native id and revision.
type Short = (Option<String>, u64);

fn short(view: &ConversationView) -> Short {
    (view.native_id.clone(), view.revision)
}

fn is(native_id: &str, revision: u64) -> Short {
    (Some(native_id.to_owned()), revision)
}

impl Rig {
    fn home(&self) -> Home {
        Home {
            host: self.world.observer.host.clone(),
            user: "1000".into(),
            agent_home: None,
            repo_host: None,
            dir: "/work/web".into(),
        }
    }

    fn set_request(&self, item: &str, native_id: &str) -> SetRequest {
        SetRequest {
            role: WorkerRole::default(),
            agent: worker(),
            item: key(item),
            native_id: native(native_id),
            home: self.home(),
            revision: None,
        }
    }

    fn set(&mut self, who: &Who, item: &str, native_id: &str) -> Result<ConversationView, Error> {
        let request = self.set_request(item, native_id);
        self.call(who, |service| {
            service.set_conversation(&ActFor::default(), &request)
        })
    }

    fn get(&mut self, who: &Who, item: &str) -> Result<ConversationView, Error> {
        let item = key(item);
        let here = self.home();
        self.call(who, |service| {
            service.conversation(&worker(), &WorkerRole::default(), &item, &here)
        })
    }

    fn drops(&mut self, who: &Who, item: &str, stop: bool) -> Result<Dropped, Error> {
        let request = DropRequest {
            role: None,
            item: key(item),
            agent: None,
            stop,
        };
        self.call(who, |service| {
            service.drop_conversations(&ActFor::default(), &request)
        })
    }

    fn link(&mut self, who: &Who, item: &str, target: &str) -> Result<LinkView, Error> {
        let request = LinkRequest {
            item: key(item),
            target: key(target),
        };
        let linked = self.call(who, |service| {
            service.link_item(&ActFor::default(), &request)
        });
        linked.map(|linked| linked.link)
    }

    fn unlink(&mut self, who: &Who, item: &str) -> Result<LinkView, Error> {
        let item = key(item);
        let linked = self.call(who, |service| {
            service.unlink_item(&ActFor::default(), &item)
        });
        linked.map(|linked| linked.link)
    }

    /// Every native id of an item, with why it ended.
    fn ids(&mut self, who: &Who, item: &str) -> Vec<(String, Option<&'static str>)> {
        let item = key(item);
        let found = self.call(who, |service| {
            service.conversation_history(&worker(), &WorkerRole::default(), &item)
        });
        let ids = found.unwrap().ids.into_iter();
        ids.map(|one| (one.native_id, one.why)).collect()
    }

    /// A run without an end, whose runner is a process here.
    pub(crate) fn starts_run(&mut self, n: u8, root: &str, runner: u32) -> RunId {
        self.starts_run_as(n, root, runner, WorkerRole::default())
    }

    /// The same with a role.
    pub(crate) fn starts_run_as(
        &mut self,
        n: u8,
        root: &str,
        runner: u32,
        role: WorkerRole,
    ) -> RunId {
        let run = Run {
            timeout: None,
            role,
            id: RunId::mint([n; 16]),
            agent: worker(),
            item: key(root),
            root: key(root),
            host: self.world.observer.host.clone(),
            session: None,
            runner: Some(self.world.process(runner)),
            before: None,
            intended: None,
            after: None,
            dir: format!("/work/{n}"),
            shares_dir: false,
            exclusive: false,
            trigger: Trigger::Call,
            skill: None,
            prompt_hash: None,
            log: None,
            goes_on: None,
            created_at: self.clock.now().wall,
            begun_at: None,
            fell_back: false,
            stop: None,
            usage: Usage::default(),
            end: None,
            revision: 0,
        };
        let mut tx = self.store.inner().begin(TxMode::Write).unwrap();
        tx.insert_run(&run).unwrap();
        tx.commit().unwrap();
        run.id
    }

    pub(crate) fn ends_run(&mut self, id: &RunId, native_id: &str, left: Left) {
        let at = self.clock.now().wall;
        let mut tx = self.store.inner().begin(TxMode::Write).unwrap();
        let mut run = tx.run_by_id(id).unwrap().unwrap();
        run.after = Some(native(native_id));
        run.end = Some(RunEnd {
            at,
            outcome: Outcome::Failed,
            why: "it was time".into(),
            exit_code: Some(1),
            left,
            parked_until: None,
        });
        tx.update_run(&run).unwrap();
        tx.commit().unwrap();
    }

    fn run(&mut self, id: &RunId) -> Run {
        let mut tx = self.store.inner().begin(TxMode::Read).unwrap();
        tx.run_by_id(id).unwrap().unwrap()
    }

    /// The kinds of events of an item, the oldest first.
    fn kinds(&mut self, item: &str) -> Vec<String> {
        let filter = EventFilter {
            key: Some(key(item)),
            ..EventFilter::default()
        };
        let mut tx = self.store.inner().begin(TxMode::Read).unwrap();
        let events = tx.events(&filter).unwrap();
        events.into_iter().map(|event| event.kind).collect()
    }
}

#[track_caller]
fn class<T: std::fmt::Debug>(answer: Result<T, Error>) -> Class {
    answer.unwrap_err().class()
}

#[test]
fn the_last_one_is_current_and_every_one_is_in_the_history() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    let born = rig.register(&ann, "ann").session;
    let script = rig.here(&[30]);
    assert_eq!(class(rig.get(&script, ISSUE)), Class::NotFound);
    assert_eq!(short(&rig.set(&ann, ISSUE, "n1").unwrap()), is("n1", 1));
    assert_eq!(short(&rig.set(&script, ISSUE, "n2").unwrap()), is("n2", 2));
    let again = rig.set(&script, ISSUE, "n2").unwrap();
    assert_eq!(short(&again), is("n2", 2), "nothing changed");
    let seen = rig.get(&ann, ISSUE).unwrap();
    assert_eq!(seen.set_by.map(|by| by.id), None, "a script is no session");
    let past = rig.call(&ann, |service| {
        service.conversation_history(&worker(), &WorkerRole::default(), &key(ISSUE))
    });
    let past = past.unwrap().ids;
    assert_eq!(past[0].set_by.as_ref().unwrap().id, born.id);
    assert_eq!(past[0].why, Some(WhyEnded::Replaced.as_str()));
    assert_eq!((past[1].why, past[1].until), (None, None));
    assert_eq!(past.len(), 2);
}

#[test]
fn a_revision_that_moved_changes_nothing() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    rig.set(&ann, ISSUE, "n1").unwrap();
    let named = |rig: &mut Rig, revision: u64, native_id: &str| {
        let request = SetRequest {
            revision: Some(revision),
            ..rig.set_request(ISSUE, native_id)
        };
        rig.call(&ann, |service| {
            service.set_conversation(&ActFor::default(), &request)
        })
    };
    for wrong in [0, 2] {
        let refused = named(&mut rig, wrong, "n2").unwrap_err();
        assert_eq!((refused.class(), refused.kind()), (Class::Lost, "revised"));
    }
    assert_eq!(short(&rig.get(&ann, ISSUE).unwrap()), is("n1", 1));
    assert_eq!(rig.ids(&ann, ISSUE), [("n1".to_owned(), None)]);
    assert_eq!(short(&named(&mut rig, 1, "n2").unwrap()), is("n2", 2));
    // A drop does not begin the count again: a revision that was named before stays wrong.
    rig.drops(&ann, ISSUE, false).unwrap();
    assert_eq!(kind(named(&mut rig, 0, "n3")), "revised");
    assert_eq!(short(&named(&mut rig, 3, "n3").unwrap()), is("n3", 4));
}

#[test]
fn a_drop_takes_exactly_that_item() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    let others = [
        "issue:acme/web#60",
        "pr:acme/web#6",
        "issue:acme/web2#6",
        "issue:other/web#6",
    ];
    for (n, item) in [ISSUE].into_iter().chain(others).enumerate() {
        rig.set(&ann, item, &format!("n{n}")).unwrap();
    }
    let Dropped::Done(dropped) = rig.drops(&ann, ISSUE, false).unwrap() else {
        panic!("no run is in it");
    };
    let names: Vec<_> = dropped.iter().map(|one| one.item.as_str()).collect();
    assert_eq!(names, [ISSUE]);
    assert_eq!(class(rig.get(&ann, ISSUE)), Class::NotFound);
    for (n, item) in (1..).zip(others) {
        let left = rig.get(&ann, item).unwrap();
        assert_eq!(left.native_id, Some(format!("n{n}")), "{item}");
    }
    assert_eq!(rig.ids(&ann, ISSUE), [("n0".to_owned(), Some("dropped"))]);
    assert_eq!(class(rig.drops(&ann, ISSUE, false)), Class::NotFound);
}

#[test]
fn a_linked_item_continues_its_roots_conversation_and_gets_its_own_back() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    rig.set(&ann, ISSUE, "n1").unwrap();
    rig.set(&ann, PR, "own").unwrap();
    let link = rig.link(&ann, PR, ISSUE).unwrap();
    assert_eq!(link.root.as_deref(), Some(ISSUE));
    let aside: Vec<_> = link.own.iter().map(|one| one.native_id.clone()).collect();
    assert_eq!(aside, [Some("own".to_owned())]);
    let seen = rig.get(&ann, PR).unwrap();
    assert_eq!((short(&seen), seen.root.as_str()), (is("n1", 1), ISSUE));
    rig.set(&ann, PR, "n2").unwrap();
    assert_eq!(short(&rig.get(&ann, ISSUE).unwrap()), is("n2", 2));
    let refused = rig.drops(&ann, PR, false).unwrap_err();
    assert_eq!(refused.kind(), "linked", "it would take the issue's");
    let back = rig.unlink(&ann, PR).unwrap();
    assert_eq!(back.before.as_deref(), Some(ISSUE));
    assert_eq!(rig.get(&ann, PR).unwrap().native_id.as_deref(), Some("own"));
    assert_eq!(
        rig.get(&ann, ISSUE).unwrap().native_id.as_deref(),
        Some("n2")
    );
    assert_eq!(class(rig.unlink(&ann, PR)), Class::NotFound);
}

#[test]
fn links_are_one_level_deep_and_never_a_circle() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    let branch = "branch:acme/web:fix-6";
    rig.set(&ann, ISSUE, "n1").unwrap();
    rig.link(&ann, PR, ISSUE).unwrap();
    let link = rig.link(&ann, branch, PR).unwrap();
    assert_eq!(link.root.as_deref(), Some(ISSUE), "the root of its target");
    for (item, target) in [(ISSUE, PR), (ISSUE, branch), (ISSUE, ISSUE)] {
        let refused = rig.link(&ann, item, target).unwrap_err();
        assert_eq!(refused.class(), Class::Invalid, "{item} to {target}");
    }
    // What is linked to an item moves with it.
    let epic = "issue:acme/web#1";
    rig.set(&ann, epic, "n2").unwrap();
    let moved = rig.link(&ann, ISSUE, epic).unwrap().moved;
    assert_eq!(moved, [branch, PR]);
    for item in [ISSUE, PR, branch] {
        let seen = rig.get(&ann, item).unwrap();
        assert_eq!((seen.root.as_str(), short(&seen)), (epic, is("n2", 1)));
    }
    rig.unlink(&ann, ISSUE).unwrap();
    assert_eq!(
        rig.get(&ann, ISSUE).unwrap().native_id.as_deref(),
        Some("n1")
    );
    assert_eq!(rig.get(&ann, PR).unwrap().root, epic);
}

/// Someone links the item between two attempts: what is set goes where the item leads by then.
#[test]
fn a_link_that_comes_between_two_attempts_is_followed() {
    for before in 1..4 {
        let mut rig = Rig::new();
        let ann = rig.here(&[20]);
        rig.set(&ann, ISSUE, "n1").unwrap();
        rig.store.do_before(before, |store| {
            let mut tx = store.begin(TxMode::Write).unwrap();
            tx.set_item_state(&tenure_core::conversation::ItemState {
                link: Some(tenure_core::conversation::ItemLink {
                    root: key(ISSUE),
                    at: Timestamp(1),
                    by: None,
                }),
                ..tenure_core::conversation::ItemState::plain(key(PR))
            })
            .unwrap();
            tx.commit().unwrap();
        });
        let set = rig.set(&ann, PR, "n2").unwrap();
        if !rig.store.cancel_pending() {
            assert_eq!(set.root, ISSUE, "before transaction {before}");
            assert_eq!(short(&rig.get(&ann, ISSUE).unwrap()), is("n2", 2));
        }
    }
}

#[test]
fn a_live_run_is_in_the_way_of_a_drop_a_link_and_an_unlink() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    rig.set(&ann, ISSUE, "n1").unwrap();
    rig.set(&ann, PR, "own").unwrap();
    let run = rig.starts_run(1, ISSUE, 50);
    let in_the_way = [
        rig.drops(&ann, ISSUE, false).map(drop),
        rig.link(&ann, PR, ISSUE).map(drop),
        rig.link(&ann, ISSUE, PR).map(drop),
    ];
    for refused in in_the_way {
        let refused = refused.unwrap_err();
        assert_eq!((refused.class(), refused.kind()), (Class::Held, "held"));
    }
    assert_eq!(rig.get(&ann, ISSUE).unwrap().run, Some(run.to_string()));
    rig.world.exit(50);
    assert_eq!(
        rig.get(&ann, ISSUE).unwrap().run,
        None,
        "its runner is dead"
    );
    rig.link(&ann, PR, ISSUE).unwrap();
    rig.ends_run(&run, "n1", Left::Sound);
    rig.starts_run(2, ISSUE, 51);
    assert_eq!(class(rig.unlink(&ann, PR)), Class::Held);
    rig.world.exit(51);
    rig.unlink(&ann, PR).unwrap();
    rig.drops(&ann, ISSUE, false).unwrap();
}

#[test]
fn a_drop_that_stops_asks_first_and_drops_when_the_run_is_over() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    let born = rig.register(&ann, "ann").session;
    rig.set(&ann, ISSUE, "n1").unwrap();
    let run = rig.starts_run(1, ISSUE, 50);
    for _ in 0..2 {
        let Dropped::Stopping { runs, processes } = rig.drops(&ann, ISSUE, true).unwrap() else {
            panic!("a run is in it");
        };
        assert_eq!(runs, std::slice::from_ref(&run));
        assert_eq!(processes, [rig.world.process(50)]);
    }
    let asked = rig.run(&run).stop.unwrap();
    assert_eq!(asked.by, SessionId::parse(&born.id).ok());
    let kinds = rig.kinds(ISSUE);
    let stops = kinds.iter().filter(|kind| *kind == "run.stop_asked");
    assert_eq!(stops.count(), 1, "it is asked once: {kinds:?}");
    assert_eq!(short(&rig.get(&ann, ISSUE).unwrap()), is("n1", 1));
    rig.ends_run(&run, "n1", Left::Sound);
    assert!(matches!(
        rig.drops(&ann, ISSUE, true).unwrap(),
        Dropped::Done(_)
    ));
    assert_eq!(class(rig.get(&ann, ISSUE)), Class::NotFound);
}

#[test]
fn an_id_of_another_conversation_is_refused_and_both_sides_are_logged() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    rig.set(&ann, ISSUE, "n1").unwrap();
    let refused = rig.set(&ann, PR, "n1").unwrap_err();
    assert_eq!(refused.class(), Class::Invalid);
    assert!(refused.to_string().contains(ISSUE), "{refused}");
    for item in [ISSUE, PR] {
        let kinds = rig.kinds(item);
        assert!(
            kinds.contains(&"contamination".to_owned()),
            "{item}: {kinds:?}"
        );
    }
    assert_eq!(class(rig.get(&ann, PR)), Class::NotFound);
    // What a linked item had itself stays its own.
    rig.set(&ann, PR, "own").unwrap();
    rig.link(&ann, PR, ISSUE).unwrap();
    assert_eq!(class(rig.set(&ann, ISSUE, "own")), Class::Invalid);
    // One that was given up is free.
    rig.set(&ann, ISSUE, "n2").unwrap();
    rig.set(&ann, "issue:acme/web#7", "n1").unwrap();
}

#[test]
fn an_id_of_a_live_session_is_refused_unless_that_session_is_the_callers() {
    let mut rig = Rig::new();
    let [ann, bob] = [20, 30].map(|pid| rig.here(&[pid]));
    let child = rig.here(&[40, 20]);
    rig.register(&ann, "n-ann");
    rig.register(&bob, "n-bob");
    rig.register(&child, "n-child");
    let script = rig.here(&[90]);
    for who in [&ann, &script] {
        let refused = rig.set(who, ISSUE, "n-bob").unwrap_err();
        assert_eq!(refused.class(), Class::Invalid);
        assert!(refused.to_string().contains("worker-"), "{refused}");
    }
    assert_eq!(rig.kinds(ISSUE), ["contamination", "contamination"]);
    rig.set(&ann, ISSUE, "n-ann").unwrap();
    rig.set(&ann, ISSUE, "n-child").unwrap();
    bob.dies();
    rig.set(&ann, ISSUE, "n-bob").unwrap();
}

#[test]
fn a_subagents_id_is_refused() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    let request = SetRequest {
        agent: AgentName::known("claude"),
        ..rig.set_request(ISSUE, "agent-a2a8")
    };
    let refused = rig.call(&ann, |service| {
        service.set_conversation(&ActFor::default(), &request)
    });
    assert_eq!(class(refused), Class::Invalid);
    assert_eq!(rig.kinds(ISSUE), ["contamination"]);
}

#[test]
fn two_roles_on_one_item_are_two_conversations() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    let reviewer = WorkerRole::parse("reviewer").unwrap();
    rig.set(&ann, ISSUE, "n1").unwrap();
    let review = SetRequest {
        role: reviewer.clone(),
        ..rig.set_request(ISSUE, "n2")
    };
    let set = |rig: &mut Rig, request: &SetRequest| {
        rig.call(&ann, |service| {
            service.set_conversation(&ActFor::default(), request)
        })
    };
    let view = set(&mut rig, &review).unwrap();
    assert_eq!((view.role.as_deref(), view.revision), (Some("reviewer"), 1));
    assert_eq!(short(&rig.get(&ann, ISSUE).unwrap()), is("n1", 1));
    let taken = SetRequest {
        native_id: native("n1"),
        ..review.clone()
    };
    let refused = set(&mut rig, &taken).unwrap_err().to_string();
    assert_eq!(
        refused,
        "the conversation of worker as reviewer on issue:acme/web#6 was not set: n1 is the conversation of worker on \
         issue:acme/web#6"
    );
    let dropped = |rig: &mut Rig, role: Option<&WorkerRole>| {
        let request = DropRequest {
            role: role.cloned(),
            item: key(ISSUE),
            agent: None,
            stop: false,
        };
        let dropped = rig.call(&ann, |service| {
            service.drop_conversations(&ActFor::default(), &request)
        });
        match dropped.unwrap() {
            Dropped::Done(views) => views.into_iter().filter_map(|one| one.native_id).collect(),
            Dropped::Stopping { .. } => Vec::new(),
        }
    };
    assert_eq!(dropped(&mut rig, Some(&reviewer)), ["n2"]);
    set(&mut rig, &review).unwrap();
    assert_eq!(dropped(&mut rig, None), ["n1", "n2"], "every role's");
}
