//! A command that runs under a claim: it becomes a session of its own with the grant, and the session ends with
//! it.

use super::acquire::{hand_out, still_lives};
use super::choice::{Choice, OwnKey, choose, refusal_of};
use super::grant::Receiver;
use super::guard::covering_hold;
use super::request::{
    ChildRequest, ChildTurn, ClaimRequest, Grant, Wait, WaitingCaller, check_note,
};
use super::rivals::Asker;
use super::waiter::{leave, pass_on, wait_in_line};
use crate::caller::present::sessions_of;
use crate::caller::{self, ActFor, Caller, Purpose};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::session::new_session::{NewSession, create_session};
use crate::session::view::SessionView;
use crate::transact::{Reply, Service};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::{Epoch, SessionId, SessionToken};
use tenure_core::key::Key;
use tenure_core::process::Process;
use tenure_core::session::{ClosedBy, Session, Title};
use tenure_core::store::{StoreError, TxMode};
use tenure_core::text;

impl Service<'_> {
    /// Claims for a command that becomes a session of its own with the grant.
    ///
    /// Without a position in line it is a plain claim: granted at once, or refused.
    pub fn claim_for_child(
        &mut self,
        act_for: &ActFor,
        request: &ChildRequest,
        waiting: Option<&WaitingCaller>,
    ) -> Reply<ChildTurn> {
        check_note(request.claim.note.as_deref())?;
        self.transact(TxMode::Read, |ctx| {
            claim_for_child(ctx, act_for, request, waiting)
        })
    }

    /// Whether a session still holds a key at this epoch.
    pub fn still_holds(&mut self, session: SessionId, key: &Key, epoch: Epoch) -> Reply<bool> {
        self.transact(TxMode::Read, |ctx| {
            let record = ctx.claim_record(key)?;
            let current = record.current();
            Ok(current.is_some_and(|hold| hold.session == session && hold.epoch == epoch))
        })
    }

    /// Ends the session of a command that has exited.
    pub fn end_child(&mut self, child: SessionToken, why: &str) -> Reply<SessionView> {
        self.transact(TxMode::Write, |ctx| {
            let mut session = ctx.session(child.id)?;
            if session.is_open() && session.life == child.life {
                session = ctx.close(&session, ClosedBy::End, why, None, None)?;
            }
            ctx.view(&session)
        })
    }
}

/// The outcome of a claim for a session that is about to be created, or about to get its next
/// process.
pub(crate) enum ClaimOutcome {
    /// The caller, or an ancestor of it, already holds it.
    Covered,
    Ready(GrantableKeys),
    /// It waits in line.
    Wait(Wait),
    Refused {
        error: Box<Error>,
        /// Whether waiting can help.
        waits: bool,
        /// Processes whose exit would help.
        watch: Vec<Process>,
    },
}

/// The keys that can be granted.
pub(crate) struct GrantableKeys(Vec<OwnKey>);

/// Assesses a claim for a session without granting anything. With a waiter, a key that is not free
/// yet, or is another waiter's turn, is waited for in line.
pub(crate) fn ask(
    ctx: &mut Ctx<'_>,
    caller: Option<&Caller>,
    for_session: Option<SessionId>,
    request: &ClaimRequest,
    waiting: Option<&WaitingCaller>,
) -> Result<ClaimOutcome, Stop> {
    if let Some(caller) = caller
        && covered(ctx, caller, &request.keys)?.is_some()
    {
        leave(ctx, waiting.and_then(|waiting| waiting.ticket))?;
        return Ok(ClaimOutcome::Covered);
    }
    let asker = asker(caller, for_session);
    let choice = choose(ctx, asker, request, waiting)?;
    if let Choice::Take(taken) = choice {
        return Ok(ClaimOutcome::Ready(GrantableKeys(taken)));
    }
    if let Some(waiting) = waiting {
        let token = caller.map(|caller| caller.session.token());
        return wait_in_line(ctx, token, request, waiting, choice, None).map(ClaimOutcome::Wait);
    }
    match choice {
        Choice::Refuse(refusal) => Ok(ClaimOutcome::Refused {
            error: Box::new(refusal.error),
            waits: refusal.waits,
            watch: refusal.watch,
        }),
        Choice::Take(_) | Choice::Line { .. } => Err(Stop::Store(StoreError::Conflict)),
    }
}

/// Lets the others in line go first, if a waiter lacks something else.
pub(crate) fn pass_over(
    ctx: &mut Ctx<'_>,
    caller: Option<&Caller>,
    for_session: Option<SessionId>,
    request: &ClaimRequest,
    waiting: &WaitingCaller,
) -> Result<(), Stop> {
    let open = match choose(ctx, asker(caller, for_session), request, None)? {
        Choice::Take(_) => request.keys.clone(),
        Choice::Refuse(refusal) => refusal.open_to_others,
        Choice::Line { .. } => Vec::new(),
    };
    pass_on(ctx, waiting, &open)
}

fn asker(caller: Option<&Caller>, for_session: Option<SessionId>) -> Asker {
    Asker {
        id: for_session.unwrap_or_else(|| SessionId::mint(0, [0; 10])),
        blind: caller.is_some_and(|caller| caller.blind),
    }
}

/// Grants what was assessed, to the session as it is now.
pub(crate) fn grant(
    ctx: &mut Ctx<'_>,
    session: &Session,
    caller: Option<&Caller>,
    ready: GrantableKeys,
    request: &ClaimRequest,
    waiting: Option<&WaitingCaller>,
) -> Result<Vec<Grant>, Stop> {
    leave(ctx, waiting.and_then(|waiting| waiting.ticket))?;
    let receiver = Receiver {
        session,
        actor: caller.map(|caller| caller.session.id),
        reason: None,
        renews: false,
    };
    hand_out(ctx, &receiver, ready.0, request)
}

fn claim_for_child(
    ctx: &mut Ctx<'_>,
    act_for: &ActFor,
    request: &ChildRequest,
    waiting: Option<&WaitingCaller>,
) -> Result<ChildTurn, Stop> {
    let caller = match &act_for.session {
        Some(_) => Some(caller::require(ctx, act_for, Purpose::Receive)?),
        None => caller::identify(ctx)?,
    };
    if let Some(caller) = &caller {
        still_lives(ctx, caller)?;
        if let Some(holder) = covered(ctx, caller, &request.claim.keys)? {
            return Ok(ChildTurn::Covered { holder });
        }
    }
    let made = made_before(ctx, request, waiting)?;
    let asker = asker(caller.as_ref(), made.as_ref().map(|made| made.id));
    match choose(ctx, asker, &request.claim, waiting)? {
        Choice::Take(taken) => {
            ctx.write()?;
            leave(ctx, waiting.and_then(|waiting| waiting.ticket))?;
            let session = match made {
                Some(made) => made,
                None => child_session(ctx, request, caller.as_ref())?,
            };
            ctx.own = Some(session.id);
            let receiver = Receiver {
                session: &session,
                actor: caller.as_ref().and_then(|caller| caller.actor),
                reason: act_for.reason.clone(),
                renews: false,
            };
            let grants = hand_out(ctx, &receiver, taken, &request.claim)?;
            Ok(ChildTurn::Granted {
                token: session.token(),
                session: Box::new(ctx.view(&session)?),
                grants,
            })
        }
        choice => {
            let token = caller.as_ref().map(|caller| caller.session.token());
            let Some(waiting) = waiting else {
                return Err(refusal_of(ctx, token, choice)?);
            };
            let own = caller.and_then(|caller| caller.session.process);
            let wait = wait_in_line(ctx, token, &request.claim, waiting, choice, own)?;
            Ok(ChildTurn::Wait(wait))
        }
    }
}

/// The session of a command's process, if an earlier check made it and was not told so: the link broke in that moment.
fn made_before(
    ctx: &mut Ctx<'_>,
    request: &ChildRequest,
    waiting: Option<&WaitingCaller>,
) -> Result<Option<Session>, Stop> {
    let Some(own) = request.chain.first() else {
        return Ok(None);
    };
    if !waiting.is_some_and(|waiting| waiting.unconfirmed) {
        return Ok(None);
    }
    Ok(sessions_of(ctx, &own.process)?.pop())
}

/// Makes a command's process a session: a child of the caller, or without a parent.
fn child_session(
    ctx: &mut Ctx<'_>,
    request: &ChildRequest,
    caller: Option<&Caller>,
) -> Result<Session, Stop> {
    let new = NewSession {
        agent: request.agent.clone(),
        native_id: None,
        fork_of: None,
        parent: caller.map(|caller| caller.session.token()),
        twin_of: None,
        title: Some(Title::person(text::clipped(
            &request.title,
            text::MAX_TITLE,
        ))),
        workdir: request.workdir.clone(),
        hosted: false,
        process: request.chain.first().map(|own| own.process.clone()),
        start: None,
        daemon: None,
    };
    let session = create_session(ctx, new)?;
    ctx.log(&NewEvent {
        actor: caller.and_then(|caller| caller.actor),
        reason: caller.and_then(Caller::reason_text),
        ..ctx.event(
            EventKind::Registered,
            Some(session.id),
            "command",
            request.title.clone(),
        )
    })?;
    Ok(session)
}

/// Who covers a command that the caller runs, for all keys: the caller itself, or an ancestor.
fn covered(ctx: &mut Ctx<'_>, caller: &Caller, keys: &[Key]) -> Result<Option<String>, Stop> {
    let mut holder = None;
    for key in keys {
        match covering_key(ctx, caller, key)? {
            Some(handle) => holder = Some(handle),
            None => return Ok(None),
        }
    }
    Ok(holder)
}

/// Who covers one key: the session that holds it, or a path that contains it.
fn covering_key(ctx: &mut Ctx<'_>, caller: &Caller, key: &Key) -> Result<Option<String>, Stop> {
    let record = ctx.claim_record(key)?;
    if let Some(handle) = covering_hold(ctx, &caller.session, &record)? {
        return Ok(Some(handle));
    }
    for wider in ctx.beside(key, None)? {
        let contains = match (wider.key.path(), key.path()) {
            (Some((_, wide)), Some((_, narrow))) => wide.includes(&narrow),
            // A different spelling of the same item.
            _ => true,
        };
        if contains && let Some(handle) = covering_hold(ctx, &caller.session, &wider)? {
            return Ok(Some(handle));
        }
    }
    Ok(None)
}
