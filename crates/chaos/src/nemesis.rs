//! The nemesis: it starts the workers, kills them with -9, stops and continues them, holds the
//! store's write lock for a while, and records what it does to which worker and when. On a server it also lets a crowd
//! wait for one key.
//!
//! It signals only processes that it started and has not reaped, so no pid can be another's. A
//! worker asks the kernel to be killed when its nemesis dies, so nothing is left behind either way.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rustix::process::{Pid, Signal, kill_process};
use tenure_core::ignore::Ignore;
use tenure_testkit::pinned::Stat;
use tenure_testkit::scratch_git;

use super::audit::number;
use super::dice::Dice;
use super::faults::Failures;
use super::history::DEEDS;
use super::hosts::Host;
use super::keepers::Shocks;
use super::pulse::{Pulse, Stalls};
use super::record::{Deed, Log, monotonic};
use super::squat::{Squatter, squat};
use super::weather::Storms;
use super::worker::{DATABASE, PEERS, STATE};
use super::workspace::WORKSPACE;
use super::world::{Orders, World};

/// How long workers may take to leave at the end.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many wait for one key at once.
const CROWD: usize = 20;

/// The variable in which a worker finds the URL of the store.
pub const STORE_VARIABLE: &str = "TENURE_CHAOS_STORE";

/// What workers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    Claims,
    Queue,
}

#[derive(Debug, Clone)]
pub struct Plan {
    pub part: Workload,
    /// The program that becomes a worker.
    pub program: PathBuf,
    pub dir: PathBuf,
    pub workers: usize,
    pub length: Duration,
    pub seed: u64,
    /// Whether the run has its own pid namespace, in which it may choose pids.
    pub own_pids: bool,
    /// The URL of the store, if it is on a server.
    pub store: Option<String>,
    /// The hosts that workers run on, in turn; none if all see each other.
    pub hosts: Vec<Host>,
    /// What workers have in their environment besides.
    pub environment: Vec<(&'static str, String)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Harm {
    pub kills: u64,
    pub stops: u64,
    /// How many times the write lock was held.
    pub locks: u64,
    /// How many times the first process to open a store was stopped while it did.
    pub openings: u64,
    /// How many times a crowd waited for one key.
    pub crowds: u64,
    /// How many times a thread got the pid of a killed worker.
    pub threads: u64,
    /// Problems of workers or of the event log.
    pub troubles: Vec<String>,
    /// The highest number of events seen.
    pub events: u64,
    /// What was done to a server.
    pub storms: Storms,
    /// What was done to the disk.
    pub failures: Failures,
    /// What was done to the keepers.
    pub shocks: Shocks,
    /// Whether each host had a pid namespace of its own.
    pub apart: bool,
    /// What the machine did to all of them.
    pub stalls: Stalls,
}

struct Slot {
    starts: u64,
    native: String,
    name: String,
    /// None while it is dead.
    child: Option<Child>,
    /// When it will be started or continued.
    due: Option<u64>,
}

struct Nemesis {
    plan: Plan,
    dice: Dice,
    deeds: Log,
    slots: Vec<Slot>,
    natives: u64,
    until: u64,
    harm: Harm,
    squatters: Vec<Squatter>,
    /// Where the processes of each host run.
    worlds: Vec<World>,
}

/// Runs and disturbs workers until the time is up and all have left. Keepers are still there.
pub fn run(plan: &Plan) -> io::Result<(Harm, Vec<World>)> {
    for dir in [PEERS, STATE] {
        std::fs::create_dir(plan.dir.join(dir))?;
    }
    private(&plan.dir.join(STATE))?;
    plan.hosts.iter().try_for_each(Host::make)?;
    if !plan.hosts.is_empty() {
        scratch_git(&plan.dir.join(WORKSPACE), None);
    }
    let length = u64::try_from(plan.length.as_nanos()).unwrap_or(u64::MAX);
    let until = monotonic() + length;
    let orders = Orders {
        program: plan.program.clone(),
        seed: plan.seed,
        until,
        dir: plan.dir.clone(),
    };
    let worlds = plan.hosts.iter().map(|host| World::begin(host, &orders));
    let worlds: Vec<World> = worlds.collect::<io::Result<_>>()?;
    let mut nemesis = Nemesis::new(plan, until, worlds)?;
    let pulse = Pulse::begin(&plan.dir)?;
    nemesis.open_and_stop()?;
    for slot in 1..plan.workers {
        nemesis.start(slot)?;
    }
    while monotonic() < nemesis.until {
        nemesis.something()?;
    }
    nemesis.finish()?;
    nemesis.harm.stalls = pulse.end()?;
    Ok((nemesis.harm, nemesis.worlds))
}

/// The pid of a child of ours in its own namespace.
fn own_pid(child: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let own = line.and_then(|line| line.split_whitespace().last()?.parse().ok());
    own.unwrap_or(child)
}

/// Holds the write lock of a store for so long. Returns the newest event and the number of events,
/// or `None` if a worker has the lock or the tables do not exist yet.
fn hold_lock(database: &Path, length: Duration) -> Option<(u64, u64)> {
    let conn = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE).ok()?;
    conn.busy_timeout(Duration::from_millis(20)).ok()?;
    // Only workers copy the log: what they do to the disk is noted.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .ok()?;
    conn.execute_batch("BEGIN IMMEDIATE").ok()?;
    let count = "SELECT coalesce(max(id), 0), count(*) FROM events";
    let counted = conn.query_row(count, [], |row| Ok((number(row, 0)?, number(row, 1)?)));
    let counted = counted.ok()?;
    tenure_host::pause::sleep(length);
    // Closing the connection ends the transaction.
    Some(counted)
}

fn private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700))
}

impl Nemesis {
    fn new(plan: &Plan, until: u64, worlds: Vec<World>) -> io::Result<Nemesis> {
        let mut nemesis = Nemesis {
            dice: Dice::new(plan.seed, 0),
            deeds: Log::open(&plan.dir.join(DEEDS))?,
            slots: Vec::new(),
            natives: 0,
            until,
            harm: Harm {
                apart: worlds.iter().all(World::is_apart),
                ..Harm::default()
            },
            squatters: Vec::new(),
            worlds,
            plan: plan.clone(),
        };
        let crowd = if plan.hosts.is_empty() { 0 } else { CROWD };
        for _ in 0..plan.workers + crowd {
            let native = nemesis.fresh_native();
            nemesis.slots.push(Slot {
                starts: 0,
                native,
                name: String::new(),
                child: None,
                due: None,
            });
        }
        Ok(nemesis)
    }

    fn fresh_native(&mut self) -> String {
        self.natives += 1;
        format!("n{}", self.natives)
    }

    /// Starts a worker, in its own conversation, a new one, or another worker's.
    fn start(&mut self, slot: usize) -> io::Result<()> {
        let mut native = self.slots[slot].native.clone();
        match self.dice.below(100) {
            _ if self.slots[slot].starts == 0 => {}
            0..60 => {}
            60..85 => {
                native = self.fresh_native();
                self.slots[slot].native.clone_from(&native);
            }
            _ => {
                let count = self.plan.hosts.len().max(1);
                let natives: Vec<String> = self
                    .slots
                    .iter()
                    .enumerate()
                    .filter(|(other, _)| other % count == slot % count)
                    .map(|(_, slot)| slot.native.clone())
                    .collect();
                native = self.dice.pick(&natives).cloned().unwrap_or(native);
            }
        }
        let name = format!("w{slot}.{}", self.slots[slot].starts);
        let errors = File::create(self.plan.dir.join(format!("{name}.err")))?;
        let host = self.host(slot).cloned();
        let mut command = Command::new(&self.plan.program);
        command
            .arg(match self.plan.part {
                Workload::Claims => "worker",
                Workload::Queue => "queue-worker",
            })
            .args(["--name", &name, "--native", &native])
            .args(["--slot", &slot.to_string()])
            .args(["--seed", &self.plan.seed.to_string()])
            .args(["--until", &self.until.to_string()])
            .args(self.plays_line(slot).then_some("--line"))
            .args(self.is_silent(slot).then_some("--silent"))
            .args(self.is_of_crowd(slot).then_some("--crowd"))
            .args(host.iter().flat_map(|host| ["--host", host.name]))
            .arg("--dir")
            .arg(&self.plan.dir)
            .env_clear()
            .envs(self.plan.store.as_ref().map(|url| (STORE_VARIABLE, url)))
            .envs(host.iter().flat_map(Host::settings))
            .envs(self.plan.environment.iter().cloned())
            .current_dir(&self.plan.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors);
        let child = match self.world(slot) {
            Some(world) => world.spawn(&mut command)?,
            None => command.spawn()?,
        };
        self.deeds.write(&Deed::Started {
            at: monotonic(),
            worker: name.clone(),
            pid: own_pid(child.id()),
            start: Stat::read(child.id()).map_or(0, |stat| stat.start),
            host: host.map(|host| host.name.to_owned()),
        })?;
        let this = &mut self.slots[slot];
        this.starts += 1;
        this.name = name;
        this.child = Some(child);
        this.due = None;
        Ok(())
    }

    fn something(&mut self) -> io::Result<()> {
        // A call to a server takes ten times as long.
        let pause = match self.plan.store {
            None => self.dice.between(10, 120),
            Some(_) => self.dice.between(100, 800),
        };
        tenure_host::pause::sleep(Duration::from_millis(pause));
        self.what_is_due()?;
        let runs = |slot: &usize| !self.is_of_crowd(*slot) || self.slots[*slot].child.is_some();
        let there: Vec<usize> = (0..self.slots.len()).filter(runs).collect();
        let slot = self.dice.pick(&there).copied().unwrap_or(0);
        match self.dice.below(100) {
            // Workers at the line need a few seconds for a game.
            0..42 if self.plays_line(slot) && self.dice.percent(85) => Ok(()),
            // So do those that are silent.
            0..80 if self.is_silent(slot) && self.dice.percent(75) => Ok(()),
            0..42 => self.kill(slot),
            42..80 => self.stop(slot),
            80..95 if !self.plan.hosts.is_empty() => self.gather_crowd(),
            80..95 => self.keep_lock(),
            95..97 => {
                let spared = self.dice.percent(70);
                for slot in 0..self.slots.len() {
                    if !(spared && self.plays_line(slot)) {
                        self.kill(slot)?;
                    }
                }
                self.open_and_stop()
            }
            _ => (0..self.slots.len()).try_for_each(|slot| self.stop(slot)),
        }
    }

    /// Restarts and continues workers whose time has come.
    fn what_is_due(&mut self) -> io::Result<()> {
        for slot in 0..self.slots.len() {
            if self.slots[slot].due.is_none_or(|due| due > monotonic()) {
                self.notice_end(slot)?;
                continue;
            }
            if self.slots[slot].child.is_some() {
                self.signal(slot, Signal::CONT);
                self.slots[slot].due = None;
            } else {
                self.start(slot)?;
            }
        }
        Ok(())
    }

    /// Starts the first worker alone, which creates or recovers the store, and stops it in the
    /// middle.
    fn open_and_stop(&mut self) -> io::Result<()> {
        self.start(0)?;
        let pause = self.dice.between(0, 12_000);
        tenure_host::pause::sleep(Duration::from_micros(pause));
        self.harm.openings += 1;
        self.stop(0)
    }

    /// Whether a worker plays with the line. It is killed like any other but never stopped, so no
    /// waiter waits for it longer than the contract allows.
    fn plays_line(&self, slot: usize) -> bool {
        self.plan.part == Workload::Claims
            && slot > 0
            && slot < self.plan.workers
            && slot + self.plan.workers / 4 >= self.plan.workers
    }

    /// Whether a worker holds keys in silence.
    fn is_silent(&self, slot: usize) -> bool {
        !self.plan.hosts.is_empty() && (1..self.plan.workers / 2).contains(&slot)
    }

    /// Whether a worker only waits for the key of the crowd, once.
    fn is_of_crowd(&self, slot: usize) -> bool {
        slot >= self.plan.workers
    }

    /// Lets a crowd wait for one key, unless one still does.
    fn gather_crowd(&mut self) -> io::Result<()> {
        let crowd = self.plan.workers..self.slots.len();
        if self.slots[crowd.clone()]
            .iter()
            .any(|slot| slot.child.is_some())
        {
            return Ok(());
        }
        self.harm.crowds += 1;
        for slot in crowd {
            self.start(slot)?;
            self.what_is_due()?;
        }
        Ok(())
    }

    /// The host that a worker runs on.
    fn host(&self, slot: usize) -> Option<&Host> {
        let count = self.plan.hosts.len();
        self.plan.hosts.get(slot.checked_rem(count)?)
    }

    fn world(&self, slot: usize) -> Option<&World> {
        self.worlds.get(slot.checked_rem(self.worlds.len())?)
    }

    fn soon(&mut self, most_millis: u64) -> u64 {
        monotonic() + self.dice.between(0, most_millis) * 1_000_000
    }

    fn kill(&mut self, slot: usize) -> io::Result<()> {
        let Some(mut child) = self.slots[slot].child.take() else {
            return Ok(());
        };
        let worker = self.slots[slot].name.clone();
        let at = monotonic();
        self.deeds.write(&Deed::Kills {
            at,
            worker: worker.clone(),
        })?;
        child.kill()?;
        child.wait()?;
        self.gone(worker, None)?;
        self.harm.kills += 1;
        if self.plan.own_pids && self.worlds.is_empty() && self.dice.percent(40) {
            self.give_to_thread(child.id());
        }
        let most = if self.dice.percent(50) { 5 } else { 400 };
        let due = self.soon(most);
        self.slots[slot].due = Some(due).filter(|_| !self.is_of_crowd(slot));
        Ok(())
    }

    /// Gives the pid of a worker that is gone to a thread of ours, for longer than its key may stay
    /// held.
    fn give_to_thread(&mut self, pid: u32) {
        let length = Duration::from_millis(self.dice.between(100, 3000));
        if let Some(squatter) = squat(pid, length) {
            self.squatters.push(squatter);
            self.harm.threads += 1;
        }
    }

    fn gone(&mut self, worker: String, trouble: Option<String>) -> io::Result<()> {
        if let Some(trouble) = &trouble {
            self.harm.troubles.push(format!("{worker} {trouble}"));
        }
        self.deeds.write(&Deed::Gone {
            at: monotonic(),
            worker,
            trouble,
        })
    }

    fn stop(&mut self, slot: usize) -> io::Result<()> {
        let busy = self.slots[slot].child.is_none() || self.slots[slot].due.is_some();
        if busy || self.plays_line(slot) {
            return Ok(());
        }
        let at = monotonic();
        let most = if self.dice.percent(70) { 150 } else { 1200 };
        let until = self.soon(most);
        self.signal(slot, Signal::STOP);
        self.slots[slot].due = Some(until);
        self.harm.stops += 1;
        self.deeds.write(&Deed::Stopped {
            at,
            worker: self.slots[slot].name.clone(),
            millis: (until - at) / 1_000_000,
        })
    }

    fn signal(&self, slot: usize, signal: Signal) {
        let pid = self.slots[slot].child.as_ref().map(Child::id);
        let pid = pid.and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            // It is our child and not reaped, so the pid is its own; if it has exited, nothing
            // happens.
            kill_process(pid, signal).ignore("it has exited");
        }
    }

    /// Handles a worker that ended without being killed.
    fn notice_end(&mut self, slot: usize) -> io::Result<()> {
        let Some(child) = &mut self.slots[slot].child else {
            return Ok(());
        };
        let Some(status) = child.try_wait()? else {
            return Ok(());
        };
        let trouble = (!status.success()).then(|| {
            let path = self.plan.dir.join(format!("{}.err", self.slots[slot].name));
            let said = std::fs::read_to_string(path).unwrap_or_default();
            format!("ended by itself: {status}: {}", said.trim())
        });
        self.slots[slot].child = None;
        let may_lose_it = self.plan.store.is_some() || !self.plan.environment.is_empty();
        let returns = may_lose_it && !self.is_of_crowd(slot);
        if returns && monotonic() < self.until {
            self.slots[slot].due = Some(self.soon(400));
        }
        let worker = self.slots[slot].name.clone();
        self.gone(worker, trouble)
    }

    /// Holds the store's write lock for a moment, and checks whether the event log shrank.
    fn keep_lock(&mut self) -> io::Result<()> {
        if self.plan.store.is_some() {
            return Ok(());
        }
        let most = if self.dice.percent(80) { 30 } else { 300 };
        let length = Duration::from_millis(self.dice.between(1, most));
        let database = self.plan.dir.join(STATE).join(DATABASE);
        let Some((newest, events)) = self.beside(move || hold_lock(&database, length))? else {
            return Ok(());
        };
        if events < self.harm.events || events != newest {
            let had = self.harm.events;
            let trouble = format!("the log had {had} events, then {events} up to {newest}");
            self.harm.troubles.push(trouble);
        }
        self.harm.events = events;
        self.harm.locks += 1;
        Ok(())
    }

    /// Runs this on a thread and meanwhile starts and continues the workers whose time has come.
    ///
    /// What is run may wait for a stopped worker, and nothing else continues that one. Behind a
    /// process that is stopped while it recovers the log, SQLite waits 10 s whatever the timeout
    /// says.
    fn beside<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (tell, told) = channel();
        std::thread::Builder::new().spawn(move || tell.send(work()))?;
        loop {
            match told.recv_timeout(Duration::from_millis(2)) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) => self.what_is_due()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("a thread of the nemesis panicked"));
                }
            }
        }
    }

    /// Continues all workers and waits until they have left; one that does not is killed and
    /// reported.
    fn finish(&mut self) -> io::Result<()> {
        let late = monotonic() + u64::try_from(PATIENCE.as_nanos()).unwrap_or(u64::MAX);
        for slot in 0..self.slots.len() {
            self.signal(slot, Signal::CONT);
        }
        while self.slots.iter().any(|slot| slot.child.is_some()) {
            tenure_host::pause::sleep(Duration::from_millis(5));
            for slot in 0..self.slots.len() {
                self.notice_end(slot)?;
                if monotonic() > late && self.slots[slot].child.is_some() {
                    let name = self.slots[slot].name.clone();
                    self.harm.troubles.push(format!("{name} did not leave"));
                    self.kill(slot)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tenure_testkit::poll;

    use super::*;

    fn state(pid: u32) -> Option<char> {
        Stat::read(pid).map(|stat| stat.state)
    }

    #[test]
    fn a_worker_that_the_nemesis_waits_for_is_continued_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan {
            part: Workload::Claims,
            program: PathBuf::from("sleep"),
            dir: dir.path().to_owned(),
            workers: 1,
            length: Duration::ZERO,
            seed: 1,
            own_pids: false,
            store: None,
            hosts: Vec::new(),
            environment: Vec::new(),
        };
        let mut nemesis = Nemesis::new(&plan, u64::MAX, Vec::new()).unwrap();
        let child = Command::new(&plan.program).arg("60").spawn().unwrap();
        let pid = child.id();
        nemesis.slots[0].child = Some(child);
        nemesis.stop(0).unwrap();
        let limit = Duration::from_secs(20);
        poll(limit, "it stops", || {
            (state(pid) == Some('T')).then_some(())
        });

        let continued = nemesis.beside(move || {
            poll(limit, "it goes on", || {
                (state(pid) != Some('T')).then_some(())
            });
        });

        nemesis.kill(0).unwrap();
        continued.unwrap();
    }
}
