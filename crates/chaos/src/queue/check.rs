//! Judges the results of a queue run: its events, replayed with the model; the answers to the
//! workers; and the agents' own records.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::model::{Back, JobPhase, MAX_FAILURES, Queue, Wait, Wrong};
use super::worker::{LIMITS, QueueLine, Work};
use crate::record::read;

/// The result of a queue run.
#[derive(Debug, Default)]
pub struct QueueFindings {
    pub jobs: usize,
    /// How many calls were answered, and how long the longest took.
    pub calls: usize,
    pub longest: Duration,
    /// Events that were sent and never acknowledged.
    pub unanswered: usize,
    /// Job events in the log.
    pub events: u64,
    /// Runs whose agents worked.
    pub runs: usize,
    pub violations: Vec<String>,
}

struct JobRow {
    id: String,
    root: String,
    item: String,
    rule: String,
    state: String,
}

/// Checks the directory of a run, after a sweep.
pub fn check(dir: &Path, database: &Path) -> io::Result<QueueFindings> {
    let mut found = QueueFindings::default();
    let conn = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(io::Error::other)?;
    let rows = rows(&conn).map_err(io::Error::other)?;
    let log = events(&conn).map_err(io::Error::other)?;
    let jobs_by_event = jobs_by_event(&conn).map_err(io::Error::other)?;
    let parks = parks(dir)?;
    found.jobs = rows.len();
    found.events = u64::try_from(log.len()).unwrap_or(u64::MAX);
    found.violations.extend(replay(&rows, &log, &parks));
    for row in rows.values() {
        if matches!(row.state.as_str(), "starting" | "begun") {
            let what = format!("after a sweep {} is still {}", row.id, row.state);
            found.violations.push(format!("unrecorded: {what}"));
        }
    }
    let undecided = undecided(&conn).map_err(io::Error::other)?;
    told(dir, &jobs_by_event, &undecided, &mut found)?;
    worked(dir, &log, &mut found)?;
    Ok(found)
}

fn rows(conn: &Connection) -> rusqlite::Result<BTreeMap<String, JobRow>> {
    let mut statement = conn.prepare("SELECT id, root, item, rule, state FROM jobs")?;
    let rows = statement.query_map([], |row| {
        Ok(JobRow {
            id: row.get(0)?,
            root: row.get(1)?,
            item: row.get(2)?,
            rule: row.get(3)?,
            state: row.get(4)?,
        })
    })?;
    rows.map(|row| row.map(|row| (row.id.clone(), row)))
        .collect()
}

/// An event of a job.
struct Logged {
    kind: String,
    job: String,
    why: String,
    /// In milliseconds of the wall clock.
    at: i64,
}

impl Logged {
    /// The run that it is about.
    fn run(&self) -> Option<&str> {
        let named = self.why.strip_prefix("run ")?;
        named.split([':', ' ']).next()
    }
}

/// Every event of a job, in their order.
fn events(conn: &Connection) -> rusqlite::Result<Vec<Logged>> {
    let sql = "SELECT kind, evidence, at FROM events WHERE kind LIKE 'job.%' ORDER BY id";
    let mut statement = conn.prepare(sql)?;
    let rows = statement.query_map([], |row| {
        let evidence: String = row.get(1)?;
        let (job, why) = evidence.split_once(": ").unwrap_or((&evidence, ""));
        Ok(Logged {
            kind: row.get(0)?,
            job: job.to_owned(),
            why: why.to_owned(),
            at: row.get(2)?,
        })
    })?;
    rows.collect()
}

/// Until when each run waits for a usage limit.
fn parks(dir: &Path) -> io::Result<BTreeMap<String, i64>> {
    let mut all = BTreeMap::new();
    for path in files(dir, "queue")? {
        for line in read::<QueueLine>(&path)? {
            if let QueueLine::Parks { run, until } = line {
                all.insert(run, until);
            }
        }
    }
    Ok(all)
}

/// The jobs that have each event.
fn jobs_by_event(conn: &Connection) -> rusqlite::Result<BTreeMap<String, Vec<String>>> {
    let mut statement = conn.prepare("SELECT summary, job FROM job_events ORDER BY id")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows {
        let (event, job): (String, String) = row?;
        all.entry(event).or_default().push(job);
    }
    Ok(all)
}

/// The log of events is the order in which things happened: the model must allow each of them.
fn replay(
    rows: &BTreeMap<String, JobRow>,
    log: &[Logged],
    parks: &BTreeMap<String, i64>,
) -> Vec<String> {
    let mut queue = Queue::default();
    let mut wrong = Vec::new();
    // The attempt that each run was recorded in.
    let mut attempts: BTreeMap<&str, u32> = BTreeMap::new();
    for (number, logged) in log.iter().enumerate() {
        let Logged { kind, job, why, .. } = logged;
        let applied =
            is_own(&queue, &attempts, logged).and_then(|()| apply(&mut queue, rows, logged, parks));
        if let Err(error) = applied {
            wrong.push(format!("order: {kind} of {job} ({why}): {error}"));
        }
        if kind == "job.taken"
            && let (Some(run), Ok(place)) = (logged.run(), queue.place(job))
        {
            attempts.insert(run, queue.jobs[place].attempt);
        }
        let running = queue.taken().count();
        if running > LIMITS.concurrency {
            wrong.push(format!("many: after event {number} {running} are taken"));
        }
        let taken: Vec<&str> = queue.taken().map(|job| job.conversation.as_str()).collect();
        let different: BTreeSet<&str> = taken.iter().copied().collect();
        if taken.len() != different.len() {
            wrong.push(format!("twice: after event {number} {taken:?} are taken"));
        }
    }
    for job in &queue.jobs {
        let expected = match &job.state {
            JobPhase::Waiting(Wait { parked: None, .. }) => "queued",
            JobPhase::Waiting(_) => "parked",
            JobPhase::Starting => "starting",
            JobPhase::Begun => "begun",
            JobPhase::Ended(_) => "ended",
            JobPhase::Cancelled => "cancelled",
        };
        let state = rows.get(&job.id).map_or("absent", |row| row.state.as_str());
        // Why it was given back is not in the log: after so many failures it waits for a person, or for its time.
        let is_either = expected == "queued" && job.failures >= MAX_FAILURES;
        if state != expected && !(is_either && state == "parked") {
            let id = &job.id;
            wrong.push(format!("row: {id} is {state}, its log says {expected}"));
        }
    }
    if queue.jobs.len() != rows.len() {
        let (logged, stored) = (queue.jobs.len(), rows.len());
        wrong.push(format!("row: {stored} jobs are stored, {logged} logged"));
    }
    wrong
}

/// A run that begins or ends is that of the attempt which has the job.
fn is_own(queue: &Queue, attempts: &BTreeMap<&str, u32>, logged: &Logged) -> Result<(), Wrong> {
    let changes = ["job.begun", "job.ended", "job.returned", "job.parked"];
    let run = logged.run().filter(|_| changes.contains(&&*logged.kind));
    let Some(run) = run else { return Ok(()) };
    let place = queue.place(&logged.job)?;
    match attempts.get(run) {
        Some(attempt) if *attempt == queue.jobs[place].attempt => Ok(()),
        _ => Err(Wrong::Late),
    }
}

fn apply(
    queue: &mut Queue,
    rows: &BTreeMap<String, JobRow>,
    logged: &Logged,
    parks: &BTreeMap<String, i64>,
) -> Result<(), Wrong> {
    let (kind, job, why) = (&*logged.kind, &*logged.job, &*logged.why);
    let place = queue.place(job);
    let attempt = |place: usize| queue.jobs[place].attempt;
    match (kind, place) {
        ("job.queued", Err(_)) => {
            let row = rows.get(job).ok_or(Wrong::Unknown)?;
            match queue.joins(&row.root, &row.rule) {
                // A waiting job should have been joined.
                Some(other) => Err(Wrong::Older(queue.jobs[other].id.clone())),
                None => {
                    queue.add(job, &row.root, &row.item, &row.rule, 0);
                    Ok(())
                }
            }
        }
        ("job.late", _) => Ok(()),
        (_, Err(wrong)) => Err(wrong),
        ("job.queued", Ok(place)) => queue.retry(place),
        ("job.joined", Ok(place)) => match queue.jobs[place].wait() {
            Some(_) => Ok(()),
            None => Err(Wrong::State(queue.jobs[place].state.clone())),
        },
        ("job.taken", Ok(place)) => match why.strip_prefix("run ") {
            Some(run) => {
                let attempt = attempt(place);
                queue.start(place, attempt, run)
            }
            None => {
                let is_over = |wait: &Wait| wait.is_over(logged.at);
                let is_early = queue.jobs[place].wait().is_some_and(|wait| !is_over(wait));
                queue.take(place)?;
                if is_early { Err(Wrong::Early) } else { Ok(()) }
            }
        },
        ("job.begun", Ok(place)) => {
            let attempt = attempt(place);
            queue.begin(place, attempt)
        }
        ("job.returned", Ok(place)) => {
            let attempt = attempt(place);
            // For how long it waits is not in the log.
            queue.give_back(place, attempt, &Back::InUse, 0)
        }
        ("job.parked", Ok(place)) => {
            let attempt = attempt(place);
            let until = logged.run().and_then(|run| parks.get(run));
            queue.end(place, attempt, "parked", Some(until.copied().unwrap_or(0)))
        }
        ("job.ended", Ok(place)) => {
            let attempt = attempt(place);
            queue.end(place, attempt, "", None)
        }
        ("job.cancelled", Ok(place)) => queue.cancel(place),
        _ => Err(Wrong::Unknown),
    }
}

/// The events that are stored and not decided yet.
fn undecided(conn: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let sql = "SELECT delivery_id FROM undecided_deliveries";
    let mut statement = conn.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    rows.collect()
}

/// Everything acknowledged is in one job, or still undecided; everything stored was sent.
fn told(
    dir: &Path,
    jobs_by_event: &BTreeMap<String, Vec<String>>,
    undecided: &BTreeSet<String>,
    found: &mut QueueFindings,
) -> io::Result<()> {
    let (mut brought, mut acknowledged) = (BTreeSet::new(), BTreeSet::new());
    for path in files(dir, "queue")? {
        for line in read::<QueueLine>(&path)? {
            match line {
                QueueLine::Brings { event } => {
                    brought.insert(event);
                }
                QueueLine::Stored { event } => {
                    if !jobs_by_event.contains_key(&event) && !undecided.contains(&event) {
                        let what = format!("{event} was stored, and is in no job");
                        found.violations.push(format!("lost: {what}"));
                    }
                    acknowledged.insert(event);
                }
                QueueLine::Called { millis } => {
                    found.calls += 1;
                    found.longest = found.longest.max(Duration::from_millis(millis));
                }
                QueueLine::Parks { .. } => {}
                QueueLine::Failed { what } => found.violations.push(format!("answer: {what}")),
            }
        }
    }
    found.unanswered = brought.difference(&acknowledged).count();
    for (event, jobs) in jobs_by_event {
        if jobs.len() != 1 || !brought.contains(event) {
            let what = format!("{event} is in {jobs:?}");
            found.violations.push(format!("twice: {what}"));
        }
    }
    Ok(())
}

/// Agents of one conversation never work at the same time, and each only in a run that began.
fn worked(dir: &Path, log: &[Logged], found: &mut QueueFindings) -> io::Result<()> {
    let begun: BTreeSet<&str> = log
        .iter()
        .filter(|logged| logged.kind == "job.begun")
        .filter_map(Logged::run)
        .collect();
    let mut times: BTreeMap<String, Vec<(u64, u64, String)>> = BTreeMap::new();
    for path in files(dir, "agent")? {
        let run = path.file_stem().unwrap_or_default().to_string_lossy();
        let lines = read::<Work>(&path)?;
        let begins = lines
            .iter()
            .filter(|line| matches!(line, Work::Begins { .. }));
        if begins.count() > 1 || !begun.contains(&*run) {
            let what = format!("the agent of {run} worked {} times", lines.len());
            found.violations.push(format!("work: {what}"));
        }
        let Some(Work::Begins { at, item, .. }) = lines.first() else {
            continue;
        };
        found.runs += 1;
        let end = lines.iter().find_map(|line| match line {
            Work::Ends { at } => Some(*at),
            Work::Begins { .. } => None,
        });
        let end = end.unwrap_or(*at);
        let of = times.entry(item.clone()).or_default();
        of.push((*at, end, run.to_string()));
    }
    for (item, mut of) in times {
        of.sort();
        for pair in of.windows(2) {
            if pair[1].0 < pair[0].1 {
                let (first, second) = (&pair[0].2, &pair[1].2);
                let what = format!("{first} and {second} worked on {item} at the same time");
                found.violations.push(format!("work: {what}"));
            }
        }
    }
    Ok(())
}

fn files(dir: &Path, extension: &str) -> io::Result<Vec<std::path::PathBuf>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|is| is == extension) {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}
