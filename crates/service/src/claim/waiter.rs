//! Waiting in line for keys: joining, recording whose turn it is, and leaving.

use super::choice::{Choice, give_up};
use super::request::{ClaimRequest, Wait, WaitingCaller};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Reply, Service};
use tenure_core::hint::Hint;
use tenure_core::id::{SessionToken, Ticket};
use tenure_core::key::Key;
use tenure_core::line::{NotedTurn, Waiter, must_pass};
use tenure_core::process::Process;
use tenure_core::store::{Lock, NewWaiter, TxMode, WaitTopic};

impl Service<'_> {
    pub fn leave_line(&mut self, ticket: Ticket) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| leave(ctx, Some(ticket)))
    }
}

/// Keeps a waiter waiting: gives it a position if it has none, and records whose turn it is.
pub(super) fn wait_in_line(
    ctx: &mut Ctx<'_>,
    session: Option<SessionToken>,
    request: &ClaimRequest,
    waiting: &WaitingCaller,
    choice: Choice,
    own: Option<Process>,
) -> Result<Wait, Stop> {
    let (why, watch, at_most) = match choice {
        Choice::Refuse(refusal) if !refusal.waits => {
            leave(ctx, waiting.ticket)?;
            return Err(give_up(ctx, session, *refusal)?);
        }
        Choice::Refuse(refusal) => {
            pass_on(ctx, waiting, &refusal.open_to_others)?;
            (refusal.error, refusal.watch, refusal.at_most)
        }
        Choice::Line { unnoted, left } => {
            for (epoch, next) in unnoted {
                let until = Some(ctx.now.after(ctx.policy.turn));
                note_turn(ctx, &next, &NotedTurn { epoch, until })?;
            }
            let why = Error::Invalid {
                what: "it is free, but other sessions were waiting for it first".into(),
                hint: Hint::run("why", [request.keys[0].as_str()], "to see who is waiting"),
            };
            (why, Vec::new(), Some(left))
        }
        Choice::Take(_) => return Err(Stop::Store(tenure_core::store::StoreError::Conflict)),
    };
    let ticket = match waiting.ticket {
        Some(ticket) => ticket,
        None => {
            ctx.lock(request.keys.iter().cloned().map(Lock::Key))?;
            let waiter = NewWaiter {
                session,
                process: &waiting.process,
                since: ctx.now.wall,
            };
            match joined_before(ctx, request, waiting)? {
                Some(ticket) => ticket,
                None => ctx.tx.join_line(&request.keys, &waiter)?,
            }
        }
    };
    let keys = request.keys.iter().cloned().map(WaitTopic::Key);
    let own_end = session.map(|token| WaitTopic::Session(token.id));
    Ok(Wait {
        ticket,
        about: keys.chain(own_end).collect(),
        watch: watch.into_iter().chain(own).collect(),
        at_most,
        why: Box::new(why),
        reader: ctx.effects.reader,
    })
}

/// The place of this process in the line, if it joined before and was not told so: the link broke in that moment.
fn joined_before(
    ctx: &mut Ctx<'_>,
    request: &ClaimRequest,
    waiting: &WaitingCaller,
) -> Result<Option<Ticket>, Stop> {
    if !waiting.unconfirmed {
        return Ok(None);
    }
    let line = ctx.tx.line(&request.keys[0])?;
    let is_own = |one: &&Waiter| one.process.same_as(&waiting.process);
    Ok(line.iter().find(is_own).map(|one| one.ticket))
}

/// A waiter that cannot act records so, because others may be waiting for it.
pub(super) fn pass_on(
    ctx: &mut Ctx<'_>,
    waiting: &WaitingCaller,
    open: &[Key],
) -> Result<(), Stop> {
    let Some(ticket) = waiting.ticket else {
        return Ok(());
    };
    for mine in ctx.tx.waits_at(ticket)? {
        let is_free = open.contains(&mine.key);
        if mine.turn.is_none() && !is_free {
            continue;
        }
        let epoch = ctx.claim_record(&mine.key)?.epoch;
        let line = ctx.tx.line(&mine.key)?;
        if must_pass(&line, ticket, epoch, is_free) {
            note_turn(ctx, &mine, &NotedTurn { epoch, until: None })?;
        }
    }
    Ok(())
}

fn note_turn(ctx: &mut Ctx<'_>, waiter: &Waiter, turn: &NotedTurn) -> Result<(), Stop> {
    ctx.lock([Lock::Ticket(waiter.ticket)])?;
    let before = waiter.turn.as_ref();
    Ok(ctx.tx.set_turn(waiter.ticket, &waiter.key, before, turn)?)
}

pub(super) fn leave(ctx: &mut Ctx<'_>, ticket: Option<Ticket>) -> Result<(), Stop> {
    if let Some(ticket) = ticket {
        ctx.lock([Lock::Ticket(ticket)])?;
        ctx.tx.leave_line(ticket)?;
    }
    Ok(())
}
