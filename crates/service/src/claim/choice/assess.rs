//! What a request for one key would result in, without changing anything.
//!
//! [`tenure_core::claim::decide`] is the rule. This module adds the two things that the row of a key does not
//! contain: other keys that overlap a `path:` key, and processes that a dead holder left running.

use std::time::Duration;

use super::snapshot::ClaimSnapshot;
use crate::claim::grant::{GrantPlan, shown};
use crate::claim::request::ClaimRequest;
use crate::claim::rivals::{Asker, Rivals, rivals};
use crate::claim::view::ClaimView;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use tenure_core::claim::{ClaimOptions, ClaimRecord, EndedBy, Hold, Verdict, decide};
use tenure_core::id::SessionId;
use tenure_core::key::Key;
use tenure_core::process::{Process, Survivors};
use tenure_core::session::{Session, Standing};

/// The outcome of a request for one key.
pub(super) enum Finding {
    /// It can be granted by this plan.
    Free(Box<GrantPlan>),
    /// The asker has it, from before or by this same request.
    Mine {
        record: Box<ClaimRecord>,
        retry: bool,
    },
    Refused(Box<Refusal>),
}

/// Why a key is refused, and what may change that.
pub(in crate::claim) struct Refusal {
    pub(in crate::claim) error: Error,
    /// Whether waiting can help.
    pub(in crate::claim) waits: bool,
    /// Processes whose exit may free a key.
    pub(in crate::claim) watch: Vec<Process>,
    /// When it may become free by itself.
    pub(in crate::claim) at_most: Option<Duration>,
    /// The holder that is invisible from inside a sandbox.
    pub(in crate::claim) unseen: Option<Session>,
    /// Keys that others may take although this asker cannot.
    pub(in crate::claim) open_to_others: Vec<Key>,
}

impl Refusal {
    /// A refusal that waiting does not change.
    pub(in crate::claim) fn permanently(error: Error) -> Self {
        Self {
            error,
            waits: false,
            watch: Vec::new(),
            at_most: None,
            unseen: None,
            open_to_others: Vec::new(),
        }
    }
}

/// `shown` is false for a refusal whose text is not shown.
pub(super) fn assess(
    ctx: &mut Ctx<'_>,
    asker: Asker,
    key: &Key,
    request: &ClaimRequest,
    known: &ClaimSnapshot,
    shown: bool,
) -> Result<Finding, Stop> {
    let ask = ClaimOptions {
        request: request.request.clone(),
        once: request.once,
        reopen: request.reopen,
        blind: asker.blind,
    };
    let is_plain = !key.has_other_names();
    let key = &if is_plain {
        key.clone()
    } else {
        ctx.key_to_claim(key, asker.id)?
    };
    let record = known.record(ctx, key)?;
    let mine = known.mine(ctx, asker.id, key)?;
    let holder = known.holder_of(ctx, &record, asker.id)?;
    let standing = holder.as_ref().map(|(_, standing)| standing);
    let previous = match decide(&record, asker.id, mine.as_ref(), standing, &ask) {
        Verdict::Grant(previous) => previous,
        Verdict::AlreadyHeld => return Ok(mine_already(&record, false)),
        Verdict::Retry => return Ok(mine_already(&record, true)),
        refusal => {
            let claim = if shown {
                self::shown(ctx, &record)?
            } else {
                ClaimView::new(&record, None)
            };
            let error = refuse(&record, holder.as_ref(), mine.as_ref(), refusal, claim);
            return refused(ctx, error, holder.as_ref());
        }
    };
    let found = if is_plain {
        Rivals::Gone(Vec::new())
    } else {
        rivals(ctx, asker, key, None)?
    };
    let rivals = match found {
        Rivals::Gone(gone) => gone,
        Rivals::Living(rival) => {
            let holder = (rival.session, rival.standing);
            return refused(ctx, rival.error, Some(&holder));
        }
    };
    if let Some(left) = known.may_be_written_for(ctx, key)? {
        let claim = Box::new(self::shown(ctx, &record)?);
        let key = key.clone();
        let mut refused = refused(ctx, Error::Suspect { key, claim, left }, None)?;
        if let Finding::Refused(refusal) = &mut refused {
            refusal.at_most = Some(left);
        }
        return Ok(refused);
    }
    let survivors = survivors(ctx, &record, asker.id)?;
    if request.require_quiet
        && let Some(error) = noise(ctx, &record, &survivors)?
    {
        return refused(ctx, error, None);
    }
    Ok(Finding::Free(Box::new(GrantPlan {
        record,
        holder: holder.map(|(session, _)| (session, previous)),
        rivals,
        survivors,
    })))
}

fn mine_already(record: &ClaimRecord, retry: bool) -> Finding {
    Finding::Mine {
        record: Box::new(record.clone()),
        retry,
    }
}

fn refused(
    ctx: &mut Ctx<'_>,
    error: Error,
    holder: Option<&(Session, Standing)>,
) -> Result<Finding, Stop> {
    let waits = matches!(
        error,
        Error::Held { .. }
            | Error::Suspect { .. }
            | Error::Overlaps { .. }
            | Error::LeftRunning { .. }
    );
    let unseen = match (&error, holder) {
        (Error::CannotTell { .. }, Some((session, _))) => Some(session.clone()),
        _ => None,
    };
    let at_most = match (&error, holder) {
        (Error::LeftRunning { .. }, _) => Some(Duration::from_millis(500)),
        (_, Some((_, Standing::Suspect { left, .. }))) => Some(*left),
        (
            _,
            Some((
                _,
                Standing::Trusted {
                    left: Some(left), ..
                },
            )),
        ) => Some(*left),
        _ => None,
    };
    let open_to_others = match &error {
        Error::LeftRunning { key, .. } => vec![key.clone()],
        _ => Vec::new(),
    };
    let watch = match holder {
        Some((session, _)) => ctx.watched(session)?,
        None => None,
    };
    Ok(Finding::Refused(Box::new(Refusal {
        error,
        waits,
        watch: watch.into_iter().collect(),
        at_most,
        unseen,
        open_to_others,
    })))
}

/// What the previous holder left running, if it did not release the key itself.
fn survivors(ctx: &mut Ctx<'_>, record: &ClaimRecord, me: SessionId) -> Result<Survivors, Stop> {
    let Some(hold) = record.newest.as_ref().filter(|hold| hold.session != me) else {
        return Ok(Survivors::default());
    };
    match hold.ended.map(|end| end.by) {
        None | Some(EndedBy::Death | EndedBy::End) => {
            let session = ctx.session(hold.session)?;
            // A resumed session is in a later life; what the earlier ones left running still counts.
            let life = if session.is_open() {
                hold.life
            } else {
                session.life
            };
            ctx.survivors(&session, life)
        }
        Some(_) => Ok(Survivors::default()),
    }
}

fn noise(
    ctx: &mut Ctx<'_>,
    record: &ClaimRecord,
    survivors: &Survivors,
) -> Result<Option<Error>, Stop> {
    let Some(hold) = &record.newest else {
        return Ok(None);
    };
    let key = record.key.clone();
    let handle = ctx.session(hold.session)?.handle.to_string();
    if !survivors.found.is_empty() {
        let survivors = survivors.shown();
        return Ok(Some(Error::LeftRunning {
            key,
            handle,
            survivors,
        }));
    }
    let doubt = survivors.doubt.clone();
    Ok(doubt.map(|why| Error::MaybeLeftRunning { key, handle, why }))
}

/// Turns a negative verdict into an error.
fn refuse(
    record: &ClaimRecord,
    holder: Option<&(Session, Standing)>,
    mine: Option<&Hold>,
    verdict: Verdict,
    claim: ClaimView,
) -> Error {
    let key = record.key.clone();
    let epoch = record.epoch;
    let handle = holder.map_or("its holder".into(), |(session, _)| {
        session.handle.to_string()
    });
    let claim = Box::new(claim);
    match verdict {
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
    }
}
