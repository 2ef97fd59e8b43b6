use serde_json::{Value, json};
use tenure_core::forge::{ForgeEvent, ReviewState};

use crate::support::{Changes, action, headers, no_changes, row, told, with};

/// The event's coarse and fine name.
fn read(coarse: &str, fine: &str, payload: &Value) -> Option<ForgeEvent> {
    let sent = headers(&[
        ("X-Forgejo-Event", coarse),
        ("X-Forgejo-Event-Type", fine),
        ("X-GitHub-Event", coarse),
    ]);
    row("forgejo")
        .read(&sent, payload.to_string().as_bytes())
        .unwrap()
}

#[test]
fn each_row_of_the_table_is_read() {
    let rows: Vec<(&str, &str, &str, Changes, &str)> = vec![
        (
            "issues",
            "issues",
            "issue",
            no_changes(),
            "issue.opened issue:acme/web#6 by alice",
        ),
        (
            "issues",
            "issues",
            "issue",
            action("edited"),
            "issue.edited issue:acme/web#6 by alice edit",
        ),
        (
            "issues",
            "issues",
            "issue",
            action("closed"),
            "issue.closed issue:acme/web#6 by alice",
        ),
        (
            "issues",
            "issues",
            "issue",
            action("reopened"),
            "issue.reopened issue:acme/web#6 by alice",
        ),
        (
            "issues",
            "issues",
            "issue",
            action("deleted"),
            "issue.deleted issue:acme/web#6 by alice",
        ),
        (
            "issues",
            "issue_assign",
            "issue",
            action("assigned"),
            "issue.assigned issue:acme/web#6 by alice",
        ),
        (
            "issues",
            "issue_assign",
            "issue",
            action("unassigned"),
            "issue.unassigned issue:acme/web#6 by alice",
        ),
        (
            "issues",
            "issue_label",
            "issue",
            action("label_updated"),
            "issue.labeled issue:acme/web#6 by alice",
        ),
        (
            "issues",
            "issue_label",
            "issue",
            action("label_cleared"),
            "nothing",
        ),
        (
            "issues",
            "issue_milestone",
            "issue",
            action("milestoned"),
            "nothing",
        ),
        (
            "issue_comment",
            "issue_comment",
            "comment",
            no_changes(),
            "issue.comment issue:acme/web#6 by bob",
        ),
        (
            "issue_comment",
            "issue_comment",
            "comment",
            action("edited"),
            "issue.comment issue:acme/web#6 by bob edit",
        ),
        (
            "issue_comment",
            "issue_comment",
            "comment",
            action("deleted"),
            "nothing",
        ),
        (
            "issue_comment",
            "pull_request_comment",
            "comment",
            vec![("/is_pull", json!(true))],
            "pr.comment pr:acme/web#6 by bob",
        ),
        (
            "pull_request",
            "pull_request",
            "pull_request",
            no_changes(),
            "pr.opened pr:acme/web#9 by alice",
        ),
        (
            "pull_request",
            "pull_request",
            "pull_request",
            action("edited"),
            "pr.edited pr:acme/web#9 by alice edit",
        ),
        (
            "pull_request",
            "pull_request_sync",
            "pull_request",
            action("synchronized"),
            "pr.pushed pr:acme/web#9 by alice",
        ),
        (
            "pull_request_sync",
            "",
            "pull_request",
            action("synchronized"),
            "pr.pushed pr:acme/web#9 by alice",
        ),
        (
            "pull_request",
            "pull_request",
            "pull_request",
            action("closed"),
            "pr.closed pr:acme/web#9 by alice",
        ),
        (
            "pull_request",
            "pull_request",
            "pull_request",
            vec![
                ("/action", json!("closed")),
                ("/pull_request/merged", json!(true)),
            ],
            "pr.merged pr:acme/web#9 by alice",
        ),
        (
            "pull_request",
            "pull_request",
            "pull_request",
            action("reopened"),
            "pr.reopened pr:acme/web#9 by alice",
        ),
        (
            "pull_request",
            "pull_request_label",
            "pull_request",
            action("label_updated"),
            "pr.labeled pr:acme/web#9 by alice",
        ),
        (
            "pull_request",
            "pull_request_review_request",
            "pull_request",
            vec![
                ("/action", json!("review_requested")),
                ("/requested_reviewer", json!({"login": "bot"})),
            ],
            "pr.review_requested pr:acme/web#9 by alice +bot",
        ),
        (
            "pull_request_rejected",
            "pull_request_review_rejected",
            "review",
            no_changes(),
            "pr.review pr:acme/web#9 by dave",
        ),
        (
            "delete",
            "delete",
            "delete",
            no_changes(),
            "branch.deleted branch:acme/web:fix-6 by alice",
        ),
        (
            "delete",
            "delete",
            "delete",
            vec![("/ref_type", json!("tag"))],
            "nothing",
        ),
        // A test delivery is an ordinary push.
        (
            "push",
            "push",
            "push",
            no_changes(),
            "push branch:acme/web:fix-6 by alice",
        ),
        (
            "push",
            "push",
            "push",
            vec![("/ref", json!("refs/tags/v1"))],
            "nothing",
        ),
        (
            "push",
            "push",
            "push",
            vec![("/after", json!("0".repeat(40)))],
            "branch.deleted branch:acme/web:fix-6 by alice",
        ),
        (
            "repository",
            "repository",
            "repository",
            no_changes(),
            "repo.renamed - by alice",
        ),
        (
            "repository",
            "repository",
            "repository",
            action("deleted"),
            "repo.deleted - by alice",
        ),
        (
            "repository",
            "repository",
            "repository",
            action("created"),
            "nothing",
        ),
        ("fork", "fork", "push", no_changes(), "nothing"),
    ];
    for (coarse, fine, name, changes, expected) in rows {
        let payload = with(&format!("forgejo/{name}"), &changes);
        let event = read(coarse, fine, &payload);
        assert_eq!(
            told(event.as_ref()),
            expected,
            "{coarse} {fine} {changes:?}"
        );
    }
}

#[test]
fn an_issue_has_all_that_a_rule_asks_for() {
    let event = read("issues", "issues", &with("forgejo/issue", &[])).unwrap();
    assert_eq!((event.repo.as_str(), event.repo_id), ("acme/web", Some(17)));
    assert_eq!(event.actor.id, Some(3));
    assert_eq!(event.subject_author.as_ref().unwrap().login, "alice");
    assert_eq!(
        (event.title.as_str(), event.body.as_str()),
        ("Login fails", "It answers 500.\n")
    );
    assert_eq!(
        (event.labels, event.assignees),
        (vec!["bug".to_owned()], vec!["carol".to_owned()])
    );
    assert_eq!(event.version.unwrap().id, "issue-101");
    assert_eq!(event.association, None, "Forgejo does not say");
}

#[test]
fn a_pull_request_says_where_its_code_is() {
    let from = |changes: &[(&str, Value)]| {
        let payload = with("forgejo/pull_request", changes);
        read("pull_request", "pull_request", &payload)
            .unwrap()
            .pull
            .unwrap()
    };
    let own = from(&[]);
    assert_eq!((own.branch.as_str(), own.base.as_str()), ("fix-6", "main"));
    assert_eq!(own.head.as_deref(), Some("1".repeat(40).as_str()));
    assert!(!own.is_fork);
    assert!(from(&[("/pull_request/head/repo/full_name", json!("mallory/web"))]).is_fork);
    assert!(
        from(&[("/pull_request/head/repo", Value::Null)]).is_fork,
        "deleted"
    );
    // By push, without a fork, from somebody who may only read.
    assert!(from(&[("/pull_request/flow", json!(1))]).is_fork);
    assert!(from(&[("/pull_request/head/ref", json!("refs/pull/9/head"))]).is_fork);
}

#[test]
fn a_review_has_its_text_and_no_version() {
    let event = read("pull_request_rejected", "", &with("forgejo/review", &[])).unwrap();
    assert_eq!(event.review, Some(ReviewState::ChangesRequested));
    assert_eq!(event.text(), "The test is missing");
    assert_eq!(event.text_author.unwrap().login, "dave");
    assert_eq!(
        event.version, None,
        "two reviews of one second differ in nothing"
    );
    let approved = with(
        "forgejo/review",
        &[("/review/type", json!("pull_request_review_approved"))],
    );
    let event = read("pull_request_approved", "", &approved).unwrap();
    assert_eq!(event.review, Some(ReviewState::Approved));
    let comment = with(
        "forgejo/review",
        &[("/review/type", json!("pull_request_review_comment"))],
    );
    let event = read(
        "pull_request_comment",
        "pull_request_review_comment",
        &comment,
    )
    .unwrap();
    assert_eq!(event.review, Some(ReviewState::Commented));
}

#[test]
fn gitea_is_read_by_its_own_headers() {
    let sent = headers(&[
        ("X-Gitea-Event", "issues"),
        ("X-Gitea-Event-Type", "issues"),
    ]);
    let payload = with("forgejo/issue", &[]).to_string();
    let event = row("gitea").read(&sent, payload.as_bytes()).unwrap();
    assert_eq!(
        told(event.as_ref()),
        "issue.opened issue:acme/web#6 by alice"
    );
}
