//! Releasing, handing off, taking over and guarding.

use super::grant::{Terms, answer, end, grant, log_end, shown, taken, tell_loser, view_of};
use super::guard::{already_held, guard, held_record, live_receiver, not_lost, own_hold};
use super::rivals::{Asker, Rivals, end_along, end_gone, gone_rivals, locks_of, rivals, way_from};

use super::request::{
    Grant, GuardRequest, HandoffRequest, ReleaseRequest, TakeoverRequest, check_note,
};
use crate::caller::behalf;
use crate::caller::{self, ActFor, Caller, Purpose};
use crate::claim::view::ClaimView;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Reply, Service};
use tenure_core::claim::{ClaimRecord, EndedBy, Hold, Means, TakenAlong};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::key::Key;
use tenure_core::notice::NoticeKind;
use tenure_core::process::Survivors;
use tenure_core::store::{Lock, TxMode};
use tenure_core::text;

impl Service<'_> {
    /// Releases a key, or marks its item as done.
    pub fn release(&mut self, act_for: &ActFor, request: &ReleaseRequest) -> Reply<ClaimView> {
        self.transact(TxMode::Write, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Act)?;
            let (mut record, hold) = own_hold(ctx, &caller, &request.key, request.epoch)?;
            ctx.lock([Lock::Key(hold.key.clone()), Lock::Session(hold.session)])?;
            may_give_up(ctx, &caller, &hold)?;
            let (by, kind) = if request.done {
                (EndedBy::Done, EventKind::Done)
            } else {
                (EndedBy::Release, EventKind::Released)
            };
            let end = end(ctx, &hold, by)?;
            let evidence = match caller.actor {
                Some(actor) if actor == hold.session => "released by its holder".to_owned(),
                Some(_) => "released on its behalf".to_owned(),
                None => "released on its behalf from outside any session".to_owned(),
            };
            log_act(ctx, &caller, kind, &hold, evidence)?;
            record.newest = Some(Hold {
                ended: Some(end),
                ..hold
            });
            shown(ctx, &record)
        })
    }

    pub fn handoff(&mut self, act_for: &ActFor, request: &HandoffRequest) -> Reply<ClaimView> {
        check_note(request.note.as_deref())?;
        self.transact(self.assessing(), |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Act)?;
            let (_, hold) = own_hold(ctx, &caller, &request.key, request.epoch)?;
            let to = live_receiver(ctx, &request.to)?;
            if to.id == caller.session.id {
                return Err(already_held(&hold).into());
            }
            let key = hold.key.clone();
            let gone = gone_rivals(ctx, &hold, &to)?;
            ctx.lock_with(|ctx| {
                let mut locks = ctx.space_locks(&key, hold.home.as_ref())?;
                locks.push(Lock::Key(key.clone()));
                locks.append(&mut locks_of(&gone));
                locks.extend([Lock::Session(hold.session), Lock::Session(to.id)]);
                Ok(locks)
            })?;
            may_give_up(ctx, &caller, &hold)?;
            end(ctx, &hold, EndedBy::Handoff)?;
            end_gone(ctx, &gone, &key, &to)?;
            log_act(
                ctx,
                &caller,
                EventKind::Handed,
                &hold,
                format!("handed to {}", to.handle),
            )?;
            let record = ctx.tx.lock_claim(&key)?;
            let terms = Terms {
                means: Means::Handoff,
                request: None,
                note: request.note.clone(),
                taken_from: None,
                actor: Some(caller.session.id),
                reason: caller.reason.clone(),
            };
            let granted = grant(ctx, &record, &to, terms)?;
            let message = format!(
                "{} handed you {} (epoch {})",
                caller.session.handle,
                text::name(key.as_str()),
                granted.epoch
            );
            let about = Some((&key, granted.epoch));
            ctx.notify(
                to.id,
                NoticeKind::Handed,
                message,
                Some(caller.session.id),
                about,
            )?;
            view_of(ctx, &key)
        })
    }

    /// Takes a key from its holder, with a reason; both are logged.
    pub fn takeover(&mut self, act_for: &ActFor, request: &TakeoverRequest) -> Reply<Grant> {
        check_note(request.note.as_deref())?;
        self.transact(self.assessing(), |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Receive)?;
            takeover(ctx, &caller, request)
        })
    }

    /// Whether the caller may write to what a key protects.
    pub fn guard(&mut self, act_for: &ActFor, request: &GuardRequest) -> Reply<ClaimView> {
        self.transact(TxMode::Read, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Guard)?;
            guard(ctx, &caller, request)
        })
    }

    /// Whether the caller, if it is a session, still works on a claim that it lost.
    pub fn guard_lost(&mut self, act_for: &ActFor) -> Reply<()> {
        self.transact(TxMode::Read, |ctx| {
            let caller = match &act_for.session {
                Some(_) => Some(caller::require(ctx, act_for, Purpose::Guard)?),
                None => caller::identify(ctx)?,
            };
            match caller {
                Some(caller) => not_lost(ctx, &caller),
                None => Ok(()),
            }
        })
    }
}

/// Fails if the store lets only another role act for the holder.
fn may_give_up(ctx: &mut Ctx<'_>, caller: &Caller, hold: &Hold) -> Result<(), Stop> {
    if caller.is_itself() {
        return Ok(());
    }
    let holder = ctx.session(hold.session)?;
    behalf::may_change(ctx, &holder)
}

fn log_act(
    ctx: &mut Ctx<'_>,
    caller: &Caller,
    kind: EventKind,
    hold: &Hold,
    evidence: String,
) -> Result<(), Stop> {
    let mechanism = match kind {
        EventKind::Done => "done",
        EventKind::Handed => "handoff",
        _ => "release",
    };
    ctx.log(&NewEvent {
        actor: caller.actor.filter(|actor| *actor != hold.session),
        key: Some(hold.key.clone()),
        epoch: Some(hold.epoch),
        reason: caller.reason_text(),
        ..ctx.event(kind, Some(hold.session), mechanism, evidence)
    })
}

fn takeover(ctx: &mut Ctx<'_>, caller: &Caller, request: &TakeoverRequest) -> Result<Grant, Stop> {
    let record = held_record(ctx, &request.key, None)?;
    let key = record.key.clone();
    let Some(hold) = record.current().cloned() else {
        return Err(if record.is_done() {
            Error::Done {
                key,
                claim: Box::new(shown(ctx, &record)?),
            }
        } else {
            free_or_overlapping(ctx, caller, key)?
        }
        .into());
    };
    if hold.session == caller.session.id {
        return Err(already_held(&hold).into());
    }
    let holder = ctx.session(hold.session)?;
    let expected = match &request.from {
        Some(name) => caller::find(ctx, name)?.id == holder.id,
        None => true,
    };
    if !expected || request.epoch.is_some_and(|epoch| epoch != record.epoch) {
        let claim = Box::new(shown(ctx, &record)?);
        return Err(Error::ChangedHands { key, claim }.into());
    }
    take(ctx, caller, &record, &hold, request)
}

/// Why a key without a holder cannot be taken over: it can be claimed, unless a live claim overlaps it.
fn free_or_overlapping(ctx: &mut Ctx<'_>, caller: &Caller, key: Key) -> Result<Error, Stop> {
    let asker = Asker {
        id: caller.session.id,
        blind: caller.blind,
    };
    Ok(match rivals(ctx, asker, &key, None)? {
        Rivals::Living(rival) => rival.error,
        Rivals::Gone(_) => Error::Free { key },
    })
}

/// Takes over a hold and the same session's overlapping holds, unless a third session is in the way.
fn take(
    ctx: &mut Ctx<'_>,
    caller: &Caller,
    record: &ClaimRecord,
    hold: &Hold,
    request: &TakeoverRequest,
) -> Result<Grant, Stop> {
    let (key, taker, reason) = (&record.key, &caller.session, &request.reason);
    let holder = ctx.session(hold.session)?;
    let way = way_from(ctx, hold, taker)?;
    let left = if ctx.standing(&holder)?.is_gone() {
        ctx.survivors(&holder, holder.life)?
    } else {
        Survivors::default()
    };
    ctx.lock_with(|ctx| {
        let mut locks = ctx.space_locks(key, hold.home.as_ref())?;
        let along = way.along.iter().map(|hold| &hold.key);
        locks.extend(along.chain([key]).cloned().map(Lock::Key));
        locks.append(&mut locks_of(&way.gone));
        locks.push(Lock::Session(taker.id));
        Ok(locks)
    })?;
    end(ctx, hold, EndedBy::Taken)?;
    ctx.note_untold(&holder, hold)?;
    end_gone(ctx, &way.gone, key, taker)?;
    let why = format!("{} took it over: {reason}", taker.handle);
    log_end(ctx, hold, EndedBy::Taken, &why)?;
    tell_loser(ctx, &holder, record, taker, &text::quoted(reason.as_str()))?;
    end_along(ctx, &way.along, (key, caller), reason)?;
    let mut from = taken(ctx, &holder, hold, EndedBy::Taken, reason.to_string())?;
    from.also_ended = way.along.iter().map(TakenAlong::of).collect();
    (from.survivors, from.survivors_unsure) = (left.shown(), left.doubt);
    let record = ctx.tx.lock_claim(key)?;
    let terms = Terms {
        means: Means::Takeover,
        request: None,
        note: request.note.clone(),
        taken_from: Some(from),
        actor: caller.actor,
        reason: Some(reason.clone()),
    };
    grant(ctx, &record, taker, terms)?;
    let record = ctx.claim_record(key)?;
    let mut view = answer(ctx, &record, false)?;
    let left = ctx
        .may_be_written_for(std::slice::from_ref(key))?
        .remove(key);
    view.may_write_until = left.map(|left| ctx.now.wall.plus(left));
    Ok(view)
}
