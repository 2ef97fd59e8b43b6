//! Who is calling: decided by what the kernel reports, never guessed.
//!
//! The order is: the `--session` flag, the ancestors of the caller, and a variable only if the ancestors are
//! hidden (a sandbox) or none is a session (a detached helper). The nearest ancestor that belongs to a session
//! decides. An agent that is not registered ends the search, because what runs inside it must not be taken for
//! an agent further up.

pub mod behalf;
pub mod named;
pub mod present;

use crate::answer::reader_of;
pub use crate::caller::named::{descends_from, find};
use crate::caller::present::{AncestorRole, nearest};
use crate::context::{Ctx, Stop};
use crate::error::{Error, NoSessionWhy};
use crate::session::beat::renew_if_due;
pub use crate::session::beat::{is_due, quiet_for, renew, renew_doing, resolve_doubts};
use tenure_core::agent;
use tenure_core::behalf::Relation;
use tenure_core::id::{AgentName, Life, NativeId, SessionId, SessionToken};
use tenure_core::liveness::Liveness;
use tenure_core::present::Present;
use tenure_core::process::{CallerFacts, Process};
use tenure_core::reason::Reason;
use tenure_core::session::{Closed, Session};
use tenure_core::store::Prefetch;

/// The session that the caller wants to act for, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActFor {
    pub session: Option<String>,
    pub reason: Option<Reason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolvedBy {
    /// `--session`.
    Flag,
    /// An ancestor of the caller belongs to the session.
    Ancestry,
    /// A variable names a session whose processes the caller cannot see.
    Namespace,
    /// TENURE_SESSION, with no agent above and no terminal.
    Variable,
}

impl ResolvedBy {
    pub fn as_str(self) -> &'static str {
        match self {
            ResolvedBy::Flag => "flag",
            ResolvedBy::Ancestry => "ancestry",
            ResolvedBy::Namespace => "namespace",
            ResolvedBy::Variable => "variable",
        }
    }
}

/// The session that calls, or on whose behalf the call is made.
#[derive(Debug, Clone, PartialEq)]
pub struct Caller {
    pub session: Session,
    pub by: ResolvedBy,
    /// How the caller was recognised as this session; none if it acts for another.
    pub itself_by: Option<ResolvedBy>,
    pub evidence: String,
    /// Variables that contradict it.
    pub disagreements: Vec<Disagreement>,
    /// Whether it cannot see the processes of other sessions.
    pub blind: bool,
    /// The session that really calls, if it acts for another.
    pub actor: Option<SessionId>,
    pub reason: Option<Reason>,
}

impl Caller {
    /// Whether the caller is this session itself.
    pub fn is_itself(&self) -> bool {
        self.itself_by.is_some()
    }

    /// The reason as it is logged.
    pub fn reason_text(&self) -> Option<String> {
        self.reason.clone().map(String::from)
    }

    /// Whether the call comes from the session's own process tree and therefore renews its lease.
    fn renews(&self) -> bool {
        match self.itself_by {
            Some(ResolvedBy::Ancestry | ResolvedBy::Namespace) => true,
            // If the process of a session is unknown, only its own calls can keep it alive.
            Some(ResolvedBy::Variable) => self.session.process.is_none(),
            Some(ResolvedBy::Flag) | None => false,
        }
    }
}

/// A variable that names another session, or another conversation of the same agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    pub variable: &'static str,
    pub value: String,
    /// The contradicting fact, as a clause.
    pub own: String,
}

impl std::fmt::Display for Disagreement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {}, but {}", self.variable, self.value, self.own)
    }
}

/// The result of resolving the caller.
enum Lookup {
    Session(Box<Caller>),
    /// One process hosts these sessions, and no variable selects one.
    Several {
        sessions: Vec<Session>,
    },
    NoSession(NoSessionWhy),
    Refused(Error),
}

/// What a use case does with the session that calls, or that the caller names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It reads. Naming a session needs no reason.
    Read,
    /// It reads, delivers no notice and renews nothing.
    Peek,
    /// It acts for a live session.
    Act,
    /// It acts for a session that may have ended.
    ActOrEnded,
    /// The session receives something: it must be proved alive if another calls.
    Receive,
    /// It asks whether the session may write. A dead session gets an answer too: its claims are free or another
    /// session's. When someone asks on its behalf, an expired lease does not close it.
    Guard,
    /// Only the session itself can do this.
    Itself(&'static str),
}

impl Purpose {
    fn acts(self) -> bool {
        !matches!(self, Purpose::Read | Purpose::Peek | Purpose::Itself(_))
    }
}

/// The caller of a use case that serves only sessions. It gets its notices, and its lease is renewed.
pub fn require(ctx: &mut Ctx<'_>, act_for: &ActFor, purpose: Purpose) -> Result<Caller, Stop> {
    let mut caller = resolve(ctx, act_for, purpose.acts())?;
    if purpose == Purpose::Peek {
        return Ok(caller);
    }
    if purpose.acts() && !caller.is_itself() {
        caller.session = ctx.record_death_if_proved(caller.session)?;
    }
    let caller = deliver_and_renew(ctx, caller)?;
    behalf::fit(ctx, caller, purpose)
}

/// The caller, if it is a session; for use cases that serve everyone. It gets its notices, and its lease is renewed.
pub fn identify(ctx: &mut Ctx<'_>) -> Result<Option<Caller>, Stop> {
    match itself(ctx)? {
        Some(caller) => deliver_and_renew(ctx, caller).map(Some),
        None => Ok(None),
    }
}

/// The same, without notices and renewal.
pub fn itself(ctx: &mut Ctx<'_>) -> Result<Option<Caller>, Stop> {
    match caller_itself(ctx)? {
        Lookup::Session(caller) => Ok(Some(*caller)),
        Lookup::Several { .. } | Lookup::NoSession(_) | Lookup::Refused(_) => Ok(None),
    }
}

/// The error for an act of a session that has ended.
pub fn not_live(session: &Session, closed: &Closed) -> Error {
    Error::NotLive {
        handle: session.handle.to_string(),
        state: format!("{}: {}", closed.by.as_verb(), closed.why),
    }
}

/// Runs at every call of a session: delivers its notices and renews its lease. A call on another session's
/// behalf does neither.
fn deliver_and_renew(ctx: &mut Ctx<'_>, mut caller: Caller) -> Result<Caller, Stop> {
    let Some(by) = caller.itself_by.filter(|_| !ctx.looks_only) else {
        return Ok(caller);
    };
    let me = caller.session.id;
    if matches!(by, ResolvedBy::Ancestry | ResolvedBy::Namespace) {
        ctx.own = Some(me);
    }
    ctx.tx.prefetch(Prefetch::News(me))?;
    ctx.tx.prefetch(Prefetch::Claims(&ctx.wanted))?;
    ctx.tx.prefetch(Prefetch::NewestHolds(me, &ctx.wanted))?;
    ctx.tell(me)?;
    if caller.renews() && caller.session.is_open() {
        renew_if_due(ctx, &mut caller.session)?;
    }
    if by == ResolvedBy::Ancestry && caller.session.is_open() {
        resolve_doubts(ctx, caller.session.id)?;
    }
    Ok(caller)
}

/// Refuses an act that needs a reason and has none.
pub fn permit(relation: Relation, session: &Session, reason: Option<&Reason>) -> Result<(), Error> {
    if relation.permits(reason) {
        Ok(())
    } else {
        Err(Error::ReasonNeeded {
            handle: session.handle.to_string(),
        })
    }
}

fn resolve(ctx: &mut Ctx<'_>, act_for: &ActFor, acts: bool) -> Result<Caller, Stop> {
    let found = caller_itself(ctx)?;
    let Some(name) = &act_for.session else {
        return match found {
            Lookup::Session(caller) => Ok(Caller {
                reason: act_for.reason.clone(),
                ..*caller
            }),
            Lookup::Several { sessions } => Err(several(&sessions).into()),
            Lookup::NoSession(why) => Err(Error::NoSession { why }.into()),
            Lookup::Refused(error) => Err(error.into()),
        };
    };
    let session = find(ctx, name)?;
    let reason = act_for.reason.clone();
    let caller = Caller {
        evidence: format!("--session {name}"),
        by: ResolvedBy::Flag,
        itself_by: None,
        disagreements: Vec::new(),
        blind: false,
        actor: None,
        reason,
        session,
    };
    match found {
        Lookup::Session(me) if me.session.id == caller.session.id => Ok(Caller {
            itself_by: Some(me.by),
            blind: me.blind,
            actor: Some(caller.session.id),
            ..caller
        }),
        Lookup::Session(me) if shares_host(&me, &caller.session) => Ok(picked_by_flag(caller)),
        Lookup::Several { sessions } if sessions.iter().any(|s| s.id == caller.session.id) => {
            Ok(picked_by_flag(caller))
        }
        // The log records who acted, and that is unknown here.
        Lookup::Several { sessions } if acts => Err(several(&sessions).into()),
        Lookup::Session(me) => {
            if acts {
                let relation = relation(ctx, &caller.session, Some(&me.session))?;
                permit(relation, &caller.session, caller.reason.as_ref())?;
            }
            Ok(Caller {
                blind: me.blind,
                actor: Some(me.session.id),
                ..caller
            })
        }
        Lookup::Several { .. } | Lookup::NoSession(_) | Lookup::Refused(_) => {
            if acts {
                permit(Relation::Stranger, &caller.session, caller.reason.as_ref())?;
            }
            Ok(caller)
        }
    }
}

/// How the named session relates to the caller.
pub fn relation(
    ctx: &mut Ctx<'_>,
    session: &Session,
    caller: Option<&Session>,
) -> Result<Relation, Stop> {
    Ok(match caller {
        Some(me) if me.id == session.id => Relation::Own,
        Some(me) if descends_from(ctx, session, me.token())? => Relation::Descendant,
        _ => Relation::Stranger,
    })
}

/// Whether the process that hosts the caller's session also hosts this one.
fn shares_host(me: &Caller, session: &Session) -> bool {
    let is_here = |(mine, other): (&Process, &Process)| mine.same_as(other);
    me.by == ResolvedBy::Ancestry
        && me.session.hosted
        && session.hosted
        && session.is_open()
        && me
            .session
            .process
            .as_ref()
            .zip(session.process.as_ref())
            .is_some_and(is_here)
}

/// In a process that hosts several sessions, the flag selects the one that calls.
fn picked_by_flag(caller: Caller) -> Caller {
    Caller {
        itself_by: Some(ResolvedBy::Ancestry),
        actor: Some(caller.session.id),
        ..caller
    }
}

fn several(sessions: &[Session]) -> Error {
    Error::Ambiguous {
        what: "this process hosts several sessions".into(),
        by_name: false,
        candidates: sessions.iter().map(|s| s.handle.to_string()).collect(),
    }
}

/// Whether an agent made this environment. Behind a sandbox, or in a terminal that an agent drives, the agent's
/// process is not an ancestor of the caller.
fn has_agents_environment(ctx: &mut Ctx<'_>) -> Result<bool, Stop> {
    if !ctx.facts.native_variables.is_empty() {
        return Ok(true);
    }
    let Some(word) = &ctx.facts.session_variable else {
        return Ok(false);
    };
    let named = match SessionToken::parse(word) {
        Ok(token) => ctx.tx.session(token.id)?,
        Err(_) => None,
    };
    Ok(named.is_none_or(|session| session.agent.as_str() != agent::HUMAN))
}

/// Whether an agent calls: its session, or something that runs, or may run, inside an unregistered agent.
pub fn is_agents(ctx: &mut Ctx<'_>) -> Result<bool, Stop> {
    let found = walk(ctx)?;
    let (agent, below_agent) = agent_of(ctx, &found)?;
    Ok(below_agent || agent.is_some_and(|agent| agent.as_str() != agent::HUMAN))
}

/// Resolves the caller from what the kernel and the environment report, and decides who reads the answer.
fn caller_itself(ctx: &mut Ctx<'_>) -> Result<Lookup, Stop> {
    let found = walk(ctx)?;
    let (agent, below_agent) = agent_of(ctx, &found)?;
    let at_terminal = ctx.facts.at_terminal;
    ctx.effects.reader = reader_of(
        agent.as_ref().map(AgentName::as_str),
        below_agent,
        at_terminal,
    );
    Ok(found)
}

/// The agent of the calling session, and whether the caller runs, or may run, inside an unregistered agent.
fn agent_of(ctx: &mut Ctx<'_>, found: &Lookup) -> Result<(Option<AgentName>, bool), Stop> {
    Ok(match found {
        Lookup::Session(caller) => (Some(caller.session.agent.clone()), false),
        Lookup::NoSession(NoSessionWhy::NotInside | NoSessionWhy::Variable(_)) => {
            (None, has_agents_environment(ctx)?)
        }
        Lookup::NoSession(NoSessionWhy::EndedHere { agent, .. }) => {
            (None, agent.as_str() != agent::HUMAN)
        }
        Lookup::NoSession(NoSessionWhy::UnregisteredAgent { .. } | NoSessionWhy::BrokenWalk(_))
        | Lookup::Several { .. }
        | Lookup::Refused(_) => (None, true),
    })
}

fn walk(ctx: &mut Ctx<'_>) -> Result<Lookup, Stop> {
    let facts = ctx.facts;
    if let Some((height, met)) = nearest(ctx, &facts.chain, |_| true)? {
        let pid = facts.chain[height].process.pid;
        let by = |session, evidence| found_by(facts, session, ResolvedBy::Ancestry, evidence);
        match met {
            AncestorRole::Sessions(Present::One(session)) => {
                return Ok(by(*session, evidence(height, pid)));
            }
            AncestorRole::Sessions(Present::Picked(session)) => {
                let evidence = evidence(height, pid);
                let picked = "and a variable that selects one of its conversations";
                return Ok(by(*session, format!("{evidence}, {picked}")));
            }
            AncestorRole::Sessions(Present::Several(sessions)) => {
                return Ok(Lookup::Several { sessions });
            }
            AncestorRole::Past(session, life) => return Ok(was(*session, life)),
            AncestorRole::Agent(spec) => {
                let agent = spec.name.to_owned();
                return Ok(Lookup::NoSession(NoSessionWhy::UnregisteredAgent {
                    agent,
                    pid,
                }));
            }
            AncestorRole::Sessions(Present::NoSession) => {}
        }
    }
    // The walk ended early, so an agent or another session may be further up. If /proc belongs to another
    // namespace, no walk was possible and it could not have met the processes that a sandbox hides; the
    // variables are then still valid.
    if let Some(why) = facts
        .chain_broken
        .as_ref()
        .filter(|_| facts.observer.proc_is_own)
    {
        return Ok(Lookup::NoSession(NoSessionWhy::BrokenWalk(why.clone())));
    }
    if let Some(found) = by_namespace(ctx, facts)? {
        return Ok(found);
    }
    if let Some(why) = &facts.chain_broken {
        return Ok(Lookup::NoSession(NoSessionWhy::BrokenWalk(why.clone())));
    }
    by_variable(ctx, facts)
}

/// Describes the process that decided.
fn evidence(height: usize, pid: u32) -> String {
    match height {
        0 => format!("this process (pid {pid})"),
        1 => format!("pid {pid}, the parent of this process"),
        n => format!("pid {pid}, {n} processes above this one"),
    }
}

/// A process that belonged to a session in this life and no longer does.
fn was(session: Session, life: Life) -> Lookup {
    let handle = session.handle.to_string();
    if session.life == life {
        Lookup::NoSession(NoSessionWhy::EndedHere {
            handle,
            agent: session.agent,
        })
    } else {
        Lookup::Refused(Error::Superseded {
            handle,
            life: life.0,
        })
    }
}

/// A variable that names a session in another pid namespace, because a sandbox hides the caller's ancestors.
fn by_namespace(ctx: &mut Ctx<'_>, facts: &CallerFacts) -> Result<Option<Lookup>, Stop> {
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
                return Ok(Some(Lookup::Refused(Error::Ambiguous {
                    what: format!(
                        "{} names a conversation that several sessions are in",
                        variable.name
                    ),
                    by_name: false,
                    candidates: fitting.iter().map(|s| s.handle.to_string()).collect(),
                })));
            }
        }
    }
    Ok(None)
}

/// TENURE_SESSION of a caller with no agent above it and no terminal.
fn by_variable(ctx: &mut Ctx<'_>, facts: &CallerFacts) -> Result<Lookup, Stop> {
    let Some(text) = facts.session_variable.as_deref() else {
        return Ok(Lookup::NoSession(NoSessionWhy::NotInside));
    };
    let nobody = |why: String| Ok(Lookup::NoSession(NoSessionWhy::Variable(why)));
    let Ok(token) = SessionToken::parse(text) else {
        return nobody("TENURE_SESSION does not have the form SESSION-ID.LIFE".into());
    };
    let Some(session) = ctx.tx.session(token.id)? else {
        return nobody("TENURE_SESSION names a session that is not in this store".into());
    };
    let handle = session.handle.clone();
    if session.life != token.life {
        let (then, now) = (token.life, session.life);
        return nobody(format!(
            "TENURE_SESSION names life {then} of {handle}, which is now in life {now}"
        ));
    }
    if facts.has_terminal {
        return nobody(format!(
            "TENURE_SESSION names {handle}, but is ignored at a terminal"
        ));
    }
    if !session.is_open() {
        return nobody(format!(
            "TENURE_SESSION names {handle}, which is no longer live"
        ));
    }
    if let Liveness::Dead(proof) = ctx.liveness(&session)? {
        ctx.effects.dead.push(session.id);
        return nobody(format!(
            "TENURE_SESSION names {handle}, which is dead: {proof}"
        ));
    }
    let evidence = "TENURE_SESSION (no agent above this process, no terminal)".to_owned();
    Ok(found_by(facts, session, ResolvedBy::Variable, evidence))
}

fn found_by(facts: &CallerFacts, session: Session, by: ResolvedBy, evidence: String) -> Lookup {
    Lookup::Session(Box::new(Caller {
        disagreements: disagreements(facts, &session),
        actor: Some(session.id),
        itself_by: Some(by),
        session,
        by,
        evidence,
        blind: by == ResolvedBy::Namespace,
        reason: None,
    }))
}

fn disagreements(facts: &CallerFacts, session: &Session) -> Vec<Disagreement> {
    let mut found = Vec::new();
    if let Some(text) = &facts.session_variable
        && SessionToken::parse(text).ok() != Some(session.token())
    {
        found.push(Disagreement {
            variable: "TENURE_SESSION",
            value: text.clone(),
            own: format!("this session is {}", session.token()),
        });
    }
    for variable in &facts.native_variables {
        let same_agent = variable.agent == session.agent.as_str();
        if let Some(native_id) = session.native_id.as_ref().filter(|_| same_agent)
            && native_id.as_str() != variable.value
        {
            found.push(Disagreement {
                variable: variable.name,
                value: variable.value.clone(),
                own: format!("this session is in {native_id}"),
            });
        }
    }
    found
}
