//! Dropping the conversations of one item.

use tenure_core::conversation::{Conversation, WhyEnded};
use tenure_core::id::{AgentName, RunId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::process::Process;
use tenure_core::run::end::Stop as Cause;
use tenure_core::store::{Lock, TxMode};

use super::change;
use super::look::{LookDepth, shown};
use super::record::none;
use super::request::{self, author, state_of};
use super::run::{in_run, live_runs};
use super::view::ConversationView;
use crate::caller::{ActFor, Caller};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::live_run::{AskedBy, ask_to_stop};
use crate::transact::{Reply, Service};

/// Drops the conversations of an item: those of one agent, of one role, or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropRequest {
    pub item: Key,
    pub agent: Option<AgentName>,
    pub role: Option<WorkerRole>,
    /// Stop the runs in them first.
    pub stop: bool,
}

/// The outcome of a drop.
#[derive(Debug, Clone)]
pub enum Dropped {
    /// The conversations as they were before.
    Done(Vec<ConversationView>),
    /// These runs were asked to stop. Nothing is dropped yet.
    Stopping {
        runs: Vec<RunId>,
        /// Their processes. The drop can go on when the last one exits.
        processes: Vec<Process>,
    },
}

impl Service<'_> {
    /// Drops the conversations of this item, not of items linked to it.
    pub fn drop_conversations(
        &mut self,
        act_for: &ActFor,
        request: &DropRequest,
    ) -> Reply<Dropped> {
        self.transact(TxMode::Write, |ctx| {
            let by = request::writer(ctx, act_for)?;
            dropped(ctx, by.as_ref(), request)
        })
    }
}

fn dropped(ctx: &mut Ctx<'_>, by: Option<&Caller>, request: &DropRequest) -> Result<Dropped, Stop> {
    let item = &request.item;
    ctx.lock([Lock::Conversation(item.clone())])?;
    if let Some(link) = state_of(ctx, item)?.link {
        let (item, root) = (item.clone(), link.root);
        return Err(Error::Linked { item, root }.into());
    }
    let is_meant = |agent: &AgentName, role: &WorkerRole| {
        request.agent.as_ref().is_none_or(|named| named == agent)
            && request.role.as_ref().is_none_or(|named| named == role)
    };
    let mut records = ctx.tx.conversations_of(item)?;
    records.retain(|record| record.current.is_some() && is_meant(&record.agent, &record.role));
    let mut runs = live_runs(ctx, item)?;
    runs.retain(|run| is_meant(&run.agent, &run.role));
    if records.is_empty() && runs.is_empty() {
        return Err(none(item, request.agent.as_ref(), request.role.as_ref()).into());
    }
    if !request.stop
        && let Some(run) = runs.first()
    {
        return Err(in_run(run.clone(), true).into());
    }
    if runs.is_empty() {
        return drop_all(ctx, by, item, records).map(Dropped::Done);
    }
    let mut processes = Vec::new();
    for run in &runs {
        let asked_by = AskedBy {
            session: by.map(|caller| caller.actor.unwrap_or(caller.session.id)),
            reason: by.and_then(Caller::reason_text),
        };
        ask_to_stop(
            ctx,
            run,
            asked_by,
            Cause::Asked,
            "its conversation is dropped",
        )?;
        processes.extend(run.runner.clone());
        if let Some(token) = run.session {
            processes.extend(ctx.session(token.id)?.process);
        }
    }
    Ok(Dropped::Stopping {
        runs: runs.into_iter().map(|run| run.id).collect(),
        processes,
    })
}

fn drop_all(
    ctx: &mut Ctx<'_>,
    by: Option<&Caller>,
    item: &Key,
    records: Vec<Conversation>,
) -> Result<Vec<ConversationView>, Stop> {
    let mut views = Vec::with_capacity(records.len());
    for record in records {
        views.push(shown(ctx, &record, item, LookDepth::Record)?);
        change::end(ctx, by, record, WhyEnded::Dropped, author(by))?;
    }
    Ok(views)
}
