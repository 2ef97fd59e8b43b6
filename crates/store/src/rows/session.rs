//! Sessions in rows.
//!
//! A heartbeat (`touch_session`) writes one row and no index, and leaves the revision unchanged, because it must never
//! make another process's compare-and-set fail. It waits for writers that locked the row, and changes nothing if they
//! closed the session. `update_session` writes SQLite's indexes only if an indexed value changed.
//!
//! *Crash*: a row is replaced completely or not at all. *Clock jump*: times are stored as given. *Older version*: an
//! unknown activity or way of closing is damage, never a default.

use tenure_core::id::{AgentName, Handle, Life, Malformed, NativeId, SessionId, SessionToken};
use tenure_core::json_fault::fault_at;
use tenure_core::process::{Process, StartTicks};
use tenure_core::session::{
    Activity, Closed, ClosedBy, Doing, EndKind, Session, Start, Title, TitleBy, Workdir,
};
use tenure_core::store::{ProcessPlace, SessionFilter, SessionRows, StoreError, WaitTopic};
use tenure_core::time::{Deadline, Era, Timestamp};
use tenure_core::woken::Woken;

use super::process::{self, process_cells};
use crate::cells::{Cells, RowCell};
use crate::columns::columns;
use crate::engine::{Engine, LockedRow, Rows, changed};
use crate::value::{Value, limit_or_all, params};

columns! { $
    /// `same` are the columns with an index: an update that leaves them alone writes no index.
    SessionRow of "sessions" by select_sessions {
        key { id }
        set {
            agent, fork_of, parent_id, parent_life, twin_of, title, title_by, dir, repo, branch, branch_at, life,
            start_shifted, activity, activity_since, activity_why, activity_until, asked_at, asked_before, woken, asks, seen_at, lease_era, lease_era_private, lease_at, closed_by, closed_why,
            end_kind, dismissed_at, headless, flags, attended_at, daemon_pid, daemon_ticks, daemon_shifted,
        }
        same {
            handle, code, started_at, closed_at, hosted, native_id, host_id, boot_id, boot_private, pid_ns, pid,
            start_ticks,
        }
    }
}

pub(crate) const BY_ID: &str = select_sessions!("WHERE id = ?1");
const BY_IDS: &str = select_sessions!("WHERE id IN (SELECT value FROM json_each(?1))");
/// How many sessions one statement reads while others wait: their rows fit into the buffers of a socket.
const SOME: usize = 16;
const MANY: usize = 1000;
const BY_HANDLE: &str = select_sessions!("WHERE handle = ?1");
const AT_PLACE: &str = select_sessions!(
    "WHERE pid = ?1 AND boot_id = ?2 AND pid_ns = ?3 AND host_id = ?4 AND boot_private = ?5 \
     AND closed_at IS NULL ORDER BY started_at DESC, id DESC"
);

/// The same for the daemon that runs a conversation.
const BELOW_PLACE: &str = select_sessions!(
    "INDEXED BY sessions_closed WHERE daemon_pid = ?1 AND boot_id = ?2 AND pid_ns = ?3 AND host_id = ?4 \
     AND boot_private = ?5 AND closed_at IS NULL ORDER BY started_at DESC, id DESC"
);

/// Open sessions of a machine and a pid namespace.
pub(crate) const OPEN_AT_HOST: &str = select_sessions!(
    "INDEXED BY sessions_closed WHERE host_id = ?1 AND pid_ns = ?2 AND closed_at IS NULL ORDER BY started_at, id"
);

pub(crate) const TOUCH: &str = "UPDATE sessions SET seen_at = ?3, lease_era = ?4, lease_era_private = ?5, \
     lease_at = CASE WHEN lease_era = ?4 AND lease_era_private = ?5 AND lease_at > ?6 THEN lease_at ELSE ?6 END, \
     activity = COALESCE(?7, activity), activity_since = COALESCE(?8, activity_since), \
     asks = CASE WHEN ?7 IS NULL THEN asks ELSE ?9 END, \
     activity_why = CASE WHEN ?7 IS NULL THEN activity_why ELSE ?11 END, \
     activity_until = CASE WHEN ?7 IS NULL THEN activity_until ELSE ?12 END, \
     attended_at = COALESCE(?10, attended_at) \
     WHERE id = ?1 AND life = ?2 AND closed_at IS NULL";

/// What was seen of the branch of a session's directory.
const NOTE_BRANCH: &str = "UPDATE sessions SET branch = ?3, branch_at = ?4 \
     WHERE id = ?1 AND life = ?2 AND closed_at IS NULL";

const NOTE_REQUEST: &str = "UPDATE sessions SET asked_before = asked_at, asked_at = ?3 \
     WHERE id = ?1 AND life = ?2 AND closed_at IS NULL";

const NOTE_WOKEN: &str = "UPDATE sessions SET woken = ?3 \
     WHERE id = ?1 AND life = ?2 AND closed_at IS NULL";

/// Sessions whose handle, code or id begins with a text, open ones first.
const MATCH_PREFIX: &str = "SELECT id, handle FROM sessions \
     WHERE (handle >= ?1 AND handle < ?2) OR (code >= ?1 AND code < ?2) OR (id >= ?1 AND id < ?2) \
     ORDER BY closed_at IS NOT NULL, started_at DESC, id DESC LIMIT ?3";

/// Open sessions whose handle or id contains a text.
const MATCH_OPEN: &str = "SELECT id, handle FROM sessions INDEXED BY sessions_closed \
     WHERE closed_at IS NULL AND (instr(handle, ?1) > 0 OR instr(id, ?1) > 0) \
     ORDER BY started_at DESC, id DESC LIMIT ?2";

/// Whether any handle contains a text, from the index alone, so that an unknown name is reported quickly.
const IN_A_HANDLE: &str = "SELECT handle FROM sessions INDEXED BY sessions_handle \
     /* may scan: the index alone */ WHERE instr(handle, ?1) > 0 LIMIT 1";

/// The same for ids.
const IN_AN_ID: &str = "SELECT id FROM sessions INDEXED BY sessions_id \
     /* may scan: the index alone */ WHERE instr(id, ?1) > 0 LIMIT 1";

const MATCH_CLOSED: &str = "SELECT id, handle FROM sessions \
     /* may scan: the name is known to be there */ \
     WHERE closed_at IS NOT NULL AND (instr(handle, ?1) > 0 OR instr(id, ?1) > 0) \
     ORDER BY started_at DESC, id DESC LIMIT ?2";

/// Announces [`SessionRows::sessions_at_any`] and [`SessionRows::lives_at_any`].
pub(crate) fn prefetch_at<E: Engine>(rows: &mut Rows<E>, places: &[ProcessPlace<'_>]) {
    for place in process::coordinates(places) {
        rows.engine.prefetch(AT_PLACE, &place);
        rows.engine.prefetch(process::LIVES_AT, &place);
    }
}

/// The end of the range of texts that begin with `prefix`.
pub(crate) fn after_prefix(prefix: &str) -> String {
    format!("{prefix}\u{10FFFF}")
}

/// Ids as one parameter, for statements that take any number of them.
pub(crate) fn id_list(sessions: &[SessionId]) -> Vec<String> {
    sessions.iter().map(ToString::to_string).collect()
}

/// The statement for a filter, with its parameters. Open sessions are few, so they are read whole.
fn list_statement(filter: &SessionFilter) -> (String, Vec<Value<'_>>) {
    let (conditions, mut values) = conditions(filter);
    let order = match filter.cut_off_since {
        Some(_) => "ORDER BY closed_at DESC, started_at DESC, id DESC",
        None => "ORDER BY started_at DESC, id DESC",
    };
    values.push(limit_or_all(filter.limit));
    let sql = format!("{}{conditions} {order} LIMIT ?", select_sessions!());
    (sql, values)
}

/// The sessions that a filter fits, as far as they are to be counted.
fn count_statement(filter: &SessionFilter) -> (String, Vec<Value<'_>>) {
    let (conditions, mut values) = conditions(filter);
    values.push(limit_or_all(filter.count_to));
    let sql = format!("SELECT id FROM sessions {conditions} LIMIT ?");
    (sql, values)
}

fn conditions(filter: &SessionFilter) -> (String, Vec<Value<'_>>) {
    let mut sql = String::new();
    let mut values = Vec::new();
    let closed_since = filter.died_since.or(filter.cut_off_since);
    let is_open_only = closed_since.or(filter.open_since).is_none() && !filter.closed_too;
    sql.push_str(if is_open_only || closed_since.is_some() {
        "INDEXED BY sessions_closed WHERE TRUE"
    } else {
        "INDEXED BY sessions_newest /* may scan: in the order of the list */ WHERE TRUE"
    });
    if is_open_only {
        sql.push_str(" AND closed_at IS NULL");
    }
    if let Some(since) = filter.open_since {
        sql.push_str(" AND (closed_at IS NULL OR closed_at >= ?)");
        values.push(since.0.into());
    }
    if let Some(since) = filter.died_since {
        sql.push_str(" AND closed_by = 'death' AND closed_at >= ?");
        values.push(since.0.into());
    }
    if let Some(since) = filter.cut_off_since {
        sql.push_str(" AND end_kind = 'cut_off' AND dismissed_at IS NULL AND closed_at >= ?");
        values.push(since.0.into());
    }
    if let Some(repo) = &filter.repo {
        sql.push_str(" AND repo = ?");
        values.push(repo.into());
    }
    if let Some(under) = &filter.under {
        let dir = under.trim_end_matches('/');
        let whole = if dir.is_empty() { "/" } else { dir };
        // '0' follows '/'.
        sql.push_str(" AND (dir = ? OR dir >= ? AND dir < ?)");
        values.push(whole.to_owned().into());
        values.push(format!("{dir}/").into());
        values.push(format!("{dir}0").into());
    }
    if let Some(doing) = filter.doing {
        sql.push_str(" AND activity = ?");
        values.push(doing.as_str().into());
    }
    if let Some(parent) = &filter.parent {
        sql.push_str(" AND parent_id = ? AND parent_life = ?");
        values.push(parent.id.to_string().into());
        values.push(parent.life.0.into());
    }
    (sql, values)
}

pub(crate) fn read(cells: &mut Cells<'_>) -> Result<Session, StoreError> {
    let row = SessionRow::read(cells);
    let process = read_process(&row)?;
    Ok(Session {
        id: row.id.parsed(SessionId::parse)?,
        handle: row.handle.parsed(Handle::parse)?,
        agent: row.agent.parsed(AgentName::parse)?,
        native_id: row.native_id.maybe_parsed(NativeId::parse)?,
        fork_of: row.fork_of.maybe_parsed(NativeId::parse)?,
        parent: read_parent(&row)?,
        twin_of: row.twin_of.maybe_parsed(SessionId::parse)?,
        title: read_title(&row)?,
        workdir: Workdir {
            dir: row.dir.text()?,
            repo: row.repo.maybe_text()?,
            branch: row.branch.maybe_text()?,
        },
        branch_at: row.branch_at.maybe_time()?,
        hosted: row.hosted.flag()?,
        life: Life(row.life.number()?),
        daemon: read_daemon(&row, process.as_ref())?,
        process,
        start: read_start(&row)?,
        activity: read_activity(&row)?,
        asked_at: row.asked_at.maybe_time()?,
        asked_before: row.asked_before.maybe_time()?,
        woken: row.woken.maybe_parsed(Woken::parse)?.unwrap_or_default(),
        attended_at: row.attended_at.maybe_time()?,
        started_at: row.started_at.time()?,
        seen_at: row.seen_at.time()?,
        lease: Deadline {
            era: Era {
                id: row.lease_era.text()?,
                private: row.lease_era_private.flag()?,
            },
            at: row.lease_at.number()?,
        },
        closed: read_closed(&row)?,
        revision: row.revision.number()?,
    })
}

fn read_process(row: &SessionRow<RowCell<'_>>) -> Result<Option<Process>, StoreError> {
    let cells = process_cells!(row, host_id);
    cells.process()
}

/// The daemon is on the machine, in the boot and in the pid namespace of the process.
fn read_daemon(
    row: &SessionRow<RowCell<'_>>,
    process: Option<&Process>,
) -> Result<Option<Process>, StoreError> {
    let pid: Option<u32> = row.daemon_pid.maybe_number()?;
    let ticks = row.daemon_ticks.kernel_number()?;
    let shifted = row.daemon_shifted.maybe_flag()?;
    match (pid, ticks, shifted, process) {
        (None, None, None, _) => Ok(None),
        (Some(pid), Some(ticks), Some(shifted), Some(beside)) => Ok(Some(Process {
            pid,
            start: StartTicks { ticks, shifted },
            ..beside.clone()
        })),
        _ => Err(row.daemon_pid.broken("its daemon is incomplete")),
    }
}

fn read_title(row: &SessionRow<RowCell<'_>>) -> Result<Option<Title>, StoreError> {
    let Some(text) = row.title.maybe_text()? else {
        return Ok(None);
    };
    let mut title = Title::person(text);
    if let Some(by) = row.title_by.maybe_parsed(TitleBy::parse)? {
        title.by = by;
    }
    Ok(Some(title))
}

fn read_start(row: &SessionRow<RowCell<'_>>) -> Result<Option<Start>, StoreError> {
    let flags = row.flags.maybe_parsed(text_as_words)?;
    let headless = row.headless.maybe_flag()?;
    Ok(headless.map(|headless| Start {
        headless,
        flags: flags.unwrap_or_default(),
    }))
}

/// Words are stored as a JSON array.
fn words_as_text(words: &[String]) -> String {
    serde_json::Value::from(words).to_string()
}

fn text_as_words(text: &str) -> Result<Vec<String>, Malformed> {
    let words = serde_json::from_str(text);
    words.map_err(|error| Malformed::new("list of words", text, fault_at(&error)))
}

fn read_parent(row: &SessionRow<RowCell<'_>>) -> Result<Option<SessionToken>, StoreError> {
    let id = row.parent_id.maybe_parsed(SessionId::parse)?;
    let life = row.parent_life.maybe_number()?.map(Life);
    match (id, life) {
        (None, None) => Ok(None),
        (Some(id), Some(life)) => Ok(Some(SessionToken { id, life })),
        _ => Err(row.parent_id.broken("its parent is incomplete")),
    }
}

fn read_activity(row: &SessionRow<RowCell<'_>>) -> Result<Option<Activity>, StoreError> {
    let doing = row.activity.maybe_parsed(Doing::parse)?;
    let since = row.activity_since.maybe_time()?;
    match (doing, since) {
        (None, None) => Ok(None),
        (Some(doing), Some(since)) => Ok(Some(Activity {
            doing,
            since,
            asks: row.asks.maybe_text()?,
            why: row.activity_why.maybe_text()?,
            until: row.activity_until.maybe_time()?,
        })),
        _ => Err(row.activity.broken("its activity is incomplete")),
    }
}

fn read_closed(row: &SessionRow<RowCell<'_>>) -> Result<Option<Closed>, StoreError> {
    let at = row.closed_at.maybe_time()?;
    let by = row.closed_by.maybe_parsed(ClosedBy::parse)?;
    let why = row.closed_why.maybe_text()?;
    let kind = row.end_kind.maybe_parsed(EndKind::parse)?;
    match (at, by, why) {
        (None, None, None) => Ok(None),
        (Some(at), Some(by), Some(why)) => Ok(Some(Closed {
            at,
            by,
            why,
            kind: kind.unwrap_or(by.usual_kind()),
            dismissed_at: row.dismissed_at.maybe_time()?,
        })),
        _ => Err(row.closed_at.broken("its end is incomplete")),
    }
}

impl<E: Engine> Rows<E> {
    /// Reads all rows of a statement that takes the ids of sessions.
    pub(crate) fn for_each_of<T>(
        &mut self,
        table: &'static str,
        sql: &str,
        sessions: &[SessionId],
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        for some in sessions.chunks(MANY) {
            found.extend(self.all(table, sql, &params![id_list(some)], &read)?);
        }
        Ok(found)
    }

    fn session_row<'a>(&self, session: &'a Session) -> Result<Vec<Value<'a>>, StoreError> {
        let process = session.process.as_ref();
        let daemon = session.daemon.as_ref();
        let activity = session.activity.as_ref();
        let closed = session.closed.as_ref();
        let start = session.start.as_ref();
        let code = session.handle.as_str().rsplit_once('-');
        let row = SessionRow {
            id: session.id.to_string().into(),
            handle: session.handle.as_str().into(),
            code: code.map_or("", |(_, code)| code).into(),
            agent: session.agent.as_str().into(),
            native_id: session.native_id.as_ref().map(NativeId::as_str).into(),
            fork_of: session.fork_of.as_ref().map(NativeId::as_str).into(),
            parent_id: session.parent.map(|parent| parent.id.to_string()).into(),
            parent_life: session.parent.map(|parent| parent.life.0).into(),
            twin_of: session.twin_of.map(|twin| twin.to_string()).into(),
            title: session
                .title
                .as_ref()
                .map(|title| title.text.as_str())
                .into(),
            title_by: session.title.as_ref().map(|title| title.by.as_str()).into(),
            dir: (&session.workdir.dir).into(),
            repo: (&session.workdir.repo).into(),
            branch: (&session.workdir.branch).into(),
            branch_at: session.branch_at.map(|at| at.0).into(),
            hosted: session.hosted.into(),
            life: session.life.0.into(),
            host_id: process.map(|p| p.host.as_str()).into(),
            boot_id: process.map(|p| p.boot.id.as_str()).into(),
            boot_private: process.map(|p| p.boot.private).into(),
            pid_ns: process.map(|p| p.pid_ns.cast_signed()).into(),
            pid: process.map(|p| p.pid).into(),
            start_ticks: process.map(|p| p.start.ticks.cast_signed()).into(),
            start_shifted: process.map(|p| p.start.shifted).into(),
            activity: session.doing().map(Doing::as_str).into(),
            activity_since: activity.map(|activity| activity.since.0).into(),
            activity_why: activity.and_then(|activity| activity.why.as_deref()).into(),
            activity_until: activity
                .and_then(|activity| activity.until.map(|at| at.0))
                .into(),
            asked_at: session.asked_at.map(|at| at.0).into(),
            asked_before: session.asked_before.map(|at| at.0).into(),
            woken: session.woken.stored().into(),
            asks: activity
                .and_then(|activity| activity.asks.as_deref())
                .into(),
            started_at: session.started_at.0.into(),
            seen_at: session.seen_at.0.into(),
            lease_era: session.lease.era.id.as_str().into(),
            lease_era_private: session.lease.era.private.into(),
            lease_at: session.lease.at.into(),
            closed_at: closed.map(|closed| closed.at.0).into(),
            closed_by: closed.map(|closed| closed.by.as_str()).into(),
            closed_why: closed.map(|closed| closed.why.as_str()).into(),
            end_kind: closed.map(|closed| closed.kind.as_str()).into(),
            dismissed_at: closed
                .and_then(|closed| closed.dismissed_at.map(|at| at.0))
                .into(),
            headless: start.map(|start| start.headless).into(),
            flags: start.map(|start| words_as_text(&start.flags)).into(),
            attended_at: session.attended_at.map(|at| at.0).into(),
            daemon_pid: daemon.map(|daemon| daemon.pid).into(),
            daemon_ticks: daemon.map(|daemon| daemon.start.ticks.cast_signed()).into(),
            daemon_shifted: daemon.map(|daemon| daemon.start.shifted).into(),
            revision: self.count("revision", session.revision)?.into(),
        };
        Ok(row.values())
    }

    /// Whether a text is part of any name. Characters that no handle or id contains need no query.
    fn is_somewhere(&mut self, part: &str) -> Result<bool, StoreError> {
        let all = |fits: fn(u8) -> bool| part.bytes().all(fits);
        let mut has = |sql: &str| self.first("sessions", sql, &params![part], |_| Ok(()));
        let in_handles = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
        let in_ids = |b: u8| matches!(b, b'a'..=b'f' | b'0'..=b'9' | b'-');
        let found = all(in_handles) && has(IN_A_HANDLE)?.is_some();
        Ok(found || (all(in_ids) && has(IN_AN_ID)?.is_some()))
    }
}

impl<E: Engine> SessionRows for Rows<E> {
    fn session(&mut self, id: SessionId) -> Result<Option<Session>, StoreError> {
        self.first("sessions", BY_ID, &params![id.to_string()], read)
    }

    fn sessions(&mut self, ids: &[SessionId]) -> Result<Vec<Session>, StoreError> {
        let size = if self.engine.has_locks() { SOME } else { MANY };
        let mut found = Vec::new();
        for some in ids.chunks(size) {
            found.extend(self.all("sessions", BY_IDS, &params![id_list(some)], read)?);
        }
        Ok(found)
    }

    fn session_by_handle(&mut self, handle: &str) -> Result<Option<Session>, StoreError> {
        self.first("sessions", BY_HANDLE, &params![handle], read)
    }

    fn count_sessions(&mut self, filter: &SessionFilter) -> Result<usize, StoreError> {
        self.count_rows("sessions", count_statement(filter))
    }

    fn match_sessions(
        &mut self,
        part: &str,
        limit: usize,
    ) -> Result<Vec<(SessionId, Handle)>, StoreError> {
        let names = |cells: &mut Cells<'_>| -> Result<(SessionId, Handle), StoreError> {
            Ok((
                cells.parsed(SessionId::parse)?,
                cells.parsed(Handle::parse)?,
            ))
        };
        let wanted = i64::try_from(limit).unwrap_or(i64::MAX);
        let range = params![part, after_prefix(part), wanted];
        let mut found = self.all("sessions", MATCH_PREFIX, &range, names)?;
        if found.is_empty() {
            found = self.all("sessions", MATCH_OPEN, &params![part, wanted], names)?;
            if found.len() < limit && self.is_somewhere(part)? {
                let left = i64::try_from(limit - found.len()).unwrap_or(i64::MAX);
                found.extend(self.all("sessions", MATCH_CLOSED, &params![part, left], names)?);
            }
        }
        Ok(found)
    }

    fn sessions_at_any(&mut self, places: &[ProcessPlace<'_>]) -> Result<Vec<Session>, StoreError> {
        self.each("sessions", AT_PLACE, &process::coordinates(places), read)
    }

    fn sessions_below_any(
        &mut self,
        places: &[ProcessPlace<'_>],
    ) -> Result<Vec<Session>, StoreError> {
        self.each("sessions", BELOW_PLACE, &process::coordinates(places), read)
    }

    fn list_sessions(&mut self, filter: &SessionFilter) -> Result<Vec<Session>, StoreError> {
        let statement = list_statement(filter);
        self.listed(filter.readable_only, "sessions", statement, read)
    }

    fn insert_session(&mut self, session: &Session) -> Result<(), StoreError> {
        let row = self.session_row(session)?;
        self.compare_and_set(SessionRow::INSERT, &row)
    }

    fn update_session(&mut self, session: &Session) -> Result<(), StoreError> {
        if !session.is_open() {
            self.engine.wake(WaitTopic::Session(session.id));
        }
        let row = self.session_row(session)?;
        // On a server a second statement costs more than an index.
        if !E::SHARED && self.run(SessionRow::UPDATE, &row)? == 1 {
            return Ok(());
        }
        changed(self.run(SessionRow::REPLACE, &row)?)
    }

    fn touch_session(
        &mut self,
        token: SessionToken,
        seen_at: Timestamp,
        lease: &Deadline,
        activity: Option<&Activity>,
        attended_at: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let values = params![
            token.id.to_string(),
            token.life.0,
            seen_at.0,
            lease.era.id.as_str(),
            lease.era.private,
            lease.at,
            activity.map(|activity| activity.doing.as_str()),
            activity.map(|activity| activity.since.0),
            activity.and_then(|activity| activity.asks.as_deref()),
            attended_at.map(|at| at.0),
            activity.and_then(|activity| activity.why.as_deref()),
            activity.and_then(|activity| activity.until.map(|at| at.0)),
        ];
        if activity.is_some() {
            self.engine.changes_activity();
        }
        let row = LockedRow::Session(token.id);
        if self.engine.has_locked(row) {
            return self.engine.change_row(row, TOUCH, &values).map(|()| true);
        }
        Ok(self.run(TOUCH, &values)? == 1)
    }

    fn note_branch(
        &mut self,
        token: SessionToken,
        branch: Option<&str>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let values = params![token.id.to_string(), token.life.0, branch, at.0];
        self.run(NOTE_BRANCH, &values).map(drop)
    }

    fn note_request(&mut self, token: SessionToken, at: Timestamp) -> Result<(), StoreError> {
        let values = params![token.id.to_string(), token.life.0, at.0];
        self.run(NOTE_REQUEST, &values).map(drop)
    }

    fn note_woken(&mut self, token: SessionToken, woken: &Woken) -> Result<(), StoreError> {
        let values = params![token.id.to_string(), token.life.0, woken.stored()];
        self.run(NOTE_WOKEN, &values).map(drop)
    }

    fn lives_at_any(
        &mut self,
        places: &[ProcessPlace<'_>],
    ) -> Result<Vec<(SessionToken, Process)>, StoreError> {
        self.lives_at(places)
    }

    fn lives_up_to(
        &mut self,
        token: SessionToken,
        most: usize,
    ) -> Result<Vec<(Life, Process)>, StoreError> {
        self.lives_of(token, most)
    }

    fn insert_life(
        &mut self,
        token: SessionToken,
        process: &Process,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.add_life(token, process, at)
    }
}
