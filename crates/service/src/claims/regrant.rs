//! What a session that comes back is granted again.

use super::grant::{Terms, grant};
use super::rivals::{Asker, Rivals, end_gone, rivals};
use crate::context::{Ctx, Stop};
use crate::view::HeldView;
use tenure_core::claim::{ClaimRecord, EndedBy, Hold, Means};
use tenure_core::notice::{Notice, NoticeKind};
use tenure_core::session::Session;

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
        let by = hold.ended.map(|end| end.by);
        let record = ctx.tx.lock_claim(&hold.key)?;
        let overlapped = by == Some(EndedBy::Taken) && record.epoch == hold.epoch;
        if !matches!(by, Some(EndedBy::End | EndedBy::Death | EndedBy::Lease)) && !overlapped {
            continue;
        }
        let asker = Asker {
            id: to.id,
            blind: false,
        };
        match rivals(ctx, asker, &hold.key, hold.home.as_ref())? {
            Rivals::Gone(gone) if record.is_regrantable(&hold) => {
                end_gone(ctx, &gone, &hold.key, to)?;
                outcome
                    .regranted
                    .push(grant_again(ctx, &record, &hold, to, means)?);
            }
            Rivals::Living(living) if hold.life == from.life => {
                let (rival, holder) = (&living.key, &living.session.handle);
                let text = format!("{}: {holder} has {rival}, which overlaps it", hold.key);
                tell_taken(ctx, to, &record, &text)?;
                outcome.taken.push(text);
            }
            _ if hold.life == from.life && !overlapped => {
                let text = taken_since(ctx, &record)?;
                tell_taken(ctx, to, &record, &text)?;
                outcome.taken.push(text);
            }
            _ => {}
        }
    }
    Ok(outcome)
}

fn grant_again(
    ctx: &mut Ctx<'_>,
    record: &ClaimRecord,
    hold: &Hold,
    to: &Session,
    means: Means,
) -> Result<HeldView, Stop> {
    let terms = Terms {
        means,
        request: hold.request.clone(),
        note: hold.note.clone(),
        taken_from: None,
        actor: None,
        reason: None,
    };
    let granted = grant(ctx, record, to, terms)?;
    Ok(HeldView {
        key: granted.key.to_string(),
        epoch: granted.epoch.0,
    })
}

/// Keeps that a claim went to another meanwhile, so that it is told even if this answer gets lost.
fn tell_taken(
    ctx: &mut Ctx<'_>,
    to: &Session,
    record: &ClaimRecord,
    text: &str,
) -> Result<(), Stop> {
    let waiting = ctx.tx.pending_notices(to.id, 0)?;
    let key = Some(record.key.as_str());
    let is_told = |notice: &Notice| notice.kind == NoticeKind::Lost && notice.key.as_deref() == key;
    if waiting.iter().any(is_told) {
        return Ok(());
    }
    let from = record.current().map(|hold| hold.session);
    let about = Some((&record.key, record.epoch));
    let message = format!("you lost {text}");
    ctx.notify(to.id, NoticeKind::Lost, message, from, about)
}

/// Who has what the session held before.
fn taken_since(ctx: &mut Ctx<'_>, record: &ClaimRecord) -> Result<String, Stop> {
    let now = match record.current() {
        Some(other) => format!("{} has it now", ctx.session(other.session)?.handle),
        None if record.is_done() => "it is done".into(),
        None => "others had it since".into(),
    };
    Ok(format!("{}: {now} (epoch {})", record.key, record.epoch))
}
