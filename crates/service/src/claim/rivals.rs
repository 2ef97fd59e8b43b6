//! Rivals: keys held by others that can match the same file, or that spell the same item.
//!
//! A session that gets a path, by whatever act, must have no live rival. The holds of rivals that are gone end
//! as taken, so they are not granted again when their session comes back. A takeover also takes the same
//! holder's overlapping holds; otherwise two overlapping holds would protect each other.

use super::grant::{Rival, end, holder_of, log_end, shown};
use crate::caller::Caller;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use tenure_core::claim::{
    ClaimOptions, ClaimRecord, EndedBy, Hold, PreviousHolder, Verdict, decide,
};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::SessionId;
use tenure_core::key::Key;
use tenure_core::notice::NoticeKind;
use tenure_core::reason::Reason;
use tenure_core::repository::Home;
use tenure_core::session::{Session, Standing};
use tenure_core::store::Lock;
use tenure_core::text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asker {
    pub(super) id: SessionId,
    pub(super) blind: bool,
}

/// What overlaps a path.
pub(super) enum Rivals {
    /// No live rival; these holds may be ended.
    Gone(Vec<Rival>),
    /// A rival that is alive, or may be.
    Living(Box<LivingRival>),
}

pub(super) struct LivingRival {
    pub(super) error: Error,
    pub(super) session: Session,
    pub(super) standing: Standing,
    pub(super) key: Key,
}

/// Finds the rivals for a key.
///
/// `home` is the repository of a hold that is being granted again.
pub(super) fn rivals(
    ctx: &mut Ctx<'_>,
    asker: Asker,
    key: &Key,
    home: Option<&Home>,
) -> Result<Rivals, Stop> {
    let beside = ctx.beside(key, home)?;
    rivals_among(ctx, asker, key, beside)
}

fn rivals_among(
    ctx: &mut Ctx<'_>,
    asker: Asker,
    key: &Key,
    beside: Vec<ClaimRecord>,
) -> Result<Rivals, Stop> {
    let mut gone = Vec::new();
    let ask = ClaimOptions {
        blind: asker.blind,
        ..ClaimOptions::default()
    };
    for rival in beside {
        let Some((session, standing)) = holder_of(ctx, &rival, asker.id)? else {
            continue;
        };
        let verdict = decide(&rival, asker.id, None, Some(&standing), &ask);
        let error = match (verdict, rival.current()) {
            (Verdict::Grant(previous), Some(hold)) => {
                gone.push((hold.clone(), session, previous));
                continue;
            }
            (Verdict::CannotTell(doubt), _) => Error::CannotTell {
                handle: session.handle.to_string(),
                doubt,
                key: Some(key.clone()),
            },
            _ => Error::Overlaps {
                key: key.clone(),
                claim: Box::new(shown(ctx, &rival)?),
            },
        };
        let key = rival.key.clone();
        return Ok(Rivals::Living(Box::new(LivingRival {
            error,
            session,
            standing,
            key,
        })));
    }
    Ok(Rivals::Gone(gone))
}

/// The locks needed to end the holds of gone rivals: their keys, and the sessions that are only silent, because
/// those may report again.
pub(super) fn locks_of(gone: &[Rival]) -> Vec<Lock> {
    let mut locks = Vec::new();
    for (hold, session, previous) in gone {
        locks.push(Lock::Key(hold.key.clone()));
        if matches!(previous, PreviousHolder::Expired(_)) {
            locks.push(Lock::Session(session.id));
        }
    }
    locks
}

/// Ends what gone rivals left open: first all holds, then their sessions, because one session may have several
/// holds and its end ends the rest.
pub(super) fn end_gone(
    ctx: &mut Ctx<'_>,
    gone: &[Rival],
    key: &Key,
    taker: &Session,
) -> Result<(), Stop> {
    end_holds(ctx, gone, key, taker)?;
    end_sessions(ctx, gone, key, taker)
}

/// Ends the holds of rivals that are gone.
pub(super) fn end_holds(
    ctx: &mut Ctx<'_>,
    gone: &[Rival],
    key: &Key,
    taker: &Session,
) -> Result<(), Stop> {
    for (hold, _, _) in gone {
        end(ctx, hold, EndedBy::Taken)?;
        log_end(ctx, hold, EndedBy::Taken, &reason(key, taker))?;
    }
    Ok(())
}

/// Schedules the death records of rivals, and notifies those that may be alive. Their holds ended as taken.
pub(super) fn end_sessions(
    ctx: &mut Ctx<'_>,
    gone: &[Rival],
    key: &Key,
    taker: &Session,
) -> Result<(), Stop> {
    for (hold, session, previous) in gone {
        if matches!(previous, PreviousHolder::Gone(_)) {
            ctx.effects.dead.push(session.id);
        } else {
            let why = reason(key, taker);
            let lost = text::name(hold.key.as_str());
            let message = format!("you lost {lost} (epoch {}): {why}", hold.epoch);
            let about = Some((&hold.key, hold.epoch));
            ctx.notify(session.id, NoticeKind::Lost, message, Some(taker.id), about)?;
        }
    }
    Ok(())
}

fn reason(key: &Key, taker: &Session) -> String {
    let key = text::name(key.as_str());
    format!("{} took {key}, which overlaps it", taker.handle)
}

/// The gone rivals of a path that is handed to a session; a live rival is an error.
pub(super) fn gone_rivals(
    ctx: &mut Ctx<'_>,
    hold: &Hold,
    to: &Session,
) -> Result<Vec<Rival>, Stop> {
    let beside = ctx.beside(&hold.key, hold.home.as_ref())?;
    gone_among(ctx, &hold.key, to, beside)
}

fn gone_among(
    ctx: &mut Ctx<'_>,
    key: &Key,
    to: &Session,
    beside: Vec<ClaimRecord>,
) -> Result<Vec<Rival>, Stop> {
    let asker = Asker {
        id: to.id,
        blind: false,
    };
    match rivals_among(ctx, asker, key, beside)? {
        Rivals::Gone(gone) => Ok(gone),
        Rivals::Living(living) => Err(living.error.into()),
    }
}

/// The holds that must end for a takeover of a path.
pub(super) struct Takeover {
    /// Holds of sessions that are gone.
    pub(super) gone: Vec<Rival>,
    /// Other holds of the previous holder, whether it is alive or not.
    pub(super) along: Vec<Hold>,
}

/// Finds the holds that must end for a takeover; a third session that is alive is an error.
pub(super) fn way_from(ctx: &mut Ctx<'_>, taken: &Hold, to: &Session) -> Result<Takeover, Stop> {
    let is_theirs = |record: &ClaimRecord| {
        let hold = record.current();
        hold.is_some_and(|hold| hold.session == taken.session)
    };
    let key = &taken.key;
    let beside = ctx.beside(key, taken.home.as_ref())?;
    let (theirs, others) = beside.into_iter().partition::<Vec<_>, _>(is_theirs);
    Ok(Takeover {
        gone: gone_among(ctx, key, to, others)?,
        along: theirs.into_iter().filter_map(|held| held.newest).collect(),
    })
}

/// Ends overlapping holds of the previous holder, logs each one and notifies the holder.
pub(super) fn end_along(
    ctx: &mut Ctx<'_>,
    along: &[Hold],
    (key, taker): (&Key, &Caller),
    stated: &Reason,
) -> Result<(), Stop> {
    let why = reason(key, &taker.session);
    for hold in along {
        end(ctx, hold, EndedBy::Taken)?;
        let by = EndedBy::Taken.as_str();
        ctx.log(&NewEvent {
            actor: Some(taker.session.id),
            key: Some(hold.key.clone()),
            epoch: Some(hold.epoch),
            reason: Some(stated.to_string()),
            ..ctx.event(EventKind::Freed, Some(hold.session), by, why.clone())
        })?;
        let (lost, epoch) = (&hold.key, hold.epoch);
        let message = format!(
            "you lost {} (epoch {epoch}): {why}. Reason: {}",
            text::name(lost.as_str()),
            text::quoted(stated.as_str())
        );
        let from = Some(taker.session.id);
        let about = Some((lost, epoch));
        ctx.notify(hold.session, NoticeKind::Lost, message, from, about)?;
    }
    Ok(())
}
