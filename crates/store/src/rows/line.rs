//! Waiters in rows, in order of arrival.
//!
//! *Crash*: the rows of a killed waiter stay until a process that sees it is dead removes them; they hold nothing.
//! *Clock jump*: a turn's end is on the store's monotonic clock. *Older version*: a turn without an epoch does not
//! count.

use tenure_core::id::{Epoch, Life, SessionId, SessionToken, Ticket};
use tenure_core::keeper::KeeperPlace;
use tenure_core::key::Key;
use tenure_core::line::{NotedTurn, Waiter};
use tenure_core::store::{LineRows, NewWaiter, StoreError, WaitTopic};
use tenure_core::time::{Deadline, Era};

use super::claim::key_list;
use super::process::process_cells;
use crate::cells::Cells;
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::params;

columns! { $
    WaiterRow of "waiters" by select_waiters {
        key, ticket, session, life, host_id, boot_id, boot_private, pid_ns, pid, start_ticks, start_shifted, since,
        turn_epoch, turn_era, turn_era_private, turn_at,
    }
}

const LINE: &str = select_waiters!("WHERE key = ?1 ORDER BY ticket");
const FREE: &str = select_waiters!(
    "/* may scan: waiters are few */ \
     WHERE key IN (SELECT own.key FROM waiters own WHERE own.host_id = ?1 AND own.pid_ns = ?2) \
     AND NOT EXISTS (SELECT 1 FROM holds WHERE holds.key = waiters.key AND holds.ended_at IS NULL) \
     ORDER BY key, ticket LIMIT 400"
);
const OF_SESSIONS: &str = select_waiters!(
    "/* may scan: waiters are few */ WHERE session IN (SELECT value FROM json_each(?1)) \
     ORDER BY ticket, key"
);
const AT: &str = select_waiters!("/* may scan: waiters are few */ WHERE ticket = ?1 ORDER BY key");
const JOIN: &str = "INSERT INTO waiters (key, ticket, session, life, host_id, boot_id, boot_private, \
     pid_ns, pid, start_ticks, start_shifted, since) \
     SELECT json_each.value, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12 FROM json_each(?1) \
     WHERE TRUE ON CONFLICT (key, ticket) DO NOTHING";
/// A turn without an epoch does not count.
const TURN: &str = "UPDATE waiters \
     SET turn_epoch = ?3, turn_era = ?4, turn_era_private = ?5, turn_at = ?6 \
     WHERE key = ?1 AND ticket = ?2 AND turn_epoch IS ?7 \
     AND (turn_epoch IS NULL OR (turn_era IS ?8 AND turn_at IS ?9))";
const LEAVE: &str =
    "DELETE FROM waiters /* may scan: waiters are few */ WHERE ticket = ?1 RETURNING key";

fn read(cells: &mut Cells<'_>) -> Result<Waiter, StoreError> {
    let row = WaiterRow::read(cells);
    let process = process_cells!(row, host_id);
    let Some(process) = process.process()? else {
        return Err(row.host_id.broken("it has no process"));
    };
    let session = row.session.maybe_parsed(SessionId::parse)?;
    let life: Option<u32> = row.life.maybe_number()?;
    let era = row.turn_era.maybe_text()?;
    let private = row.turn_era_private.maybe_flag()?;
    let at: Option<i64> = row.turn_at.maybe_number()?;
    let until = match (era, private, at) {
        (Some(id), Some(private), Some(at)) => Some(Deadline {
            era: Era { id, private },
            at,
        }),
        _ => None,
    };
    let epoch: Option<u64> = row.turn_epoch.maybe_number()?;
    Ok(Waiter {
        ticket: Ticket(row.ticket.number::<i64>()?.cast_unsigned()),
        key: row.key.parsed(Key::stored)?,
        session: session.zip(life).map(|(id, life)| SessionToken {
            id,
            life: Life(life),
        }),
        process,
        since: row.since.time()?,
        turn: epoch.map(|epoch| NotedTurn {
            epoch: Epoch(epoch),
            until,
        }),
    })
}

impl<E: Engine> LineRows for Rows<E> {
    fn join_line(&mut self, keys: &[Key], waiter: &NewWaiter<'_>) -> Result<Ticket, StoreError> {
        let ticket = self.engine.next_ticket()?;
        let process = waiter.process;
        self.engine.execute_later(
            JOIN,
            &params![
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
        )?;
        Ok(Ticket(ticket.cast_unsigned()))
    }

    fn line(&mut self, key: &Key) -> Result<Vec<Waiter>, StoreError> {
        self.all("waiters", LINE, &params![key.as_str()], read)
    }

    fn free_lines(&mut self, place: &KeeperPlace) -> Result<Vec<Waiter>, StoreError> {
        let place = params![place.host.as_str(), place.pid_ns.cast_signed()];
        self.all("waiters", FREE, &place, read)
    }

    fn waits_of(&mut self, sessions: &[SessionId]) -> Result<Vec<Waiter>, StoreError> {
        self.for_each_of("waiters", OF_SESSIONS, sessions, read)
    }

    fn waits_at(&mut self, ticket: Ticket) -> Result<Vec<Waiter>, StoreError> {
        self.all("waiters", AT, &params![ticket.0.cast_signed()], read)
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
        self.engine.wake(WaitTopic::Key(key.clone()));
        self.compare_and_set(
            TURN,
            &params![
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
        let ticket = &params![ticket.0.cast_signed()];
        let left = self.changed("waiters", LEAVE, ticket, |cells| cells.parsed(Key::stored))?;
        for key in left {
            self.engine.wake(WaitTopic::Key(key));
        }
        Ok(())
    }
}
