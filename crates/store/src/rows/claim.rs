//! Claims in rows: a key's row has its epoch, every grant is a hold.
//!
//! A unique index is the last line of defence: a key has at most one open hold. The newest hold is the one with the
//! highest epoch of its key. Epochs are stored without the store's base, which is added when they are read, so a store
//! that was copied, restored or lost history raises all of them at once. A key's row with a stored epoch of zero was
//! created only to be locked; its key was never granted.
//!
//! *Crash*: an epoch is raised together with its hold. *Clock jump*: times are stored as given. *Older version*: an
//! unknown way of granting or ending is damage, never free.

use tenure_core::claim::{ClaimRecord, EndedBy, Hold, HoldEnd, Means, TakenFrom};
use tenure_core::id::{Epoch, Life, RequestId, SessionId, SessionToken};
use tenure_core::key::Key;
use tenure_core::repository::Home;
use tenure_core::store::{ClaimFilter, ClaimRows, LostHolds, StoreError, WaitTopic};
use tenure_core::time::Timestamp;
use tenure_core::timeline::{TimelineCursor, TimelineFilter, TimelineHold};

use super::session::{after_prefix, id_list};
use crate::cells::{Cells, RowCell};
use crate::columns::columns;
use crate::engine::{Engine, LockedRow, Rows};
use crate::value::{Value, limit_or_all, params};

columns! { $
    HoldRow of "holds" by select_holds {
        key, epoch, session, life, request, means, note, granted_at, taken_from, ended_at, ended_by, home, home_mark,
    }
}

/// A key's row with its newest hold: the key and its epoch, then the columns of the hold, if any.
macro_rules! select_claims {
    ($rest:literal) => {
        concat!(
            "SELECT c.key, c.epoch, ",
            select_holds!(columns "h."),
            " FROM claims c LEFT JOIN holds h ON h.key = c.key \
             AND h.epoch = (SELECT max(epoch) FROM holds WHERE key = c.key) ",
            $rest
        )
    };
}

/// An open hold is its key's newest. The index is named because SQLite cannot know how few are open.
macro_rules! select_held {
    ($index:literal) => {
        concat!(
            "SELECT c.key, c.epoch, ",
            select_holds!(columns "h."),
            " FROM holds h INDEXED BY ",
            $index,
            " CROSS JOIN claims c ON c.key = h.key WHERE h.ended_at IS NULL "
        )
    };
}

/// A hold after which the session was granted the key again is not its newest.
macro_rules! select_lost {
    ($from:literal, $which:literal) => {
        concat!(
            "SELECT ",
            select_holds!(columns "h."),
            " FROM ",
            $from,
            " WHERE h.ended_by IN ('death', 'lease', 'taken') AND ",
            $which,
            " AND h.epoch = (SELECT max(n.epoch) FROM holds n INDEXED BY holds_session \
             WHERE n.session = h.session AND n.key = h.key) ORDER BY h.session, h.key"
        )
    };
}

const BY_KEY: &str = select_claims!("WHERE c.key = ?1");
const BY_KEYS: &str =
    select_claims!("WHERE c.key IN (SELECT value FROM json_each(?1)) ORDER BY c.key");
/// As many of these keys, in order, as fit into a number of bytes, and at least one; and how many there are.
const BY_KEYS_SIZED: &str = concat!(
    "SELECT c.key, c.epoch, ",
    select_holds!(columns "h."),
    ", p.matching FROM (SELECT k.key, count(*) OVER () AS matching, row_number() OVER (ORDER BY k.key) AS place, \
     sum(2 * octet_length(k.key) + octet_length(concat(n.note, n.taken_from, n.home, n.home_mark)) + 300) \
     OVER (ORDER BY k.key) AS size FROM claims k LEFT JOIN holds n ON n.key = k.key \
     AND n.epoch = (SELECT max(epoch) FROM holds WHERE key = k.key) \
     WHERE k.key IN (SELECT value FROM json_each(?1))) p \
     JOIN claims c ON c.key = p.key LEFT JOIN holds h ON h.key = c.key \
     AND h.epoch = (SELECT max(epoch) FROM holds WHERE key = c.key) \
     WHERE p.place = 1 OR p.size <= ?2 ORDER BY c.key"
);
/// How many keys one statement reads, whatever their rows contain: 16 rows of 4 KiB fit into the buffers of a socket.
const SOME: usize = 16;
/// How many keys one statement reads if nobody waits.
const MANY: usize = 1000;
/// How many bytes one statement reads while others wait, and if nobody does.
const BYTES_UNDER_LOCK: i64 = 48 * 1024;
const BYTES: i64 = 1024 * 1024;

const RAISE: &str = "UPDATE claims SET epoch = ?2 WHERE key = ?1 AND epoch = ?3";
const FIRST: &str = "INSERT INTO claims (key, epoch) VALUES (?1, ?2) \
     ON CONFLICT (key) DO UPDATE SET epoch = excluded.epoch WHERE claims.epoch = 0";
const END: &str = "UPDATE holds SET ended_at = ?3, ended_by = ?4 \
     WHERE key = ?1 AND epoch = ?2 AND ended_at IS NULL";
const CARRY: &str = "UPDATE holds INDEXED BY holds_ended SET life = ?2 \
     WHERE session = ?1 AND ended_by IS NULL";
const END_OF: &str = "UPDATE holds INDEXED BY holds_ended SET ended_at = ?2, ended_by = ?3 \
     WHERE session = ?1 AND ended_by IS NULL RETURNING key, epoch";
const NEWEST_OF: &str = select_holds!(
    "INDEXED BY holds_session WHERE session = ?1 AND key = ?2 ORDER BY epoch DESC LIMIT 1"
);
const NEXT_KEY_OF: &str = "SELECT key FROM holds INDEXED BY holds_session WHERE session = ?1 AND key >= ?2 AND key < ?3 \
     ORDER BY key LIMIT 1";
const NEWEST_AMONG: &str = concat!(
    "SELECT ",
    select_holds!(columns "h."),
    " FROM json_each(?2) CROSS JOIN holds h ON h.key = json_each.value \
     AND h.epoch = (SELECT max(n.epoch) FROM holds n INDEXED BY holds_session \
     WHERE n.session = ?1 AND n.key = json_each.value) ORDER BY h.key"
);
pub(crate) const OPEN_OF: &str =
    select_holds!("INDEXED BY holds_ended WHERE session = ?1 AND ended_by IS NULL ORDER BY key");
const OPEN_OF_MANY: &str = concat!(
    "SELECT ",
    select_holds!(columns "h."),
    " FROM json_each(?1) CROSS JOIN holds h INDEXED BY holds_ended ON h.session = json_each.value \
     WHERE h.ended_by IS NULL ORDER BY h.key"
);
const ALL_NEWEST_OF_MANY: &str = concat!(
    "SELECT ",
    select_holds!(columns "h."),
    " FROM json_each(?1) CROSS JOIN holds h INDEXED BY holds_session ON h.session = json_each.value \
     WHERE NOT EXISTS (SELECT 1 FROM holds n INDEXED BY holds_session \
     WHERE n.session = h.session AND n.key = h.key AND n.epoch > h.epoch) ORDER BY h.key"
);
const LOST_SINCE: &str = select_lost!(
    "holds h INDEXED BY holds_ended",
    "h.session = ?1 AND h.ended_at >= ?2"
);
const LOST_BELOW: &str = select_lost!(
    "holds h INDEXED BY holds_ended",
    "h.session = ?1 AND h.key >= ?2 AND h.key < ?3"
);
const LOST_OF: &str = select_lost!(
    "json_each(?1) CROSS JOIN holds h INDEXED BY holds_ended ON h.session = json_each.value",
    "h.ended_at >= ?2"
);
const LAST_GRANT: &str =
    "SELECT max(granted_at) FROM holds INDEXED BY holds_session WHERE session = ?1";
const ALL_NEWEST_OF: &str = concat!(
    "SELECT ",
    select_holds!(columns "h."),
    " FROM holds h JOIN (SELECT key, max(epoch) AS epoch FROM holds WHERE session = ?1 GROUP BY key) n \
     ON n.key = h.key AND n.epoch = h.epoch ORDER BY h.key"
);

/// A page of the same without those that the session gave up.
const UNGIVEN_OF: &str = concat!(
    "SELECT ",
    select_holds!(columns "h."),
    " FROM holds h INDEXED BY holds_session WHERE h.session = ?1 AND h.key > ?2 \
     AND h.ended_by IN ('end', 'death', 'lease', 'taken') \
     AND h.epoch = (SELECT max(n.epoch) FROM holds n INDEXED BY holds_session \
     WHERE n.session = ?1 AND n.key = h.key) ORDER BY h.key LIMIT ?3"
);
const HOMES: &str = "SELECT DISTINCT home, home_mark FROM holds INDEXED BY holds_open_home \
     /* may scan: open holds of paths */ WHERE ended_at IS NULL AND home IS NOT NULL";

/// A hold with the one that followed it, if the holder did not release it. The index is named because SQLite cannot know
/// how few are open.
macro_rules! select_timeline {
    ($index:literal) => {
        concat!(
            "SELECT ",
            select_holds!(columns "h."),
            ", ",
            select_holds!(columns "n."),
            " FROM holds h ",
            $index,
            " /* may scan: in the order of the list, up to its limit */ LEFT JOIN holds n ON n.key = h.key \
             AND n.epoch = h.epoch + 1 AND h.ended_by IN ('taken', 'handoff', 'death', 'lease', 'end') WHERE "
        )
    };
}

/// Keys as one parameter, for statements that take any number of them.
pub(crate) fn key_list(keys: &[Key]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

/// Announces [`ClaimRows::claims`], and the same for keys that are locked by then.
pub(crate) fn prefetch_claims<E: Engine>(rows: &mut Rows<E>, keys: &[Key]) {
    match keys {
        [] => {}
        [key] => rows.engine.prefetch(BY_KEY, &params![key.as_str()]),
        _ if keys.len() <= SOME => rows.engine.prefetch(BY_KEYS, &params![key_list(keys)]),
        _ => {}
    }
}

/// Announces [`ClaimRows::newest_holds_among`].
pub(crate) fn prefetch_newest<E: Engine>(rows: &mut Rows<E>, session: SessionId, keys: &[Key]) {
    if let Some(some) = keys.chunks(SOME).next() {
        let row = params![session.to_string(), key_list(some)];
        rows.engine.prefetch(NEWEST_AMONG, &row);
    }
}

/// The statement for a filter, with its parameters. What a session holds is never free.
fn list_statement(filter: &ClaimFilter) -> (String, Vec<Value<'_>>) {
    let mut values = Vec::new();
    let (mut sql, key) = match (filter.session, filter.free_too) {
        (Some(_), _) => (select_held!("holds_ended").to_owned(), "h.key"),
        (None, _) if filter.home.is_some() => (select_held!("holds_open_home").to_owned(), "h.key"),
        (None, false) => (
            concat!(
                select_held!("holds_open"),
                "/* may scan: in the order of the list */ "
            )
            .to_owned(),
            "h.key",
        ),
        (None, true) => (
            select_claims!("/* may scan: in the order of the list */ WHERE c.epoch > 0 ")
                .to_owned(),
            "c.key",
        ),
    };
    if let Some(session) = filter.session {
        sql.push_str("AND h.session = ? AND h.ended_by IS NULL ");
        values.push(session.to_string().into());
    }
    if let Some(home) = &filter.home {
        sql.push_str("AND h.home = ? AND h.home_mark IS ? ");
        values.push((&home.dir).into());
        values.push((&home.mark).into());
    }
    if let Some(prefix) = &filter.prefix {
        sql.push_str(&format!("AND {key} >= ? AND {key} < ? "));
        values.push(prefix.into());
        values.push(after_prefix(prefix).into());
    }
    sql.push_str(&format!("ORDER BY {key} LIMIT ?"));
    values.push(limit_or_all(filter.limit));
    (sql, values)
}

/// The statement for what is still held, or for what ended.
fn timeline_statement<'a>(
    filter: &'a TimelineFilter,
    held: bool,
    after: Option<(i64, i64)>,
    limit: usize,
) -> (String, Vec<Value<'a>>) {
    let mut values = Vec::new();
    let mut sql = match (&filter.key, filter.session, held) {
        (Some(_), _, _) => select_timeline!(""),
        (None, Some(_), _) => select_timeline!("INDEXED BY holds_ended"),
        (None, None, true) => select_timeline!("INDEXED BY holds_open"),
        (None, None, false) => select_timeline!("INDEXED BY holds_time"),
    }
    .to_owned();
    sql.push_str(if held {
        "h.ended_at IS NULL AND h.ended_by IS NULL "
    } else {
        "h.ended_at IS NOT NULL "
    });
    if let Some(key) = &filter.key {
        sql.push_str("AND h.key = ? ");
        values.push(key.as_str().into());
    }
    if let Some(session) = filter.session {
        sql.push_str("AND h.session = ? ");
        values.push(session.to_string().into());
    }
    match (&filter.after, after) {
        (Some(TimelineCursor::Held(key)), _) if held => {
            sql.push_str("AND h.key > ? ");
            values.push(key.as_str().into());
        }
        (Some(TimelineCursor::Ended { key, .. }), Some((at, epoch))) => {
            sql.push_str("AND (h.ended_at, h.key, h.epoch) < (?, ?, ?) ");
            values.extend([at.into(), key.as_str().into(), epoch.into()]);
        }
        _ => {}
    }
    if let Some(since) = filter.since.filter(|_| !held) {
        sql.push_str("AND h.ended_at >= ? ");
        values.push(since.0.into());
    }
    sql.push_str(if held {
        "ORDER BY h.key LIMIT ?"
    } else {
        "ORDER BY h.ended_at DESC, h.key DESC, h.epoch DESC LIMIT ?"
    });
    values.push(limit_or_all(limit));
    (sql, values)
}

fn read_claim(cells: &mut Cells<'_>) -> Result<ClaimRecord, StoreError> {
    let key = cells.parsed(Key::stored)?;
    let epoch = cells.epoch()?;
    let hold = HoldRow::read(cells);
    let newest = match hold.key.maybe_parsed(Key::stored)? {
        Some(_) => Some(hold_of(&hold)?),
        None => None,
    };
    Ok(ClaimRecord { key, epoch, newest })
}

fn read_hold(cells: &mut Cells<'_>) -> Result<Hold, StoreError> {
    hold_of(&HoldRow::read(cells))
}

fn read_timeline(cells: &mut Cells<'_>) -> Result<TimelineHold, StoreError> {
    let hold = read_hold(cells)?;
    let next = HoldRow::read(cells);
    let next = match next.key.maybe_text()? {
        Some(_) => Some(hold_of(&next)?),
        None => None,
    };
    Ok(TimelineHold { hold, next })
}

fn hold_of(row: &HoldRow<RowCell<'_>>) -> Result<Hold, StoreError> {
    let mark = row.home_mark.maybe_text()?;
    Ok(Hold {
        key: row.key.parsed(Key::stored)?,
        epoch: row.epoch.epoch()?,
        session: row.session.parsed(SessionId::parse)?,
        life: Life(row.life.number()?),
        request: row.request.maybe_parsed(RequestId::parse)?,
        means: row.means.parsed(Means::parse)?,
        note: row.note.maybe_text()?,
        home: row.home.maybe_text()?.map(|dir| Home { dir, mark }),
        granted_at: row.granted_at.time()?,
        taken_from: read_taken_from(row.taken_from)?,
        ended: read_end(row)?,
    })
}

fn read_taken_from(cell: RowCell<'_>) -> Result<Option<TakenFrom>, StoreError> {
    let Some(json) = cell.maybe_text()? else {
        return Ok(None);
    };
    match serde_json::from_str(&json) {
        Ok(from) => Ok(Some(from)),
        Err(error) => Err(cell.bad(&format!("{json:?}: {error}"))),
    }
}

fn read_end(row: &HoldRow<RowCell<'_>>) -> Result<Option<HoldEnd>, StoreError> {
    let at = row.ended_at.maybe_time()?;
    let by = row.ended_by.maybe_parsed(EndedBy::parse)?;
    match (at, by) {
        (None, None) => Ok(None),
        (Some(at), Some(by)) => Ok(Some(HoldEnd { at, by })),
        _ => Err(row.ended_at.broken("its end is incomplete")),
    }
}

impl<E: Engine> Rows<E> {
    /// The epoch of a key that was never granted: not zero if grants may have been lost.
    fn ungranted(&mut self) -> Result<Epoch, StoreError> {
        Ok(Epoch(self.engine.base()?.unsigned_abs()))
    }

    /// The rows of these keys, even of those that were only made to be locked, in as few statements as may be.
    fn claim_rows(&mut self, keys: &[Key]) -> Result<Vec<ClaimRecord>, StoreError> {
        match keys {
            [] => Ok(Vec::new()),
            [key] => self.all("claims", BY_KEY, &params![key.as_str()], read_claim),
            _ if keys.len() <= SOME || !E::SHARED => {
                self.all("claims", BY_KEYS, &params![key_list(keys)], read_claim)
            }
            _ => self.many_claim_rows(keys),
        }
    }

    /// The same for many keys, in pages that are small while others wait.
    fn many_claim_rows(&mut self, keys: &[Key]) -> Result<Vec<ClaimRecord>, StoreError> {
        let mut sorted = keys.to_vec();
        sorted.sort();
        let mut left = sorted.as_slice();
        let mut found = Vec::new();
        let mut bytes = BYTES_UNDER_LOCK;
        while !left.is_empty() {
            let row = params![key_list(left), bytes];
            let page = self.all("claims", BY_KEYS_SIZED, &row, |cells| {
                Ok((read_claim(cells)?, cells.number::<u64>()?))
            })?;
            let Some((last, matching)) = page.last() else {
                break;
            };
            let is_all = *matching <= page.len() as u64;
            let after = left.partition_point(|key| *key <= last.key);
            left = if is_all { &[] } else { &left[after..] };
            found.extend(page.into_iter().map(|(record, _)| record));
            if !self.engine.has_locks() {
                bytes = BYTES;
            }
        }
        Ok(found)
    }

    fn hold_row<'a>(&mut self, hold: &'a Hold) -> Result<Vec<Value<'a>>, StoreError> {
        let taken_from = hold
            .taken_from
            .as_ref()
            .map(|from| serde_json::to_string(from).expect("strings and numbers always serialize"));
        let home = hold.home.as_ref();
        let row = HoldRow {
            key: hold.key.as_str().into(),
            epoch: self.stored_epoch(hold.epoch)?.into(),
            session: hold.session.to_string().into(),
            life: hold.life.0.into(),
            request: hold.request.as_ref().map(RequestId::as_str).into(),
            means: hold.means.as_str().into(),
            note: (&hold.note).into(),
            granted_at: hold.granted_at.0.into(),
            taken_from: taken_from.into(),
            ended_at: hold.ended.map(|end| end.at.0).into(),
            ended_by: hold.ended.map(|end| end.by.as_str()).into(),
            home: home.map(|home| &home.dir).into(),
            home_mark: home.and_then(|home| home.mark.as_ref()).into(),
        };
        Ok(row.values())
    }
}

impl<E: Engine> ClaimRows for Rows<E> {
    fn claims(&mut self, keys: &[Key]) -> Result<Vec<ClaimRecord>, StoreError> {
        let ungranted = self.ungranted()?;
        let mut found = self.claim_rows(keys)?;
        found.retain(|record| record.epoch != ungranted);
        Ok(found)
    }

    fn lock_claims(&mut self, keys: &[Key]) -> Result<Vec<ClaimRecord>, StoreError> {
        for key in keys {
            self.engine.lock_key(key)?;
        }
        // In a statement of its own: what was read with the lock is older than the wait for it.
        let mut found = self.claim_rows(keys)?;
        if found.len() < keys.len() {
            let epoch = self.ungranted()?;
            for key in keys {
                if !found.iter().any(|record| record.key == *key) {
                    found.push(ClaimRecord {
                        epoch,
                        ..ClaimRecord::unknown(key.clone())
                    });
                }
            }
        }
        Ok(found)
    }

    fn count_claims(&mut self, filter: &ClaimFilter) -> Result<usize, StoreError> {
        let all = ClaimFilter {
            limit: 0,
            ..filter.clone()
        };
        self.count_rows("claims", list_statement(&all))
    }

    fn list_claims(&mut self, filter: &ClaimFilter) -> Result<Vec<ClaimRecord>, StoreError> {
        let statement = list_statement(filter);
        self.listed(filter.readable_only, "claims", statement, read_claim)
    }

    fn insert_hold(&mut self, hold: &Hold, before: Epoch) -> Result<(), StoreError> {
        let key = hold.key.as_str();
        self.engine.wake(WaitTopic::Key(hold.key.clone()));
        let epoch = self.stored_epoch(hold.epoch)?;
        let locked = LockedRow::Key(&hold.key);
        match self.stored_epoch(before)? {
            0 => self
                .engine
                .change_row(locked, FIRST, &params![key, epoch])?,
            before => {
                let raised = params![key, epoch, before];
                self.engine.change_row(locked, RAISE, &raised)?;
            }
        }
        self.engine.granted(hold.session, &hold.key, hold.epoch);
        let row = self.hold_row(hold)?;
        self.engine.change_row(locked, HoldRow::INSERT, &row)
    }

    fn end_hold(&mut self, key: &Key, epoch: Epoch, end: HoldEnd) -> Result<(), StoreError> {
        self.engine.wake(WaitTopic::Key(key.clone()));
        let epoch = self.stored_epoch(epoch)?;
        let row = params![key.as_str(), epoch, end.at.0, end.by.as_str()];
        self.engine.change_row(LockedRow::Key(key), END, &row)
    }

    fn end_holds_of(
        &mut self,
        session: SessionId,
        end: HoldEnd,
    ) -> Result<Vec<(Key, Epoch)>, StoreError> {
        let row = params![session.to_string(), end.at.0, end.by.as_str()];
        let mut ended = self.changed("holds", END_OF, &row, |cells| {
            Ok((cells.parsed(Key::stored)?, cells.epoch()?))
        })?;
        ended.sort();
        for (key, _) in &ended {
            self.engine.wake(WaitTopic::Key(key.clone()));
        }
        Ok(ended)
    }

    fn carry_holds(&mut self, to: SessionToken) -> Result<(), StoreError> {
        let row = params![to.id.to_string(), to.life.0];
        self.engine.execute_later(CARRY, &row)
    }

    fn newest_hold_of(
        &mut self,
        session: SessionId,
        key: &Key,
    ) -> Result<Option<Hold>, StoreError> {
        let who = params![session.to_string(), key.as_str()];
        self.first("holds", NEWEST_OF, &who, read_hold)
    }

    fn newest_holds_among(
        &mut self,
        session: SessionId,
        keys: &[Key],
    ) -> Result<Vec<Hold>, StoreError> {
        let mut found = Vec::new();
        let (some, rest) = keys.split_at(keys.len().min(SOME));
        let size = if self.engine.has_locks() { SOME } else { MANY };
        for some in [some].into_iter().chain(rest.chunks(size)) {
            if !some.is_empty() {
                let row = params![session.to_string(), key_list(some)];
                found.extend(self.all("holds", NEWEST_AMONG, &row, read_hold)?);
            }
        }
        Ok(found)
    }

    fn open_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError> {
        self.all("holds", OPEN_OF, &params![session.to_string()], read_hold)
    }

    fn open_holds_of(&mut self, sessions: &[SessionId]) -> Result<Vec<Hold>, StoreError> {
        self.for_each_of("holds", OPEN_OF_MANY, sessions, read_hold)
    }

    fn newest_holds_of(&mut self, sessions: &[SessionId]) -> Result<Vec<Hold>, StoreError> {
        self.for_each_of("holds", ALL_NEWEST_OF_MANY, sessions, read_hold)
    }

    fn lost_holds(
        &mut self,
        session: SessionId,
        which: LostHolds<'_>,
    ) -> Result<Vec<Hold>, StoreError> {
        let session = session.to_string();
        match which {
            LostHolds::Since(at) => {
                self.all("holds", LOST_SINCE, &params![session, at.0], read_hold)
            }
            LostHolds::Below(prefix) => {
                let range = params![session, prefix, after_prefix(prefix)];
                self.all("holds", LOST_BELOW, &range, read_hold)
            }
        }
    }

    fn lost_holds_of(
        &mut self,
        sessions: &[SessionId],
        since: Timestamp,
    ) -> Result<Vec<Hold>, StoreError> {
        let row = params![id_list(sessions), since.0];
        self.all("holds", LOST_OF, &row, read_hold)
    }

    fn last_grant(&mut self, session: SessionId) -> Result<Option<Timestamp>, StoreError> {
        let session = params![session.to_string()];
        let last = self.first("holds", LAST_GRANT, &session, |cells| cells.maybe_time())?;
        Ok(last.flatten())
    }

    fn newest_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError> {
        let session = params![session.to_string()];
        self.all("holds", ALL_NEWEST_OF, &session, read_hold)
    }

    fn newest_holds_of_path(
        &mut self,
        session: SessionId,
        glob: &str,
    ) -> Result<Vec<Hold>, StoreError> {
        let (who, paths) = (session.to_string(), after_prefix("path:"));
        let (mut from, mut found) = ("path:".to_owned(), Vec::new());
        loop {
            let range = params![who.as_str(), from.as_str(), paths.as_str()];
            let next = self.first("holds", NEXT_KEY_OF, &range, |cells| cells.text())?;
            let Some(next) = next else {
                return Ok(found);
            };
            let parts = Key::stored(&next).ok();
            let Some((repo, _)) = parts.as_ref().and_then(Key::path_parts) else {
                // What is no path is passed over.
                from = format!("{next}\u{1}");
                continue;
            };
            let prefix = format!("path:{repo}:");
            let same = params![who.as_str(), format!("{prefix}{glob}")];
            found.extend(self.first("holds", NEWEST_OF, &same, read_hold)?);
            from = after_prefix(&prefix).max(format!("{next}\u{1}"));
        }
    }

    fn ungiven_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError> {
        let mut found: Vec<Hold> = Vec::new();
        loop {
            let after = found.last().map(|hold| hold.key.to_string());
            let row = params![
                session.to_string(),
                after.unwrap_or_default(),
                limit_or_all(SOME)
            ];
            let page = self.all("holds", UNGIVEN_OF, &row, read_hold)?;
            let is_last = page.len() < SOME;
            found.extend(page);
            if is_last {
                return Ok(found);
            }
        }
    }

    fn timeline(&mut self, filter: &TimelineFilter) -> Result<Vec<TimelineHold>, StoreError> {
        let after = match &filter.after {
            Some(TimelineCursor::Ended { at, epoch, .. }) => {
                Some((at.0, self.stored_epoch(*epoch)?))
            }
            Some(TimelineCursor::Held(_)) | None => None,
        };
        let mut found = Vec::new();
        if after.is_none() {
            let held = timeline_statement(filter, true, None, filter.limit);
            found = self.listed(true, "holds", held, read_timeline)?;
        }
        if filter.limit == 0 || found.len() < filter.limit {
            let left = filter.limit.saturating_sub(found.len());
            let ended = timeline_statement(filter, false, after, left);
            found.extend(self.listed(true, "holds", ended, read_timeline)?);
        }
        Ok(found)
    }

    fn open_homes(&mut self) -> Result<Vec<Home>, StoreError> {
        self.all("holds", HOMES, &[], |cells| {
            let dir = cells.text()?;
            let mark = cells.maybe_text()?;
            Ok(Home { dir, mark })
        })
    }
}
