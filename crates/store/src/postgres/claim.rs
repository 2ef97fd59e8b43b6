//! Claims in rows: a key's row has its epoch, every grant is a hold.
//!
//! A unique index is the last line of defence: a key has at most one open hold. The newest hold is
//! the one with the highest epoch of its key. Epochs are stored without the store's base, which is
//! added when they are read, so a store that lost history raises all of them at once. A key's row
//! with epoch zero was created only to be locked; its key was never granted.
//!
//! *Crash*: an epoch is raised together with its hold. *Clock jump*: times are stored as given.
//! *Older version*: an unknown way of granting or ending is damage, never free.

use tenure_core::claim::{ClaimRecord, EndedBy, Hold, HoldEnd, Means, TakenFrom};
use tenure_core::id::{Epoch, Life, RequestId, SessionId, SessionToken};
use tenure_core::key::Key;
use tenure_core::repository::Home;
use tenure_core::store::{ClaimFilter, ClaimRows, Lost, StoreError};
use tenure_core::time::Timestamp;

use super::handle::{PostgresTx, limit_or_all};
use super::lock;
use super::row::Cells;
use super::session::{after_prefix, id_list};
use super::value::{Value, numbered, params};

macro_rules! hold_columns {
    () => {
        "h.key, h.epoch, h.session, h.life, h.request, h.means, h.note, h.granted_at, \
         h.taken_from, h.ended_at, h.ended_by, h.home, h.home_mark"
    };
}

/// A key's row with its newest hold: the key and its epoch, then the columns of the hold, if any.
macro_rules! select_claims {
    ($rest:literal) => {
        concat!(
            "SELECT c.key, c.epoch, ",
            hold_columns!(),
            " FROM claims c LEFT JOIN holds h ON h.key = c.key \
             AND h.epoch = (SELECT max(epoch) FROM holds WHERE key = c.key) ",
            $rest
        )
    };
}

/// An open hold is its key's newest.
macro_rules! select_held {
    () => {
        concat!(
            "SELECT c.key, c.epoch, ",
            hold_columns!(),
            " FROM holds h JOIN claims c ON c.key = h.key WHERE h.ended_at IS NULL "
        )
    };
}

macro_rules! select_holds {
    ($rest:literal) => {
        concat!("SELECT ", hold_columns!(), " FROM holds h ", $rest)
    };
}

const BY_KEY: &str = select_claims!("WHERE c.key = $1");
const BY_KEYS: &str = select_claims!("WHERE c.key = ANY($1) ORDER BY c.key");
/// As many of these keys, in order, as fit into a number of bytes, and at least one; and how many there are.
const BY_KEYS_SIZED: &str = concat!(
    "SELECT c.key, c.epoch, ",
    hold_columns!(),
    ", p.matching FROM (SELECT k.key, count(*) OVER () AS matching, row_number() OVER (ORDER BY k.key) AS place, \
     sum(2 * octet_length(k.key) + octet_length(concat(n.note, n.taken_from, n.home, n.home_mark)) + 300) \
     OVER (ORDER BY k.key) AS size FROM claims k LEFT JOIN holds n ON n.key = k.key \
     AND n.epoch = (SELECT max(epoch) FROM holds WHERE key = k.key) WHERE k.key = ANY($1)) p \
     JOIN claims c ON c.key = p.key LEFT JOIN holds h ON h.key = c.key \
     AND h.epoch = (SELECT max(epoch) FROM holds WHERE key = c.key) \
     WHERE p.place = 1 OR p.size <= $2 ORDER BY c.key"
);
/// How many keys one statement reads, whatever their rows contain: 16 rows of 4 KiB fit into the buffers of a socket.
const SOME: usize = 16;
/// How many bytes one statement reads while others wait, and if nobody does.
const MANY: usize = 1000;
const BYTES_UNDER_LOCK: i64 = 48 * 1024;
const BYTES: i64 = 1024 * 1024;
const LOCK: &str = "SELECT epoch FROM claims WHERE key = $1 FOR NO KEY UPDATE";
const RAISE: &str = "UPDATE claims SET epoch = $2 WHERE key = $1 AND epoch = $3";
const FIRST: &str = "INSERT INTO claims (key, epoch) VALUES ($1, $2) \
     ON CONFLICT (key) DO UPDATE SET epoch = excluded.epoch WHERE claims.epoch = 0";
const END: &str = "UPDATE holds SET ended_at = $3, ended_by = $4 \
     WHERE key = $1 AND epoch = $2 AND ended_at IS NULL";
const CARRY: &str = "UPDATE holds SET life = $2 WHERE session = $1 AND ended_at IS NULL";
const END_OF: &str = "UPDATE holds SET ended_at = $2, ended_by = $3 WHERE session = $1 AND ended_at IS NULL RETURNING key, epoch";
const NEWEST_OF: &str =
    select_holds!("WHERE h.session = $1 AND h.key = $2 ORDER BY h.epoch DESC LIMIT 1");
const NEWEST_AMONG: &str = select_holds!(
    "WHERE h.session = $1 AND h.key = ANY($2) AND h.epoch = (SELECT max(n.epoch) FROM holds n \
     WHERE n.session = $1 AND n.key = h.key) ORDER BY h.key"
);
const OPEN_OF: &str = select_holds!("WHERE h.session = $1 AND h.ended_at IS NULL ORDER BY h.key");
/// A hold after which the session was granted the key again is not its newest.
macro_rules! select_lost {
    ($which:literal) => {
        concat!(
            "SELECT ",
            hold_columns!(),
            " FROM holds h WHERE h.session = $1 AND h.ended_by IN ('death', 'lease', 'taken') AND ",
            $which,
            " AND h.epoch = (SELECT max(n.epoch) FROM holds n WHERE n.session = $1 AND n.key = h.key) ORDER BY h.key"
        )
    };
}

const LOST_SINCE: &str = select_lost!("h.ended_at >= $2");
const LOST_BELOW: &str = select_lost!("h.key >= $2 AND h.key < $3");
const LOST_OF: &str = concat!(
    "SELECT ",
    hold_columns!(),
    " FROM holds h WHERE h.session = ANY($1) AND h.ended_by IN ('death', 'lease', 'taken') AND h.ended_at >= $2 \
     AND h.epoch = (SELECT max(n.epoch) FROM holds n WHERE n.session = h.session AND n.key = h.key) ORDER BY h.session, h.key"
);
const LAST_GRANT: &str = "SELECT granted_at FROM holds WHERE session = $1 \
     ORDER BY granted_at DESC LIMIT 1";
const ALL_NEWEST_OF: &str = select_holds!(
    "JOIN (SELECT key, max(epoch) AS epoch FROM holds WHERE session = $1 GROUP BY key) n \
     ON n.key = h.key AND n.epoch = h.epoch ORDER BY h.key"
);

/// A page of the same without those that the session gave up.
const UNGIVEN_OF: &str = select_holds!(
    "WHERE h.session = $1 AND h.key > $2 AND h.ended_by IN ('end', 'death', 'lease', 'taken') \
     AND h.epoch = (SELECT max(n.epoch) FROM holds n WHERE n.session = $1 AND n.key = h.key) \
     ORDER BY h.key LIMIT $3"
);

const HOMES: &str = "SELECT DISTINCT home, home_mark FROM holds \
     WHERE ended_at IS NULL AND home IS NOT NULL";
const SPELLINGS: &str =
    "SELECT key FROM spellings WHERE canonical >= $1 AND canonical < $2 ORDER BY canonical, key";

const OTHERWISE: &str =
    "SELECT DISTINCT canonical FROM spellings WHERE canonical = ANY($1) AND key <> canonical";

/// Keys as one parameter, for statements that take any number of them.
pub(super) fn key_list(keys: &[Key]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

/// Announces [`ClaimRows::claims`], and the same for keys that are locked by then.
pub(super) fn soon_claims(tx: &mut PostgresTx<'_>, keys: &[Key]) {
    if keys.len() <= SOME
        && let Some((sql, row)) = first_rows(keys)
    {
        tx.soon(sql, row);
    }
}

/// Announces [`ClaimRows::newest_holds_among`].
pub(super) fn soon_newest(tx: &mut PostgresTx<'_>, session: SessionId, keys: &[Key]) {
    if let Some(some) = keys.chunks(SOME).next() {
        tx.soon(NEWEST_AMONG, params![session.to_string(), key_list(some)]);
    }
}

/// The statement that reads the rows of these keys, or the first of them.
fn first_rows(keys: &[Key]) -> Option<(&'static str, Vec<Value>)> {
    match keys {
        [] => None,
        [key] => Some((BY_KEY, params![key.as_str()])),
        _ if keys.len() <= SOME => Some((BY_KEYS, params![key_list(keys)])),
        _ => Some((BY_KEYS_SIZED, params![key_list(keys), BYTES_UNDER_LOCK])),
    }
}

/// The rows of these keys, even of those that were only made to be locked, in as few statements as may be.
fn rows_of(tx: &mut PostgresTx<'_>, keys: &[Key]) -> Result<Vec<ClaimRecord>, StoreError> {
    let Some((sql, row)) = first_rows(keys) else {
        return Ok(Vec::new());
    };
    if sql != BY_KEYS_SIZED {
        return tx.all("claims", sql, row, read_claim);
    }
    let mut sorted = keys.to_vec();
    sorted.sort();
    let mut left = sorted.as_slice();
    let mut found = Vec::new();
    let mut bytes = BYTES_UNDER_LOCK;
    while !left.is_empty() {
        let row = params![key_list(left), bytes];
        let page = tx.all("claims", BY_KEYS_SIZED, row, |cells| {
            Ok((read_claim(cells)?, cells.number::<u64>()?))
        })?;
        let Some((last, matching)) = page.last() else {
            break;
        };
        let is_all = *matching <= page.len() as u64;
        let after = left.partition_point(|key| *key <= last.key);
        left = if is_all { &[] } else { &left[after..] };
        found.extend(page.into_iter().map(|(record, _)| record));
        bytes = if tx.has_locks() {
            BYTES_UNDER_LOCK
        } else {
            BYTES
        };
    }
    Ok(found)
}

/// The statement for a filter, with its parameters. What a session holds is never free.
fn list_statement(filter: &ClaimFilter) -> (String, Vec<Value>) {
    let mut values: Vec<Value> = Vec::new();
    // A key that a session holds, or that has a home, is held.
    let (mut sql, key) = if filter.free_too && filter.session.is_none() && filter.home.is_none() {
        (select_claims!("WHERE c.epoch > 0 ").to_owned(), "c.key")
    } else {
        (select_held!().to_owned(), "h.key")
    };
    if let Some(session) = filter.session {
        sql.push_str("AND h.session = ? ");
        values.push(session.to_string().into());
    }
    if let Some(home) = &filter.home {
        sql.push_str("AND h.home = ? AND h.home_mark IS NOT DISTINCT FROM ? ");
        values.push(home.dir.clone().into());
        values.push(home.mark.clone().into());
    }
    if let Some(prefix) = &filter.prefix {
        sql.push_str(&format!("AND {key} >= ? AND {key} < ? "));
        values.push(prefix.clone().into());
        values.push(after_prefix(prefix).into());
    }
    sql.push_str(&format!("ORDER BY {key} LIMIT ?"));
    values.push(limit_or_all(filter.limit).into());
    (numbered(&sql), values)
}

fn read_claim(cells: &mut Cells<'_>) -> Result<ClaimRecord, StoreError> {
    let key = cells.parsed(Key::stored)?;
    let epoch = cells.epoch()?;
    let newest = match cells.maybe_parsed(Key::stored)? {
        Some(key) => Some(read_rest_of_hold(key, cells)?),
        None => None,
    };
    Ok(ClaimRecord { key, epoch, newest })
}

fn read_hold(cells: &mut Cells<'_>) -> Result<Hold, StoreError> {
    let key = cells.parsed(Key::stored)?;
    read_rest_of_hold(key, cells)
}

fn read_rest_of_hold(key: Key, cells: &mut Cells<'_>) -> Result<Hold, StoreError> {
    let mut hold = Hold {
        key,
        epoch: cells.epoch()?,
        session: cells.parsed(SessionId::parse)?,
        life: Life(cells.number()?),
        request: cells.maybe_parsed(RequestId::parse)?,
        means: cells.parsed(Means::parse)?,
        note: cells.maybe_text()?,
        home: None,
        granted_at: cells.time()?,
        taken_from: read_taken_from(cells)?,
        ended: read_end(cells)?,
    };
    let (dir, mark) = (cells.maybe_text()?, cells.maybe_text()?);
    hold.home = dir.map(|dir| Home { dir, mark });
    Ok(hold)
}

fn read_taken_from(cells: &mut Cells<'_>) -> Result<Option<TakenFrom>, StoreError> {
    let Some(json) = cells.maybe_text()? else {
        return Ok(None);
    };
    match serde_json::from_str(&json) {
        Ok(from) => Ok(Some(from)),
        Err(error) => Err(cells.bad(&format!("{json:?}: {error}"))),
    }
}

fn read_end(cells: &mut Cells<'_>) -> Result<Option<HoldEnd>, StoreError> {
    let at = cells.maybe_time()?;
    let by = cells.maybe_parsed(EndedBy::parse)?;
    match (at, by) {
        (None, None) => Ok(None),
        (Some(at), Some(by)) => Ok(Some(HoldEnd { at, by })),
        _ => Err(cells.broken("its end is incomplete")),
    }
}

impl ClaimRows for PostgresTx<'_> {
    fn claim(&mut self, key: &Key) -> Result<Option<ClaimRecord>, StoreError> {
        let granted = Epoch(self.base()?.unsigned_abs());
        let row = self.first("claims", BY_KEY, params![key.as_str()], read_claim)?;
        Ok(row.filter(|record| record.epoch != granted))
    }

    fn lock_claim(&mut self, key: &Key) -> Result<ClaimRecord, StoreError> {
        if !self.has_locked(key) {
            self.run(lock::MAKE_KEY, params![key.as_str()])?;
            self.run(LOCK, params![key.as_str()])?;
        }
        // In a statement of its own: what was read with the lock is older than the wait for it.
        let record = self.first("claims", BY_KEY, params![key.as_str()], read_claim)?;
        record.ok_or(StoreError::Conflict)
    }

    fn claims(&mut self, keys: &[Key]) -> Result<Vec<ClaimRecord>, StoreError> {
        let granted = Epoch(self.base()?.unsigned_abs());
        let mut found = rows_of(self, keys)?;
        found.retain(|record| record.epoch != granted);
        Ok(found)
    }

    fn lock_claims(&mut self, keys: &[Key]) -> Result<Vec<ClaimRecord>, StoreError> {
        if !keys.iter().all(|key| self.has_locked(key)) {
            return keys.iter().map(|key| self.lock_claim(key)).collect();
        }
        let found = rows_of(self, keys)?;
        if found.len() < keys.len() {
            return Err(StoreError::Conflict);
        }
        Ok(found)
    }

    fn count_claims(&mut self, filter: &ClaimFilter) -> Result<usize, StoreError> {
        let all = ClaimFilter {
            limit: 0,
            ..filter.clone()
        };
        self.rows("claims", list_statement(&all))
    }

    fn list_claims(&mut self, filter: &ClaimFilter) -> Result<Vec<ClaimRecord>, StoreError> {
        self.listed(
            filter.readable_only,
            "claims",
            list_statement(filter),
            read_claim,
        )
    }

    fn insert_hold(&mut self, hold: &Hold, before: Epoch) -> Result<(), StoreError> {
        let key = hold.key.as_str();
        let epoch = self.stored_epoch(hold.epoch)?;
        let (raise, raised) = match self.stored_epoch(before)? {
            0 => (FIRST, params![key, epoch]),
            before => (RAISE, params![key, epoch, before]),
        };
        let is_locked = self.has_locked(&hold.key);
        if is_locked {
            self.change_later(raise, raised);
        } else {
            self.compare_and_set(raise, raised)?;
        }
        self.granted(hold.session, key, hold.epoch);
        let sql = "INSERT INTO holds (key, epoch, session, life, request, means, note, granted_at, \
             taken_from, ended_at, ended_by, home, home_mark) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
        let taken_from = hold
            .taken_from
            .as_ref()
            .map(|from| serde_json::to_string(from).expect("strings and numbers always serialize"));
        let row = params![
            key,
            epoch,
            hold.session.to_string(),
            hold.life.0,
            hold.request.as_ref().map(RequestId::as_str),
            hold.means.as_str(),
            &hold.note,
            hold.granted_at.0,
            taken_from,
            hold.ended.map(|end| end.at.0),
            hold.ended.map(|end| end.by.as_str()),
            hold.home.as_ref().map(|home| &home.dir),
            hold.home.as_ref().and_then(|home| home.mark.as_ref()),
        ];
        if is_locked {
            let sql = format!("{sql} ON CONFLICT DO NOTHING");
            self.change_later(&sql, row);
            return Ok(());
        }
        self.insert(sql, row)
    }

    fn end_hold(&mut self, key: &Key, epoch: Epoch, end: HoldEnd) -> Result<(), StoreError> {
        let epoch = self.stored_epoch(epoch)?;
        let row = params![key.as_str(), epoch, end.at.0, end.by.as_str()];
        if self.has_locked(key) {
            self.change_later(END, row);
            return Ok(());
        }
        self.compare_and_set(END, row)
    }

    fn end_holds_of(
        &mut self,
        session: SessionId,
        end: HoldEnd,
    ) -> Result<Vec<(Key, Epoch)>, StoreError> {
        let row = params![session.to_string(), end.at.0, end.by.as_str()];
        let mut ended = self.change_all("holds", END_OF, row, |cells| {
            Ok((cells.parsed(Key::stored)?, cells.epoch()?))
        })?;
        ended.sort();
        Ok(ended)
    }

    fn carry_holds(&mut self, to: SessionToken) -> Result<(), StoreError> {
        self.later(CARRY, params![to.id.to_string(), to.life.0]);
        Ok(())
    }

    fn newest_hold_of(
        &mut self,
        session: SessionId,
        key: &Key,
    ) -> Result<Option<Hold>, StoreError> {
        let who = params![session.to_string(), key.as_str()];
        self.first("holds", NEWEST_OF, who, read_hold)
    }

    fn newest_holds_among(
        &mut self,
        session: SessionId,
        keys: &[Key],
    ) -> Result<Vec<Hold>, StoreError> {
        let mut found = Vec::new();
        let (some, rest) = keys.split_at(keys.len().min(SOME));
        let size = if self.has_locks() { SOME } else { MANY };
        for some in [some].into_iter().chain(rest.chunks(size)) {
            if !some.is_empty() {
                let row = params![session.to_string(), key_list(some)];
                found.extend(self.all("holds", NEWEST_AMONG, row, read_hold)?);
            }
        }
        Ok(found)
    }

    fn open_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError> {
        self.all("holds", OPEN_OF, params![session.to_string()], read_hold)
    }

    fn lost_holds(&mut self, session: SessionId, which: Lost<'_>) -> Result<Vec<Hold>, StoreError> {
        let session = session.to_string();
        match which {
            Lost::Since(at) => self.all("holds", LOST_SINCE, params![session, at.0], read_hold),
            Lost::Below(prefix) => {
                let range = params![session, prefix, after_prefix(prefix)];
                self.all("holds", LOST_BELOW, range, read_hold)
            }
        }
    }

    fn lost_holds_of(
        &mut self,
        sessions: &[SessionId],
        since: Timestamp,
    ) -> Result<Vec<Hold>, StoreError> {
        let row = params![id_list(sessions), since.0];
        self.all("holds", LOST_OF, row, read_hold)
    }

    fn last_grant(&mut self, session: SessionId) -> Result<Option<Timestamp>, StoreError> {
        self.first("holds", LAST_GRANT, params![session.to_string()], |cells| {
            cells.time()
        })
    }

    fn newest_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError> {
        self.all(
            "holds",
            ALL_NEWEST_OF,
            params![session.to_string()],
            read_hold,
        )
    }

    fn ungiven_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError> {
        let mut found: Vec<Hold> = Vec::new();
        loop {
            let after = found.last().map_or("", |hold| hold.key.as_str());
            let row = params![session.to_string(), after, limit_or_all(SOME)];
            let page = self.all("holds", UNGIVEN_OF, row, read_hold)?;
            let is_last = page.len() < SOME;
            found.extend(page);
            if is_last {
                return Ok(found);
            }
        }
    }

    fn open_homes(&mut self) -> Result<Vec<Home>, StoreError> {
        self.all("holds", HOMES, Vec::new(), |cells| {
            let dir = cells.text()?;
            let mark = cells.maybe_text()?;
            Ok(Home { dir, mark })
        })
    }

    fn spellings(&mut self, canonical: &str) -> Result<Vec<Key>, StoreError> {
        let range = params![canonical, after_prefix(canonical)];
        self.all("spellings", SPELLINGS, range, |cells| {
            cells.parsed(Key::stored)
        })
    }

    fn spelled_otherwise(&mut self, keys: &[Key]) -> Result<Vec<Key>, StoreError> {
        let mut found = Vec::new();
        for some in keys.chunks(MANY) {
            let keys = params![key_list(some)];
            found.extend(self.all("spellings", OTHERWISE, keys, |cells| {
                cells.parsed(Key::stored)
            })?);
        }
        Ok(found)
    }
}
