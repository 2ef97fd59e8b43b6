//! GitLab.
//!
//! The secret itself is sent in a header. Newer versions can sign instead (Standard Webhooks), with
//! a time that may be five minutes off; if there is a signature, only that counts. The id that
//! stays the same over retries is `Idempotency-Key`. One `update` carries all changes; the most
//! important one decides the kind of the event. The author of an issue or merge request is given
//! only by id.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tenure_core::forge::{
    CodePlace, EventKind as K, ForgeEvent, Person, Pull, ReviewState, branch_item, issue_item,
    pull_item,
};
use tenure_core::spelling;
use tenure_core::time::Timestamp;

use crate::fields::{Fields, commit, is_deletion};
use crate::forge::{Forge, Received, SentHeaders};
use crate::headers::Headers;
use crate::proof::{Digest, Secret, digest_of, is_sent, is_signed};
use crate::unreadable::Unreadable;

type ReadResult = Result<Option<ForgeEvent>, Unreadable>;

/// How far the time of a signature may be off, in seconds.
const TOLERANCE: i64 = 5 * 60;
/// The most signatures that are checked; a sender has fewer keys.
const MAX_SIGNATURES: usize = 4;

pub(crate) const ROW: Forge = Forge {
    kind: "gitlab",
    tells_associations: false,
    never_sends: &[
        K::IssueDeleted,
        K::PullChangesRequested,
        K::Ping,
        K::RepoRenamed,
        K::RepoDeleted,
    ],
    token_user: Some("oauth2"),
    pull_refs: "merge-requests",
    also: &[],
    is_genuine,
    delivery: &["idempotency-key", "webhook-id"],
    event_headers: &["x-gitlab-event"],
    read_headers: &[],
    read,
    // The body decides the event.
    events: &["any"],
    sign,
    setup: &[
        "Project, Settings, Webhooks, Add new webhook",
        "Secret token: the secret",
        "Trigger: Push events, Comments, Issues events, Merge request events",
    ],
};

fn is_genuine(received: &Received<'_>, secrets: &[Secret]) -> bool {
    if received.headers.has("webhook-signature") {
        is_signed_in_time(received, secrets)
    } else {
        is_sent(secrets, received.headers.get("x-gitlab-token"))
    }
}

/// Never sends the secret itself, because another program may be listening.
fn sign(secret: &Secret, body: &[u8], now: Timestamp) -> SentHeaders {
    let (id, at) = ("tenure-ping", now.0.div_euclid(1000).to_string());
    let signed = digest_of(
        &key(secret),
        &[id.as_bytes(), b".", at.as_bytes(), b".", body],
    );
    vec![
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", at),
        (
            "webhook-signature",
            format!("v1,{}", STANDARD.encode(signed)),
        ),
    ]
}

/// `webhook-signature: v1,BASE64 v1,BASE64` over `ID.TIMESTAMP.BODY`.
fn is_signed_in_time(received: &Received<'_>, secrets: &[Secret]) -> bool {
    let header = |name: &str| received.headers.get(name).unwrap_or_default();
    let (id, at) = (header("webhook-id"), header("webhook-timestamp"));
    let keys: Vec<Vec<u8>> = secrets.iter().map(key).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let parts = [id.as_bytes(), b".", at.as_bytes(), b".", received.body];
    let sent = header("webhook-signature").split(' ').take(MAX_SIGNATURES);
    let mut fits = false;
    for signature in sent {
        fits |= is_signed(&keys, &parts, digest(signature));
    }
    fits & !id.is_empty() & is_recent(at, received.now)
}

/// The key: `whsec_` and base64, or the plain secret.
fn key(secret: &Secret) -> Vec<u8> {
    let encoded = secret.bytes().strip_prefix(b"whsec_");
    let decoded = encoded.and_then(|text| STANDARD.decode(text).ok());
    decoded.unwrap_or_else(|| secret.bytes().to_vec())
}

fn digest(signature: &str) -> Option<Digest> {
    let encoded = signature.strip_prefix("v1,")?;
    STANDARD.decode(encoded).ok()?.try_into().ok()
}

fn is_recent(at: &str, now: Timestamp) -> bool {
    let seconds = now.0.div_euclid(1000);
    let digits = at.bytes().all(|byte| byte.is_ascii_digit());
    let at = at.parse::<i64>().ok().filter(|_| digits);
    at.is_some_and(|at| at.abs_diff(seconds) <= TOLERANCE.unsigned_abs())
}

fn read(_: &Headers, body: &[u8]) -> ReadResult {
    let fields = Fields::parse(body)?;
    match fields.text("/object_kind").unwrap_or_default() {
        "" => Err(Unreadable::Missing("object_kind")),
        "issue" | "work_item" => issue(&fields),
        "merge_request" => merge_request(&fields),
        "note" => note(&fields),
        "push" => push(&fields),
        _ => Ok(None),
    }
}

/// The fields that every event has.
fn event(fields: &Fields<'_>, kind: K) -> Result<ForgeEvent, Unreadable> {
    let repo = fields.name("/project/path_with_namespace");
    let repo = repo.ok_or(Unreadable::Missing("project.path_with_namespace"))?;
    let mut event = ForgeEvent::new(kind, &repo);
    event.repo_id = fields.number("/project/id");
    event.actor = fields.person("/user").unwrap_or_default();
    Ok(event)
}

fn issue(fields: &Fields<'_>) -> ReadResult {
    let kind = match action(fields) {
        "open" => K::IssueOpened,
        "close" => K::IssueClosed,
        "reopen" => K::IssueReopened,
        "update" => match updated(fields) {
            Some(Changed::Assignees) => K::IssueAssigned,
            Some(Changed::Unassigned) => K::IssueUnassigned,
            Some(Changed::Labels) => K::IssueLabeled,
            Some(Changed::Text) => K::IssueEdited,
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let mut event = event(fields, kind)?;
    about(&mut event, fields, "/object_attributes", "");
    event.item = Some(issue_item(
        &event.repo,
        iid(fields, "/object_attributes/iid")?,
    )?);
    event.version = fields.version("issue", "/object_attributes", "updated_at");
    Ok(Some(event))
}

fn merge_request(fields: &Fields<'_>) -> ReadResult {
    let action = action(fields);
    let mut review = None;
    let kind = match action {
        "open" => K::PullOpened,
        "close" => K::PullClosed,
        "merge" => K::PullMerged,
        "reopen" => K::PullReopened,
        "approved" | "approval" => {
            review = Some(ReviewState::Approved);
            K::PullReview
        }
        "update" => match updated(fields) {
            Some(Changed::Commits) => K::PullPushed,
            Some(Changed::Ready) => K::PullReady,
            Some(Changed::Reviewers) => K::PullReviewRequested,
            Some(Changed::Assignees) => K::PullAssigned,
            Some(Changed::Unassigned) => K::PullUnassigned,
            Some(Changed::Labels) => K::PullLabeled,
            Some(Changed::Text) => K::PullEdited,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let mut event = event(fields, kind)?;
    about(&mut event, fields, "/object_attributes", "");
    event.item = Some(pull_item(
        &event.repo,
        iid(fields, "/object_attributes/iid")?,
    )?);
    event.pull = described(fields, "/object_attributes");
    event.version = fields.version("pr", "/object_attributes", "updated_at");
    if review.is_some() {
        event.review = review;
        event.comment = Some(String::new());
        event.text_author = Some(event.actor.clone());
        // Two approvals may leave the merge request's own time unchanged.
        event.version = None;
    }
    Ok(Some(event))
}

fn note(fields: &Fields<'_>) -> ReadResult {
    if fields.is("/object_attributes/system") {
        return Ok(None);
    }
    // Before 16.11 a note had no action and was always new.
    let is_edit = match fields.text("/object_attributes/action") {
        None | Some("create") => false,
        Some("update") => true,
        Some(_) => return Ok(None),
    };
    let mut event = match fields.text("/object_attributes/noteable_type") {
        Some("Issue") => {
            let mut event = event(fields, K::IssueComment)?;
            about(&mut event, fields, "/issue", "/issue");
            event.item = Some(issue_item(&event.repo, iid(fields, "/issue/iid")?)?);
            event
        }
        Some("MergeRequest") => {
            let on_lines = fields.text("/object_attributes/type") == Some("DiffNote");
            let kind = if on_lines {
                K::PullReviewComment
            } else {
                K::PullComment
            };
            let mut event = event(fields, kind)?;
            about(&mut event, fields, "/merge_request", "/merge_request");
            event.item = Some(pull_item(&event.repo, iid(fields, "/merge_request/iid")?)?);
            event.pull = described(fields, "/merge_request");
            let path = fields.name("/object_attributes/position/new_path");
            event.place = path.map(|path| CodePlace {
                path,
                line: fields.number("/object_attributes/position/new_line"),
                hunk: None,
            });
            event
        }
        _ => return Ok(None),
    };
    let (comment, is_cut) = fields.prose("/object_attributes/note");
    event.comment = Some(comment);
    event.is_cut |= is_cut;
    event.is_edit = is_edit;
    event.url = fields.name("/object_attributes/url");
    let author = author(fields, "/object_attributes", &event.actor);
    // A person who edits a text did not necessarily write it.
    let writer = (!is_edit).then(|| event.actor.clone());
    event.text_author = author.or(writer);
    event.version = fields.version("comment", "/object_attributes", "updated_at");
    Ok(Some(event))
}

fn push(fields: &Fields<'_>) -> ReadResult {
    let full = fields.name("/ref").ok_or(Unreadable::Missing("ref"))?;
    let Some(branch) = full.strip_prefix("refs/heads/") else {
        return Ok(None);
    };
    let kind = if is_deletion(fields) {
        K::BranchDeleted
    } else {
        K::Push
    };
    let mut event = event(fields, kind)?;
    event.actor = Person {
        login: fields.name("/user_username").unwrap_or_default(),
        id: fields.number("/user_id"),
        is_bot: false,
    };
    event.item = Some(branch_item(&event.repo, branch)?);
    event.branch = Some(branch.to_owned());
    event.pushed = commit(fields, "/after");
    Ok(Some(event))
}

fn action<'a>(fields: &'a Fields<'_>) -> &'a str {
    fields.text("/object_attributes/action").unwrap_or_default()
}

fn iid(fields: &Fields<'_>, path: &'static str) -> Result<u64, Unreadable> {
    fields.number(path).ok_or(Unreadable::Missing("iid"))
}

/// The changes in an update that rules can react to.
enum Changed {
    Commits,
    Ready,
    Reviewers,
    Assignees,
    Unassigned,
    Labels,
    Text,
}

fn updated(fields: &Fields<'_>) -> Option<Changed> {
    if fields.has("/object_attributes/oldrev") {
        return Some(Changed::Commits);
    }
    if fields.is("/changes/draft/previous") && !fields.is("/changes/draft/current") {
        return Some(Changed::Ready);
    }
    if !added(fields, "reviewers", "username").is_empty() {
        return Some(Changed::Reviewers);
    }
    if !added(fields, "assignees", "username").is_empty() {
        return Some(Changed::Assignees);
    }
    if !removed(fields, "assignees", "username").is_empty() {
        return Some(Changed::Unassigned);
    }
    if !added(fields, "labels", "title").is_empty() {
        return Some(Changed::Labels);
    }
    let text = fields.has("/changes/title") || fields.has("/changes/description");
    text.then_some(Changed::Text)
}

/// What a change added to a list.
fn added(fields: &Fields<'_>, list: &str, key: &str) -> Vec<String> {
    let before = fields.names(&format!("/changes/{list}/previous"), key);
    let mut now = fields.names(&format!("/changes/{list}/current"), key);
    now.retain(|one| !before.contains(one));
    now
}

/// What a change took from a list.
fn removed(fields: &Fields<'_>, list: &str, key: &str) -> Vec<String> {
    let now = fields.names(&format!("/changes/{list}/current"), key);
    let mut before = fields.names(&format!("/changes/{list}/previous"), key);
    before.retain(|one| !now.contains(one));
    before
}

/// The fields that issues and merge requests share. Labels and people are next to the object, or
/// below a note's.
fn about(event: &mut ForgeEvent, fields: &Fields<'_>, path: &str, lists: &str) {
    let at = |field: &str| format!("{path}/{field}");
    event.title = fields.name(&at("title")).unwrap_or_default();
    (event.body, event.is_cut) = fields.prose(&at("description"));
    event.labels = fields.names(&format!("{lists}/labels"), "title");
    event.assignees = fields.names(&format!("{lists}/assignees"), "username");
    event.reviewers = fields.names(&format!("{lists}/reviewers"), "username");
    event.url = fields.name(&at("url"));
    event.subject_author = author(fields, path, &event.actor);
    event.text_author = event.subject_author.clone();
    match event.kind {
        K::IssueLabeled | K::PullLabeled => event.added = added(fields, "labels", "title"),
        K::IssueAssigned | K::PullAssigned => {
            event.added = added(fields, "assignees", "username");
        }
        K::IssueUnassigned | K::PullUnassigned => {
            event.removed = removed(fields, "assignees", "username");
        }
        K::PullReviewRequested => event.added = added(fields, "reviewers", "username"),
        K::IssueEdited | K::PullEdited => event.is_edit = true,
        _ => {}
    }
}

/// The author; the login is known only if the author is also the actor.
fn author(fields: &Fields<'_>, path: &str, actor: &Person) -> Option<Person> {
    let id = fields.number(&format!("{path}/author_id"))?;
    if actor.id == Some(id) {
        return Some(actor.clone());
    }
    Some(Person {
        login: String::new(),
        id: Some(id),
        is_bot: false,
    })
}

/// The change of a merge request.
fn described(fields: &Fields<'_>, path: &str) -> Option<Pull> {
    let at = |field: &str| format!("{path}/{field}");
    let branch = fields.name(&at("source_branch"))?;
    let (source, target) = (
        fields.number(&at("source_project_id")),
        fields
            .number(&at("target_project_id"))
            .or_else(|| fields.number("/project/id")),
    );
    let head_repo = fields.name(&at("source/path_with_namespace"));
    Some(Pull {
        base: fields.name(&at("target_branch")).unwrap_or_default(),
        head: commit(fields, &at("last_commit/id")),
        head_repo: head_repo.map(|name| spelling::repository_name(&name)),
        is_fork: source.is_none() || source != target,
        is_draft: fields.is(&at("draft")) || fields.is(&at("work_in_progress")),
        branch,
    })
}
