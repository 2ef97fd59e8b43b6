//! GitHub.
//!
//! The signature covers the raw body. A redelivery has the id of the first delivery. A comment on a
//! pull request is an `issue_comment` without the branch and commit.

use tenure_core::forge::{EventKind as K, ForgeEvent, ReviewState};

use crate::fields::Fields;
use crate::forge::{Forge, Received};
use crate::headers::Headers;
use crate::hub;
use crate::proof::{Secret, from_hex, is_signed};
use crate::unreadable::Unreadable;

pub(crate) const ROW: Forge = Forge {
    kind: "github",
    tells_associations: true,
    never_sends: &[],
    token_user: Some("x-access-token"),
    pull_refs: "pull",
    also: &[],
    is_genuine,
    delivery: &["x-github-delivery"],
    event_headers: &["x-github-event"],
    read_headers: &["x-github-event"],
    read,
    events: &[
        "issues",
        "issue_comment",
        "pull_request",
        "pull_request_review",
        "pull_request_review_comment",
        "push",
        "delete",
        "repository",
        "ping",
    ],
    sign: |secret, body, _| {
        let signature = format!("sha256={}", secret.sign(body));
        vec![("x-hub-signature-256", signature)]
    },
    setup: &[
        "Repository, Settings, Webhooks, Add webhook",
        "Content type: application/json",
        "Events: Issues, Issue comments, Pull requests, Pull request reviews, Pull request review comments, Branch or tag deletion",
    ],
};

fn is_genuine(received: &Received<'_>, secrets: &[Secret]) -> bool {
    let keys: Vec<&[u8]> = secrets.iter().map(Secret::bytes).collect();
    let sent = received.headers.get("x-hub-signature-256");
    is_signed(&keys, &[received.body], sent.and_then(tagged))
}

/// Parses `sha256=` and a digest.
pub(crate) fn tagged(sent: &str) -> Option<[u8; 32]> {
    from_hex(sent.strip_prefix("sha256=")?)
}

fn read(headers: &Headers, body: &[u8]) -> Result<Option<ForgeEvent>, Unreadable> {
    let fields = Fields::parse(body)?;
    let event = headers.get("x-github-event").unwrap_or_default();
    let action = fields.text("/action").unwrap_or_default();
    match event {
        "" => Err(Unreadable::NoHeader("X-GitHub-Event")),
        "ping" if fields.has("/repository") => hub::event(&fields, K::Ping).map(Some),
        "issues" => issue(action).map_or(Ok(None), |kind| hub::issue(&fields, kind)),
        "issue_comment" => hub::comment(&fields, fields.has("/issue/pull_request")),
        "pull_request" if action == "closed" => hub::pull(&fields, hub::closed(&fields)),
        "pull_request" => pull(action).map_or(Ok(None), |kind| hub::pull(&fields, kind)),
        "pull_request_review" => {
            let state = match fields.text("/review/state").unwrap_or_default() {
                "approved" => ReviewState::Approved,
                "changes_requested" => ReviewState::ChangesRequested,
                _ => ReviewState::Commented,
            };
            hub::review(&fields, state, "body")
        }
        "pull_request_review_comment" => hub::review_comment(&fields),
        "push" => hub::push(&fields),
        "delete" => hub::deleted(&fields),
        "repository" => hub::repository(&fields),
        _ => Ok(None),
    }
}

fn issue(action: &str) -> Option<K> {
    Some(match action {
        "opened" => K::IssueOpened,
        "edited" => K::IssueEdited,
        "closed" => K::IssueClosed,
        "reopened" => K::IssueReopened,
        // An issue that moved to another repository is over in this one.
        "deleted" | "transferred" => K::IssueDeleted,
        "labeled" => K::IssueLabeled,
        "assigned" => K::IssueAssigned,
        "unassigned" => K::IssueUnassigned,
        _ => return None,
    })
}

fn pull(action: &str) -> Option<K> {
    Some(match action {
        "opened" => K::PullOpened,
        "edited" => K::PullEdited,
        "synchronize" => K::PullPushed,
        "reopened" => K::PullReopened,
        "ready_for_review" => K::PullReady,
        "labeled" => K::PullLabeled,
        "assigned" => K::PullAssigned,
        "unassigned" => K::PullUnassigned,
        "review_requested" => K::PullReviewRequested,
        _ => return None,
    })
}
