//! Choosing: the outcome of a request for one key or several, before anything is locked or granted.
//!
//! What is stored about the keys is read together (`snapshot`), each key is assessed by the rule of
//! [`tenure_core::claim::decide`] (`assess`), and of the findings one choice is made here: what is taken, why it is
//! refused, or whose turn it is.

mod assess;
mod snapshot;

use std::time::Duration;

use self::assess::{Finding, Refusal, assess};
pub(super) use self::snapshot::FIRST;
use self::snapshot::{ClaimSnapshot, groups};
use super::grant::GrantPlan;
use super::request::{ClaimRequest, Pick, WaitingCaller};
use super::rivals::Asker;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::unseen::Unseen;
use tenure_core::claim::ClaimRecord;
use tenure_core::id::{Epoch, SessionToken, Ticket};
use tenure_core::key::Key;
use tenure_core::line::{Fitness, LinePosition, Waiter, line_position};
use tenure_core::store::Lock;

/// The outcome for a request.
pub(super) enum Choice {
    Take(Vec<OwnKey>),
    /// Refused, temporarily or permanently.
    Refuse(Box<Refusal>),
    /// The keys are free, but it is another waiter's turn.
    Line {
        /// Keys for which the next waiter must still be recorded.
        unnoted: Vec<(Epoch, Waiter)>,
        /// How long that turn may last.
        left: Duration,
    },
}

impl Choice {
    /// Whether it depends on more than the row of one key. A holder that cannot be seen is noted in the store first, so
    /// that such a refusal is not of one state.
    pub(super) fn spans_keys(&self, request: &ClaimRequest) -> bool {
        let is_noted = matches!(self, Self::Refuse(refusal) if refusal.unseen.is_some());
        let is_one = request.keys.len() == 1 && !request.keys[0].has_other_names();
        !is_one && !is_noted
    }
}

/// A key that the asker gets, or already has.
pub(super) enum OwnKey {
    Granted(Box<GrantPlan>),
    /// As it was read when that was found: its row is not locked, so another read may find another holder.
    Mine {
        record: Box<ClaimRecord>,
        retry: bool,
    },
}

pub(super) fn choose(
    ctx: &mut Ctx<'_>,
    asker: Asker,
    request: &ClaimRequest,
    waiting: Option<&WaitingCaller>,
) -> Result<Choice, Stop> {
    let findings = assess_all(ctx, asker, request)?;
    let choice = match request.pick {
        Pick::All => choose_all(findings),
        Pick::Any => choose_any(findings),
    };
    match (choice, waiting) {
        (Choice::Take(taken), Some(waiting)) => wait_for_turn(ctx, taken, waiting),
        (choice, _) => Ok(choice),
    }
}

/// Assesses all keys and gathers everything that must be checked, so that it is checked in one pass. For any-of
/// requests, keys after the first free one need no check.
fn assess_all(
    ctx: &mut Ctx<'_>,
    asker: Asker,
    request: &ClaimRequest,
) -> Result<Vec<Finding>, Stop> {
    if request.pick == Pick::Any
        && let Some(chosen) = assess_chosen(ctx, asker, request)?
    {
        return Ok(vec![chosen]);
    }
    let mut findings = Vec::new();
    let mut unseen = Unseen::default();
    for group in groups(&request.keys) {
        let known = ClaimSnapshot::read(ctx, asker.id, group)?;
        for key in group {
            // Of several refusals the first is shown.
            let shown = request.pick == Pick::All || findings.is_empty();
            let finding = assess(ctx, asker, key, request, &known, shown);
            let finding = unseen.gather(finding)?;
            let is_free = matches!(finding, Some(Finding::Free(_)));
            findings.extend(finding);
            if is_free && ends_at_first_free(request) && unseen.is_empty() {
                return Ok(findings);
            }
        }
    }
    unseen.look()?;
    Ok(findings)
}

/// A retry finds what its request was granted before, wherever that is.
fn ends_at_first_free(request: &ClaimRequest) -> bool {
    request.pick == Pick::Any && request.request.is_none()
}

/// A key that an earlier attempt chose and this one locked, if it is free. The others are not read again under the
/// lock; only if all that were chosen are taken, all are looked at again.
fn assess_chosen(
    ctx: &mut Ctx<'_>,
    asker: Asker,
    request: &ClaimRequest,
) -> Result<Option<Finding>, Stop> {
    let is_locked = |key: &&Key| ctx.locked.contains(&Lock::Key((*key).clone()));
    let chosen: Vec<Key> = request.keys.iter().filter(is_locked).cloned().collect();
    // A waiter that joins all lines locks them all.
    if !ends_at_first_free(request) || chosen.len() > FIRST {
        return Ok(None);
    }
    let known = ClaimSnapshot::read(ctx, asker.id, &chosen)?;
    for key in &chosen {
        let finding = assess(ctx, asker, key, request, &known, false)?;
        if matches!(finding, Finding::Free(_)) {
            return Ok(Some(finding));
        }
    }
    Ok(None)
}

/// The first refusal decides. Keys that are free, or refused only because of survivors, stay open to others.
fn choose_all(findings: Vec<Finding>) -> Choice {
    let mut taken = Vec::new();
    let mut first: Option<Box<Refusal>> = None;
    let mut open = Vec::new();
    for finding in findings {
        match finding {
            Finding::Free(steps) => {
                open.push(steps.record.key.clone());
                taken.push(OwnKey::Granted(steps));
            }
            Finding::Mine { record, retry } => taken.push(OwnKey::Mine { record, retry }),
            Finding::Refused(mut refusal) => {
                open.append(&mut refusal.open_to_others);
                first.get_or_insert(refusal);
            }
        }
    }
    match first {
        None => Choice::Take(taken),
        Some(mut refusal) => {
            refusal.open_to_others = open;
            Choice::Refuse(refusal)
        }
    }
}

/// A retry of the same request comes first; a key that the asker held before is not free.
fn choose_any(findings: Vec<Finding>) -> Choice {
    let count = findings.len();
    let mut first_free = None;
    let mut refusals: Vec<Refusal> = Vec::new();
    for finding in findings {
        match finding {
            Finding::Mine {
                record,
                retry: true,
            } => {
                return Choice::Take(vec![OwnKey::Mine {
                    record,
                    retry: true,
                }]);
            }
            Finding::Mine { record, .. } => {
                let (key, epoch) = (record.key, record.epoch);
                refusals.push(Refusal::permanently(Error::AlreadyHeld { key, epoch }));
            }
            Finding::Free(steps) => {
                first_free.get_or_insert(steps);
            }
            Finding::Refused(refusal) => refusals.push(*refusal),
        }
    }
    let mut refusals = refusals.into_iter();
    match (first_free, refusals.next()) {
        (Some(steps), _) => Choice::Take(vec![OwnKey::Granted(steps)]),
        (None, Some(first)) => Choice::Refuse(Box::new(together(first, refusals, count))),
        // No key was asked for.
        (None, None) => Choice::Take(Vec::new()),
    }
}

/// Combines several refusals: any of them may end first. The first is shown.
fn together(mut all: Refusal, others: impl Iterator<Item = Refusal>, count: usize) -> Refusal {
    for refusal in others {
        all.waits |= refusal.waits;
        all.watch.extend(refusal.watch);
        all.open_to_others.extend(refusal.open_to_others);
        all.at_most = match (all.at_most, refusal.at_most) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
    if count > 1 {
        let first = Box::new(all.error);
        all.error = Error::NoneFree { count, first };
    }
    all
}

/// Free keys are taken only in turn.
fn wait_for_turn(
    ctx: &mut Ctx<'_>,
    taken: Vec<OwnKey>,
    waiting: &WaitingCaller,
) -> Result<Choice, Stop> {
    let me = waiting.ticket.unwrap_or(Ticket(u64::MAX));
    let mut unnoted = Vec::new();
    let mut longest: Option<Duration> = None;
    for one in &taken {
        let OwnKey::Granted(steps) = one else {
            continue;
        };
        let key = &steps.record.key;
        let mut line = line_of(ctx, key)?;
        if let LinePosition::After {
            ticket,
            noted,
            left,
        } = line_position(&line, me, steps.record.epoch, &ctx.now, ctx.policy.turn)
        {
            if !noted && let Some(at) = line.iter().position(|(one, _)| one.ticket == ticket) {
                unnoted.push((steps.record.epoch, line.swap_remove(at).0));
            }
            longest = Some(longest.map_or(left, |other| other.max(left)));
        }
    }
    Ok(match longest {
        None => Choice::Take(taken),
        Some(left) => Choice::Line { unnoted, left },
    })
}

/// The line for a key, each waiter with whether it can act. Dead waiters are removed.
fn line_of(ctx: &mut Ctx<'_>, key: &Key) -> Result<Vec<(Waiter, Fitness)>, Stop> {
    let queue = ctx.tx.line(key)?;
    let mut unseen = Unseen::default();
    let mut line = Vec::new();
    for waiter in queue {
        if let Some(fitness) = unseen.gather(ctx.fitness(&waiter.process))? {
            line.push((waiter, fitness));
        }
    }
    unseen.look()?;
    let dead: Vec<Ticket> = line
        .iter()
        .filter(|(_, fitness)| *fitness == Fitness::Dead)
        .map(|(waiter, _)| waiter.ticket)
        .collect();
    if !dead.is_empty() {
        ctx.lock(dead.iter().copied().map(Lock::Ticket))?;
    }
    for ticket in dead {
        ctx.tx.leave_line(ticket)?;
    }
    Ok(line)
}

/// A refusal. A holder that is invisible from inside a sandbox is recorded for the agent outside, if there is
/// one.
pub(super) fn give_up(
    ctx: &mut Ctx<'_>,
    caller: Option<SessionToken>,
    refusal: Refusal,
) -> Result<Stop, Stop> {
    if let (Some(unseen), Some(caller)) = (&refusal.unseen, caller) {
        ctx.write()?;
        ctx.tx.add_doubt(caller.id, unseen.token())?;
    }
    Ok(refusal.error.into())
}

/// The error for a caller that does not wait.
pub(super) fn refusal_of(
    ctx: &mut Ctx<'_>,
    caller: Option<SessionToken>,
    choice: Choice,
) -> Result<Stop, Stop> {
    match choice {
        Choice::Refuse(refusal) => give_up(ctx, caller, *refusal),
        Choice::Take(_) | Choice::Line { .. } => {
            Ok(Stop::Store(tenure_core::store::StoreError::Conflict))
        }
    }
}
