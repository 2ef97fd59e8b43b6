//! Waiting in line.

use tenure_core::id::{Epoch, SessionToken, Ticket};
use tenure_core::line::NotedTurn;
use tenure_core::store::{NewWaiter, Store};
use tenure_core::time::Timestamp;

use super::sample::{conflict, id, key, process, read, with_sessions, write};

fn join(store: &mut dyn Store, keys: &[&str], n: u32) -> Ticket {
    let keys: Vec<_> = keys.iter().map(|name| key(name)).collect();
    let process = process(n, 1);
    write(store, |tx| {
        let waiter = NewWaiter {
            session: Some(SessionToken {
                id: id(n),
                life: tenure_core::id::Life::FIRST,
            }),
            process: &process,
            since: Timestamp(i64::from(n)),
        };
        tx.join_line(&keys, &waiter).unwrap()
    })
}

fn line(store: &mut dyn Store, name: &str) -> Vec<Ticket> {
    read(store, |tx| {
        let line = tx.line(&key(name)).unwrap();
        line.into_iter().map(|waiter| waiter.ticket).collect()
    })
}

pub fn waiters_stand_in_order_of_arrival_for_all_their_keys(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let first = join(store, &["wp:b", "wp:a"], 1);
    let second = join(store, &["wp:a", "wp:b"], 2);
    assert!(first < second);
    assert_eq!(line(store, "wp:a"), [first, second]);
    assert_eq!(line(store, "wp:b"), [first, second]);
    assert!(line(store, "wp:c").is_empty());
    read(store, |tx| {
        let waits = tx.waits_of(&[id(2)]).unwrap();
        assert_eq!(waits.len(), 2);
        assert_eq!(waits[0].process, process(2, 1));
        assert_eq!(
            (waits[0].since, waits[0].turn.clone()),
            (Timestamp(2), None)
        );
    });
}

pub fn a_waiter_that_leaves_is_in_no_line_and_its_ticket_is_not_used_again(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let first = join(store, &["wp:a", "wp:b"], 1);
    write(store, |tx| tx.leave_line(first).unwrap());
    write(store, |tx| tx.leave_line(first).unwrap());
    assert!(line(store, "wp:a").is_empty() && line(store, "wp:b").is_empty());
    assert!(join(store, &["wp:a"], 2) > first);
}

pub fn a_turn_is_noted_for_an_epoch_in_the_place_of_the_one_that_was_seen(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let ticket = join(store, &["wp:a", "wp:b"], 1);
    let until = read(store, |tx| {
        tx.now().unwrap().after(std::time::Duration::from_secs(1))
    });
    let stored = |store: &mut dyn Store| {
        read(store, |tx| {
            let waits = tx.waits_at(ticket).unwrap();
            assert_eq!(waits[0], tx.line(&key("wp:a")).unwrap()[0]);
            let turns = waits.into_iter().map(|waiter| waiter.turn);
            turns.collect::<Vec<_>>()
        })
    };
    let mut before: Option<NotedTurn> = None;
    for until in [Some(until), None] {
        let turn = NotedTurn {
            epoch: Epoch(3),
            until,
        };
        write(store, |tx| {
            tx.set_turn(ticket, &key("wp:a"), before.as_ref(), &turn)
                .unwrap();
        });
        conflict(store, |tx| {
            tx.set_turn(ticket, &key("wp:a"), before.as_ref(), &turn)
        });
        assert_eq!(stored(store), [Some(turn.clone()), None]);
        before = Some(turn);
    }
    let unknown = Ticket(ticket.0 + 1);
    let turn = before.unwrap();
    conflict(store, |tx| tx.set_turn(unknown, &key("wp:a"), None, &turn));
    assert!(read(store, |tx| tx.waits_at(unknown).unwrap()).is_empty());
}
