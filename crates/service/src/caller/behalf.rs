//! Who acts, by the rules of [`tenure_core::behalf`], for use cases that grant, guard or renew.

use crate::caller::{self, ActFor, Caller, Purpose};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use tenure_core::id::SessionId;
use tenure_core::liveness::Doubt;
use tenure_core::session::{Session, Standing};

/// Whether the session is fit for the purpose, once its notices are delivered.
pub(super) fn fit(ctx: &mut Ctx<'_>, mut caller: Caller, purpose: Purpose) -> Result<Caller, Stop> {
    match purpose {
        Purpose::Read | Purpose::Peek | Purpose::ActOrEnded => Ok(caller),
        Purpose::Act => open(caller),
        Purpose::Receive => {
            let mut caller = open(caller)?;
            if !caller.is_itself() {
                caller.session = seen_to_live(ctx, caller.session)?;
            }
            Ok(caller)
        }
        Purpose::Guard => {
            if !caller.is_itself()
                && caller.session.is_open()
                && let Standing::Suspect { doubt, .. } | Standing::Expired(doubt) =
                    ctx.standing(&caller.session)?
            {
                return Err(cannot_tell(&caller.session, doubt).into());
            }
            Ok(caller)
        }
        Purpose::Itself(_) if caller.is_itself() => Ok(caller),
        Purpose::Itself(what) => {
            caller.session = ctx.record_death_if_proved(caller.session)?;
            let handle = open(caller)?.session.handle.to_string();
            Err(Error::OwnSessionOnly { handle, what }.into())
        }
    }
}

fn open(caller: Caller) -> Result<Caller, Stop> {
    match &caller.session.closed {
        None => Ok(caller),
        Some(closed) => Err(caller::not_live(&caller.session, closed).into()),
    }
}

/// An act on a session, open or ended, that neither gives nor takes anything.
pub struct Tidying {
    pub session: Session,
    pub actor: Option<SessionId>,
    pub reason: Option<String>,
}

/// The caller of a clean-up. A person who names a session needs no reason, nor does a person's script; an agent does.
pub fn tidying(ctx: &mut Ctx<'_>, act_for: &ActFor) -> Result<Tidying, Stop> {
    let by = caller::identify(ctx)?.map(|caller| caller.session.id);
    if let Some(name) = &act_for.session
        && !caller::is_agents(ctx)?
    {
        return Ok(Tidying {
            session: caller::find(ctx, name)?,
            actor: by,
            reason: act_for.reason.clone().map(String::from),
        });
    }
    let caller = caller::require(ctx, act_for, Purpose::ActOrEnded)?;
    Ok(Tidying {
        reason: caller.reason_text(),
        session: caller.session,
        actor: caller.actor,
    })
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
