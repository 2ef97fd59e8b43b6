//! Which session a process belongs to, from the store; [`tenure_core::present`] decides.

use crate::context::{Ctx, Stop};
use tenure_core::agent::{self, AgentSpec};
use tenure_core::id::{AgentName, Life, NativeId, SessionToken};
use tenure_core::present::{Present, SessionSelector, is_run_by, those_of, which};
use tenure_core::process::{Ancestor, Process};
use tenure_core::session::Session;
use tenure_core::store::{ProcessPlace, StoreError};

/// The open sessions that a process belongs to now.
pub fn sessions_of(ctx: &mut Ctx<'_>, process: &Process) -> Result<Vec<Session>, Stop> {
    let here = ctx.tx.sessions_at_any(&[process.into()])?;
    Ok(those_of(here, process))
}

/// The open sessions whose conversations a daemon runs.
pub fn below(ctx: &mut Ctx<'_>, daemon: &Process) -> Result<Vec<Session>, Stop> {
    let here = ctx.tx.sessions_below_any(&[daemon.into()])?;
    Ok(those_of(here, daemon))
}

/// The open sessions of these processes, in one query.
pub fn open_at<'p>(
    ctx: &mut Ctx<'_>,
    processes: impl Iterator<Item = &'p Process>,
) -> Result<Vec<Session>, Stop> {
    let places: Vec<_> = processes.map(ProcessPlace::from).collect();
    Ok(ctx.tx.sessions_at_any(&places)?)
}

/// Whether a process belongs to one of these open sessions.
pub fn is_among(open: &[Session], process: &Process) -> bool {
    open.iter().any(|session| is_run_by(session, process))
}

/// The open session of an agent that sent an event: by its process, or by its conversation if no process was
/// found.
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
    Ok(which(here, SessionSelector::Conversation(native_id)).one())
}

/// The same for a daemon that sends events for its conversations; several if they share this one.
pub fn speaking_through(
    ctx: &mut Ctx<'_>,
    daemon: &Process,
    native_id: Option<&NativeId>,
) -> Result<Present, Stop> {
    let here = below(ctx, daemon)?;
    Ok(which(here, SessionSelector::Conversation(native_id)))
}

/// Without a process, the conversation alone identifies the session: its owner, or else a visitor
/// without a process.
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

/// What a process was before: sessions that ended in it or continued elsewhere, with the life it had; newest
/// first.
pub fn past_of(ctx: &mut Ctx<'_>, process: &Process) -> Result<Vec<(Session, Life)>, Stop> {
    let lives = ctx.tx.lives_at_any(&[process.into()])?;
    past_among(ctx, &lives, process)
}

fn past_among(
    ctx: &mut Ctx<'_>,
    lives: &[(SessionToken, Process)],
    process: &Process,
) -> Result<Vec<(Session, Life)>, Stop> {
    let mut past = Vec::new();
    for (token, _) in lives.iter().filter(|(_, life)| life.same_as(process)) {
        let session = ctx.session(token.id)?;
        if session.life != token.life || !session.is_open() {
            past.push((session, token.life));
        }
    }
    Ok(past)
}

/// What an ancestor of the caller is.
pub enum AncestorRole {
    /// A session's process, or the host of several.
    Sessions(Present),
    /// A previous process of a session, with the life it had.
    Past(Box<Session>, Life),
    /// An unregistered agent. What runs inside it does not belong to an agent further up.
    Agent(&'static AgentSpec),
}

/// The nearest ancestor that is a session or an agent, and how far up it is. A previous session counts if
/// `past_counts`.
pub fn nearest(
    ctx: &mut Ctx<'_>,
    above: &[Ancestor],
    past_counts: impl Fn(&Ancestor) -> bool,
) -> Result<Option<(usize, AncestorRole)>, Stop> {
    match nearest_at_once(ctx, above, &past_counts) {
        Err(Stop::Store(StoreError::Damaged { .. })) if above.len() > 1 => {}
        found => return found,
    }
    // An unreadable row matters only if no nearer ancestor decides.
    for (height, one) in above.iter().enumerate() {
        let found = nearest_at_once(ctx, std::slice::from_ref(one), &past_counts)?;
        if let Some((_, met)) = found {
            return Ok(Some((height, met)));
        }
    }
    Ok(None)
}

/// The same in two queries, however many processes there are.
fn nearest_at_once(
    ctx: &mut Ctx<'_>,
    above: &[Ancestor],
    past_counts: &dyn Fn(&Ancestor) -> bool,
) -> Result<Option<(usize, AncestorRole)>, Stop> {
    let places: Vec<_> = above.iter().map(|one| (&one.process).into()).collect();
    let mut open = ctx.tx.sessions_at_any(&places)?;
    for one in above {
        if agent::daemon_of(&one.looks).is_some() {
            let seen = |known: &Session| open.iter().any(|other| other.id == known.id);
            let mut below = ctx.tx.sessions_below_any(&[(&one.process).into()])?;
            below.retain(|session| !seen(session));
            open.append(&mut below);
        }
    }
    let mut chain = above.iter();
    let first = chain.position(|one| is_among(&open, &one.process));
    let before = first.unwrap_or(above.len());
    let lives = match before {
        0 => Vec::new(),
        // As announced: all of them in one question.
        _ => ctx.tx.lives_at_any(&places)?,
    };
    for (height, one) in above[..before].iter().enumerate() {
        let mut past = past_among(ctx, &lives, &one.process)?;
        let met = if past.is_empty() {
            agent::agent_of(&one.looks).map(AncestorRole::Agent)
        } else {
            let (session, life) = past.swap_remove(0);
            past_counts(one).then(|| AncestorRole::Past(Box::new(session), life))
        };
        if let Some(met) = met {
            return Ok(Some((height, met)));
        }
    }
    let Some(height) = first else {
        return Ok(None);
    };
    let here = those_of(open, &above[height].process);
    let mut here = which(here, SessionSelector::Variables(ctx.facts));
    if let Present::One(session) = &here
        && agent::daemon_of(&above[height].looks).is_some()
        && is_anothers(ctx, session)?
    {
        here = Present::Several(here.one().into_iter().collect());
    }
    Ok(Some((height, AncestorRole::Sessions(here))))
}

/// Whether a variable of the caller names a conversation that another session owns. A daemon's only session
/// need not be the one whose tool calls.
fn is_anothers(ctx: &mut Ctx<'_>, session: &Session) -> Result<bool, Stop> {
    let facts = ctx.facts;
    let token = facts.session_variable.as_deref();
    let token = token.and_then(|text| SessionToken::parse(text).ok());
    if token == Some(session.token()) {
        return Ok(false);
    }
    for variable in &facts.native_variables {
        let named = NativeId::parse(&variable.value);
        if let Ok(native_id) = named
            && variable.is_of(&session.agent)
            && session.native_id.as_ref() != Some(&native_id)
            && let Some(owner) = ctx.tx.native_owner(&session.agent, &native_id)?
            && owner != session.id
        {
            return Ok(true);
        }
    }
    Ok(false)
}
