//! Waiters in rows, in order of arrival.
//!
//! *Crash*: the rows of a killed waiter stay until a process that sees it is dead removes them; they hold
//! nothing. *Clock jump*: a turn's end is on the store's monotonic clock. *Older version*: a turn without an
//! epoch was recorded by the first schema and does not count.

use tenure_core::id::{Epoch, Life, SessionId, SessionToken, Ticket};
use tenure_core::key::Key;
use tenure_core::line::{NotedTurn, Waiter};
use tenure_core::store::{LineRows, NewWaiter, StoreError};
use tenure_core::time::{Deadline, Era, Timestamp};

use super::claim::key_list;
use super::handle::PostgresTx;
use super::process;
use super::row::Cells;
use super::value::params;

macro_rules! select_waiters {
    ($rest:literal) => {
        concat!(
            "SELECT key, ticket, session, life, host_id, boot_id, boot_private, pid_ns, pid, start_ticks, \
             start_shifted, since, turn_epoch, turn_era, turn_era_private, turn_at FROM waiters ",
            $rest
        )
    };
}

const LINE: &str = select_waiters!("WHERE key = $1 ORDER BY ticket");
const OF_SESSION: &str = select_waiters!("WHERE session = $1 ORDER BY ticket, key");
const AT: &str = select_waiters!("WHERE ticket = $1 ORDER BY key");

/// A turn without an epoch was recorded by the first schema and does not count.
const TURN: &str = "UPDATE waiters \
     SET turn_epoch = $3, turn_era = $4, turn_era_private = $5, turn_at = $6 \
     WHERE key = $1 AND ticket = $2 AND turn_epoch IS NOT DISTINCT FROM $7 \
     AND (turn_epoch IS NULL OR (turn_era IS NOT DISTINCT FROM $8 AND turn_at IS NOT DISTINCT FROM $9))";

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

impl LineRows for PostgresTx<'_> {
    fn join_line(&mut self, keys: &[Key], waiter: &NewWaiter<'_>) -> Result<Ticket, StoreError> {
        // A sequence, so that a number taken by a rolled-back transaction is not used again.
        let sql = "SELECT nextval('tickets')";
        let ticket = self.change_all("tickets", sql, Vec::new(), |cells| cells.number::<i64>())?;
        let ticket = ticket.into_iter().next().ok_or(StoreError::Conflict)?;
        let sql = "INSERT INTO waiters (key, ticket, session, life, host_id, boot_id, boot_private, pid_ns, pid, \
             start_ticks, start_shifted, since) \
             SELECT key, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 FROM unnest($1) AS k (key) \
             ON CONFLICT (key, ticket) DO NOTHING";
        let process = waiter.process;
        self.later(
            sql,
            params![
                key_list(keys),
                ticket,
                waiter.session.map(|token| token.id.to_string()),
                waiter.session.map(|token| token.life.0),
                process.host.as_str(),
                process.boot.id.as_str(),
                process.boot.private,
                process.pid_ns.cast_signed(),
                process.pid,
                process.start.ticks.cast_signed(),
                process.start.shifted,
                waiter.since.0,
            ],
        );
        Ok(Ticket(ticket.cast_unsigned()))
    }

    fn line(&mut self, key: &Key) -> Result<Vec<Waiter>, StoreError> {
        self.all("waiters", LINE, params![key.as_str()], read)
    }

    fn waits_of(&mut self, session: SessionId) -> Result<Vec<Waiter>, StoreError> {
        self.all("waiters", OF_SESSION, params![session.to_string()], read)
    }

    fn waits_at(&mut self, ticket: Ticket) -> Result<Vec<Waiter>, StoreError> {
        self.all("waiters", AT, params![ticket.0.cast_signed()], read)
    }

    fn set_turn(
        &mut self,
        ticket: Ticket,
        key: &Key,
        before: Option<&NotedTurn>,
        turn: &NotedTurn,
    ) -> Result<(), StoreError> {
        let new = self.count("epoch", turn.epoch.0)?;
        let old = before.map(|turn| self.count("epoch", turn.epoch.0));
        let old = old.transpose()?;
        let was = before.and_then(|turn| turn.until.as_ref());
        let until = turn.until.as_ref();
        self.compare_and_set(
            TURN,
            params![
                key.as_str(),
                ticket.0.cast_signed(),
                new,
                until.map(|deadline| deadline.era.id.as_str()),
                until.map(|deadline| deadline.era.private),
                until.map(|deadline| deadline.at),
                old,
                was.map(|deadline| deadline.era.id.as_str()),
                was.map(|deadline| deadline.at),
            ],
        )
    }

    fn leave_line(&mut self, ticket: Ticket) -> Result<(), StoreError> {
        let sql = "DELETE FROM waiters WHERE ticket = $1";
        self.later(sql, params![ticket.0.cast_signed()]);
        Ok(())
    }
}
