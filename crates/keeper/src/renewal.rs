//! The thread that speaks to the store: it renews the row at every beat, and whenever something may have changed.
//!
//! Renewing comes before everything else, in a transaction that waits for no row of a claim. Then deaths are recorded and
//! the spool is drained, each one by itself and with a limit, so that a row that another transaction has locked costs
//! this machine nothing but what needs that row. While somebody here waits for a claim, the lines are looked at four
//! times a second, for all waiters of the machine in one statement.
//!
//! The span for which a renewal may be answered from begins before the renewal is sent, on the boot clock. A renewal is
//! acknowledged by a later one, once its answer has been here for a lock delay.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenure_core::id::{KeeperId, SessionId, Ticket};
use tenure_core::ignore::Ignore;
use tenure_core::keeper::{BootTime, KeeperPlace, Terms};
use tenure_core::policy::Policy;
use tenure_core::process::{CallerFacts, Process};
use tenure_core::store::{Store, StoreError};
use tenure_core::time::{Deadline, Timestamp};
use tenure_core::waking::Wakes;
use tenure_core::world::World;
use tenure_host::machine::Machine;
use tenure_host::{boot, caller, clock};
use tenure_service::answer::Problem;
use tenure_service::error::Error;
use tenure_service::{Failure, RenewKeeper, Renewed, Service};

use tenure_app::keeper::copied::settle_host;
use tenure_app::keeper::drain::Drain;
use tenure_app::keeper::files::KeeperFiles;
use tenure_app::keeper::memory::KeeperMemory;
use tenure_app::keeper::through::through_itself;
use tenure_app::keeper::wire::KeeperStatus;
use tenure_app::location::{machine_of, open_store, peeked_state_dir_of};
use tenure_app::store_place::StorePlace;

/// How often the row is renewed.
const BEAT: Duration = Duration::from_secs(10);
/// How long one renewal may take; a later one is worth more.
const RENEWS_WITHIN: Duration = Duration::from_secs(5);
/// How many beats fit into a lease at least.
const BEATS: u32 = 12;
/// The shortest time between two renewals.
const GAP: Duration = Duration::from_millis(50);
/// The same if no watched process has exited.
const LOOKS: Duration = Duration::from_secs(1);
/// How long recording one death may take; another transaction may have locked its row.
const BURIES_WITHIN: Duration = Duration::from_secs(1);
/// How often the lines are looked at while somebody here waits, and how often while the store is away.
const LINES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));
/// How long that may take.
const LOOKS_WITHIN: Duration = Duration::from_secs(2);

/// What the thread is asked to do before the next beat; the last is the most urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RenewalCommand {
    /// Somebody waits for a claim.
    Lines,
    /// Something may have changed.
    Look,
    /// A watched process has exited.
    Exit,
    /// Remove the row, and end.
    Stop,
    /// End without removing the row: the next life renews in its place.
    MakeWay,
}

/// What both threads know.
#[derive(Debug)]
pub struct KeeperState {
    pub status: KeeperStatus,
    pub processes: Vec<Process>,
    /// Counts the renewals that were answered.
    pub answered: u64,
    /// The waiters here that want to be told when it is their turn, and those that are to be told.
    pub waiting: BTreeSet<Ticket>,
    pub woken: Vec<Ticket>,
}

/// Shared between the thread that speaks to the store and the one that answers commands.
#[derive(Debug, Clone)]
pub struct SharedState(Arc<Mutex<KeeperState>>);

impl SharedState {
    pub fn new(status: KeeperStatus) -> Self {
        Self(Arc::new(Mutex::new(KeeperState {
            status,
            processes: Vec::new(),
            answered: 0,
            waiting: BTreeSet::new(),
            woken: Vec::new(),
        })))
    }

    pub fn lock(&self) -> MutexGuard<'_, KeeperState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a keeper waits between two renewals.
pub fn beat(policy: &Policy) -> Duration {
    BEAT.min(policy.host_lease / BEATS)
}

/// A renewal that the store answered.
#[derive(Debug, Clone)]
struct Answered {
    at: Deadline,
    /// When the answer was here.
    had: BootTime,
}

pub struct Renewals {
    place: StorePlace,
    files: KeeperFiles,
    machine: Machine,
    facts: CallerFacts,
    policy: Policy,
    request: RenewKeeper,
    store: Option<Box<dyn Store>>,
    shared: SharedState,
    /// Renewals that are not acknowledged yet, oldest first.
    answered: Vec<Answered>,
    failures: u32,
    /// The sessions whose deaths are not recorded yet.
    dead: Vec<SessionId>,
    drain: Drain,
    wakes: Wakes,
    /// When the lines were looked at last.
    looked: Option<Instant>,
}

impl Renewals {
    pub fn new(
        place: StorePlace,
        machine: Machine,
        policy: Policy,
        id: KeeperId,
        shared: SharedState,
    ) -> Self {
        let started_at = shared.lock().status.started_at;
        let files = KeeperFiles::of(place.dir(), &place.shown(), machine.observer());
        Self {
            drain: Drain::new(files.spool(), machine.clone(), policy),
            files,
            facts: caller::variables(machine.observer().clone()),
            request: RenewKeeper {
                id,
                uid: rustix::process::geteuid().as_raw(),
                pid: std::process::id(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                host_name: boot::host_name(),
                started_at,
                acknowledged: None,
            },
            place,
            machine,
            policy,
            store: None,
            shared,
            answered: Vec::new(),
            failures: 0,
            dead: Vec::new(),
            wakes: Wakes::default(),
            looked: None,
        }
    }

    fn terms(&self) -> Terms {
        self.policy.shared().keeper_terms()
    }

    /// Renews until it is asked to end. `wake` tells the other thread that something is new.
    pub fn run(mut self, commands: &Receiver<RenewalCommand>, wake: impl Fn()) {
        let commands = Wishes::of(commands);
        loop {
            let began = clock::instant();
            self.renew();
            wake();
            if self.failures == 0 {
                let ended = self.take_ended();
                self.bury(&commands);
                self.drain(&commands);
                self.dead.extend(ended);
                self.bury(&commands);
            }
            if !self.wait(began, &commands, &wake) {
                return;
            }
        }
    }

    /// Waits until the next renewal; looks at the lines meanwhile. Returns whether the thread goes on.
    fn wait(&mut self, began: Instant, commands: &Wishes<'_>, wake: &impl Fn()) -> bool {
        let mut next = began + self.pause();
        loop {
            let look = self.next_look();
            match commands.next(look.map_or(next, |look| look.min(next))) {
                None if clock::instant() >= next => return true,
                None => {
                    if self.look_at_lines() {
                        wake();
                    }
                    if self.failures > 0 && self.looked.is_none() {
                        // The store is back.
                        return true;
                    }
                }
                Some(RenewalCommand::Lines) => {}
                // The store is away; what changed is seen with the next attempt.
                Some(RenewalCommand::Look | RenewalCommand::Exit) if self.failures > 0 => {}
                Some(RenewalCommand::Exit) => next = next.min(began + GAP),
                // Many changes at once are one renewal.
                Some(RenewalCommand::Look) => {
                    next = next.min(began + LOOKS.min(beat(&self.policy)));
                }
                Some(RenewalCommand::Stop) => {
                    self.leave();
                    return false;
                }
                Some(RenewalCommand::MakeWay) => return false,
            }
        }
    }

    /// Takes those of the dead whose end is in the spool: they did not die, they left.
    fn take_ended(&mut self) -> Vec<SessionId> {
        let waiting = self.files.spool().waiting();
        let has_ended = |id: &mut SessionId| waiting.iter().any(|(_, line)| line.ends(*id));
        self.dead.extract_if(.., has_ended).collect()
    }

    /// Records the deaths that the renewal found, one by one. What cannot be recorded now is found again.
    fn bury(&mut self, commands: &Wishes<'_>) {
        let Some(store) = &mut self.store else { return };
        let dead = std::mem::take(&mut self.dead);
        for id in dead {
            if commands.is_urgent() {
                return;
            }
            let service = Service::new(store.as_mut(), &self.machine, &self.facts, self.policy);
            let mut service = service.until(clock::instant() + BURIES_WITHIN);
            if service.record_death(id).is_err() {
                self.dead.push(id);
            }
        }
    }

    fn drain(&mut self, commands: &Wishes<'_>) {
        let Some(store) = &mut self.store else { return };
        let is_wanted = || !commands.is_urgent();
        self.drain
            .run(store.as_mut(), is_wanted)
            .ignore("the next renewal finds out whether the store is away");
    }

    /// When the lines are looked at next; none while nobody here waits.
    fn next_look(&self) -> Option<Instant> {
        if self.shared.lock().waiting.is_empty() {
            return None;
        }
        let every = if self.failures == 0 { LINES.0 } else { LINES.1 };
        Some(self.looked.map_or_else(clock::instant, |at| at + every))
    }

    /// Finds out whose turn it is, for all waiters here; returns whether one has to be told.
    fn look_at_lines(&mut self) -> bool {
        let now = clock::instant();
        self.looked = Some(now);
        let waiting = self.shared.lock().waiting.clone();
        if waiting.is_empty() || !self.is_open() {
            return false;
        }
        let Some(store) = &mut self.store else {
            return false;
        };
        let observer = self.machine.observer();
        let place = KeeperPlace {
            host: observer.host.clone(),
            pid_ns: observer.pid_ns,
        };
        let service = Service::new(store.as_mut(), &self.machine, &self.facts, self.policy);
        let mut service = service.until(now + LOOKS_WITHIN);
        let Ok(found) = service.free_lines(&place) else {
            return false;
        };
        for ticket in found.value.gone {
            service
                .leave_line(ticket)
                .ignore("the next look finds it again");
        }
        if self.failures > 0 {
            self.looked = None;
        }
        let due = self
            .wakes
            .due(&found.value.lines, &found.value.held_paths, &waiting, now);
        let is_any = !due.is_empty();
        self.shared.lock().woken.extend(due);
        is_any
    }

    /// Opens the store if it is not.
    fn is_open(&mut self) -> bool {
        if self.store.is_none() && self.open().is_err() {
            return false;
        }
        self.store.is_some()
    }

    fn pause(&self) -> Duration {
        if !self.dead.is_empty() {
            return LOOKS.min(beat(&self.policy));
        }
        pause_after(self.failures, beat(&self.policy), self.machine.random()[0])
    }

    fn renew(&mut self) {
        let (began, as_of) = (clock::since_boot(), clock::wall());
        self.request.acknowledged = self.acknowledged(began);
        match self.ask() {
            Ok(renewed) => self.take(&renewed, began, as_of),
            Err(problem) => self.failed(&problem),
        }
    }

    /// The newest renewal whose answer has been here for a lock delay.
    fn acknowledged(&mut self, now: BootTime) -> Option<Deadline> {
        let terms = self.terms();
        let is_certain = |one: &Answered| terms.is_acknowledged(now.0.saturating_sub(one.had.0));
        let certain = self.answered.iter().rposition(is_certain);
        let known = self.request.acknowledged.take();
        let Some(at) = certain else { return known };
        let newest = self.answered.drain(..=at).next_back();
        newest.map(|one| one.at).or(known)
    }

    fn open(&mut self) -> Result<(), Problem> {
        self.settle_host()?;
        let through = through_itself(&self.place, &self.machine);
        self.store = Some(open_store(&self.place, &self.machine, through, None)?.0);
        Ok(())
    }

    fn ask(&mut self) -> Result<Renewed, Problem> {
        if self.store.is_none() {
            self.open()?;
        }
        let Some(store) = &mut self.store else {
            return Err(Problem::from(StoreError::Conflict));
        };
        let service = Service::new(store.as_mut(), &self.machine, &self.facts, self.policy);
        let asked = service
            .until(clock::instant() + RENEWS_WITHIN)
            .renew_keeper(&self.request);
        asked.map(|answer| answer.value).map_err(|failure| {
            if let Failure {
                error: Error::Store(_),
                ..
            } = failure
            {
                self.store = None;
            }
            Problem::from(failure)
        })
    }

    /// Without an answer no row may be written, because it would bind this boot to the host id.
    fn settle_host(&mut self) -> Result<(), Problem> {
        let until = clock::instant() + RENEWS_WITHIN;
        settle_host(&self.place, self.policy, Some(until))?;
        let machine = machine_of(&peeked_state_dir_of(&self.place)?)?;
        self.facts = caller::variables(machine.observer().clone());
        self.drain = Drain::new(self.files.spool(), machine.clone(), self.policy);
        self.machine = machine;
        Ok(())
    }

    fn take(&mut self, renewed: &Renewed, began: BootTime, as_of: Timestamp) {
        self.failures = 0;
        self.dead.clone_from(&renewed.dead);
        let boot = &self.machine.observer().boot;
        let memory = KeeperMemory::of(renewed, &self.request.id, began, as_of, boot, &self.terms());
        let memory = match KeeperMemory::read(&self.files.memory(), boot) {
            Some(before) => memory.after(&before, &self.files.spool()),
            None => memory,
        };
        // Without the file, the list before it stays and is good for as long as it was, and this renewal is not
        // acknowledged. The processes are watched nevertheless.
        if memory.write(&self.files.memory()).is_ok() {
            let oldest = KeeperMemory::oldest(&self.files, boot, &self.terms());
            self.files
                .spool()
                .prune(oldest, boot)
                .ignore("what the store has already stays in the spool");
            self.answered.push(Answered {
                at: renewed.at.clone(),
                had: clock::since_boot(),
            });
        }
        let mut known = self.shared.lock();
        known.processes = renewed
            .watched
            .iter()
            .map(|one| one.process.clone())
            .collect();
        known.answered += 1;
        known.status.renewed_at = Some(clock::wall());
        known.status.away_since = None;
        known.status.away_why = None;
        known.status.sessions = renewed.watched.len();
        known.status.claims = renewed.holds.len();
    }

    fn failed(&mut self, problem: &Problem) {
        self.failures = self.failures.saturating_add(1);
        let mut known = self.shared.lock();
        known.status.away_since.get_or_insert(clock::wall());
        known.status.away_why = Some(problem.message.clone());
    }

    /// Removes the row. If the store is away, the row's lease ends by itself.
    fn leave(&mut self) {
        if let Some(store) = &mut self.store {
            let service = Service::new(store.as_mut(), &self.machine, &self.facts, self.policy);
            let mut service = service.until(clock::instant() + RENEWS_WITHIN);
            service
                .remove_keeper(&self.request.id)
                .ignore("its lease ends by itself");
        }
    }
}

/// Until the next renewal: a beat, or after a failure a part of one that doubles. The random part spreads the keepers of
/// many machines when a server comes back.
fn pause_after(failures: u32, beat: Duration, random: u8) -> Duration {
    if failures == 0 {
        return beat;
    }
    let doubled = (beat / 10) * (1 << failures.min(4).saturating_sub(1));
    doubled.min(beat) + beat / 2 * u32::from(random) / 255
}

/// What the thread is asked to do.
struct Wishes<'a> {
    asked: &'a Receiver<RenewalCommand>,
    /// The most urgent that was asked for and is not done.
    pending: Cell<Option<RenewalCommand>>,
}

impl<'a> Wishes<'a> {
    fn of(asked: &'a Receiver<RenewalCommand>) -> Self {
        Self {
            asked,
            pending: Cell::new(None),
        }
    }

    /// Whether something cannot wait until the thread has done what it does.
    fn is_urgent(&self) -> bool {
        let asked = self.asked.try_iter().max();
        self.pending.set(self.pending.get().max(asked));
        self.pending.get() > Some(RenewalCommand::Look)
    }

    /// The next command, or none when it is time. Those that came together are one: many exits are one renewal, and an end
    /// waits for none of them.
    fn next(&self, until: Instant) -> Option<RenewalCommand> {
        if let Some(pending) = self.pending.take() {
            return self
                .asked
                .try_iter()
                .fold(pending, RenewalCommand::max)
                .into();
        }
        let left = until.saturating_duration_since(clock::instant());
        match self.asked.recv_timeout(left) {
            Ok(first) => Some(self.asked.try_iter().fold(first, RenewalCommand::max)),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(RenewalCommand::Stop),
        }
    }
}

/// What a keeper says about itself before the store answered.
pub fn first_status(id: &KeeperId, store: &str, started_at: Timestamp) -> KeeperStatus {
    KeeperStatus {
        id: id.to_string(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        store: store.to_owned(),
        started_at,
        renewed_at: None,
        away_since: None,
        away_why: None,
        sessions: 0,
        claims: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_s22_pauses_after_failures_double_up_to_a_beat_and_half_a_beat_of_chance_is_added() {
        let pauses =
            |random| [1, 2, 3, 4, 5, 100].map(|failures| pause_after(failures, BEAT, random));
        assert_eq!(pauses(0), [1, 2, 4, 8, 8, 8].map(Duration::from_secs));
        let most = [6, 7, 9, 13, 13, 13].map(Duration::from_secs);
        assert_eq!(pauses(255), most);
    }

    #[test]
    fn f_s14_a_renewal_that_failed_is_tried_again_before_the_next_beat_and_two_may_fail() {
        for host_lease in [Duration::from_secs(60), Policy::default().host_lease] {
            let policy = Policy {
                host_lease,
                ..Policy::default()
            };
            let beat = beat(&policy);
            for random in [0, 255] {
                assert!(pause_after(1, beat, random) < beat, "{host_lease:?}");
                // A renewal that is answered a beat ago, two that take all their time and fail, and a third one.
                let third = beat
                    + (RENEWS_WITHIN + pause_after(1, beat, random))
                    + (RENEWS_WITHIN + pause_after(2, beat, random))
                    + RENEWS_WITHIN;
                let margin = policy.shared().keeper_terms().margin();
                assert!(third < margin, "{third:?} of {margin:?}");
            }
        }
    }
}
