use serde_json::{Value, json};
use tenure_core::forge::{ForgeEvent, ReviewState};

use crate::support::{Changes, headers, no_changes, row, told, with};

fn read(payload: &Value) -> Option<ForgeEvent> {
    let sent = headers(&[("X-Gitlab-Event", "any")]);
    row("gitlab")
        .read(&sent, payload.to_string().as_bytes())
        .unwrap()
}

fn action(name: &str) -> Changes {
    vec![("/object_attributes/action", json!(name))]
}

fn update(what: &'static str, change: Value) -> Changes {
    let mut changes = action("update");
    changes.push((what, change));
    changes
}

#[test]
fn each_row_of_the_table_is_read() {
    let labels =
        json!({"previous": [{"title": "bug"}], "current": [{"title": "bug"}, {"title": "agent"}]});
    let people = json!({"previous": [], "current": [{"id": 9, "username": "bot"}]});
    let gone = json!({"previous": [{"id": 9, "username": "bot"}], "current": []});
    let rows: Vec<(&str, Changes, &str)> = vec![
        (
            "issue",
            no_changes(),
            "issue.opened issue:acme/sub/web#6 by alice",
        ),
        (
            "issue",
            vec![("/object_kind", json!("work_item"))],
            "issue.opened issue:acme/sub/web#6 by alice",
        ),
        (
            "issue",
            action("close"),
            "issue.closed issue:acme/sub/web#6 by alice",
        ),
        (
            "issue",
            action("reopen"),
            "issue.reopened issue:acme/sub/web#6 by alice",
        ),
        ("issue", action("update"), "nothing"),
        (
            "issue",
            update(
                "/changes/description",
                json!({"previous": "a", "current": "b"}),
            ),
            "issue.edited issue:acme/sub/web#6 by alice edit",
        ),
        (
            "issue",
            update("/changes/labels", labels.clone()),
            "issue.labeled issue:acme/sub/web#6 by alice +agent",
        ),
        (
            "issue",
            update("/changes/assignees", people.clone()),
            "issue.assigned issue:acme/sub/web#6 by alice +bot",
        ),
        (
            "issue",
            update("/changes/assignees", gone),
            "issue.unassigned issue:acme/sub/web#6 by alice -bot",
        ),
        (
            "note_issue",
            no_changes(),
            "issue.comment issue:acme/sub/web#6 by bob",
        ),
        (
            "note_issue",
            action("update"),
            "issue.comment issue:acme/sub/web#6 by bob edit",
        ),
        (
            "note_issue",
            vec![("/object_attributes/action", Value::Null)],
            "issue.comment issue:acme/sub/web#6 by bob",
        ),
        (
            "note_issue",
            vec![("/object_attributes/system", json!(true))],
            "nothing",
        ),
        (
            "note_issue",
            vec![("/object_attributes/noteable_type", json!("Commit"))],
            "nothing",
        ),
        (
            "note_merge_request",
            no_changes(),
            "pr.review_comment pr:acme/sub/web#9 by bob",
        ),
        (
            "note_merge_request",
            vec![("/object_attributes/type", Value::Null)],
            "pr.comment pr:acme/sub/web#9 by bob",
        ),
        (
            "merge_request",
            no_changes(),
            "pr.opened pr:acme/sub/web#9 by alice",
        ),
        (
            "merge_request",
            update("/object_attributes/oldrev", json!("2222")),
            "pr.pushed pr:acme/sub/web#9 by alice",
        ),
        (
            "merge_request",
            update("/changes/labels", labels),
            "pr.labeled pr:acme/sub/web#9 by alice +agent",
        ),
        (
            "merge_request",
            update("/changes/reviewers", people),
            "pr.review_requested pr:acme/sub/web#9 by alice +bot",
        ),
        (
            "merge_request",
            update(
                "/changes/draft",
                json!({"previous": true, "current": false}),
            ),
            "pr.ready pr:acme/sub/web#9 by alice",
        ),
        (
            "merge_request",
            update("/changes/title", json!({})),
            "pr.edited pr:acme/sub/web#9 by alice edit",
        ),
        (
            "merge_request",
            action("close"),
            "pr.closed pr:acme/sub/web#9 by alice",
        ),
        (
            "merge_request",
            action("merge"),
            "pr.merged pr:acme/sub/web#9 by alice",
        ),
        (
            "merge_request",
            action("reopen"),
            "pr.reopened pr:acme/sub/web#9 by alice",
        ),
        (
            "merge_request",
            action("approved"),
            "pr.review pr:acme/sub/web#9 by alice",
        ),
        (
            "merge_request",
            action("approval"),
            "pr.review pr:acme/sub/web#9 by alice",
        ),
        ("merge_request", action("unapproved"), "nothing"),
        (
            "push",
            no_changes(),
            "push branch:acme/sub/web:fix-6 by alice",
        ),
        (
            "push",
            vec![
                ("/after", json!("0".repeat(40))),
                ("/checkout_sha", Value::Null),
            ],
            "branch.deleted branch:acme/sub/web:fix-6 by alice",
        ),
        ("push", vec![("/object_kind", json!("tag_push"))], "nothing"),
        ("push", vec![("/object_kind", json!("pipeline"))], "nothing"),
    ];
    for (name, changes, expected) in rows {
        let payload = with(&format!("gitlab/{name}"), &changes);
        assert_eq!(
            told(read(&payload).as_ref()),
            expected,
            "{name} {changes:?}"
        );
    }
}

#[test]
fn an_author_has_a_login_only_as_the_one_who_acts() {
    let event = read(&with("gitlab/note_issue", &[])).unwrap();
    let author = event.subject_author.unwrap();
    assert_eq!((author.login.as_str(), author.id), ("", Some(3)));
    assert_eq!(event.text_author.unwrap().login, "bob");
    let by_other = [
        ("/object_attributes/action", json!("update")),
        ("/object_attributes/author_id", json!(3)),
    ];
    assert!(
        read(&with("gitlab/note_issue", &by_other))
            .unwrap()
            .is_edit_by_other()
    );
}

#[test]
fn a_merge_request_says_where_its_code_is() {
    let from = |name: &str, changes: &[(&str, Value)]| {
        let event = read(&with(&format!("gitlab/{name}"), changes)).unwrap();
        event.pull.unwrap()
    };
    let own = from("merge_request", &[]);
    assert_eq!(
        (own.branch.as_str(), own.base.as_str(), own.is_fork),
        ("fix-6", "main", false)
    );
    let other = [("/object_attributes/source_project_id", json!(99))];
    assert!(from("merge_request", &other).is_fork);
    let unknown = [("/object_attributes/source_project_id", Value::Null)];
    assert!(from("merge_request", &unknown).is_fork);
    assert!(!from("note_merge_request", &[]).is_fork);
    assert!(
        from(
            "note_merge_request",
            &[("/merge_request/source_project_id", json!(99))]
        )
        .is_fork
    );
}

#[test]
fn an_approval_is_a_review() {
    let event = read(&with("gitlab/merge_request", &action("approved"))).unwrap();
    assert_eq!(
        (event.review, event.version.clone()),
        (Some(ReviewState::Approved), None)
    );
    assert_eq!(event.text(), "");
}
