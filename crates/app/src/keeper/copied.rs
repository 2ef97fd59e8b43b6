//! A machine that is a copy of another one, such as a virtual machine that was started from the other's disk.
//!
//! A copy has the host id of its original, and both run. Nothing may be recorded on it under that id: other machines
//! would take the two for one. So before the first command of each boot looks at a store on a server, it asks the store
//! whether a keeper with this host id went on under another boot ([`Keeper::is_original_of`]). If one did, this machine
//! gets an id of its own, and a person is told once. Later commands of that boot read one small file.
//!
//! A directory that containers share is not a copy: the other keeper holds its lock in it, and a kernel lock is not
//! copied with a disk. A directory where no keeper ever had an answer is left alone.
//!
//! *Crash* before the id was replaced: the next command asks again; after it: it finds nobody with the new id. *Clock
//! jump*: the boot is compared with the last renewal by the store's clock and this machine's boot clock. *Older version*:
//! one that does not ask keeps the id.
//!
//! [`Keeper::is_original_of`]: tenure_core::keeper::Keeper::is_original_of

use std::io;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tenure_core::ignore::Ignore;
use tenure_core::policy::Policy;
use tenure_core::process::BootId;
use tenure_core::world::World;
use tenure_host::kernel_lock::{HeldLock, LockName, Patience, Sharing};
use tenure_host::machine::Machine;
use tenure_host::state_dir::StateDir;
use tenure_host::{boot, caller, clock, file, read};
use tenure_service::Service;
use tenure_service::answer::Problem;
use tenure_service::view::KeeperView;

use super::files::KeeperFiles;
use super::memory::KeeperMemory;
use super::through::through;
use crate::location::{machine_of, open_store, peeked_state_dir_of};
use crate::server_store;
use crate::store_place::StorePlace;

/// Longer than any file of ours.
const MAX_LENGTH: u64 = 64 << 10;
/// How many boots are remembered: containers that share a directory have one each.
const MAX_COUNT: usize = 16;
/// How long a command waits for another one that asks.
const WAITS: Duration = Duration::from_secs(5);

/// What is known about this machine's id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Boots {
    /// The boots in which it was asked about.
    settled: Vec<BootId>,
    /// What nobody was told yet.
    news: Option<String>,
}

impl Boots {
    fn read(files: &KeeperFiles) -> Self {
        let text = read::whole(&files.boots(), MAX_LENGTH).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn write(&self, files: &KeeperFiles) -> io::Result<()> {
        file::write_atomic(&files.boots(), &serde_json::to_vec(self)?)
    }

    fn settle(&mut self, boot: &BootId) {
        self.settled.push(boot.clone());
        let surplus = self.settled.len().saturating_sub(MAX_COUNT);
        self.settled.drain(..surplus);
    }
}

/// Makes sure that this machine has a host id of its own before it is used. `until` is for who answers an agent; without
/// it, a person is told what happened. Fails if the store does not answer.
pub fn settle_host(
    place: &StorePlace,
    policy: Policy,
    until: Option<Instant>,
) -> Result<(), Problem> {
    if place.server().is_none() || !server_store::is_linked() {
        return Ok(());
    }
    let state = peeked_state_dir_of(place)?;
    let machine = machine_of(&state)?;
    let files = KeeperFiles::of(place.dir(), &place.shown(), machine.observer());
    let own = &machine.observer().boot;
    let boots = Boots::read(&files);
    let is_news = boots.news.is_some() && until.is_none();
    let is_settled = boots.settled.contains(own) || files.memories().is_empty();
    if is_settled && !is_news {
        return Ok(());
    }
    // Where nothing can be written, as in some sandboxes, nothing is changed either.
    let Ok(_lock) = lock(&files, until) else {
        return Ok(());
    };
    let mut boots = Boots::read(&files);
    if !boots.settled.contains(own) {
        // Another command may have replaced the id since.
        let state = peeked_state_dir_of(place)?;
        let machine = machine_of(&state)?;
        let originals = originals(place, &machine, &files, policy, until)?;
        if let Some(original) = originals.first() {
            boots.news = Some(become_another(&files, state, original, &boots)?);
        }
        boots.settle(own);
        boots.write(&files).ignore("the next command asks again");
    }
    if until.is_none()
        && let Some(news) = boots.news.take()
        && boots.write(&files).is_ok()
    {
        server_store::tell(news);
    }
    Ok(())
}

fn lock(files: &KeeperFiles, until: Option<Instant>) -> io::Result<HeldLock> {
    let left = until.map(|until| until.saturating_duration_since(clock::instant()));
    let patience = Patience::AtMost(left.unwrap_or(WAITS).min(WAITS));
    let name = LockName::plain("boots-lock").map_err(io::Error::other)?;
    let lock = files.locks()?.lock(&name, Sharing::Exclusive, patience);
    lock.map_err(io::Error::other)
}

/// The keepers of the machine that this one is a copy of.
fn originals(
    place: &StorePlace,
    machine: &Machine,
    files: &KeeperFiles,
    policy: Policy,
    until: Option<Instant>,
) -> Result<Vec<KeeperView>, Problem> {
    let observer = machine.observer();
    let known = KeeperMemory::renewals(files);
    let mut store = open_store(place, machine, through(place, machine), until)?.0;
    let facts = caller::variables(observer.clone());
    let mut service = Service::new(store.as_mut(), machine, &facts, policy);
    if let Some(until) = until {
        service = service.until(until);
    }
    let mut found = service.originals(&known)?.value;
    // One that holds its lock here uses this directory, not a copy of it.
    found.retain(|one| {
        one.pid_ns == observer.pid_ns
            || !KeeperFiles::in_namespace(place.dir(), &place.shown(), observer, one.pid_ns)
                .is_held()
    });
    Ok(found)
}

/// Gives this machine an id of its own; returns what a person is told.
fn become_another(
    files: &KeeperFiles,
    state: StateDir,
    original: &KeeperView,
    known: &Boots,
) -> Result<String, Problem> {
    let news = format!(
        "this machine ({}) is a copy of {}, which uses the same store under the same host id; this one has a new host id \
         now, and the sessions of {} stay with it",
        boot::host_name(),
        original.host,
        original.host,
    );
    // Written first: a crash after the id was replaced must not leave it unsaid.
    let told = Boots {
        news: Some(news.clone()),
        ..known.clone()
    };
    told.write(files)
        .map_err(|error| crate::location::unwritable(&error))?;
    state
        .become_another_host()
        .map_err(crate::location::state_problem)?;
    Ok(news)
}
