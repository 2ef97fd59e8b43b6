//! Claims in rows: a key's row carries its epoch, every grant is a hold.
//!
//! The last word is a unique index: a key has at most one open hold. The newest hold is the one with the
//! highest epoch of its key, which may lie behind the key's own epoch after a restore raised that.
//!
//! *Crash*: an epoch is raised together with the hold that it is for. *Clock jump*: times are kept as
//! they are given. *Older version*: a way of granting or ending that is not known is damage, never free.

use rusqlite::types::Value;
use rusqlite::{params, params_from_iter};
use tenure_core::claim::{ClaimRecord, EndedBy, Hold, HoldEnd, Means, TakenFrom};
use tenure_core::id::{Epoch, Life, RequestId, SessionId};
use tenure_core::key::Key;
use tenure_core::store::{ClaimFilter, StoreError};

use super::handle::{SqliteTx, limit_or_all};
use super::row::Cells;
use super::session::after_prefix;

macro_rules! hold_columns {
    () => {
        "h.key, h.epoch, h.session, h.life, h.request, h.means, h.note, h.granted_at, \
         h.taken_from, h.ended_at, h.ended_by"
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

/// An open hold is its key's newest. The index is named because SQLite cannot know how few are open.
macro_rules! select_held {
    ($index:literal) => {
        concat!(
            "SELECT c.key, c.epoch, ",
            hold_columns!(),
            " FROM holds h INDEXED BY ",
            $index,
            " CROSS JOIN claims c ON c.key = h.key WHERE h.ended_at IS NULL "
        )
    };
}

macro_rules! select_holds {
    ($rest:literal) => {
        concat!("SELECT ", hold_columns!(), " FROM holds h ", $rest)
    };
}

pub(super) const BY_KEY: &str = select_claims!("WHERE c.key = ?1");
pub(super) const RAISE: &str = "UPDATE claims SET epoch = ?2 WHERE key = ?1 AND epoch = ?3";
const FIRST: &str = "INSERT INTO claims (key, epoch) VALUES (?1, ?2) \
     ON CONFLICT (key) DO UPDATE SET epoch = excluded.epoch WHERE epoch = 0";
pub(super) const END: &str = "UPDATE holds SET ended_at = ?3, ended_by = ?4 \
     WHERE key = ?1 AND epoch = ?2 AND ended_at IS NULL";
pub(super) const NEWEST_OF: &str = select_holds!(
    "INDEXED BY holds_session WHERE h.session = ?1 AND h.key = ?2 ORDER BY h.epoch DESC LIMIT 1"
);
pub(super) const OPEN_OF: &str = select_holds!(
    "INDEXED BY holds_open_session WHERE h.session = ?1 AND h.ended_at IS NULL ORDER BY h.key"
);
pub(super) const ALL_NEWEST_OF: &str = select_holds!(
    "JOIN (SELECT key, max(epoch) AS epoch FROM holds WHERE session = ?1 GROUP BY key) n \
     ON n.key = h.key AND n.epoch = h.epoch ORDER BY h.key"
);

pub(super) fn get(tx: &SqliteTx<'_>, key: &Key) -> Result<Option<ClaimRecord>, StoreError> {
    let row = tx.first("claims", BY_KEY, [key.as_str()], read_claim)?;
    Ok(row.filter(|record| record.epoch != Epoch::NONE))
}

pub(super) fn lock(tx: &SqliteTx<'_>, key: &Key) -> Result<ClaimRecord, StoreError> {
    // SQLite has one writer at a time, so a key that was never granted needs no row to be locked by.
    let record = tx.first("claims", BY_KEY, [key.as_str()], read_claim)?;
    Ok(record.unwrap_or_else(|| ClaimRecord::unknown(key.clone())))
}

pub(super) fn list(
    tx: &SqliteTx<'_>,
    filter: &ClaimFilter,
) -> Result<Vec<ClaimRecord>, StoreError> {
    let (sql, values) = list_statement(filter);
    tx.all("claims", &sql, params_from_iter(values), read_claim)
}

pub(super) fn count(tx: &SqliteTx<'_>, filter: &ClaimFilter) -> Result<usize, StoreError> {
    let all = ClaimFilter {
        limit: 0,
        ..filter.clone()
    };
    let (sql, values) = list_statement(&all);
    tx.rows("claims", &sql, params_from_iter(values))
}

/// The statement for a filter, with its parameters. What a session holds is never free.
pub(super) fn list_statement(filter: &ClaimFilter) -> (String, Vec<Value>) {
    let mut values: Vec<Value> = Vec::new();
    let (mut sql, key) = match (filter.session, filter.free_too) {
        (Some(_), _) => (select_held!("holds_open_session").to_owned(), "h.key"),
        (None, false) => (select_held!("holds_open").to_owned(), "h.key"),
        (None, true) => (select_claims!("WHERE c.epoch > 0 ").to_owned(), "c.key"),
    };
    if let Some(session) = filter.session {
        sql.push_str("AND h.session = ? ");
        values.push(session.to_string().into());
    }
    if let Some(prefix) = &filter.prefix {
        sql.push_str(&format!("AND {key} >= ? AND {key} < ? "));
        values.push(prefix.clone().into());
        values.push(after_prefix(prefix).into());
    }
    sql.push_str(&format!("ORDER BY {key} LIMIT ?"));
    values.push(limit_or_all(filter.limit).into());
    (sql, values)
}

pub(super) fn insert_hold(tx: &SqliteTx<'_>, hold: &Hold, before: Epoch) -> Result<(), StoreError> {
    let key = hold.key.as_str();
    let epoch = tx.count("epoch", hold.epoch.0)?;
    let raised = match before {
        Epoch::NONE => tx.run(FIRST, params![key, epoch])?,
        before => tx.run(RAISE, params![key, epoch, tx.count("epoch", before.0)?])?,
    };
    if raised == 0 {
        return Err(StoreError::Conflict);
    }
    let sql = "INSERT INTO holds (key, epoch, session, life, request, means, note, granted_at, \
         taken_from, ended_at, ended_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    let taken_from = hold
        .taken_from
        .as_ref()
        .map(|from| serde_json::to_string(from).expect("strings and numbers always serialize"));
    tx.run(
        sql,
        params![
            key,
            epoch,
            hold.session.to_string(),
            hold.life.0,
            hold.request.as_ref().map(RequestId::as_str),
            hold.means.as_str(),
            hold.note,
            hold.granted_at.0,
            taken_from,
            hold.ended.map(|end| end.at.0),
            hold.ended.map(|end| end.by.as_str()),
        ],
    )?;
    Ok(())
}

pub(super) fn end_hold(
    tx: &SqliteTx<'_>,
    key: &Key,
    epoch: Epoch,
    end: HoldEnd,
) -> Result<(), StoreError> {
    let epoch = tx.count("epoch", epoch.0)?;
    let row = params![key.as_str(), epoch, end.at.0, end.by.as_str()];
    match tx.run(END, row)? {
        0 => Err(StoreError::Conflict),
        _ => Ok(()),
    }
}

pub(super) fn newest_hold_of(
    tx: &SqliteTx<'_>,
    session: SessionId,
    key: &Key,
) -> Result<Option<Hold>, StoreError> {
    let who = params![session.to_string(), key.as_str()];
    tx.first("holds", NEWEST_OF, who, read_hold)
}

pub(super) fn open_holds(tx: &SqliteTx<'_>, session: SessionId) -> Result<Vec<Hold>, StoreError> {
    tx.all("holds", OPEN_OF, [session.to_string()], read_hold)
}

pub(super) fn newest_holds(tx: &SqliteTx<'_>, session: SessionId) -> Result<Vec<Hold>, StoreError> {
    tx.all("holds", ALL_NEWEST_OF, [session.to_string()], read_hold)
}

fn read_claim(cells: &mut Cells<'_>) -> Result<ClaimRecord, StoreError> {
    let key = cells.parsed(Key::parse)?;
    let epoch = Epoch(cells.number()?);
    let newest = match cells.maybe_parsed(Key::parse)? {
        Some(key) => Some(read_rest_of_hold(key, cells)?),
        None => None,
    };
    Ok(ClaimRecord { key, epoch, newest })
}

fn read_hold(cells: &mut Cells<'_>) -> Result<Hold, StoreError> {
    let key = cells.parsed(Key::parse)?;
    read_rest_of_hold(key, cells)
}

fn read_rest_of_hold(key: Key, cells: &mut Cells<'_>) -> Result<Hold, StoreError> {
    Ok(Hold {
        key,
        epoch: Epoch(cells.number()?),
        session: cells.parsed(SessionId::parse)?,
        life: Life(cells.number()?),
        request: cells.maybe_parsed(RequestId::parse)?,
        means: cells.parsed(Means::parse)?,
        note: cells.maybe_text()?,
        granted_at: cells.time()?,
        taken_from: read_taken_from(cells)?,
        ended: read_end(cells)?,
    })
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
