use serde_json::{Value, json};
use tenure_core::forge::{Association, ForgeEvent, ReviewState};

use crate::support::{Changes, action, headers, no_changes, row, told, with};

fn read(event: &str, payload: &Value) -> Option<ForgeEvent> {
    let sent = headers(&[("X-GitHub-Event", event)]);
    row("github")
        .read(&sent, payload.to_string().as_bytes())
        .unwrap()
}

#[test]
fn each_row_of_the_table_is_read() {
    let label = json!({"id": 1, "name": "agent"});
    let rows: Vec<(&str, &str, Changes, &str)> = vec![
        (
            "issues",
            "issue",
            no_changes(),
            "issue.opened issue:acme/web#6 by alice",
        ),
        (
            "issues",
            "issue",
            action("edited"),
            "issue.edited issue:acme/web#6 by alice edit",
        ),
        (
            "issues",
            "issue",
            action("closed"),
            "issue.closed issue:acme/web#6 by alice",
        ),
        (
            "issues",
            "issue",
            action("reopened"),
            "issue.reopened issue:acme/web#6 by alice",
        ),
        (
            "issues",
            "issue",
            action("deleted"),
            "issue.deleted issue:acme/web#6 by alice",
        ),
        (
            "issues",
            "issue",
            action("transferred"),
            "issue.deleted issue:acme/web#6 by alice",
        ),
        (
            "issues",
            "issue",
            vec![("/action", json!("labeled")), ("/label", label.clone())],
            "issue.labeled issue:acme/web#6 by alice +agent",
        ),
        ("issues", "issue", action("unlabeled"), "nothing"),
        (
            "issues",
            "issue",
            vec![
                ("/action", json!("assigned")),
                ("/assignee", json!({"login": "bot", "id": 9})),
            ],
            "issue.assigned issue:acme/web#6 by alice +bot",
        ),
        (
            "issues",
            "issue",
            vec![
                ("/action", json!("unassigned")),
                ("/assignee", json!({"login": "bot", "id": 9})),
            ],
            "issue.unassigned issue:acme/web#6 by alice -bot",
        ),
        (
            "issue_comment",
            "comment",
            no_changes(),
            "issue.comment issue:acme/web#6 by bob",
        ),
        (
            "issue_comment",
            "comment",
            action("edited"),
            "issue.comment issue:acme/web#6 by bob edit",
        ),
        ("issue_comment", "comment", action("deleted"), "nothing"),
        (
            "issue_comment",
            "comment",
            vec![(
                "/issue/pull_request",
                json!({"url": "https://api.github.com/x"}),
            )],
            "pr.comment pr:acme/web#6 by bob",
        ),
        (
            "pull_request",
            "pull_request",
            no_changes(),
            "pr.opened pr:acme/web#9 by alice",
        ),
        (
            "pull_request",
            "pull_request",
            action("edited"),
            "pr.edited pr:acme/web#9 by alice edit",
        ),
        (
            "pull_request",
            "pull_request",
            action("synchronize"),
            "pr.pushed pr:acme/web#9 by alice",
        ),
        (
            "pull_request",
            "pull_request",
            action("reopened"),
            "pr.reopened pr:acme/web#9 by alice",
        ),
        (
            "pull_request",
            "pull_request",
            action("ready_for_review"),
            "pr.ready pr:acme/web#9 by alice",
        ),
        (
            "pull_request",
            "pull_request",
            action("closed"),
            "pr.closed pr:acme/web#9 by alice",
        ),
        (
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
            vec![("/action", json!("labeled")), ("/label", label)],
            "pr.labeled pr:acme/web#9 by alice +agent",
        ),
        (
            "pull_request",
            "pull_request",
            vec![
                ("/action", json!("review_requested")),
                ("/requested_reviewer", json!({"login": "bot", "id": 9})),
            ],
            "pr.review_requested pr:acme/web#9 by alice +bot",
        ),
        (
            "pull_request_review",
            "review",
            no_changes(),
            "pr.review pr:acme/web#9 by dave",
        ),
        (
            "pull_request_review",
            "review",
            action("edited"),
            "pr.review pr:acme/web#9 by dave edit",
        ),
        (
            "pull_request_review",
            "review",
            action("dismissed"),
            "nothing",
        ),
        (
            "pull_request_review_comment",
            "review_comment",
            no_changes(),
            "pr.review_comment pr:acme/web#9 by dave",
        ),
        (
            "delete",
            "delete",
            no_changes(),
            "branch.deleted branch:acme/web:fix-6 by alice",
        ),
        (
            "push",
            "push",
            no_changes(),
            "push branch:acme/web:fix-6 by alice",
        ),
        (
            "push",
            "push",
            vec![("/deleted", json!(true)), ("/after", json!("0".repeat(40)))],
            "branch.deleted branch:acme/web:fix-6 by alice",
        ),
        (
            "repository",
            "repository",
            no_changes(),
            "repo.renamed - by alice",
        ),
        (
            "repository",
            "repository",
            action("deleted"),
            "repo.deleted - by alice",
        ),
        ("ping", "ping", no_changes(), "ping - by alice"),
        (
            "ping",
            "ping",
            vec![("/repository", Value::Null)],
            "nothing",
        ),
        ("star", "push", no_changes(), "nothing"),
    ];
    for (event, name, changes, expected) in rows {
        let payload = with(&format!("github/{name}"), &changes);
        assert_eq!(
            told(read(event, &payload).as_ref()),
            expected,
            "{event} {changes:?}"
        );
    }
}

#[test]
fn what_somebody_is_to_the_repository_is_read_only_of_who_acts() {
    let of = |event: &str, name: &str, changes: &[(&str, Value)]| {
        read(event, &with(name, changes)).unwrap().association
    };
    assert_eq!(of("issues", "github/issue", &[]), Some(Association::Member));
    assert_eq!(
        of("issue_comment", "github/comment", &[]),
        Some(Association::Collaborator)
    );
    // Mallory labels an issue of a member, and edits a collaborator's comment.
    let mallory = json!({"login": "mallory", "id": 66, "type": "User"});
    let by_mallory = [("/action", json!("labeled")), ("/sender", mallory.clone())];
    assert_eq!(of("issues", "github/issue", &by_mallory), None);
    let by_mallory = [("/action", json!("edited")), ("/sender", mallory)];
    let event = read("issue_comment", &with("github/comment", &by_mallory)).unwrap();
    assert_eq!(event.association, None);
    assert!(event.is_edit_by_other());
}

#[test]
fn a_comment_on_a_pull_request_does_not_say_where_the_code_is() {
    let on_pull = [("/issue/pull_request", json!({}))];
    let event = read("issue_comment", &with("github/comment", &on_pull)).unwrap();
    assert_eq!(event.pull, None);
    assert_eq!(event.version.unwrap().id, "comment-303");
}

#[test]
fn a_review_and_its_comments_have_what_they_say() {
    let event = read("pull_request_review", &with("github/review", &[])).unwrap();
    assert_eq!(event.review, Some(ReviewState::ChangesRequested));
    assert_eq!(event.text(), "The test is missing");
    assert_eq!(event.version.unwrap().id, "review-404");
    let edited = with("github/review", &[("/action", json!("edited"))]);
    assert_eq!(read("pull_request_review", &edited).unwrap().version, None);
    let payload = with("github/review_comment", &[]);
    let place = read("pull_request_review_comment", &payload)
        .unwrap()
        .place
        .unwrap();
    assert_eq!(
        (place.path.as_str(), place.line),
        ("src/login.rs", Some(12))
    );
}

#[test]
fn a_bot_is_known_as_one() {
    let bot = json!({"login": "renovate[bot]", "id": 8, "type": "Bot"});
    let event = read("issues", &with("github/issue", &[("/sender", bot)])).unwrap();
    assert!(event.actor.is_bot);
}

#[test]
fn a_repository_that_was_renamed_names_both() {
    let event = read("repository", &with("github/repository", &[])).unwrap();
    assert_eq!(event.previous_repo.as_deref(), Some("acme/site"));
    assert_eq!(event.repo, "acme/web");
}
