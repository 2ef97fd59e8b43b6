//! Running a use case: begin, run, observe, repeat, commit.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use crate::answer::Reader;
use crate::batch::SessionBatch;
use crate::context::{Ctx, Effects, Stop};
use crate::error::Error;
use crate::evidence::Evidence;
use tenure_core::back_off;
use tenure_core::id::SessionId;
use tenure_core::ignore::Ignore;
use tenure_core::notice::{Channel, Notice, Pending, counts};
use tenure_core::policy::Policy;
use tenure_core::process::{CallerFacts, Observer};
use tenure_core::session::Session;
use tenure_core::store::{
    Lock, Prefetch, SessionFilter, Store, StoreError, StoreWatch, Tx, TxMode, WaitTopic,
};
use tenure_core::time::Now;
use tenure_core::tree_lock::{TreeChange, TreeLock};
use tenure_core::witness::Witness;
use tenure_core::world::World;

/// The answer of a use case, with notices for the caller.
#[derive(Debug, Clone)]
pub struct Answer<T> {
    pub value: T,
    /// Notices of the calling session; they stay pending until [`Service::delivered`] is called.
    pub notices: Pending,
    /// What is missing in the answer because it could not be read.
    pub damaged: Option<StoreError>,
}

/// The refusal or failure of a use case, with notices for the caller.
#[derive(Debug, Clone)]
pub struct Failure {
    pub error: Error,
    /// Notices of the calling session; they stay pending until [`Service::delivered`] is called.
    pub notices: Pending,
    /// The store that was used, if one was.
    pub store: Option<String>,
    /// Who reads it; a program if the caller was not resolved.
    pub reader: Reader,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            error,
            notices: Pending::default(),
            store: None,
            reader: Reader::default(),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Error::Store(error).into()
    }
}

pub type Reply<T> = Result<Answer<T>, Failure>;

/// How often a use case may lose a race before the store counts as busy. Each time another caller made
/// progress, so this limit is reached only if something is wrong.
const MAX_RACES: u32 = 200;
/// How often a caller without a deadline tries again on a busy store that others lock row by row. Each attempt waits 1.5 s
/// for a locked row there, so all of them together stay within the 5 s of a use case.
const MAX_BUSY: u32 = 2;
/// How often it may stop to observe something new. Observations are kept, so this limit is reached only if
/// things change faster than they can be observed.
const MAX_OBSERVATIONS: usize = 10_000;

/// How many sessions are read first to find one in a worktree.
const FEW: usize = 20;

/// How often the connection to the store may break during a use case.
const MAX_BREAKS: u32 = 3;

/// How many more attempts a use case has after each kind of failure that changed nothing.
struct Attempts {
    breaks: u32,
    busy: u32,
}

/// Whether a use case that ended like this changed nothing and is worth another attempt.
fn runs_again(error: &StoreError, left: &mut Attempts) -> bool {
    let left = match error {
        StoreError::Conflict => return true,
        StoreError::Interrupted { .. } => &mut left.breaks,
        StoreError::Busy { .. } => &mut left.busy,
        _ => return false,
    };
    let runs = *left > 0;
    *left = left.saturating_sub(1);
    runs
}

/// The observer. The store knows whether several machines use it.
fn observer_of(world: &dyn World, is_shared: bool) -> Cow<'_, Observer> {
    let observer = world.observer();
    if observer.shared_store == is_shared {
        Cow::Borrowed(observer)
    } else {
        Cow::Owned(Observer {
            shared_store: is_shared,
            ..observer.clone()
        })
    }
}

/// Begins a transaction: first all locks in order, then the clock.
fn begin<'s>(
    store: &'s mut dyn Store,
    mode: TxMode,
    until: Option<Instant>,
    locks: &BTreeSet<Lock>,
    facts: &CallerFacts,
) -> Result<(Box<dyn Tx + 's>, Now), StoreError> {
    store.before_locks(locks, until)?;
    let mut tx = store.begin_until(mode, until)?;
    for lock in locks {
        tx.lock(lock)?;
    }
    // Almost every use case asks first who calls.
    let places = facts.chain.iter().map(|one| (&one.process).into());
    tx.prefetch(Prefetch::SessionsAt(&places.collect::<Vec<_>>()))?;
    let now = tx.now()?;
    Ok((tx, now))
}

/// Keeps what a run wrote, unless its caller only looks.
fn end(tx: Box<dyn Tx + '_>, looks_only: bool) -> Result<(), StoreError> {
    if looks_only { Ok(()) } else { tx.commit() }
}

/// Counts a lost race, and lets faster callers go first.
fn lost_race(world: &dyn World, races: &mut u32) {
    *races += 1;
    let random = world.random();
    let wait = back_off::after(*races, u16::from_be_bytes([random[0], random[1]]));
    if !wait.is_zero() {
        world.back_off(wait);
    }
}

pub struct Service<'a> {
    store: &'a mut dyn Store,
    world: &'a dyn World,
    facts: &'a CallerFacts,
    policy: Policy,
    until: Option<Instant>,
    witness: Option<&'a dyn Witness>,
    /// Whether it keeps nothing: no death, no renewal, no delivered notice.
    looks_only: bool,
    /// The sessions whose deaths it recorded, so that somebody can be told.
    pub buried: Vec<SessionId>,
}

impl<'a> Service<'a> {
    pub fn new(
        store: &'a mut dyn Store,
        world: &'a dyn World,
        facts: &'a CallerFacts,
        policy: Policy,
    ) -> Self {
        let policy = if store.is_shared() {
            policy.shared()
        } else {
            policy
        };
        Self {
            store,
            world,
            facts,
            policy,
            until: None,
            witness: None,
            looks_only: false,
            buried: Vec::new(),
        }
    }

    /// The same with a witness that knows what live sessions do and where they are.
    #[must_use]
    pub fn with_witness(self, witness: &'a dyn Witness) -> Self {
        Self {
            witness: Some(witness),
            ..self
        }
    }

    /// The same for a caller that must change nothing: what a use case writes is rolled back.
    #[must_use]
    pub fn only_looking(self) -> Self {
        Self {
            looks_only: true,
            ..self
        }
    }

    /// The same for a caller with a deadline: a store that is in use until then is reported as busy.
    #[must_use]
    pub fn until(self, until: Instant) -> Self {
        Self {
            until: Some(until),
            ..self
        }
    }

    /// A number that changes whenever another process changed something.
    pub fn changes(&mut self) -> Result<u64, Failure> {
        Ok(self.store.changes()?)
    }

    /// How to wait until another process changes something, or something relevant to these topics.
    pub fn watch(&mut self, about: Option<&[WaitTopic]>) -> StoreWatch {
        self.store.watch(about)
    }

    pub fn location(&self) -> String {
        self.store.location()
    }

    /// Records that notices were written to a channel, if that channel counts as delivery.
    pub fn delivered(&mut self, notices: &[Notice], channel: Channel) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| {
            let mut told: BTreeMap<SessionId, Vec<&Notice>> = BTreeMap::new();
            for notice in notices {
                told.entry(notice.to).or_default().push(notice);
            }
            for (to, notices) in told {
                let reader = ctx.notice_reader(to)?;
                let counted = |notice: &&&Notice| counts(notice.kind, reader, channel);
                let counted = notices.iter().filter(counted);
                let ids: Vec<_> = counted.filter_map(|notice| notice.id).collect();
                let at = ctx.now.wall;
                ctx.tx.mark_delivered(to, &ids, at)?;
            }
            Ok(())
        })
    }

    /// How a use case begins that decides first and locks then. Where rows are locked one by one it reads one state of
    /// the store, so that a refusal was true at one moment.
    pub(super) fn assessing(&self) -> TxMode {
        if self.store.locks_rows() {
            TxMode::Read
        } else {
            TxMode::Write
        }
    }

    /// Runs a use case until it has what it needs.
    pub(super) fn transact<T>(
        &mut self,
        mode: TxMode,
        mut case: impl FnMut(&mut Ctx<'_>) -> Result<T, Stop>,
    ) -> Reply<T> {
        let mut mode = mode;
        let mut evidence = Evidence::none(self.witness);
        let mut locked: BTreeSet<Lock> = BTreeSet::new();
        let mut deaths_recorded = 0;
        let mut unrecorded = BTreeMap::new();
        let locks_rows = self.store.locks_rows();
        let observer = observer_of(self.world, self.store.is_shared());
        let (mut races, mut looks) = (0, 0);
        let mut left = Attempts {
            breaks: MAX_BREAKS,
            busy: if locks_rows && self.until.is_none() {
                MAX_BUSY
            } else {
                0
            },
        };
        while races < MAX_RACES && looks < MAX_OBSERVATIONS {
            let location = self.store.location();
            let (mut tx, now) = match begin(self.store, mode, self.until, &locked, self.facts) {
                Err(error) if runs_again(&error, &mut left) => {
                    lost_race(self.world, &mut races);
                    continue;
                }
                other => other?,
            };
            let mut ctx = Ctx {
                tx: tx.as_mut(),
                mode,
                locked: &locked,
                locks_rows,
                created: Vec::new(),
                now,
                policy: &self.policy,
                facts: self.facts,
                world: self.world,
                observer: &observer,
                location,
                evidence: &evidence,
                effects: Effects::default(),
                wanted: Vec::new(),
                own: None,
                watchers: BTreeMap::new(),
                deaths_recorded,
                batch: SessionBatch::default(),
                unrecorded: &unrecorded,
                looks_only: self.looks_only,
            };
            let outcome = case(&mut ctx);
            let mut effects = ctx.effects;
            // Whatever was left out of a list because it cannot be read is reported.
            effects.damage.extend(tx.take_damage());
            match outcome {
                Ok(value) => match end(tx, self.looks_only) {
                    Ok(()) => {
                        self.follow_up(&effects);
                        self.remember(&effects.looked);
                        effects.damage.extend(unrecorded.into_values());
                        return Ok(Answer {
                            value,
                            notices: effects.notices,
                            damaged: self.damaged(effects.damage),
                        });
                    }
                    Err(error) if runs_again(&error, &mut left) => {
                        lost_race(self.world, &mut races);
                    }
                    Err(error) => return Err(error.into()),
                },
                Err(Stop::Refuse(error)) => match end(tx, self.looks_only) {
                    Ok(()) => {
                        self.follow_up(&effects);
                        return Err(Failure {
                            error: *error,
                            notices: effects.notices,
                            store: Some(self.store.location()),
                            reader: effects.reader,
                        });
                    }
                    Err(error) if runs_again(&error, &mut left) => {
                        lost_race(self.world, &mut races);
                    }
                    Err(error) => return Err(error.into()),
                },
                Err(Stop::Look(want)) => {
                    drop(tx);
                    looks += 1;
                    evidence.gather(self.world, self.witness, want);
                }
                Err(Stop::Write(stronger)) => mode = stronger,
                Err(Stop::Lock(wanted)) => {
                    drop(tx);
                    looks += 1;
                    mode = TxMode::Write;
                    locked.extend(wanted);
                }
                Err(Stop::LockInstead(wanted)) => {
                    drop(tx);
                    looks += 1;
                    mode = TxMode::Write;
                    locked = wanted.into_iter().collect();
                }
                Err(Stop::OneState) => {
                    match end(tx, self.looks_only) {
                        Ok(()) => looks += 1,
                        Err(error) if runs_again(&error, &mut left) => {
                            lost_race(self.world, &mut races);
                        }
                        Err(error) => return Err(error.into()),
                    }
                    mode = TxMode::Read;
                    locked.clear();
                }
                Err(Stop::RecordDeaths(dead)) => {
                    drop(tx);
                    looks += 1;
                    deaths_recorded += dead.len();
                    unrecorded.extend(self.record_deaths(&dead)?);
                }
                Err(Stop::Store(error)) if runs_again(&error, &mut left) => {
                    drop(tx);
                    lost_race(self.world, &mut races);
                }
                Err(Stop::Store(error)) => return Err(error.into()),
            }
        }
        Err(StoreError::Busy {
            store: self.store.location(),
        }
        .into())
    }

    /// Begins a transaction of its own.
    pub(super) fn begin(&mut self, mode: TxMode) -> Result<Box<dyn Tx + '_>, StoreError> {
        self.store.begin_until(mode, self.until)
    }

    /// What an answer leads to. If it fails, the next caller finds the same.
    fn follow_up(&mut self, effects: &Effects) {
        if self.looks_only {
            return;
        }
        self.lock_trees(&effects.trees);
        if !effects.dead.is_empty() {
            self.record_deaths(&effects.dead)
                .ignore("the answer is valid; it was committed before");
        }
    }

    pub(super) fn looks_only(&self) -> bool {
        self.looks_only
    }

    /// Lets other processes use the store.
    pub(super) fn give_way(&self) {
        self.world.give_way();
    }

    fn damaged(&self, mut rows: Vec<String>) -> Option<StoreError> {
        rows.sort();
        rows.dedup();
        (!rows.is_empty()).then(|| StoreError::Damaged {
            store: self.store.location(),
            why: rows.join("; "),
        })
    }

    /// Locks the worktrees of sessions that started, and unlocks those of sessions that stopped, unless others
    /// are there. If that fails or is interrupted, the next caller does it.
    fn lock_trees(&mut self, changes: &[TreeChange]) {
        let mut left: BTreeSet<&str> = BTreeSet::new();
        for change in changes {
            if change.begins {
                self.world.set_tree_lock(&change.dir, Some(&change.handle));
            } else {
                left.insert(&change.dir);
            }
        }
        for dir in left {
            self.repair_tree_locks(dir);
        }
    }

    /// Repairs locks that name ended sessions, on all worktrees of a directory's repository.
    pub fn repair_tree_locks(&mut self, dir: &str) {
        for lock in self.world.tree_locks(dir) {
            // An unreadable store proves nothing about a lock.
            if self.names_one_that_is_over(&lock) != Ok(true) {
                continue;
            }
            let Ok(next) = self.still_there(&lock) else {
                continue;
            };
            self.world.change_tree_lock(&lock, next.as_deref());
            // A session that started in between may have written its lock before this one was removed.
            if next.is_none()
                && let Ok(Some(late)) = self.still_there(&lock)
            {
                self.world.set_tree_lock(&lock.root, Some(&late));
            }
        }
    }

    /// A session that is not in this store belongs to another store, and so does its lock.
    fn names_one_that_is_over(&mut self, lock: &TreeLock) -> Result<bool, StoreError> {
        let mut tx = self.store.begin(TxMode::Read)?;
        let found = tx.session_by_handle(&lock.handle)?;
        drop(tx);
        let works_there = |session: &Session| session.is_open() && self.works_in(session, lock);
        Ok(found.is_some_and(|session| !works_there(&session)))
    }

    fn works_in(&self, session: &Session, lock: &TreeLock) -> bool {
        let dir = &session.workdir.dir;
        let process = session.process.as_ref();
        let is_here = process.is_none_or(|one| one.host == self.world.observer().host);
        // The same path on another machine is another worktree.
        if self.store.is_shared() && !is_here {
            return false;
        }
        match self.world.file(dir) {
            Some(found) => found.root == lock.root,
            // A removed worktree is still the one that it worked in.
            None => Path::new(dir).starts_with(&lock.root),
        }
    }

    /// An open session in the worktree of a lock.
    fn still_there(&mut self, lock: &TreeLock) -> Result<Option<String>, StoreError> {
        // Nearly always one of the newest is there. Only nested repositories can hide it.
        for limit in [FEW, 0] {
            let filter = SessionFilter {
                under: Some(lock.root.clone()),
                limit,
                ..SessionFilter::default()
            };
            let open = self.store.begin(TxMode::Read)?.list_sessions(&filter)?;
            let were_all = open.len() < FEW;
            let there = open
                .into_iter()
                .find(|session| self.works_in(session, lock));
            if were_all || there.is_some() {
                return Ok(there.map(|session| session.handle.to_string()));
            }
        }
        Ok(None)
    }
}
