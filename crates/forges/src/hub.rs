//! The payload format that GitHub, Forgejo and Gitea share.

use tenure_core::forge::{
    CodePlace, EventKind, ForgeEvent, Pull, ReviewState, branch_item, issue_item, pull_item,
};
use tenure_core::spelling;

use crate::fields::{Fields, commit, is_deletion};
use crate::unreadable::Unreadable;

type ReadResult = Result<Option<ForgeEvent>, Unreadable>;

/// The fields that every event has.
pub(crate) fn event(fields: &Fields<'_>, kind: EventKind) -> Result<ForgeEvent, Unreadable> {
    let repo = fields.name("/repository/full_name");
    let repo = repo.ok_or(Unreadable::Missing("repository.full_name"))?;
    let mut event = ForgeEvent::new(kind, &repo);
    event.repo_id = fields.number("/repository/id");
    event.actor = fields.person("/sender").unwrap_or_default();
    Ok(event)
}

pub(crate) fn issue(fields: &Fields<'_>, kind: EventKind) -> ReadResult {
    let mut event = event(fields, kind)?;
    about(&mut event, fields, "/issue");
    let number = fields.number("/issue/number");
    let number = number.ok_or(Unreadable::Missing("issue.number"))?;
    event.item = Some(issue_item(&event.repo, number)?);
    if kind == EventKind::IssueLabeled {
        event.added.extend(fields.name("/label/name"));
    }
    if kind == EventKind::IssueAssigned {
        event.added.extend(fields.name("/assignee/login"));
    }
    if kind == EventKind::IssueUnassigned {
        event.removed.extend(fields.name("/assignee/login"));
    }
    event.is_edit = kind == EventKind::IssueEdited;
    event.version = fields.version("issue", "/issue", "updated_at");
    Ok(Some(event))
}

pub(crate) fn pull(fields: &Fields<'_>, kind: EventKind) -> ReadResult {
    let mut event = event(fields, kind)?;
    about(&mut event, fields, "/pull_request");
    let number = fields.number("/pull_request/number");
    let number = number.or_else(|| fields.number("/number"));
    let number = number.ok_or(Unreadable::Missing("pull_request.number"))?;
    event.item = Some(pull_item(&event.repo, number)?);
    event.pull = described(fields, &event.repo);
    match kind {
        EventKind::PullLabeled => event.added.extend(fields.name("/label/name")),
        EventKind::PullAssigned => event.added.extend(fields.name("/assignee/login")),
        EventKind::PullUnassigned => event.removed.extend(fields.name("/assignee/login")),
        EventKind::PullReviewRequested => {
            let who = fields.name("/requested_reviewer/login");
            let who = who.or_else(|| fields.name("/requested_reviewer/username"));
            event
                .added
                .extend(who.or_else(|| fields.name("/requested_team/slug")));
        }
        EventKind::PullEdited => event.is_edit = true,
        _ => {}
    }
    event.version = fields.version("pr", "/pull_request", "updated_at");
    Ok(Some(event))
}

/// The event of a closed pull request, merged or not.
pub(crate) fn closed(fields: &Fields<'_>) -> EventKind {
    if fields.is("/pull_request/merged") {
        EventKind::PullMerged
    } else {
        EventKind::PullClosed
    }
}

/// A comment on an issue or a pull request; none if it was deleted.
pub(crate) fn comment(fields: &Fields<'_>, is_pull: bool) -> ReadResult {
    let kind = if is_pull {
        EventKind::PullComment
    } else {
        EventKind::IssueComment
    };
    let mut event = event(fields, kind)?;
    about(&mut event, fields, "/issue");
    let number = fields.number("/issue/number");
    let number = number.ok_or(Unreadable::Missing("issue.number"))?;
    event.item = Some(if is_pull {
        pull_item(&event.repo, number)?
    } else {
        issue_item(&event.repo, number)?
    });
    if is_pull {
        event.pull = described(fields, &event.repo);
    }
    said(&mut event, fields, "/comment", "body");
    event.version = fields.version("comment", "/comment", "updated_at");
    written(event, fields)
}

/// A comment on lines of a pull request.
pub(crate) fn review_comment(fields: &Fields<'_>) -> ReadResult {
    let Some(mut event) = pull(fields, EventKind::PullReviewComment)? else {
        return Ok(None);
    };
    said(&mut event, fields, "/comment", "body");
    event.version = fields.version("review-comment", "/comment", "updated_at");
    event.place = fields.name("/comment/path").map(|path| CodePlace {
        path,
        line: fields.number("/comment/line"),
        hunk: fields.name("/comment/diff_hunk"),
    });
    written(event, fields)
}

/// A review of a pull request; `text` is the field with its text.
pub(crate) fn review(fields: &Fields<'_>, state: ReviewState, text: &str) -> ReadResult {
    let Some(mut event) = pull(fields, EventKind::PullReview)? else {
        return Ok(None);
    };
    said(&mut event, fields, "/review", text);
    event.review = Some(state);
    // Someone may have pushed while the review was written: the reviewer saw this commit.
    if let (Some(pull), Some(seen)) = (&mut event.pull, commit(fields, "/review/commit_id")) {
        pull.head = Some(seen);
    }
    event.version = None;
    let is_first = fields.text("/action") == Some("submitted");
    if is_first {
        event.version = fields.version("review", "/review", "submitted_at");
    }
    written(event, fields)
}

/// Commits on a branch, or a branch deleted by a push.
pub(crate) fn push(fields: &Fields<'_>) -> ReadResult {
    let full = fields.name("/ref").ok_or(Unreadable::Missing("ref"))?;
    let Some(branch) = full.strip_prefix("refs/heads/") else {
        return Ok(None);
    };
    let kind = if is_deletion(fields) {
        EventKind::BranchDeleted
    } else {
        EventKind::Push
    };
    let mut event = on_branch(fields, kind, branch)?;
    event.pushed = commit(fields, "/after");
    event.url = fields
        .name("/compare")
        .or_else(|| fields.name("/compare_url"));
    let (title, is_cut) = fields.prose("/head_commit/message");
    (event.title, event.is_cut) = (title, is_cut);
    Ok(Some(event))
}

/// A deleted branch; deleted tags are ignored.
pub(crate) fn deleted(fields: &Fields<'_>) -> ReadResult {
    if fields.text("/ref_type") != Some("branch") {
        return Ok(None);
    }
    let branch = fields.name("/ref").ok_or(Unreadable::Missing("ref"))?;
    let short = branch.strip_prefix("refs/heads/").unwrap_or(&branch);
    on_branch(fields, EventKind::BranchDeleted, short).map(Some)
}

/// A repository that was renamed or deleted.
pub(crate) fn repository(fields: &Fields<'_>) -> ReadResult {
    let kind = match fields.text("/action") {
        Some("renamed" | "transferred") => EventKind::RepoRenamed,
        Some("deleted") => EventKind::RepoDeleted,
        _ => return Ok(None),
    };
    let mut event = event(fields, kind)?;
    let owner = event.repo.rsplit_once('/').map_or("", |(owner, _)| owner);
    let from = fields.name("/changes/repository/name/from");
    event.previous_repo = from.map(|name| spelling::repository_name(&format!("{owner}/{name}")));
    Ok(Some(event))
}

fn on_branch(fields: &Fields<'_>, kind: EventKind, branch: &str) -> Result<ForgeEvent, Unreadable> {
    let mut event = event(fields, kind)?;
    event.item = Some(branch_item(&event.repo, branch)?);
    event.branch = Some(branch.to_owned());
    Ok(event)
}

/// The fields that issues and pull requests share.
fn about(event: &mut ForgeEvent, fields: &Fields<'_>, path: &str) {
    let at = |field: &str| format!("{path}/{field}");
    event.title = fields.name(&at("title")).unwrap_or_default();
    (event.body, event.is_cut) = fields.prose(&at("body"));
    event.labels = fields.names(&at("labels"), "name");
    event.assignees = fields.names(&at("assignees"), "login");
    event.reviewers = fields.names(&at("requested_reviewers"), "login");
    event.url = fields.name(&at("html_url"));
    event.subject_author = fields.person(&at("user"));
    event.subject_association = fields.association(&at("author_association"));
    event.text_author = event.subject_author.clone();
    let is_author = event
        .subject_author
        .as_ref()
        .is_some_and(|author| author.is(&event.actor));
    event.association = event.subject_association.filter(|_| is_author);
}

/// Sets the text of a comment or review, and its author.
fn said(event: &mut ForgeEvent, fields: &Fields<'_>, path: &str, text: &str) {
    let at = |field: &str| format!("{path}/{field}");
    let (comment, is_cut) = fields.prose(&at(text));
    event.comment = Some(comment);
    event.is_cut |= is_cut;
    event.url = fields.name(&at("html_url")).or(event.url.take());
    // Forgejo's reviews do not name their author, but they have just been written.
    let author = fields
        .person(&at("user"))
        .unwrap_or_else(|| event.actor.clone());
    let by_actor = author.is(&event.actor);
    event.association = fields
        .association(&at("author_association"))
        .filter(|_| by_actor);
    event.text_author = Some(author);
}

/// A text that was written or edited; none if it was deleted or dismissed.
fn written(mut event: ForgeEvent, fields: &Fields<'_>) -> ReadResult {
    match fields.text("/action") {
        Some("created" | "submitted" | "reviewed") => Ok(Some(event)),
        Some("edited") => {
            event.is_edit = true;
            let names_author = ["/comment/user", "/review/user"]
                .iter()
                .any(|path| fields.person(path).is_some());
            // A person who edits a text did not necessarily write it.
            event.text_author = event.text_author.filter(|_| names_author);
            Ok(Some(event))
        }
        _ => Ok(None),
    }
}

/// The change of a pull request, if the payload has it.
fn described(fields: &Fields<'_>, repo: &str) -> Option<Pull> {
    let branch = fields.name("/pull_request/head/ref")?;
    let head_repo = fields.name("/pull_request/head/repo/full_name");
    let head_repo = head_repo.map(|name| spelling::repository_name(&name));
    // Forgejo accepts pull requests by push, without a fork, from people who may only read.
    let by_push = fields.number("/pull_request/flow") == Some(1) || branch.starts_with("refs/");
    Some(Pull {
        base: fields.name("/pull_request/base/ref").unwrap_or_default(),
        head: commit(fields, "/pull_request/head/sha"),
        is_fork: by_push || head_repo.as_deref() != Some(repo),
        is_draft: fields.is("/pull_request/draft"),
        branch,
        head_repo,
    })
}
