//! Refuses a native id that belongs elsewhere, and logs both sides.

use tenure_core::behalf::Relation;
use tenure_core::conversation::Conversation;
use tenure_core::conversation::closing::can_come_back;
use tenure_core::conversation::contamination::{Contaminated, Facts, check};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::hint::Hint;
use tenure_core::id::worker_name;
use tenure_core::session::Session;
use tenure_core::store::Lock;

use super::record::keep;
use super::request::NewNative;
use crate::caller::{self, Caller};
use crate::context::{Ctx, Stop};
use crate::error::Error;

/// Refuses a native id that belongs to another conversation, to a live session other than the
/// writer, or to a subagent. A native id of a permanently closed conversation is moved from that
/// one.
pub(super) fn refuse(
    ctx: &mut Ctx<'_>,
    by: Option<&Caller>,
    new: &NewNative<'_>,
) -> Result<(), Stop> {
    let (agent, root, native_id) = (new.agent, new.root, new.native_id);
    let Some((wrong, why)) = wrong(ctx, new)? else {
        return take_from_closed(ctx, new);
    };
    let other = match &wrong {
        Contaminated::Owned(session) => Some(session.id),
        Contaminated::Subagent | Contaminated::Held(_) => None,
    };
    let own = worker_name(agent.as_str(), new.role.label());
    let what = format!("the conversation of {own} on {root} was not set: {native_id} is {why}");
    let session = new.author.session;
    let actor = other.or_else(|| by.and_then(|caller| caller.actor));
    let event = NewEvent {
        actor: actor.filter(|actor| Some(*actor) != session),
        reason: by.and_then(Caller::reason_text),
        key: Some(root.clone()),
        ..ctx.event(
            EventKind::Contamination,
            session,
            "conversation",
            what.clone(),
        )
    };
    ctx.log(&event)?;
    if let Contaminated::Held(item) = wrong {
        ctx.log(&NewEvent {
            key: Some(item),
            ..event
        })?;
    }
    Err(Error::Invalid {
        what,
        hint: Hint::run("log", [root.as_str()], "to see both sides"),
    }
    .into())
}

/// Where a native id belongs, if not to this conversation; and that for people.
pub(super) fn wrong(
    ctx: &mut Ctx<'_>,
    new: &NewNative<'_>,
) -> Result<Option<(Contaminated<Session>, String)>, Stop> {
    let holder = holder(ctx, new)?.filter(|other| !is_over(ctx, other));
    let owner = owner(ctx, new)?;
    let facts = Facts {
        holder: holder.as_ref().map(|other| &other.item),
        owner,
    };
    let Err(wrong) = check(new.agent, new.native_id, facts) else {
        return Ok(None);
    };
    let why = match &wrong {
        Contaminated::Subagent => "a subagent's id, not a conversation of its own".into(),
        Contaminated::Held(item) => {
            let role = holder.as_ref().and_then(|other| other.role.label());
            let other = worker_name(new.agent.as_str(), role);
            format!("the conversation of {other} on {item}")
        }
        Contaminated::Owned(session) => {
            format!("the conversation of {}, which is live", session.handle)
        }
    };
    Ok(Some((wrong, why)))
}

/// Another conversation that has the native id.
fn holder(ctx: &mut Ctx<'_>, new: &NewNative<'_>) -> Result<Option<Conversation>, Stop> {
    let found = ctx.tx.conversation_with(new.agent, new.native_id)?;
    let is_own = |other: &Conversation| other.item == *new.root && other.role == *new.role;
    Ok(found.filter(|other| !is_own(other)))
}

/// Whether a conversation is closed for good.
pub(super) fn is_over(ctx: &Ctx<'_>, other: &Conversation) -> bool {
    other.closed_at.is_some() && !can_come_back(other, ctx.now.wall, ctx.policy.grace)
}

/// Takes the native id from a conversation that is closed for good.
pub(super) fn take_from_closed(ctx: &mut Ctx<'_>, new: &NewNative<'_>) -> Result<(), Stop> {
    if let Some(other) = holder(ctx, new)?
        && is_over(ctx, &other)
    {
        ctx.lock([Lock::Conversation(other.item.clone())])?;
        keep(
            ctx,
            Conversation {
                current: None,
                ..other
            },
        )?;
    }
    Ok(())
}

/// The session that is in the native id, if it is or may be alive and is not the writer's own.
fn owner(ctx: &mut Ctx<'_>, new: &NewNative<'_>) -> Result<Option<Session>, Stop> {
    let Some(id) = ctx.tx.native_owner(new.agent, new.native_id)? else {
        return Ok(None);
    };
    let session = ctx.session(id)?;
    let session = ctx.record_death_if_proved(session)?;
    if !session.is_open() || ctx.standing(&session)?.is_gone() {
        return Ok(None);
    }
    let is_own = new.author.session == Some(session.id)
        || caller::relation(ctx, &session, new.writer)? != Relation::Stranger;
    Ok((!is_own).then_some(session))
}
