//! Claiming one key, the first free one of several, or all of several; at once, or in line.
//!
//! First every key is assessed, then the choice is made, then everything needed is locked, then all keys are
//! granted in the same transaction. So a refusal locks nothing and leaves no partial grant. What it says was all true
//! at one moment: where rows are locked one by one, keys are assessed in a snapshot of the store, and again under
//! the locks only to be granted.

use super::choice::{Choice, FIRST, OwnKey, choose, refusal_of};
use super::grant::{GrantPlan, Receiver, answer, carry_out};
use super::request::{CheckOutcome, ClaimRequest, Grant, Pick, WaitingCaller, check_note};
use super::rivals::{Asker, end_holds, end_sessions, locks_of};
use super::waiter::{leave, wait_in_line};
use crate::caller::{self, ActFor, Caller, Purpose, ResolvedBy};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Reply, Service};
use tenure_core::id::SessionId;
use tenure_core::key::Key;
use tenure_core::liveness::Liveness;
use tenure_core::store::{Lock, TxMode};

impl Service<'_> {
    /// Claims at once, or fails.
    pub fn claim(&mut self, act_for: &ActFor, request: &ClaimRequest) -> Reply<Vec<Grant>> {
        check_note(request.note.as_deref())?;
        self.transact(self.assessing(), |ctx| {
            ctx.wanted = first_keys(request);
            let caller = caller::require(ctx, act_for, Purpose::Receive)?;
            let asker = Asker {
                id: caller.session.id,
                blind: caller.blind,
            };
            match choose(ctx, asker, request, None)? {
                Choice::Take(taken) => hand_out(ctx, &Receiver::of(&caller), taken, request),
                choice => {
                    if choice.spans_keys(request) {
                        ctx.in_one_state()?;
                    }
                    Err(refusal_of(ctx, Some(caller.session.token()), choice)?)
                }
            }
        })
    }

    /// Checks whether a waiter's turn has come; adds it to the line if it is in none.
    pub fn claim_turn(
        &mut self,
        act_for: &ActFor,
        request: &ClaimRequest,
        waiting: &WaitingCaller,
    ) -> Reply<CheckOutcome> {
        check_note(request.note.as_deref())?;
        self.transact(TxMode::Read, |ctx| {
            ctx.wanted = first_keys(request);
            let caller = caller::require(ctx, act_for, Purpose::Receive)?;
            still_lives(ctx, &caller)?;
            let asker = Asker {
                id: caller.session.id,
                blind: caller.blind,
            };
            let own = caller.session.process.clone();
            match choose(ctx, asker, request, Some(waiting))? {
                Choice::Take(taken) => {
                    leave(ctx, waiting.ticket)?;
                    hand_out(ctx, &Receiver::of(&caller), taken, request).map(CheckOutcome::Granted)
                }
                choice => {
                    let token = Some(caller.session.token());
                    wait_in_line(ctx, token, request, waiting, choice, own).map(CheckOutcome::Wait)
                }
            }
        })
    }
}

/// The keys that are read together at first.
fn first_keys(request: &ClaimRequest) -> Vec<Key> {
    let keys = request.keys.iter().filter(|key| !key.has_other_names());
    keys.take(FIRST).cloned().collect()
}

/// Only a live session is granted anything: its process is checked again each time.
pub(super) fn still_lives(ctx: &mut Ctx<'_>, caller: &Caller) -> Result<(), Stop> {
    if caller.itself_by == Some(ResolvedBy::Namespace) {
        return Ok(());
    }
    let own = ctx.own.take();
    let liveness = ctx.liveness(&caller.session)?;
    if let Liveness::Dead(proof) = liveness {
        ctx.effects.dead.push(caller.session.id);
        return Err(Error::NotLive {
            handle: caller.session.handle.to_string(),
            state: format!("is dead: {proof}"),
        }
        .into());
    }
    ctx.own = own;
    Ok(())
}

pub(super) fn hand_out(
    ctx: &mut Ctx<'_>,
    receiver: &Receiver<'_>,
    taken: Vec<OwnKey>,
    request: &ClaimRequest,
) -> Result<Vec<Grant>, Stop> {
    lock_taken(ctx, receiver.session.id, &taken, request.pick)?;
    end_rivals(ctx, receiver, &taken)?;
    let mut session = receiver.session.clone();
    if receiver.renews && taken.iter().any(|one| matches!(one, OwnKey::Granted(_))) {
        caller::renew(ctx, &mut session)?;
    }
    let receiver = &Receiver {
        session: &session,
        reason: receiver.reason.clone(),
        ..*receiver
    };
    let mut grants = Vec::new();
    for one in taken {
        grants.push(match one {
            OwnKey::Granted(steps) => carry_out(ctx, receiver, &steps, request)?,
            OwnKey::Mine { record, retry } => answer(ctx, &record, !retry)?,
        });
    }
    Ok(grants)
}

/// Locks what these grants change and what they were decided by: a session that lost a key because it was
/// silent may have reported since. Of any of several keys only the chosen one is locked: one that another was granted
/// first keeps nobody else waiting.
fn lock_taken(ctx: &mut Ctx<'_>, to: SessionId, taken: &[OwnKey], pick: Pick) -> Result<(), Stop> {
    let locks = |ctx: &mut Ctx<'_>| {
        let mut locks = vec![Lock::Session(to)];
        for one in taken {
            let OwnKey::Granted(steps) = one else {
                continue;
            };
            let key = &steps.record.key;
            locks.append(&mut ctx.space_locks(key, None)?);
            locks.push(Lock::Key(key.clone()));
            locks.extend(
                steps
                    .holder
                    .iter()
                    .map(|(holder, _)| Lock::Session(holder.id)),
            );
            locks.append(&mut locks_of(&steps.rivals));
        }
        Ok(locks)
    };
    match pick {
        Pick::All => ctx.lock_with(locks),
        Pick::Any => ctx.lock_chosen_with(locks),
    }
}

/// Ends what gone rivals left open, once for all keys, because several keys may have the same rival.
fn end_rivals(ctx: &mut Ctx<'_>, receiver: &Receiver<'_>, taken: &[OwnKey]) -> Result<(), Stop> {
    let mut granted: Vec<&GrantPlan> = Vec::new();
    for one in taken {
        if let OwnKey::Granted(steps) = one {
            granted.push(steps);
        }
    }
    let wanted = |key: &Key| granted.iter().any(|steps| steps.record.key == *key);
    let mut ended: Vec<Key> = Vec::new();
    for steps in &granted {
        let mut gone = steps.rivals.clone();
        gone.retain(|(hold, _, _)| !wanted(&hold.key) && !ended.contains(&hold.key));
        ended.extend(gone.iter().map(|(hold, _, _)| hold.key.clone()));
        end_holds(ctx, &gone, &steps.record.key, receiver.session)?;
    }
    for steps in &granted {
        end_sessions(ctx, &steps.rivals, &steps.record.key, receiver.session)?;
    }
    Ok(())
}
