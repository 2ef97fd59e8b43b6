//! Processes of sessions, and their lives.

use tenure_core::id::{HostId, Life, SessionToken};
use tenure_core::process::{BootId, Process, StartTicks};
use tenure_core::session::{ClosedBy, Session};
use tenure_core::store::{ProcessPlace, Store};
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
        tx.sessions_at(ProcessPlace::from(process)).unwrap()
    })
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
            let lives = tx.lives_at(ProcessPlace::from(other)).unwrap();
            assert_eq!(lives, [(token(n), other.clone())]);
        }
        assert_eq!(tx.lives_at(ProcessPlace::from(&base)).unwrap(), []);
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
        let lives = tx.lives_at(ProcessPlace::from(&process(7, 0))).unwrap();
        assert_eq!(
            lives,
            [(second, process(7, 200)), (token(1), process(7, 100))]
        );
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
        let lives = tx.lives_at(ProcessPlace::from(&odd)).unwrap();
        assert_eq!(lives, [(token(1), odd.clone())]);
    });
}
