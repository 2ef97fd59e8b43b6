//! The record of a conversation and the newest entry of its history.

use tenure_core::conversation::{Author, Conversation, IdEnd, WhyEnded};
use tenure_core::hint::Hint;
use tenure_core::id::{AgentName, WorkerRole, worker_name};
use tenure_core::key::Key;

use crate::context::{Ctx, Stop};
use crate::error::Error;

/// The record of a root's conversation, or an empty one.
pub(super) fn record(
    ctx: &mut Ctx<'_>,
    agent: &AgentName,
    role: &WorkerRole,
    root: &Key,
) -> Result<Conversation, Stop> {
    let found = ctx.tx.conversation(agent, role, root)?;
    Ok(found.unwrap_or_else(|| Conversation::none(agent.clone(), role.clone(), root.clone())))
}

/// Writes a record and returns it as stored.
#[allow(clippy::needless_pass_by_value)] // the record before is of no use afterwards
pub(super) fn keep(ctx: &mut Ctx<'_>, record: Conversation) -> Result<Conversation, Stop> {
    let written = Conversation {
        revision: record.revision + 1,
        ..record.clone()
    };
    match record.revision {
        0 => ctx.tx.insert_conversation(&written)?,
        _ => ctx.tx.update_conversation(&record)?,
    }
    Ok(written)
}

/// Ends the open entry in a record's history.
pub(super) fn end_past(
    ctx: &mut Ctx<'_>,
    record: &Conversation,
    why: WhyEnded,
    by: Author,
) -> Result<(), Stop> {
    let at = ctx.now.wall;
    let end = IdEnd { at, why, by };
    let Conversation {
        agent, role, item, ..
    } = record;
    Ok(ctx.tx.end_past_id(agent, role, item, &end)?)
}

/// The error if an item has no conversation.
pub(super) fn none(item: &Key, agent: Option<&AgentName>, role: Option<&WorkerRole>) -> Error {
    let role = role.and_then(WorkerRole::label);
    let what = match (agent, role) {
        (Some(agent), role) => {
            let worker = worker_name(agent.as_str(), role);
            format!("{worker} has no conversation for {item}")
        }
        (None, Some(role)) => format!("there is no conversation of role {role} for {item}"),
        (None, None) => format!("there is no conversation for {item}"),
    };
    Error::NotFound {
        what,
        hint: Hint::run("conversation", ["list"], "to see all of them"),
    }
}
