//! Reading jobs and deliveries.

use tenure_core::id::{AgentName, JobId, RunId};
use tenure_core::key::Key;
use tenure_core::queue::choose::{Choice, Limits, choose};
use tenure_core::queue::delivery::Delivery;
use tenure_core::queue::identity::Identity;
use tenure_core::queue::{Job, JobState};
use tenure_core::store::{DeliveryFilter, JobFilter, TxMode};
use tenure_core::time::Timestamp;

use super::accept::like;
use super::error::{QueueError, state_text};
use super::take::whole_load;
use super::view::{DeliveryView, ExplanationView, JobView};
use crate::caller;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::list::{Listed, unless_damaged};
use crate::transact::{Reply, Service};

/// Which jobs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListJobs {
    pub item: Option<Key>,
    pub agent: Option<AgentName>,
    /// Include jobs that are over.
    pub all: bool,
    /// At most this many; zero means all.
    pub limit: usize,
}

/// Why a job is in its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    pub job: JobView,
    pub explanation: ExplanationView,
}

impl Service<'_> {
    pub fn list_jobs(&mut self, request: &ListJobs) -> Reply<Listed<JobView>> {
        self.jobs_behind(request, None)
    }

    /// The same from this job on, which was created then and is left out.
    pub fn jobs_behind(
        &mut self,
        request: &ListJobs,
        behind: Option<&(Timestamp, JobId)>,
    ) -> Reply<Listed<JobView>> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let filter = JobFilter {
                item: request.item.clone(),
                agent: request.agent.clone(),
                open: !request.all,
                unpublished: true,
                readable_only: true,
                behind: behind.cloned(),
                limit: request.limit,
            };
            let items = readable_views(ctx, &filter)?;
            Listed::of(items, filter.limit, || ctx.tx.count_jobs(&filter))
        })
    }

    pub fn show_job(&mut self, name: &str) -> Reply<JobView> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let job = ctx.find_job(name)?;
            ctx.observed_job_view(&job)
        })
    }

    /// Whether a job may be taken within these limits, and if not, why.
    pub fn explain_job(&mut self, name: &str, limits: &Limits) -> Reply<Explained> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let job = ctx.find_job(name)?;
            explain(ctx, &job, limits)
        })
    }

    pub fn list_deliveries(&mut self, filter: &DeliveryFilter) -> Reply<Vec<DeliveryView>> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let found = ctx.tx.list_deliveries(filter)?;
            Ok(found.into_iter().map(DeliveryView::from).collect())
        })
    }

    /// Records of earlier deliveries, used to decide a new one.
    pub fn find_deliveries(&mut self, filter: &DeliveryFilter) -> Reply<Vec<Delivery>> {
        self.transact(TxMode::Read, |ctx| Ok(ctx.tx.list_deliveries(filter)?))
    }

    /// Whether the same was delivered before and led to something.
    pub fn is_known_delivery(&mut self, delivery: &Delivery) -> Reply<bool> {
        self.transact(TxMode::Read, |ctx| Ok(like(ctx, delivery)?.is_some()))
    }

    /// The earlier delivery of the same event that led to something.
    pub fn earlier_delivery(&mut self, delivery: &Delivery) -> Reply<Option<DeliveryView>> {
        self.transact(TxMode::Read, |ctx| {
            Ok(like(ctx, delivery)?.map(DeliveryView::from))
        })
    }

    /// What is known of the repository of this name.
    pub fn repository_identity(&mut self, name: &str) -> Reply<Option<Identity>> {
        self.transact(TxMode::Read, |ctx| Ok(ctx.tx.identity(name)?))
    }

    /// The job that a run is for.
    pub fn job_of_run(&mut self, run: &RunId) -> Reply<Option<JobView>> {
        self.transact(TxMode::Read, |ctx| match ctx.tx.taken_job_of_run(run)? {
            Some(job) => ctx.job_view(&job).map(Some),
            None => Ok(None),
        })
    }

    /// A delivery with its body, if that is still stored.
    pub fn delivery(&mut self, id: i64) -> Reply<(DeliveryView, Option<Vec<u8>>)> {
        self.transact(TxMode::Read, |ctx| {
            let missing = || Error::from(QueueError::NoSuchDelivery { id });
            let found = ctx.tx.delivery(id)?.ok_or_else(missing)?;
            Ok((found.into(), ctx.tx.delivery_body(id)?))
        })
    }

    /// Forgets deliveries that are older than this, the oldest bodies beyond this many bytes, what was written in
    /// forges before this time, and jobs that ended before it and that none of those names any more. Undecided
    /// deliveries and their bodies stay.
    pub fn forget_deliveries(&mut self, before: Timestamp, most_bytes: u64) -> Reply<usize> {
        self.transact(TxMode::Write, |ctx| {
            let replies = ctx.tx.forget_replies(before, FORGOTTEN)?;
            let deliveries = ctx.tx.forget_deliveries(before, most_bytes, FORGOTTEN)?;
            // A reply that is left is found by its job.
            let jobs = if replies == 0 {
                ctx.tx.forget_jobs(before, FORGOTTEN)?
            } else {
                0
            };
            Ok(replies + deliveries + jobs)
        })
    }
}

/// How many deliveries, replies and jobs one transaction deletes.
const FORGOTTEN: usize = 500;
const MAX_CANDIDATES: usize = 5;

/// The first jobs of which all can be read, as many as the filter wants.
fn readable_views(ctx: &mut Ctx<'_>, filter: &JobFilter) -> Result<Vec<JobView>, Stop> {
    let (mut items, mut rest) = (Vec::new(), filter.clone());
    loop {
        let jobs = ctx.tx.list_jobs(&rest)?;
        let is_last = rest.limit == 0 || jobs.len() < rest.limit;
        rest.behind = jobs.last().map(|job| (job.created_at, job.id.clone()));
        for job in jobs {
            let view = ctx.observed_job_view(&job);
            items.extend(unless_damaged(ctx, job.id.as_str(), view)?);
        }
        if is_last || items.len() >= filter.limit {
            return Ok(items);
        }
        // Behind those whose events cannot be read there may be others.
        rest.limit = filter.limit - items.len();
    }
}

fn explain(ctx: &mut Ctx<'_>, job: &Job, limits: &Limits) -> Result<Explained, Stop> {
    let others = ctx.tx.open_jobs_of(&job.agent, &job.role, &job.root)?;
    let before = others.iter().find(|other| {
        other.id != job.id && {
            (other.created_at, other.id.as_str()) < (job.created_at, job.id.as_str())
                || other.taken.is_some()
        }
    });
    let load = whole_load(ctx, job)?;
    let (may_be_taken, why, until) = match (before, choose(job, &load, limits, ctx.now.wall)) {
        (Some(first), _) if job.takes_events() => {
            let state = state_text(first.state);
            let why = format!(
                "job {} of the same conversation is {state} and comes first",
                first.id
            );
            (false, why, None)
        }
        (_, Choice::Take) => (true, "it may be taken now".to_owned(), None),
        (_, Choice::Wait { why, until }) => (false, why, until),
        (_, Choice::Park(parked)) => (false, parked.why, parked.until),
    };
    let why = match &job.end {
        Some(end) if job.state == JobState::Cancelled => format!("it was cancelled ({})", end.why),
        Some(end) => format!("it has ended ({})", end.why),
        None => why,
    };
    Ok(Explained {
        job: ctx.job_view(job)?,
        explanation: ExplanationView {
            may_be_taken,
            why,
            until,
        },
    })
}

impl Ctx<'_> {
    pub(super) fn job_view(&mut self, job: &Job) -> Result<JobView, Stop> {
        let events = self.tx.job_events(&job.id)?;
        Ok(JobView::of(job, events))
    }

    /// The same, with what the processes of its run show.
    fn observed_job_view(&mut self, job: &Job) -> Result<JobView, Stop> {
        let mut view = self.job_view(job)?;
        if let (JobState::Begun, Some(run)) = (job.state, &job.run)
            && let Some(run) = self.tx.run_by_id(run)?
        {
            view.past_timeout = self.run_view(&run)?.past_timeout;
        }
        Ok(view)
    }

    /// A job by its id or a prefix of it.
    pub(super) fn find_job(&mut self, name: &str) -> Result<Job, Stop> {
        if let Ok(id) = JobId::parse(name)
            && let Some(job) = self.tx.job(&id)?
        {
            return Ok(job);
        }
        let name = name.to_owned();
        if name.is_empty() {
            return Err(Error::from(QueueError::NoSuchJob { name }).into());
        }
        let fits = self.tx.match_jobs(&name, MAX_CANDIDATES)?;
        match fits.as_slice() {
            [] => Err(Error::from(QueueError::NoSuchJob { name }).into()),
            [one] => self.job_of(one),
            several => {
                let candidates = several.iter().map(ToString::to_string).collect();
                Err(Error::from(QueueError::SeveralJobs { name, candidates }).into())
            }
        }
    }
}
