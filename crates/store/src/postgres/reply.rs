//! Replies, duties and waiting deliveries in rows.
//!
//! *Crash*: a row is replaced completely or not at all. A unique index guarantees one comment of
//! each kind per job.

use tenure_core::id::JobId;
use tenure_core::key::Key;
use tenure_core::queue::delivery::WaitingDelivery;
use tenure_core::queue::duty::Duty;
use tenure_core::queue::reply::{Reply, ReplyKind};
use tenure_core::store::{ReplyRows, StoreError};
use tenure_core::time::Timestamp;

use super::handle::{PostgresTx, limit_or_all};
use super::process;
use super::row::Cells;
use super::value::params;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, kind, forge, item, job, target, comment, unsure, said, tries, next_at, failure, created_at, \
             done_at FROM replies ",
            $rest
        )
    };
}

const BY_ID: &str = select!("WHERE id = $1");
const ABOUT: &str = select!("WHERE job = $1 AND kind = $2 AND kind <> 'eyes'");
const OPEN: &str = select!(
    "WHERE forge = $1 AND done_at IS NULL AND id > $2 \
     AND (kind = 'eyes' OR NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = replies.job \
       AND jobs.state IN ('queued', 'starting'))) ORDER BY id LIMIT $3"
);
const FORGET_DONE: &str = "DELETE FROM replies WHERE id IN (SELECT id FROM replies \
     WHERE done_at < $1 ORDER BY done_at LIMIT $2)";
/// The forge is not asked any more, or its settings are gone.
const FORGET_LEFT: &str = "DELETE FROM replies WHERE id IN (SELECT own.id FROM replies AS own \
     JOIN jobs ON jobs.id = own.job WHERE own.done_at IS NULL AND jobs.ended_at < $1 LIMIT $2)";
const DUTY: &str = "SELECT name, host_id, boot_id, boot_private, pid_ns, pid, start_ticks, start_shifted, \
     renewed_at, swept_at FROM duties WHERE name = $1";
const WAITING: &str = "SELECT delivery, endpoint, event, tries, next_at FROM waiting_deliveries \
     WHERE endpoint = $1 AND next_at <= $2 ORDER BY next_at, delivery LIMIT $3";

fn read(cells: &mut Cells<'_>) -> Result<Reply, StoreError> {
    Ok(Reply {
        id: cells.number()?,
        kind: cells.parsed(ReplyKind::parse)?,
        forge: cells.text()?,
        item: cells.parsed(Key::stored)?,
        job: cells.parsed(JobId::parse)?,
        target: cells.maybe_text()?,
        comment: cells.maybe_number()?,
        unsure: cells.flag()?,
        said: cells.maybe_text()?,
        tries: cells.number()?,
        next_at: cells.maybe_time()?,
        failure: cells.maybe_text()?,
        created_at: cells.time()?,
        done_at: cells.maybe_time()?,
    })
}

fn read_duty(cells: &mut Cells<'_>) -> Result<Duty, StoreError> {
    let name = cells.text()?;
    let Some(holder) = process::read(cells)? else {
        return Err(cells.broken("it has no process"));
    };
    Ok(Duty {
        name,
        holder,
        renewed_at: cells.time()?,
        swept_at: cells.maybe_time()?,
    })
}

fn read_waiting(cells: &mut Cells<'_>) -> Result<WaitingDelivery, StoreError> {
    Ok(WaitingDelivery {
        delivery: cells.number()?,
        endpoint: cells.text()?,
        event: cells.text()?,
        tries: cells.number()?,
        next_at: cells.time()?,
    })
}

fn time(at: Option<Timestamp>) -> Option<i64> {
    at.map(|at| at.0)
}

impl ReplyRows for PostgresTx<'_> {
    fn insert_reply(&mut self, reply: &Reply) -> Result<i64, StoreError> {
        let sql = "INSERT INTO replies (kind, forge, item, job, target, comment, unsure, said, tries, next_at, failure, \
             created_at, done_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
             ON CONFLICT DO NOTHING RETURNING id";
        let added = self.change_all(
            "replies",
            sql,
            params![
                reply.kind.as_str(),
                &reply.forge,
                reply.item.as_str(),
                reply.job.as_str(),
                &reply.target,
                reply.comment.map(u64::cast_signed),
                reply.unsure,
                &reply.said,
                reply.tries,
                time(reply.next_at),
                &reply.failure,
                reply.created_at.0,
                time(reply.done_at),
            ],
            |cells| cells.number::<i64>(),
        )?;
        added.first().copied().ok_or(StoreError::Conflict)
    }

    fn reply(&mut self, id: i64) -> Result<Option<Reply>, StoreError> {
        self.first("replies", BY_ID, params![id], read)
    }

    fn reply_about(&mut self, job: &JobId, kind: ReplyKind) -> Result<Option<Reply>, StoreError> {
        self.first("replies", ABOUT, params![job.as_str(), kind.as_str()], read)
    }

    fn open_replies(
        &mut self,
        forge: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<Reply>, StoreError> {
        let most = limit_or_all(limit);
        // A page with fewer is the last one.
        let of = |most: Option<i64>| params![forge, after, most];
        self.first_readable("replies", OPEN, most, of, read)
    }

    fn forget_replies(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let mut forgotten = 0;
        for sql in [FORGET_DONE, FORGET_LEFT] {
            let most = limit_or_all(limit);
            forgotten += self.run(sql, params![before.0, most])?;
        }
        Ok(usize::try_from(forgotten).unwrap_or(usize::MAX))
    }

    fn update_reply(&mut self, reply: &Reply) -> Result<(), StoreError> {
        let sql = "UPDATE replies SET comment = $2, unsure = $3, said = $4, tries = $5, next_at = $6, failure = $7, \
             done_at = $8 WHERE id = $1";
        self.compare_and_set(
            sql,
            params![
                reply.id,
                reply.comment.map(u64::cast_signed),
                reply.unsure,
                &reply.said,
                reply.tries,
                time(reply.next_at),
                &reply.failure,
                time(reply.done_at),
            ],
        )
    }

    fn duty(&mut self, name: &str) -> Result<Option<Duty>, StoreError> {
        self.first("duties", DUTY, params![name], read_duty)
    }

    fn set_duty(&mut self, before: Option<&Duty>, duty: &Duty) -> Result<(), StoreError> {
        let insert = "INSERT INTO duties (name, host_id, boot_id, boot_private, pid_ns, pid, start_ticks, start_shifted, \
             renewed_at, swept_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        let update = "UPDATE duties SET host_id = $2, boot_id = $3, boot_private = $4, pid_ns = $5, pid = $6, \
             start_ticks = $7, start_shifted = $8, renewed_at = $9, swept_at = $10 \
             WHERE name = $1 AND pid = $11 AND start_ticks = $12 AND renewed_at = $13";
        let holder = &duty.holder;
        let (namespace, ticks) = (
            holder.pid_ns.cast_signed(),
            holder.start.ticks.cast_signed(),
        );
        match before {
            None => self.insert(
                insert,
                params![
                    &duty.name,
                    holder.host.as_str(),
                    holder.boot.id.as_str(),
                    holder.boot.private,
                    namespace,
                    holder.pid,
                    ticks,
                    holder.start.shifted,
                    duty.renewed_at.0,
                    time(duty.swept_at),
                ],
            ),
            Some(before) => self.compare_and_set(
                update,
                params![
                    &duty.name,
                    holder.host.as_str(),
                    holder.boot.id.as_str(),
                    holder.boot.private,
                    namespace,
                    holder.pid,
                    ticks,
                    holder.start.shifted,
                    duty.renewed_at.0,
                    time(duty.swept_at),
                    before.holder.pid,
                    before.holder.start.ticks.cast_signed(),
                    before.renewed_at.0,
                ],
            ),
        }
    }

    fn set_waiting_delivery(&mut self, waiting: &WaitingDelivery) -> Result<(), StoreError> {
        let sql = "INSERT INTO waiting_deliveries (delivery, endpoint, event, tries, next_at) \
             VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (delivery) DO UPDATE SET tries = excluded.tries, next_at = excluded.next_at";
        let (tries, next) = (waiting.tries, waiting.next_at.0);
        let values = params![
            waiting.delivery,
            &waiting.endpoint,
            &waiting.event,
            tries,
            next
        ];
        self.run(sql, values).map(|_| ())
    }

    fn waiting_deliveries(
        &mut self,
        endpoint: &str,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<WaitingDelivery>, StoreError> {
        let most = limit_or_all(limit);
        let of = |most: Option<i64>| params![endpoint, now.0, most];
        self.first_readable("waiting_deliveries", WAITING, most, of, read_waiting)
    }

    fn remove_waiting_delivery(&mut self, delivery: i64) -> Result<(), StoreError> {
        let sql = "DELETE FROM waiting_deliveries WHERE delivery = $1";
        self.run(sql, params![delivery]).map(|_| ())
    }
}
