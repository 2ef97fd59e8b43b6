//! Results that wait for a person: published, declined, or replaced by a newer one.
//!
//! The result of a newer run of the same conversation and item has what the older one has, so it takes its place. *Crash*
//! between the push and its record: the job still waits, and publishing it again changes nothing at the forge.

use tenure_core::dispatch::publish::ResultState;
use tenure_core::event::EventKind;
use tenure_core::queue::Job;
use tenure_core::queue::reply::{ForgeReply, ReplyKind};
use tenure_core::store::{Lock, TxMode};

use super::error::QueueError;
use super::view::JobView;
use crate::caller;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Reply, Service};

impl Service<'_> {
    /// The jobs that a person names to publish their results. Each must have one that waits.
    pub fn jobs_to_publish(&mut self, names: &[String]) -> Reply<Vec<Job>> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let is_agents = caller::is_agents(ctx)?;
            let mut jobs: Vec<Job> = Vec::new();
            for name in names {
                let job = ctx.find_job(name)?;
                if job.unpublished.is_none() {
                    return Err(nothing_waits(&job));
                }
                if is_agents {
                    let why = "only a person can publish its result".to_owned();
                    let (job, until) = (job.id, None);
                    return Err(Error::from(QueueError::NotYet { job, why, until }).into());
                }
                if !jobs.contains(&job) {
                    jobs.push(job);
                }
            }
            Ok(jobs)
        })
    }

    /// Records that the result of a job was pushed to this branch.
    pub fn result_published(&mut self, job: &Job, branch: &str) -> Reply<JobView> {
        self.transact(TxMode::Write, |ctx| {
            ctx.lock([Lock::Conversation(job.root.clone())])?;
            let now = ctx.job_of(&job.id)?;
            if now.unpublished.is_none() {
                // Someone else published it at the same time.
                return ctx.job_view(&now);
            }
            let how = format!("pushed to {branch}");
            let published = Some(branch.to_owned());
            let now = no_longer_waits(ctx, Job { published, ..now }, &how)?;
            ctx.job_view(&now)
        })
    }
}

fn nothing_waits(job: &Job) -> Stop {
    Error::from(QueueError::NothingWaits {
        job: job.id.clone(),
        run: job.run.clone(),
    })
    .into()
}

/// A person does not want the result of a job. It is kept as long as the log of its run.
pub(super) fn decline(ctx: &mut Ctx<'_>, job: &Job, why: &str) -> Result<Job, Stop> {
    no_longer_waits(ctx, job.clone(), &format!("declined ({why})"))
}

/// A run of a job ended with this result. Older ones that wait are replaced. The caller stores the job, and has locked
/// its conversation.
pub(super) fn replace(ctx: &mut Ctx<'_>, job: &mut Job, result: &ResultState) -> Result<(), Stop> {
    for older in ctx
        .tx
        .unpublished_jobs_of(&job.agent, &job.role, &job.root)?
    {
        if older.item == job.item && older.id != job.id {
            no_longer_waits(ctx, older, &format!("replaced by that of {}", job.id))?;
        }
    }
    (job.published, job.unpublished) = match result {
        ResultState::Published(branch) => (Some(branch.clone()), None),
        ResultState::Waits(why) => (None, Some(why.clone())),
    };
    Ok(())
}

/// The comment about the job is written again.
fn no_longer_waits(ctx: &mut Ctx<'_>, job: Job, how: &str) -> Result<Job, Stop> {
    let next = Job {
        unpublished: None,
        ..job
    };
    ctx.tx.update_job(&next)?;
    let evidence = format!("{}: its result was {how}", next.id);
    ctx.log_job(&next, EventKind::JobResult, evidence)?;
    if let Some(reply) = ctx.tx.reply_about(&next.id, ReplyKind::Status)?
        && reply.done_at.is_some()
    {
        ctx.tx.update_reply(&ForgeReply {
            done_at: None,
            ..reply
        })?;
    }
    Ok(Job {
        revision: next.revision + 1,
        ..next
    })
}
