//! Replies: every call is passed on; calls that write declare that first.

use tenure_core::id::JobId;
use tenure_core::queue::delivery::WaitingDelivery;
use tenure_core::queue::duty::Duty;
use tenure_core::queue::reply::{Reply, ReplyKind};
use tenure_core::store::{ReplyRows, StoreError};
use tenure_core::time::Timestamp;

use super::RecordingTx;

impl ReplyRows for RecordingTx<'_> {
    fn insert_reply(&mut self, reply: &Reply) -> Result<i64, StoreError> {
        self.writes("insert_reply");
        self.tx.insert_reply(reply)
    }

    fn reply(&mut self, id: i64) -> Result<Option<Reply>, StoreError> {
        self.tx.reply(id)
    }

    fn reply_about(&mut self, job: &JobId, kind: ReplyKind) -> Result<Option<Reply>, StoreError> {
        self.tx.reply_about(job, kind)
    }

    fn open_replies(
        &mut self,
        forge: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<Reply>, StoreError> {
        self.tx.open_replies(forge, after, limit)
    }

    fn forget_replies(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.tx.forget_replies(before, limit)
    }

    fn update_reply(&mut self, reply: &Reply) -> Result<(), StoreError> {
        self.writes("update_reply");
        self.tx.update_reply(reply)
    }

    fn duty(&mut self, name: &str) -> Result<Option<Duty>, StoreError> {
        self.tx.duty(name)
    }

    fn set_duty(&mut self, before: Option<&Duty>, duty: &Duty) -> Result<(), StoreError> {
        self.writes("set_duty");
        self.tx.set_duty(before, duty)
    }

    fn set_waiting_delivery(&mut self, waiting: &WaitingDelivery) -> Result<(), StoreError> {
        self.writes("set_waiting_delivery");
        self.tx.set_waiting_delivery(waiting)
    }

    fn waiting_deliveries(
        &mut self,
        endpoint: &str,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<WaitingDelivery>, StoreError> {
        self.tx.waiting_deliveries(endpoint, now, limit)
    }

    fn remove_waiting_delivery(&mut self, delivery: i64) -> Result<(), StoreError> {
        self.writes("remove_waiting_delivery");
        self.tx.remove_waiting_delivery(delivery)
    }
}
