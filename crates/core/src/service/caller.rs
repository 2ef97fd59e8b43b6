//! Who is calling: found by what the kernel says, never by a guess.
//!
//! The order is the design's: the flag, the processes above the caller, and only where those cannot be
//! seen (a sandbox) or are none (a detached helper) a variable. The first process above the caller that is
//! a session's decides. An agent that is not registered ends the search: what runs inside it must not be
//! taken for the agent further up.

use std::cell::Cell;

use super::context::{Ctx, Stop};
use crate::agent;
use crate::error::{Error, NobodyWhy};
use crate::id::{AgentName, NativeId, SessionId, SessionToken};
use crate::liveness::Liveness;
use crate::process::{Ancestor, CallerFacts};
use crate::session::{Activity, Session};

/// How many sessions are named where a name fits several.
const MOST_CANDIDATES: usize = 8;

/// How a caller names the session that it acts for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Naming {
    /// `--session`.
    pub session: Option<String>,
    /// `--reason`.
    pub reason: Option<String>,
}

/// What decided who the caller is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolvedBy {
    /// `--session`.
    Flag,
    /// A process above the caller is the session's.
    Ancestry,
    /// A variable names a session whose processes the caller cannot see.
    Namespace,
    /// TENURE_SESSION, with neither an agent above nor a terminal.
    Variable,
}

impl ResolvedBy {
    /// The word for it in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            ResolvedBy::Flag => "flag",
            ResolvedBy::Ancestry => "ancestry",
            ResolvedBy::Namespace => "namespace",
            ResolvedBy::Variable => "variable",
        }
    }
}

/// A session that calls, or for which somebody calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Caller {
    /// The session.
    pub session: Session,
    /// What decided.
    pub by: ResolvedBy,
    /// On what evidence.
    pub evidence: String,
    /// Variables that say otherwise.
    pub disagreements: Vec<String>,
    /// Whether it cannot see the others' processes.
    pub blind: bool,
    /// The session that really calls, where it acts for another.
    pub actor: Option<SessionId>,
    /// The reason that it gave.
    pub reason: Option<String>,
}

impl Caller {
    /// Whether the call comes from the session's own process tree and so renews its lease.
    fn renews(&self) -> bool {
        match self.by {
            ResolvedBy::Ancestry | ResolvedBy::Namespace => true,
            // Nothing but its own calls can keep a session alive whose process nobody knows.
            ResolvedBy::Variable => self.session.process.is_none(),
            ResolvedBy::Flag => false,
        }
    }
}

/// What a look at the caller itself came to.
enum Found {
    Session(Box<Caller>),
    Nobody(NobodyWhy),
    Refused(Error),
}

/// Who is calling, for a use case that acts: it is told its notices and the lease is renewed.
pub fn acting(ctx: &mut Ctx<'_>, naming: &Naming) -> Result<Caller, Stop> {
    let mut caller = resolve(ctx, naming, true)?;
    if caller.by == ResolvedBy::Flag && caller.actor != Some(caller.session.id) {
        caller.session = ctx.bury_if_dead(caller.session)?;
    }
    if !caller.session.is_open() {
        return Err(not_live(&caller.session).into());
    }
    arrive(ctx, caller)
}

/// Who is calling, for a use case that only looks. A named session needs no reason then.
pub fn looking(ctx: &mut Ctx<'_>, naming: &Naming) -> Result<Caller, Stop> {
    let caller = resolve(ctx, naming, false)?;
    arrive(ctx, caller)
}

/// The caller's handle, without telling it anything.
pub fn peek(ctx: &mut Ctx<'_>, naming: &Naming) -> Result<String, Stop> {
    let caller = resolve(ctx, naming, false)?;
    Ok(caller.session.handle.to_string())
}

/// Tells a session what waits for it, if the call comes from its own processes.
pub fn tell_if_own(ctx: &mut Ctx<'_>, id: SessionId) -> Result<(), Stop> {
    match natural(ctx)? {
        Found::Session(caller) if caller.session.id == id => ctx.tell(id),
        Found::Session(_) | Found::Nobody(_) | Found::Refused(_) => Ok(()),
    }
}

/// Who is calling, if anybody; for use cases that serve everyone.
pub fn anybody(ctx: &mut Ctx<'_>) -> Result<Option<Caller>, Stop> {
    match natural(ctx)? {
        Found::Session(caller) => arrive(ctx, *caller).map(Some),
        Found::Nobody(_) | Found::Refused(_) => Ok(None),
    }
}

fn not_live(session: &Session) -> Error {
    let state = match &session.closed {
        Some(closed) => format!("is {}: {}", closed.by.past(), closed.why),
        None => "is not live".into(),
    };
    Error::NotLive {
        handle: session.handle.to_string(),
        state,
    }
}

/// What every call of a session does: tell it what it must be told, and renew its lease.
fn arrive(ctx: &mut Ctx<'_>, mut caller: Caller) -> Result<Caller, Stop> {
    if matches!(caller.by, ResolvedBy::Ancestry | ResolvedBy::Namespace) {
        ctx.own = Some(caller.session.id);
    }
    let calls_itself = caller.by != ResolvedBy::Flag || caller.actor == Some(caller.session.id);
    if calls_itself {
        ctx.tell(caller.session.id)?;
    }
    if caller.renews() && caller.session.is_open() {
        renew_if_due(ctx, &mut caller.session)?;
    }
    if caller.by == ResolvedBy::Ancestry && caller.session.is_open() {
        resolve_doubts(ctx, caller.session.id)?;
    }
    Ok(caller)
}

/// Renews the lease when the last heartbeat is old enough, never shortening it.
fn renew_if_due(ctx: &mut Ctx<'_>, session: &mut Session) -> Result<(), Stop> {
    if !is_due(ctx, session) {
        return Ok(());
    }
    ctx.write_beat()?;
    renew(ctx, session)
}

/// Whether the last heartbeat is old enough for another.
pub fn is_due(ctx: &Ctx<'_>, session: &Session) -> bool {
    use crate::time::Remaining;
    let every = ctx.policy.beat_every();
    let fresh = match session.lease.remaining(&ctx.now) {
        Remaining::Open(left) => left + every >= ctx.policy.lease,
        Remaining::Over(_) | Remaining::CannotTell => false,
    };
    let lately = session.seen_at.age_at(ctx.now.wall) < every && session.seen_at <= ctx.now.wall;
    !(fresh && lately)
}

/// Renews the lease now.
pub fn renew(ctx: &mut Ctx<'_>, session: &mut Session) -> Result<(), Stop> {
    renew_doing(ctx, session, None)
}

/// Renews the lease now, and records what the session does if that is given.
pub fn renew_doing(
    ctx: &mut Ctx<'_>,
    session: &mut Session,
    activity: Option<Activity>,
) -> Result<(), Stop> {
    let lease = session
        .lease
        .clone()
        .or_later(ctx.now.after(ctx.policy.lease));
    if ctx
        .tx
        .touch_session(session.token(), ctx.now.wall, &lease, activity)?
    {
        session.seen_at = ctx.now.wall;
        session.lease = lease;
        session.activity = activity.or(session.activity);
    }
    Ok(())
}

/// A call from outside the sandbox records the deaths that it can prove among the holders that refused
/// the same session inside it.
pub fn resolve_doubts(ctx: &mut Ctx<'_>, asker: SessionId) -> Result<(), Stop> {
    if !ctx.tx.has_doubts(asker)? {
        return Ok(());
    }
    ctx.write()?;
    for token in ctx.tx.take_doubts(asker)? {
        let holder = ctx.session(token.id)?;
        if holder.life == token.life {
            ctx.bury_if_dead(holder)?;
        }
    }
    Ok(())
}

fn resolve(ctx: &mut Ctx<'_>, naming: &Naming, acts: bool) -> Result<Caller, Stop> {
    let Some(name) = &naming.session else {
        return match natural(ctx)? {
            Found::Session(caller) => Ok(Caller {
                reason: naming.reason.clone(),
                ..*caller
            }),
            Found::Nobody(why) => {
                let store = ctx.location.clone();
                Err(Error::Nobody { why, store }.into())
            }
            Found::Refused(error) => Err(error.into()),
        };
    };
    let session = find(ctx, name)?;
    let really = match natural(ctx)? {
        Found::Session(caller) => Some(caller.session),
        Found::Nobody(_) | Found::Refused(_) => None,
    };
    let entitled = match &really {
        Some(me) => me.id == session.id || descends_from(ctx, &session, me.token())?,
        None => false,
    };
    if acts && !entitled && naming.reason.is_none() {
        let handle = session.handle.to_string();
        return Err(Error::ReasonNeeded { handle }.into());
    }
    Ok(Caller {
        evidence: format!("--session {name}"),
        session,
        by: ResolvedBy::Flag,
        disagreements: Vec::new(),
        blind: false,
        actor: really.map(|me| me.id),
        reason: naming.reason.clone(),
    })
}

/// Finds a session by handle, id, token or any unique part of handle or id.
pub fn find(ctx: &mut Ctx<'_>, name: &str) -> Result<Session, Stop> {
    if name.trim().is_empty() {
        return Err(Error::Usage {
            what: "a session's name is empty".into(),
            hint: "tenure ps shows their handles".into(),
        }
        .into());
    }
    if let Some(session) = ctx.tx.session_by_handle(name)? {
        return Ok(session);
    }
    let id = SessionToken::parse(name).map(|token| token.id);
    if let Ok(id) = id.or_else(|_| SessionId::parse(name)) {
        let no_such = || Error::NoSuchSession {
            name: name.to_owned(),
        };
        return ctx.tx.session(id)?.ok_or_else(|| no_such().into());
    }
    let mut fitting = ctx.tx.match_sessions(name, MOST_CANDIDATES + 1)?;
    let several = match fitting.len() > MOST_CANDIDATES {
        true => format!("more than {MOST_CANDIDATES}"),
        false => "several".to_owned(),
    };
    match fitting.len() {
        0 => Err(Error::NoSuchSession {
            name: name.to_owned(),
        }
        .into()),
        1 => {
            let (id, _) = fitting.remove(0);
            ctx.session(id)
        }
        _ => Err(Error::Ambiguous {
            what: format!("{name:?} is part of {several} sessions' names"),
            candidates: fitting
                .into_iter()
                .take(MOST_CANDIDATES)
                .map(|(_, handle)| handle.to_string())
                .collect(),
        }
        .into()),
    }
}

/// Whether `session` was registered, directly or through others, inside `ancestor` in that life.
pub fn descends_from(
    ctx: &mut Ctx<'_>,
    session: &Session,
    ancestor: SessionToken,
) -> Result<bool, Stop> {
    let mut parent = session.parent;
    for _ in 0..64 {
        let Some(token) = parent else {
            return Ok(false);
        };
        if token == ancestor {
            return Ok(true);
        }
        let above = ctx.session(token.id)?;
        if above.life != token.life {
            return Ok(false);
        }
        parent = above.parent;
    }
    Ok(false)
}

/// What the kernel and the environment say about the caller.
fn natural(ctx: &mut Ctx<'_>) -> Result<Found, Stop> {
    let facts = ctx.facts;
    let met_agent = Cell::new(None);
    for (height, ancestor) in facts.chain.iter().enumerate() {
        if let Some(found) = sessions_of(ctx, ancestor, height)? {
            return Ok(found);
        }
        if let Some(spec) = agent::recognise(&ancestor.looks) {
            met_agent.set(Some((spec.name, ancestor.process.pid)));
            break;
        }
    }
    if let Some((agent, pid)) = met_agent.get() {
        let agent = agent.to_owned();
        return Ok(Found::Nobody(NobodyWhy::UnregisteredAgent { agent, pid }));
    }
    if let Some(found) = by_namespace(ctx, facts)? {
        return Ok(found);
    }
    by_variable(ctx, facts)
}

/// What one process above the caller settles: it is a session's, was one's, or is nobody's (`None`).
fn sessions_of(
    ctx: &mut Ctx<'_>,
    ancestor: &Ancestor,
    height: usize,
) -> Result<Option<Found>, Stop> {
    let process = &ancestor.process;
    let mut current = Vec::new();
    let mut past = None;
    for (token, recorded) in ctx.tx.lives_at(process.into())? {
        if !recorded.same_as(process) {
            continue;
        }
        let session = ctx.session(token.id)?;
        match (session.life == token.life, session.is_open()) {
            (true, true) => current.push(session),
            (true, false) => {
                past.get_or_insert(Found::Nobody(NobodyWhy::EndedHere {
                    handle: session.handle.to_string(),
                }));
            }
            (false, _) => {
                past.get_or_insert(Found::Refused(Error::Superseded {
                    handle: session.handle.to_string(),
                    life: token.life.0,
                }));
            }
        }
    }
    let evidence = || match height {
        0 => format!("this process (pid {})", process.pid),
        1 => format!("pid {}, the parent of this process", process.pid),
        n => format!("pid {}, {n} processes above this one", process.pid),
    };
    Ok(match current.len() {
        0 => past,
        1 => Some(found_by(
            ctx.facts,
            current.remove(0),
            ResolvedBy::Ancestry,
            evidence(),
        )),
        _ => Some(pick_hosted(ctx.facts, &current, &evidence())),
    })
}

/// Several conversations share the process: a variable may pick among exactly those.
fn pick_hosted(facts: &CallerFacts, sessions: &[Session], evidence: &str) -> Found {
    if let Some(session) = picked(facts, sessions) {
        let evidence = format!("{evidence}, and a variable that picks one of its conversations");
        return found_by(facts, session.clone(), ResolvedBy::Ancestry, evidence);
    }
    Found::Refused(Error::Ambiguous {
        what: "this process speaks for several sessions".into(),
        candidates: sessions.iter().map(|s| s.handle.to_string()).collect(),
    })
}

/// The one of these sessions of one process that a variable names.
pub fn picked<'a>(facts: &CallerFacts, sessions: &'a [Session]) -> Option<&'a Session> {
    let token = facts
        .session_variable
        .as_deref()
        .and_then(|v| SessionToken::parse(v).ok());
    let named = |session: &&Session| {
        let by_token = token.is_some_and(|token| token == session.token());
        let by_native = facts.native_variables.iter().any(|variable| {
            variable.agent == session.agent.as_str()
                && session
                    .native_id
                    .as_ref()
                    .is_some_and(|id| id.as_str() == variable.value)
        });
        by_token || (token.is_none() && by_native)
    };
    let mut fitting = sessions.iter().filter(named);
    let only = fitting.next()?;
    fitting.next().is_none().then_some(only)
}

/// A variable that names a session in another pid namespace: an agent's sandbox hides its ancestors.
fn by_namespace(ctx: &mut Ctx<'_>, facts: &CallerFacts) -> Result<Option<Found>, Stop> {
    let elsewhere = |session: &Session| {
        let process = session.process.as_ref();
        session.is_open() && process.is_some_and(|p| p.pid_ns != facts.observer.pid_ns)
    };
    if let Some(token) = facts
        .session_variable
        .as_deref()
        .and_then(|v| SessionToken::parse(v).ok())
        && let Some(session) = ctx.tx.session(token.id)?
        && session.life == token.life
        && elsewhere(&session)
    {
        let evidence = "TENURE_SESSION, from another pid namespace".to_owned();
        return Ok(Some(found_by(
            facts,
            session,
            ResolvedBy::Namespace,
            evidence,
        )));
    }
    for variable in &facts.native_variables {
        let (Ok(agent), Ok(native_id)) = (
            AgentName::parse(variable.agent),
            NativeId::parse(&variable.value),
        ) else {
            continue;
        };
        let mut ids: Vec<SessionId> = ctx
            .tx
            .native_owner(&agent, &native_id)?
            .into_iter()
            .collect();
        ids.extend(ctx.tx.native_visitors(&agent, &native_id)?);
        let mut fitting = Vec::new();
        for id in ids {
            let session = ctx.session(id)?;
            if elsewhere(&session) && session.native_id.as_ref() == Some(&native_id) {
                fitting.push(session);
            }
        }
        match fitting.len() {
            0 => {}
            1 => {
                let evidence = format!("{}, from another pid namespace", variable.name);
                let session = fitting.remove(0);
                return Ok(Some(found_by(
                    facts,
                    session,
                    ResolvedBy::Namespace,
                    evidence,
                )));
            }
            _ => {
                return Ok(Some(Found::Refused(Error::Ambiguous {
                    what: format!(
                        "{} names a conversation that several sessions are in",
                        variable.name
                    ),
                    candidates: fitting.iter().map(|s| s.handle.to_string()).collect(),
                })));
            }
        }
    }
    Ok(None)
}

/// TENURE_SESSION of a caller that has neither an agent above it nor a terminal.
fn by_variable(ctx: &mut Ctx<'_>, facts: &CallerFacts) -> Result<Found, Stop> {
    let Some(text) = facts.session_variable.as_deref() else {
        return Ok(Found::Nobody(NobodyWhy::NoSession));
    };
    let nobody = |why: String| Ok(Found::Nobody(NobodyWhy::Variable(why)));
    let Ok(token) = SessionToken::parse(text) else {
        return nobody("TENURE_SESSION is set, but not to SESSION-ID.LIFE".into());
    };
    let Some(session) = ctx.tx.session(token.id)? else {
        return nobody("TENURE_SESSION names a session that is not in this store".into());
    };
    let handle = session.handle.clone();
    if session.life != token.life {
        let (then, now) = (token.life, session.life);
        return nobody(format!(
            "TENURE_SESSION names life {then} of {handle}, which is in life {now} now"
        ));
    }
    if facts.has_terminal {
        return nobody(format!(
            "TENURE_SESSION names {handle}, but does not count at a terminal"
        ));
    }
    if !session.is_open() {
        return nobody(format!(
            "TENURE_SESSION names {handle}, which is no longer live"
        ));
    }
    if let Liveness::Dead(proof) = ctx.liveness(&session)? {
        ctx.record_death(&session, &proof.to_string())?;
        return nobody(format!(
            "TENURE_SESSION names {handle}, which is dead: {proof}"
        ));
    }
    let evidence = "TENURE_SESSION; no agent above this process, no terminal".to_owned();
    Ok(found_by(facts, session, ResolvedBy::Variable, evidence))
}

fn found_by(facts: &CallerFacts, session: Session, by: ResolvedBy, evidence: String) -> Found {
    Found::Session(Box::new(Caller {
        disagreements: disagreements(facts, &session),
        actor: Some(session.id),
        session,
        by,
        evidence,
        blind: by == ResolvedBy::Namespace,
        reason: None,
    }))
}

/// Variables that name another session, or another conversation of the same agent.
fn disagreements(facts: &CallerFacts, session: &Session) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(text) = &facts.session_variable
        && SessionToken::parse(text).ok() != Some(session.token())
    {
        found.push(format!(
            "TENURE_SESSION is {text}, this session is {}",
            session.token()
        ));
    }
    for variable in &facts.native_variables {
        let same_agent = variable.agent == session.agent.as_str();
        if let Some(native_id) = session.native_id.as_ref().filter(|_| same_agent)
            && native_id.as_str() != variable.value
        {
            let (name, value) = (variable.name, &variable.value);
            found.push(format!("{name} is {value}, this session is in {native_id}"));
        }
    }
    found
}
