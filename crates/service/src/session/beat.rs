//! What renews a session's lease, and what a call outside a sandbox settles for one inside.

use std::time::Duration;

use crate::context::{Ctx, Stop};
use tenure_core::id::SessionId;
use tenure_core::liveness::Liveness;
use tenure_core::session::{Activity, Session};
use tenure_core::store::{Lock, TxMode};
use tenure_core::time::Timestamp;

/// Renews the lease if the last heartbeat is old enough. Never shortens it.
pub fn renew_if_due(ctx: &mut Ctx<'_>, session: &mut Session) -> Result<(), Stop> {
    if !is_due(ctx, session) {
        return Ok(());
    }
    ctx.write_beat()?;
    renew(ctx, session)
}

/// Whether the last heartbeat is old enough for another.
pub fn is_due(ctx: &Ctx<'_>, session: &Session) -> bool {
    use tenure_core::time::Remaining;
    let every = ctx.policy.beat_every();
    let fresh = match session.lease.remaining(&ctx.now) {
        Remaining::Open(left) => left + every >= ctx.policy.lease,
        Remaining::Over(_) | Remaining::CannotTell => false,
    };
    let lately = session.seen_at.age_at(ctx.now.wall) < every && session.seen_at <= ctx.now.wall;
    !(fresh && lately)
}

/// How long no heartbeat is due.
pub fn quiet_for(ctx: &Ctx<'_>, session: &Session) -> Duration {
    use tenure_core::time::Remaining;
    if is_due(ctx, session) {
        return Duration::ZERO;
    }
    let every = ctx.policy.beat_every();
    let leased = match session.lease.remaining(&ctx.now) {
        Remaining::Open(left) => (left + every).saturating_sub(ctx.policy.lease),
        Remaining::Over(_) | Remaining::CannotTell => Duration::ZERO,
    };
    let seen = every.saturating_sub(session.seen_at.age_at(ctx.now.wall));
    leased.min(seen)
}

pub fn renew(ctx: &mut Ctx<'_>, session: &mut Session) -> Result<(), Stop> {
    renew_doing(ctx, session, None, None)
}

/// Renews the lease now, and stores the activity and the presence of a person if given.
pub fn renew_doing(
    ctx: &mut Ctx<'_>,
    session: &mut Session,
    activity: Option<Activity>,
    attended_at: Option<Timestamp>,
) -> Result<(), Stop> {
    let lease = session
        .lease
        .clone()
        .or_later(ctx.now.after(ctx.policy.lease));
    // A heartbeat alone is one statement. Next to other writes, the row is locked in order.
    if ctx.mode == TxMode::Write {
        ctx.lock([Lock::Session(session.id)])?;
    }
    if ctx.tx.touch_session(
        session.token(),
        ctx.now.wall,
        &lease,
        activity.as_ref(),
        attended_at,
    )? {
        session.seen_at = ctx.now.wall;
        session.lease = lease;
        if activity.is_some() {
            session.activity = activity;
        }
        session.attended_at = attended_at.or(session.attended_at);
    }
    Ok(())
}

/// A call from outside the sandbox records the deaths that it can prove among the holders that the same session
/// could not check from inside. That happens after the call and may fail, so the doubt stays until the death is
/// recorded.
pub fn resolve_doubts(ctx: &mut Ctx<'_>, asker: SessionId) -> Result<(), Stop> {
    if !ctx.tx.has_doubts(asker)? {
        return Ok(());
    }
    ctx.write()?;
    for token in ctx.tx.take_doubts(asker)? {
        let holder = ctx.session(token.id)?;
        if holder.life == token.life
            && holder.is_open()
            && let Liveness::Dead(_) = ctx.liveness(&holder)?
        {
            ctx.tx.add_doubt(asker, token)?;
            ctx.record_death_later(holder)?;
        }
    }
    Ok(())
}
