//! Sessions in rows.
//!
//! A heartbeat (`touch_session`) writes one row and no index, and leaves the revision unchanged,
//! because it must never make another process's compare-and-set fail. It waits for writers that
//! locked the row, and changes nothing if they closed the session.
//!
//! *Crash*: a row is replaced completely or not at all. *Clock jump*: times are stored as given.
//! *Older version*: an unknown activity or way of closing is damage, never a default.

use tenure_core::id::{AgentName, Handle, Life, Malformed, NativeId, SessionId, SessionToken};
use tenure_core::json_fault::fault_at;
use tenure_core::process::Process;
use tenure_core::session::{
    Activity, Closed, ClosedBy, Doing, EndKind, Session, Start, Title, TitleBy, Workdir,
};
use tenure_core::store::{ProcessPlace, SessionFilter, SessionRows, StoreError};
use tenure_core::time::{Deadline, Era, Timestamp};

use super::handle::{PostgresTx, limit_or_all};
use super::process;
use super::row::Cells;
use super::value::{Value, numbered, params};

macro_rules! select {
    ($($rest:literal)?) => {
        concat!(
            "SELECT id, handle, agent, native_id, fork_of, parent_id, parent_life, twin_of, title, \
             dir, repo, branch, hosted, life, host_id, boot_id, boot_private, pid_ns, pid, \
             start_ticks, start_shifted, activity, activity_since, started_at, seen_at, lease_era, \
             lease_era_private, lease_at, closed_at, closed_by, closed_why, revision, end_kind, \
             dismissed_at, title_by, headless, flags, asks, attended_at, daemon_pid, daemon_ticks, \
             daemon_shifted \
             FROM sessions "
            $(, $rest)?
        )
    };
}

const BY_ID: &str = select!("WHERE id = $1");
const BY_IDS: &str = select!("WHERE id = ANY($1)");
/// How many sessions one statement reads while others wait: their rows fit into the buffers of a socket.
const SOME: usize = 16;
const MANY: usize = 1000;
const BY_HANDLE: &str = select!("WHERE handle = $1");
const AT_PLACE: &str = select!(
    "WHERE pid = ANY($1) AND boot_id = $2 AND pid_ns = $3 AND host_id = $4 AND boot_private = $5 \
     AND closed_at IS NULL ORDER BY array_position($1, pid), started_at DESC, id DESC"
);

/// The same for the daemon that runs a conversation.
const BELOW_PLACE: &str = select!(
    "WHERE daemon_pid = ANY($1) AND boot_id = $2 AND pid_ns = $3 AND host_id = $4 AND boot_private = $5 \
     AND closed_at IS NULL ORDER BY array_position($1, daemon_pid), started_at DESC, id DESC"
);

/// Open sessions of a machine and a pid namespace.
pub(super) const OPEN_AT_HOST: &str =
    select!("WHERE host_id = $1 AND pid_ns = $2 AND closed_at IS NULL ORDER BY started_at, id");

const INSERT: &str = "INSERT INTO sessions (id, handle, code, agent, native_id, fork_of, parent_id, \
     parent_life, twin_of, title, dir, repo, branch, hosted, life, host_id, boot_id, boot_private, \
     pid_ns, pid, start_ticks, start_shifted, activity, activity_since, started_at, seen_at, \
     lease_era, lease_era_private, lease_at, closed_at, closed_by, closed_why, revision, end_kind, dismissed_at, \
     title_by, headless, flags, asks, attended_at, daemon_pid, daemon_ticks, daemon_shifted) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, \
     $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, \
     $35, $36, $37, $38, $39, $40, $41, $42, $43)";

const UPDATE: &str = "UPDATE sessions SET handle = $2, code = $3, agent = $4, \
     native_id = $5, fork_of = $6, parent_id = $7, parent_life = $8, twin_of = $9, title = $10, \
     dir = $11, repo = $12, branch = $13, hosted = $14, life = $15, host_id = $16, boot_id = $17, \
     boot_private = $18, pid_ns = $19, pid = $20, start_ticks = $21, start_shifted = $22, \
     activity = $23, activity_since = $24, started_at = $25, seen_at = $26, lease_era = $27, \
     lease_era_private = $28, lease_at = $29, closed_at = $30, closed_by = $31, closed_why = $32, \
     end_kind = $34, dismissed_at = $35, title_by = $36, headless = $37, flags = $38, asks = $39, \
     attended_at = $40, daemon_pid = $41, daemon_ticks = $42, daemon_shifted = $43, \
     revision = revision + 1 WHERE id = $1 AND revision = $33";

const TOUCH: &str = "UPDATE sessions SET seen_at = $3, lease_era = $4, \
     lease_era_private = $5, lease_at = CASE WHEN lease_era = $4 AND lease_era_private = $5 \
     THEN greatest(lease_at, $6) ELSE $6 END, activity = COALESCE($7, activity), \
     activity_since = COALESCE($8, activity_since), asks = CASE WHEN $7 IS NULL THEN asks ELSE $9 END, \
     attended_at = COALESCE($10, attended_at) WHERE id = $1 AND life = $2 AND closed_at IS NULL";

/// Sessions whose handle, code or id begins with a text, open ones first.
const MATCH_PREFIX: &str = "SELECT id, handle FROM sessions \
     WHERE (handle >= $1 AND handle < $2) OR (code >= $1 AND code < $2) OR (id >= $1 AND id < $2) \
     ORDER BY closed_at IS NOT NULL, started_at DESC, id DESC LIMIT $3";

/// Open sessions whose handle or id contains a text.
const MATCH_OPEN: &str = "SELECT id, handle FROM sessions \
     WHERE closed_at IS NULL AND (strpos(handle, $1) > 0 OR strpos(id, $1) > 0) \
     ORDER BY started_at DESC, id DESC LIMIT $2";

/// Whether any handle contains a text, from the index alone, so that an unknown name is reported quickly.
const IN_A_HANDLE: &str = "SELECT 1 FROM sessions WHERE strpos(handle, $1) > 0 LIMIT 1";

/// The same for ids.
const IN_AN_ID: &str = "SELECT 1 FROM sessions WHERE strpos(id, $1) > 0 LIMIT 1";

const MATCH_CLOSED: &str = "SELECT id, handle FROM sessions \
     WHERE closed_at IS NOT NULL AND (strpos(handle, $1) > 0 OR strpos(id, $1) > 0) \
     ORDER BY started_at DESC, id DESC LIMIT $2";

pub(super) fn get(tx: &mut PostgresTx<'_>, id: SessionId) -> Result<Option<Session>, StoreError> {
    tx.first("sessions", BY_ID, params![id.to_string()], read)
}

/// Announces [`SessionRows::sessions_at_any`] and [`SessionRows::lives_at_any`].
pub(super) fn soon_at(tx: &mut PostgresTx<'_>, places: &[ProcessPlace<'_>]) {
    for place in process::coordinates(places) {
        tx.soon(AT_PLACE, place.clone());
        tx.soon(process::LIVES_AT, place);
    }
}

/// Whether a text is part of any name. Characters that no handle or id contains need no query.
fn is_somewhere(tx: &mut PostgresTx<'_>, part: &str) -> Result<bool, StoreError> {
    let all = |fits: fn(u8) -> bool| part.bytes().all(fits);
    let mut has = |sql: &'static str| tx.first("sessions", sql, params![part], |_| Ok(()));
    let in_handles = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    let in_ids = |b: u8| matches!(b, b'a'..=b'f' | b'0'..=b'9' | b'-');
    let found = all(in_handles) && has(IN_A_HANDLE)?.is_some();
    Ok(found || (all(in_ids) && has(IN_AN_ID)?.is_some()))
}

/// The end of the range of texts that begin with `prefix`.
pub(super) fn after_prefix(prefix: &str) -> String {
    format!("{prefix}\u{10FFFF}")
}

/// Ids as one parameter, for statements that take any number of them.
pub(super) fn id_list(sessions: &[SessionId]) -> Vec<String> {
    sessions.iter().map(ToString::to_string).collect()
}

/// The statement for a filter, with its parameters.
fn list_statement(filter: &SessionFilter) -> (String, Vec<Value>) {
    let mut sql = select!().to_owned();
    let mut values: Vec<Value> = Vec::new();
    sql.push_str(" WHERE TRUE");
    if let Some(since) = filter.died_since {
        sql.push_str(" AND closed_by = 'death' AND closed_at >= ?");
        values.push(since.0.into());
    }
    if let Some(since) = filter.cut_off_since {
        sql.push_str(" AND end_kind = 'cut_off' AND dismissed_at IS NULL AND closed_at >= ?");
        values.push(since.0.into());
    }
    let is_of_closed = filter.died_since.or(filter.cut_off_since).is_some();
    if !is_of_closed && !filter.closed_too {
        sql.push_str(" AND closed_at IS NULL");
    }
    if let Some(repo) = &filter.repo {
        sql.push_str(" AND repo = ?");
        values.push(repo.clone().into());
    }
    if let Some(under) = &filter.under {
        // '0' follows '/'. The first range can be looked up and contains a little too much, such as `/w/a.b`
        // for `/w/a`; the rest narrows it to the directory and what is below.
        let dir = under.trim_end_matches('/');
        let whole = if dir.is_empty() { "/" } else { dir };
        sql.push_str(" AND dir >= ? AND dir < ? AND (dir = ? OR dir >= ?)");
        values.push(dir.to_owned().into());
        values.push(format!("{dir}0").into());
        values.push(whole.to_owned().into());
        values.push(format!("{dir}/").into());
    }
    if let Some(parent) = &filter.parent {
        sql.push_str(" AND parent_id = ? AND parent_life = ?");
        values.push(parent.id.to_string().into());
        values.push(i64::from(parent.life.0).into());
    }
    sql.push_str(match filter.cut_off_since {
        Some(_) => " ORDER BY closed_at DESC, id DESC LIMIT ?",
        None => " ORDER BY started_at DESC, id DESC LIMIT ?",
    });
    values.push(limit_or_all(filter.limit).into());
    (numbered(&sql), values)
}

/// A session's values, in the order of [`INSERT`].
fn cells_of(tx: &PostgresTx<'_>, session: &Session) -> Result<Vec<Value>, StoreError> {
    let process = session.process.as_ref();
    let daemon = session.daemon.as_ref();
    let code = session.handle.as_str().rsplit_once('-');
    Ok(params![
        session.id.to_string(),
        session.handle.as_str(),
        code.map_or("", |(_, code)| code),
        session.agent.as_str(),
        session.native_id.as_ref().map(NativeId::as_str),
        session.fork_of.as_ref().map(NativeId::as_str),
        session.parent.map(|parent| parent.id.to_string()),
        session.parent.map(|parent| parent.life.0),
        session.twin_of.map(|twin| twin.to_string()),
        session.title.as_ref().map(|title| title.text.as_str()),
        &session.workdir.dir,
        &session.workdir.repo,
        &session.workdir.branch,
        session.hosted,
        session.life.0,
        process.map(|p| p.host.as_str()),
        process.map(|p| p.boot.id.as_str()),
        process.map(|p| p.boot.private),
        process.map(|p| p.pid_ns.cast_signed()),
        process.map(|p| p.pid),
        process.map(|p| p.start.ticks.cast_signed()),
        process.map(|p| p.start.shifted),
        session.doing().map(Doing::as_str),
        session.activity.as_ref().map(|activity| activity.since.0),
        session.started_at.0,
        session.seen_at.0,
        session.lease.era.id.as_str(),
        session.lease.era.private,
        session.lease.at,
        session.closed.as_ref().map(|closed| closed.at.0),
        session.closed.as_ref().map(|closed| closed.by.as_str()),
        session.closed.as_ref().map(|closed| closed.why.as_str()),
        tx.count("revision", session.revision)?,
        session.closed.as_ref().map(|closed| closed.kind.as_str()),
        session
            .closed
            .as_ref()
            .and_then(|closed| closed.dismissed_at.map(|at| at.0)),
        session.title.as_ref().map(|title| title.by.as_str()),
        session.start.as_ref().map(|start| start.headless),
        session
            .start
            .as_ref()
            .map(|start| words_as_text(&start.flags)),
        session
            .activity
            .as_ref()
            .and_then(|activity| activity.asks.as_deref()),
        session.attended_at.map(|at| at.0),
        daemon.map(|daemon| daemon.pid),
        daemon.map(|daemon| daemon.start.ticks.cast_signed()),
        daemon.map(|daemon| daemon.start.shifted),
    ])
}

pub(super) fn read(cells: &mut Cells<'_>) -> Result<Session, StoreError> {
    let mut session = Session {
        id: cells.parsed(SessionId::parse)?,
        handle: cells.parsed(Handle::parse)?,
        agent: cells.parsed(AgentName::parse)?,
        native_id: cells.maybe_parsed(NativeId::parse)?,
        fork_of: cells.maybe_parsed(NativeId::parse)?,
        parent: read_parent(cells)?,
        twin_of: cells.maybe_parsed(SessionId::parse)?,
        title: cells.maybe_text()?.map(Title::person),
        workdir: Workdir {
            dir: cells.text()?,
            repo: cells.maybe_text()?,
            branch: cells.maybe_text()?,
        },
        hosted: cells.flag()?,
        life: Life(cells.number()?),
        process: process::read(cells)?,
        daemon: None,
        start: None,
        activity: read_activity(cells)?,
        attended_at: None,
        started_at: cells.time()?,
        seen_at: cells.time()?,
        lease: Deadline {
            era: Era {
                id: cells.text()?,
                private: cells.flag()?,
            },
            at: cells.number()?,
        },
        closed: read_closed(cells)?,
        revision: cells.number()?,
    };
    read_added(cells, &mut session)?;
    Ok(session)
}

/// Columns that later schemas added, in that order.
fn read_added(cells: &mut Cells<'_>, session: &mut Session) -> Result<(), StoreError> {
    let kind = cells.maybe_parsed(EndKind::parse)?;
    let dismissed_at = cells.maybe_time()?;
    if let Some(closed) = &mut session.closed {
        closed.kind = kind.unwrap_or(closed.kind);
        closed.dismissed_at = dismissed_at;
    }
    let title_by = cells.maybe_parsed(TitleBy::parse)?;
    if let (Some(title), Some(by)) = (&mut session.title, title_by) {
        title.by = by;
    }
    let headless = cells.maybe_flag()?;
    let flags = cells.maybe_parsed(text_as_words)?;
    session.start = headless.map(|headless| Start {
        headless,
        flags: flags.unwrap_or_default(),
    });
    let asks = cells.maybe_text()?;
    if let Some(activity) = &mut session.activity {
        activity.asks = asks;
    }
    session.attended_at = cells.maybe_time()?;
    session.daemon = process::read_beside(cells, session.process.as_ref())?;
    Ok(())
}

/// Words are stored as a JSON array.
fn words_as_text(words: &[String]) -> String {
    serde_json::Value::from(words).to_string()
}

fn text_as_words(text: &str) -> Result<Vec<String>, Malformed> {
    let words = serde_json::from_str(text);
    words.map_err(|error| Malformed::new("list of words", text, fault_at(&error)))
}

fn read_parent(cells: &mut Cells<'_>) -> Result<Option<SessionToken>, StoreError> {
    let id = cells.maybe_parsed(SessionId::parse)?;
    let life = cells.maybe_number()?.map(Life);
    match (id, life) {
        (None, None) => Ok(None),
        (Some(id), Some(life)) => Ok(Some(SessionToken { id, life })),
        _ => Err(cells.broken("its parent is incomplete")),
    }
}

fn read_activity(cells: &mut Cells<'_>) -> Result<Option<Activity>, StoreError> {
    let doing = cells.maybe_parsed(Doing::parse)?;
    let since = cells.maybe_time()?;
    match (doing, since) {
        (None, None) => Ok(None),
        (Some(doing), Some(since)) => Ok(Some(Activity {
            doing,
            since,
            asks: None,
        })),
        _ => Err(cells.broken("its activity is incomplete")),
    }
}

fn read_closed(cells: &mut Cells<'_>) -> Result<Option<Closed>, StoreError> {
    let at = cells.maybe_time()?;
    let by = cells.maybe_parsed(ClosedBy::parse)?;
    let why = cells.maybe_text()?;
    match (at, by, why) {
        (None, None, None) => Ok(None),
        (Some(at), Some(by), Some(why)) => Ok(Some(Closed {
            at,
            by,
            why,
            kind: by.usual_kind(),
            dismissed_at: None,
        })),
        _ => Err(cells.broken("its end is incomplete")),
    }
}

impl SessionRows for PostgresTx<'_> {
    fn session(&mut self, id: SessionId) -> Result<Option<Session>, StoreError> {
        get(self, id)
    }

    fn sessions(&mut self, ids: &[SessionId]) -> Result<Vec<Session>, StoreError> {
        let mut found = Vec::new();
        for some in ids.chunks(if self.has_locks() { SOME } else { MANY }) {
            found.extend(self.all("sessions", BY_IDS, params![id_list(some)], read)?);
        }
        Ok(found)
    }

    fn session_by_handle(&mut self, handle: &str) -> Result<Option<Session>, StoreError> {
        self.first("sessions", BY_HANDLE, params![handle], read)
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
        let mut found = self.all("sessions", MATCH_PREFIX, range, names)?;
        if found.is_empty() {
            found = self.all("sessions", MATCH_OPEN, params![part, wanted], names)?;
            if found.len() < limit && is_somewhere(self, part)? {
                let left = i64::try_from(limit - found.len()).unwrap_or(i64::MAX);
                found.extend(self.all("sessions", MATCH_CLOSED, params![part, left], names)?);
            }
        }
        Ok(found)
    }

    fn sessions_at_any(&mut self, places: &[ProcessPlace<'_>]) -> Result<Vec<Session>, StoreError> {
        self.each("sessions", AT_PLACE, process::coordinates(places), read)
    }

    fn sessions_below_any(
        &mut self,
        places: &[ProcessPlace<'_>],
    ) -> Result<Vec<Session>, StoreError> {
        self.each("sessions", BELOW_PLACE, process::coordinates(places), read)
    }

    fn list_sessions(&mut self, filter: &SessionFilter) -> Result<Vec<Session>, StoreError> {
        self.listed(
            filter.readable_only,
            "sessions",
            list_statement(filter),
            read,
        )
    }

    fn insert_session(&mut self, session: &Session) -> Result<(), StoreError> {
        let cells = cells_of(self, session)?;
        self.insert(INSERT, cells)
    }

    fn update_session(&mut self, session: &Session) -> Result<(), StoreError> {
        let cells = cells_of(self, session)?;
        self.compare_and_set(UPDATE, cells)
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
        ];
        if self.has_locked_session(token.id) {
            self.change_later(TOUCH, values);
            return Ok(true);
        }
        Ok(self.run(TOUCH, values)? == 1)
    }

    fn count_sessions(&mut self, filter: &SessionFilter) -> Result<usize, StoreError> {
        let all = SessionFilter {
            limit: 0,
            ..filter.clone()
        };
        self.rows("sessions", list_statement(&all))
    }

    fn lives_at_any(
        &mut self,
        places: &[ProcessPlace<'_>],
    ) -> Result<Vec<(SessionToken, Process)>, StoreError> {
        process::lives_at_any(self, places)
    }

    fn lives_up_to(
        &mut self,
        token: SessionToken,
        most: usize,
    ) -> Result<Vec<(Life, Process)>, StoreError> {
        process::lives_up_to(self, token, most)
    }

    fn insert_life(
        &mut self,
        token: SessionToken,
        process: &Process,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        process::insert_life(self, token, process, at)
    }
}
