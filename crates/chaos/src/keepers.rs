//! What is done to the keepers of a run: they are killed, stopped for a moment, and stopped for about as long as others
//! wait before they take what the host held.
//!
//! A keeper is nobody's child here. Its own status names its pid; it is signalled through a descriptor that was opened
//! before the same keeper was asked once more, so the signal reaches no other process.

use std::io;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tenure_app::keeper;
use tenure_core::process::Observer;
use tenure_core::world::World;
use tenure_host::machine::Machine;
use tenure_host::pidfd::ProcessWatch;
use tenure_host::state_dir::StateDir;
use tenure_host::{clock, process};

use super::dice::Dice;
use super::hosts::{Host, Terms};
use super::record::{Disturbance, Log, monotonic};

/// The log of what was done to keepers.
pub const KEEPERS: &str = "keepers.log";

/// How long another keeper may take to be started: by the next worker that opens the store there.
const COMES_BACK: Duration = Duration::from_secs(20);

/// What was done to the keepers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shocks {
    pub kills: u64,
    /// How many times one was stopped for less than its lease.
    pub stops: u64,
    /// How many times one was stopped for about as long as others wait, or longer.
    pub silences: u64,
}

impl Shocks {
    pub fn add(&mut self, more: &Self) {
        self.kills += more.kills;
        self.stops += more.stops;
        self.silences += more.silences;
    }
}

struct Harming {
    host: Host,
    dice: Dice,
    log: Log,
    until: u64,
    done: Shocks,
}

/// A keeper that runs.
struct KeeperProcess {
    id: String,
    pid: u32,
    watch: ProcessWatch,
}

/// Harms the keeper of a host in a thread of its own.
pub fn harm(
    host: Host,
    seed: u64,
    until: u64,
    dir: &Path,
) -> io::Result<JoinHandle<io::Result<Shocks>>> {
    let stream = host
        .name
        .bytes()
        .fold(4, |sum: u64, byte| sum * 131 + u64::from(byte));
    let mut harming = Harming {
        host,
        dice: Dice::new(seed, stream),
        log: Log::open(&dir.join(KEEPERS))?,
        until,
        done: Shocks::default(),
    };
    std::thread::Builder::new().spawn(move || {
        while monotonic() < harming.until {
            harming.something()?;
        }
        Ok(harming.done)
    })
}

/// The keeper of a host, if one runs and answers.
fn find(host: &Host) -> Option<KeeperProcess> {
    let first = keeper::status_at(&host.store, &host.dir).ok()??;
    let watch = watch(first.pid, &observer(host)?)?;
    // Had it ended before the descriptor was opened, another would answer now, or none.
    let again = keeper::status_at(&host.store, &host.dir).ok()??;
    (again.id == first.id && again.pid == first.pid).then_some(KeeperProcess {
        id: first.id,
        pid: first.pid,
        watch,
    })
}

fn observer(host: &Host) -> Option<Observer> {
    let state = StateDir::peek(&host.dir).ok()?;
    let machine = Machine::new(state.host().clone()).ok()?;
    Some(machine.observer().clone())
}

fn watch(pid: u32, observer: &Observer) -> Option<ProcessWatch> {
    ProcessWatch::open(&process::identify(pid, observer).ok()?)
}

/// The parent of a keeper, which would start it again.
fn parent(keeper: &KeeperProcess, observer: &Observer) -> Option<ProcessWatch> {
    let parent_of = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_whitespace().nth(1)?.parse().ok()
    };
    let pid = parent_of(keeper.pid)?;
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut words = arguments.split(|byte| *byte == 0);
    let is_parent = words.any(|word| word == b"__keeper");
    let watch = watch(pid, observer)?;
    (is_parent && parent_of(keeper.pid) == Some(pid)).then_some(watch)
}

impl Harming {
    fn sleep(&mut self, from: u64, to: u64) {
        let length = self.dice.between(from, to);
        pause(Duration::from_millis(length));
    }

    fn something(&mut self) -> io::Result<()> {
        self.sleep(100, 700);
        let host = self.host.clone();
        let what = self.dice.below(100);
        let Some(found) = find(&host) else {
            return Ok(());
        };
        let from = monotonic();
        match what {
            0..15 => self.kill(&host, &found)?,
            15..30 => {
                self.stop(&found, |harming| harming.sleep(20, 900))?;
                self.done.stops += 1;
            }
            30..65 => {
                self.stop(&found, |harming| harming.sleep_until_others_may(&host))?;
                self.done.silences += 1;
            }
            _ => {
                self.stop(&found, |harming| harming.sleep(2_200, 6_500))?;
                self.done.silences += 1;
            }
        }
        self.log.write(&Disturbance {
            from,
            until: monotonic(),
            host: Some(host.name.to_owned()),
            is_keeper: true,
        })
    }

    fn stop(&mut self, keeper: &KeeperProcess, sleep: impl FnOnce(&mut Self)) -> io::Result<()> {
        keeper.watch.signal(Signal::STOP)?;
        sleep(self);
        // It may have been killed by nobody but us, so it is there.
        keeper.watch.signal(Signal::CONT)
    }

    /// Until the lease of the host and the lock delay are just over, or almost.
    fn sleep_until_others_may(&mut self, host: &Host) {
        let terms = Terms::of_run();
        let jitter = self.dice.between(0, 300);
        let began = host.renewal_began().unwrap_or_default();
        let at = began + Duration::from_nanos(terms.at_most()) + Duration::from_millis(jitter);
        let at = at.saturating_sub(Duration::from_millis(200));
        pause(at.saturating_sub(clock::since_boot().0));
    }

    /// Kills a keeper, sometimes together with its parent, and waits until another runs.
    fn kill(&mut self, host: &Host, keeper: &KeeperProcess) -> io::Result<()> {
        if self.dice.percent(60)
            && let Some(parent) = observer(host).and_then(|observer| parent(keeper, &observer))
        {
            parent.signal(Signal::KILL)?;
        }
        keeper.watch.signal(Signal::KILL)?;
        self.done.kills += 1;
        let late = monotonic() + u64::try_from(COMES_BACK.as_nanos()).unwrap_or(u64::MAX);
        while monotonic() < late.min(self.until) {
            let now = keeper::status_at(&host.store, &host.dir);
            if now.is_ok_and(|now| now.is_some_and(|other| other.id != keeper.id)) {
                break;
            }
            pause(Duration::from_millis(30));
        }
        Ok(())
    }
}

fn pause(length: Duration) {
    tenure_host::pause::sleep(length);
}
