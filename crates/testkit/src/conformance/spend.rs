//! What sessions used, by day.

use tenure_core::id::NativeId;
use tenure_core::key::Key;
use tenure_core::run::line::Tokens;
use tenure_core::session::{Closed, ClosedBy};
use tenure_core::spend::{DailySpend, Day, ReadMark};
use tenure_core::store::{SessionFilter, Store};
use tenure_core::time::Timestamp;
use tenure_core::transcript::Transcript;

use super::sample::*;

fn spend(n: u32, day: &str, item: Option<&str>, input: u64) -> DailySpend {
    DailySpend {
        session: id(n),
        source: "c-1".into(),
        day: Day::parse(day).unwrap(),
        item: item.map(|item| Key::stored(item).unwrap()),
        agent: agent(),
        tokens: Tokens { input, output: 7 },
        mark: ReadMark { end: 90, last: 40 },
    }
}

pub fn what_was_used_is_stored_by_day_and_item(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let first = spend(1, "2026-11-19", Some("wp:1"), 10);
    let other = spend(1, "2026-11-19", None, 5);
    let others = spend(2, "2026-11-19", Some("wp:1"), 3);
    let more = DailySpend {
        tokens: Tokens {
            input: 30,
            output: 9,
        },
        mark: ReadMark { end: 95, last: 90 },
        ..first.clone()
    };
    let subagents = DailySpend {
        source: "agent-1".into(),
        ..first.clone()
    };
    write(store, |tx| {
        for one in [&first, &other, &others, &more, &subagents] {
            tx.set_spend(one).unwrap();
        }
    });
    read(store, |tx| {
        let mut found = tx.spend_of(&[id(1)]).unwrap();
        found.sort_by_key(|one| (one.source.clone(), one.item.clone()));
        assert_eq!(found, [subagents.clone(), other.clone(), more.clone()]);
        assert_eq!(
            tx.spend_of(&[id(2), id(3)]).unwrap(),
            std::slice::from_ref(&others)
        );
    });
}

pub fn what_was_used_before_a_day_is_left_out(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let days = ["2026-09-30", "2026-10-01", "2026-11-19"];
    write(store, |tx| {
        for day in days {
            tx.set_spend(&spend(1, day, None, 1)).unwrap();
        }
    });
    read(store, |tx| {
        let from = |tx: &mut dyn tenure_core::store::Tx, day: &str| {
            let found = tx.spend_since(&Day::parse(day).unwrap()).unwrap();
            let mut found: Vec<String> = found.iter().map(|one| one.day.to_string()).collect();
            found.sort();
            found
        };
        assert_eq!(from(tx, "2026-10-01"), days[1..]);
        assert!(from(tx, "2026-11-20").is_empty());
    });
}

pub fn what_may_have_used_something_is_found(store: &mut dyn Store) {
    let mut sessions = [1, 2, 3].map(session);
    for (one, at) in sessions[1..].iter_mut().zip([5, 9]) {
        one.closed = closed(ClosedBy::End).map(|end| Closed {
            at: Timestamp(at),
            ..end
        });
    }
    let transcript = Transcript {
        path: "/t/a.jsonl".into(),
        session: id(1),
        native_id: NativeId::parse("a").unwrap(),
        at: Timestamp(5),
    };
    write(store, |tx| {
        for one in &sessions {
            tx.insert_session(one).unwrap();
        }
        tx.set_transcript(&transcript).unwrap();
    });
    read(store, |tx| {
        let filter = SessionFilter {
            open_since: Some(Timestamp(6)),
            ..SessionFilter::default()
        };
        let found = tx.list_sessions(&filter).unwrap();
        let found: Vec<_> = found.iter().map(|one| one.id).collect();
        assert_eq!(found, [id(3), id(1)]);
        let found = tx.transcripts_of_sessions(&[id(1), id(2)]).unwrap();
        assert_eq!(found, std::slice::from_ref(&transcript));
    });
}
