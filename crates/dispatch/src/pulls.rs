//! Opening, updating and merging pull requests, by the dispatcher and its token. The agent has none.
//!
//! A pull request is found by its branch before another is opened, so an attempt whose answer was lost is not repeated. A
//! body that a person rewrote stays. The forge is told the commit that was approved, and refuses to merge another one.
//! What was opened continues the conversation of its issue, also if the forge's event about it is lost.

use tenure_core::dispatch::Link;
use tenure_core::forge::pull_item;
use tenure_core::forge::text::is_ours;
use tenure_core::queue::Job;
use tenure_core::queue::pull::{PullText, PullWork, base_of, work};
use tenure_core::queue::reply::{PullState, ReplyKind};
use tenure_forges::api::{ApiError, ForgeApi, ItemNow, NewPull, OpenPull};
use tenure_service::answer::{Class, Problem};
use tenure_service::{ActFor, DueReply, LinkRequest, ReplyAttempt};

use super::written::{AttemptOutcome, done, outcome};
use tenure_app::open::Context;
use tenure_runs::said;

/// How often a merge is tried that the forge does not permit yet: with growing delays, for about an hour and a half. Its
/// checks may still be running.
const MERGE_TRIES: u32 = 24;
/// The status of forges for what cannot be merged now.
const NOT_MERGEABLE: u16 = 405;

/// Does what is due about a pull request; none if it is not time yet.
pub(super) fn write(
    context: &mut Context,
    api: &dyn ForgeApi,
    due: &DueReply,
) -> Result<Option<AttemptOutcome>, Problem> {
    Ok(match work(due.reply.kind, &due.job) {
        PullWork::NotYet => None,
        PullWork::Nothing => Some((done(), None)),
        PullWork::Open(branch) => {
            let opened = open(context, api, due, &branch);
            if let Some(made) = opened.as_ref().ok().and_then(|pull| made(&due.job, pull)) {
                link(context, &made)?;
            }
            Some(outcome(opened.map(|pull| ReplyAttempt::Said {
                comment: Some(pull.number),
                label: Some(pull.url),
                is_last: true,
            })))
        }
        PullWork::Merge(head) => Some(merge(api, due, &head)),
    })
}

/// The link of a pull request to the issue that its job was about.
fn made(job: &Job, pull: &OpenPull) -> Option<Link> {
    let (repo, _) = job.item.rest().rsplit_once('#')?;
    let item = pull_item(repo, pull.number).ok()?;
    let target = job.item.clone();
    (target.scheme() == "issue").then_some(Link { item, target })
}

/// Lets an item continue the conversations of another one. A live run in either prevents that, which is no reason to lose
/// what led to it.
pub(super) fn link(context: &mut Context, link: &Link) -> Result<(), Problem> {
    let request = LinkRequest {
        item: link.item.clone(),
        target: link.target.clone(),
    };
    let linked = context.service().link_item(&ActFor::default(), &request);
    match linked.map_err(Problem::from) {
        Err(problem) if !matches!(problem.class, Class::Held | Class::Invalid) => Err(problem),
        _ => Ok(()),
    }
}

/// What became of the pull request that a job opens or merges.
pub(super) fn state(kind: ReplyKind, due: &DueReply) -> Option<PullState> {
    let reply = due.pulls.iter().find(|reply| reply.kind == kind)?;
    match (reply.done_at, &reply.failure, &reply.said) {
        (Some(_), Some(why), _) => Some(PullState::Refused(why.clone())),
        (Some(_), None, Some(said)) => Some(PullState::Done(said.clone())),
        (Some(_), None, None) => None,
        (None, ..) => match work(kind, &due.job) {
            PullWork::Open(_) | PullWork::Merge(_) => Some(PullState::Waits),
            PullWork::NotYet | PullWork::Nothing => None,
        },
    }
}

fn open(
    context: &mut Context,
    api: &dyn ForgeApi,
    due: &DueReply,
    branch: &str,
) -> Result<OpenPull, ApiError> {
    let job = &due.job;
    let repo = job.repo.as_deref().unwrap_or_default();
    let known = api.pull_of(repo, branch)?;
    // The push has updated the pull request that the job was about, and the answer is a comment there.
    if let (Some(known), true) = (&known, job.spec.code.branch.as_deref() == Some(branch)) {
        return Ok(known.clone());
    }
    let answer = job.run.as_ref();
    let answer = answer.and_then(|run| said::now(context, run).answer);
    let text = PullText::of(job, &due.title, answer.as_deref());
    match known {
        Some(known) if is_ours(&known.body) => {
            api.edit_pull(repo, known.number, &text.title, &text.body)?;
            Ok(known)
        }
        Some(known) => Ok(known),
        None => {
            let base = base_of(job, branch);
            api.open_pull(
                repo,
                &NewPull {
                    branch,
                    base: base.as_deref(),
                    title: &text.title,
                    body: &text.body,
                },
            )
        }
    }
}

fn merge(api: &dyn ForgeApi, due: &DueReply, head: &str) -> AttemptOutcome {
    let Job { item, repo, .. } = &due.job;
    let repo = repo.as_deref().unwrap_or_default();
    let number = item.rest().rsplit_once('#');
    let number = number.and_then(|(_, number)| number.parse().ok());
    let Some(number) = number else {
        return (done(), None);
    };
    let merged = || ReplyAttempt::Said {
        comment: Some(number),
        label: Some("merged".to_owned()),
        is_last: true,
    };
    let error = match api.merge_pull(repo, number, head) {
        Ok(()) => return (merged(), None),
        Err(error) => error,
    };
    if let ApiError::Failed { status, .. } = &error {
        // An earlier attempt may have been carried out without an answer.
        if matches!(api.state(item), Ok(ItemNow::Merged)) {
            return (merged(), None);
        }
        if *status == NOT_MERGEABLE && due.reply.tries < MERGE_TRIES {
            let later = ReplyAttempt::Later {
                why: error.to_string(),
                not_before: None,
            };
            return (later, Some(error));
        }
    }
    outcome(Err(error))
}
