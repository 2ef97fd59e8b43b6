//! Forgejo and Gitea.
//!
//! They send GitHub's headers too, so if their own are present, only those count. The signature is
//! bare hexadecimal; without a secret, its header is present but empty. A redelivery has a new id.
//! One header has a coarse name of the event and another a fine one, and which of them has which
//! name varies, so both are read together with the payload. A label event does not show which label
//! was added. The text of comments on lines is not in the payload. A test delivery is an ordinary
//! push.

use tenure_core::forge::{EventKind as K, ForgeEvent, ReviewState};

use crate::fields::Fields;
use crate::forge::{Forge, Received};
use crate::github::tagged;
use crate::headers::Headers;
use crate::hub;
use crate::proof::{Secret, from_hex, is_signed};
use crate::unreadable::Unreadable;

const FAMILY: &[&str] = &["forgejo", "gitea"];
const EVENTS: &[&str] = &["x-forgejo-event", "x-gitea-event"];
const TYPES: &[&str] = &["x-forgejo-event-type", "x-gitea-event-type"];
const READ: &[&str] = &[EVENTS[0], EVENTS[1], TYPES[0], TYPES[1]];
const DELIVERY: &[&str] = &["x-forgejo-delivery", "x-gitea-delivery"];
const SIGNATURES: &[&str] = &["x-forgejo-signature", "x-gitea-signature"];
const NEVER: &[K] = &[K::PullReviewComment, K::PullReady];
const SETUP: &[&str] = &[
    "Repository, Settings, Webhooks, Add webhook",
    "HTTP method: POST, content type: application/json",
    "Trigger on: custom events; choose all of Issues and Pull requests, and Delete",
];

pub(crate) const FORGEJO: Forge = Forge {
    kind: "forgejo",
    tells_associations: false,
    never_sends: NEVER,
    token_user: None,
    pull_refs: "pull",
    also: FAMILY,
    is_genuine,
    delivery: DELIVERY,
    event_headers: EVENTS,
    read_headers: READ,
    read,
    events: &[
        "issues",
        "issue_comment",
        "pull_request",
        "pull_request_comment",
        "pull_request_approved",
        "pull_request_rejected",
        "push",
        "delete",
        "repository",
    ],
    sign: |secret, body, _| vec![("x-forgejo-signature", secret.sign(body))],
    setup: SETUP,
};

pub(crate) const GITEA: Forge = Forge {
    kind: "gitea",
    ..FORGEJO
};

fn is_genuine(received: &Received<'_>, secrets: &[Secret]) -> bool {
    let keys: Vec<&[u8]> = secrets.iter().map(Secret::bytes).collect();
    let headers = received.headers;
    let digest = if SIGNATURES.iter().any(|name| headers.has(name)) {
        headers.first(SIGNATURES).and_then(from_hex)
    } else {
        headers.get("x-hub-signature-256").and_then(tagged)
    };
    is_signed(&keys, &[received.body], digest)
}

fn read(headers: &Headers, body: &[u8]) -> Result<Option<ForgeEvent>, Unreadable> {
    let fields = Fields::parse(body)?;
    let coarse = headers.first(EVENTS).unwrap_or_default();
    let fine = headers.first(TYPES).unwrap_or_default();
    if coarse.is_empty() && fine.is_empty() {
        return Err(Unreadable::NoHeader("X-Forgejo-Event or X-Gitea-Event"));
    }
    let is = |name: &str| coarse == name || fine == name;
    let begins = |name: &str| coarse.starts_with(name) || fine.starts_with(name);
    let action = fields.text("/action").unwrap_or_default();
    if begins("pull_request") && fields.has("/review") {
        let state = review_state(coarse, fine, &fields);
        return hub::review(&fields, state, "content");
    }
    if (is("issue_comment") || is("pull_request_comment")) && fields.has("/comment") {
        let is_pull = fields.is("/is_pull")
            || is("pull_request_comment")
            || fields.has("/issue/pull_request");
        return hub::comment(&fields, is_pull);
    }
    if begins("pull_request") {
        return match action {
            "closed" => hub::pull(&fields, hub::closed(&fields)),
            _ => pull(action).map_or(Ok(None), |kind| hub::pull(&fields, kind)),
        };
    }
    if begins("issue") {
        return issue(action).map_or(Ok(None), |kind| hub::issue(&fields, kind));
    }
    if is("push") {
        return hub::push(&fields);
    }
    if is("delete") {
        return hub::deleted(&fields);
    }
    if is("repository") {
        return hub::repository(&fields);
    }
    Ok(None)
}

fn review_state(coarse: &str, fine: &str, fields: &Fields<'_>) -> ReviewState {
    let told = fields.text("/review/type").unwrap_or_default();
    let says = |word: &str| [coarse, fine, told].iter().any(|name| name.ends_with(word));
    if says("approved") {
        ReviewState::Approved
    } else if says("rejected") {
        ReviewState::ChangesRequested
    } else {
        ReviewState::Commented
    }
}

fn issue(action: &str) -> Option<K> {
    Some(match action {
        "opened" => K::IssueOpened,
        "edited" => K::IssueEdited,
        "closed" => K::IssueClosed,
        "reopened" => K::IssueReopened,
        "deleted" => K::IssueDeleted,
        "label_updated" => K::IssueLabeled,
        "assigned" => K::IssueAssigned,
        "unassigned" => K::IssueUnassigned,
        _ => return None,
    })
}

fn pull(action: &str) -> Option<K> {
    Some(match action {
        "opened" => K::PullOpened,
        "edited" => K::PullEdited,
        "synchronized" | "synchronize" => K::PullPushed,
        "reopened" => K::PullReopened,
        "label_updated" => K::PullLabeled,
        "assigned" => K::PullAssigned,
        "unassigned" => K::PullUnassigned,
        "review_requested" => K::PullReviewRequested,
        _ => return None,
    })
}
