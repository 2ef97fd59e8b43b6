//! Claiming: one key, the first free one of several, or all of several; at once, or in line.
//!
//! First every key is assessed, then it is decided, then what is needed is locked, then everything is
//! granted in the same transaction: a refusal locks nothing, and leaves nothing half granted.

use std::time::Duration;

use super::assess::{Finding, Refusal, assess};
use super::grant::{Receiver, answer, carry_out};
use super::grant_plan::GrantPlan;
use super::guard::covering_hold;
use super::request::{
    ChildRequest, ChildTurn, ClaimRequest, Grant, Pick, Turn, Wait, Waiting, check_note,
};
use super::rivals::{Asker, end_holds, end_sessions, locks_of};
use crate::caller::{self, ActFor, Caller, ResolvedBy, behalf};
use crate::context::{Ctx, Stop, Unseen};
use crate::error::Error;
use crate::session::new_session::{NewSession, born};
use crate::session::view::SessionView;
use crate::transact::{Reply, Service};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::hint::Hint;
use tenure_core::id::{Epoch, SessionId, SessionToken, Ticket};
use tenure_core::key::Key;
use tenure_core::line::{Fitness, LinePosition, NotedTurn, TURN, Waiter, line_position, must_pass};
use tenure_core::liveness::Liveness;
use tenure_core::process::Process;
use tenure_core::session::{ClosedBy, Session, Title};
use tenure_core::store::{Lock, Mode, NewWaiter, Topic};
use tenure_core::text;

impl Service<'_> {
    /// Claims at once, or is refused.
    pub fn claim(&mut self, act_for: &ActFor, request: &ClaimRequest) -> Reply<Vec<Grant>> {
        check_note(request.note.as_deref())?;
        self.transact(Mode::Write, |ctx| {
            let caller = behalf::receiving(ctx, act_for)?;
            let asker = Asker {
                id: caller.session.id,
                blind: caller.blind,
            };
            match choose(ctx, asker, request, None)? {
                Choice::Take(taken) => hand_out(ctx, &Receiver::of(&caller), taken, request),
                choice => Err(refusal_of(ctx, Some(caller.session.token()), choice)?),
            }
        })
    }

    /// Looks whether a waiter's turn has come; puts it in line if it is in none.
    pub fn claim_turn(
        &mut self,
        act_for: &ActFor,
        request: &ClaimRequest,
        waiting: &Waiting,
    ) -> Reply<Turn> {
        check_note(request.note.as_deref())?;
        self.transact(Mode::Read, |ctx| {
            let caller = behalf::receiving(ctx, act_for)?;
            still_lives(ctx, &caller)?;
            let asker = Asker {
                id: caller.session.id,
                blind: caller.blind,
            };
            let own = caller.session.process.clone();
            match choose(ctx, asker, request, Some(waiting))? {
                Choice::Take(taken) => {
                    leave(ctx, waiting.ticket)?;
                    hand_out(ctx, &Receiver::of(&caller), taken, request).map(Turn::Granted)
                }
                choice => {
                    let token = Some(caller.session.token());
                    stand_in_line(ctx, token, request, waiting, choice, own).map(Turn::Wait)
                }
            }
        })
    }

    /// The same for a command that becomes a session of its own with the grant.
    ///
    /// Without a place to wait at it is a plain claim: granted at once, or refused.
    pub fn claim_for_child(
        &mut self,
        act_for: &ActFor,
        request: &ChildRequest,
        waiting: Option<&Waiting>,
    ) -> Reply<ChildTurn> {
        check_note(request.claim.note.as_deref())?;
        self.transact(Mode::Read, |ctx| {
            claim_for_child(ctx, act_for, request, waiting)
        })
    }

    pub fn leave_line(&mut self, ticket: Ticket) -> Reply<()> {
        self.transact(Mode::Write, |ctx| leave(ctx, Some(ticket)))
    }

    /// Whether a session still has a key with this epoch.
    pub fn still_holds(&mut self, session: SessionId, key: &Key, epoch: Epoch) -> Reply<bool> {
        self.transact(Mode::Read, |ctx| {
            let record = ctx.claim_record(key)?;
            let current = record.current();
            Ok(current.is_some_and(|hold| hold.session == session && hold.epoch == epoch))
        })
    }

    /// Ends the session of a command that has ended.
    pub fn end_child(&mut self, child: SessionToken, why: &str) -> Reply<SessionView> {
        self.transact(Mode::Write, |ctx| {
            let mut session = ctx.session(child.id)?;
            if session.is_open() && session.life == child.life {
                session = ctx.close(&session, ClosedBy::End, why, None, None)?;
            }
            ctx.view(&session)
        })
    }
}

/// What a request comes to.
enum Choice {
    /// Take these.
    Take(Vec<Taken>),
    /// It is refused for now or for good.
    Refuse(Box<Refusal>),
    /// What is wanted is free, but it is another's turn.
    Line {
        /// The keys for which it is to be noted whose turn it is.
        unnoted: Vec<(Epoch, Waiter)>,
        /// How long that turn may last.
        left: Duration,
    },
}

/// A key that the asker gets, or has.
enum Taken {
    Granted(Box<GrantPlan>),
    Mine { key: Key, retry: bool },
}

fn choose(
    ctx: &mut Ctx<'_>,
    asker: Asker,
    request: &ClaimRequest,
    waiting: Option<&Waiting>,
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

/// Assesses all keys; what must be looked at is gathered and looked at in one go. Of any, those after the
/// first that is free need no look.
fn assess_all(
    ctx: &mut Ctx<'_>,
    asker: Asker,
    request: &ClaimRequest,
) -> Result<Vec<Finding>, Stop> {
    let mut findings = Vec::new();
    let mut unseen = Unseen::default();
    for key in &request.keys {
        let finding = unseen.gather(assess(ctx, asker, key, request))?;
        let is_free = matches!(finding, Some(Finding::Free(_)));
        findings.extend(finding);
        if is_free && request.pick == Pick::Any && request.request.is_none() && unseen.is_empty() {
            break;
        }
    }
    unseen.look()?;
    Ok(findings)
}

/// The first refusal stands for all; what is free or only noisy is open to others.
fn choose_all(findings: Vec<Finding>) -> Choice {
    let mut taken = Vec::new();
    let mut first: Option<Box<Refusal>> = None;
    let mut open = Vec::new();
    for finding in findings {
        match finding {
            Finding::Free(steps) => {
                open.push(steps.record.key.clone());
                taken.push(Taken::Granted(steps));
            }
            Finding::Mine { key, retry, .. } => taken.push(Taken::Mine { key, retry }),
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

/// A retry of this very request comes first; what the asker has from before is not free.
fn choose_any(findings: Vec<Finding>) -> Choice {
    let count = findings.len();
    let mut first_free = None;
    let mut refusals: Vec<Refusal> = Vec::new();
    for finding in findings {
        match finding {
            Finding::Mine {
                key, retry: true, ..
            } => {
                return Choice::Take(vec![Taken::Mine { key, retry: true }]);
            }
            Finding::Mine { key, epoch, .. } => {
                refusals.push(Refusal::for_good(Error::AlreadyHeld { key, epoch }));
            }
            Finding::Free(steps) => {
                first_free.get_or_insert(steps);
            }
            Finding::Refused(refusal) => refusals.push(*refusal),
        }
    }
    match first_free {
        Some(steps) => Choice::Take(vec![Taken::Granted(steps)]),
        None => Choice::Refuse(Box::new(together(refusals, count))),
    }
}

/// One refusal out of many: any of them may end first.
fn together(refusals: Vec<Refusal>, count: usize) -> Refusal {
    let mut all = Refusal::for_good(Error::Usage {
        what: "no item was named".into(),
        hint: Hint::run(
            "claim",
            ["--any", "KEY", "KEY"],
            "to take the first that is free",
        ),
    });
    for (place, refusal) in refusals.into_iter().enumerate() {
        all.waits |= refusal.waits;
        all.watch.extend(refusal.watch);
        all.open_to_others.extend(refusal.open_to_others);
        all.at_most = match (all.at_most, refusal.at_most) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        if place == 0 {
            all.unseen = refusal.unseen;
            all.error = refusal.error;
        }
    }
    if count > 1 {
        let first = Box::new(all.error);
        all.error = Error::NoneFree { count, first };
    }
    all
}

/// What can be had is only taken in turn.
fn wait_for_turn(ctx: &mut Ctx<'_>, taken: Vec<Taken>, waiting: &Waiting) -> Result<Choice, Stop> {
    let me = waiting.ticket.unwrap_or(Ticket(u64::MAX));
    let mut unnoted = Vec::new();
    let mut longest: Option<Duration> = None;
    for one in &taken {
        let Taken::Granted(steps) = one else { continue };
        let key = &steps.record.key;
        let mut line = line_of(ctx, key)?;
        if let LinePosition::After {
            ticket,
            noted,
            left,
        } = line_position(&line, me, steps.record.epoch, &ctx.now)
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

/// The line for a key, each with whether it can act; the dead are taken out on the way.
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

/// A waiter that must go on waiting: it gets a place if it has none, and notes whose turn it is.
fn stand_in_line(
    ctx: &mut Ctx<'_>,
    session: Option<SessionToken>,
    request: &ClaimRequest,
    waiting: &Waiting,
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
                let until = Some(ctx.now.after(TURN));
                note_turn(ctx, &next, &NotedTurn { epoch, until })?;
            }
            let why = Error::Invalid {
                what: "it is free, and others wait for it since longer".into(),
                hint: Hint::run("why", [request.keys[0].as_str()], "to see who waits"),
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
            ctx.tx.join_line(&request.keys, &waiter)?
        }
    };
    let keys = request.keys.iter().cloned().map(Topic::Key);
    let own_end = session.map(|token| Topic::Session(token.id));
    Ok(Wait {
        ticket,
        about: keys.chain(own_end).collect(),
        watch: watch.into_iter().chain(own).collect(),
        at_most,
        why: Box::new(why),
        reader: ctx.reader,
    })
}

/// A waiter that cannot act says so where others may wait for it.
fn pass_on(ctx: &mut Ctx<'_>, waiting: &Waiting, open: &[Key]) -> Result<(), Stop> {
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

fn leave(ctx: &mut Ctx<'_>, ticket: Option<Ticket>) -> Result<(), Stop> {
    if let Some(ticket) = ticket {
        ctx.lock([Lock::Ticket(ticket)])?;
        ctx.tx.leave_line(ticket)?;
    }
    Ok(())
}

/// Nothing is granted to a session that is not live: its process is looked at anew, each time.
fn still_lives(ctx: &mut Ctx<'_>, caller: &Caller) -> Result<(), Stop> {
    if caller.itself_by == Some(ResolvedBy::Namespace) {
        return Ok(());
    }
    let own = ctx.own.take();
    let liveness = ctx.liveness(&caller.session)?;
    if let Liveness::Dead(proof) = liveness {
        ctx.dead.push(caller.session.id);
        return Err(Error::NotLive {
            handle: caller.session.handle.to_string(),
            state: format!("is dead: {proof}"),
        }
        .into());
    }
    ctx.own = own;
    Ok(())
}

fn hand_out(
    ctx: &mut Ctx<'_>,
    receiver: &Receiver<'_>,
    taken: Vec<Taken>,
    request: &ClaimRequest,
) -> Result<Vec<Grant>, Stop> {
    lock_taken(ctx, receiver.session.id, &taken)?;
    end_rivals(ctx, receiver, &taken)?;
    let mut grants = Vec::new();
    for one in taken {
        grants.push(match one {
            Taken::Granted(steps) => carry_out(ctx, receiver, &steps, request)?,
            Taken::Mine { key, retry } => answer(ctx, &key, !retry)?,
        });
    }
    Ok(grants)
}

/// Locks what the grants of these change, and what they were decided by: who lost a key because it was silent
/// may have spoken since.
fn lock_taken(ctx: &mut Ctx<'_>, to: SessionId, taken: &[Taken]) -> Result<(), Stop> {
    ctx.lock_with(|ctx| {
        let mut locks = vec![Lock::Session(to)];
        for one in taken {
            let Taken::Granted(steps) = one else { continue };
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
    })
}

/// What somebody who does not wait is told.
fn refusal_of(
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

/// Ends what rivals that are gone left open, once for all the keys: several may have the same rival.
fn end_rivals(ctx: &mut Ctx<'_>, receiver: &Receiver<'_>, taken: &[Taken]) -> Result<(), Stop> {
    let mut granted: Vec<&GrantPlan> = Vec::new();
    for one in taken {
        if let Taken::Granted(steps) = one {
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

/// A refusal; what could not be seen from inside a sandbox is noted for the agent outside, if there is one.
fn give_up(
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

fn claim_for_child(
    ctx: &mut Ctx<'_>,
    act_for: &ActFor,
    request: &ChildRequest,
    waiting: Option<&Waiting>,
) -> Result<ChildTurn, Stop> {
    let caller = match &act_for.session {
        Some(_) => Some(behalf::receiving(ctx, act_for)?),
        None => caller::anybody(ctx)?,
    };
    if let Some(caller) = &caller {
        still_lives(ctx, caller)?;
        if let Some(holder) = covered(ctx, caller, &request.claim.keys)? {
            return Ok(ChildTurn::Covered { holder });
        }
    }
    let asker = Asker {
        id: SessionId::mint(0, [0; 10]),
        blind: caller.as_ref().is_some_and(|caller| caller.blind),
    };
    match choose(ctx, asker, &request.claim, waiting)? {
        Choice::Take(taken) => {
            ctx.write()?;
            leave(ctx, waiting.and_then(|waiting| waiting.ticket))?;
            let session = child_session(ctx, request, caller.as_ref())?;
            ctx.own = Some(session.id);
            let receiver = Receiver {
                session: &session,
                actor: caller.as_ref().and_then(|caller| caller.actor),
                reason: act_for.reason.clone(),
                renews: false,
            };
            let grants = hand_out(ctx, &receiver, taken, &request.claim)?;
            Ok(ChildTurn::Granted {
                token: session.token(),
                session: Box::new(ctx.view(&session)?),
                grants,
            })
        }
        choice => {
            let token = caller.as_ref().map(|caller| caller.session.token());
            let Some(waiting) = waiting else {
                return Err(refusal_of(ctx, token, choice)?);
            };
            let own = caller.and_then(|caller| caller.session.process);
            let wait = stand_in_line(ctx, token, &request.claim, waiting, choice, own)?;
            Ok(ChildTurn::Wait(wait))
        }
    }
}

/// Makes a command's process a session: a child of the caller, or of nobody.
fn child_session(
    ctx: &mut Ctx<'_>,
    request: &ChildRequest,
    caller: Option<&Caller>,
) -> Result<Session, Stop> {
    let birth = NewSession {
        agent: request.agent.clone(),
        native_id: None,
        fork_of: None,
        parent: caller.map(|caller| caller.session.token()),
        twin_of: None,
        title: Some(Title::person(text::clipped(
            &request.title,
            text::MAX_TITLE,
        ))),
        workdir: request.workdir.clone(),
        hosted: false,
        process: request.chain.first().map(|own| own.process.clone()),
        start: None,
        daemon: None,
    };
    let session = born(ctx, birth)?;
    ctx.log(&NewEvent {
        actor: caller.and_then(|caller| caller.actor),
        reason: caller.and_then(Caller::reason_text),
        ..ctx.event(
            EventKind::Registered,
            Some(session.id),
            "command",
            request.title.clone(),
        )
    })?;
    Ok(session)
}

/// Who covers a command that the caller runs: the caller itself, or an ancestor, for all the keys.
fn covered(ctx: &mut Ctx<'_>, caller: &Caller, keys: &[Key]) -> Result<Option<String>, Stop> {
    let mut holder = None;
    for key in keys {
        match covering_key(ctx, caller, key)? {
            Some(handle) => holder = Some(handle),
            None => return Ok(None),
        }
    }
    Ok(holder)
}

/// Who covers one key: whoever holds it, or a path that contains it.
fn covering_key(ctx: &mut Ctx<'_>, caller: &Caller, key: &Key) -> Result<Option<String>, Stop> {
    let record = ctx.claim_record(key)?;
    if let Some(handle) = covering_hold(ctx, &caller.session, &record)? {
        return Ok(Some(handle));
    }
    for wider in ctx.beside(key, None)? {
        let contains = match (wider.key.path(), key.path()) {
            (Some((_, wide)), Some((_, narrow))) => wide.includes(&narrow),
            // Another spelling of the same item.
            _ => true,
        };
        if contains && let Some(handle) = covering_hold(ctx, &caller.session, &wider)? {
            return Ok(Some(handle));
        }
    }
    Ok(None)
}
