//! Jobs in rows, their events, the count of an item's runs without a person, and the ids of repositories.
//!
//! A change to a job compares its revision. A unique index guarantees one taken job per conversation. Open and waiting
//! jobs are read through partial indexes, so that ended jobs cost nothing. *Crash*: a row is replaced wholly or not at
//! all.

use tenure_core::id::{AgentName, JobId, Malformed, RunId, SessionId, WorkerRole};
use tenure_core::json_fault::fault_at;
use tenure_core::key::Key;
use tenure_core::queue::breaker::Breaker;
use tenure_core::queue::identity::{Doubt, Identity};
use tenure_core::queue::{
    Job, JobEnd, JobEvent, JobSpec, JobState, JobTaker, Parked, ParkedFor, Trust,
};
use tenure_core::run::Outcome;
use tenure_core::store::{JobFilter, JobRows, StoreError, WaitingFilter};
use tenure_core::time::Timestamp;

use super::process::process_cells;
use super::session::after_prefix;
use crate::cells::{Cells, RowCell};
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::{Value, limit_or_all, params};

columns! { $
    JobRow of "jobs" by select_jobs {
        key { id }
        set {
            root, repo, spec, fresh, state, attempt, failures, failure, taker_host, boot_id, boot_private, pid_ns, pid,
            start_ticks, start_shifted, taken_at, run, parked_for, parked_until, parked_why, not_before, by_session,
            ended_at, outcome, why, unpublished, published,
        }
        same { agent, role, item, rule, trust, created_at }
    }
}

columns! { $
    JobEventRow of "job_events" by select_job_events { job, delivery, at, summary, data }
}

/// A waiting job whose conversation is free and not on another host, and that is the oldest there. Its parameters are
/// the limit, the host and the repositories that are left out.
macro_rules! waiting {
    ($when:literal, $order:literal) => {
        select_jobs!(
            "AS own INDEXED BY jobs_waiting \
             WHERE (state = 'queued' OR state = 'parked' AND parked_until IS NOT NULL) AND ",
            $when,
            " AND coalesce(repo, '') NOT IN (SELECT value FROM json_each(?3)) \
             AND NOT EXISTS (SELECT 1 FROM jobs AS older INDEXED BY jobs_open \
               WHERE older.root = own.root AND older.agent = own.agent AND older.role = own.role \
               AND older.ended_at IS NULL \
               AND (older.created_at, older.id) < (own.created_at, own.id)) \
             AND NOT EXISTS (SELECT 1 FROM jobs AS taken INDEXED BY jobs_taken \
               WHERE taken.root = own.root AND taken.agent = own.agent AND taken.role = own.role \
               AND taken.state IN ('starting', 'begun')) \
             AND NOT EXISTS (SELECT 1 FROM conversations AS away \
               WHERE away.item = own.root AND away.agent = own.agent AND away.role = own.role \
               AND away.native_id IS NOT NULL \
               AND away.host_id <> ?2 AND own.fresh = 0) \
             ORDER BY ",
            $order,
            " LIMIT ?1"
        )
    };
}

const BY_ID: &str = select_jobs!("WHERE id = ?1");
const MATCH: &str = "SELECT id FROM (SELECT id, created_at FROM jobs WHERE id >= ?1 AND id < ?2 \
     UNION SELECT id, created_at FROM jobs WHERE id >= ?3 AND id < ?4) found \
     ORDER BY created_at DESC, id DESC LIMIT ?5";
const OPEN_OF: &str = select_jobs!(
    "INDEXED BY jobs_open WHERE root = ?1 AND agent = ?2 AND role = ?3 AND ended_at IS NULL \
     ORDER BY created_at, id"
);
const OPEN_FOR: &str = select_jobs!(
    "INDEXED BY jobs_open /* may scan: few are open */ WHERE item = ?1 AND ended_at IS NULL \
     ORDER BY created_at, id"
);
const UNPUBLISHED_OF: &str = select_jobs!(
    "INDEXED BY jobs_open WHERE root = ?1 AND agent = ?2 AND role = ?3 AND unpublished IS NOT NULL \
     ORDER BY created_at, id"
);
const TAKEN: &str = select_jobs!(
    "INDEXED BY jobs_taken /* may scan: few are taken */ WHERE state IN ('starting', 'begun') \
     ORDER BY root, agent, role"
);
const TAKEN_OF_RUN: &str = select_jobs!(
    "INDEXED BY jobs_taken /* may scan: few are taken */ WHERE run = ?1 AND state IN ('starting', 'begun')"
);
const READY: &str = waiting!(
    "coalesce(parked_until, not_before, 0) = 0",
    "created_at, id"
);
const DUE: &str = waiting!(
    "coalesce(parked_until, not_before, 0) > 0 AND coalesce(parked_until, not_before, 0) <= ?4",
    "coalesce(parked_until, not_before, 0), created_at, id"
);
const NEXT: &str = "SELECT min(coalesce(parked_until, not_before, 0)) FROM jobs INDEXED BY jobs_waiting \
     WHERE (state = 'queued' OR state = 'parked' AND parked_until IS NOT NULL) \
     AND coalesce(parked_until, not_before, 0) > ?1";
/// Jobs that are over and that neither a delivery nor a reply names. Each delivery of a job is in its events.
const FORGOTTEN: &str = "SELECT id FROM jobs INDEXED BY jobs_newest \
     WHERE created_at < ?1 AND ended_at < ?1 \
     AND NOT EXISTS (SELECT 1 FROM job_events AS own INDEXED BY job_events_job \
       CROSS JOIN deliveries ON deliveries.id = own.delivery WHERE own.job = jobs.id) \
     AND NOT EXISTS (SELECT 1 FROM replies INDEXED BY replies_comment \
       WHERE replies.job = jobs.id AND kind <> 'eyes') \
     ORDER BY created_at, id LIMIT ?2";
const FORGET_EVENTS: &str = "DELETE FROM job_events WHERE job IN (SELECT value FROM json_each(?1))";
const FORGET: &str = "DELETE FROM jobs WHERE id IN (SELECT value FROM json_each(?1))";
const EVENTS: &str = select_job_events!("WHERE job = ?1 ORDER BY id");
const BEGUN: &str = "SELECT begun_at FROM runs INDEXED BY runs_item \
     WHERE item = ?1 AND created_at >= ?2 AND begun_at IS NOT NULL ORDER BY created_at";
const COST: &str = "SELECT sum(cost), min(created_at) FROM runs INDEXED BY runs_item \
     WHERE item = ?1 AND created_at >= ?2 AND cost IS NOT NULL";
const BREAKER: &str = "SELECT item, breaker_runs, person_at, told_at FROM items \
     WHERE item = ?1 AND breaker_runs IS NOT NULL";
const SET_BREAKER: &str = "INSERT INTO items (item, breaker_runs, person_at, told_at) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT (item) DO UPDATE SET breaker_runs = excluded.breaker_runs, person_at = excluded.person_at, \
     told_at = excluded.told_at";

const IDENTITY: &str = "SELECT forge_id, doubt_id FROM items WHERE item = ?1";
const SET_IDENTITY: &str = "INSERT INTO items (item, forge_id, doubt_id) VALUES (?1, ?2, ?3) \
     ON CONFLICT (item) DO UPDATE SET forge_id = excluded.forge_id, doubt_id = excluded.doubt_id";

/// The statement for a filter, with its parameters but the last, which is the limit.
fn list_statement(filter: &JobFilter) -> (String, Vec<Value<'_>>) {
    let mut sql = select_jobs!().to_owned();
    let mut values = Vec::new();
    sql.push_str(if filter.open {
        "INDEXED BY jobs_open /* may scan: few are open */"
    } else {
        "INDEXED BY jobs_newest /* may scan: in the order of the list, up to its limit */"
    });
    sql.push_str(match (filter.open, filter.unpublished) {
        (false, _) => " WHERE TRUE",
        (true, false) => " WHERE ended_at IS NULL",
        (true, true) => " WHERE (ended_at IS NULL OR unpublished IS NOT NULL)",
    });
    if let Some(item) = &filter.item {
        sql.push_str(" AND item = ?");
        values.push(item.as_str().into());
    }
    if let Some(agent) = &filter.agent {
        sql.push_str(" AND agent = ?");
        values.push(agent.as_str().into());
    }
    if let Some((created_at, id)) = &filter.behind {
        sql.push_str(if filter.open {
            " AND (created_at, id) > (?, ?)"
        } else {
            " AND (created_at, id) < (?, ?)"
        });
        values.push(created_at.0.into());
        values.push(id.as_str().into());
    }
    sql.push_str(if filter.open {
        " ORDER BY created_at, id LIMIT ?"
    } else {
        " ORDER BY created_at DESC, id DESC LIMIT ?"
    });
    (sql, values)
}

fn parse_spec(text: &str) -> Result<JobSpec, Malformed> {
    serde_json::from_str(text).map_err(|error| Malformed::new("job", text, fault_at(&error)))
}

fn read(cells: &mut Cells<'_>) -> Result<Job, StoreError> {
    let row = JobRow::read(cells);
    Ok(Job {
        id: row.id.parsed(JobId::parse)?,
        agent: row.agent.parsed(AgentName::parse)?,
        role: row.role.parsed(WorkerRole::parse)?,
        item: row.item.parsed(Key::stored)?,
        root: row.root.parsed(Key::stored)?,
        rule: row.rule.maybe_text()?,
        trust: row.trust.parsed(Trust::parse)?,
        repo: row.repo.maybe_text()?,
        // The column `fresh` repeats a part of it for statements.
        spec: row.spec.parsed(parse_spec)?,
        state: row.state.parsed(JobState::parse)?,
        attempt: row.attempt.number()?,
        failures: row.failures.number()?,
        failure: row.failure.maybe_text()?,
        taken: read_taken(&row)?,
        run: row.run.maybe_parsed(RunId::parse)?,
        parked: read_parked(&row)?,
        not_before: row.not_before.maybe_time()?,
        by: row.by_session.maybe_parsed(SessionId::parse)?,
        created_at: row.created_at.time()?,
        end: read_end(&row)?,
        unpublished: row.unpublished.maybe_text()?,
        published: row.published.maybe_text()?,
        revision: row.revision.number()?,
    })
}

fn read_taken(row: &JobRow<RowCell<'_>>) -> Result<Option<JobTaker>, StoreError> {
    let by = process_cells!(row, taker_host);
    match (by.process()?, row.taken_at.maybe_time()?) {
        (None, None) => Ok(None),
        (Some(by), Some(at)) => Ok(Some(JobTaker { by, at })),
        _ => Err(row.taken_at.broken("its taker is incomplete")),
    }
}

fn read_parked(row: &JobRow<RowCell<'_>>) -> Result<Option<Parked>, StoreError> {
    let reason = row.parked_for.maybe_parsed(ParkedFor::parse)?;
    let until = row.parked_until.maybe_time()?;
    let why = row.parked_why.maybe_text()?;
    match (reason, why) {
        (None, None) => Ok(None),
        (Some(reason), Some(why)) => Ok(Some(Parked { reason, until, why })),
        _ => Err(row.parked_for.broken("why it is parked is incomplete")),
    }
}

fn read_end(row: &JobRow<RowCell<'_>>) -> Result<Option<JobEnd>, StoreError> {
    let at = row.ended_at.maybe_time()?;
    let outcome = row.outcome.maybe_parsed(Outcome::parse)?;
    let why = row.why.maybe_text()?;
    match (at, why) {
        (None, None) => Ok(None),
        (Some(at), Some(why)) => Ok(Some(JobEnd { at, outcome, why })),
        _ => Err(row.ended_at.broken("its end is incomplete")),
    }
}

fn read_event(cells: &mut Cells<'_>) -> Result<JobEvent, StoreError> {
    let row = JobEventRow::read(cells);
    Ok(JobEvent {
        delivery: row.delivery.maybe_number()?,
        at: row.at.time()?,
        summary: row.summary.text()?,
        data: row.data.text()?,
    })
}

impl<E: Engine> Rows<E> {
    fn job_row<'a>(&self, job: &'a Job) -> Result<Vec<Value<'a>>, StoreError> {
        let taker = job.taken.as_ref().map(|taken| &taken.by);
        let (parked, end) = (job.parked.as_ref(), job.end.as_ref());
        let spec = serde_json::to_string(&job.spec).map_err(|error| StoreError::Unavailable {
            store: "the queue".to_owned(),
            why: error.to_string(),
        })?;
        let row = JobRow {
            root: job.root.as_str().into(),
            repo: job.repo.as_deref().into(),
            spec: spec.into(),
            fresh: job.spec.fresh.into(),
            state: job.state.as_str().into(),
            attempt: job.attempt.into(),
            failures: job.failures.into(),
            failure: job.failure.as_deref().into(),
            taker_host: taker.map(|process| process.host.as_str()).into(),
            boot_id: taker.map(|process| process.boot.id.as_str()).into(),
            boot_private: taker.map(|process| process.boot.private).into(),
            pid_ns: taker.map(|process| process.pid_ns.cast_signed()).into(),
            pid: taker.map(|process| process.pid).into(),
            start_ticks: taker
                .map(|process| process.start.ticks.cast_signed())
                .into(),
            start_shifted: taker.map(|process| process.start.shifted).into(),
            taken_at: job.taken.as_ref().map(|taken| taken.at.0).into(),
            run: job.run.as_ref().map(RunId::as_str).into(),
            parked_for: parked.map(|parked| parked.reason.as_str()).into(),
            parked_until: parked.and_then(|parked| parked.until).map(|at| at.0).into(),
            parked_why: parked.map(|parked| parked.why.as_str()).into(),
            not_before: job.not_before.map(|at| at.0).into(),
            by_session: job.by.map(|by| by.to_string()).into(),
            ended_at: end.map(|end| end.at.0).into(),
            outcome: end.and_then(|end| end.outcome).map(Outcome::as_str).into(),
            why: end.map(|end| end.why.as_str()).into(),
            unpublished: job.unpublished.as_deref().into(),
            published: job.published.as_deref().into(),
            agent: job.agent.as_str().into(),
            role: job.role.as_str().into(),
            item: job.item.as_str().into(),
            rule: job.rule.as_deref().into(),
            trust: job.trust.as_str().into(),
            created_at: job.created_at.0.into(),
            id: job.id.as_str().into(),
            revision: self.count("revision", job.revision)?.into(),
        };
        Ok(row.values())
    }
}

impl<E: Engine> JobRows for Rows<E> {
    fn job(&mut self, id: &JobId) -> Result<Option<Job>, StoreError> {
        self.first("jobs", BY_ID, &params![id.as_str()], read)
    }

    fn match_jobs(&mut self, part: &str, limit: usize) -> Result<Vec<JobId>, StoreError> {
        let code = format!("j-{part}");
        let (after_part, after_code) = (after_prefix(part), after_prefix(&code));
        let range = params![part, after_part, code, after_code, limit_or_all(limit)];
        self.all("jobs", MATCH, &range, |cells| cells.parsed(JobId::parse))
    }

    fn list_jobs(&mut self, filter: &JobFilter) -> Result<Vec<Job>, StoreError> {
        let (sql, values) = list_statement(filter);
        let limited = |most: Value<'static>| [values.as_slice(), &[most]].concat();
        if filter.readable_only {
            self.first_readable("jobs", &sql, filter.limit, limited, read)
        } else {
            let values = limited(limit_or_all(filter.limit));
            self.all("jobs", &sql, &values, read)
        }
    }

    fn count_jobs(&mut self, filter: &JobFilter) -> Result<usize, StoreError> {
        let (sql, mut values) = list_statement(filter);
        values.push(limit_or_all(0));
        self.count_rows("jobs", (sql, values))
    }

    fn open_jobs_of(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        root: &Key,
    ) -> Result<Vec<Job>, StoreError> {
        let key = params![root.as_str(), agent.as_str(), role.as_str()];
        self.all_readable("jobs", OPEN_OF, &key, read)
    }

    fn unpublished_jobs_of(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        root: &Key,
    ) -> Result<Vec<Job>, StoreError> {
        let key = params![root.as_str(), agent.as_str(), role.as_str()];
        self.all_readable("jobs", UNPUBLISHED_OF, &key, read)
    }

    fn open_jobs_for(&mut self, item: &Key) -> Result<Vec<Job>, StoreError> {
        self.all_readable("jobs", OPEN_FOR, &params![item.as_str()], read)
    }

    fn taken_jobs(&mut self) -> Result<Vec<Job>, StoreError> {
        self.all_readable("jobs", TAKEN, &[], read)
    }

    fn taken_job_of_run(&mut self, run: &RunId) -> Result<Option<Job>, StoreError> {
        self.first("jobs", TAKEN_OF_RUN, &params![run.as_str()], read)
    }

    fn waiting_jobs(&mut self, filter: &WaitingFilter) -> Result<Vec<Job>, StoreError> {
        let (limit, host, now) = (filter.limit, filter.host.as_str(), filter.now.0);
        // Empty stands for jobs of no repository.
        let without: Vec<String> = filter.without_repos.iter().cloned().collect();
        let ready = |most| params![most, host, without.clone()];
        let mut jobs = self.first_readable("jobs", READY, limit, ready, read)?;
        let due = |most| params![most, host, without.clone(), now];
        jobs.extend(self.first_readable("jobs", DUE, limit, due, read)?);
        jobs.sort_by(|a, b| (a.created_at, a.id.as_str()).cmp(&(b.created_at, b.id.as_str())));
        if limit > 0 {
            jobs.truncate(limit);
        }
        Ok(jobs)
    }

    fn next_job_at(&mut self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let at = self.first("jobs", NEXT, &params![now.0], |cells| cells.maybe_time())?;
        Ok(at.flatten())
    }

    fn insert_job(&mut self, job: &Job) -> Result<(), StoreError> {
        let row = self.job_row(job)?;
        self.compare_and_set(JobRow::INSERT, &row)
    }

    fn update_job(&mut self, job: &Job) -> Result<(), StoreError> {
        let row = self.job_row(job)?;
        self.compare_and_set(JobRow::UPDATE, &row)
    }

    fn forget_jobs(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let values = params![before.0, limit_or_all(limit)];
        let old = self.all("jobs", FORGOTTEN, &values, |cells| cells.text())?;
        let forgotten = old.len();
        let old = params![old];
        self.run(FORGET_EVENTS, &old)?;
        self.run(FORGET, &old)?;
        Ok(forgotten)
    }

    fn job_events(&mut self, id: &JobId) -> Result<Vec<JobEvent>, StoreError> {
        self.all("job_events", EVENTS, &params![id.as_str()], read_event)
    }

    fn add_job_event(&mut self, id: &JobId, event: &JobEvent) -> Result<(), StoreError> {
        let row = JobEventRow {
            job: id.as_str().into(),
            delivery: event.delivery.into(),
            at: event.at.0.into(),
            summary: event.summary.as_str().into(),
            data: event.data.as_str().into(),
        };
        self.compare_and_set(JobEventRow::INSERT, &row.values())
    }

    fn runs_begun_since(
        &mut self,
        item: &Key,
        since: Timestamp,
    ) -> Result<Vec<Timestamp>, StoreError> {
        let values = params![item.as_str(), since.0];
        self.all("runs", BEGUN, &values, |cells| cells.time())
    }

    fn cost_since(
        &mut self,
        item: &Key,
        since: Timestamp,
    ) -> Result<(f64, Option<Timestamp>), StoreError> {
        let values = params![item.as_str(), since.0];
        let found = self.first("runs", COST, &values, |cells| {
            Ok((cells.maybe_real()?.unwrap_or_default(), cells.maybe_time()?))
        })?;
        Ok(found.unwrap_or_default())
    }

    fn breaker(&mut self, item: &Key) -> Result<Option<Breaker>, StoreError> {
        self.first("items", BREAKER, &params![item.as_str()], |cells| {
            Ok(Breaker {
                item: cells.parsed(Key::stored)?,
                runs: cells.number()?,
                person_at: cells.maybe_time()?,
                told_at: cells.maybe_time()?,
            })
        })
    }

    fn set_breaker(&mut self, breaker: &Breaker) -> Result<(), StoreError> {
        let values = params![
            breaker.item.as_str(),
            breaker.runs,
            breaker.person_at.map(|at| at.0),
            breaker.told_at.map(|at| at.0),
        ];
        self.run(SET_BREAKER, &values)?;
        Ok(())
    }

    fn identity(&mut self, name: &str) -> Result<Option<Identity>, StoreError> {
        let Some(key) = Identity::key(name) else {
            return Ok(None);
        };
        self.first("items", IDENTITY, &params![key.as_str()], |cells| {
            let id = cells.maybe_number::<i64>()?.map(i64::cast_unsigned);
            let doubt = cells.maybe_number::<i64>()?.map(|number| match number {
                0 => Doubt::Deleted,
                id => Doubt::Other(id.cast_unsigned()),
            });
            Ok(Identity {
                name: name.to_owned(),
                id,
                doubt,
            })
        })
    }

    fn set_identity(&mut self, identity: &Identity) -> Result<(), StoreError> {
        let Some(key) = Identity::key(&identity.name) else {
            return Ok(());
        };
        let doubt = identity.doubt.map(|doubt| match doubt {
            Doubt::Deleted => 0,
            Doubt::Other(id) => id.cast_signed(),
        });
        let id = identity.id.map(u64::cast_signed);
        self.run(SET_IDENTITY, &params![key.as_str(), id, doubt])?;
        Ok(())
    }
}
