//! Conversations of agents and items.

use tenure_core::conversation::{
    Author, Conversation, Current, Home, IdEnd, ItemLink, ItemState, PastId, WhyEnded,
};
use tenure_core::id::{AgentName, HostId, RunId, WorkerRole};
use tenure_core::store::{ConversationFilter, Store};
use tenure_core::time::Timestamp;

use super::sample::*;

fn home() -> Home {
    Home {
        host: HostId::new("host-one"),
        user: "alice".into(),
        agent_home: None,
        repo_host: None,
        dir: "/srv/web".into(),
    }
}

fn conversation(item: &str, native_id: &str) -> Conversation {
    Conversation {
        current: Some(Current {
            native_id: native(native_id),
            home: home(),
            by: Author::default(),
            at: Timestamp(EPOCH),
        }),
        revision: 1,
        ..Conversation::none(agent(), role(), key(item))
    }
}

fn with(store: &mut dyn Store, rows: &[Conversation]) {
    write(store, |tx| {
        for row in rows {
            tx.insert_conversation(row).unwrap();
        }
    });
}

pub fn a_record_reads_back_with_every_field(store: &mut dyn Store) {
    let full = Conversation {
        current: Some(Current {
            native_id: native("ses_1"),
            home: Home {
                agent_home: Some("/home/alice/.codex-2".into()),
                repo_host: Some("github.com".into()),
                ..home()
            },
            by: Author {
                session: Some(id(1)),
                run: Some(RunId::mint([1; 16])),
            },
            at: Timestamp(EPOCH + 7),
        }),
        closed_at: Some(Timestamp(EPOCH + 9)),
        revision: 12,
        ..Conversation::none(agent(), role(), key("issue:acme/web#6"))
    };
    let bare = Conversation::none(AgentName::known("codex"), role(), key("issue:acme/web#6"));
    with(store, &[full.clone(), bare.clone()]);
    read(store, |tx| {
        let item = key("issue:acme/web#6");
        assert_eq!(
            tx.conversation(&agent(), &role(), &item).unwrap(),
            Some(full.clone())
        );
        let with_id = tx.conversation_with(&agent(), &native("ses_1")).unwrap();
        assert_eq!(with_id, Some(full.clone()));
        assert_eq!(tx.conversations_of(&item).unwrap(), [full, bare]);
        let other = tx.conversation(&agent(), &role(), &key("issue:acme/web#60"));
        assert_eq!(other.unwrap(), None);
    });
}

pub fn a_record_is_changed_by_comparing_its_revision(store: &mut dyn Store) {
    let before = conversation("issue:acme/web#6", "ses_1");
    with(store, std::slice::from_ref(&before));
    let dropped = Conversation {
        current: None,
        closed_at: Some(Timestamp(EPOCH)),
        ..before.clone()
    };
    write(store, |tx| tx.update_conversation(&dropped).unwrap());
    conflict(store, |tx| tx.update_conversation(&before));
    read(store, |tx| {
        let expected = Conversation {
            revision: 2,
            ..dropped
        };
        let found = tx.conversation(&agent(), &role(), &before.item).unwrap();
        assert_eq!(found, Some(expected));
    });
    let nothing = conversation("issue:acme/web#7", "ses_2");
    conflict(store, |tx| tx.update_conversation(&nothing));
    conflict(store, |tx| tx.insert_conversation(&before));
}

pub fn a_native_id_is_in_one_conversation_of_an_agent(store: &mut dyn Store) {
    let first = conversation("issue:acme/web#6", "ses_1");
    let other = conversation("issue:acme/web#7", "ses_2");
    with(store, &[first.clone(), other.clone()]);
    conflict(store, |tx| {
        tx.insert_conversation(&conversation("issue:acme/web#8", "ses_1"))
    });
    conflict(store, |tx| {
        tx.update_conversation(&Conversation {
            current: first.current.clone(),
            ..other.clone()
        })
    });
    let codex = Conversation {
        agent: AgentName::known("codex"),
        ..first.clone()
    };
    with(store, &[codex]);
}

pub fn listing_takes_exactly_that_item(store: &mut dyn Store) {
    let items = [
        "issue:acme/web#6",
        "issue:acme/web#60",
        "issue:acme/web2#6",
        "pr:acme/web#6",
    ];
    let mut rows: Vec<_> = items
        .iter()
        .enumerate()
        .map(|(n, item)| conversation(item, &format!("ses_{n}")))
        .collect();
    rows.push(Conversation {
        agent: AgentName::known("codex"),
        ..conversation("issue:acme/web#6", "ses_9")
    });
    let closed = Conversation {
        closed_at: Some(Timestamp(EPOCH)),
        ..conversation("issue:acme/web#5", "ses_5")
    };
    let none = Conversation::none(agent(), role(), key("issue:acme/web#4"));
    with(store, &rows);
    with(store, &[closed, none]);
    read(store, |tx| {
        let mut named = |filter: ConversationFilter| {
            let found = tx.list_conversations(&filter).unwrap();
            assert_eq!(tx.count_conversations(&filter).unwrap(), found.len());
            let name = |row: &Conversation| format!("{} {}", row.agent, row.item);
            found.iter().map(name).collect::<Vec<_>>()
        };
        let of = ConversationFilter {
            item: Some(key("issue:acme/web#6")),
            ..ConversationFilter::default()
        };
        let both = ["claude issue:acme/web#6", "codex issue:acme/web#6"];
        assert_eq!(named(of), both);
        let codex = ConversationFilter {
            agent: Some(AgentName::known("codex")),
            ..ConversationFilter::default()
        };
        assert_eq!(named(codex), both[1..]);
        assert_eq!(named(ConversationFilter::default()).len(), 5);
        let closed_too = ConversationFilter {
            closed_too: true,
            ..ConversationFilter::default()
        };
        assert_eq!(named(closed_too)[0], "claude issue:acme/web#5");
    });
}

pub fn a_list_goes_on_after_its_last_row(store: &mut dyn Store) {
    let rows: Vec<_> = (1..=5)
        .map(|n| conversation(&format!("issue:acme/web#{n}"), &format!("ses_{n}")))
        .collect();
    with(store, &rows);
    read(store, |tx| {
        let mut filter = ConversationFilter {
            limit: 2,
            ..ConversationFilter::default()
        };
        let mut seen = Vec::new();
        loop {
            let page = tx.list_conversations(&filter).unwrap();
            assert_eq!(tx.count_conversations(&filter).unwrap(), 5);
            let Some(last) = page.last() else { break };
            filter.after = Some((last.item.clone(), last.agent.clone(), last.role.clone()));
            seen.extend(page);
        }
        assert_eq!(seen, rows);
    });
}

pub fn the_history_has_every_id_and_one_without_an_end(store: &mut dyn Store) {
    let item = key("issue:acme/web#6");
    let past = |text: &str, at: i64| PastId {
        native_id: native(text),
        from: Timestamp(EPOCH + at),
        by: Author {
            session: Some(id(1)),
            run: None,
        },
        ended: None,
    };
    let end = IdEnd {
        at: Timestamp(EPOCH + 5),
        why: WhyEnded::Replaced,
        by: Author {
            session: None,
            run: Some(RunId::mint([2; 16])),
        },
    };
    conflict(store, |tx| tx.end_past_id(&agent(), &role(), &item, &end));
    write(store, |tx| {
        tx.add_past_id(&agent(), &role(), &item, &past("ses_1", 1))
            .unwrap();
        let other = key("issue:acme/web#60");
        tx.add_past_id(&agent(), &role(), &other, &past("ses_3", 1))
            .unwrap();
    });
    conflict(store, |tx| {
        tx.add_past_id(&agent(), &role(), &item, &past("ses_2", 2))
    });
    write(store, |tx| {
        tx.end_past_id(&agent(), &role(), &item, &end).unwrap();
        // The clock was set back; the order is that of the writes.
        tx.add_past_id(&agent(), &role(), &item, &past("ses_2", 0))
            .unwrap();
    });
    read(store, |tx| {
        let first = PastId {
            ended: Some(end),
            ..past("ses_1", 1)
        };
        let all = tx.past_ids(&agent(), &role(), &item).unwrap();
        assert_eq!(all, [first, past("ses_2", 0)]);
    });
}

pub fn links_and_closings_of_items_read_back(store: &mut dyn Store) {
    let link = |item: &str, closed: Option<i64>| ItemState {
        item: key(item),
        link: Some(ItemLink {
            root: key("issue:acme/web#6"),
            at: Timestamp(EPOCH),
            by: Some(id(1)),
        }),
        closed_at: closed.map(Timestamp),
    };
    let closed = ItemState {
        closed_at: Some(Timestamp(EPOCH)),
        ..ItemState::plain(key("issue:acme/web#6"))
    };
    let pr = link("pr:acme/web#9", Some(EPOCH));
    let branch = link("branch:acme/web:fix-6", None);
    write(store, |tx| {
        for state in [&closed, &pr, &branch] {
            tx.set_item_state(state).unwrap();
        }
    });
    read(store, |tx| {
        assert_eq!(tx.item_state(&pr.item).unwrap(), Some(pr.clone()));
        assert_eq!(tx.item_state(&closed.item).unwrap(), Some(closed.clone()));
        assert_eq!(tx.item_state(&key("issue:acme/web#60")).unwrap(), None);
        let linked = tx.items_linked_to(&closed.item).unwrap();
        assert_eq!(linked, [branch.clone(), pr.clone()]);
    });
    let unlinked = ItemState::plain(pr.item.clone());
    write(store, |tx| tx.set_item_state(&unlinked).unwrap());
    read(store, |tx| {
        assert_eq!(tx.item_state(&pr.item).unwrap(), Some(unlinked));
        assert_eq!(tx.items_linked_to(&closed.item).unwrap(), [branch]);
    });
}

pub fn roles_have_records_of_their_own(store: &mut dyn Store) {
    let item = key("issue:acme/web#6");
    let none = Conversation {
        role: WorkerRole::default(),
        ..conversation("issue:acme/web#6", "ses_1")
    };
    let reviewer = conversation("issue:acme/web#6", "ses_2");
    with(store, &[reviewer.clone(), none.clone()]);
    conflict(store, |tx| tx.insert_conversation(&none));
    write(store, |tx| {
        let past = |text: &str| PastId {
            native_id: native(text),
            from: Timestamp(EPOCH),
            by: Author::default(),
            ended: None,
        };
        for (role, id) in [(WorkerRole::default(), "ses_1"), (role(), "ses_2")] {
            tx.add_past_id(&agent(), &role, &item, &past(id)).unwrap();
        }
    });
    read(store, |tx| {
        for one in [&none, &reviewer] {
            let found = tx.conversation(&agent(), &one.role, &item).unwrap();
            assert_eq!(found.as_ref(), Some(one));
            let ids = tx.past_ids(&agent(), &one.role, &item).unwrap();
            assert_eq!(ids.len(), 1, "{ids:?}");
            let of_role = ConversationFilter {
                role: Some(one.role.clone()),
                ..ConversationFilter::default()
            };
            let listed = tx.list_conversations(&of_role).unwrap();
            assert_eq!(listed, std::slice::from_ref(one));
        }
        let all = tx.conversations_of(&item).unwrap();
        assert_eq!(all, [none.clone(), reviewer.clone()]);
    });
}
