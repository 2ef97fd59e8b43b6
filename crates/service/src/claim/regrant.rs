//! What a resumed session is granted again.

use std::collections::{BTreeMap, BTreeSet};

use super::grant::{Terms, grant};
use super::rivals::{Asker, Rivals, end_gone, locks_of, rivals};
use crate::context::{Ctx, Stop};
use crate::session::view::HeldView;
use tenure_core::claim::{ClaimRecord, EndedBy, Hold, Means};
use tenure_core::id::SessionId;
use tenure_core::key::Key;
use tenure_core::notice::NoticeKind;
use tenure_core::session::Session;
use tenure_core::store::Lock;

/// What a resumed session got back, and what others hold now.
pub struct Regranted {
    pub regranted: Vec<HeldView>,
    pub taken: Vec<String>,
}

/// Grants `to` what `from` held in its last life, if no one has taken it since.
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
    let asker = Asker {
        id: to.id,
        blind: false,
    };
    ctx.lock_with(|ctx| locks(ctx, from, asker))?;
    let lost = lost(ctx, from)?;
    let told = LossContext::read(ctx, to, &lost)?;
    for (record, hold) in lost {
        let overlapped = is_overlapped(&record, &hold);
        match rivals(ctx, asker, &hold.key, hold.home.as_ref())? {
            Rivals::Gone(gone) if record.is_regrantable(&hold) => {
                end_gone(ctx, &gone, &hold.key, to)?;
                outcome
                    .regranted
                    .push(grant_again(ctx, &record, &hold, to, means)?);
            }
            Rivals::Living(living) if hold.life == from.life => {
                let (rival, holder) = (&living.key, &living.session.handle);
                let text = format!("{}: {holder} holds {rival}, which overlaps it", hold.key);
                told.tell_taken(ctx, to, &record, &text)?;
                outcome.taken.push(text);
            }
            _ if hold.life == from.life && !overlapped => {
                let text = told.taken_since(ctx, &record)?;
                told.tell_taken(ctx, to, &record, &text)?;
                outcome.taken.push(text);
            }
            _ => {}
        }
    }
    Ok(outcome)
}

/// What a session held last and did not give up, each with its key's row.
fn lost(ctx: &mut Ctx<'_>, from: &Session) -> Result<Vec<(ClaimRecord, Hold)>, Stop> {
    let holds = ctx.tx.ungiven_holds(from.id)?;
    let keys: Vec<Key> = holds.iter().map(|hold| hold.key.clone()).collect();
    let mut lost: Vec<_> = ctx.claim_records(&keys)?.into_iter().zip(holds).collect();
    lost.retain(|(record, hold)| {
        hold.ended.is_some_and(|end| end.by != EndedBy::Taken) || is_overlapped(record, hold)
    });
    Ok(lost)
}

/// Whether a hold ended because another session took an overlapping one.
fn is_overlapped(record: &ClaimRecord, hold: &Hold) -> bool {
    hold.ended.is_some_and(|end| end.by == EndedBy::Taken) && record.epoch == hold.epoch
}

/// The locks needed to grant these again.
fn locks(ctx: &mut Ctx<'_>, from: &Session, asker: Asker) -> Result<Vec<Lock>, Stop> {
    let mut locks = vec![Lock::Session(asker.id)];
    for (record, hold) in lost(ctx, from)? {
        if let Rivals::Gone(gone) = rivals(ctx, asker, &hold.key, hold.home.as_ref())?
            && record.is_regrantable(&hold)
        {
            locks.append(&mut ctx.space_locks(&hold.key, hold.home.as_ref())?);
            locks.push(Lock::Key(hold.key));
            locks.append(&mut locks_of(&gone));
        }
    }
    Ok(locks)
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

/// What the messages about lost keys need, read together.
struct LossContext {
    /// Keys whose loss the session is to be told already.
    told: Vec<Key>,
    holders: BTreeMap<SessionId, Session>,
}

impl LossContext {
    fn read(ctx: &mut Ctx<'_>, to: &Session, lost: &[(ClaimRecord, Hold)]) -> Result<Self, Stop> {
        let keys: Vec<Key> = lost.iter().map(|(record, _)| record.key.clone()).collect();
        let holders = lost.iter().filter_map(|(record, _)| record.current());
        let holders: BTreeSet<SessionId> = holders.map(|hold| hold.session).collect();
        let holders: Vec<SessionId> = holders.into_iter().collect();
        let holders = ctx.tx.sessions(&holders)?.into_iter();
        Ok(Self {
            told: ctx.tx.losses_told(to.id, &keys)?,
            holders: holders.map(|session| (session.id, session)).collect(),
        })
    }

    /// Records that a claim was reassigned, so that the session learns it even if this answer is lost.
    fn tell_taken(
        &self,
        ctx: &mut Ctx<'_>,
        to: &Session,
        record: &ClaimRecord,
        text: &str,
    ) -> Result<(), Stop> {
        if self.told.contains(&record.key) {
            return Ok(());
        }
        let from = record.current().map(|hold| hold.session);
        let about = Some((&record.key, record.epoch));
        let message = format!("you lost {text}");
        ctx.notify(to.id, NoticeKind::Lost, message, from, about)
    }

    /// Who holds what the session held before.
    fn taken_since(&self, ctx: &mut Ctx<'_>, record: &ClaimRecord) -> Result<String, Stop> {
        let now = match record.current() {
            Some(other) => {
                let handle = match self.holders.get(&other.session) {
                    Some(holder) => holder.handle.clone(),
                    None => ctx.session(other.session)?.handle,
                };
                format!("{handle} holds it now")
            }
            None if record.is_done() => "it is done".into(),
            None => "it was reassigned and is now free".into(),
        };
        Ok(format!("{}: {now} (epoch {})", record.key, record.epoch))
    }
}
