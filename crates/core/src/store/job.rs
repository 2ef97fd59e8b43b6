//! The queue: jobs, their events, deliveries, the count of runs without a person, and the ids of repositories.

use std::collections::BTreeSet;

use super::StoreError;
use crate::id::{AgentName, HostId, JobId, RunId, WorkerRole};
use crate::key::Key;
use crate::queue::breaker::Breaker;
use crate::queue::delivery::Delivery;
use crate::queue::identity::Identity;
use crate::queue::{Job, JobEvent};
use crate::time::Timestamp;

/// Which jobs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Only those of exactly this item.
    pub item: Option<Key>,
    pub agent: Option<AgentName>,
    /// Only those that are neither ended nor cancelled.
    pub open: bool,
    /// With `open`, also those whose result waits for a person.
    pub unpublished: bool,
    /// Leave out rows that cannot be read; [`super::Tx::take_damage`] names them. Only for lists that are shown.
    pub readable_only: bool,
    /// Only those behind this one in the list, which was created then.
    pub behind: Option<(Timestamp, JobId)>,
    /// At most this many; zero means all. The oldest first if only open ones are listed, else the newest.
    pub limit: usize,
}

/// Which waiting jobs to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingFilter {
    /// Only those that may be taken at this time.
    pub now: Timestamp,
    /// Leave out those whose conversation is on another host, unless they start a new one.
    pub host: HostId,
    /// Leave out those of these repositories.
    pub without_repos: BTreeSet<String>,
    /// At most this many; zero means all.
    pub limit: usize,
}

/// Which deliveries to list, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub item: Option<Key>,
    /// Only those that are older than this one.
    pub before: Option<i64>,
    pub limit: usize,
}

/// Rows of a transaction.
///
/// Lists of jobs that a decision needs leave out rows that cannot be read, so that one of them does not stop all
/// others; [`super::Tx::take_damage`] names them.
pub trait JobRows {
    fn job(&mut self, id: &JobId) -> Result<Option<Job>, StoreError>;

    /// Ids of jobs that begin with a part, with or without `j-`, the newest first.
    fn match_jobs(&mut self, part: &str, limit: usize) -> Result<Vec<JobId>, StoreError>;

    fn list_jobs(&mut self, filter: &JobFilter) -> Result<Vec<Job>, StoreError>;

    /// How many a filter fits, whatever its limit.
    fn count_jobs(&mut self, filter: &JobFilter) -> Result<usize, StoreError>;

    /// The open jobs of a conversation, the oldest first.
    fn open_jobs_of(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        root: &Key,
    ) -> Result<Vec<Job>, StoreError>;

    /// The jobs of a conversation whose result waits for a person, the oldest first.
    fn unpublished_jobs_of(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        root: &Key,
    ) -> Result<Vec<Job>, StoreError>;

    /// The open jobs of an item, whatever the agent and its role, the oldest first.
    fn open_jobs_for(&mut self, item: &Key) -> Result<Vec<Job>, StoreError>;

    /// The jobs that are starting or begun.
    fn taken_jobs(&mut self) -> Result<Vec<Job>, StoreError>;

    /// The job that is starting or begun with this run.
    fn taken_job_of_run(&mut self, run: &RunId) -> Result<Option<Job>, StoreError>;

    /// The oldest waiting job of each conversation that none of its jobs has been taken of, the oldest first.
    fn waiting_jobs(&mut self, filter: &WaitingFilter) -> Result<Vec<Job>, StoreError>;

    /// When the next job may be taken that has to wait until then.
    fn next_job_at(&mut self, now: Timestamp) -> Result<Option<Timestamp>, StoreError>;

    /// Adds a job. A second one of a conversation that is starting or begun is a conflict.
    fn insert_job(&mut self, job: &Job) -> Result<(), StoreError>;

    /// Replaces a job if its revision is still the one given, and raises the revision. Agent, role, item, rule, trust
    /// and when it was created are never changed.
    fn update_job(&mut self, job: &Job) -> Result<(), StoreError>;

    /// Forgets jobs that ended before this, with their events, unless a delivery or a comment still names them; at
    /// most `limit`. Returns how many.
    fn forget_jobs(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;

    fn job_events(&mut self, id: &JobId) -> Result<Vec<JobEvent>, StoreError>;

    fn add_job_event(&mut self, id: &JobId, event: &JobEvent) -> Result<(), StoreError>;

    /// When runs of an item began since then, the oldest first.
    fn runs_begun_since(
        &mut self,
        item: &Key,
        since: Timestamp,
    ) -> Result<Vec<Timestamp>, StoreError>;

    /// What runs of an item that began since then cost, and when the first of them began.
    fn cost_since(
        &mut self,
        item: &Key,
        since: Timestamp,
    ) -> Result<(f64, Option<Timestamp>), StoreError>;

    fn breaker(&mut self, item: &Key) -> Result<Option<Breaker>, StoreError>;

    fn set_breaker(&mut self, breaker: &Breaker) -> Result<(), StoreError>;

    /// What is known of the repository of this name.
    fn identity(&mut self, name: &str) -> Result<Option<Identity>, StoreError>;

    fn set_identity(&mut self, identity: &Identity) -> Result<(), StoreError>;
}

/// Rows of a transaction.
pub trait DeliveryRows {
    /// Adds a delivery with its body and returns its number. A second one that leads to something, with the same
    /// id at the same endpoint, or with the same content, is a conflict.
    fn insert_delivery(&mut self, delivery: &Delivery, body: &[u8]) -> Result<i64, StoreError>;

    /// Replaces what was decided about a delivery: its verdict, rule, reason and job.
    fn update_delivery(&mut self, delivery: &Delivery) -> Result<(), StoreError>;

    fn delivery(&mut self, id: i64) -> Result<Option<Delivery>, StoreError>;

    /// The delivery of the same that led to something: by its id at its endpoint, by its content, or by its body if
    /// that came within the days before `received_at`.
    fn delivery_like(&mut self, delivery: &Delivery) -> Result<Option<Delivery>, StoreError>;

    /// The body of a delivery, while it is kept.
    fn delivery_body(&mut self, id: i64) -> Result<Option<Vec<u8>>, StoreError>;

    fn list_deliveries(&mut self, filter: &DeliveryFilter) -> Result<Vec<Delivery>, StoreError>;

    /// Forgets the oldest bodies until at most this many bytes are kept, and deliveries that are older than
    /// this, at most `limit` of each; returns how many. Undecided ones stay: their senders were told that they
    /// are accepted.
    fn forget_deliveries(
        &mut self,
        before: Timestamp,
        most_bytes: u64,
        limit: usize,
    ) -> Result<usize, StoreError>;
}
