//! Granting: the only place that raises an epoch, and how a hold ends and is shown.

use super::request::{ClaimRequest, Grant};
use crate::caller::Caller;
use crate::claim::view::ClaimView;
use crate::context::{Ctx, Stop};
use tenure_core::claim::{ClaimRecord, EndedBy, Hold, HoldEnd, Means, PreviousHolder, TakenFrom};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::{RequestId, SessionId};
use tenure_core::key::Key;
use tenure_core::notice::NoticeKind;
use tenure_core::process::Survivors;
use tenure_core::reason::Reason;
use tenure_core::repository::Home;
use tenure_core::session::{Session, Standing};
use tenure_core::text;

/// An overlapping hold of a session that is gone.
pub(super) type Rival = (Hold, Session, PreviousHolder);

/// The steps that must come before a grant.
pub(super) struct GrantPlan {
    pub(super) record: ClaimRecord,
    /// The holder that is gone, if its hold is still open.
    pub(super) holder: Option<(Session, PreviousHolder)>,
    /// Overlapping holds of sessions that are gone.
    pub(super) rivals: Vec<Rival>,
    /// What the previous holder left running.
    pub(super) survivors: Survivors,
}

/// The holder of a key, unless it is `me`, with its standing.
pub(super) fn holder_of(
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

pub(super) struct Receiver<'a> {
    pub(super) session: &'a Session,
    pub(super) actor: Option<SessionId>,
    pub(super) reason: Option<Reason>,
    /// Whether the grant renews its lease, because the call comes from its own process tree.
    pub(super) renews: bool,
}

impl<'a> Receiver<'a> {
    pub(super) fn of(caller: &'a Caller) -> Self {
        Self {
            session: &caller.session,
            actor: caller.actor,
            reason: caller.reason.clone(),
            renews: caller.is_itself(),
        }
    }
}

/// Grants a key after ending the hold of a session that is gone. Its death is recorded afterwards, which ends
/// everything else it held; by then the holds that overlap the grant have ended as taken.
pub(super) fn carry_out(
    ctx: &mut Ctx<'_>,
    receiver: &Receiver<'_>,
    steps: &GrantPlan,
    request: &ClaimRequest,
) -> Result<Grant, Stop> {
    let mut record = steps.record.clone();
    if let Some((holder, previous)) = &steps.holder {
        match (previous, steps.record.current()) {
            (PreviousHolder::Gone(proof), Some(hold)) => {
                end(ctx, hold, EndedBy::Death)?;
                log_end(ctx, hold, EndedBy::Death, &proof.to_string())?;
                ctx.effects.dead.push(holder.id);
            }
            (PreviousHolder::Expired(doubt), Some(hold)) => {
                let why = format!("{doubt}; its lease and the lock delay have expired");
                end(ctx, hold, EndedBy::Lease)?;
                log_end(ctx, hold, EndedBy::Lease, &why)?;
                let why = "its lease expired and its process could not be checked";
                tell_loser(ctx, holder, &steps.record, receiver.session, why)?;
            }
            _ => {}
        }
        record = ctx.tx.lock_claim(&record.key)?;
    }
    let mut previous = taken_from(ctx, &record, receiver.session.id)?;
    if let Some(previous) = &mut previous {
        previous.survivors = steps.survivors.shown();
        previous.survivors_unsure.clone_from(&steps.survivors.doubt);
        // Its session stays open until its death is recorded.
        if let Some((_, PreviousHolder::Gone(proof))) = &steps.holder {
            previous.proof = proof.to_string();
        }
    }
    let terms = Terms {
        means: Means::Claim,
        request: request.request.clone(),
        note: request.note.clone(),
        taken_from: previous,
        actor: receiver.actor,
        reason: receiver.reason.clone(),
    };
    let hold = grant(ctx, &record, receiver.session, terms)?;
    granted(ctx, hold, receiver.session)
}

/// What the next holder should know about the previous one, if that did not release the key itself.
pub(super) fn taken_from(
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
        (None, EndedBy::Lease) => "its lease expired and its process could not be checked".into(),
        (None, _) => "it lost this claim, and its session is still open".into(),
    };
    taken(ctx, &session, hold, by, proof).map(Some)
}

pub(super) fn taken(
    ctx: &Ctx<'_>,
    session: &Session,
    hold: &Hold,
    by: EndedBy,
    proof: String,
) -> Result<TakenFrom, Stop> {
    let session = ctx.with_branch(session)?;
    Ok(TakenFrom {
        session: session.id.to_string(),
        handle: session.handle.to_string(),
        epoch: hold.epoch.0,
        by: by.as_str().into(),
        proof,
        dir: session.workdir.dir,
        branch: session.workdir.branch,
        survivors: Vec::new(),
        survivors_unsure: None,
        also_ended: Vec::new(),
    })
}

pub(super) struct Terms {
    pub(super) means: Means,
    pub(super) request: Option<RequestId>,
    pub(super) note: Option<String>,
    pub(super) taken_from: Option<TakenFrom>,
    pub(super) actor: Option<SessionId>,
    pub(super) reason: Option<Reason>,
}

/// Grants a key. Only this function raises an epoch.
pub(super) fn grant(
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
        home: ctx.home_for(&record.key).or_else(|| previous_home(record)),
        granted_at: ctx.now.wall,
        taken_from: terms.taken_from,
        ended: None,
    };
    ctx.tx.insert_hold(&hold, record.epoch)?;
    let evidence = match &hold.taken_from {
        Some(previous) => format!("previous holder {}: {}", previous.handle, previous.proof),
        None if record.newest.is_none() => "never held before".into(),
        None if hold.means == Means::Handoff => "handed over by its holder".into(),
        None if record.is_done() => "it was done".into(),
        None => "it was free".into(),
    };
    let kind = match hold.means {
        Means::Takeover => EventKind::Taken,
        _ => EventKind::Granted,
    };
    ctx.log(&NewEvent {
        actor: terms.actor.filter(|actor| *actor != to.id),
        key: Some(hold.key.clone()),
        epoch: Some(hold.epoch),
        reason: terms.reason.map(String::from),
        ..ctx.event(kind, Some(to.id), hold.means.as_str(), evidence)
    })?;
    if let (Some(previous), EventKind::Granted) = (&hold.taken_from, kind) {
        let evidence = format!("{} {}", previous.handle, previous.proof);
        ctx.log(&NewEvent {
            key: Some(hold.key.clone()),
            epoch: Some(hold.epoch),
            ..ctx.event(
                EventKind::Replaced,
                Some(to.id),
                hold.means.as_str(),
                evidence,
            )
        })?;
    }
    Ok(hold)
}

/// The repository that a path was held in before. A grant from elsewhere keeps it.
fn previous_home(record: &ClaimRecord) -> Option<Home> {
    record.newest.as_ref().and_then(|hold| hold.home.clone())
}

pub(super) fn end(ctx: &mut Ctx<'_>, hold: &Hold, by: EndedBy) -> Result<HoldEnd, Stop> {
    let end = HoldEnd {
        at: ctx.now.wall,
        by,
    };
    ctx.tx.end_hold(&hold.key, hold.epoch, end)?;
    Ok(end)
}

pub(super) fn log_end(ctx: &mut Ctx<'_>, hold: &Hold, by: EndedBy, why: &str) -> Result<(), Stop> {
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

/// Notifies a session that it lost a key.
pub(super) fn tell_loser(
    ctx: &mut Ctx<'_>,
    loser: &Session,
    record: &ClaimRecord,
    winner: &Session,
    why: &str,
) -> Result<(), Stop> {
    let now = record.epoch.next();
    let message = format!(
        "{} took over {} (epoch {}→{now}). Reason: {why}",
        winner.handle,
        text::name(record.key.as_str()),
        record.epoch
    );
    ctx.notify(
        loser.id,
        NoticeKind::Lost,
        message,
        Some(winner.id),
        Some((&record.key, now)),
    )
}

/// Ends what a session holds because its lease and the lock delay have expired.
pub fn end_by_lease(ctx: &mut Ctx<'_>, session: &Session, why: &str) -> Result<(), Stop> {
    ctx.lock_with(|ctx| ctx.locks_to_close(session.id))?;
    ctx.end_open_holds(session.id, EndedBy::Lease, why)
}

/// The answer for a claim that the caller has.
pub(super) fn answer(
    ctx: &mut Ctx<'_>,
    record: &ClaimRecord,
    already_held: bool,
) -> Result<Grant, Stop> {
    let mut view = shown(ctx, record)?;
    view.already_held = Some(already_held);
    view.taken_from = record
        .current()
        .and_then(|hold| hold.taken_from.clone())
        .filter(|_| !already_held);
    Ok(view)
}

/// The answer for a grant that was just written.
fn granted(ctx: &mut Ctx<'_>, hold: Hold, to: &Session) -> Result<Grant, Stop> {
    let taken_from = hold.taken_from.clone();
    let record = ClaimRecord {
        key: hold.key.clone(),
        epoch: hold.epoch,
        newest: Some(hold),
    };
    let mut view = held_by(ctx, &record, to)?;
    view.already_held = Some(false);
    view.taken_from = taken_from;
    Ok(view)
}

pub(super) fn view_of(ctx: &mut Ctx<'_>, key: &Key) -> Result<ClaimView, Stop> {
    let record = ctx.claim_record(key)?;
    shown(ctx, &record)
}

/// The view of a key with its holder.
pub fn shown(ctx: &mut Ctx<'_>, record: &ClaimRecord) -> Result<ClaimView, Stop> {
    let Some(hold) = record.current() else {
        return Ok(ClaimView::new(record, None));
    };
    let session = ctx.session(hold.session)?;
    held_by(ctx, record, &session)
}

/// The view of a key that this session holds.
pub(super) fn held_by(
    ctx: &mut Ctx<'_>,
    record: &ClaimRecord,
    session: &Session,
) -> Result<ClaimView, Stop> {
    let (view, standing) = ctx.brief(session)?;
    let mut claim = ClaimView::new(record, Some((view, &standing)));
    claim.age = record
        .current()
        .map(|hold| hold.granted_at.age_at(ctx.now.wall));
    Ok(claim)
}
