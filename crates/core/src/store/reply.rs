//! What is to be written in a forge, who does it, and deliveries that wait for a forge's answer.

use super::StoreError;
use crate::id::JobId;
use crate::queue::duty::Duty;
use crate::queue::reply::{ForgeReply, ReplyKind};
use crate::time::Timestamp;

/// Rows of a transaction.
pub trait ReplyRows {
    /// Adds a reply. A second comment of the same kind about a job is a conflict.
    fn insert_reply(&mut self, reply: &ForgeReply) -> Result<i64, StoreError>;

    fn reply(&mut self, id: i64) -> Result<Option<ForgeReply>, StoreError>;

    /// The comment about a job.
    fn reply_about(
        &mut self,
        job: &JobId,
        kind: ReplyKind,
    ) -> Result<Option<ForgeReply>, StoreError>;

    /// What is left to write in a forge after this number, the oldest first, without comments about jobs that wait to
    /// be started.
    fn open_replies(
        &mut self,
        forge: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<ForgeReply>, StoreError>;

    /// Forgets replies that were done before this time, and those that were never done of jobs that ended before it,
    /// at most `limit` of each; returns how many.
    fn forget_replies(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// Replaces what changes about a reply: its comment, what was said, and how often it was tried.
    fn update_reply(&mut self, reply: &ForgeReply) -> Result<(), StoreError>;

    fn duty(&mut self, name: &str) -> Result<Option<Duty>, StoreError>;

    /// Replaces a duty; a conflict if it is not as `before` any more.
    fn set_duty(&mut self, before: Option<&Duty>, duty: &Duty) -> Result<(), StoreError>;
}
