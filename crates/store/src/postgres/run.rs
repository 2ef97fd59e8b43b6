//! Runs in rows, and parked agents.
//!
//! A change to a run compares its revision. Unique indexes guarantee one open run per conversation
//! and per directory. Lists use an index in their order, so a page costs the same however many runs
//! there are. *Crash*: a row is replaced completely or not at all.

use tenure_core::conversation::fitness::Left;
use tenure_core::id::{AgentName, HostId, Life, NativeId, RunId, SessionId, SessionToken};
use tenure_core::key::Key;
use tenure_core::process::BootId;
use tenure_core::run::end::Stop;
use tenure_core::run::{Outcome, Park, Run, RunEnd, StopAsked, Trigger, Usage};
use tenure_core::store::{CutOff, RunFilter, RunRows, StoreError};

use super::handle::{PostgresTx, limit_or_all};
use super::process;
use super::row::Cells;
use super::session::after_prefix;
use super::value::{Value, numbered, params};

macro_rules! columns {
    () => {
        "id, agent, item, root, host_id, session, life, runner_host, boot_id, boot_private, pid_ns, pid, \
         start_ticks, start_shifted, before_id, intended_id, after_id, dir, shares_dir, exclusive, \
         started_by, skill, prompt_hash, log, goes_on, created_at, begun_at, fell_back, stop_at, stop_by, \
         stop_why, turns, tokens_in, tokens_out, cost, ended_at, outcome, why, exit_code, \
         conversation_left, parked_until, revision, stop_cause"
    };
}

macro_rules! select {
    ($($rest:literal)?) => {
        concat!("SELECT ", columns!(), " FROM runs " $(, $rest)?)
    };
}

const BY_ID: &str = select!("WHERE id = $1");
const OPEN_OF: &str = select!("WHERE root = $1 AND agent = $2 AND ended_at IS NULL");
const ALL_OPEN_OF: &str = select!("WHERE root = $1 AND ended_at IS NULL ORDER BY agent");
const OPEN_IN: &str =
    select!("WHERE dir = $1 AND host_id = $2 AND ended_at IS NULL ORDER BY created_at, id");
const OPEN_OF_SESSION: &str = select!("WHERE session = $1 AND ended_at IS NULL");
const NEWEST_OF_SESSION: &str =
    select!("WHERE session = $1 ORDER BY created_at DESC, id DESC LIMIT 1");
const CUT_OFF_IN: &str = select!(
    "WHERE dir = $3 AND host_id = $1 AND boot_id = $2 \
     AND (outcome = 'interrupted' OR exit_code IS NULL AND outcome IN ('stopped', 'timeout', 'failed')) \
     ORDER BY created_at DESC, id DESC"
);
const CUT_OFF_OF: &str = select!(
    "WHERE root = $3 AND agent = $4 AND host_id = $1 AND boot_id = $2 \
     AND (outcome = 'interrupted' OR exit_code IS NULL AND outcome IN ('stopped', 'timeout', 'failed')) \
     ORDER BY created_at DESC, id DESC"
);
const MATCH: &str = "SELECT id FROM runs WHERE (id >= $1 AND id < $2) OR (id >= $3 AND id < $4) \
     ORDER BY created_at DESC, id DESC LIMIT $5";
const LEFT: &str = "SELECT id, conversation_left FROM runs WHERE agent = $1 AND after_id = $2 AND ended_at IS NOT NULL ORDER BY ended_at DESC, created_at DESC, id DESC LIMIT 1";
const INSERT: &str = concat!(
    "INSERT INTO runs (",
    columns!(),
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, \
     $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43)"
);
const UPDATE: &str = "UPDATE runs SET root = $4, session = $6, life = $7, runner_host = $8, \
     boot_id = $9, boot_private = $10, pid_ns = $11, pid = $12, start_ticks = $13, start_shifted = $14, \
     before_id = $15, intended_id = $16, after_id = $17, dir = $18, shares_dir = $19, exclusive = $20, \
     started_by = $21, skill = $22, prompt_hash = $23, log = $24, goes_on = $25, begun_at = $27, \
     fell_back = $28, stop_at = $29, stop_by = $30, stop_why = $31, turns = $32, tokens_in = $33, \
     tokens_out = $34, cost = $35, ended_at = $36, outcome = $37, why = $38, exit_code = $39, \
     conversation_left = $40, parked_until = $41, stop_cause = $43, revision = revision + 1 \
     WHERE id = $1 AND agent = $2 AND item = $3 AND host_id = $5 AND created_at = $26 AND revision = $42";
const PARKS: &str = "SELECT agent, host_id, until_at, count, why, run, at FROM parks";

/// The statement for a filter, with its parameters.
fn list_statement(filter: &RunFilter) -> (String, Vec<Value>) {
    let (conditions, mut values) = conditions(filter);
    let mut sql = format!("{}{conditions}", select!());
    sql.push_str(" ORDER BY created_at DESC, id DESC LIMIT ?");
    values.push(limit_or_all(filter.limit).into());
    (numbered(&sql), values)
}

/// How many runs match a filter: counted in its index, or in the smallest index if there is no
/// filter.
fn count_statement(filter: &RunFilter) -> (String, Vec<Value>) {
    let counts_all = RunFilter {
        limit: filter.limit,
        readable_only: filter.readable_only,
        ..RunFilter::default()
    };
    if *filter == counts_all {
        return ("SELECT count(*) FROM runs".to_owned(), Vec::new());
    }
    let (conditions, values) = conditions(filter);
    let sql = format!("SELECT count(*) FROM runs {conditions}");
    (numbered(&sql), values)
}

fn conditions(filter: &RunFilter) -> (String, Vec<Value>) {
    let mut sql = String::new();
    let mut values: Vec<Value> = Vec::new();
    sql.push_str(" WHERE TRUE");
    if filter.open {
        sql.push_str(" AND ended_at IS NULL");
    }
    if filter.failed {
        sql.push_str(" AND outcome IN ('failed', 'refused', 'timeout', 'interrupted', 'unusable')");
    }
    if let Some(item) = &filter.item {
        sql.push_str(" AND item = ?");
        values.push(item.to_string().into());
    }
    if let Some(agent) = &filter.agent {
        sql.push_str(" AND agent = ?");
        values.push(agent.to_string().into());
    }
    if let Some((created_at, id)) = &filter.before {
        sql.push_str(" AND (created_at, id) < (?, ?)");
        values.push(created_at.0.into());
        values.push(id.to_string().into());
    }
    (sql, values)
}

fn read(cells: &mut Cells<'_>) -> Result<Run, StoreError> {
    let mut run = Run {
        id: cells.parsed(RunId::parse)?,
        agent: cells.parsed(AgentName::parse)?,
        item: cells.parsed(Key::stored)?,
        root: cells.parsed(Key::stored)?,
        host: HostId::new(cells.text()?),
        session: read_session(cells)?,
        runner: process::read(cells)?,
        before: cells.maybe_parsed(NativeId::parse)?,
        intended: cells.maybe_parsed(NativeId::parse)?,
        after: cells.maybe_parsed(NativeId::parse)?,
        dir: cells.text()?,
        shares_dir: cells.flag()?,
        exclusive: cells.flag()?,
        trigger: cells.parsed(Trigger::parse)?,
        skill: cells.maybe_text()?,
        prompt_hash: cells.maybe_text()?,
        log: cells.maybe_text()?,
        goes_on: cells.maybe_parsed(RunId::parse)?,
        created_at: cells.time()?,
        begun_at: cells.maybe_time()?,
        fell_back: cells.flag()?,
        stop: read_stop(cells)?,
        usage: Usage {
            turns: cells.maybe_number()?,
            tokens_in: cells.maybe_number()?,
            tokens_out: cells.maybe_number()?,
            cost: cells.maybe_real()?,
        },
        end: read_end(cells)?,
        revision: cells.number()?,
    };
    let cause = cells.maybe_parsed(Stop::parse)?;
    if let (Some(stop), Some(cause)) = (&mut run.stop, cause) {
        stop.cause = cause;
    }
    Ok(run)
}

fn read_session(cells: &mut Cells<'_>) -> Result<Option<SessionToken>, StoreError> {
    let id = cells.maybe_parsed(SessionId::parse)?;
    let life = cells.maybe_number()?.map(Life);
    match (id, life) {
        (None, None) => Ok(None),
        (Some(id), Some(life)) => Ok(Some(SessionToken { id, life })),
        _ => Err(cells.broken("its session is incomplete")),
    }
}

fn read_stop(cells: &mut Cells<'_>) -> Result<Option<StopAsked>, StoreError> {
    let at = cells.maybe_time()?;
    let by = cells.maybe_parsed(SessionId::parse)?;
    let why = cells.maybe_text()?;
    match (at, why) {
        (None, None) => Ok(None),
        (Some(at), Some(why)) => Ok(Some(StopAsked {
            cause: Stop::Asked,
            at,
            by,
            why,
        })),
        _ => Err(cells.broken("the request to stop it is incomplete")),
    }
}

fn read_end(cells: &mut Cells<'_>) -> Result<Option<RunEnd>, StoreError> {
    let at = cells.maybe_time()?;
    let outcome = cells.maybe_parsed(Outcome::parse)?;
    let why = cells.maybe_text()?;
    let exit_code = cells.maybe_number()?;
    let left = cells.maybe_parsed(Left::parse)?;
    let parked_until = cells.maybe_time()?;
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
        _ => Err(cells.broken("its end is incomplete")),
    }
}

fn read_park(cells: &mut Cells<'_>) -> Result<Park, StoreError> {
    Ok(Park {
        agent: cells.parsed(AgentName::parse)?,
        host: HostId::new(cells.text()?),
        until: cells.time()?,
        count: cells.number()?,
        why: cells.text()?,
        run: cells.parsed(RunId::parse)?,
        at: cells.time()?,
    })
}

/// A run's values, in the order of the columns.
fn cells_of(tx: &PostgresTx<'_>, run: &Run) -> Result<Vec<Value>, StoreError> {
    let runner = run.runner.as_ref();
    let (stop, end) = (run.stop.as_ref(), run.end.as_ref());
    let maybe_count =
        |what: &str, count: Option<u64>| count.map(|count| tx.count(what, count)).transpose();
    Ok(params![
        run.id.as_str(),
        run.agent.as_str(),
        run.item.as_str(),
        run.root.as_str(),
        run.host.as_str(),
        run.session.map(|session| session.id.to_string()),
        run.session.map(|session| session.life.0),
        runner.map(|process| process.host.as_str()),
        runner.map(|process| process.boot.id.as_str()),
        runner.map(|process| process.boot.private),
        runner.map(|process| process.pid_ns.cast_signed()),
        runner.map(|process| process.pid),
        runner.map(|process| process.start.ticks.cast_signed()),
        runner.map(|process| process.start.shifted),
        run.before.as_ref().map(NativeId::as_str),
        run.intended.as_ref().map(NativeId::as_str),
        run.after.as_ref().map(NativeId::as_str),
        &run.dir,
        run.shares_dir,
        run.exclusive,
        run.trigger.as_str(),
        &run.skill,
        &run.prompt_hash,
        &run.log,
        run.goes_on.as_ref().map(RunId::as_str),
        run.created_at.0,
        run.begun_at.map(|at| at.0),
        run.fell_back,
        stop.map(|stop| stop.at.0),
        stop.and_then(|stop| stop.by).map(|by| by.to_string()),
        stop.map(|stop| stop.why.as_str()),
        maybe_count("turns", run.usage.turns)?,
        maybe_count("tokens", run.usage.tokens_in)?,
        maybe_count("tokens", run.usage.tokens_out)?,
        run.usage.cost,
        end.map(|end| end.at.0),
        end.map(|end| end.outcome.as_str()),
        end.map(|end| end.why.as_str()),
        end.and_then(|end| end.exit_code),
        end.map(|end| end.left.as_str()),
        end.and_then(|end| end.parked_until).map(|at| at.0),
        tx.count("revision", run.revision)?,
        stop.map(|stop| stop.cause.as_str()),
    ])
}

impl RunRows for PostgresTx<'_> {
    fn run_by_id(&mut self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.first("runs", BY_ID, params![id.as_str()], read)
    }

    fn match_runs(&mut self, part: &str, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let code = format!("r-{part}");
        let wanted = i64::try_from(limit).unwrap_or(i64::MAX);
        let range = params![part, after_prefix(part), &code, after_prefix(&code), wanted];
        self.all("runs", MATCH, range, |cells| cells.parsed(RunId::parse))
    }

    fn open_run_of(&mut self, agent: &AgentName, root: &Key) -> Result<Option<Run>, StoreError> {
        self.first(
            "runs",
            OPEN_OF,
            params![root.as_str(), agent.as_str()],
            read,
        )
    }

    fn open_runs_of(&mut self, root: &Key) -> Result<Vec<Run>, StoreError> {
        self.all("runs", ALL_OPEN_OF, params![root.as_str()], read)
    }

    fn open_runs_in(&mut self, host: &HostId, dir: &str) -> Result<Vec<Run>, StoreError> {
        self.all("runs", OPEN_IN, params![dir, host.as_str()], read)
    }

    fn open_run_of_session(&mut self, session: SessionId) -> Result<Option<Run>, StoreError> {
        self.first("runs", OPEN_OF_SESSION, params![session.to_string()], read)
    }

    fn newest_run_of_session(&mut self, session: SessionId) -> Result<Option<Run>, StoreError> {
        self.first(
            "runs",
            NEWEST_OF_SESSION,
            params![session.to_string()],
            read,
        )
    }

    fn runs_cut_off(
        &mut self,
        host: &HostId,
        boot: &BootId,
        place: CutOff<'_>,
    ) -> Result<Vec<Run>, StoreError> {
        let (host, boot) = (host.as_str(), boot.id.as_str());
        match place {
            CutOff::In(dir) => self.all("runs", CUT_OFF_IN, params![host, boot, dir], read),
            CutOff::Of(agent, root) => {
                let key = params![host, boot, root.as_str(), agent.as_str()];
                self.all("runs", CUT_OFF_OF, key, read)
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
        let (sql, values) = count_statement(&all);
        let count = self.first("runs", sql, values, |cells| cells.number::<u64>())?;
        Ok(usize::try_from(count.unwrap_or_default()).unwrap_or(usize::MAX))
    }

    fn insert_run(&mut self, run: &Run) -> Result<(), StoreError> {
        let cells = cells_of(self, run)?;
        self.insert(INSERT, cells)
    }

    fn update_run(&mut self, run: &Run) -> Result<(), StoreError> {
        let cells = cells_of(self, run)?;
        self.compare_and_set(UPDATE, cells)
    }

    fn newest_left(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<(RunId, Left)>, StoreError> {
        let key = params![agent.as_str(), native_id.as_str()];
        self.first("runs", LEFT, key, |cells| {
            Ok((cells.parsed(RunId::parse)?, cells.parsed(Left::parse)?))
        })
    }

    fn park(&mut self, agent: &AgentName, host: &HostId) -> Result<Option<Park>, StoreError> {
        let sql = format!("{PARKS} WHERE agent = $1 AND host_id = $2");
        self.first(
            "parks",
            sql,
            params![agent.as_str(), host.as_str()],
            read_park,
        )
    }

    fn parks(&mut self) -> Result<Vec<Park>, StoreError> {
        let sql = format!("{PARKS} ORDER BY agent, host_id");
        self.all("parks", sql, Vec::new(), read_park)
    }

    fn set_park(&mut self, before: Option<&Park>, park: &Park) -> Result<(), StoreError> {
        let insert = "INSERT INTO parks (agent, host_id, until_at, count, why, run, at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let update = "UPDATE parks SET until_at = $3, count = $4, why = $5, run = $6, at = $7 \
             WHERE agent = $1 AND host_id = $2 AND run = $8 AND at = $9";
        let (agent, host) = (park.agent.as_str(), park.host.as_str());
        let (until, count, why) = (park.until.0, park.count, &park.why);
        let (run, at) = (park.run.as_str(), park.at.0);
        match before {
            None => self.insert(insert, params![agent, host, until, count, why, run, at]),
            Some(before) => {
                let (old, then) = (before.run.as_str(), before.at.0);
                let values = params![agent, host, until, count, why, run, at, old, then];
                self.compare_and_set(update, values)
            }
        }
    }

    fn clear_park(&mut self, agent: &AgentName, host: &HostId) -> Result<(), StoreError> {
        let sql = "DELETE FROM parks WHERE agent = $1 AND host_id = $2";
        self.run(sql, params![agent.as_str(), host.as_str()])
            .map(|_| ())
    }
}
