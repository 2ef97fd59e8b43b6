//! Resetting an item: its conversations are dropped, and what waits for a run is kept.
//!
//! A conversation with a run in it is dropped in the transaction that records the run's end, before
//! the next job of that conversation can be taken.

use tenure_core::conversation::closing::was_reset;
use tenure_core::conversation::{Author, ItemState, WhyEnded};
use tenure_core::event::EventKind;
use tenure_core::id::{AgentName, RunId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::queue::reply::{ForgeReply, ReplyKind};
use tenure_core::queue::step::Step;
use tenure_core::queue::{Job, ParkedFor};
use tenure_core::run::Run;
use tenure_core::store::{JobFilter, Lock, TxMode};

use super::change;
use super::look::{LookDepth, shown};
use super::request::{items, state_of};
use super::run::live_runs;
use super::view::ConversationView;
use crate::context::{Ctx, Stop};
use crate::transact::{Reply, Service};

/// The effect of resetting an item.
#[derive(Debug, Clone)]
pub struct Reset {
    /// The dropped conversations, as they were before.
    pub dropped: Vec<ConversationView>,
    /// Runs whose conversation is dropped when they end.
    pub running: Vec<RunId>,
}

impl Service<'_> {
    /// Drops the conversations that an item continues, those with a live run when it ends. Jobs stay
    /// in the queue, for the new conversation. A comment in this forge confirms it when it has happened.
    pub fn reset_item(&mut self, item: &Key, forge: Option<&str>) -> Reply<Reset> {
        self.transact(TxMode::Write, |ctx| {
            let done = reset(ctx, item)?;
            if let Some(forge) = forge {
                confirm(ctx, item, forge, &done.running)?;
            }
            Ok(done)
        })
    }

    /// Whether the last conversation of an agent about an item was dropped, and none followed.
    pub fn was_dropped(&mut self, agent: &AgentName, role: &WorkerRole, item: &Key) -> Reply<bool> {
        self.transact(TxMode::Read, |ctx| {
            let root = state_of(ctx, item)?.root().clone();
            let past = ctx.tx.past_ids(agent, role, &root)?;
            let last = past.into_iter().max_by_key(|id| id.from);
            let end = last.and_then(|last| last.ended);
            Ok(end.is_some_and(|end| end.why == WhyEnded::Dropped))
        })
    }
}

/// Stores the confirmations of a reset: one for each run that it waits for, else one about the newest job.
fn confirm(ctx: &mut Ctx<'_>, item: &Key, forge: &str, running: &[RunId]) -> Result<(), Stop> {
    let mut jobs = Vec::new();
    for run in running {
        jobs.extend(ctx.tx.taken_job_of_run(run)?);
    }
    if jobs.is_empty() {
        let newest = JobFilter {
            item: Some(item.clone()),
            readable_only: true,
            limit: 1,
            ..JobFilter::default()
        };
        jobs = ctx.tx.list_jobs(&newest)?;
    }
    for job in jobs {
        match ctx.tx.reply_about(&job.id, ReplyKind::Reset)? {
            Some(before) => ctx.tx.update_reply(&ForgeReply {
                comment: None,
                said: None,
                done_at: None,
                ..before
            })?,
            None => {
                let wish = ForgeReply::new(ReplyKind::Reset, forge, item, &job.id, ctx.now.wall);
                ctx.tx.insert_reply(&wish)?;
            }
        }
    }
    Ok(())
}

fn reset(ctx: &mut Ctx<'_>, item: &Key) -> Result<Reset, Stop> {
    let root = state_of(ctx, item)?.root().clone();
    ctx.lock([
        Lock::Conversation(item.clone()),
        Lock::Conversation(root.clone()),
    ])?;
    let running = live_runs(ctx, &root)?;
    let mut dropped = Vec::new();
    for record in ctx.tx.conversations_of(&root)? {
        let mut running = running.iter();
        let in_use = running.any(|run| run.agent == record.agent && run.role == record.role);
        if in_use || record.current.is_none() {
            continue;
        }
        dropped.push(shown(ctx, &record, item, LookDepth::Record)?);
        change::end(ctx, None, record, WhyEnded::Dropped, Author::default())?;
    }
    if !running.is_empty() {
        let state = state_of(ctx, &root)?;
        ctx.tx.set_item_state(&ItemState {
            reset_at: Some(ctx.now.wall),
            ..state
        })?;
    }
    for state in items(ctx, &root)? {
        for waiting in ctx.tx.open_jobs_for(&state.item)? {
            let parked = waiting.parked.as_ref();
            if parked.is_some_and(|parked| parked.reason == ParkedFor::Unusable) {
                retry(ctx, &waiting)?;
            }
        }
    }
    Ok(Reset {
        dropped,
        running: running.into_iter().map(|run| run.id).collect(),
    })
}

/// A job that waited because its conversation could not be resumed gets a new one.
fn retry(ctx: &mut Ctx<'_>, job: &Job) -> Result<(), Stop> {
    ctx.lock([Lock::Conversation(job.root.clone())])?;
    let why = "its conversation was reset";
    ctx.job_step(job, &Step::Retry, EventKind::JobQueued, why)?;
    Ok(())
}

/// Drops the conversation of a run that ended, if it was reset during the run. A step of other use
/// cases.
pub(super) fn settle(ctx: &mut Ctx<'_>, run: &Run) -> Result<(), Stop> {
    if !was_reset(&state_of(ctx, &run.root)?, run.created_at) {
        return Ok(());
    }
    ctx.lock([Lock::Conversation(run.root.clone())])?;
    let record = ctx.tx.conversation(&run.agent, &run.role, &run.root)?;
    if let Some(record) = record.filter(|record| record.current.is_some()) {
        let author = Author {
            session: run.session.map(|token| token.id),
            run: Some(run.id.clone()),
        };
        change::end(ctx, None, record, WhyEnded::Dropped, author)?;
    }
    Ok(())
}
