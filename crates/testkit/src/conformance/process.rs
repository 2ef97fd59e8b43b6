//! Processes of sessions, and their lives.

use tenure_core::id::{HostId, Life, SessionToken};
use tenure_core::process::{BootId, Process, StartTicks};
use tenure_core::session::{ClosedBy, Session};
use tenure_core::store::{ProcessPlace, Store, Tx};
use tenure_core::time::Timestamp;

use super::sample::*;

fn in_process(n: u32, process: &Process) -> Session {
    Session {
        process: Some(process.clone()),
        ..session(n)
    }
}

fn found_at(store: &mut dyn Store, process: &Process) -> Vec<Session> {
    read(store, |tx| {
        tx.sessions_at_any(&[ProcessPlace::from(process)]).unwrap()
    })
}

fn lives_of(tx: &mut dyn Tx, process: &Process) -> Vec<(SessionToken, Process)> {
    tx.lives_at_any(&[ProcessPlace::from(process)]).unwrap()
}

pub fn two_open_sessions_never_share_a_process(store: &mut dyn Store) {
    let one = process(7, 100);
    write(store, |tx| tx.insert_session(&in_process(1, &one)).unwrap());
    conflict(store, |tx| tx.insert_session(&in_process(2, &one)));
    write(store, |tx| {
        tx.insert_session(&in_process(2, &process(8, 100))).unwrap();
    });
    conflict(store, |tx| tx.update_session(&in_process(2, &one)));
}

pub fn hosted_sessions_share_a_process(store: &mut dyn Store) {
    let one = process(7, 100);
    write(store, |tx| {
        for n in 1..=3 {
            let hosted = Session {
                hosted: n > 1,
                ..in_process(n, &one)
            };
            tx.insert_session(&hosted).unwrap();
        }
    });
    assert_eq!(found_at(store, &one).len(), 3);
}

pub fn sessions_are_found_by_the_daemon_of_their_conversation(store: &mut dyn Store) {
    let daemon = process(9, 50);
    let at = [process(7, 100), process(8, 110)];
    let below = |n: u32, window: &Process| Session {
        hosted: true,
        native_id: Some(native(&format!("ses_{n}"))),
        daemon: Some(daemon.clone()),
        ..in_process(n, window)
    };
    let over = Session {
        closed: closed(ClosedBy::Death),
        ..below(3, &at[1])
    };
    write(store, |tx| {
        for session in [&below(1, &at[0]), &below(2, &at[1]), &over] {
            tx.insert_session(session).unwrap();
        }
        tx.insert_session(&in_process(4, &process(10, 120)))
            .unwrap();
    });
    let below_daemon = |store: &mut dyn Store| {
        read(store, |tx| {
            assert_eq!(tx.sessions_below_any(&[]).unwrap(), []);
            tx.sessions_below_any(&[ProcessPlace::from(&daemon)])
                .unwrap()
        })
    };
    assert_eq!(below_daemon(store), [below(2, &at[1]), below(1, &at[0])]);
    assert_eq!(found_at(store, &daemon), []);
    assert_eq!(found_at(store, &at[0]), [below(1, &at[0])]);
    let moved = Session {
        daemon: None,
        ..below(1, &at[0])
    };
    write(store, |tx| tx.update_session(&moved).unwrap());
    let ids: Vec<_> = below_daemon(store).iter().map(|one| one.id).collect();
    assert_eq!(ids, [id(2)]);
}

pub fn a_process_hosts_a_conversation_once(store: &mut dyn Store) {
    let one = process(7, 100);
    let hosts = |n, text| Session {
        hosted: true,
        native_id: Some(native(text)),
        ..in_process(n, &one)
    };
    write(store, |tx| {
        tx.insert_session(&hosts(1, "ses_1")).unwrap();
        tx.insert_session(&hosts(2, "ses_2")).unwrap();
        let elsewhere = Session {
            process: Some(process(8, 100)),
            ..hosts(3, "ses_1")
        };
        tx.insert_session(&elsewhere).unwrap();
    });
    conflict(store, |tx| tx.insert_session(&hosts(4, "ses_1")));
    conflict(store, |tx| tx.update_session(&hosts(2, "ses_1")));
    write(store, |tx| {
        let over = Session {
            closed: closed(ClosedBy::End),
            ..hosts(1, "ses_1")
        };
        tx.update_session(&over).unwrap();
        tx.update_session(&hosts(2, "ses_1")).unwrap();
    });
}

pub fn a_closed_session_gives_its_process_free(store: &mut dyn Store) {
    let one = process(7, 100);
    let over = Session {
        closed: closed(ClosedBy::Moved),
        ..in_process(1, &one)
    };
    write(store, |tx| {
        tx.insert_session(&over).unwrap();
        tx.insert_session(&in_process(2, &one)).unwrap();
    });
    assert_eq!(found_at(store, &one), [in_process(2, &one)]);
    let open_again = Session {
        closed: None,
        ..over
    };
    conflict(store, |tx| tx.update_session(&open_again));
}

pub fn a_place_is_all_of_its_coordinates(store: &mut dyn Store) {
    let base = process(7, 100);
    let mut others = vec![base.clone(); 5];
    others[0].host = HostId::new("host-two");
    others[1].boot = BootId {
        id: "boot-two".into(),
        private: false,
    };
    others[2].boot.private = true;
    others[3].pid_ns = 1;
    others[4].pid = 8;
    write(store, |tx| {
        tx.insert_session(&in_process(1, &base)).unwrap();
        for (n, other) in (2..).zip(&others) {
            tx.insert_session(&in_process(n, other)).unwrap();
            let token = token(n);
            tx.insert_life(token, other, Timestamp(EPOCH)).unwrap();
        }
    });
    assert_eq!(found_at(store, &base), [in_process(1, &base)]);
    read(store, |tx| {
        for (n, other) in (2..).zip(&others) {
            let lives = lives_of(tx, other);
            assert_eq!(lives, [(token(n), other.clone())]);
        }
        assert_eq!(lives_of(tx, &base), []);
    });
}

pub fn sessions_are_found_by_place_whatever_the_start(store: &mut dyn Store) {
    write(store, |tx| {
        tx.insert_session(&in_process(1, &process(7, 100))).unwrap();
        tx.insert_session(&in_process(2, &process(7, 999))).unwrap();
    });
    assert_eq!(found_at(store, &process(7, 5)).len(), 2);
    assert_eq!(found_at(store, &process(9, 100)), []);
}

pub fn many_places_are_looked_at_together(store: &mut dyn Store) {
    let at: Vec<Process> = (5..=9).map(|pid| process(pid, 100)).collect();
    let hosted = |n, process| Session {
        hosted: true,
        native_id: Some(native(&format!("ses_{n}"))),
        ..in_process(n, process)
    };
    let over = Session {
        closed: closed(ClosedBy::End),
        ..in_process(4, &at[2])
    };
    // Two at the first position, one at the second, a closed one at the third, none at the last.
    let all = [
        hosted(1, &at[0]),
        in_process(2, &at[1]),
        hosted(3, &at[0]),
        over,
        in_process(5, &at[3]),
    ];
    write(store, |tx| {
        for (n, session) in (1..).zip(&all) {
            tx.insert_session(session).unwrap();
            let process = session.process.as_ref().unwrap();
            let at = Timestamp(EPOCH + i64::from(n));
            tx.insert_life(token(n), process, at).unwrap();
        }
    });
    let wanted: Vec<ProcessPlace<'_>> = [0, 1, 2, 4].map(|n| (&at[n]).into()).into();
    read(store, |tx| {
        assert_eq!(tx.sessions_at_any(&[]).unwrap(), []);
        assert_eq!(tx.lives_at_any(&[]).unwrap(), []);
        let found = tx.sessions_at_any(&wanted).unwrap();
        let at_first = found
            .iter()
            .filter(|one| one.process.as_ref() == Some(&at[0]));
        let at_first: Vec<_> = at_first.map(|session| session.id).collect();
        assert_eq!(at_first, [id(3), id(1)], "of one place the newest first");
        let mut ids: Vec<_> = found.iter().map(|session| session.id).collect();
        ids.sort();
        assert_eq!(ids, [id(1), id(2), id(3)]);
        let lives = tx.lives_at_any(&wanted).unwrap();
        let at_first = lives.iter().filter(|(_, process)| *process == at[0]);
        let at_first: Vec<_> = at_first.map(|(token, _)| *token).collect();
        assert_eq!(at_first, [token(3), token(1)]);
        let mut lived: Vec<_> = lives.iter().map(|(token, _)| token.id).collect();
        lived.sort();
        assert_eq!(lived, [id(1), id(2), id(3), id(4)]);
    });
}

pub fn lives_stay_for_ever_the_newest_first(store: &mut dyn Store) {
    let over = Session {
        closed: closed(ClosedBy::Death),
        ..session(1)
    };
    let second = SessionToken {
        id: id(1),
        life: Life(2),
    };
    write(store, |tx| {
        tx.insert_session(&over).unwrap();
        tx.insert_life(token(1), &process(7, 100), Timestamp(EPOCH))
            .unwrap();
        tx.insert_life(second, &process(7, 200), Timestamp(EPOCH + 1))
            .unwrap();
    });
    read(store, |tx| {
        let lives = lives_of(tx, &process(7, 0));
        assert_eq!(
            lives,
            [(second, process(7, 200)), (token(1), process(7, 100))]
        );
    });
}

pub fn lives_of_a_session_are_listed_up_to_one_the_newest_first(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let life = |number: u32| SessionToken {
        id: id(1),
        life: Life(number),
    };
    let at = |number: u32| process(7, 100 * u64::from(number));
    write(store, |tx| {
        for number in 1..=4 {
            tx.insert_life(life(number), &at(number), Timestamp(EPOCH))
                .unwrap();
        }
        tx.insert_life(token(2), &process(8, 1), Timestamp(EPOCH))
            .unwrap();
    });
    read(store, |tx| {
        let all = |numbers: &[u32]| -> Vec<(Life, Process)> {
            let one = |number: &u32| (Life(*number), at(*number));
            numbers.iter().map(one).collect()
        };
        assert_eq!(tx.lives_up_to(life(3), 0).unwrap(), all(&[3, 2, 1]));
        assert_eq!(tx.lives_up_to(life(9), 2).unwrap(), all(&[4, 3]));
        assert_eq!(tx.lives_up_to(token(3), 0).unwrap(), []);
    });
}

pub fn a_life_is_recorded_once(store: &mut dyn Store) {
    with_sessions(store, [1]);
    write(store, |tx| {
        tx.insert_life(token(1), &process(7, 100), Timestamp(EPOCH))
            .unwrap();
    });
    conflict(store, |tx| {
        tx.insert_life(token(1), &process(8, 100), Timestamp(EPOCH))
    });
}

pub fn large_kernel_numbers_read_back(store: &mut dyn Store) {
    let odd = Process {
        pid_ns: u64::MAX,
        pid: u32::MAX,
        start: StartTicks {
            ticks: u64::MAX - 1,
            shifted: true,
        },
        ..process(1, 1)
    };
    write(store, |tx| {
        tx.insert_session(&in_process(1, &odd)).unwrap();
        tx.insert_life(token(1), &odd, Timestamp(i64::MIN)).unwrap();
    });
    assert_eq!(found_at(store, &odd), [in_process(1, &odd)]);
    read(store, |tx| {
        let lives = lives_of(tx, &odd);
        assert_eq!(lives, [(token(1), odd.clone())]);
    });
}
