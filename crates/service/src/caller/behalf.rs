//! Who acts, by the rules of [`tenure_core::behalf`], for use cases that grant, guard or renew.

use crate::caller::{self, ActFor, Caller};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use tenure_core::id::SessionId;
use tenure_core::liveness::Doubt;
use tenure_core::session::{Session, Standing};

/// The session that receives something: the caller itself, or another one that is proved alive.
pub fn receiving(ctx: &mut Ctx<'_>, act_for: &ActFor) -> Result<Caller, Stop> {
    let mut caller = caller::for_write(ctx, act_for)?;
    if !caller.is_itself() {
        caller.session = seen_to_live(ctx, caller.session)?;
    }
    Ok(caller)
}

/// An act on a session, open or ended, that neither gives nor takes anything.
pub struct Tidying {
    pub session: Session,
    pub actor: Option<SessionId>,
    pub reason: Option<String>,
}

/// The caller of a clean-up. A person who names a session needs no reason, nor does a person's script; an agent does.
pub fn tidying(ctx: &mut Ctx<'_>, act_for: &ActFor) -> Result<Tidying, Stop> {
    let by = caller::anybody(ctx)?.map(|caller| caller.session.id);
    if let Some(name) = &act_for.session
        && !caller::is_agents(ctx)?
    {
        return Ok(Tidying {
            session: caller::find(ctx, name)?,
            actor: by,
            reason: act_for.reason.clone().map(String::from),
        });
    }
    let caller = caller::for_write_or_closed(ctx, act_for)?;
    Ok(Tidying {
        reason: caller.reason_text(),
        session: caller.session,
        actor: caller.actor,
    })
}

/// The session that asks whether it may write. A dead session gets an answer too: its claims are free or
/// another session's. When someone asks on its behalf, an expired lease does not close it.
pub fn guarding(ctx: &mut Ctx<'_>, act_for: &ActFor) -> Result<Caller, Stop> {
    let caller = caller::for_write_or_closed(ctx, act_for)?;
    if !caller.is_itself()
        && caller.session.is_open()
        && let Standing::Suspect { doubt, .. } | Standing::Expired(doubt) =
            ctx.standing(&caller.session)?
    {
        return Err(cannot_tell(&caller.session, doubt).into());
    }
    Ok(caller)
}

/// The caller of an act that only the session itself can do.
pub fn itself(ctx: &mut Ctx<'_>, act_for: &ActFor, what: &'static str) -> Result<Caller, Stop> {
    let caller = caller::for_read(ctx, act_for)?;
    if caller.is_itself() {
        return Ok(caller);
    }
    let session = ctx.record_death_if_proved(caller.session)?;
    if let Some(closed) = &session.closed {
        return Err(caller::not_live(&session, closed).into());
    }
    let handle = session.handle.to_string();
    Err(Error::OwnSessionOnly { handle, what }.into())
}

/// A session that is acted for or ended. It must be proved alive.
pub fn seen_to_live(ctx: &mut Ctx<'_>, session: Session) -> Result<Session, Stop> {
    match not_seen_to_be_gone(ctx, session)? {
        (session, None) => Ok(session),
        (session, Some(doubt)) => Err(cannot_tell(&session, doubt).into()),
    }
}

/// A session that receives something. It must be proved alive, or the keeper of its machine must report it.
pub fn known_to_live(ctx: &mut Ctx<'_>, session: Session) -> Result<Session, Stop> {
    match not_seen_to_be_gone(ctx, session)? {
        (session, Some(doubt)) if !doubt.is_reported_alive() => {
            Err(cannot_tell(&session, doubt).into())
        }
        (session, _) => Ok(session),
    }
}

/// An open session that is not proved dead, and why it is not proved alive either.
fn not_seen_to_be_gone(
    ctx: &mut Ctx<'_>,
    session: Session,
) -> Result<(Session, Option<Doubt>), Stop> {
    let session = ctx.record_death_if_proved(session)?;
    if let Some(closed) = &session.closed {
        return Err(caller::not_live(&session, closed).into());
    }
    match ctx.standing(&session)? {
        Standing::Live => Ok((session, None)),
        Standing::Gone(proof) => Err(Error::NotLive {
            handle: session.handle.to_string(),
            state: format!("is dead: {proof}"),
        }
        .into()),
        Standing::Trusted { doubt, .. }
        | Standing::Suspect { doubt, .. }
        | Standing::Expired(doubt) => Ok((session, Some(doubt))),
    }
}

/// Fails if the store lets only another role change a session. A heartbeat that says what is stored already changes nothing,
/// and the store refuses it as it would refuse any other change. For an act that writes rows of its own: those the store
/// does not protect.
pub fn may_change(ctx: &mut Ctx<'_>, session: &Session) -> Result<(), Stop> {
    // Only a store on a server knows roles.
    if !ctx.locks_rows {
        return Ok(());
    }
    ctx.write_beat()?;
    let (seen_at, lease) = (session.seen_at, &session.lease);
    let touched = ctx
        .tx
        .touch_session(session.token(), seen_at, lease, None, None);
    touched.map(drop).map_err(Stop::from)
}

fn cannot_tell(session: &Session, doubt: Doubt) -> Error {
    Error::CannotTell {
        handle: session.handle.to_string(),
        doubt,
        key: None,
    }
}
