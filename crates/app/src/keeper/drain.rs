//! Brings what was given up to the store.
//!
//! The keeper does this between its renewals, one entry of the spool at a time, and an entry that is stuck, because
//! another transaction has locked its row, holds up nothing else. A command waits only for what it is about itself: the
//! entries of its own session, and those of the keys and sessions whose rows it locks. Otherwise it could be granted
//! what an older release takes away again. While no keeper runs, a command brings the rest too.

use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};

use tenure_core::id::SessionId;
use tenure_core::ignore::Ignore;
use tenure_core::policy::Policy;
use tenure_core::process::CallerFacts;
use tenure_core::store::{Checkpoint, Lock, Store, StoreError, StoreWatch, Tx, TxMode, WaitTopic};
use tenure_core::world::World;
use tenure_host::machine::Machine;
use tenure_host::{caller, clock};
use tenure_service::answer::Problem;
use tenure_service::error::Error;
use tenure_service::{Failure, Service};

use super::files::KeeperFiles;
use super::memory::KeeperMemory;
use super::spool::{Learnt, Spool, SpoolLine};
use crate::store_place::StorePlace;

/// How long one entry may take, beside others.
const ENTRY: Duration = Duration::from_secs(1);
/// How long all of them may take together.
const ALL: Duration = Duration::from_secs(3);

/// Brings entries of a spool to a store.
pub struct Drain {
    spool: Spool,
    machine: Machine,
    policy: Policy,
    /// The entries that were stuck when they were tried last. They are tried after all others.
    stuck: HashSet<String>,
}

impl Drain {
    pub fn new(spool: Spool, machine: Machine, policy: Policy) -> Self {
        Self {
            spool,
            machine,
            policy,
            stuck: HashSet::new(),
        }
    }

    /// Brings all entries, as far as there is time. One that is stuck stays for the next time. Fails only if the store
    /// is away.
    pub fn run(
        &mut self,
        store: &mut dyn Store,
        mut is_wanted: impl FnMut() -> bool,
    ) -> Result<(), StoreError> {
        let until = clock::instant() + ALL;
        let mut waiting = self.spool.waiting();
        waiting.sort_by_key(|(name, _)| self.stuck.contains(name));
        self.stuck.clear();
        for (name, line) in waiting {
            let now = clock::instant();
            if now >= until || !is_wanted() {
                break;
            }
            match self.bring(store, &name, &line, Some(until.min(now + ENTRY))) {
                Ok(()) => {}
                Err(StoreError::Busy { .. } | StoreError::Conflict) => {
                    self.stuck.insert(name);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Brings the entries that something depends on. Fails if one of them cannot be brought now: what depends on it
    /// tries again as often as its own time allows, so one attempt here has a limit of its own.
    fn bring_first(
        &self,
        store: &mut dyn Store,
        is_needed: impl Fn(&SpoolLine) -> bool,
        until: Option<Instant>,
    ) -> Result<(), StoreError> {
        for (name, line) in self.spool.waiting() {
            if is_needed(&line) {
                let until = until.unwrap_or_else(|| clock::instant() + ENTRY);
                self.bring(store, &name, &line, Some(until))?;
            }
        }
        Ok(())
    }

    /// Records an entry. One that can never be recorded stays, and holds nothing up.
    fn bring(
        &self,
        store: &mut dyn Store,
        name: &str,
        line: &SpoolLine,
        until: Option<Instant>,
    ) -> Result<(), StoreError> {
        let observer = self.machine.observer();
        if let Some(given_up) = &line.given_up() {
            let facts = caller::variables(observer.clone());
            let mut service = Service::new(store, &self.machine, &facts, self.policy);
            if let Some(until) = until {
                service = service.until(until);
            }
            match service.record_given_up(given_up) {
                Ok(_) => {}
                Err(Failure {
                    error: Error::Store(error),
                    ..
                }) if stops(&error) => return Err(error),
                Err(_) => return Ok(()),
            }
        } else if !line.is_abandoned(&observer.boot) {
            return Ok(());
        }
        self.spool
            .sent(name, &Learnt::default())
            .ignore("it is brought again, which changes nothing");
        Ok(())
    }
}

/// Whether the store did not answer, or not yet.
fn stops(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Unavailable { .. }
            | StoreError::Interrupted { .. }
            | StoreError::Busy { .. }
            | StoreError::Conflict
    )
}

/// Brings what was given up here, as far as there is time, and removes what the store has. Fails only if the store is
/// away.
pub fn drain(
    store: &mut dyn Store,
    place: &StorePlace,
    machine: &Machine,
    policy: Policy,
) -> Result<(), Problem> {
    let Some((files, spool)) = spool_of(place, machine) else {
        return Ok(());
    };
    Drain::new(spool.clone(), machine.clone(), policy).run(store, || true)?;
    prune(&files, &spool, machine, policy);
    Ok(())
}

/// The spool of a store on a server, if there is anything in it.
fn spool_of(place: &StorePlace, machine: &Machine) -> Option<(KeeperFiles, Spool)> {
    place.server()?;
    let files = KeeperFiles::of(place.dir(), &place.shown(), machine.observer());
    let spool = files.spool();
    (!spool.is_empty()).then_some((files, spool))
}

fn prune(files: &KeeperFiles, spool: &Spool, machine: &Machine, policy: Policy) {
    let boot = &machine.observer().boot;
    let oldest = KeeperMemory::oldest(files, boot, &policy.shared().keeper_terms());
    spool
        .prune(oldest, boot)
        .ignore("the next command removes it");
}

/// A store on a server that is told first what a caller depends on, before each transaction: a process that stays may
/// outlive an outage in which others here gave something up.
struct ToldFirst {
    inner: Box<dyn Store>,
    files: KeeperFiles,
    drain: Drain,
    facts: CallerFacts,
    /// When everything was brought last that no keeper brings.
    brought: Instant,
}

/// The same store for a caller. Without a keeper, which brings the rest, all of it is brought now.
pub fn told_first(
    mut store: Box<dyn Store>,
    place: &StorePlace,
    machine: &Machine,
    policy: Policy,
    facts: &CallerFacts,
) -> Result<Box<dyn Store>, Problem> {
    if place.server().is_none() {
        return Ok(store);
    }
    let files = KeeperFiles::of(place.dir(), &place.shown(), machine.observer());
    if !files.spool().is_empty() && !files.is_held() {
        drain(store.as_mut(), place, machine, policy)?;
    }
    Ok(Box::new(ToldFirst {
        inner: store,
        drain: Drain::new(files.spool(), machine.clone(), policy),
        files,
        facts: facts.clone(),
        brought: clock::instant(),
    }))
}

impl ToldFirst {
    /// Brings the rest too while no keeper runs, from time to time.
    fn bring_rest(&mut self, until: Option<Instant>) -> Result<(), StoreError> {
        let now = clock::instant();
        if now.duration_since(self.brought) < ALL || self.files.is_held() {
            return Ok(());
        }
        self.brought = now;
        let is_wanted = || until.is_none_or(|until| clock::instant() < until);
        self.drain.run(self.inner.as_mut(), is_wanted)
    }

    /// The caller's session, as far as this machine knows it without the store.
    fn own_session(&self) -> Option<SessionId> {
        let boot = &self.drain.machine.observer().boot;
        let memory = KeeperMemory::read(&self.files.memory(), boot)?;
        memory.caller(&self.facts).map(|session| session.id)
    }
}

impl Store for ToldFirst {
    fn begin_until(
        &mut self,
        mode: TxMode,
        until: Option<Instant>,
    ) -> Result<Box<dyn Tx + '_>, StoreError> {
        if self.drain.spool.is_empty() {
            return self.inner.begin_until(mode, until);
        }
        self.bring_rest(until)?;
        if let Some(own) = self.own_session() {
            let is_own = |line: &SpoolLine| line.is_about(&Lock::Session(own));
            self.drain.bring_first(self.inner.as_mut(), is_own, until)?;
        }
        self.inner.begin_until(mode, until)
    }

    fn before_locks(
        &mut self,
        locks: &BTreeSet<Lock>,
        until: Option<Instant>,
    ) -> Result<(), StoreError> {
        if locks.is_empty() || self.drain.spool.is_empty() {
            return Ok(());
        }
        let is_needed = |line: &SpoolLine| locks.iter().any(|lock| line.is_about(lock));
        self.drain
            .bring_first(self.inner.as_mut(), is_needed, until)
    }

    fn locks_rows(&self) -> bool {
        self.inner.locks_rows()
    }

    fn changes(&mut self) -> Result<u64, StoreError> {
        self.inner.changes()
    }

    fn watch(&mut self, about: Option<&[WaitTopic]>) -> StoreWatch {
        self.inner.watch(about)
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn location(&self) -> String {
        self.inner.location()
    }

    fn checkpoint(&mut self, checkpoint: Checkpoint) {
        self.inner.checkpoint(checkpoint);
    }
}
