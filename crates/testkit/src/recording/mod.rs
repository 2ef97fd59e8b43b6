//! A store that checks that its users follow the lock order, whatever the backend behind it does.
//!
//! A backend with a single writer hides mistakes that a backend with row locks punishes, now and
//! then, with a deadlock, a lost update or a decision based on outdated data. This store reports
//! them at once. It panics, and lists what the transaction has done so far, if the transaction
//! - locks something that comes before what it has already locked (see [`Lock`]);
//! - locks something after it read the clock;
//! - writes a row that it did not lock, if other writers decide by that row;
//! - writes in a read transaction, or writes more than heartbeats in a heartbeat transaction;
//! - reads much of the log while it writes, which makes other writers wait.

mod checks;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tenure_core::id::{RunId, SessionId};
use tenure_core::key::Key;
use tenure_core::store::{Lock, Store, StoreError, StoreWatch, Tx, TxMode, WaitTopic};
use tenure_core::time::{Now, Timestamp};

/// A store that checks how another store is used.
pub struct RecordingStore<S> {
    store: S,
    /// Whether it claims that several machines use it.
    pub is_shared: bool,
    /// How many times sessions were looked up by their processes.
    pub lookups: Rc<Cell<usize>>,
    /// How many times a writer read a claim again that it had not locked: the second answer may be of another moment.
    pub rereads: Rc<Cell<usize>>,
    /// A key whose holds cannot be read.
    pub unreadable: Option<Key>,
    /// What another process does, and before which of the next transactions.
    pending: Option<(usize, StoreAct<S>)>,
}

/// An act on the store; if it fails, the next transaction fails too.
type StoreAct<S> = Box<dyn FnOnce(&mut S) -> Result<(), StoreError>>;

impl<S: Store> RecordingStore<S> {
    /// Checks how this store is used.
    pub fn new(store: S) -> Self {
        Self {
            is_shared: store.is_shared(),
            store,
            lookups: Rc::default(),
            rereads: Rc::default(),
            unreadable: None,
            pending: None,
        }
    }

    /// The wrapped store, for what a test does besides the use cases.
    pub fn inner(&mut self) -> &mut S {
        &mut self.store
    }

    /// Simulates another process that does this right before one of the next transactions; the next
    /// one is 1.
    pub fn do_before(&mut self, before: usize, act: impl FnOnce(&mut S) + 'static) {
        let act = |store: &mut S| {
            act(store);
            Ok(())
        };
        self.pending = Some((before, Box::new(act)));
    }

    /// Reports busy for one of the next transactions; the next one is 1.
    pub fn busy_at(&mut self, transaction: usize) {
        let busy = |store: &mut S| {
            Err(StoreError::Busy {
                store: store.location(),
            })
        };
        self.pending = Some((transaction, Box::new(busy)));
    }

    /// Cancels the pending act of [`Self::do_before`] or [`Self::busy_at`]; returns whether it was
    /// still pending.
    pub fn cancel_pending(&mut self) -> bool {
        self.pending.take().is_some()
    }
}

impl<S: Store> Store for RecordingStore<S> {
    fn begin_until(
        &mut self,
        mode: TxMode,
        until: Option<Instant>,
    ) -> Result<Box<dyn Tx + '_>, StoreError> {
        if let Some((before, act)) = self.pending.take() {
            match before {
                0 | 1 => act(&mut self.store)?,
                later => self.pending = Some((later - 1, act)),
            }
        }
        Ok(Box::new(RecordingTx {
            unreadable: self.unreadable.clone(),
            store: self.store.location(),
            tx: self.store.begin_until(mode, until)?,
            mode,
            locked: BTreeSet::new(),
            read: BTreeSet::new(),
            born: Vec::new(),
            born_runs: Vec::new(),
            lookups: Rc::clone(&self.lookups),
            rereads: Rc::clone(&self.rereads),
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

    fn watch(&mut self, _: Option<&[WaitTopic]>) -> StoreWatch {
        // As on another machine, where changes are found by polling.
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

/// A transaction that is checked.
struct RecordingTx<'a> {
    tx: Box<dyn Tx + 'a>,
    store: String,
    unreadable: Option<Key>,
    mode: TxMode,
    locked: BTreeSet<Lock>,
    /// Keys whose claims it read without a lock.
    read: BTreeSet<Key>,
    /// Sessions that it created, which no other transaction can see.
    born: Vec<SessionId>,
    /// Runs that it created.
    born_runs: Vec<RunId>,
    lookups: Rc<Cell<usize>>,
    rereads: Rc<Cell<usize>>,
    asked_the_time: bool,
    /// What it locked, read and wrote, in order.
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

    /// Takes a lock; it must come next in the order.
    #[track_caller]
    fn takes(&mut self, lock: &Lock) {
        if self.locked.contains(lock) {
            return;
        }
        self.story.push(format!("lock {lock:?}"));
        if self.mode != TxMode::Write {
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

    /// Writes something that only this transaction's own session decides by.
    #[track_caller]
    fn beats(&mut self, what: &str) {
        self.story.push(what.to_owned());
        if self.mode == TxMode::Read {
            self.fail("it writes in a transaction for reading");
        }
    }

    /// Writes something that needs no lock.
    #[track_caller]
    fn writes(&mut self, what: &str) {
        self.beats(what);
        if self.mode == TxMode::Beat {
            self.fail("it writes more than a heartbeat");
        }
    }

    /// Writes something that needs these locks.
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
