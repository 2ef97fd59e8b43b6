//! Adding to the queue: a delivery with its jobs, or a job that a command asks for.

use std::time::Duration;

use tenure_core::event::EventKind;
use tenure_core::id::{AgentName, JobId, SessionId};
use tenure_core::key::Key;
use tenure_core::queue::breaker::Breaker;
use tenure_core::queue::delivery::{Delivery, Verdict, WaitingDelivery};
use tenure_core::queue::reply::NewReply;
use tenure_core::queue::step::Step;
use tenure_core::queue::{Job, JobEvent, JobSpec, JobState, ParkedFor, Trust};
use tenure_core::store::{Lock, Mode};
use tenure_core::time::Timestamp;

use super::error::QueueError;
use super::view::{DeliveryView, JobView};
use crate::caller;
use crate::context::{Ctx, Stop};
use crate::conversation::request::root_of;
use crate::error::Error;
use crate::transact::{Reply, Service};

/// A job to queue.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    /// The job's id, unless it joins another job.
    pub id: JobId,
    pub agent: AgentName,
    pub item: Key,
    pub rule: Option<String>,
    pub trust: Trust,
    pub repo: Option<String>,
    pub spec: JobSpec,
    /// The event in a few words, such as `issue.comment by alice`.
    pub summary: String,
    /// The event as JSON.
    pub data: String,
    /// What to write about it in a forge.
    pub reply: Option<NewReply>,
}

/// The result of queueing a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    pub job: JobView,
    /// Whether it joined a waiting job.
    pub joined: bool,
}

/// Whether a permitted person asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Person {
    Yes,
    No,
}

/// A delivery and the decision about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Accept {
    /// `id`, `job` and `received_at` are filled in when it is stored.
    pub delivery: Delivery,
    pub body: Vec<u8>,
    pub person: Person,
    /// The jobs that it asks for; several if a rule lets later rules match too.
    pub jobs: Vec<NewJob>,
}

/// The result of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    pub delivery: DeliveryView,
    /// Whether the same was delivered before. Then `delivery` is the earlier one, and nothing was
    /// stored.
    pub duplicate: bool,
    pub jobs: Vec<Queued>,
}

impl Service<'_> {
    /// Queues a job, or joins it to a waiting one of the same kind.
    pub fn enqueue(&mut self, new: &NewJob) -> Reply<Queued> {
        self.transact(Mode::Write, |ctx| {
            let by = caller::anybody(ctx)?.map(|caller| caller.session.id);
            lock(ctx, std::slice::from_ref(new))?;
            queue(ctx, new, by, None)
        })
    }

    /// Stores a delivery together with its jobs.
    pub fn accept(&mut self, request: &Accept) -> Reply<Accepted> {
        self.transact(Mode::Write, |ctx| accept(ctx, request, None))
    }

    /// Stores several deliveries in one transaction, in this order. If one of them fails, none is stored.
    pub fn accept_all(&mut self, requests: &[Accept]) -> Reply<Vec<Accepted>> {
        self.transact(Mode::Write, |ctx| {
            lock_all(ctx, requests)?;
            let accepted = requests.iter().map(|request| accept(ctx, request, None));
            accepted.collect()
        })
    }

    /// Stores a delivery that cannot be decided until its forge has answered a question.
    pub fn accept_later(&mut self, request: &Accept, event: &str) -> Reply<Accepted> {
        self.transact(Mode::Write, |ctx| accept(ctx, request, Some(event)))
    }

    /// Decides a delivery that waited. `request` carries its number.
    pub fn decide_waiting(&mut self, request: &Accept) -> Reply<Accepted> {
        self.transact(Mode::Write, |ctx| decide_waiting(ctx, request))
    }
}

fn lock(ctx: &mut Ctx<'_>, jobs: &[NewJob]) -> Result<(), Stop> {
    ctx.lock_with(|ctx| locks_of(ctx, jobs))
}

fn locks_of(ctx: &mut Ctx<'_>, jobs: &[NewJob]) -> Result<Vec<Lock>, Stop> {
    let mut locks = Vec::new();
    for new in jobs {
        locks.push(Lock::Conversation(root_of(ctx, &new.item)?));
        locks.push(Lock::Conversation(new.item.clone()));
    }
    Ok(locks)
}

/// Takes all locks that the deliveries need, at once and in order.
fn lock_all(ctx: &mut Ctx<'_>, requests: &[Accept]) -> Result<(), Stop> {
    ctx.lock_with(|ctx| {
        let mut locks = Vec::new();
        for request in requests {
            locks.extend(request.delivery.item.clone().map(Lock::Conversation));
            locks.append(&mut locks_of(ctx, &request.jobs)?);
        }
        Ok(locks)
    })
}

fn accept(ctx: &mut Ctx<'_>, request: &Accept, waits_with: Option<&str>) -> Result<Accepted, Stop> {
    lock(ctx, &request.jobs)?;
    if let Some(before) = ctx.tx.delivery_like(&request.delivery)? {
        return duplicate(ctx, before);
    }
    let mut delivery = decided(ctx, request)?;
    delivery.id = ctx.tx.insert_delivery(&delivery, &request.body)?;
    if let Some(event) = waits_with {
        ctx.tx.set_waiting_delivery(&WaitingDelivery {
            delivery: delivery.id,
            endpoint: delivery.endpoint.clone(),
            event: event.to_owned(),
            tries: 0,
            next_at: ctx.now.wall,
        })?;
    }
    queue_all(ctx, request, delivery)
}

/// The answer for a repeated delivery: the earlier one, which led to something.
fn duplicate(ctx: &mut Ctx<'_>, before: Delivery) -> Result<Accepted, Stop> {
    let mut jobs = Vec::new();
    if let Some(id) = &before.job {
        let job = ctx.job_of(id)?;
        let joined = before.verdict == Verdict::Joined;
        let job = ctx.job_view(&job)?;
        jobs.push(Queued { job, joined });
    }
    Ok(Accepted {
        delivery: before.into(),
        duplicate: true,
        jobs,
    })
}

fn decide_waiting(ctx: &mut Ctx<'_>, request: &Accept) -> Result<Accepted, Stop> {
    lock(ctx, &request.jobs)?;
    let id = request.delivery.id;
    ctx.tx.remove_waiting_delivery(id)?;
    let missing = || Error::from(QueueError::NoSuchDelivery { id });
    let stored = ctx.tx.delivery(id)?.ok_or_else(missing)?;
    if let Some(before) = ctx.tx.delivery_like(&stored)? {
        if before.id != id {
            let why = format!("the same as delivery {}", before.id);
            ctx.tx.update_delivery(&Delivery {
                verdict: Verdict::Ignored,
                why,
                ..stored
            })?;
        }
        return duplicate(ctx, before);
    }
    let delivery = Delivery {
        id,
        received_at: stored.received_at,
        ..decided(ctx, request)?
    };
    ctx.tx.update_delivery(&delivery)?;
    queue_all(ctx, request, delivery)
}

/// The delivery, with the id of the first job that it asks for.
fn decided(ctx: &mut Ctx<'_>, request: &Accept) -> Result<Delivery, Stop> {
    if request.person == Person::Yes
        && let Some(item) = &request.delivery.item
    {
        person_asked(ctx, item)?;
    }
    // A job's events name the delivery, and the delivery names its job, so the first job's id is
    // needed first.
    let first = match request.jobs.first() {
        Some(new) => Some(joins(ctx, new)?),
        None => None,
    };
    Ok(Delivery {
        received_at: ctx.now.wall,
        job: match (&first, request.jobs.first()) {
            (Some(Some(waiting)), _) => Some(waiting.id.clone()),
            (Some(None), Some(new)) => Some(new.id.clone()),
            _ => None,
        },
        verdict: match (&first, request.delivery.verdict) {
            (Some(Some(_)), Verdict::Queued) => Verdict::Joined,
            (_, verdict) => verdict,
        },
        ..request.delivery.clone()
    })
}

fn queue_all(ctx: &mut Ctx<'_>, request: &Accept, delivery: Delivery) -> Result<Accepted, Stop> {
    let mut jobs = Vec::new();
    for new in &request.jobs {
        jobs.push(queue(ctx, new, None, Some(delivery.id))?);
    }
    Ok(Accepted {
        delivery: delivery.into(),
        duplicate: false,
        jobs,
    })
}

/// A waiting job of the same conversation, rule and trust, if there is one.
fn joins(ctx: &mut Ctx<'_>, new: &NewJob) -> Result<Option<Job>, Stop> {
    let root = root_of(ctx, &new.item)?;
    // The newest one. An older one may have been returned after a failed start; events that arrived
    // since then belong to a later job.
    let open = ctx.tx.open_jobs_of(&new.agent, &root)?;
    // A command's own job has no rule to compare. It joins only a job with the same spec.
    let is_same = |job: &Job| {
        job.takes_events()
            && job.item == new.item
            && job.rule == new.rule
            && job.trust == new.trust
            && (new.rule.is_some() || job.spec == new.spec)
    };
    Ok(open.into_iter().rfind(is_same))
}

fn queue(
    ctx: &mut Ctx<'_>,
    new: &NewJob,
    by: Option<SessionId>,
    delivery: Option<i64>,
) -> Result<Queued, Stop> {
    let at = ctx.now.wall;
    let event = JobEvent {
        delivery,
        at,
        summary: new.summary.clone(),
        data: new.data.clone(),
    };
    let (job, joined) = match joins(ctx, new)? {
        Some(mut job) => {
            // The next run uses the rule as it is now.
            job.spec = new.spec.clone();
            ctx.tx.update_job(&job)?;
            job.revision += 1;
            (job, true)
        }
        None => (insert(ctx, new, by)?, false),
    };
    ctx.tx.add_job_event(&job.id, &event)?;
    let replies = new.reply.as_ref();
    for reply in replies.map_or_else(Vec::new, |new| new.replies(&job, !joined, at)) {
        ctx.tx.insert_reply(&reply)?;
    }
    let kind = if joined {
        EventKind::JobJoined
    } else {
        EventKind::JobQueued
    };
    let evidence = format!("{}: {}", job.id, new.summary);
    ctx.log_job(&job, kind, evidence)?;
    Ok(Queued {
        job: ctx.job_view(&job)?,
        joined,
    })
}

fn insert(ctx: &mut Ctx<'_>, new: &NewJob, by: Option<SessionId>) -> Result<Job, Stop> {
    let root = root_of(ctx, &new.item)?;
    let before = ctx.tx.open_jobs_of(&new.agent, &root)?;
    let job = Job {
        id: new.id.clone(),
        agent: new.agent.clone(),
        item: new.item.clone(),
        root,
        rule: new.rule.clone(),
        trust: new.trust,
        repo: new.repo.clone(),
        spec: new.spec.clone(),
        state: JobState::Queued,
        attempt: 0,
        failures: 0,
        failure: None,
        taken: None,
        run: None,
        parked: None,
        not_before: None,
        by,
        created_at: behind(ctx.now.wall, before.last()),
        end: None,
        revision: 1,
    };
    ctx.tx.insert_job(&job)?;
    Ok(job)
}

/// The creation time of a job: later than every job that waits in its conversation, even if both
/// arrive in the same millisecond or the clock was set back. Otherwise the later one would run
/// first.
fn behind(now: Timestamp, newest: Option<&Job>) -> Timestamp {
    let after = newest.map(|job| job.created_at.plus(Duration::from_millis(1)));
    after.map_or(now, |after| after.max(now))
}

/// A permitted person asked for something: the count of runs restarts, and jobs that waited for a
/// person are tried again.
pub(super) fn person_asked(ctx: &mut Ctx<'_>, item: &Key) -> Result<(), Stop> {
    ctx.lock([Lock::Conversation(item.clone())])?;
    let breaker = ctx.tx.breaker(item)?;
    let breaker = breaker.unwrap_or_else(|| Breaker::of(item.clone()));
    ctx.tx.set_breaker(&breaker.after_person(ctx.now.wall))?;
    for job in ctx.tx.open_jobs_for(item)? {
        let waits = |job: &Job| {
            let parked = job.parked.as_ref();
            parked.is_some_and(|parked| parked.reason == ParkedFor::Breaker)
        };
        if waits(&job) {
            ctx.lock([Lock::Conversation(job.root.clone())])?;
            ctx.job_step(&job, &Step::Retry, EventKind::JobQueued, "a person asked")?;
        }
    }
    Ok(())
}
