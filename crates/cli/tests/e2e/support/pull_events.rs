//! What forges send about a pull request of tenure's own account, from its branch `tenure/issue-6`. Written from the
//! forges' documentation.

use serde_json::{Value, json};
use tenure_testkit::fake_forge::Dialect;

use super::webhook::{Dispatcher, SECRET, issue, person, repository, send_github};

/// The forge that sends.
#[derive(Debug, Clone, Copy)]
pub struct Forge(pub Dialect);

/// An event with the name that its header has.
pub type Sent = (&'static str, Value);

impl Forge {
    #[track_caller]
    pub fn send(self, door: &Dispatcher, id: &str, (name, payload): &Sent) {
        let (status, told) = match self.0 {
            Dialect::Forgejo => door.deliver(name, id, payload),
            Dialect::GitHub => send_github(&door.address, name, id, payload),
            Dialect::GitLab => {
                let headers = [
                    ("X-Gitlab-Event", *name),
                    ("Idempotency-Key", id),
                    ("X-Gitlab-Token", SECRET),
                    ("Content-Type", "application/json"),
                ];
                let body = payload.to_string();
                door.send("POST", "/hooks/home", &headers, body.as_bytes())
            }
        };
        assert!((200..300).contains(&status), "{status} {told}");
    }

    /// An issue of alice's, just opened.
    pub fn issue(self, number: u64) -> Sent {
        match self.0 {
            Dialect::GitLab => {
                let mut payload = gitlab("issue", "open");
                let about = json!({
                    "id": 100 + number, "iid": number, "state": "opened", "title": "Login fails",
                    "description": "It answers 500.", "author_id": 3, "action": "open",
                    "updated_at": "2026-11-16 06:00:00 UTC",
                });
                payload["object_attributes"] = about;
                ("Issue Hook", payload)
            }
            _ => ("issues", issue(number, "opened")),
        }
    }
}

fn gitlab(kind: &str, action: &str) -> Value {
    json!({
        "object_kind": kind, "user": {"username": "alice", "id": 3},
        "project": {"id": 17, "path_with_namespace": "acme/web"},
        "object_attributes": {"action": action},
    })
}

fn request(number: u64, head: &str) -> Value {
    json!({
        "id": 500 + number, "iid": number, "state": "opened", "title": "Login fails (#6)",
        "description": "Closes #6", "author_id": 9, "draft": false,
        "source_branch": "tenure/issue-6", "target_branch": "main",
        "source_project_id": 17, "target_project_id": 17, "last_commit": {"id": head},
        "updated_at": "2026-11-16 06:10:00 UTC",
    })
}

fn pull(number: u64, head: &str) -> Value {
    json!({
        "id": 500 + number, "number": number, "title": "Login fails (#6)", "body": "Closes #6",
        "state": "open", "user": person("bot", 9), "labels": [], "assignees": [], "draft": false,
        "merged": false, "created_at": "2026-11-16T06:10:00Z", "updated_at": "2026-11-16T06:10:00Z",
        "head": {"ref": "tenure/issue-6", "sha": head, "repo": {"id": 17, "full_name": "acme/web"}},
        "base": {"ref": "main", "sha": head, "repo": {"id": 17, "full_name": "acme/web"}},
    })
}

/// The pull request that tenure opened.
pub fn opened_pull(forge: Forge, number: u64, head: &str) -> Sent {
    if forge.0 == Dialect::GitLab {
        let mut payload = gitlab("merge_request", "open");
        payload["user"] = json!({"username": "bot", "id": 9});
        payload["object_attributes"] = request(number, head);
        payload["object_attributes"]["action"] = json!("open");
        return ("Merge Request Hook", payload);
    }
    let payload = json!({
        "action": "opened", "number": number, "pull_request": pull(number, head),
        "repository": repository(), "sender": person("bot", 9),
    });
    ("pull_request", payload)
}

/// A review of alice's that asks for changes; a comment on lines where there are no such reviews.
pub fn changes_requested(forge: Forge, number: u64, head: &str) -> Sent {
    if forge.0 == Dialect::GitLab {
        let mut payload = gitlab("note", "create");
        payload["object_attributes"] = json!({
            "id": 900, "note": "Not like this.", "noteable_type": "MergeRequest", "type": "DiffNote",
            "action": "create", "system": false, "author_id": 3,
            "updated_at": "2026-11-16 06:20:00 UTC",
            "position": {"new_path": "file", "new_line": 1},
        });
        payload["merge_request"] = request(number, head);
        return ("Note Hook", payload);
    }
    review(forge, number, head, "changes_requested", "rejected")
}

/// A review of alice's that approves this commit.
pub fn approval(forge: Forge, number: u64, head: &str) -> Sent {
    if forge.0 == Dialect::GitLab {
        let mut payload = gitlab("merge_request", "approved");
        payload["object_attributes"] = request(number, head);
        payload["object_attributes"]["action"] = json!("approved");
        return ("Merge Request Hook", payload);
    }
    review(forge, number, head, "approved", "approved")
}

fn review(forge: Forge, number: u64, head: &str, state: &str, kind: &str) -> Sent {
    let mut payload = json!({
        "number": number, "pull_request": pull(number, head),
        "repository": repository(), "sender": person("alice", 3),
    });
    if forge.0 == Dialect::GitHub {
        payload["action"] = json!("submitted");
        payload["review"] = json!({
            "id": 900, "state": state, "body": "As said.", "commit_id": head,
            "user": person("alice", 3), "submitted_at": "2026-11-16T06:20:00Z",
        });
        return ("pull_request_review", payload);
    }
    payload["action"] = json!("reviewed");
    let name = format!("pull_request_review_{kind}");
    payload["review"] = json!({"type": name, "content": "As said."});
    let event = match kind {
        "approved" => "pull_request_approved",
        _ => "pull_request_rejected",
    };
    (event, payload)
}

/// An issue that alice assigned to `helper`, or took back. Forgejo does not name who was removed.
pub fn assigned(number: u64, is_assigned: bool) -> Value {
    let mut payload = issue(
        number,
        if is_assigned {
            "assigned"
        } else {
            "unassigned"
        },
    );
    if is_assigned {
        payload["issue"]["assignees"] = json!([person("helper", 12)]);
    }
    payload
}
