//! Jobs in rows, their events, and the count of an item's runs without a person.
//!
//! A change to a job compares its revision. A unique index guarantees one taken job per
//! conversation. Waiting jobs are read through partial indexes, so that ended jobs cost nothing.
//! *Crash*: a row is replaced completely or not at all.

use tenure_core::id::{AgentName, JobId, Malformed, RunId, SessionId};
use tenure_core::json_fault::fault_at;
use tenure_core::key::Key;
use tenure_core::queue::breaker::Breaker;
use tenure_core::queue::{
    Job, JobEnd, JobEvent, JobSpec, JobState, Parked, ParkedFor, Taken, Trust,
};
use tenure_core::run::Outcome;
use tenure_core::store::{JobFilter, JobRows, StoreError, WaitingFilter};
use tenure_core::time::Timestamp;

use super::handle::{PostgresTx, limit_or_all};
use super::process;
use super::row::Cells;
use super::session::after_prefix;
use super::value::{Value, numbered, params};

macro_rules! columns {
    () => {
        "id, agent, item, root, rule, trust, repo, spec, state, attempt, failures, failure, taker_host, boot_id, \
         boot_private, pid_ns, pid, start_ticks, start_shifted, taken_at, run, parked_for, parked_until, \
         parked_why, not_before, by_session, created_at, ended_at, outcome, why, revision"
    };
}

macro_rules! select {
    ($($rest:literal)?) => {
        concat!("SELECT ", columns!(), " FROM jobs " $(, $rest)?)
    };
}

/// A waiting job whose conversation is free and not on another host, and that is the oldest there.
macro_rules! waiting {
    ($which:literal, $order:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM jobs AS own ",
            $which,
            " AND NOT EXISTS (SELECT 1 FROM jobs AS older WHERE older.root = own.root AND older.agent = own.agent AND older.ended_at IS NULL \
               AND (older.created_at, older.id) < (own.created_at, own.id)) \
             AND NOT EXISTS (SELECT 1 FROM jobs AS taken WHERE taken.root = own.root AND taken.agent = own.agent \
               AND taken.state IN ('starting', 'begun')) \
             AND NOT EXISTS (SELECT 1 FROM conversations AS away \
               WHERE away.item = own.root AND away.agent = own.agent AND away.native_id IS NOT NULL \
               AND away.host_id <> $2 AND (own.spec::jsonb ->> 'fresh') IS DISTINCT FROM 'true') \
             ORDER BY ",
            $order,
            " LIMIT $1"
        )
    };
}

const BY_ID: &str = select!("WHERE id = $1");
const MATCH: &str = "SELECT id FROM jobs WHERE (id >= $1 AND id < $2) OR (id >= $3 AND id < $4) \
     ORDER BY created_at DESC, id DESC LIMIT $5";
const OPEN_OF: &str = select!(
    "WHERE root = $1 AND agent = $2 AND ended_at IS NULL \
     ORDER BY created_at, id"
);
const OPEN_FOR: &str = select!("WHERE item = $1 AND ended_at IS NULL ORDER BY created_at, id");
const TAKEN: &str = select!("WHERE state IN ('starting', 'begun') ORDER BY root, agent");
const TAKEN_OF_RUN: &str = select!("WHERE run = $1 AND state IN ('starting', 'begun')");
const READY: &str = waiting!(
    "WHERE state = 'queued' AND not_before IS NULL",
    "created_at, id"
);
const DELAYED: &str = waiting!("WHERE state = 'queued' AND not_before <= $3", "not_before");
const UNPARKED: &str = waiting!(
    "WHERE state = 'parked' AND parked_until <= $3",
    "parked_until"
);
/// The same of one repository: a full one must not be read through to find the others.
const READY_IN: &str = waiting!(
    "WHERE (state = 'queued' OR state = 'parked' AND parked_until IS NOT NULL) \
     AND coalesce(repo, '') = $3 AND coalesce(parked_until, not_before, 0) = 0",
    "created_at, id"
);
const DUE_IN: &str = waiting!(
    "WHERE (state = 'queued' OR state = 'parked' AND parked_until IS NOT NULL) \
     AND coalesce(repo, '') = $3 AND coalesce(parked_until, not_before, 0) > 0 \
     AND coalesce(parked_until, not_before, 0) <= $4",
    "coalesce(parked_until, not_before, 0), created_at, id"
);
const REPOS: &str = "WITH RECURSIVE repos (name) AS (SELECT '' COLLATE \"C\" UNION ALL SELECT (\
     SELECT coalesce(repo, '') FROM jobs WHERE (state = 'queued' OR state = 'parked' AND parked_until IS NOT NULL) \
     AND coalesce(repo, '') > repos.name ORDER BY coalesce(repo, '') LIMIT 1) FROM repos WHERE name IS NOT NULL) \
     SELECT name FROM repos WHERE name IS NOT NULL";
const NEXT_DELAYED: &str =
    "SELECT min(not_before) FROM jobs WHERE state = 'queued' AND not_before > $1";
const NEXT_UNPARKED: &str =
    "SELECT min(parked_until) FROM jobs WHERE state = 'parked' AND parked_until > $1";
const INSERT: &str = concat!(
    "INSERT INTO jobs (",
    columns!(),
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, \
     $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31)"
);
const UPDATE: &str = "UPDATE jobs SET root = $4, repo = $7, spec = $8, state = $9, attempt = $10, \
     failures = $11, failure = $12, taker_host = $13, boot_id = $14, boot_private = $15, pid_ns = $16, \
     pid = $17, start_ticks = $18, start_shifted = $19, taken_at = $20, run = $21, parked_for = $22, \
     parked_until = $23, parked_why = $24, not_before = $25, by_session = $26, ended_at = $28, outcome = $29, \
     why = $30, revision = revision + 1 \
     WHERE id = $1 AND agent = $2 AND item = $3 AND rule IS NOT DISTINCT FROM $5 AND trust = $6 AND created_at = $27 \
     AND revision = $31";
/// Jobs that are over and that neither a delivery nor a reply names. Each delivery of a job is in its events.
const FORGOTTEN: &str = "SELECT id FROM jobs WHERE created_at < $1 AND ended_at < $1 \
     AND NOT EXISTS (SELECT 1 FROM job_events AS own JOIN deliveries ON deliveries.id = own.delivery \
       WHERE own.job = jobs.id) \
     AND NOT EXISTS (SELECT 1 FROM replies WHERE replies.job = jobs.id AND kind <> 'eyes') \
     ORDER BY created_at, id LIMIT $2";
const EVENTS: &str =
    "SELECT delivery, at, summary, data FROM job_events WHERE job = $1 ORDER BY id";
const BEGUN: &str = "SELECT begun_at FROM runs WHERE item = $1 AND created_at >= $2 AND begun_at IS NOT NULL ORDER BY created_at";
const COST: &str = "SELECT coalesce(sum(cost), 0), min(created_at) FROM runs WHERE item = $1 AND created_at >= $2 AND cost IS NOT NULL";

/// The statement for a filter, with its parameters.
fn list_statement(filter: &JobFilter) -> (String, Vec<Value>) {
    let mut sql = select!().to_owned();
    let mut values: Vec<Value> = Vec::new();
    sql.push_str(" WHERE TRUE");
    if filter.open {
        sql.push_str(" AND ended_at IS NULL");
    }
    if let Some(item) = &filter.item {
        sql.push_str(" AND item = ?");
        values.push(item.to_string().into());
    }
    if let Some(agent) = &filter.agent {
        sql.push_str(" AND agent = ?");
        values.push(agent.to_string().into());
    }
    sql.push_str(if filter.open {
        " ORDER BY created_at, id LIMIT ?"
    } else {
        " ORDER BY created_at DESC, id DESC LIMIT ?"
    });
    values.push(limit_or_all(filter.limit).into());
    (numbered(&sql), values)
}

fn parse_spec(text: &str) -> Result<JobSpec, Malformed> {
    serde_json::from_str(text).map_err(|error| Malformed::new("job", text, fault_at(&error)))
}

fn read(cells: &mut Cells<'_>) -> Result<Job, StoreError> {
    Ok(Job {
        id: cells.parsed(JobId::parse)?,
        agent: cells.parsed(AgentName::parse)?,
        item: cells.parsed(Key::stored)?,
        root: cells.parsed(Key::stored)?,
        rule: cells.maybe_text()?,
        trust: cells.parsed(Trust::parse)?,
        repo: cells.maybe_text()?,
        spec: cells.parsed(parse_spec)?,
        state: cells.parsed(JobState::parse)?,
        attempt: cells.number()?,
        failures: cells.number()?,
        failure: cells.maybe_text()?,
        taken: read_taken(cells)?,
        run: cells.maybe_parsed(RunId::parse)?,
        parked: read_parked(cells)?,
        not_before: cells.maybe_time()?,
        by: cells.maybe_parsed(SessionId::parse)?,
        created_at: cells.time()?,
        end: read_end(cells)?,
        revision: cells.number()?,
    })
}

fn read_taken(cells: &mut Cells<'_>) -> Result<Option<Taken>, StoreError> {
    let by = process::read(cells)?;
    let at = cells.maybe_time()?;
    match (by, at) {
        (None, None) => Ok(None),
        (Some(by), Some(at)) => Ok(Some(Taken { by, at })),
        _ => Err(cells.broken("its taker is incomplete")),
    }
}

fn read_parked(cells: &mut Cells<'_>) -> Result<Option<Parked>, StoreError> {
    let reason = cells.maybe_parsed(ParkedFor::parse)?;
    let until = cells.maybe_time()?;
    let why = cells.maybe_text()?;
    match (reason, why) {
        (None, None) => Ok(None),
        (Some(reason), Some(why)) => Ok(Some(Parked { reason, until, why })),
        _ => Err(cells.broken("why it is parked is incomplete")),
    }
}

fn read_end(cells: &mut Cells<'_>) -> Result<Option<JobEnd>, StoreError> {
    let at = cells.maybe_time()?;
    let outcome = cells.maybe_parsed(Outcome::parse)?;
    let why = cells.maybe_text()?;
    match (at, why) {
        (None, None) => Ok(None),
        (Some(at), Some(why)) => Ok(Some(JobEnd { at, outcome, why })),
        _ => Err(cells.broken("its end is incomplete")),
    }
}

fn read_event(cells: &mut Cells<'_>) -> Result<JobEvent, StoreError> {
    Ok(JobEvent {
        delivery: cells.maybe_number()?,
        at: cells.time()?,
        summary: cells.text()?,
        data: cells.text()?,
    })
}

/// A job's values, in the order of the columns.
fn cells_of(tx: &PostgresTx<'_>, job: &Job) -> Result<Vec<Value>, StoreError> {
    let taker = job.taken.as_ref().map(|taken| &taken.by);
    let (parked, end) = (job.parked.as_ref(), job.end.as_ref());
    let spec = serde_json::to_string(&job.spec).map_err(|error| StoreError::Unavailable {
        store: "the queue".to_owned(),
        why: error.to_string(),
    })?;
    Ok(params![
        job.id.as_str(),
        job.agent.as_str(),
        job.item.as_str(),
        job.root.as_str(),
        &job.rule,
        job.trust.as_str(),
        &job.repo,
        spec,
        job.state.as_str(),
        job.attempt,
        job.failures,
        &job.failure,
        taker.map(|process| process.host.as_str()),
        taker.map(|process| process.boot.id.as_str()),
        taker.map(|process| process.boot.private),
        taker.map(|process| process.pid_ns.cast_signed()),
        taker.map(|process| process.pid),
        taker.map(|process| process.start.ticks.cast_signed()),
        taker.map(|process| process.start.shifted),
        job.taken.as_ref().map(|taken| taken.at.0),
        job.run.as_ref().map(RunId::as_str),
        parked.map(|parked| parked.reason.as_str()),
        parked.and_then(|parked| parked.until).map(|at| at.0),
        parked.map(|parked| parked.why.as_str()),
        job.not_before.map(|at| at.0),
        job.by.map(|by| by.to_string()),
        job.created_at.0,
        end.map(|end| end.at.0),
        end.and_then(|end| end.outcome).map(Outcome::as_str),
        end.map(|end| end.why.as_str()),
        tx.count("revision", job.revision)?,
    ])
}

impl JobRows for PostgresTx<'_> {
    fn job(&mut self, id: &JobId) -> Result<Option<Job>, StoreError> {
        self.first("jobs", BY_ID, params![id.as_str()], read)
    }

    fn match_jobs(&mut self, part: &str, limit: usize) -> Result<Vec<JobId>, StoreError> {
        let code = format!("j-{part}");
        let wanted = i64::try_from(limit).unwrap_or(i64::MAX);
        let range = params![part, after_prefix(part), &code, after_prefix(&code), wanted];
        self.all("jobs", MATCH, range, |cells| cells.parsed(JobId::parse))
    }

    fn list_jobs(&mut self, filter: &JobFilter) -> Result<Vec<Job>, StoreError> {
        self.listed(filter.readable_only, "jobs", list_statement(filter), read)
    }

    fn count_jobs(&mut self, filter: &JobFilter) -> Result<usize, StoreError> {
        let all = JobFilter {
            limit: 0,
            ..filter.clone()
        };
        self.rows("jobs", list_statement(&all))
    }

    fn open_jobs_of(&mut self, agent: &AgentName, root: &Key) -> Result<Vec<Job>, StoreError> {
        let key = params![root.as_str(), agent.as_str()];
        self.all_readable("jobs", OPEN_OF, key, read)
    }

    fn open_jobs_for(&mut self, item: &Key) -> Result<Vec<Job>, StoreError> {
        self.all_readable("jobs", OPEN_FOR, params![item.as_str()], read)
    }

    fn taken_jobs(&mut self) -> Result<Vec<Job>, StoreError> {
        self.all_readable("jobs", TAKEN, Vec::new(), read)
    }

    fn taken_job_of_run(&mut self, run: &RunId) -> Result<Option<Job>, StoreError> {
        self.first("jobs", TAKEN_OF_RUN, params![run.as_str()], read)
    }

    fn waiting_jobs(&mut self, filter: &WaitingFilter) -> Result<Vec<Job>, StoreError> {
        let (most, now) = (limit_or_all(filter.limit), filter.now.0);
        let host = filter.host.as_str();
        let mut jobs = Vec::new();
        if filter.without_repos.is_empty() {
            let ready = |most: Option<i64>| params![most, host];
            jobs.extend(self.first_readable("jobs", READY, most, ready, read)?);
            for sql in [DELAYED, UNPARKED] {
                let due = |most: Option<i64>| params![most, host, now];
                jobs.extend(self.first_readable("jobs", sql, most, due, read)?);
            }
        } else {
            // Empty stands for jobs of no repository.
            let mut repos = self.all("jobs", REPOS, Vec::new(), |cells| cells.text())?;
            repos.retain(|repo| !filter.without_repos.contains(repo));
            for repo in &repos {
                let ready = |most: Option<i64>| params![most, host, repo];
                jobs.extend(self.first_readable("jobs", READY_IN, most, ready, read)?);
                let due = |most: Option<i64>| params![most, host, repo, now];
                jobs.extend(self.first_readable("jobs", DUE_IN, most, due, read)?);
            }
        }
        jobs.sort_by(|a, b| (a.created_at, a.id.as_str()).cmp(&(b.created_at, b.id.as_str())));
        if filter.limit > 0 {
            jobs.truncate(filter.limit);
        }
        Ok(jobs)
    }

    fn next_job_at(&mut self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let mut first: Option<Timestamp> = None;
        for sql in [NEXT_DELAYED, NEXT_UNPARKED] {
            let at = self.first("jobs", sql, params![now.0], |cells| cells.maybe_time())?;
            first = [first, at.flatten()].into_iter().flatten().min();
        }
        Ok(first)
    }

    fn insert_job(&mut self, job: &Job) -> Result<(), StoreError> {
        let cells = cells_of(self, job)?;
        self.insert(INSERT, cells)
    }

    fn update_job(&mut self, job: &Job) -> Result<(), StoreError> {
        let cells = cells_of(self, job)?;
        self.compare_and_set(UPDATE, cells)
    }

    fn forget_jobs(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let values = params![before.0, limit_or_all(limit)];
        let old = self.all("jobs", FORGOTTEN, values, |cells| cells.text())?;
        self.run(
            "DELETE FROM job_events WHERE job = ANY($1)",
            params![old.clone()],
        )?;
        self.run("DELETE FROM jobs WHERE id = ANY($1)", params![old.clone()])?;
        Ok(old.len())
    }

    fn job_events(&mut self, id: &JobId) -> Result<Vec<JobEvent>, StoreError> {
        self.all("job_events", EVENTS, params![id.as_str()], read_event)
    }

    fn add_job_event(&mut self, id: &JobId, event: &JobEvent) -> Result<(), StoreError> {
        let sql =
            "INSERT INTO job_events (job, delivery, at, summary, data) VALUES ($1, $2, $3, $4, $5)";
        let values = params![
            id.as_str(),
            event.delivery,
            event.at.0,
            &event.summary,
            &event.data
        ];
        self.run(sql, values).map(|_| ())
    }

    fn runs_begun_since(
        &mut self,
        item: &Key,
        since: Timestamp,
    ) -> Result<Vec<Timestamp>, StoreError> {
        self.all("runs", BEGUN, params![item.as_str(), since.0], |cells| {
            cells.time()
        })
    }

    fn cost_since(
        &mut self,
        item: &Key,
        since: Timestamp,
    ) -> Result<(f64, Option<Timestamp>), StoreError> {
        let found = self.first("runs", COST, params![item.as_str(), since.0], |cells| {
            Ok((cells.maybe_real()?.unwrap_or_default(), cells.maybe_time()?))
        })?;
        Ok(found.unwrap_or_default())
    }

    fn breaker(&mut self, item: &Key) -> Result<Option<Breaker>, StoreError> {
        let sql = "SELECT item, runs, person_at, told_at FROM breakers WHERE item = $1";
        self.first("breakers", sql, params![item.as_str()], |cells| {
            Ok(Breaker {
                item: cells.parsed(Key::stored)?,
                runs: cells.number()?,
                person_at: cells.maybe_time()?,
                told_at: cells.maybe_time()?,
            })
        })
    }

    fn set_breaker(&mut self, breaker: &Breaker) -> Result<(), StoreError> {
        let sql = "INSERT INTO breakers (item, runs, person_at, told_at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (item) DO UPDATE SET runs = $2, person_at = $3, told_at = $4";
        let values = params![
            breaker.item.as_str(),
            breaker.runs,
            breaker.person_at.map(|at| at.0),
            breaker.told_at.map(|at| at.0)
        ];
        self.run(sql, values).map(|_| ())
    }
}
