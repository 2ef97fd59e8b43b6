//! Bells: small files that wake waiters at the few commits that may matter to them.
//!
//! Every commit changes the log, so a waiter that watched the log would wake for every heartbeat of any
//! session. Instead, a commit that grants a key, ends a hold, moves a line or closes a session writes to the
//! bell of that key or session, right after the commit; waiters watch the bells of what they wait for. There
//! are 64. Sharing one wakes a waiter too often, never too rarely. All paths share one, because they can
//! overlap.
//!
//! A bell is created by the first waiter that needs it and stays. If there is none, no one has ever waited, and
//! ringing costs one failed open. It has no content: a waiter that is woken checks for itself.
//!
//! *Crash*: a committer that is killed between commit and bell, or cannot write it, wakes no one; a waiter
//! therefore also checks every few seconds. *Clock jump*: no clock is read. *Older version*: one without bells
//! does not open this schema.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use tenure_core::id::SessionId;
use tenure_core::key::Key;
use tenure_core::store::Topic;

use super::mark::open_plain;

const COUNT: u64 = 64;

/// The bells of one database.
#[derive(Debug)]
pub(super) struct Bells {
    dir: PathBuf,
}

impl Bells {
    /// The bells next to a database.
    pub(super) fn of(file: &Path) -> Self {
        let mut name = file.as_os_str().to_owned();
        name.push(".bells");
        Self {
            dir: PathBuf::from(name),
        }
    }

    /// The bells for these topics, created if they are missing.
    pub(super) fn hang(&self, about: &[Topic]) -> io::Result<Vec<PathBuf>> {
        match fs_err::create_dir(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let numbers: BTreeSet<u64> = about.iter().map(number_of).collect();
        let mut paths = Vec::new();
        for number in numbers {
            let path = self.path(number);
            let mut options = fs_err::OpenOptions::new();
            open_plain(options.create(true).append(true).mode(0o600), &path)?;
            paths.push(path);
        }
        Ok(paths)
    }

    /// Rings; a bell that cannot be rung costs its listeners a few seconds.
    pub(super) fn ring(&self, numbers: &BTreeSet<u64>) {
        for number in numbers {
            let bell = open_plain(fs_err::OpenOptions::new().write(true), &self.path(*number));
            if bell.and_then(|mut bell| bell.write_all(b".")).is_err() {
                // No one has ever listened, or the bell cannot be written.
            }
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{number:02}"))
    }
}

/// The bell of a key.
pub(super) fn of_key(key: &Key) -> u64 {
    match key.path_parts() {
        Some(_) => number("path:"),
        // Waiters wait for the canonical spelling of a key, even if an old one is stored.
        None => number(key.canonical().as_str()),
    }
}

/// The bell of a session.
pub(super) fn of_session(session: SessionId) -> u64 {
    number(&session.to_string())
}

fn number_of(topic: &Topic) -> u64 {
    match topic {
        Topic::Key(key) => of_key(key),
        Topic::Session(session) => of_session(*session),
    }
}

/// The same in every process and version: FNV-1a.
fn number(name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash % COUNT
}

#[cfg(test)]
mod tests {
    use tenure_core::claim::{EndedBy, HoldEnd};
    use tenure_core::id::{Epoch, Life, SessionToken};
    use tenure_core::line::NotedTurn;
    use tenure_core::session::{Activity, Closed, ClosedBy, Doing};
    use tenure_core::store::{Mode, NewWaiter, Store, StoreWatch, Tx};
    use tenure_core::time::Timestamp;
    use tenure_testkit::conformance::sample::{EPOCH, clock, hold, id, key, process, session};

    use super::super::SqliteStore;
    use super::*;

    /// The bell of a topic.
    fn bell(store: &mut SqliteStore, topic: Topic) -> PathBuf {
        match store.watch(Some(&[topic])) {
            StoreWatch::Files {
                only: Some(mut bells),
                ..
            } if bells.len() == 1 => bells.remove(0),
            other => panic!("one bell: {other:?}"),
        }
    }

    /// How often the bell of a topic rang while something was committed.
    fn rings(store: &mut SqliteStore, topic: Topic, act: impl FnOnce(&mut dyn Tx)) -> u64 {
        let bell = bell(store, topic);
        // It never contains more than the one byte that ringing writes.
        fs_err::write(&bell, "").unwrap();
        let mut tx = store.begin(Mode::Write).unwrap();
        act(tx.as_mut());
        tx.commit().unwrap();
        fs_err::metadata(bell).unwrap().len()
    }

    #[test]
    fn a_bell_rings_for_what_may_matter_and_for_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::open(&dir.path().join("tenure.db"), clock()).unwrap();
        let wanted = || Topic::Key(key("wp:a"));
        let me = || Topic::Session(id(1));
        rings(&mut store, me(), |tx| {
            tx.insert_session(&session(1)).unwrap();
        });
        let one = hold("wp:a", 1, 1);
        let granted = rings(&mut store, wanted(), |tx| {
            tx.insert_hold(&one, Epoch::NONE).unwrap();
        });
        assert_eq!(granted, 1, "a grant");
        let process = process(2, 1);
        let mut ticket = None;
        let joined = rings(&mut store, wanted(), |tx| {
            let waiter = NewWaiter {
                session: None,
                process: &process,
                since: Timestamp(EPOCH),
            };
            ticket = Some(tx.join_line(&[key("wp:a")], &waiter).unwrap());
        });
        assert_eq!(joined, 0, "one that comes last moves nobody");
        let token = SessionToken {
            id: id(1),
            life: Life::FIRST,
        };
        for topic in [wanted(), me()] {
            let beat = rings(&mut store, topic, |tx| {
                let lease = session(1).lease;
                let touched = tx.touch_session(token, Timestamp(EPOCH + 1), &lease, None, None);
                assert!(touched.unwrap());
            });
            assert_eq!(beat, 0, "a heartbeat");
        }
        let turn = NotedTurn {
            epoch: Epoch(1),
            until: None,
        };
        let noted = rings(&mut store, wanted(), |tx| {
            tx.set_turn(ticket.unwrap(), &key("wp:a"), None, &turn)
                .unwrap();
        });
        assert_eq!(noted, 1, "a turn");
        let left = rings(&mut store, wanted(), |tx| {
            tx.leave_line(ticket.unwrap()).unwrap();
        });
        assert_eq!(left, 1, "a waiter that leaves");
        let ended = rings(&mut store, wanted(), |tx| {
            let end = HoldEnd {
                at: Timestamp(EPOCH),
                by: EndedBy::Release,
            };
            tx.end_hold(&key("wp:a"), Epoch(1), end).unwrap();
        });
        assert_eq!(ended, 1, "the end of a hold");
        let mut closed = store
            .begin(Mode::Read)
            .unwrap()
            .session(id(1))
            .unwrap()
            .unwrap();
        closed.closed = Some(Closed {
            at: Timestamp(EPOCH),
            by: ClosedBy::End,
            why: "x".into(),
            kind: ClosedBy::End.usual_kind(),
            dismissed_at: None,
        });
        let over = rings(&mut store, me(), |tx| tx.update_session(&closed).unwrap());
        assert_eq!(over, 1, "the end of a session");
    }

    #[test]
    fn nothing_rings_that_is_not_committed() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::open(&dir.path().join("tenure.db"), clock()).unwrap();
        let bell = bell(&mut store, Topic::Key(key("wp:a")));
        let mut tx = store.begin(Mode::Write).unwrap();
        tx.insert_session(&session(1)).unwrap();
        tx.insert_hold(&hold("wp:a", 1, 1), Epoch::NONE).unwrap();
        drop(tx);
        assert_eq!(fs_err::metadata(bell).unwrap().len(), 0);
    }

    #[test]
    fn who_waits_for_any_change_is_not_woken_by_heartbeats() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::open(&dir.path().join("tenure.db"), clock()).unwrap();
        let StoreWatch::Files {
            only: Some(only), ..
        } = store.watch(None)
        else {
            panic!("there is a mark to watch");
        };
        let [mark] = only.as_slice() else {
            panic!("one file: {only:?}");
        };
        let was_written = |store: &mut SqliteStore, mode, act: &dyn Fn(&mut dyn Tx)| {
            let before = fs_err::read(mark).unwrap();
            let mut tx = store.begin(mode).unwrap();
            act(tx.as_mut());
            tx.commit().unwrap();
            fs_err::read(mark).unwrap() != before
        };
        let token = SessionToken {
            id: id(1),
            life: Life::FIRST,
        };
        let touch = |tx: &mut dyn Tx, activity: Option<&Activity>| {
            let lease = session(1).lease;
            let touched = tx.touch_session(token, Timestamp(EPOCH + 1), &lease, activity, None);
            assert!(touched.unwrap());
        };
        assert!(was_written(&mut store, Mode::Write, &|tx| {
            tx.insert_session(&session(1)).unwrap();
        }));
        assert!(!was_written(&mut store, Mode::Beat, &|tx| touch(tx, None)));
        let idle = Activity::new(Doing::Idle, Timestamp(EPOCH + 1));
        assert!(was_written(&mut store, Mode::Beat, &|tx| touch(
            tx,
            Some(&idle)
        )));
        assert!(was_written(&mut store, Mode::Write, &|tx| {
            tx.add_doubt(id(1), token).unwrap();
        }));
        assert!(!was_written(&mut store, Mode::Write, &|tx| {
            assert!(tx.session(id(1)).unwrap().is_some());
        }));
        fs_err::remove_file(mark).unwrap();
        let every = StoreWatch::Files {
            dir: dir.path().canonicalize().unwrap(),
            only: None,
        };
        assert_eq!(
            store.watch(None),
            every,
            "without a mark every commit wakes"
        );
    }

    #[test]
    fn all_paths_have_one_bell() {
        let one = of_key(&key("path:acme/web:src/**"));
        assert_eq!(one, of_key(&key("path:/srv/web/.git:src/db/x.rs")));
    }
}
