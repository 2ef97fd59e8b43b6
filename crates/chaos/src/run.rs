//! One run: workers, nemesis, their logs, and the results of the checks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fmt, io};

use tempfile::TempDir;
use tenure_core::process::BootId;
use tenure_core::store::{ClaimFilter, Store, Tx, TxMode};
use tenure_store::copy::RAISE;
use tenure_store::sqlite::SqliteStore;

use super::audit::Audit;
use super::check::{check, tell};
use super::faults::{self, Failing, Failures, MOVED};
use super::history::{Call, History, SHARED};
use super::hosts::{Host, NAMES, Terms};
use super::keepers::Shocks;
use super::nemesis::{self, Harm, Plan, Workload};
use super::pulse::Stalls;
use super::queue;
use super::record::Op;
use super::rule::Violation;
use super::tally::{Count, Means, counts, missing};
use super::weather::{Calm, Weather};
use super::worker::{DATABASE, Orders, STATE};
use super::world::World;

/// How many violations of one rule are reported.
const MAX_REPORTED: usize = 3;

/// For each second of a run on a failing disk, the power is cut at so many moments.
const CUTS_PER_SECOND: usize = 2;

#[derive(Debug, Clone)]
pub struct Options {
    /// The program that becomes a worker.
    pub program: PathBuf,
    pub length: Duration,
    pub workers: usize,
    pub seed: u64,
    /// Whether the run has its own pid namespace.
    pub own_pids: bool,
    pub store: Backend,
    /// The disk fails at one of so many writes and syncs, or never for 0, and the power is cut; claims on SQLite only.
    pub faults: Option<u64>,
    /// Whether the files are kept even if nothing was found.
    pub keep: bool,
}

/// Where the store of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
    /// Through a pooler.
    Pooled,
}

#[derive(Debug)]
pub struct Judgement {
    /// How many calls were made.
    pub calls: usize,
    /// How long the longest took that did not wait in line.
    pub longest: Duration,
    /// How many of them got no answer.
    pub unanswered: usize,
    /// How many events the store has.
    pub events: u64,
    /// The numbers of jobs and runs, for a queue run.
    pub jobs: Option<(usize, usize)>,
    /// The findings, for people.
    pub violations: Vec<String>,
    /// How long the checks took.
    pub took: Duration,
}

/// The result of a run.
#[derive(Debug)]
pub struct Report {
    pub seed: u64,
    pub length: Duration,
    /// How often each kind of harm was done.
    pub counts: Vec<Count>,
    /// What was done to the workers.
    pub harm: Harm,
    pub judgement: Judgement,
    /// Where the files were kept, if something was found.
    pub kept: Option<PathBuf>,
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told: BTreeMap<&str, usize> = BTreeMap::new();
        for violation in &self.violations {
            let rule = violation.split(':').next().unwrap_or_default();
            let times = told.entry(rule).or_default();
            *times += 1;
            if *times <= MAX_REPORTED {
                writeln!(f, "{violation}")?;
            }
        }
        for (rule, times) in told.iter().filter(|(_, times)| **times > MAX_REPORTED) {
            writeln!(f, "{rule}: {} more", times - MAX_REPORTED)?;
        }
        if let Some((jobs, runs)) = self.jobs {
            write!(f, "{jobs} jobs, {runs} runs, ")?;
        }
        write!(
            f,
            "{} calls, the longest {:.1} s, {} unanswered, {} events; checked in {:.1} s; {} violations",
            self.calls,
            self.longest.as_secs_f64(),
            self.unanswered,
            self.events,
            self.took.as_secs_f64(),
            self.violations.len()
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kept) = &self.kept {
            writeln!(
                f,
                "seed {}: everything is kept in {}",
                self.seed,
                kept.display()
            )?;
        }
        writeln!(f, "seed {}: {}", self.seed, self.harm())?;
        let harm = &self.harm;
        if harm.stalls != Stalls::default() {
            let Stalls { count, together } = harm.stalls;
            let together = together.as_secs_f64();
            writeln!(
                f,
                "the machine stalled {count} times, for {together:.1} s together"
            )?;
        }
        if harm.shocks != Shocks::default() && !harm.apart {
            writeln!(
                f,
                "the two hosts were in one process table, because this system makes no pid namespaces for us"
            )?;
        }
        write!(f, "{}", self.judgement)
    }
}

impl Report {
    /// The kinds of harm that should have been done and never were.
    pub fn missing(&self) -> Vec<&'static str> {
        missing(&self.counts)
    }

    /// What was done.
    fn harm(&self) -> String {
        let told = |count: &&Count| count.is_expected || count.times > 0;
        let told = self.counts.iter().filter(told);
        let told: Vec<String> = told
            .map(|count| format!("{} {}", count.times, count.name))
            .collect();
        told.join(", ")
    }

    /// What was done and found, in one line, with the seed that repeats it.
    pub fn summary(&self) -> String {
        let found = &self.judgement;
        let jobs = found
            .jobs
            .map(|(jobs, runs)| format!("{jobs} jobs, {runs} runs, "));
        format!(
            "seed {}, {} s: {}; {}{} calls, {} unanswered, {} events, {} violations",
            self.seed,
            self.length.as_secs(),
            self.harm(),
            jobs.unwrap_or_default(),
            found.calls,
            found.unanswered,
            found.events,
            found.violations.len()
        )
    }
}

pub fn run(options: &Options) -> io::Result<Report> {
    let scratch = scratch()?;
    let weather = weather(options, scratch.path(), Some(Terms::of_run()))?;
    let links = weather.as_ref().map_or(&[][..], |weather| &weather.urls);
    let hosts = Host::all(scratch.path(), links);
    let (mut harm, worlds) = harm(
        options,
        Workload::Claims,
        scratch.path(),
        weather.as_ref(),
        &hosts,
    )?;
    if let Some(weather) = &weather {
        let calm = weather.calm()?;
        for world in worlds {
            let rest = world.rest()?;
            harm.shocks.add(&rest.shocks);
            harm.troubles.extend(rest.trouble);
        }
        settle(&calm, scratch.path(), &mut harm)?;
    }
    let mut judgement = judge(scratch.path())?;
    if options.faults.is_some() {
        harm.failures = cut_power(options, scratch.path(), &mut judgement)?;
    }
    Ok(report(options, &hosts, scratch, harm, judgement))
}

/// Judges what the disk would have at many moments of the run, had the power been cut.
fn cut_power(options: &Options, dir: &Path, judgement: &mut Judgement) -> io::Result<Failures> {
    let began = Instant::now();
    let times = usize::try_from(options.length.as_secs()).unwrap_or(usize::MAX);
    let failures = faults::cut(dir, times * CUTS_PER_SECOND, options.seed, |left| {
        let found = judge(left)?;
        let cut = left.file_name().unwrap_or_default().to_string_lossy();
        let is_wrong = !found.violations.is_empty();
        let told = |violation: String| format!("{violation} (power cut, {cut})");
        judgement
            .violations
            .extend(found.violations.into_iter().map(told));
        Ok(is_wrong)
    })?;
    judgement.took += began.elapsed();
    Ok(failures)
}

/// A server for the run, if it is to have one.
fn weather(options: &Options, dir: &Path, terms: Option<Terms>) -> io::Result<Option<Weather>> {
    if options.store == Backend::Sqlite {
        return Ok(None);
    }
    std::fs::write(dir.join(SHARED), serde_json::to_vec(&terms)?)?;
    let is_pooled = options.store == Backend::Pooled;
    // Only claims are on several hosts.
    let links = if terms.is_some() { NAMES.len() } else { 1 };
    Weather::begin(is_pooled, links, options.seed, dir).map(Some)
}

/// Keeps what the server has for the checks.
fn settle(calm: &Calm, dir: &Path, harm: &mut Harm) -> io::Result<()> {
    harm.storms = calm.storms();
    let copied = calm.copy(&dir.join(STATE).join(DATABASE));
    let differs = copied.map_err(|error| io::Error::other(error.to_string()))?;
    harm.troubles.extend(differs);
    Ok(())
}

/// The same for the queue.
pub fn run_queue(options: &Options) -> io::Result<Report> {
    let scratch = scratch()?;
    let weather = weather(options, scratch.path(), None)?;
    let (mut harm, _) = harm(
        options,
        Workload::Queue,
        scratch.path(),
        weather.as_ref(),
        &[],
    )?;
    let calm = weather.as_ref().map(Weather::calm).transpose()?;
    let began = Instant::now();
    sweep_queue(scratch.path(), calm.as_ref().map(Calm::url))?;
    if let Some(calm) = &calm {
        settle(calm, scratch.path(), &mut harm)?;
    }
    let judgement = judge_queue(scratch.path(), began)?;
    Ok(report(options, &[], scratch, harm, judgement))
}

fn harm(
    options: &Options,
    part: Workload,
    dir: &Path,
    weather: Option<&Weather>,
    hosts: &[Host],
) -> io::Result<(Harm, Vec<World>)> {
    nemesis::run(&Plan {
        store: weather.and_then(|weather| weather.urls.first().cloned()),
        hosts: hosts.to_vec(),
        part,
        program: options.program.clone(),
        dir: dir.to_owned(),
        workers: options.workers,
        length: options.length,
        seed: options.seed,
        own_pids: options.own_pids,
        environment: match options.faults {
            Some(one_in) => faults::environment(dir, Failing::OneIn(one_in), options.seed)?,
            None => Vec::new(),
        },
    })
}

fn report(
    options: &Options,
    hosts: &[Host],
    scratch: TempDir,
    harm: Harm,
    judgement: Judgement,
) -> Report {
    let means = Means {
        server: options.store != Backend::Sqlite,
        pooler: options.store == Backend::Pooled,
        hosts: !hosts.is_empty(),
        own_pids: options.own_pids,
        faults: options.faults,
    };
    let mut judgement = judgement;
    let troubles = harm.troubles.iter().cloned();
    judgement.violations.splice(0..0, troubles);
    let kept = (options.keep || !judgement.violations.is_empty()).then(|| scratch.keep());
    Report {
        seed: options.seed,
        length: options.length,
        counts: counts(&harm, &means),
        harm,
        judgement,
        kept,
    }
}

/// Checks the directory of a run.
pub fn judge(dir: &Path) -> io::Result<Judgement> {
    let began = Instant::now();
    let history = History::load(dir)?;
    let database = dir.join(STATE).join(DATABASE);
    let audit = Audit::read(&database, &history).map_err(io::Error::other)?;
    let told = |violation: &Violation| tell(&history, violation);
    let mut violations = Vec::new();
    if !history.is_shared {
        violations.extend(reopened(&database, &audit, dir.join(MOVED).exists()));
    }
    violations.extend(check(&history, Some(&audit)).iter().map(told));
    let unanswered = history.calls.iter().filter(|call| call.answer.is_none());
    let waits = |call: &&Call| matches!(&call.op, Op::Claim(claim) if claim.wait.is_some());
    let brief = history
        .calls
        .iter()
        .filter(|call| call.answer.is_some() && !waits(call));
    let longest = brief.map(|call| call.until - call.asked).max();
    Ok(Judgement {
        longest: Duration::from_nanos(longest.unwrap_or(0)),
        calls: history.calls.len(),
        unanswered: unanswered.count(),
        events: audit.count,
        jobs: None,
        violations,
        took: began.elapsed(),
    })
}

/// How long the agents of killed workers may continue.
const AGENTS_END: Duration = Duration::from_secs(2);

/// Sweeps after a run of the queue.
fn sweep_queue(dir: &Path, store: Option<String>) -> io::Result<()> {
    tenure_host::pause::sleep(AGENTS_END);
    let orders = Orders {
        dir: dir.to_owned(),
        name: "judge".to_owned(),
        slot: String::new(),
        native: String::new(),
        seed: 0,
        until: 0,
        line: false,
        silent: false,
        crowd: false,
        host: None,
        store,
    };
    let failed = |error: Box<dyn std::error::Error>| io::Error::other(error.to_string());
    let mut judge = queue::worker::QueueWorker::new(orders).map_err(failed)?;
    // The first ends runs whose end nobody recorded, the second returns jobs that were taken again since.
    for _ in 0..2 {
        judge.sweep().map_err(failed)?;
    }
    Ok(())
}

/// Checks what a run of the queue left in its directory.
fn judge_queue(dir: &Path, began: Instant) -> io::Result<Judgement> {
    let found = queue::check::check(dir, &dir.join(STATE).join(DATABASE))?;
    Ok(Judgement {
        calls: found.calls,
        longest: found.longest,
        unanswered: found.unanswered,
        events: found.events,
        jobs: Some((found.jobs, found.runs)),
        violations: found.violations,
        took: began.elapsed(),
    })
}

/// A directory in memory, if there is one: what a kill can lose does not depend on the disk, and
/// without waiting for a disk there are ten times as many races per second.
fn scratch() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("tenure-chaos-");
    builder
        .tempdir_in("/dev/shm")
        .or_else(|_| builder.tempdir())
}

/// Whether the product itself reads the store as the tables show it.
fn reopened(database: &Path, audit: &Audit, is_moved: bool) -> Option<String> {
    let boot = BootId {
        id: "audit".into(),
        private: true,
    };
    let now = move || tenure_host::clock::now(&boot);
    let filter = ClaimFilter {
        free_too: true,
        ..ClaimFilter::default()
    };
    let read = || -> Result<_, tenure_core::store::StoreError> {
        let mut store = SqliteStore::open(database, Box::new(now))?;
        let mut tx: Box<dyn Tx> = store.begin(TxMode::Read)?;
        tx.list_claims(&filter)
    };
    let records = match read() {
        Ok(records) => records,
        Err(error) => return Some(format!("the store does not open again: {error}")),
    };
    // Of a store in another file, every epoch is raised.
    let raised = if is_moved { RAISE.unsigned_abs() } else { 0 };
    let read: Vec<(String, u64)> = records
        .iter()
        .map(|record| (record.key.to_string(), record.epoch.0 - raised))
        .collect();
    let stored: Vec<(String, u64)> = audit.claims.clone().into_iter().collect();
    (read != stored).then(|| format!("the store reads {read:?}, and its tables have {stored:?}"))
}
