//! The acts on claims: each checks, decides and writes in one transaction.
//!
//! [`crate::claim::decide`] holds the rule for granting. What is here is the order of things: who asks,
//! what the key's newest hold says, whether its holder lives, and then one grant or one refusal. Every
//! grant goes through [`grant`], so that an epoch is raised in one place only.

use super::caller::{self, Caller, Naming};
use super::context::{Ctx, Stop};
use super::{Reply, Service};
use crate::claim::{
    Ask, ClaimRecord, EndedBy, Former, Hold, HoldEnd, Means, TakenFrom, Verdict, decide,
};
use crate::error::Error;
use crate::event::{EventKind, NewEvent};
use crate::id::{Epoch, RequestId, SessionId};
use crate::key::Key;
use crate::notice::NoticeKind;
use crate::session::{Session, Standing};
use crate::store::Mode;
use crate::view::{ClaimView, HeldView};

/// A request for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The item.
    pub key: Key,
    /// The caller's own name for the request.
    pub request: Option<RequestId>,
    /// Refuse what the session already holds.
    pub once: bool,
    /// Take up a finished item again.
    pub reopen: bool,
    /// What it is for.
    pub note: Option<String>,
}

/// A return of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseRequest {
    /// The item.
    pub key: Key,
    /// The epoch that the caller believes it holds.
    pub epoch: Option<Epoch>,
    /// Whether the item is finished.
    pub done: bool,
}

/// A handover to another session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffRequest {
    /// The item.
    pub key: Key,
    /// The session that gets it.
    pub to: String,
    /// The epoch that the caller believes it holds.
    pub epoch: Option<Epoch>,
    /// What it is for.
    pub note: Option<String>,
}

/// A taking from whoever holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeoverRequest {
    /// The item.
    pub key: Key,
    /// Only if this session holds it.
    pub from: Option<String>,
    /// Only if this is its epoch.
    pub epoch: Option<Epoch>,
    /// What it is for.
    pub note: Option<String>,
}

/// A question whether the caller may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardRequest {
    /// The item.
    pub key: Key,
    /// The epoch that the caller believes it holds.
    pub epoch: Option<Epoch>,
}

/// A claim that was granted.
pub type Grant = ClaimView;

impl Service<'_> {
    /// Claims a key.
    pub fn claim(&mut self, naming: &Naming, request: &ClaimRequest) -> Reply<Grant> {
        self.run(Mode::Write, |ctx| {
            let caller = caller::acting(ctx, naming)?;
            claim(ctx, &caller, request)
        })
    }

    /// Gives a key back, or finishes its item.
    pub fn release(&mut self, naming: &Naming, request: &ReleaseRequest) -> Reply<ClaimView> {
        self.run(Mode::Write, |ctx| {
            let caller = caller::acting(ctx, naming)?;
            let hold = own_hold(ctx, &caller, &request.key, request.epoch)?;
            let (by, kind) = if request.done {
                (EndedBy::Done, EventKind::Done)
            } else {
                (EndedBy::Release, EventKind::Released)
            };
            end(ctx, &hold, by)?;
            log_act(ctx, &caller, kind, &hold, "the holder's own act".into())?;
            view_of(ctx, &request.key)
        })
    }

    /// Hands a key to another live session.
    pub fn handoff(&mut self, naming: &Naming, request: &HandoffRequest) -> Reply<ClaimView> {
        self.run(Mode::Write, |ctx| {
            let caller = caller::acting(ctx, naming)?;
            let hold = own_hold(ctx, &caller, &request.key, request.epoch)?;
            let to = live_receiver(ctx, &request.to)?;
            if to.id == caller.session.id {
                return Err(already_held(&hold).into());
            }
            end(ctx, &hold, EndedBy::Handoff)?;
            log_act(
                ctx,
                &caller,
                EventKind::Handed,
                &hold,
                format!("handed to {}", to.handle),
            )?;
            let record = ctx.tx.lock_claim(&request.key)?;
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
                caller.session.handle, request.key, granted.epoch
            );
            let about = Some((&request.key, granted.epoch));
            ctx.notify(
                to.id,
                NoticeKind::Handed,
                message,
                Some(caller.session.id),
                about,
            )?;
            view_of(ctx, &request.key)
        })
    }

    /// Takes a key from whoever holds it, with a reason, on record.
    pub fn takeover(&mut self, naming: &Naming, request: &TakeoverRequest) -> Reply<Grant> {
        let Some(reason) = naming
            .reason
            .clone()
            .filter(|reason| !reason.trim().is_empty())
        else {
            return Err(Error::Usage {
                what: "a takeover takes a reason".into(),
                hint: "add --reason \"why\"; it is recorded and the holder is told".into(),
            }
            .into());
        };
        self.run(Mode::Write, |ctx| {
            let caller = caller::acting(ctx, naming)?;
            takeover(ctx, &caller, request, &reason)
        })
    }

    /// Tells whether the caller may write to what a key protects.
    pub fn guard(&mut self, naming: &Naming, request: &GuardRequest) -> Reply<ClaimView> {
        self.run(Mode::Read, |ctx| {
            let caller = caller::looking(ctx, naming)?;
            guard(ctx, &caller, request)
        })
    }
}

fn claim(ctx: &mut Ctx<'_>, caller: &Caller, request: &ClaimRequest) -> Result<Grant, Stop> {
    let record = ctx.tx.lock_claim(&request.key)?;
    let me = &caller.session;
    let mine = ctx.tx.newest_hold_of(me.id, &request.key)?;
    let holder = holder_of(ctx, &record, me.id)?;
    let ask = Ask {
        request: request.request.clone(),
        once: request.once,
        reopen: request.reopen,
        blind: caller.blind,
    };
    let standing = holder.as_ref().map(|(_, standing)| standing);
    match decide(&record, me.id, mine.as_ref(), standing, &ask) {
        Verdict::Grant(former) => grant_after(
            ctx,
            caller,
            record,
            holder.map(|(s, _)| s),
            &former,
            request,
        ),
        Verdict::AlreadyHeld => answer(ctx, &request.key, true),
        Verdict::Retry => answer(ctx, &request.key, false),
        refusal => Err(refuse(
            ctx,
            &record,
            holder.as_ref(),
            caller,
            mine,
            refusal,
        )?),
    }
}

/// The session of a key's open hold, where it is another than `me`, with how it stands.
fn holder_of(
    ctx: &mut Ctx<'_>,
    record: &ClaimRecord,
    me: SessionId,
) -> Result<Option<(Session, Standing)>, Stop> {
    let Some(hold) = record.current().filter(|hold| hold.session != me) else {
        return Ok(None);
    };
    let session = ctx.session(hold.session)?;
    let standing = ctx.standing(&session)?;
    Ok(Some((session, standing)))
}

/// Grants a key after ending what its former holder's end left open.
fn grant_after(
    ctx: &mut Ctx<'_>,
    caller: &Caller,
    record: ClaimRecord,
    holder: Option<Session>,
    former: &Former,
    request: &ClaimRequest,
) -> Result<Grant, Stop> {
    let record = match (former, holder) {
        (Former::Gone(proof), Some(holder)) => {
            ctx.record_death(&holder, &proof.to_string())?;
            ctx.tx.lock_claim(&request.key)?
        }
        (Former::Expired(doubt), Some(holder)) => {
            let hold = record.current().cloned();
            let why = format!("{doubt}; its lease and the lock-delay are over");
            if let Some(hold) = hold {
                end(ctx, &hold, EndedBy::Lease)?;
                log_end(ctx, &hold, EndedBy::Lease, &why)?;
            }
            tell_loser(
                ctx,
                &holder,
                &record,
                &caller.session,
                "its lease was over and nobody could tell whether it lived",
            )?;
            ctx.tx.lock_claim(&request.key)?
        }
        _ => record,
    };
    let terms = Terms {
        means: Means::Claim,
        request: request.request.clone(),
        note: request.note.clone(),
        taken_from: taken_from(ctx, &record, caller.session.id)?,
        actor: caller.actor,
        reason: caller.reason.clone(),
    };
    let mut me = caller.session.clone();
    if caller.by != caller::ResolvedBy::Flag {
        caller::renew(ctx, &mut me)?;
    }
    grant(ctx, &record, &me, terms)?;
    answer(ctx, &request.key, false)
}

/// What the next holder should know of the former one, where that did not give the key back itself.
fn taken_from(
    ctx: &mut Ctx<'_>,
    record: &ClaimRecord,
    me: SessionId,
) -> Result<Option<TakenFrom>, Stop> {
    let Some(hold) = record.newest.as_ref().filter(|hold| hold.session != me) else {
        return Ok(None);
    };
    let by = match hold.ended.map(|end| end.by) {
        Some(by @ (EndedBy::Death | EndedBy::End | EndedBy::Lease | EndedBy::Taken)) => by,
        _ => return Ok(None),
    };
    let session = ctx.session(hold.session)?;
    let proof = match (&session.closed, by) {
        (Some(closed), _) => closed.why.clone(),
        (None, EndedBy::Lease) => {
            "its lease was over and nobody could tell whether it lived".into()
        }
        (None, _) => "it goes on elsewhere".into(),
    };
    Ok(Some(taken(&session, hold, by, proof)))
}

fn taken(session: &Session, hold: &Hold, by: EndedBy, proof: String) -> TakenFrom {
    TakenFrom {
        session: session.id.to_string(),
        handle: session.handle.to_string(),
        epoch: hold.epoch.0,
        by: by.as_str().into(),
        proof,
        dir: session.place.dir.clone(),
        branch: session.place.branch.clone(),
    }
}

/// Turns a verdict against the caller into the error that it is told.
fn refuse(
    ctx: &mut Ctx<'_>,
    record: &ClaimRecord,
    holder: Option<&(Session, Standing)>,
    caller: &Caller,
    mine: Option<Hold>,
    verdict: Verdict,
) -> Result<Stop, Stop> {
    let key = record.key.clone();
    let epoch = record.epoch;
    if let (Verdict::CannotTell(_), Some((holder, _))) = (&verdict, holder) {
        ctx.write()?;
        ctx.tx.add_doubt(caller.session.id, holder.token())?;
    }
    let handle = holder.as_ref().map_or("its holder".into(), |(session, _)| {
        session.handle.to_string()
    });
    let claim = Box::new(shown(ctx, record)?);
    let error = match verdict {
        Verdict::Held(_) => Error::Held { key, claim },
        Verdict::Suspect { left, .. } => Error::Suspect { key, claim, left },
        Verdict::Done => Error::Done { key, claim },
        Verdict::HeldByYou => Error::AlreadyHeld { key, epoch },
        Verdict::CannotTell(doubt) => Error::CannotTell {
            handle,
            doubt,
            key: Some(key),
        },
        Verdict::Lost | Verdict::Grant(_) | Verdict::AlreadyHeld | Verdict::Retry => Error::Lost {
            key,
            epoch: mine.map_or(epoch, |hold| hold.epoch),
            claim,
        },
    };
    Ok(error.into())
}

/// How a grant is recorded.
struct Terms {
    means: Means,
    request: Option<RequestId>,
    note: Option<String>,
    taken_from: Option<TakenFrom>,
    actor: Option<SessionId>,
    reason: Option<String>,
}

/// Grants a key: the only place that raises an epoch.
fn grant(
    ctx: &mut Ctx<'_>,
    record: &ClaimRecord,
    to: &Session,
    terms: Terms,
) -> Result<Hold, Stop> {
    let hold = Hold {
        key: record.key.clone(),
        epoch: record.epoch.next(),
        session: to.id,
        life: to.life,
        request: terms.request,
        means: terms.means,
        note: terms.note,
        granted_at: ctx.now.wall,
        taken_from: terms.taken_from,
        ended: None,
    };
    ctx.tx.insert_hold(&hold, record.epoch)?;
    let evidence = match &hold.taken_from {
        Some(former) => format!("{} had it: {}", former.handle, former.proof),
        None if record.newest.is_none() => "nobody ever had it".into(),
        None => "nobody held it".into(),
    };
    let kind = match hold.means {
        Means::Takeover => EventKind::Taken,
        _ => EventKind::Granted,
    };
    ctx.log(&NewEvent {
        actor: terms.actor.filter(|actor| *actor != to.id),
        key: Some(hold.key.clone()),
        epoch: Some(hold.epoch),
        reason: terms.reason,
        ..ctx.event(kind, Some(to.id), hold.means.as_str(), evidence)
    })?;
    Ok(hold)
}

fn end(ctx: &mut Ctx<'_>, hold: &Hold, by: EndedBy) -> Result<(), Stop> {
    let end = HoldEnd {
        at: ctx.now.wall,
        by,
    };
    ctx.tx.end_hold(&hold.key, hold.epoch, end)?;
    Ok(())
}

fn log_end(ctx: &mut Ctx<'_>, hold: &Hold, by: EndedBy, why: &str) -> Result<(), Stop> {
    ctx.log(&NewEvent {
        key: Some(hold.key.clone()),
        epoch: Some(hold.epoch),
        ..ctx.event(
            EventKind::Freed,
            Some(hold.session),
            by.as_str(),
            why.to_owned(),
        )
    })
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
        reason: caller.reason.clone(),
        ..ctx.event(kind, Some(hold.session), mechanism, evidence)
    })
}

/// The caller's open hold of a key, or why it has none.
fn own_hold(
    ctx: &mut Ctx<'_>,
    caller: &Caller,
    key: &Key,
    epoch: Option<Epoch>,
) -> Result<Hold, Stop> {
    let record = ctx.tx.lock_claim(key)?;
    match record.current() {
        Some(hold) if hold.session == caller.session.id => {
            check_epoch(ctx, &record, epoch)?;
            Ok(hold.clone())
        }
        _ => Err(not_mine(ctx, caller, &record, epoch)?),
    }
}

/// Checks that the epoch that a caller named is the one that the key has.
fn check_epoch(ctx: &mut Ctx<'_>, record: &ClaimRecord, named: Option<Epoch>) -> Result<(), Stop> {
    let key = record.key.clone();
    match named {
        Some(named) if named > record.epoch => Err(Error::NoSuchEpoch {
            key,
            now: record.epoch,
            named,
        }
        .into()),
        Some(named) if named < record.epoch => Err(Error::Lost {
            key,
            epoch: named,
            claim: Box::new(shown(ctx, record)?),
        }
        .into()),
        _ => Ok(()),
    }
}

/// Why a key is not the caller's: lost, another's, free or done. A dead holder is buried on the way.
fn not_mine(
    ctx: &mut Ctx<'_>,
    caller: &Caller,
    record: &ClaimRecord,
    named: Option<Epoch>,
) -> Result<Stop, Stop> {
    let key = record.key.clone();
    if let Some(mine) = ctx.tx.newest_hold_of(caller.session.id, &key)?
        && record.was_lost(&mine)
    {
        let claim = Box::new(shown(ctx, record)?);
        let epoch = named.unwrap_or(mine.epoch);
        return Ok(Error::Lost { key, epoch, claim }.into());
    }
    if let Some((holder, standing)) = holder_of(ctx, record, caller.session.id)? {
        if !matches!(standing, Standing::Gone(_)) {
            let claim = Box::new(shown(ctx, record)?);
            return Ok(Error::Held { key, claim }.into());
        }
        ctx.bury_if_dead(holder)?;
    }
    if record.is_done() {
        let claim = Box::new(shown(ctx, record)?);
        return Ok(Error::Done { key, claim }.into());
    }
    Ok(Error::Free { key }.into())
}

fn already_held(hold: &Hold) -> Error {
    Error::AlreadyHeld {
        key: hold.key.clone(),
        epoch: hold.epoch,
    }
}

/// A session that can be given something: it must be seen to live.
fn live_receiver(ctx: &mut Ctx<'_>, name: &str) -> Result<Session, Stop> {
    let session = caller::find(ctx, name)?;
    let handle = session.handle.to_string();
    let session = ctx.bury_if_dead(session)?;
    if let Some(closed) = &session.closed {
        let state = format!("is {}: {}", closed.by.past(), closed.why);
        return Err(Error::NotLive { handle, state }.into());
    }
    match ctx.standing(&session)? {
        Standing::Live => Ok(session),
        Standing::Gone(proof) => Err(Error::NotLive {
            handle,
            state: format!("is dead: {proof}"),
        }
        .into()),
        Standing::Trusted { doubt, .. }
        | Standing::Suspect { doubt, .. }
        | Standing::Expired(doubt) => Err(Error::CannotTell {
            handle,
            doubt,
            key: None,
        }
        .into()),
    }
}

fn takeover(
    ctx: &mut Ctx<'_>,
    caller: &Caller,
    request: &TakeoverRequest,
    reason: &str,
) -> Result<Grant, Stop> {
    let record = ctx.tx.lock_claim(&request.key)?;
    let Some(hold) = record.current().cloned() else {
        let key = request.key.clone();
        return Err(match record.is_done() {
            true => Error::Done {
                key,
                claim: Box::new(shown(ctx, &record)?),
            },
            false => Error::Free { key },
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
        return Err(Error::Held {
            key: request.key.clone(),
            claim,
        }
        .into());
    }
    end(ctx, &hold, EndedBy::Taken)?;
    log_end(
        ctx,
        &hold,
        EndedBy::Taken,
        &format!("taken by {}: {reason}", caller.session.handle),
    )?;
    tell_loser(ctx, &holder, &record, &caller.session, reason)?;
    let record = ctx.tx.lock_claim(&request.key)?;
    let terms = Terms {
        means: Means::Takeover,
        request: None,
        note: request.note.clone(),
        taken_from: Some(taken(&holder, &hold, EndedBy::Taken, reason.to_owned())),
        actor: caller.actor,
        reason: Some(reason.to_owned()),
    };
    grant(ctx, &record, &caller.session, terms)?;
    answer(ctx, &request.key, false)
}

/// Leaves the notice that a session lost a key.
fn tell_loser(
    ctx: &mut Ctx<'_>,
    loser: &Session,
    record: &ClaimRecord,
    winner: &Session,
    why: &str,
) -> Result<(), Stop> {
    let now = record.epoch.next();
    let message = format!(
        "you lost {} (epoch {}): {} has it now (epoch {now}): {why}",
        record.key, record.epoch, winner.handle
    );
    ctx.notify(
        loser.id,
        NoticeKind::Lost,
        message,
        Some(winner.id),
        Some((&record.key, now)),
    )
}

fn guard(ctx: &mut Ctx<'_>, caller: &Caller, request: &GuardRequest) -> Result<ClaimView, Stop> {
    let record = match ctx.tx.claim(&request.key)? {
        Some(record) => record,
        None => ClaimRecord::unknown(request.key.clone()),
    };
    let mine = record
        .current()
        .is_some_and(|hold| hold.session == caller.session.id);
    let via = if mine {
        None
    } else {
        covering_ancestor(ctx, &caller.session, &record)?
    };
    if mine || via.is_some() {
        check_epoch(ctx, &record, request.epoch)?;
        let mut view = shown(ctx, &record)?;
        view.via = via;
        return Ok(view);
    }
    Err(not_mine(ctx, caller, &record, request.epoch)?)
}

/// The ancestor whose hold covers the session: an ancestor in the life in which it was registered, and
/// never a twin's double.
fn covering_ancestor(
    ctx: &mut Ctx<'_>,
    session: &Session,
    record: &ClaimRecord,
) -> Result<Option<String>, Stop> {
    let Some(hold) = record.current() else {
        return Ok(None);
    };
    let mut below = session.clone();
    for _ in 0..64 {
        let Some(token) = below.parent else {
            return Ok(None);
        };
        let above = ctx.session(token.id)?;
        if above.life != token.life || !above.is_open() || below.twin_of == Some(above.id) {
            return Ok(None);
        }
        if above.id == hold.session {
            let lives = !matches!(
                ctx.standing(&above)?,
                Standing::Gone(_) | Standing::Expired(_)
            );
            return Ok((hold.life == token.life && lives).then(|| above.handle.to_string()));
        }
        below = above;
    }
    Ok(None)
}

/// What a resumed session got back, and what others took.
pub struct Regranted {
    pub regranted: Vec<HeldView>,
    pub taken: Vec<String>,
}

/// Grants to `to` what `from` held in its last life and nobody took since.
pub fn regrant(
    ctx: &mut Ctx<'_>,
    from: &Session,
    to: &Session,
    means: Means,
) -> Result<Regranted, Stop> {
    let mut outcome = Regranted {
        regranted: Vec::new(),
        taken: Vec::new(),
    };
    for hold in ctx.tx.newest_holds(from.id)? {
        let ended_without_act = matches!(
            hold.ended.map(|end| end.by),
            Some(EndedBy::End | EndedBy::Death | EndedBy::Lease)
        );
        if !ended_without_act {
            continue;
        }
        let record = ctx.tx.lock_claim(&hold.key)?;
        if record.is_regrantable(&hold) {
            let terms = Terms {
                means,
                request: hold.request.clone(),
                note: hold.note.clone(),
                taken_from: None,
                actor: None,
                reason: None,
            };
            let granted = grant(ctx, &record, to, terms)?;
            outcome.regranted.push(HeldView {
                key: granted.key.to_string(),
                epoch: granted.epoch.0,
            });
        } else if hold.life == from.life {
            let now = match record.current() {
                Some(other) => format!("{} has it now", ctx.session(other.session)?.handle),
                None if record.is_done() => "it is done".into(),
                None => "others had it since".into(),
            };
            outcome
                .taken
                .push(format!("{}: {now} (epoch {})", record.key, record.epoch));
        }
    }
    Ok(outcome)
}

/// Ends what a session holds because its lease and the lock-delay are over.
pub fn end_by_lease(ctx: &mut Ctx<'_>, session: &Session, why: &str) -> Result<(), Stop> {
    for hold in ctx.tx.open_holds(session.id)? {
        ctx.tx.lock_claim(&hold.key)?;
        end(ctx, &hold, EndedBy::Lease)?;
        log_end(ctx, &hold, EndedBy::Lease, why)?;
    }
    Ok(())
}

/// The answer to a claim that the caller has.
fn answer(ctx: &mut Ctx<'_>, key: &Key, already_held: bool) -> Result<Grant, Stop> {
    let record = ctx.tx.lock_claim(key)?;
    let mut view = shown(ctx, &record)?;
    view.already_held = Some(already_held);
    view.taken_from = record
        .current()
        .and_then(|hold| hold.taken_from.clone())
        .filter(|_| !already_held);
    Ok(view)
}

fn view_of(ctx: &mut Ctx<'_>, key: &Key) -> Result<ClaimView, Stop> {
    let record = ctx.tx.lock_claim(key)?;
    shown(ctx, &record)
}

/// The view of a key with its holder.
pub fn shown(ctx: &mut Ctx<'_>, record: &ClaimRecord) -> Result<ClaimView, Stop> {
    let Some(hold) = record.current() else {
        return Ok(ClaimView::new(record, None));
    };
    let session = ctx.session(hold.session)?;
    let standing = ctx.standing(&session)?;
    let view = ctx.view(&session)?;
    Ok(ClaimView::new(record, Some((view, &standing))))
}
