//! A store that holds its users to the order of locks, whatever the backend behind it does.
//!
//! A backend with one writer at a time forgives everything that a backend with row locks punishes with a
//! deadlock, a lost update or a decision on what is no longer true, and then only once in a while. This one
//! punishes at once: it panics, with what the transaction did so far, where one
//! - locks something that comes before what it has locked already (see [`Lock`]);
//! - locks something after it asked for the time;
//! - writes a row that it did not lock, and that other writers decide by;
//! - writes while it only reads, or more than heartbeats in a heartbeat;
//! - reads much of the log while it writes, and so keeps the other writers waiting.

mod jobs;
mod replies;
mod rows;
mod runs;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tenure_core::claim::{EndedBy, Hold, HoldEnd};
use tenure_core::event::EventFilter;
use tenure_core::id::{RunId, SessionId};
use tenure_core::key::Key;
use tenure_core::store::{Lock, Mode, Store, StoreError, StoreWatch, Topic, Tx};
use tenure_core::time::{Now, Timestamp};

/// How many entries of the log a writer may read.
const MOST_EVENTS: usize = 64;

/// A store that watches how another one is used.
pub struct RecordingStore<S> {
    store: S,
    /// Whether it says that several machines use it.
    pub is_shared: bool,
    /// How often it was asked who is, or was, at places of processes.
    pub lookups: Rc<Cell<usize>>,
    /// A key whose holds cannot be read.
    pub unreadable: Option<Key>,
    /// What somebody else does, and before which transaction from now on.
    meanwhile: Option<(usize, Act<S>)>,
}

/// What is done to a store; if it fails, so does the transaction that follows.
type Act<S> = Box<dyn FnOnce(&mut S) -> Result<(), StoreError>>;

impl<S: Store> RecordingStore<S> {
    /// Watches how this one is used.
    pub fn new(store: S) -> Self {
        Self {
            is_shared: store.is_shared(),
            store,
            lookups: Rc::default(),
            unreadable: None,
            meanwhile: None,
        }
    }

    /// The store behind it, for what a test does beside the use cases.
    pub fn inner(&mut self) -> &mut S {
        &mut self.store
    }

    /// Lets somebody else do this right before one of the next transactions; the next one is 1.
    pub fn meanwhile(&mut self, before: usize, act: impl FnOnce(&mut S) + 'static) {
        let act = |store: &mut S| {
            act(store);
            Ok(())
        };
        self.meanwhile = Some((before, Box::new(act)));
    }

    /// Answers one of the next transactions as busy; the next one is 1.
    pub fn busy_at(&mut self, transaction: usize) {
        let busy = |store: &mut S| {
            Err(StoreError::Busy {
                store: store.location(),
            })
        };
        self.meanwhile = Some((transaction, Box::new(busy)));
    }

    /// Whether what somebody else was to do is still to be done; it is not done any more.
    pub fn take_worktree_changes(&mut self) -> bool {
        self.meanwhile.take().is_some()
    }
}

impl<S: Store> Store for RecordingStore<S> {
    fn begin_until(
        &mut self,
        mode: Mode,
        until: Option<Instant>,
    ) -> Result<Box<dyn Tx + '_>, StoreError> {
        if let Some((before, act)) = self.meanwhile.take() {
            match before {
                0 | 1 => act(&mut self.store)?,
                later => self.meanwhile = Some((later - 1, act)),
            }
        }
        Ok(Box::new(RecordingTx {
            unreadable: self.unreadable.clone(),
            store: self.store.location(),
            tx: self.store.begin_until(mode, until)?,
            mode,
            locked: BTreeSet::new(),
            born: Vec::new(),
            born_runs: Vec::new(),
            lookups: Rc::clone(&self.lookups),
            asked_the_time: false,
            story: vec![format!("begin {mode:?}")],
        }))
    }

    fn locks_rows(&self) -> bool {
        true
    }

    fn changes(&mut self) -> Result<u64, StoreError> {
        self.store.changes()
    }

    fn watch(&mut self, _: Option<&[Topic]>) -> StoreWatch {
        // As one does that is on another machine.
        let every = Duration::from_millis(20);
        StoreWatch::Poll { every }
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn location(&self) -> String {
        self.store.location()
    }
}

/// A transaction that is watched.
struct RecordingTx<'a> {
    tx: Box<dyn Tx + 'a>,
    store: String,
    unreadable: Option<Key>,
    mode: Mode,
    locked: BTreeSet<Lock>,
    /// Sessions that it made; nobody else sees them.
    born: Vec<SessionId>,
    /// Runs that it made.
    born_runs: Vec<RunId>,
    lookups: Rc<Cell<usize>>,
    asked_the_time: bool,
    /// What it locked, asked and wrote, in order.
    story: Vec<String>,
}

impl RecordingTx<'_> {
    #[track_caller]
    fn fail(&self, why: &str) -> ! {
        panic!(
            "{why}\nthe transaction so far:\n  {}",
            self.story.join("\n  ")
        );
    }

    /// Takes a lock, in its turn.
    #[track_caller]
    fn takes(&mut self, lock: &Lock) {
        if self.locked.contains(lock) {
            return;
        }
        self.story.push(format!("lock {lock:?}"));
        if self.mode != Mode::Write {
            self.fail("it locks and does not write");
        }
        if self.asked_the_time {
            self.fail("a lock after the time was asked for");
        }
        if let Some(later) = self.locked.last().filter(|last| *last > lock) {
            self.fail(&format!("{lock:?} comes before {later:?}"));
        }
        self.locked.insert(lock.clone());
    }

    /// Reads the log. A writer asks for a few of the newest entries; a time costs it all that the session ever did.
    #[track_caller]
    fn reads_log(&mut self, filter: &EventFilter) {
        let is_bounded = (1..=MOST_EVENTS).contains(&filter.limit) && filter.since.is_none();
        if self.mode != Mode::Read && !is_bounded {
            self.fail(&format!("a writer reads the log: {filter:?}"));
        }
    }

    /// Writes something that only this transaction's own session decides by.
    #[track_caller]
    fn beats(&mut self, what: &str) {
        self.story.push(what.to_owned());
        if self.mode == Mode::Read {
            self.fail("it writes in a transaction for reading");
        }
    }

    /// Writes something that nobody locks.
    #[track_caller]
    fn writes(&mut self, what: &str) {
        self.beats(what);
        if self.mode == Mode::Beat {
            self.fail("it writes more than a heartbeat");
        }
    }

    /// Writes something that must be locked.
    #[track_caller]
    fn needs(&mut self, what: &str, locks: impl IntoIterator<Item = Lock>) {
        self.writes(what);
        for lock in locks {
            let is_own = match &lock {
                Lock::Session(id) => self.born.contains(id),
                Lock::Run(id) => self.born_runs.contains(id),
                _ => false,
            };
            if !is_own && !self.locked.contains(&lock) {
                self.fail(&format!("{what} without {lock:?}"));
            }
        }
    }

    /// What a session holds, if it can be read.
    fn held_by(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError> {
        let held = self.tx.open_holds(session)?;
        match &self.unreadable {
            Some(key) if held.iter().any(|hold| hold.key == *key) => Err(StoreError::Damaged {
                store: self.store.clone(),
                why: format!("the hold of {key} cannot be read"),
            }),
            _ => Ok(held),
        }
    }

    /// A grant: its key, the space beside it if the key is one of paths, and the session that gets it.
    #[track_caller]
    fn grants(&mut self, hold: &Hold) {
        let space = hold.key.path_parts();
        let space = space.map(|(name, _)| Lock::Paths(name.to_owned()));
        let (key, session) = (Lock::Key(hold.key.clone()), Lock::Session(hold.session));
        self.needs("insert_hold", space.into_iter().chain([key, session]));
    }

    /// The end of a hold: its key. Who lost it by its lease must not have renewed that meanwhile.
    #[track_caller]
    fn ends(&mut self, key: &Key, end: HoldEnd) -> Result<(), StoreError> {
        self.needs("end_hold", [Lock::Key(key.clone())]);
        if end.by == EndedBy::Lease
            && let Some(hold) = self.tx.claim(key)?.and_then(|record| record.newest)
        {
            self.needs("end_hold by lease", [Lock::Session(hold.session)]);
        }
        Ok(())
    }

    /// The end of all that a session holds: the keys, and the session, so that it gets no more meanwhile.
    #[track_caller]
    fn ends_all(&mut self, session: SessionId) -> Result<(), StoreError> {
        let held = self.held_by(session)?.into_iter();
        let keys = held.map(|hold| Lock::Key(hold.key));
        self.needs("end_holds_of", keys.chain([Lock::Session(session)]));
        Ok(())
    }

    /// A heartbeat alone is one statement; beside other writes its row is locked in its turn.
    #[track_caller]
    fn touches(&mut self, session: SessionId) {
        match self.mode {
            Mode::Write => self.needs("touch_session", [Lock::Session(session)]),
            Mode::Read | Mode::Beat => self.beats("touch_session"),
        }
    }
}

impl Tx for RecordingTx<'_> {
    fn commit(self: Box<Self>) -> Result<(), StoreError> {
        self.tx.commit()
    }

    fn lock(&mut self, lock: &Lock) -> Result<(), StoreError> {
        self.takes(lock);
        self.tx.lock(lock)
    }

    fn now(&mut self) -> Result<Now, StoreError> {
        self.asked_the_time = true;
        self.story.push("now".to_owned());
        self.tx.now()
    }

    fn take_damage(&mut self) -> Vec<String> {
        self.tx.take_damage()
    }

    fn store_news(&mut self) -> Result<Option<(Timestamp, String)>, StoreError> {
        self.tx.store_news()
    }
}
