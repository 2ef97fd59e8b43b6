//! Small files that wake waiters at the few commits that may matter to them.
//!
//! Every commit changes the log, so a waiter that watched the log would wake for every heartbeat of any
//! session. Instead, a commit that grants a key, ends a hold, moves a line or closes a session writes to the
//! file of that key or session, right after the commit; waiters watch the files of what they wait for. There
//! are 64. Sharing one wakes a waiter too often, never too rarely. All paths share one, because they can
//! overlap.
//!
//! A file is created by the first waiter that needs it and stays. If there is none, no one has ever waited, and
//! waking costs one failed open. It has no content: a waiter that is woken checks for itself.
//!
//! *Crash*: a committer that is killed between commit and write, or cannot write, wakes no one; a waiter
//! therefore also checks every few seconds. *Clock jump*: no clock is read. *Older version*: one without these files
//! does not open this schema.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use tenure_core::id::SessionId;
use tenure_core::ignore::Ignore;
use tenure_core::key::Key;
use tenure_core::store::WaitTopic;

use super::mark::open_plain;

const COUNT: u64 = 64;

/// The wake files of one database.
#[derive(Debug)]
pub(super) struct WakeFiles {
    dir: PathBuf,
}

impl WakeFiles {
    /// The wake files next to a database.
    pub(super) fn of(file: &Path) -> Self {
        let mut name = file.as_os_str().to_owned();
        name.push(".bells");
        Self {
            dir: PathBuf::from(name),
        }
    }

    /// The wake files for these topics, created if they are missing.
    pub(super) fn create(&self, about: &[WaitTopic]) -> io::Result<Vec<PathBuf>> {
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

    /// Wakes; a file that cannot be written costs its waiters a few seconds.
    pub(super) fn wake(&self, numbers: &BTreeSet<u64>) {
        for number in numbers {
            let wake_file = open_plain(fs_err::OpenOptions::new().write(true), &self.path(*number));
            wake_file
                .and_then(|mut wake_file| wake_file.write_all(b"."))
                .ignore("no one has ever listened, or the file cannot be written");
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{number:02}"))
    }
}

/// The wake file of a key.
pub(super) fn of_key(key: &Key) -> u64 {
    match key.path_parts() {
        Some(_) => number("path:"),
        // Waiters wait for the canonical spelling of a key, even if an old one is stored.
        None => number(key.canonical().as_str()),
    }
}

/// The wake file of a session.
pub(super) fn of_session(session: SessionId) -> u64 {
    number(&session.to_string())
}

fn number_of(topic: &WaitTopic) -> u64 {
    match topic {
        WaitTopic::Key(key) => of_key(key),
        WaitTopic::Session(session) => of_session(*session),
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
    use tenure_core::store::{NewWaiter, Store, StoreWatch, Tx, TxMode};
    use tenure_core::time::Timestamp;
    use tenure_testkit::conformance::sample::{EPOCH, clock, hold, id, key, process, session};

    use super::super::SqliteStore;
    use super::*;

    /// The wake file of a topic.
    fn wake_file(store: &mut SqliteStore, topic: WaitTopic) -> PathBuf {
        match store.watch(Some(&[topic])) {
            StoreWatch::Files {
                only: Some(mut wake_files),
                ..
            } if wake_files.len() == 1 => wake_files.remove(0),
            other => panic!("one wake file: {other:?}"),
        }
    }

    /// How often the wake file of a topic was written while something was committed.
    fn wakes(store: &mut SqliteStore, topic: WaitTopic, act: impl FnOnce(&mut dyn Tx)) -> u64 {
        let wake_file = wake_file(store, topic);
        // It never contains more than the one byte that waking writes.
        fs_err::write(&wake_file, "").unwrap();
        let mut tx = store.begin(TxMode::Write).unwrap();
        act(tx.as_mut());
        tx.commit().unwrap();
        fs_err::metadata(wake_file).unwrap().len()
    }

    #[test]
    fn a_wake_file_is_written_for_what_may_matter_and_for_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::open(&dir.path().join("tenure.db"), clock()).unwrap();
        let wanted = || WaitTopic::Key(key("wp:a"));
        let me = || WaitTopic::Session(id(1));
        wakes(&mut store, me(), |tx| {
            tx.insert_session(&session(1)).unwrap();
        });
        let one = hold("wp:a", 1, 1);
        let granted = wakes(&mut store, wanted(), |tx| {
            tx.insert_hold(&one, Epoch::NONE).unwrap();
        });
        assert_eq!(granted, 1, "a grant");
        let process = process(2, 1);
        let mut ticket = None;
        let joined = wakes(&mut store, wanted(), |tx| {
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
            let beat = wakes(&mut store, topic, |tx| {
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
        let noted = wakes(&mut store, wanted(), |tx| {
            tx.set_turn(ticket.unwrap(), &key("wp:a"), None, &turn)
                .unwrap();
        });
        assert_eq!(noted, 1, "a turn");
        let left = wakes(&mut store, wanted(), |tx| {
            tx.leave_line(ticket.unwrap()).unwrap();
        });
        assert_eq!(left, 1, "a waiter that leaves");
        let ended = wakes(&mut store, wanted(), |tx| {
            let end = HoldEnd {
                at: Timestamp(EPOCH),
                by: EndedBy::Release,
            };
            tx.end_hold(&key("wp:a"), Epoch(1), end).unwrap();
        });
        assert_eq!(ended, 1, "the end of a hold");
        let mut closed = store
            .begin(TxMode::Read)
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
        let over = wakes(&mut store, me(), |tx| tx.update_session(&closed).unwrap());
        assert_eq!(over, 1, "the end of a session");
    }

    #[test]
    fn nothing_wakes_that_is_not_committed() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::open(&dir.path().join("tenure.db"), clock()).unwrap();
        let wake_file = wake_file(&mut store, WaitTopic::Key(key("wp:a")));
        let mut tx = store.begin(TxMode::Write).unwrap();
        tx.insert_session(&session(1)).unwrap();
        tx.insert_hold(&hold("wp:a", 1, 1), Epoch::NONE).unwrap();
        drop(tx);
        assert_eq!(fs_err::metadata(wake_file).unwrap().len(), 0);
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
        assert!(was_written(&mut store, TxMode::Write, &|tx| {
            tx.insert_session(&session(1)).unwrap();
        }));
        assert!(!was_written(&mut store, TxMode::Beat, &|tx| touch(
            tx, None
        )));
        let idle = Activity::new(Doing::Idle, Timestamp(EPOCH + 1));
        assert!(was_written(&mut store, TxMode::Beat, &|tx| touch(
            tx,
            Some(&idle)
        )));
        assert!(was_written(&mut store, TxMode::Write, &|tx| {
            tx.add_doubt(id(1), token).unwrap();
        }));
        assert!(!was_written(&mut store, TxMode::Write, &|tx| {
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
    fn all_paths_have_one_wake_file() {
        let one = of_key(&key("path:acme/web:src/**"));
        assert_eq!(one, of_key(&key("path:/srv/web/.git:src/db/x.rs")));
    }
}
