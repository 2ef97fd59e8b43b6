//! What the product answers, in the words of a history.

use tenure_service::error::Error;
use tenure_service::view::ClaimView;
use tenure_service::{Failure, Registered};

use super::record::{Answer, Grant, Refusal};

/// What came of a registration.
pub(super) fn said(registered: Registered) -> Answer {
    let again = registered.regranted.into_iter();
    Answer::Registered {
        life: registered.session.process.life,
        session: registered.session.id,
        word: registered.session.registered.unwrap_or_default().to_owned(),
        regranted: again.map(|held| (held.key, held.epoch)).collect(),
    }
}

/// Yes, and nothing more.
pub(super) fn nothing<T>(done: Result<T, Failure>) -> Answer {
    match done {
        Ok(_) => Answer::Yes {
            epoch: None,
            holder: None,
        },
        Err(failure) => refusal(&failure.error),
    }
}

pub(super) fn said_grant(view: &ClaimView) -> Grant {
    let former = view.taken_from.as_ref();
    let along = former.into_iter().flat_map(|former| &former.also_ended);
    Grant {
        key: view.key.clone(),
        epoch: view.epoch,
        holder: view.holder.as_ref().map(|holder| holder.id.clone()),
        already_held: view.already_held == Some(true),
        taken_from: former.map(|former| (former.session.clone(), former.epoch)),
        also_ended: along.map(|held| (held.key.clone(), held.epoch)).collect(),
    }
}

/// What the product refused, in the words of a history.
pub(super) fn refusal(error: &Error) -> Answer {
    let none_free = matches!(error, Error::NoneFree { .. });
    let inner = match error {
        Error::NoneFree { first, .. } => first,
        other => other,
    };
    let key = match inner {
        Error::Held { key, .. }
        | Error::Suspect { key, .. }
        | Error::Overlaps { key, .. }
        | Error::Done { key, .. }
        | Error::AlreadyHeld { key, .. }
        | Error::Free { key }
        | Error::Lost { key, .. }
        | Error::Noisy { key, .. }
        | Error::NoSuchEpoch { key, .. } => Some(key.to_string()),
        _ => None,
    };
    let claim = inner.claim();
    let epoch = match inner {
        Error::AlreadyHeld { epoch, .. } => Some(epoch.0),
        _ => claim.map(|claim| claim.epoch),
    };
    let holder = claim.and_then(|claim| claim.holder.as_ref());
    Answer::Refused(Refusal {
        kind: inner.kind().to_owned(),
        none_free,
        rival: claim
            .map(|claim| claim.key.clone())
            .filter(|rival| Some(rival) != key.as_ref()),
        key,
        holder: holder.map(|holder| holder.id.clone()),
        epoch,
        text: inner.to_string(),
    })
}
