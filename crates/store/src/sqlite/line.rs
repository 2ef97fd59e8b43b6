//! Waiters in rows, in order of arrival.
//!
//! *Crash*: the rows of a killed waiter stay until a process that sees it is dead removes them; they hold
//! nothing. *Clock jump*: a turn's end is on the store's monotonic clock. *Older version*: a turn without an
//! epoch was recorded by the first schema and does not count.

use rusqlite::params;
use tenure_core::id::{Epoch, Life, SessionId, SessionToken, Ticket};
use tenure_core::key::Key;
use tenure_core::line::{NotedTurn, Waiter};
use tenure_core::store::{LineRows, NewWaiter, StoreError};
use tenure_core::time::{Deadline, Era, Timestamp};

use super::handle::SqliteTx;
use super::process;
use super::row::Cells;

macro_rules! select_waiters {
    ($rest:literal) => {
        concat!(
            "SELECT key, ticket, session, life, host_id, boot_id, boot_private, pid_ns, pid, start_ticks, \
             start_shifted, since, turn_epoch, turn_era, turn_era_private, turn_at FROM waiters ",
            $rest
        )
    };
}

pub(super) const LINE: &str = select_waiters!("WHERE key = ?1 ORDER BY ticket");
pub(super) const OF_SESSION: &str =
    select_waiters!("INDEXED BY waiters_session WHERE session = ?1 ORDER BY ticket, key");
pub(super) const AT: &str =
    select_waiters!("INDEXED BY waiters_ticket WHERE ticket = ?1 ORDER BY key");

/// A turn without an epoch was recorded by the first schema and does not count.
pub(super) const TURN: &str = "UPDATE waiters \
     SET turn_epoch = ?3, turn_era = ?4, turn_era_private = ?5, turn_at = ?6 \
     WHERE key = ?1 AND ticket = ?2 AND turn_epoch IS ?7 \
     AND (turn_epoch IS NULL OR (turn_era IS ?8 AND turn_at IS ?9))";

fn read(cells: &mut Cells<'_>) -> Result<Waiter, StoreError> {
    let key = cells.parsed(Key::stored)?;
    let ticket: i64 = cells.number()?;
    let session = cells.maybe_parsed(SessionId::parse)?;
    let life: Option<u32> = cells.maybe_number()?;
    let Some(process) = process::read(cells)? else {
        return Err(cells.broken("it has no process"));
    };
    let since = Timestamp(cells.number()?);
    let epoch: Option<u64> = cells.maybe_number()?;
    let era = cells.maybe_text()?;
    let private: Option<i64> = cells.maybe_number()?;
    let at: Option<i64> = cells.maybe_number()?;
    let until = match (era, private, at) {
        (Some(id), Some(private), Some(at)) => Some(Deadline {
            era: Era {
                id,
                private: private != 0,
            },
            at,
        }),
        _ => None,
    };
    Ok(Waiter {
        ticket: Ticket(ticket.cast_unsigned()),
        key,
        session: session.zip(life).map(|(id, life)| SessionToken {
            id,
            life: Life(life),
        }),
        process,
        since,
        turn: epoch.map(|epoch| NotedTurn {
            epoch: Epoch(epoch),
            until,
        }),
    })
}

impl LineRows for SqliteTx<'_> {
    fn join_line(&mut self, keys: &[Key], waiter: &NewWaiter<'_>) -> Result<Ticket, StoreError> {
        self.run("INSERT INTO tickets DEFAULT VALUES", [])?;
        let ticket = self.last_row();
        // The table's own counter keeps the number; the row itself is no longer needed.
        self.run("DELETE FROM tickets WHERE id < ?1", [ticket])?;
        let sql = "INSERT INTO waiters (key, ticket, session, life, host_id, boot_id, boot_private, pid_ns, pid, \
             start_ticks, start_shifted, since) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) \
             ON CONFLICT (key, ticket) DO NOTHING";
        let process = waiter.process;
        for key in keys {
            self.run(
                sql,
                params![
                    key.as_str(),
                    ticket,
                    waiter.session.map(|token| token.id.to_string()),
                    waiter.session.map(|token| token.life.0),
                    process.host.as_str(),
                    process.boot.id,
                    process.boot.private,
                    process.pid_ns.cast_signed(),
                    process.pid,
                    process.start.ticks.cast_signed(),
                    process.start.shifted,
                    waiter.since.0,
                ],
            )?;
        }
        Ok(Ticket(ticket.cast_unsigned()))
    }

    fn line(&mut self, key: &Key) -> Result<Vec<Waiter>, StoreError> {
        self.all("waiters", LINE, [key.as_str()], read)
    }

    fn waits_of(&mut self, session: SessionId) -> Result<Vec<Waiter>, StoreError> {
        self.all("waiters", OF_SESSION, [session.to_string()], read)
    }

    fn waits_at(&mut self, ticket: Ticket) -> Result<Vec<Waiter>, StoreError> {
        self.all("waiters", AT, [ticket.0.cast_signed()], read)
    }

    fn set_turn(
        &mut self,
        ticket: Ticket,
        key: &Key,
        before: Option<&NotedTurn>,
        turn: &NotedTurn,
    ) -> Result<(), StoreError> {
        let epoch = |turn: &NotedTurn| self.count("epoch", turn.epoch.0);
        let was = before.and_then(|turn| turn.until.as_ref());
        let until = turn.until.as_ref();
        self.moved(key);
        let changed = self.run(
            TURN,
            params![
                key.as_str(),
                ticket.0.cast_signed(),
                epoch(turn)?,
                until.map(|deadline| deadline.era.id.as_str()),
                until.map(|deadline| deadline.era.private),
                until.map(|deadline| deadline.at),
                before.map(epoch).transpose()?,
                was.map(|deadline| deadline.era.id.as_str()),
                was.map(|deadline| deadline.at),
            ],
        )?;
        match changed {
            0 => Err(StoreError::Conflict),
            _ => Ok(()),
        }
    }

    fn leave_line(&mut self, ticket: Ticket) -> Result<(), StoreError> {
        let sql = "DELETE FROM waiters WHERE ticket = ?1 RETURNING key";
        let left = self.all("waiters", sql, [ticket.0.cast_signed()], |cells| {
            cells.parsed(Key::stored)
        })?;
        left.iter().for_each(|key| self.moved(key));
        Ok(())
    }
}
