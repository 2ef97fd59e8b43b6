//! Replies and duties in rows.
//!
//! *Crash*: a row is replaced wholly or not at all. A unique index guarantees one comment of each kind per job.

use tenure_core::id::JobId;
use tenure_core::key::Key;
use tenure_core::queue::duty::Duty;
use tenure_core::queue::reply::{ForgeReply, ReplyKind};
use tenure_core::store::{ReplyRows, StoreError};
use tenure_core::time::Timestamp;

use super::process::process_cells;
use crate::cells::Cells;
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::{limit_or_all, params};

columns! { $
    /// Without its number, which the store gives.
    ReplyRow of "replies" by select_replies {
        kind, forge, item, job, target, comment, unsure, said, tries, next_at, failure, created_at, done_at,
    }
}

columns! { $
    DutyRow of "duties" by select_duties {
        name, host_id, boot_id, boot_private, pid_ns, pid, start_ticks, start_shifted, renewed_at, swept_at,
    }
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, ",
            select_replies!(columns ""),
            " FROM replies ",
            $rest
        )
    };
}

const BY_ID: &str = select!("WHERE id = ?1");
const ABOUT: &str =
    select!("INDEXED BY replies_comment WHERE job = ?1 AND kind = ?2 AND kind <> 'eyes'");
const OPEN: &str = select!(
    "INDEXED BY replies_open WHERE forge = ?1 AND done_at IS NULL AND id > ?2 \
     AND (kind = 'eyes' OR NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = replies.job \
       AND jobs.state IN ('queued', 'starting'))) ORDER BY id LIMIT ?3"
);
const UPDATE: &str = "UPDATE replies SET comment = ?2, unsure = ?3, said = ?4, tries = ?5, next_at = ?6, \
     failure = ?7, done_at = ?8 WHERE id = ?1";
const FORGET_DONE: &str = "DELETE FROM replies WHERE id IN (SELECT id FROM replies \
     /* may scan: in order, up to a limit */ WHERE done_at < ?1 ORDER BY id LIMIT ?2)";
/// The forge is not asked any more, or its settings are gone.
const FORGET_LEFT: &str = "DELETE FROM replies WHERE id IN (SELECT own.id FROM replies AS own INDEXED BY replies_open \
     /* may scan: few are open */ CROSS JOIN jobs ON jobs.id = own.job \
     WHERE own.done_at IS NULL AND jobs.ended_at < ?1 LIMIT ?2)";
const DUTY: &str = select_duties!("WHERE name = ?1");
/// Its parameters are the columns in their order, then what the duty was before.
const REPLACE_DUTY: &str = "UPDATE duties SET host_id = ?2, boot_id = ?3, boot_private = ?4, pid_ns = ?5, pid = ?6, \
     start_ticks = ?7, start_shifted = ?8, renewed_at = ?9, swept_at = ?10 \
     WHERE name = ?1 AND pid = ?11 AND start_ticks = ?12 AND renewed_at = ?13";

fn read(cells: &mut Cells<'_>) -> Result<ForgeReply, StoreError> {
    let id = cells.number()?;
    let row = ReplyRow::read(cells);
    Ok(ForgeReply {
        id,
        kind: row.kind.parsed(ReplyKind::parse)?,
        forge: row.forge.text()?,
        item: row.item.parsed(Key::stored)?,
        job: row.job.parsed(JobId::parse)?,
        target: row.target.maybe_text()?,
        comment: row.comment.maybe_number()?,
        unsure: row.unsure.flag()?,
        said: row.said.maybe_text()?,
        tries: row.tries.number()?,
        next_at: row.next_at.maybe_time()?,
        failure: row.failure.maybe_text()?,
        created_at: row.created_at.time()?,
        done_at: row.done_at.maybe_time()?,
    })
}

fn read_duty(cells: &mut Cells<'_>) -> Result<Duty, StoreError> {
    let row = DutyRow::read(cells);
    let holder = process_cells!(row, host_id);
    let Some(holder) = holder.process()? else {
        return Err(row.host_id.broken("it has no process"));
    };
    Ok(Duty {
        name: row.name.text()?,
        holder,
        renewed_at: row.renewed_at.time()?,
        swept_at: row.swept_at.maybe_time()?,
    })
}

fn time(at: Option<Timestamp>) -> Option<i64> {
    at.map(|at| at.0)
}

impl<E: Engine> ReplyRows for Rows<E> {
    fn insert_reply(&mut self, reply: &ForgeReply) -> Result<i64, StoreError> {
        let row = ReplyRow {
            kind: reply.kind.as_str().into(),
            forge: reply.forge.as_str().into(),
            item: reply.item.as_str().into(),
            job: reply.job.as_str().into(),
            target: reply.target.as_deref().into(),
            comment: reply.comment.map(u64::cast_signed).into(),
            unsure: reply.unsure.into(),
            said: reply.said.as_deref().into(),
            tries: reply.tries.into(),
            next_at: time(reply.next_at).into(),
            failure: reply.failure.as_deref().into(),
            created_at: reply.created_at.0.into(),
            done_at: time(reply.done_at).into(),
        };
        let sql = format!("{} RETURNING id", ReplyRow::INSERT);
        let added = self.changed("replies", &sql, &row.values(), |cells| {
            cells.number::<i64>()
        })?;
        added.first().copied().ok_or(StoreError::Conflict)
    }

    fn reply(&mut self, id: i64) -> Result<Option<ForgeReply>, StoreError> {
        self.first("replies", BY_ID, &params![id], read)
    }

    fn reply_about(
        &mut self,
        job: &JobId,
        kind: ReplyKind,
    ) -> Result<Option<ForgeReply>, StoreError> {
        let key = params![job.as_str(), kind.as_str()];
        self.first("replies", ABOUT, &key, read)
    }

    fn open_replies(
        &mut self,
        forge: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<ForgeReply>, StoreError> {
        // A page with fewer is the last one.
        let of = |most| params![forge, after, most];
        self.first_readable("replies", OPEN, limit, of, read)
    }

    fn forget_replies(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let mut forgotten = 0;
        for sql in [FORGET_DONE, FORGET_LEFT] {
            forgotten += self.run(sql, &params![before.0, limit_or_all(limit)])?;
        }
        Ok(forgotten)
    }

    fn update_reply(&mut self, reply: &ForgeReply) -> Result<(), StoreError> {
        self.compare_and_set(
            UPDATE,
            &params![
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
        self.first("duties", DUTY, &params![name], read_duty)
    }

    fn set_duty(&mut self, before: Option<&Duty>, duty: &Duty) -> Result<(), StoreError> {
        let holder = &duty.holder;
        let row = DutyRow {
            name: duty.name.as_str().into(),
            host_id: holder.host.as_str().into(),
            boot_id: holder.boot.id.as_str().into(),
            boot_private: holder.boot.private.into(),
            pid_ns: holder.pid_ns.cast_signed().into(),
            pid: holder.pid.into(),
            start_ticks: holder.start.ticks.cast_signed().into(),
            start_shifted: holder.start.shifted.into(),
            renewed_at: duty.renewed_at.0.into(),
            swept_at: time(duty.swept_at).into(),
        };
        let mut values = row.values();
        match before {
            None => self.compare_and_set(DutyRow::INSERT, &values),
            Some(before) => {
                values.extend(params![
                    before.holder.pid,
                    before.holder.start.ticks.cast_signed(),
                    before.renewed_at.0,
                ]);
                self.compare_and_set(REPLACE_DUTY, &values)
            }
        }
    }
}
