//! Which session a process is, asked of the store; [`tenure_core::present`] decides.

use crate::context::{Ctx, Stop};
use tenure_core::agent::{self, AgentSpec};
use tenure_core::id::{AgentName, Life, NativeId};
use tenure_core::present::{Named, Present, those_of, which};
use tenure_core::process::{Ancestor, Process};
use tenure_core::session::Session;

/// The open sessions that a process is now.
pub fn sessions_of(ctx: &mut Ctx<'_>, process: &Process) -> Result<Vec<Session>, Stop> {
    Ok(those_of(ctx.tx.sessions_at(process.into())?, process))
}

/// The open session of an agent that speaks: by its process, or by its conversation alone where no process
/// was found.
pub fn speaking(
    ctx: &mut Ctx<'_>,
    agent: Option<&AgentName>,
    process: Option<&Process>,
    native_id: Option<&NativeId>,
) -> Result<Option<Session>, Stop> {
    let Some(process) = process else {
        return unverified(ctx, agent, native_id);
    };
    let here = sessions_of(ctx, process)?;
    Ok(which(here, Named::Conversation(native_id)).one())
}

/// Without a process the conversation alone says which session it is: the one that owns it, or else one that
/// visits it, if that has no process either.
pub fn unverified(
    ctx: &mut Ctx<'_>,
    agent: Option<&AgentName>,
    native_id: Option<&NativeId>,
) -> Result<Option<Session>, Stop> {
    let (Some(agent), Some(native_id)) = (agent, native_id) else {
        return Ok(None);
    };
    let Some(owner) = ctx.tx.native_owner(agent, native_id)? else {
        return Ok(None);
    };
    let visitors = ctx.tx.native_visitors(agent, native_id)?;
    for id in std::iter::once(owner).chain(visitors) {
        let session = ctx.session(id)?;
        if session.is_open() && session.process.is_none() {
            return Ok(Some(session));
        }
    }
    Ok(None)
}

/// What a process was before: sessions that ended in it or went on elsewhere, with the life that it was;
/// the newest first.
pub fn past_of(ctx: &mut Ctx<'_>, process: &Process) -> Result<Vec<(Session, Life)>, Stop> {
    let mut past = Vec::new();
    for (token, recorded) in ctx.tx.lives_at(process.into())? {
        if recorded.same_as(process) {
            let session = ctx.session(token.id)?;
            if session.life != token.life || !session.is_open() {
                past.push((session, token.life));
            }
        }
    }
    Ok(past)
}

/// What one process above a caller is.
pub enum Met {
    /// A session's, or the host of several.
    Sessions(Present),
    /// One that was a session's in this life.
    Past(Box<Session>, Life),
    /// An agent that is not registered: what runs inside it is not the agent's further up.
    Agent(&'static AgentSpec),
    Nobody,
}

/// Looks at one process above a caller.
pub fn met(ctx: &mut Ctx<'_>, ancestor: &Ancestor) -> Result<Met, Stop> {
    let here = sessions_of(ctx, &ancestor.process)?;
    let here = which(here, Named::Variables(ctx.facts));
    if here != Present::Nobody {
        return Ok(Met::Sessions(here));
    }
    let mut past = past_of(ctx, &ancestor.process)?;
    if !past.is_empty() {
        let (session, life) = past.swap_remove(0);
        return Ok(Met::Past(Box::new(session), life));
    }
    Ok(agent::recognise(&ancestor.looks).map_or(Met::Nobody, Met::Agent))
}
