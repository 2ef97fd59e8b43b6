//! Waiters in rows, in order of arrival.
//!
//! *Crash*: a killed waiter's rows stay until somebody who sees that its process is dead removes them;
//! they hold nothing. *Clock jump*: a turn's end is on the store's steady clock.

use rusqlite::params;
use tenure_core::id::{Life, SessionId, SessionToken, Ticket};
use tenure_core::key::Key;
use tenure_core::queue::Waiter;
use tenure_core::store::{NewWaiter, StoreError};
use tenure_core::time::{Deadline, Era, Timestamp};

use super::handle::SqliteTx;
use super::process;
use super::row::Cells;

macro_rules! select_waiters {
    ($rest:literal) => {
        concat!(
            "SELECT key, ticket, session, life, host_id, boot_id, boot_private, pid_ns, pid, start_ticks, \
             start_shifted, since, turn_era, turn_era_private, turn_at FROM waiters ",
            $rest
        )
    };
}

pub(super) const LINE: &str = select_waiters!("WHERE key = ?1 ORDER BY ticket");
pub(super) const OF_SESSION: &str =
    select_waiters!("INDEXED BY waiters_session WHERE session = ?1 ORDER BY ticket, key");

pub(super) fn join(
    tx: &SqliteTx<'_>,
    keys: &[Key],
    waiter: &NewWaiter<'_>,
) -> Result<Ticket, StoreError> {
    tx.run("INSERT INTO tickets DEFAULT VALUES", [])?;
    let ticket = tx.last_row();
    // The number is kept by the table's own counter; the row itself has served.
    tx.run("DELETE FROM tickets WHERE id < ?1", [ticket])?;
    let sql = "INSERT INTO waiters (key, ticket, session, life, host_id, boot_id, boot_private, pid_ns, pid, \
         start_ticks, start_shifted, since) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) \
         ON CONFLICT (key, ticket) DO NOTHING";
    let process = waiter.process;
    for key in keys {
        tx.run(
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

pub(super) fn line(tx: &SqliteTx<'_>, key: &Key) -> Result<Vec<Waiter>, StoreError> {
    tx.all("waiters", LINE, [key.as_str()], read)
}

pub(super) fn of_session(tx: &SqliteTx<'_>, session: SessionId) -> Result<Vec<Waiter>, StoreError> {
    tx.all("waiters", OF_SESSION, [session.to_string()], read)
}

pub(super) fn set_turn(
    tx: &SqliteTx<'_>,
    ticket: Ticket,
    key: &Key,
    until: Option<&Deadline>,
) -> Result<(), StoreError> {
    let sql = "UPDATE waiters SET turn_era = ?3, turn_era_private = ?4, turn_at = ?5 \
         WHERE key = ?1 AND ticket = ?2";
    tx.run(
        sql,
        params![
            key.as_str(),
            ticket.0.cast_signed(),
            until.map(|deadline| deadline.era.id.as_str()),
            until.map(|deadline| deadline.era.private),
            until.map(|deadline| deadline.at),
        ],
    )?;
    Ok(())
}

pub(super) fn leave(tx: &SqliteTx<'_>, ticket: Ticket) -> Result<(), StoreError> {
    tx.run(
        "DELETE FROM waiters WHERE ticket = ?1",
        [ticket.0.cast_signed()],
    )?;
    Ok(())
}

fn read(cells: &mut Cells<'_>) -> Result<Waiter, StoreError> {
    let key = cells.parsed(Key::stored)?;
    let ticket: i64 = cells.number()?;
    let session = cells.maybe_parsed(SessionId::parse)?;
    let life: Option<u32> = cells.maybe_number()?;
    let Some(process) = process::read(cells)? else {
        return Err(cells.broken("it has no process"));
    };
    let since = Timestamp(cells.number()?);
    let era = cells.maybe_text()?;
    let private: Option<i64> = cells.maybe_number()?;
    let at: Option<i64> = cells.maybe_number()?;
    let turn_until = match (era, private, at) {
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
        turn_until,
    })
}
