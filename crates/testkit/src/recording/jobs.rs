//! The queue: every call is passed on; calls that write first declare which locks they need.
//!
//! A job belongs to its conversation: to change one, lock the conversation first.

use tenure_core::id::{AgentName, JobId, RunId};
use tenure_core::key::Key;
use tenure_core::queue::breaker::Breaker;
use tenure_core::queue::delivery::Delivery;
use tenure_core::queue::{Job, JobEvent, JobState};
use tenure_core::store::{
    DeliveryFilter, DeliveryRows, JobFilter, JobRows, Lock, StoreError, WaitingFilter,
};
use tenure_core::time::Timestamp;

use super::RecordingTx;

impl JobRows for RecordingTx<'_> {
    fn job(&mut self, id: &JobId) -> Result<Option<Job>, StoreError> {
        self.tx.job(id)
    }

    fn match_jobs(&mut self, part: &str, limit: usize) -> Result<Vec<JobId>, StoreError> {
        self.tx.match_jobs(part, limit)
    }

    fn list_jobs(&mut self, filter: &JobFilter) -> Result<Vec<Job>, StoreError> {
        self.tx.list_jobs(filter)
    }

    fn count_jobs(&mut self, filter: &JobFilter) -> Result<usize, StoreError> {
        self.tx.count_jobs(filter)
    }

    fn open_jobs_of(&mut self, agent: &AgentName, root: &Key) -> Result<Vec<Job>, StoreError> {
        self.tx.open_jobs_of(agent, root)
    }

    fn open_jobs_for(&mut self, item: &Key) -> Result<Vec<Job>, StoreError> {
        self.tx.open_jobs_for(item)
    }

    fn taken_jobs(&mut self) -> Result<Vec<Job>, StoreError> {
        self.tx.taken_jobs()
    }

    fn taken_job_of_run(&mut self, run: &RunId) -> Result<Option<Job>, StoreError> {
        self.tx.taken_job_of_run(run)
    }

    fn waiting_jobs(&mut self, filter: &WaitingFilter) -> Result<Vec<Job>, StoreError> {
        self.tx.waiting_jobs(filter)
    }

    fn next_job_at(&mut self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        self.tx.next_job_at(now)
    }

    fn insert_job(&mut self, job: &Job) -> Result<(), StoreError> {
        self.needs("insert_job", [Lock::Conversation(job.root.clone())]);
        self.tx.insert_job(job)
    }

    fn update_job(&mut self, job: &Job) -> Result<(), StoreError> {
        self.needs("update_job", [Lock::Conversation(job.root.clone())]);
        let is_taken = |job: &Job| matches!(job.state, JobState::Starting | JobState::Begun);
        let before = self.tx.job(&job.id)?;
        if is_taken(job) && !before.as_ref().is_some_and(is_taken) {
            self.needs("update_job, which takes it,", [Lock::Queue]);
        }
        self.tx.update_job(job)
    }

    fn forget_jobs(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.writes("forget_jobs");
        self.tx.forget_jobs(before, limit)
    }

    fn job_events(&mut self, id: &JobId) -> Result<Vec<JobEvent>, StoreError> {
        self.tx.job_events(id)
    }

    fn add_job_event(&mut self, id: &JobId, event: &JobEvent) -> Result<(), StoreError> {
        self.writes("add_job_event");
        self.tx.add_job_event(id, event)
    }

    fn runs_begun_since(
        &mut self,
        item: &Key,
        since: Timestamp,
    ) -> Result<Vec<Timestamp>, StoreError> {
        self.tx.runs_begun_since(item, since)
    }

    fn cost_since(
        &mut self,
        item: &Key,
        since: Timestamp,
    ) -> Result<(f64, Option<Timestamp>), StoreError> {
        self.tx.cost_since(item, since)
    }

    fn breaker(&mut self, item: &Key) -> Result<Option<Breaker>, StoreError> {
        self.tx.breaker(item)
    }

    fn set_breaker(&mut self, breaker: &Breaker) -> Result<(), StoreError> {
        self.needs("set_breaker", [Lock::Conversation(breaker.item.clone())]);
        self.tx.set_breaker(breaker)
    }
}

impl DeliveryRows for RecordingTx<'_> {
    fn insert_delivery(&mut self, delivery: &Delivery, body: &[u8]) -> Result<i64, StoreError> {
        self.writes("insert_delivery");
        self.tx.insert_delivery(delivery, body)
    }

    fn update_delivery(&mut self, delivery: &Delivery) -> Result<(), StoreError> {
        self.writes("update_delivery");
        self.tx.update_delivery(delivery)
    }

    fn delivery(&mut self, id: i64) -> Result<Option<Delivery>, StoreError> {
        self.tx.delivery(id)
    }

    fn delivery_like(&mut self, delivery: &Delivery) -> Result<Option<Delivery>, StoreError> {
        self.tx.delivery_like(delivery)
    }

    fn delivery_body(&mut self, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        self.tx.delivery_body(id)
    }

    fn list_deliveries(&mut self, filter: &DeliveryFilter) -> Result<Vec<Delivery>, StoreError> {
        self.tx.list_deliveries(filter)
    }

    fn forget_deliveries(
        &mut self,
        before: Timestamp,
        most_bytes: u64,
        limit: usize,
    ) -> Result<usize, StoreError> {
        self.writes("forget_deliveries");
        self.tx.forget_deliveries(before, most_bytes, limit)
    }
}
