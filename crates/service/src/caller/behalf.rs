//! Who acts, by the rules of [`tenure_core::behalf`], for use cases that grant, guard or renew.

use crate::answer::Reader;
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

/// The caller of a clean-up. A person who names a session needs no reason; every other caller does.
pub fn tidying(ctx: &mut Ctx<'_>, act_for: &ActFor) -> Result<Tidying, Stop> {
    let by = caller::anybody(ctx)?.map(|caller| caller.session.id);
    if let (Reader::Person | Reader::Newcomer, Some(name)) = (ctx.reader, &act_for.session) {
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
    if !session.is_open() {
        return Err(caller::not_live(&session).into());
    }
    let handle = session.handle.to_string();
    Err(Error::OwnSessionOnly { handle, what }.into())
}

/// A session that may receive something. It must be proved alive.
pub fn seen_to_live(ctx: &mut Ctx<'_>, session: Session) -> Result<Session, Stop> {
    let session = ctx.record_death_if_proved(session)?;
    if !session.is_open() {
        return Err(caller::not_live(&session).into());
    }
    match ctx.standing(&session)? {
        Standing::Live => Ok(session),
        Standing::Gone(proof) => Err(Error::NotLive {
            handle: session.handle.to_string(),
            state: format!("is dead: {proof}"),
        }
        .into()),
        Standing::Trusted { doubt, .. }
        | Standing::Suspect { doubt, .. }
        | Standing::Expired(doubt) => Err(cannot_tell(&session, doubt).into()),
    }
}

fn cannot_tell(session: &Session, doubt: Doubt) -> Error {
    Error::CannotTell {
        handle: session.handle.to_string(),
        doubt,
        key: None,
    }
}
