//! Views of jobs and deliveries.

use schemars::JsonSchema;
use serde::Serialize;
use tenure_core::id::worker_name;
use tenure_core::queue::delivery::Delivery;
use tenure_core::queue::{Job, JobAsk, JobEvent};
use tenure_core::time::Timestamp;

/// One job of the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JobView {
    pub id: String,
    pub agent: String,
    /// The role of the agent; null by default.
    pub role: Option<String>,
    pub item: String,
    /// The item whose conversation it continues: `item`, unless that is linked.
    pub root: String,
    /// The rule that asked for it; none if a command did.
    pub rule: Option<String>,
    /// `trusted` or `outside`.
    pub trust: String,
    pub repo: Option<String>,
    /// `queued`, `starting`, `begun`, `parked`, `ended` or `cancelled`.
    pub state: String,
    /// How many times it was taken.
    pub attempt: u32,
    /// How many times in a row it was taken without its agent starting.
    pub failures: u32,
    /// Why it did not start, the last time.
    pub failure: Option<String>,
    /// Its newest run.
    pub run: Option<String>,
    /// Whether its run is past its timeout and has lost its runner. The dispatcher ends it, or the next command that
    /// changes the queue.
    pub past_timeout: bool,
    /// The process of its runner, while it has one.
    pub pid: Option<u32>,
    pub parked: Option<ParkedView>,
    /// When it is tried again, after an attempt whose agent did not start.
    pub not_before: Option<Timestamp>,
    pub skill: Option<String>,
    pub created_at: Timestamp,
    pub taken_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// How its run ended; none if it was cancelled.
    pub outcome: Option<String>,
    pub why: Option<String>,
    /// Why the result of its run is not published and waits for a person: `tenure queue publish` publishes it.
    pub unpublished: Option<String>,
    /// The branch that its result was pushed to.
    pub published: Option<String>,
    /// The events that asked for it, oldest first.
    pub events: Vec<JobEventView>,
}

/// Why a job is parked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ParkedView {
    /// `limit`, `unusable`, `breaker`, `cap`, `budget` or `attempts`.
    pub reason: String,
    /// Until when; null if it waits for a person.
    pub until: Option<Timestamp>,
    pub why: String,
}

/// Why a job is in its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExplanationView {
    /// Whether it may be taken now.
    pub may_be_taken: bool,
    pub why: String,
    /// When that changes by itself.
    pub until: Option<Timestamp>,
}

/// An event that asks for a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JobEventView {
    pub at: Timestamp,
    pub summary: String,
    /// The number of the delivery that brought it.
    pub delivery: Option<i64>,
}

impl JobView {
    /// `claude`, or `claude as reviewer`.
    pub fn worker(&self) -> String {
        worker_name(&self.agent, self.role.as_deref())
    }

    pub(super) fn of(job: &Job, events: Vec<JobEvent>) -> Self {
        let end = job.end.as_ref();
        let skill = match &job.spec.ask {
            JobAsk::Skill { name, .. } => Some(name.clone()),
            JobAsk::Text(_) => None,
        };
        Self {
            id: job.id.to_string(),
            agent: job.agent.to_string(),
            role: job.role.label().map(str::to_owned),
            item: job.item.to_string(),
            root: job.root.to_string(),
            rule: job.rule.clone(),
            trust: job.trust.as_str().to_owned(),
            repo: job.repo.clone(),
            state: job.state.as_str().to_owned(),
            attempt: job.attempt,
            failures: job.failures,
            failure: job.failure.clone(),
            run: job.run.as_ref().map(ToString::to_string),
            past_timeout: false,
            pid: job.taken.as_ref().map(|taken| taken.by.pid),
            parked: job.parked.as_ref().map(|parked| ParkedView {
                reason: parked.reason.as_str().to_owned(),
                until: parked.until,
                why: parked.why.clone(),
            }),
            not_before: job.not_before,
            skill,
            created_at: job.created_at,
            taken_at: job.taken.as_ref().map(|taken| taken.at),
            ended_at: end.map(|end| end.at),
            outcome: end
                .and_then(|end| end.outcome)
                .map(|outcome| outcome.as_str().to_owned()),
            why: end.map(|end| end.why.clone()),
            unpublished: job.unpublished.clone(),
            published: job.published.clone(),
            events: events
                .into_iter()
                .map(|event| JobEventView {
                    at: event.at,
                    summary: event.summary,
                    delivery: event.delivery,
                })
                .collect(),
        }
    }
}

/// A delivery and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeliveryView {
    pub id: i64,
    pub endpoint: String,
    /// The forge's own id for it.
    pub delivery_id: Option<String>,
    pub received_at: Timestamp,
    /// What happened, such as `issue.opened`.
    pub event: String,
    pub repo: Option<String>,
    pub item: Option<String>,
    pub author: Option<String>,
    /// `queued`, `joined`, `acted`, `waits`, `ignored` or `refused`.
    pub verdict: String,
    pub rule: Option<String>,
    pub why: String,
    pub job: Option<String>,
}

impl From<Delivery> for DeliveryView {
    fn from(delivery: Delivery) -> Self {
        Self {
            id: delivery.id,
            endpoint: delivery.endpoint,
            delivery_id: delivery.delivery_id,
            received_at: delivery.received_at,
            event: delivery.event,
            repo: delivery.repo,
            item: delivery.item.map(|item| item.to_string()),
            author: delivery.author,
            verdict: delivery.verdict.as_str().to_owned(),
            rule: delivery.rule,
            why: delivery.why,
            job: delivery.job.map(|job| job.to_string()),
        }
    }
}
