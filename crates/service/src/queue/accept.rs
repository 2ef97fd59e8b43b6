//! Adding to the queue: the jobs of a delivery when it is decided, or a job that a command asks for.

use std::time::Duration;

use tenure_core::event::EventKind;
use tenure_core::forge::EventKind as ForgeEventKind;
use tenure_core::id::{AgentName, JobId, SessionId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::queue::breaker::Person;
use tenure_core::queue::delivery::{Delivery, Verdict};
use tenure_core::queue::identity::{Identity, SeenRepository};
use tenure_core::queue::reply::NewReply;
use tenure_core::queue::step::{Step, apply};
use tenure_core::queue::{Job, JobEvent, JobSpec, JobState, ParkedFor, Trust};
use tenure_core::run::Run;
use tenure_core::store::{DeliveryFilter, JobFilter, Lock, RunFilter, TxMode};
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
    pub role: WorkerRole,
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

/// The decision about a stored delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct Accept {
    /// With its number. `job` and `received_at` are filled in.
    pub delivery: Delivery,
    pub person: Person,
    /// What its event says about the repository, if that is one of the settings.
    pub repository: Option<SeenRepository>,
    /// The jobs that it asks for; several if a rule lets later rules match too. If it is refused, the first of them is
    /// stored as cancelled, so that its author is told why.
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
        self.transact(TxMode::Write, |ctx| {
            let by = caller::identify(ctx)?.map(|caller| caller.session.id);
            lock(ctx, std::slice::from_ref(new))?;
            let slot = slot_of(ctx, new, Person::No)?;
            queue(ctx, new, slot, by, None)
        })
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
pub(super) fn lock_all<'a>(
    ctx: &mut Ctx<'_>,
    requests: impl Iterator<Item = &'a Accept>,
) -> Result<(), Stop> {
    ctx.lock_with(|ctx| {
        let mut locks = Vec::new();
        for request in requests {
            locks.extend(request.delivery.item.clone().map(Lock::Conversation));
            locks.append(&mut locks_of(ctx, &request.jobs)?);
        }
        Ok(locks)
    })
}

/// The answer for a repeated delivery: the earlier one, which led to something.
pub(super) fn duplicate(ctx: &mut Ctx<'_>, before: Delivery) -> Result<Accepted, Stop> {
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

/// The delivery of the same that led to something.
///
/// Forges stamp in whole seconds, so an item that is closed, reopened and closed again at once is closed twice with the
/// same body. The second time counts if the opposite came in between.
pub(super) fn like(ctx: &mut Ctx<'_>, delivery: &Delivery) -> Result<Option<Delivery>, Stop> {
    let delivery = Delivery {
        received_at: ctx.now.wall,
        ..delivery.clone()
    };
    let Some(before) = ctx.tx.delivery_like(&delivery)? else {
        return Ok(None);
    };
    let is_same_id = before.delivery_id.is_some() && before.delivery_id == delivery.delivery_id;
    let is_fresh = before.received_at.age_at(ctx.now.wall) < SAME_SECOND;
    let (Some(item), false, true) = (&delivery.item, is_same_id, is_fresh) else {
        return Ok(Some(before));
    };
    let filter = DeliveryFilter {
        item: Some(item.clone()),
        limit: NEWEST,
        ..DeliveryFilter::default()
    };
    let newer = ctx.tx.list_deliveries(&filter)?.into_iter();
    let mut newer = newer.filter(|one| one.id > before.id);
    let is_undone = newer.any(|one| {
        one.verdict.is_final() && ForgeEventKind::are_opposite(&one.event, &delivery.event)
    });
    Ok((!is_undone).then_some(before))
}

/// How far apart two events may arrive that happened within a second.
const SAME_SECOND: Duration = Duration::from_secs(60);
/// How many deliveries of an item are searched for its state, and runs for one that was on.
const NEWEST: usize = 50;

/// Decides a stored delivery that has no outcome yet.
pub(super) fn decide_stored(ctx: &mut Ctx<'_>, request: &Accept) -> Result<Accepted, Stop> {
    let id = request.delivery.id;
    let missing = || Error::from(QueueError::NoSuchDelivery { id });
    let stored = ctx.tx.delivery(id)?.ok_or_else(missing)?;
    let as_decided = Delivery {
        item: request.delivery.item.clone(),
        ..stored.clone()
    };
    if let Some(before) = like(ctx, &as_decided)? {
        if before.id != id {
            let why = format!("the same as delivery {}", before.id);
            ctx.tx.update_delivery(&Delivery {
                verdict: Verdict::Ignored,
                why,
                item: request.delivery.item.clone(),
                ..stored
            })?;
        }
        return duplicate(ctx, before);
    }
    if let Some(seen) = &request.repository {
        saw_repository(ctx, seen)?;
    }
    if let (Verdict::Refused, Some(new)) = (request.delivery.verdict, request.jobs.first()) {
        return refuse(ctx, request, new, &stored);
    }
    let (decided, first, person) = decided(ctx, request, stored.received_at)?;
    let delivery = Delivery {
        id,
        received_at: stored.received_at,
        ..decided
    };
    ctx.tx.update_delivery(&delivery)?;
    queue_all(ctx, (request, person), delivery, first)
}

/// Stores a job that is not permitted, with the reply that says so.
fn refuse(
    ctx: &mut Ctx<'_>,
    request: &Accept,
    new: &NewJob,
    stored: &Delivery,
) -> Result<Accepted, Stop> {
    let (at, why) = (ctx.now.wall, request.delivery.why.clone());
    let root = root_of(ctx, &new.item)?;
    let queued = insert(ctx, new, root, None, None)?;
    let job = Job {
        failure: Some(why.clone()),
        ..queued
    };
    let step = Step::Cancel { why: why.clone() };
    let job = ctx.job_step(&job, &step, EventKind::JobCancelled, &why)?;
    let event = JobEvent {
        delivery: Some(stored.id),
        at,
        summary: new.summary.clone(),
        data: new.data.clone(),
    };
    ctx.tx.add_job_event(&job.id, &event)?;
    // Without eyes: it was not accepted.
    let told = new.reply.as_ref().map(|reply| NewReply {
        eyes: false,
        ..reply.clone()
    });
    for reply in told.map_or_else(Vec::new, |told| told.replies(&job, &new.item, true, at)) {
        ctx.tx.insert_reply(&reply)?;
    }
    let delivery = Delivery {
        id: stored.id,
        received_at: stored.received_at,
        job: Some(job.id.clone()),
        ..request.delivery.clone()
    };
    ctx.tx.update_delivery(&delivery)?;
    Ok(Accepted {
        delivery: delivery.into(),
        duplicate: false,
        jobs: vec![Queued {
            job: ctx.job_view(&job)?,
            joined: false,
        }],
    })
}

/// Remembers what an event says about its repository.
fn saw_repository(ctx: &mut Ctx<'_>, seen: &SeenRepository) -> Result<(), Stop> {
    let Some(key) = Identity::key(&seen.name) else {
        return Ok(());
    };
    let known = ctx.tx.identity(&seen.name)?;
    let now = known.clone().unwrap_or_else(|| Identity::of(&seen.name));
    let now = now.after(seen);
    if known.as_ref() != Some(&now) {
        ctx.lock([Lock::Conversation(key)])?;
        ctx.tx.set_identity(&now)?;
    }
    Ok(())
}

/// The delivery with the id of the first job that it asks for, and where that job goes.
fn decided(
    ctx: &mut Ctx<'_>,
    request: &Accept,
    received_at: Timestamp,
) -> Result<(Delivery, Option<Slot>, Person), Stop> {
    let person = match &request.delivery.item {
        Some(item) if is_word(ctx, item, request.person, received_at)? => Person::Yes,
        _ => Person::No,
    };
    if person == Person::Yes
        && let Some(item) = &request.delivery.item
    {
        person_asked(ctx, item)?;
    }
    // A job's events name the delivery, and the delivery names its job, so the first job's id is
    // needed first.
    let first = match request.jobs.first() {
        Some(new) => Some((slot_of(ctx, new, person)?, new)),
        None => None,
    };
    let joined = first.as_ref().and_then(|(slot, _)| slot.joins.as_ref());
    let id = joined
        .map(|job| &job.id)
        .or_else(|| first.as_ref().map(|(_, new)| &new.id));
    let delivery = Delivery {
        received_at: ctx.now.wall,
        job: id.cloned(),
        verdict: match (joined, request.delivery.verdict) {
            (Some(_), Verdict::Queued) => Verdict::Joined,
            (_, verdict) => verdict,
        },
        ..request.delivery.clone()
    };
    Ok((delivery, first.map(|(slot, _)| slot), person))
}

/// Whether an event about an item is a person's word. What counts is when it arrived: it may be decided much later.
fn is_word(
    ctx: &mut Ctx<'_>,
    item: &Key,
    person: Person,
    received_at: Timestamp,
) -> Result<bool, Stop> {
    if person != Person::Account {
        return Ok(person == Person::Yes);
    }
    let mut filter = RunFilter {
        item: Some(item.clone()),
        readable_only: true,
        limit: NEWEST,
        ..RunFilter::default()
    };
    let mut runs = ctx.tx.list_runs(&filter)?;
    // A live one may be older than all of these.
    filter.open = true;
    runs.append(&mut ctx.tx.list_runs(&filter)?);
    let before = |run: &&Run| run.created_at <= received_at;
    let mut is_running = false;
    let mut ended_at = None;
    for run in runs.iter().filter(before) {
        match run.end.as_ref().map(|end| end.at) {
            Some(at) if at <= received_at => ended_at = ended_at.max(Some(at)),
            _ => is_running = true,
        }
    }
    Ok(person.is_word(is_running, ended_at, received_at))
}

fn queue_all(
    ctx: &mut Ctx<'_>,
    (request, person): (&Accept, Person),
    delivery: Delivery,
    first: Option<Slot>,
) -> Result<Accepted, Stop> {
    let mut first = first;
    let mut jobs = Vec::new();
    for new in &request.jobs {
        let slot = match first.take() {
            Some(slot) => slot,
            None => slot_of(ctx, new, person)?,
        };
        jobs.push(queue(ctx, new, slot, None, Some(delivery.id))?);
    }
    Ok(Accepted {
        delivery: delivery.into(),
        duplicate: false,
        jobs,
    })
}

/// Where a new job goes.
struct Slot {
    root: Key,
    /// A waiting job of the same conversation, rule and trust, if there is one.
    joins: Option<Job>,
    /// When the newest open job of the conversation was created.
    newest_at: Option<Timestamp>,
}

fn slot_of(ctx: &mut Ctx<'_>, new: &NewJob, person: Person) -> Result<Slot, Stop> {
    let slot = find_slot(ctx, new)?;
    let other = slot.joins.as_ref().map(|job| job.item.clone());
    match other.filter(|item| person == Person::Yes && *item != new.item) {
        // The person asked for the job, so its own item's runs are counted anew as well.
        Some(item) => {
            person_asked(ctx, &item)?;
            find_slot(ctx, new)
        }
        None => Ok(slot),
    }
}

fn find_slot(ctx: &mut Ctx<'_>, new: &NewJob) -> Result<Slot, Stop> {
    let root = root_of(ctx, &new.item)?;
    let open = ctx.tx.open_jobs_of(&new.agent, &new.role, &root)?;
    let newest_at = open.last().map(|job| job.created_at);
    // A command's own job has no rule to compare. It joins only a job of the same item with the same spec. A job runs
    // in the directory of its repository, which the items of a conversation need not share.
    let is_same = |job: &Job| {
        job.takes_events()
            && job.rule == new.rule
            && job.trust == new.trust
            && job.repo == new.repo
            && (new.rule.is_some() || job.item == new.item && job.spec == new.spec)
    };
    // The newest one. An older one may have been returned after a failed start; events that arrived
    // since then belong to a later job.
    let joins = open.into_iter().rfind(is_same);
    Ok(Slot {
        root,
        joins,
        newest_at,
    })
}

fn queue(
    ctx: &mut Ctx<'_>,
    new: &NewJob,
    slot: Slot,
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
    let (job, joined) = match slot.joins {
        Some(mut job) => {
            job = apply(&job, &Step::Wake, at).unwrap_or(job);
            job.spec = joined_spec(&job, new);
            ctx.tx.update_job(&job)?;
            job.revision += 1;
            (job, true)
        }
        None => (insert(ctx, new, slot.root, slot.newest_at, by)?, false),
    };
    wake_others(ctx, &job)?;
    ctx.tx.add_job_event(&job.id, &event)?;
    let replies = new.reply.as_ref();
    for reply in replies.map_or_else(Vec::new, |reply| {
        reply.replies(&job, &new.item, !joined, at)
    }) {
        ctx.tx.insert_reply(&reply)?;
    }
    let kind = if joined {
        EventKind::JobJoined
    } else {
        EventKind::JobQueued
    };
    let evidence = format!("{}: {}", job.id, new.summary);
    ctx.log_job(&job, kind, evidence)?;
    let job = if joined {
        ctx.job_view(&job)?
    } else {
        // It has no other event.
        JobView::of(&job, vec![event])
    };
    Ok(Queued { job, joined })
}

/// What was put off in the conversation of a job comes before it, so it is tried again at once, too.
fn wake_others(ctx: &mut Ctx<'_>, new: &Job) -> Result<(), Stop> {
    for job in ctx.tx.open_jobs_of(&new.agent, &new.role, &new.root)? {
        if job.id != new.id
            && job.not_before.is_some()
            && let Ok(woken) = apply(&job, &Step::Wake, ctx.now.wall)
        {
            ctx.tx.update_job(&woken)?;
        }
    }
    Ok(())
}

/// What a job runs after an event joined it: the rule as it is now. The commit that was permitted stays that of the
/// job's own item.
fn joined_spec(job: &Job, new: &NewJob) -> JobSpec {
    let mut spec = new.spec.clone();
    if job.item != new.item {
        spec.code.head.clone_from(&job.spec.code.head);
    }
    spec
}

fn insert(
    ctx: &mut Ctx<'_>,
    new: &NewJob,
    root: Key,
    newest_at: Option<Timestamp>,
    by: Option<SessionId>,
) -> Result<Job, Stop> {
    let job = Job {
        id: new.id.clone(),
        agent: new.agent.clone(),
        role: new.role.clone(),
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
        created_at: behind(ctx.now.wall, newest_at),
        end: None,
        unpublished: None,
        published: None,
        revision: 1,
    };
    ctx.tx.insert_job(&job)?;
    Ok(job)
}

/// The creation time of a job: later than every job that waits in its conversation, even if both
/// arrive in the same millisecond or the clock was set back. Otherwise the later one would run
/// first.
fn behind(now: Timestamp, newest: Option<Timestamp>) -> Timestamp {
    let after = newest.map(|at| at.plus(Duration::from_millis(1)));
    after.map_or(now, |after| after.max(now))
}

/// A permitted person asked for something: the count of runs restarts, and jobs that waited for a
/// person are tried again.
pub(super) fn person_asked(ctx: &mut Ctx<'_>, item: &Key) -> Result<(), Stop> {
    ctx.lock([Lock::Conversation(item.clone())])?;
    // Without a count no run has begun yet, so no job waits because of it.
    let Some(breaker) = ctx.tx.breaker(item)? else {
        return Ok(());
    };
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

/// A person says that a repository is the right one: its jobs that waited for that are tried again.
pub(super) fn believe(ctx: &mut Ctx<'_>, job: &Job) -> Result<(), Stop> {
    let Some(name) = &job.repo else {
        return Ok(());
    };
    if let (Some(known), Some(key)) = (ctx.tx.identity(name)?, Identity::key(name)) {
        ctx.lock([Lock::Conversation(key)])?;
        ctx.tx.set_identity(&known.believed())?;
    }
    let open = JobFilter {
        open: true,
        readable_only: true,
        ..JobFilter::default()
    };
    let mut jobs = ctx.tx.list_jobs(&open)?;
    jobs.retain(|other| {
        let parked = other.parked.as_ref();
        other.repo == job.repo
            && parked.is_some_and(|parked| parked.reason == ParkedFor::Repository)
    });
    ctx.lock(jobs.iter().map(|job| Lock::Conversation(job.root.clone())))?;
    for job in &jobs {
        let why = "a person says that it is the right repository";
        ctx.job_step(job, &Step::Retry, EventKind::JobQueued, why)?;
    }
    Ok(())
}
