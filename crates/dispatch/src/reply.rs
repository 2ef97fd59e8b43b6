//! Writing in a forge: an "eyes" reaction to what was accepted, and one comment about a job that is
//! kept up to date.
//!
//! What to write is stored with the job and read from the store each time, so after a dispatcher is
//! killed the next one continues. *Never twice*: before a comment is created, the intention is
//! stored. If the result was not recorded, the comment is searched among those of our own account,
//! by the line with the job's id, before another is created. An edit may be repeated. *Forge
//! unavailable*: what a forge does not accept is retried later, with growing delays, and not before
//! the end of a limit that it named.

use tenure_core::dispatch::{Action, Reply as Wanted};
use tenure_core::forge::{ForgeEvent, Person};
use tenure_core::queue::reply::{ForgeReply, NewReply, Notice, ReplyKind, RunNow, mark};
use tenure_forges::api::{ApiError, CommentId, ForgeApi};
use tenure_service::answer::Problem;
use tenure_service::{DueReply, ReplyAttempt};

use super::forge_config::ForgeConfig;
use super::pulls;
use super::written::{AttemptOutcome, done, outcome};
use super::wrong::Wrong;
use tenure_app::open::Context;
use tenure_runs::said;

/// What a job of this rule should write; none if nothing can be written.
pub(super) fn wanted(forge: &ForgeConfig, event: &ForgeEvent, action: &Action) -> Option<NewReply> {
    let item = event.item.as_ref()?;
    let is_thread = matches!(item.scheme(), "issue" | "pr");
    if !forge.has_api() || !is_thread {
        return None;
    }
    let version = event.version.as_ref().map(|version| version.id.clone());
    Some(NewReply {
        forge: forge.name.clone(),
        eyes: action.reply != Wanted::Nothing,
        comment: action.reply == Wanted::Comment,
        target: version.filter(|id| target(id).is_some()),
        pull: action.publishing.open_pr,
        merge: action.publishing.merge,
    })
}

/// The comment with this id, and whether it is on lines of a change.
fn target(id: &str) -> Option<(CommentId, bool)> {
    let (of_review, number) = match id.strip_prefix("review-comment-") {
        Some(number) => (true, number),
        None => (false, id.strip_prefix("comment-")?),
    };
    Some((CommentId(number.parse().ok()?), of_review))
}

/// Writes what is due in a forge. Returns the last error, and rows that cannot be read.
pub(super) fn write_due(
    context: &mut Context,
    forge: &ForgeConfig,
    api: &dyn ForgeApi,
) -> Result<Wrong, Problem> {
    let mut failed = None;
    let found = context.service().due_replies(&forge.name)?;
    for due in found.value {
        let Some((written, error)) = write_one(context, forge, api, &due)? else {
            continue;
        };
        context.service().note_written(due.reply.id, &written)?;
        let is_over = matches!(error, Some(ApiError::Limited { .. }));
        failed = error.or(failed);
        if is_over {
            break;
        }
    }
    Ok(Wrong::with(failed.as_ref(), found.damaged.as_ref()))
}

fn write_one(
    context: &mut Context,
    forge: &ForgeConfig,
    api: &dyn ForgeApi,
    due: &DueReply,
) -> Result<Option<AttemptOutcome>, Problem> {
    let DueReply { reply, job, .. } = due;
    if reply.kind == ReplyKind::Eyes {
        return Ok(Some(outcome(react(api, reply).map(|()| done()))));
    }
    if matches!(reply.kind, ReplyKind::Pull | ReplyKind::Merge) {
        return pulls::write(context, api, due);
    }
    let run = match &job.run {
        Some(run) if reply.kind == ReplyKind::Status => said::now(context, run),
        _ => RunNow::default(),
    };
    let run = RunNow {
        pull: pulls::state(ReplyKind::Pull, due),
        merge: pulls::state(ReplyKind::Merge, due),
        ..run
    };
    let Some(notice) = Notice::of(reply.kind, job, &run) else {
        return Ok(None);
    };
    if reply.said.as_ref() == Some(&notice.label) {
        return Ok(notice.is_last.then(|| (done(), None)));
    }
    let own = forge.own_account.as_deref().map(Person::named);
    let comment = match known(api, reply, &own.unwrap_or_default()) {
        Ok(comment) => comment,
        Err(error) => return Ok(Some(outcome(Err(error)))),
    };
    let text = notice.comment(reply.kind, &reply.job);
    let sent = match comment {
        Some(comment) => {
            let edited = api.edit_comment(&reply.item, &comment, &text);
            edited.map(|()| comment)
        }
        None if !notice.starts => return Ok(Some((done(), None))),
        None => {
            if !context.service().intend_comment(reply.id)?.value {
                let why = "another comment already says this".to_owned();
                return Ok(Some((ReplyAttempt::Never(why), None)));
            }
            api.comment(&reply.item, &text)
        }
    };
    Ok(Some(outcome(sent.map(|comment| ReplyAttempt::Said {
        comment: Some(comment.0),
        label: Some(notice.label),
        is_last: notice.is_last,
    }))))
}

/// Our comment, if it is known or found.
fn known(
    api: &dyn ForgeApi,
    reply: &ForgeReply,
    own: &Person,
) -> Result<Option<CommentId>, ApiError> {
    match (reply.comment, reply.unsure) {
        (Some(id), _) => Ok(Some(CommentId(id))),
        (None, true) => api.find_comment(&reply.item, own, &mark(reply.kind, &reply.job)),
        (None, false) => Ok(None),
    }
}

fn react(api: &dyn ForgeApi, reply: &ForgeReply) -> Result<(), ApiError> {
    match reply.target.as_deref().and_then(target) {
        Some((comment, true)) => api.react_to_review(&reply.item, &comment),
        Some((comment, false)) => api.react(&reply.item, Some(&comment)),
        None => api.react(&reply.item, None),
    }
}
