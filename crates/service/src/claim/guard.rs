//! Who holds a key, for a session that wants to write, release or hand off.

use super::grant::{holder_of, shown};
use super::request::GuardRequest;
use crate::caller::behalf;
use crate::caller::{self, Caller};
use crate::claim::view::ClaimView;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use tenure_core::claim::{ClaimRecord, EndedBy, Hold};
use tenure_core::id::{Epoch, SessionId};
use tenure_core::key::Key;
use tenure_core::session::{Session, Standing};
use tenure_core::store::LostHolds;
use tenure_core::time::Timestamp;

/// The row of the key as typed, if that is held, else of the key that the item is held under.
pub(super) fn held_record(
    ctx: &mut Ctx<'_>,
    key: &Key,
    me: Option<SessionId>,
) -> Result<ClaimRecord, Stop> {
    let record = ctx.claim_record(key)?;
    if record.current().is_some() {
        return Ok(record);
    }
    let held = ctx.held_key(key, me)?;
    if held == *key {
        Ok(record)
    } else {
        ctx.claim_record(&held)
    }
}

/// A key's row and the caller's open hold of it, or why it has none.
pub(super) fn own_hold(
    ctx: &mut Ctx<'_>,
    caller: &Caller,
    key: &Key,
    epoch: Option<Epoch>,
) -> Result<(ClaimRecord, Hold), Stop> {
    let record = held_record(ctx, key, Some(caller.session.id))?;
    match record.current().cloned() {
        Some(hold) if hold.session == caller.session.id => {
            check_epoch(ctx, &record, epoch)?;
            Ok((record, hold))
        }
        _ => Err(not_mine(ctx, caller, &record, epoch)?),
    }
}

/// Checks that the caller's epoch is the key's current one.
pub(super) fn check_epoch(
    ctx: &mut Ctx<'_>,
    record: &ClaimRecord,
    named: Option<Epoch>,
) -> Result<(), Stop> {
    check_granted(record, named)?;
    let key = record.key.clone();
    match named {
        Some(named) if named < record.epoch => Err(Error::Lost {
            key,
            epoch: named,
            claim: Box::new(shown(ctx, record)?),
        }
        .into()),
        _ => Ok(()),
    }
}

/// Why a key is not the caller's: lost, held by another, free or done. Records the death of a dead holder.
pub(super) fn not_mine(
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
        ctx.record_death_later(holder)?;
    }
    check_granted(record, named)?;
    if record.is_done() {
        let claim = Box::new(shown(ctx, record)?);
        return Ok(Error::Done { key, claim }.into());
    }
    Ok(Error::Free { key }.into())
}

/// Checks that the caller's epoch was ever granted.
fn check_granted(record: &ClaimRecord, named: Option<Epoch>) -> Result<(), Stop> {
    match named {
        Some(named) if named > record.epoch => Err(Error::NoSuchEpoch {
            key: record.key.clone(),
            now: record.epoch,
            named,
        }
        .into()),
        _ => Ok(()),
    }
}

pub(super) fn already_held(hold: &Hold) -> Error {
    Error::AlreadyHeld {
        key: hold.key.clone(),
        epoch: hold.epoch,
    }
}

/// A session that may receive something. It must be proved alive.
pub(super) fn live_receiver(ctx: &mut Ctx<'_>, name: &str) -> Result<Session, Stop> {
    let session = caller::find(ctx, name)?;
    behalf::known_to_live(ctx, session)
}

/// Whether a session may write to what a key protects.
pub(super) fn guard(
    ctx: &mut Ctx<'_>,
    caller: &Caller,
    request: &GuardRequest,
) -> Result<ClaimView, Stop> {
    let record = held_record(ctx, &request.key, Some(caller.session.id))?;
    if !caller.session.is_open() {
        return Err(not_mine(ctx, caller, &record, request.epoch)?);
    }
    if let Some(answer) = covered_by(ctx, caller, &record, request)? {
        return Ok(answer);
    }
    if request.key.path().is_some() {
        return guard_path(ctx, caller, &record, request);
    }
    Err(not_mine(ctx, caller, &record, request.epoch)?)
}

/// Refuses a caller that lost claims and has taken none since, because it would publish on top of another
/// session's work. A key that is free now does not count, and a later grant shows that the session works on
/// something else, or on the same item again. *Clock jump*: a claim that seems older than the loss does not
/// count; claiming again does.
pub(super) fn not_lost(ctx: &mut Ctx<'_>, caller: &Caller) -> Result<(), Stop> {
    let id = caller.session.id;
    let mut lost = ctx.tx.lost_holds(id, LostHolds::Since(Timestamp(0)))?;
    if lost.is_empty() {
        // The last grant is looked for among all that a session ever held.
        return Ok(());
    }
    // A later grant means that earlier losses no longer matter.
    let granted = ctx.tx.last_grant(id)?.unwrap_or(Timestamp(0));
    lost.retain(|hold| hold.ended.is_some_and(|end| end.at >= granted));
    let mut claims = Vec::new();
    let keys: Vec<Key> = lost.iter().map(|hold| hold.key.clone()).collect();
    for (hold, record) in lost.iter().zip(ctx.claim_records(&keys)?) {
        let is_another_s = record.current().is_some() || record.is_done();
        if record.was_lost(hold) && is_another_s {
            claims.push(shown(ctx, &record)?);
        }
    }
    if claims.is_empty() {
        Ok(())
    } else {
        Err(Error::LostBefore { claims }.into())
    }
}

/// The positive answer, for a hold of the caller or an ancestor.
fn covered_by(
    ctx: &mut Ctx<'_>,
    caller: &Caller,
    record: &ClaimRecord,
    request: &GuardRequest,
) -> Result<Option<ClaimView>, Stop> {
    let Some(handle) = covering_hold(ctx, &caller.session, record)? else {
        return Ok(None);
    };
    check_epoch(ctx, record, request.epoch)?;
    let mut view = shown(ctx, record)?;
    view.via = Some(handle).filter(|handle| *handle != caller.session.handle.as_str());
    Ok(Some(view))
}

/// A path is covered by any hold that contains it, and refused by any that overlaps it.
fn guard_path(
    ctx: &mut Ctx<'_>,
    caller: &Caller,
    record: &ClaimRecord,
    request: &GuardRequest,
) -> Result<ClaimView, Stop> {
    let asked = request.key.path().map(|(_, glob)| glob);
    let contains = |key: &Key| match (key.path(), &asked) {
        (Some((_, held)), Some(asked)) => held.includes(asked),
        _ => false,
    };
    let mut beside = ctx.beside(&request.key, None)?;
    beside.retain(|rival| rival.key != record.key);
    beside.extend(record.current().map(|_| record.clone()));
    let mut refusing = None;
    for rival in beside {
        if contains(&rival.key)
            && let Some(answer) = covered_by(ctx, caller, &rival, request)?
        {
            return Ok(answer);
        }
        match holder_of(ctx, &rival, caller.session.id)? {
            Some((holder, Standing::Gone(_))) => {
                ctx.record_death_later(holder)?;
            }
            Some(_) => refusing = Some(rival),
            None => {}
        }
    }
    let mut lost = ctx
        .tx
        .lost_holds(caller.session.id, LostHolds::Below("path:"))?;
    lost.retain(|mine| contains(&mine.key));
    for mine in ctx.only_in_space(&request.key, lost)? {
        let held = ctx.claim_record(&mine.key)?;
        let taken = mine.ended.is_some_and(|end| end.by == EndedBy::Taken);
        let gone_meanwhile = refusing.is_some()
            && matches!(
                mine.ended.map(|end| end.by),
                Some(EndedBy::Death | EndedBy::Lease)
            );
        if taken || gone_meanwhile || held.was_lost(&mine) {
            let claim = Box::new(shown(ctx, refusing.as_ref().unwrap_or(&held))?);
            let (key, epoch) = (request.key.clone(), mine.epoch);
            return Err(Error::Lost { key, epoch, claim }.into());
        }
    }
    match refusing {
        Some(rival) if rival.key != record.key => {
            let claim = Box::new(shown(ctx, &rival)?);
            let key = request.key.clone();
            Err(Error::Overlaps { key, claim }.into())
        }
        _ => Err(not_mine(ctx, caller, record, request.epoch)?),
    }
}

/// Who holds a key for a session: itself, or an ancestor whose hold covers it.
pub fn covering_hold(
    ctx: &mut Ctx<'_>,
    session: &Session,
    record: &ClaimRecord,
) -> Result<Option<String>, Stop> {
    match record.current() {
        Some(hold) if hold.session == session.id => Ok(Some(session.handle.to_string())),
        _ => covering_ancestor(ctx, session, record),
    }
}

/// The ancestor whose hold covers the session: an ancestor in the life in which it was registered, never a
/// twin.
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
            // A hold from an earlier life was kept when the conversation changed its window.
            return Ok((hold.life <= token.life && lives).then(|| above.handle.to_string()));
        }
        below = above;
    }
    Ok(None)
}
