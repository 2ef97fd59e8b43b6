//! What a person wants to know in the morning: which dispatchers run, what arrives, what waits and why.

use std::collections::BTreeMap;

use serde::Serialize;
use tenure_core::dispatch::endpoint::RefusalCause;
use tenure_core::time::Timestamp;
use tenure_service::ListJobs;
use tenure_service::answer::Problem;
use tenure_service::view::{DeliveryView, JobView};

use tenure_app::dispatchers::{self, RunningDispatcher};
use tenure_app::open::Context;

/// One endpoint of a dispatcher, since that started.
#[derive(Debug, Clone, Serialize)]
pub struct EndpointView {
    /// The name of its forge.
    pub name: String,
    pub accepted: u64,
    pub accepted_at: Option<Timestamp>,
    /// How many deliveries were refused, by cause.
    pub refused: BTreeMap<RefusalCause, u64>,
    /// Why no work arrives; null while it may.
    pub refusing: Option<String>,
}

/// A forge that does not answer as it should.
#[derive(Debug, Clone, Serialize)]
pub struct FailingForge {
    pub name: String,
    pub why: String,
}

/// A dispatcher of this state directory.
#[derive(Debug, Clone, Serialize)]
pub struct DispatcherView {
    pub pid: u32,
    pub address: Option<String>,
    pub config: Option<String>,
    /// Why it is not known from here whether it is alive.
    pub doubt: Option<String>,
    pub endpoints: Vec<EndpointView>,
    pub failing_forges: Vec<FailingForge>,
}

/// How many jobs are in which state.
#[derive(Debug, Clone, Default, Serialize)]
pub struct QueueCounts {
    pub queued: usize,
    pub running: usize,
    pub parked: usize,
    /// Results that a person has to publish.
    pub unpublished: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct DispatchStatus {
    pub dispatchers: Vec<DispatcherView>,
    pub queue: QueueCounts,
    /// Jobs that are parked, or whose result waits for a person.
    pub waiting: Vec<JobView>,
    /// Deliveries that wait for an answer of their forge.
    pub deliveries: Vec<DeliveryView>,
    /// When the next job is tried that waits for a time.
    pub next_retry: Option<Timestamp>,
}

/// Reads the status of the dispatchers of this state directory, and of the queue.
pub fn status(context: &mut Context) -> Result<DispatchStatus, Problem> {
    let dispatchers = dispatchers::find(context).into_iter().map(view).collect();
    let jobs = context.service().list_jobs(&ListJobs::default())?;
    let deliveries = context.service().waiting_deliveries()?.value;
    let mut queue = QueueCounts::default();
    let mut waiting = Vec::new();
    let mut next_retry: Option<Timestamp> = None;
    for job in jobs.value.items {
        let retry = job.parked.as_ref().and_then(|parked| parked.until);
        let retry = retry.or(job.not_before);
        next_retry = [next_retry, retry].into_iter().flatten().min();
        match job.state.as_str() {
            "queued" => queue.queued += 1,
            "starting" | "begun" => queue.running += 1,
            "parked" => {
                queue.parked += 1;
                waiting.push(job);
            }
            _ => {
                queue.unpublished += 1;
                waiting.push(job);
            }
        }
    }
    Ok(DispatchStatus {
        dispatchers,
        queue,
        waiting,
        deliveries,
        next_retry,
    })
}

fn view(one: RunningDispatcher) -> DispatcherView {
    let endpoints = one.endpoints.into_iter();
    let endpoints = endpoints.map(|(name, state)| EndpointView {
        name,
        accepted: state.accepted,
        accepted_at: state.accepted_at,
        refusing: state.complaint(),
        refused: state.refused,
    });
    let failing = one.failing.into_iter();
    DispatcherView {
        pid: one.process.pid,
        address: one.address.map(|address| address.to_string()),
        config: one.config.map(|file| file.display().to_string()),
        doubt: one.doubt,
        endpoints: endpoints.collect(),
        failing_forges: failing
            .map(|(name, why)| FailingForge { name, why })
            .collect(),
    }
}
