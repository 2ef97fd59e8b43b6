//! Calls the product, and converts its answers to the form of a history.

use tenure_app::keeper::Away;
use tenure_core::id::{Epoch, RequestId};
use tenure_core::key::Key;
use tenure_core::notice::Pending;
use tenure_service::answer::Problem;
use tenure_service::error::Error;
use tenure_service::view::ClaimView;
use tenure_service::{
    ActFor, Answer as Told, ClaimRequest, GuardRequest, HandoffRequest, Pick, Registered,
    ReleaseRequest, RenewRequest, Reply, Service, TakeoverRequest,
};

use super::record::{CallAnswer, Claim, Grant, Op, RefusalRecord};

/// An answer, and its notices.
pub type AnswerWithNotices = (CallAnswer, Pending);

/// Makes any call except a registration. A claim does not wait.
pub fn ask(service: &mut Service<'_>, act_for: &ActFor, op: &Op) -> AnswerWithNotices {
    let note = note_of(act_for);
    match op {
        Op::Register { .. } => unreachable!("a registration says more than this"),
        Op::Recall { .. } => unreachable!("the store is not asked"),
        Op::End => said(service.end(act_for), |_| nothing()),
        Op::Renew => said(service.renew(act_for, &RenewRequest::default()), |_| {
            nothing()
        }),
        Op::Claim(claim) => {
            let reply = service.claim(act_for, &request_of(claim, act_for));
            said(reply, |grants| said_grants(&grants))
        }
        Op::Release { key, epoch, done } => {
            let (key, epoch, done) = (key_of(key), epoch.map(Epoch), *done);
            let request = ReleaseRequest { key, epoch, done };
            said(service.release(act_for, &request), yes)
        }
        Op::Handoff { key, to, epoch } => {
            let request = HandoffRequest {
                key: key_of(key),
                to: to.clone(),
                epoch: epoch.map(Epoch),
                note,
            };
            said(service.handoff(act_for, &request), yes)
        }
        Op::Takeover { key, from, epoch } => {
            let request = TakeoverRequest {
                key: key_of(key),
                from: from.clone(),
                epoch: epoch.map(Epoch),
                note,
                reason: act_for.reason.clone().expect("a takeover has a reason"),
            };
            let reply = service.takeover(act_for, &request);
            said(reply, |grant| said_grants(&[grant]))
        }
        Op::Guard { key, epoch } => {
            let (key, epoch) = (key_of(key), epoch.map(Epoch));
            said(service.guard(act_for, &GuardRequest { key, epoch }), yes)
        }
    }
}

pub(super) fn request_of(claim: &Claim, act_for: &ActFor) -> ClaimRequest {
    let request = claim.request.as_deref().map(RequestId::parse).transpose();
    ClaimRequest {
        keys: claim.keys.iter().map(|key| key_of(key)).collect(),
        pick: if claim.any { Pick::Any } else { Pick::All },
        request: request.expect("a driver names requests rightly"),
        once: claim.once,
        reopen: claim.reopen,
        note: note_of(act_for),
        require_quiet: claim.quiet,
    }
}

/// The note by which the audit finds a call.
fn note_of(act_for: &ActFor) -> Option<String> {
    act_for.reason.clone().map(String::from)
}

pub(super) fn key_of(key: &str) -> Key {
    Key::parse(key).expect("a driver names keys rightly")
}

pub fn said<T>(reply: Reply<T>, say: impl FnOnce(T) -> CallAnswer) -> AnswerWithNotices {
    match reply {
        Ok(answer) => (say(answer.value), answer.notices),
        Err(failure) => (refusal(&failure.error), failure.notices),
    }
}

/// What a command is told.
pub(super) fn told<T>(
    reply: Result<Told<T>, Problem>,
    say: impl FnOnce(T) -> CallAnswer,
) -> CallAnswer {
    match reply {
        Ok(answer) => say(answer.value),
        Err(problem) => refused(&problem),
    }
}

/// A refusal that a command shows.
pub(super) fn refused(problem: &Problem) -> CallAnswer {
    CallAnswer::Refused(RefusalRecord {
        kind: problem.kind.clone(),
        text: problem.message.clone(),
        ..RefusalRecord::default()
    })
}

/// What a host remembers about a key, for a caller that the store does not answer.
pub(super) fn from_memory(key: &str, epoch: Option<u64>) -> CallAnswer {
    let known = match Away::look() {
        Ok(known) => known,
        Err(problem) => return refused(&problem),
    };
    let guarded = known.map(|away| away.guard(&key_of(key), epoch.map(Epoch)));
    match guarded {
        Some(Ok(permitted)) => CallAnswer::Yes {
            epoch: Some(permitted.epoch.0),
            holder: None,
        },
        Some(Err(problem)) => refused(&problem),
        None => CallAnswer::Refused(RefusalRecord::default()),
    }
}

/// The result of a registration.
pub fn registration(registered: Registered) -> CallAnswer {
    let again = registered.regranted.into_iter();
    CallAnswer::Registered {
        life: registered.session.process.life,
        session: registered.session.id,
        word: registered.session.registered.unwrap_or_default().to_owned(),
        regranted: again.map(|held| (held.key, held.epoch)).collect(),
    }
}

/// Yes, with no details.
pub(super) fn nothing() -> CallAnswer {
    CallAnswer::Yes {
        epoch: None,
        holder: None,
    }
}

pub(super) fn yes(view: ClaimView) -> CallAnswer {
    CallAnswer::Yes {
        epoch: Some(view.epoch),
        holder: view.holder.map(|holder| holder.id),
    }
}

pub(super) fn said_grants(views: &[ClaimView]) -> CallAnswer {
    CallAnswer::Granted {
        grants: views.iter().map(said_grant).collect(),
    }
}

fn said_grant(view: &ClaimView) -> Grant {
    let previous = view.taken_from.as_ref();
    let along = previous
        .into_iter()
        .flat_map(|previous| &previous.also_ended);
    Grant {
        key: view.key.clone(),
        epoch: view.epoch,
        holder: view.holder.as_ref().map(|holder| holder.id.clone()),
        already_held: view.already_held == Some(true),
        taken_from: previous.map(|previous| (previous.session.clone(), previous.epoch)),
        also_ended: along.map(|held| (held.key.clone(), held.epoch)).collect(),
    }
}

/// A refusal of the product, in the form of a history.
pub(super) fn refusal(error: &Error) -> CallAnswer {
    let none_free = matches!(error, Error::NoneFree { .. });
    let inner = match error {
        Error::NoneFree { first, .. } => first,
        other => other,
    };
    let key = match inner {
        Error::Held { key, .. }
        | Error::ChangedHands { key, .. }
        | Error::Suspect { key, .. }
        | Error::Overlaps { key, .. }
        | Error::Done { key, .. }
        | Error::AlreadyHeld { key, .. }
        | Error::Free { key }
        | Error::Lost { key, .. }
        | Error::LeftRunning { key, .. }
        | Error::NoSuchEpoch { key, .. } => Some(key.to_string()),
        _ => None,
    };
    let claim = inner.claim();
    let epoch = match inner {
        Error::AlreadyHeld { epoch, .. } => Some(epoch.0),
        _ => claim.map(|claim| claim.epoch),
    };
    let holder = claim.and_then(|claim| claim.holder.as_ref());
    CallAnswer::Refused(RefusalRecord {
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
