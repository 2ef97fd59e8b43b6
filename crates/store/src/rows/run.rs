//! Runs in rows, and agents that are parked on a host.
//!
//! A change to a run compares its revision. Unique indexes guarantee one open run per conversation and per directory.
//! Lists are read in the order of an index, so that a page can stop at its limit. *Crash*: a row is replaced wholly or
//! not at all.

use std::time::Duration;

use tenure_core::conversation::fitness::Left;
use tenure_core::id::{
    AgentName, HostId, Life, NativeId, RunId, SessionId, SessionToken, WorkerRole,
};
use tenure_core::key::Key;
use tenure_core::process::BootId;
use tenure_core::run::end::Stop;
use tenure_core::run::{Outcome, Park, Run, RunEnd, StopAsked, Trigger, Usage};
use tenure_core::store::{CutOff, RunFilter, RunRows, StoreError};

use super::process::process_cells;
use super::session::after_prefix;
use crate::cells::{Cells, RowCell};
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::{Value, limit_or_all, params};

columns! { $
    RunRow of "runs" by select_runs {
        key { id }
        set {
            root, session, life, runner_host, boot_id, boot_private, pid_ns, pid, start_ticks, start_shifted,
            before_id, intended_id, after_id, dir, shares_dir, exclusive, timeout_ms, started_by, skill, prompt_hash, log, goes_on,
            begun_at, fell_back, stop_at, stop_by, stop_why, stop_cause, turns, tokens_in, tokens_out, cost, ended_at,
            outcome, why, exit_code, conversation_left, parked_until,
        }
        same { agent, role, item, host_id, created_at }
    }
}

columns! { $
    ParkRow of "parks" by select_parks { agent, host_id, until_at, count, why, run, at }
}

const BY_ID: &str = select_runs!("WHERE id = ?1");
const OPEN_OF: &str = select_runs!(
    "INDEXED BY runs_open WHERE root = ?1 AND agent = ?2 AND role = ?3 AND ended_at IS NULL"
);
const ALL_OPEN_OF: &str =
    select_runs!("INDEXED BY runs_open WHERE root = ?1 AND ended_at IS NULL ORDER BY agent, role");
const OPEN_IN: &str = select_runs!(
    "INDEXED BY runs_open /* may scan: few are open */ WHERE dir = ?1 AND host_id = ?2 AND ended_at IS NULL \
     ORDER BY created_at, id"
);
const OPEN_OF_SESSION: &str = select_runs!(
    "INDEXED BY runs_open /* may scan: few are open */ WHERE session = ?1 AND ended_at IS NULL"
);
const NEWEST_OF_SESSION: &str = select_runs!(
    "INDEXED BY runs_session WHERE session = ?1 ORDER BY created_at DESC, id DESC LIMIT 1"
);
const NEWEST_OF_SESSIONS: &str = concat!(
    "SELECT ",
    select_runs!(columns "r."),
    " FROM json_each(?1) CROSS JOIN runs r INDEXED BY runs_session ON r.session = json_each.value \
     WHERE NOT EXISTS (SELECT 1 FROM runs n INDEXED BY runs_session \
     WHERE n.session = r.session AND (n.created_at, n.id) > (r.created_at, r.id))"
);
const OF_SESSIONS: &str = concat!(
    "SELECT ",
    select_runs!(columns "r."),
    " FROM json_each(?1) CROSS JOIN runs r INDEXED BY runs_session ON r.session = json_each.value"
);
const CUT_OFF_IN: &str = select_runs!(
    "INDEXED BY runs_cut_off WHERE host_id = ?1 AND boot_id = ?2 AND dir = ?3 \
     AND (outcome = 'interrupted' OR exit_code IS NULL AND outcome IN ('stopped', 'timeout', 'failed')) \
     ORDER BY created_at DESC, id DESC"
);
const CUT_OFF_OF: &str = select_runs!(
    "INDEXED BY runs_cut_off WHERE host_id = ?1 AND boot_id = ?2 AND root = ?3 AND agent = ?4 AND role = ?5 \
     AND (outcome = 'interrupted' OR exit_code IS NULL AND outcome IN ('stopped', 'timeout', 'failed')) \
     ORDER BY created_at DESC, id DESC"
);
const MATCH: &str = "SELECT id FROM (SELECT id, created_at FROM runs WHERE id >= ?1 AND id < ?2 \
     UNION SELECT id, created_at FROM runs WHERE id >= ?3 AND id < ?4) found \
     ORDER BY created_at DESC, id DESC LIMIT ?5";
const LEFT: &str = "SELECT id, conversation_left FROM runs INDEXED BY runs_after \
     WHERE agent = ?1 AND after_id = ?2 AND ended_at IS NOT NULL \
     ORDER BY ended_at DESC, created_at DESC, id DESC LIMIT 1";
const PARK: &str = select_parks!("WHERE agent = ?1 AND host_id = ?2");
const PARKS: &str =
    select_parks!("/* may scan: one row per agent and host */ ORDER BY agent, host_id");
/// Its parameters are the columns in their order, then the run and the time of the park that it replaces.
const REPLACE_PARK: &str = "UPDATE parks SET until_at = ?3, count = ?4, why = ?5, run = ?6, at = ?7 \
     WHERE agent = ?1 AND host_id = ?2 AND run = ?8 AND at = ?9";
const CLEAR_PARK: &str = "DELETE FROM parks WHERE agent = ?1 AND host_id = ?2";

/// The statement for a filter, with its parameters.
fn list_statement(filter: &RunFilter) -> (String, Vec<Value<'_>>) {
    let (conditions, mut values) = conditions(filter);
    let mut sql = format!("{}{conditions}", select_runs!());
    sql.push_str(" ORDER BY created_at DESC, id DESC LIMIT ?");
    values.push(limit_or_all(filter.limit));
    (sql, values)
}

/// The runs that a filter fits, as far as they are to be counted.
fn count_statement(filter: &RunFilter) -> (String, Vec<Value<'_>>) {
    let (conditions, mut values) = conditions(filter);
    values.push(limit_or_all(filter.count_to));
    (format!("SELECT id FROM runs {conditions} LIMIT ?"), values)
}

/// Indexes are named because SQLite cannot know how few are open.
fn conditions(filter: &RunFilter) -> (String, Vec<Value<'_>>) {
    let mut sql = match filter {
        filter if filter.open => "INDEXED BY runs_open /* may scan: few are open */",
        filter if filter.item.is_some() => "INDEXED BY runs_item",
        _ => "INDEXED BY runs_newest /* may scan: in the order of the list, up to its limit */",
    }
    .to_owned();
    let mut values = Vec::new();
    sql.push_str(" WHERE TRUE");
    if filter.open {
        sql.push_str(" AND ended_at IS NULL");
    }
    if filter.failed {
        sql.push_str(" AND outcome IN ('failed', 'refused', 'timeout', 'interrupted', 'unusable')");
    }
    if let Some(item) = &filter.item {
        sql.push_str(" AND item = ?");
        values.push(item.as_str().into());
    }
    if let Some(agent) = &filter.agent {
        sql.push_str(" AND agent = ?");
        values.push(agent.as_str().into());
    }
    if let Some(since) = &filter.since {
        sql.push_str(" AND created_at >= ?");
        values.push(since.0.into());
    }
    if let Some((created_at, id)) = &filter.before {
        sql.push_str(" AND (created_at, id) < (?, ?)");
        values.push(created_at.0.into());
        values.push(id.as_str().into());
    }
    (sql, values)
}

fn read(cells: &mut Cells<'_>) -> Result<Run, StoreError> {
    let row = RunRow::read(cells);
    let runner = process_cells!(row, runner_host);
    Ok(Run {
        id: row.id.parsed(RunId::parse)?,
        agent: row.agent.parsed(AgentName::parse)?,
        role: row.role.parsed(WorkerRole::parse)?,
        item: row.item.parsed(Key::stored)?,
        root: row.root.parsed(Key::stored)?,
        host: HostId::new(row.host_id.text()?),
        session: read_session(&row)?,
        runner: runner.process()?,
        before: row.before_id.maybe_parsed(NativeId::parse)?,
        intended: row.intended_id.maybe_parsed(NativeId::parse)?,
        after: row.after_id.maybe_parsed(NativeId::parse)?,
        dir: row.dir.text()?,
        shares_dir: row.shares_dir.flag()?,
        exclusive: row.exclusive.flag()?,
        timeout: row.timeout_ms.maybe_number()?.map(Duration::from_millis),
        trigger: row.started_by.parsed(Trigger::parse)?,
        skill: row.skill.maybe_text()?,
        prompt_hash: row.prompt_hash.maybe_text()?,
        log: row.log.maybe_text()?,
        goes_on: row.goes_on.maybe_parsed(RunId::parse)?,
        created_at: row.created_at.time()?,
        begun_at: row.begun_at.maybe_time()?,
        fell_back: row.fell_back.flag()?,
        stop: read_stop(&row)?,
        usage: Usage {
            turns: row.turns.maybe_number()?,
            tokens_in: row.tokens_in.maybe_number()?,
            tokens_out: row.tokens_out.maybe_number()?,
            cost: row.cost.maybe_real()?,
        },
        end: read_end(&row)?,
        revision: row.revision.number()?,
    })
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(i64::MAX.unsigned_abs())
}

fn read_session(row: &RunRow<RowCell<'_>>) -> Result<Option<SessionToken>, StoreError> {
    let id = row.session.maybe_parsed(SessionId::parse)?;
    let life = row.life.maybe_number()?.map(Life);
    match (id, life) {
        (None, None) => Ok(None),
        (Some(id), Some(life)) => Ok(Some(SessionToken { id, life })),
        _ => Err(row.session.broken("its session is incomplete")),
    }
}

fn read_stop(row: &RunRow<RowCell<'_>>) -> Result<Option<StopAsked>, StoreError> {
    let at = row.stop_at.maybe_time()?;
    let by = row.stop_by.maybe_parsed(SessionId::parse)?;
    let why = row.stop_why.maybe_text()?;
    let cause = row.stop_cause.maybe_parsed(Stop::parse)?;
    match (at, why) {
        (None, None) => Ok(None),
        (Some(at), Some(why)) => Ok(Some(StopAsked {
            cause: cause.unwrap_or(Stop::Asked),
            at,
            by,
            why,
        })),
        _ => Err(row.stop_at.broken("the request to stop it is incomplete")),
    }
}

fn read_end(row: &RunRow<RowCell<'_>>) -> Result<Option<RunEnd>, StoreError> {
    let at = row.ended_at.maybe_time()?;
    let outcome = row.outcome.maybe_parsed(Outcome::parse)?;
    let why = row.why.maybe_text()?;
    let exit_code = row.exit_code.maybe_number()?;
    let left = row.conversation_left.maybe_parsed(Left::parse)?;
    let parked_until = row.parked_until.maybe_time()?;
    match (at, outcome, why, left) {
        (None, None, None, None) => Ok(None),
        (Some(at), Some(outcome), Some(why), Some(left)) => Ok(Some(RunEnd {
            at,
            outcome,
            why,
            exit_code,
            left,
            parked_until,
        })),
        _ => Err(row.ended_at.broken("its end is incomplete")),
    }
}

fn read_park(cells: &mut Cells<'_>) -> Result<Park, StoreError> {
    let row = ParkRow::read(cells);
    Ok(Park {
        agent: row.agent.parsed(AgentName::parse)?,
        host: HostId::new(row.host_id.text()?),
        until: row.until_at.time()?,
        count: row.count.number()?,
        why: row.why.text()?,
        run: row.run.parsed(RunId::parse)?,
        at: row.at.time()?,
    })
}

impl<E: Engine> Rows<E> {
    fn run_row<'a>(&self, run: &'a Run) -> Result<Vec<Value<'a>>, StoreError> {
        let runner = run.runner.as_ref();
        let (stop, end) = (run.stop.as_ref(), run.end.as_ref());
        let maybe_count =
            |what: &str, count: Option<u64>| count.map(|count| self.count(what, count)).transpose();
        let row = RunRow {
            root: run.root.as_str().into(),
            session: run.session.map(|session| session.id.to_string()).into(),
            life: run.session.map(|session| session.life.0).into(),
            runner_host: runner.map(|process| process.host.as_str()).into(),
            boot_id: runner.map(|process| process.boot.id.as_str()).into(),
            boot_private: runner.map(|process| process.boot.private).into(),
            pid_ns: runner.map(|process| process.pid_ns.cast_signed()).into(),
            pid: runner.map(|process| process.pid).into(),
            start_ticks: runner
                .map(|process| process.start.ticks.cast_signed())
                .into(),
            start_shifted: runner.map(|process| process.start.shifted).into(),
            before_id: run.before.as_ref().map(NativeId::as_str).into(),
            intended_id: run.intended.as_ref().map(NativeId::as_str).into(),
            after_id: run.after.as_ref().map(NativeId::as_str).into(),
            dir: run.dir.as_str().into(),
            shares_dir: run.shares_dir.into(),
            exclusive: run.exclusive.into(),
            timeout_ms: maybe_count("timeout", run.timeout.map(millis))?.into(),
            started_by: run.trigger.as_str().into(),
            skill: run.skill.as_deref().into(),
            prompt_hash: run.prompt_hash.as_deref().into(),
            log: run.log.as_deref().into(),
            goes_on: run.goes_on.as_ref().map(RunId::as_str).into(),
            begun_at: run.begun_at.map(|at| at.0).into(),
            fell_back: run.fell_back.into(),
            stop_at: stop.map(|stop| stop.at.0).into(),
            stop_by: stop
                .and_then(|stop| stop.by)
                .map(|by| by.to_string())
                .into(),
            stop_why: stop.map(|stop| stop.why.as_str()).into(),
            stop_cause: stop.map(|stop| stop.cause.as_str()).into(),
            turns: maybe_count("turns", run.usage.turns)?.into(),
            tokens_in: maybe_count("tokens", run.usage.tokens_in)?.into(),
            tokens_out: maybe_count("tokens", run.usage.tokens_out)?.into(),
            cost: run.usage.cost.into(),
            ended_at: end.map(|end| end.at.0).into(),
            outcome: end.map(|end| end.outcome.as_str()).into(),
            why: end.map(|end| end.why.as_str()).into(),
            exit_code: end.and_then(|end| end.exit_code).into(),
            conversation_left: end.map(|end| end.left.as_str()).into(),
            parked_until: end.and_then(|end| end.parked_until).map(|at| at.0).into(),
            agent: run.agent.as_str().into(),
            role: run.role.as_str().into(),
            item: run.item.as_str().into(),
            host_id: run.host.as_str().into(),
            created_at: run.created_at.0.into(),
            id: run.id.as_str().into(),
            revision: self.count("revision", run.revision)?.into(),
        };
        Ok(row.values())
    }
}

impl<E: Engine> RunRows for Rows<E> {
    fn run_by_id(&mut self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.first("runs", BY_ID, &params![id.as_str()], read)
    }

    fn match_runs(&mut self, part: &str, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let code = format!("r-{part}");
        let (after_part, after_code) = (after_prefix(part), after_prefix(&code));
        let range = params![part, after_part, code, after_code, limit_or_all(limit)];
        self.all("runs", MATCH, &range, |cells| cells.parsed(RunId::parse))
    }

    fn open_run_of(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        root: &Key,
    ) -> Result<Option<Run>, StoreError> {
        let key = params![root.as_str(), agent.as_str(), role.as_str()];
        self.first("runs", OPEN_OF, &key, read)
    }

    fn open_runs_of(&mut self, root: &Key) -> Result<Vec<Run>, StoreError> {
        self.all("runs", ALL_OPEN_OF, &params![root.as_str()], read)
    }

    fn open_runs_in(&mut self, host: &HostId, dir: &str) -> Result<Vec<Run>, StoreError> {
        self.all("runs", OPEN_IN, &params![dir, host.as_str()], read)
    }

    fn open_run_of_session(&mut self, session: SessionId) -> Result<Option<Run>, StoreError> {
        let session = params![session.to_string()];
        self.first("runs", OPEN_OF_SESSION, &session, read)
    }

    fn newest_run_of_session(&mut self, session: SessionId) -> Result<Option<Run>, StoreError> {
        let session = params![session.to_string()];
        self.first("runs", NEWEST_OF_SESSION, &session, read)
    }

    fn newest_runs_of_sessions(&mut self, sessions: &[SessionId]) -> Result<Vec<Run>, StoreError> {
        self.for_each_of("runs", NEWEST_OF_SESSIONS, sessions, read)
    }

    fn runs_of_sessions(&mut self, sessions: &[SessionId]) -> Result<Vec<Run>, StoreError> {
        self.for_each_of("runs", OF_SESSIONS, sessions, read)
    }

    fn runs_cut_off(
        &mut self,
        host: &HostId,
        boot: &BootId,
        place: CutOff<'_>,
    ) -> Result<Vec<Run>, StoreError> {
        let (host, boot) = (host.as_str(), boot.id.as_str());
        match place {
            CutOff::In(dir) => self.all("runs", CUT_OFF_IN, &params![host, boot, dir], read),
            CutOff::Of(agent, role, root) => {
                let key = params![host, boot, root.as_str(), agent.as_str(), role.as_str()];
                self.all("runs", CUT_OFF_OF, &key, read)
            }
        }
    }

    fn list_runs(&mut self, filter: &RunFilter) -> Result<Vec<Run>, StoreError> {
        self.listed(filter.readable_only, "runs", list_statement(filter), read)
    }

    fn count_runs(&mut self, filter: &RunFilter) -> Result<usize, StoreError> {
        let all = RunFilter {
            limit: 0,
            before: None,
            ..filter.clone()
        };
        self.count_rows("runs", count_statement(&all))
    }

    fn insert_run(&mut self, run: &Run) -> Result<(), StoreError> {
        let row = self.run_row(run)?;
        self.compare_and_set(RunRow::INSERT, &row)
    }

    fn update_run(&mut self, run: &Run) -> Result<(), StoreError> {
        let row = self.run_row(run)?;
        self.compare_and_set(RunRow::UPDATE, &row)
    }

    fn newest_left(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<(RunId, Left)>, StoreError> {
        let key = params![agent.as_str(), native_id.as_str()];
        self.first("runs", LEFT, &key, |cells| {
            Ok((cells.parsed(RunId::parse)?, cells.parsed(Left::parse)?))
        })
    }

    fn park(&mut self, agent: &AgentName, host: &HostId) -> Result<Option<Park>, StoreError> {
        let key = params![agent.as_str(), host.as_str()];
        self.first("parks", PARK, &key, read_park)
    }

    fn parks(&mut self) -> Result<Vec<Park>, StoreError> {
        self.all("parks", PARKS, &[], read_park)
    }

    fn set_park(&mut self, before: Option<&Park>, park: &Park) -> Result<(), StoreError> {
        let row = ParkRow {
            agent: park.agent.as_str().into(),
            host_id: park.host.as_str().into(),
            until_at: park.until.0.into(),
            count: park.count.into(),
            why: park.why.as_str().into(),
            run: park.run.as_str().into(),
            at: park.at.0.into(),
        };
        let mut values = row.values();
        match before {
            None => self.compare_and_set(ParkRow::INSERT, &values),
            Some(before) => {
                values.extend(params![before.run.as_str(), before.at.0]);
                self.compare_and_set(REPLACE_PARK, &values)
            }
        }
    }

    fn clear_park(&mut self, agent: &AgentName, host: &HostId) -> Result<(), StoreError> {
        self.run(CLEAR_PARK, &params![agent.as_str(), host.as_str()])?;
        Ok(())
    }
}
