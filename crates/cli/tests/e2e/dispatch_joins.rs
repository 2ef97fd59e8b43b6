//! Events of several items of one conversation.

use serde_json::{Value, json};
use tenure_testkit::{Scripted, poll};

use crate::env;
use crate::support::forge_api::jobs;
use crate::support::line::{SOON, text};
use crate::support::webhook::{Dispatcher, comment, issue, person, repository, set_up};

/// A pull request of alice, from a branch of the same repository.
fn pull(number: u64) -> Value {
    let repository = repository();
    json!({
        "action": "opened", "number": number, "repository": repository, "sender": person("alice", 3),
        "pull_request": {
            "id": 200 + number, "number": number, "title": "Mend the login", "body": "It mends the login.",
            "state": "open", "merged": false, "user": person("alice", 3), "labels": [], "assignees": [],
            "html_url": format!("https://git.example.org/acme/web/pulls/{number}"),
            "head": {"ref": "tenure/issue-6", "sha": "1".repeat(40), "repo": repository},
            "base": {"ref": "main", "sha": "2".repeat(40), "repo": repository},
            "created_at": "2026-11-16T07:00:00Z", "updated_at": "2026-11-16T07:00:00Z",
        },
    })
}

#[test]
fn an_event_of_a_linked_pull_request_joins_the_waiting_job_of_its_issue() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "cat >>$dir/prompts; init; ready $dir/on; hold $dir/flag; done_",
    );
    mine.keep("flag");
    set_up(&env, "");
    let file = env.home().join(".config/tenure/dispatch.toml");
    let rules = std::fs::read_to_string(&file).unwrap();
    let rules = rules.replace("\"issue.comment\"]", "\"issue.comment\", \"pr.opened\"]");
    std::fs::write(&file, rules).unwrap();
    let ann = env.agent("ann");
    let link = ["conversation", "link", "pr:acme/web#9", "issue:acme/web#6"];
    ann.tenure(&link).ok();
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    poll(SOON, "it works", || mine.file("on").exists().then_some(()));
    let (_, waits) = door.deliver(
        "issue_comment",
        "d-2",
        &comment(6, 41, "alice", "ISSUE-WORDS"),
    );
    assert_eq!(waits["verdict"], "queued", "{waits}");
    let (status, joined) = door.deliver("pull_request", "d-3", &pull(9));
    assert_eq!(
        (status, &joined["verdict"]),
        (202, &json!("joined")),
        "{joined}"
    );
    assert_eq!(joined["job"], waits["job"]);
    std::fs::remove_file(mine.file("flag")).unwrap();
    let done = poll(SOON, "both are done", || {
        let all = jobs(&env);
        all.iter()
            .all(|job| job["outcome"] == "done")
            .then_some(all)
    });
    assert_eq!(done.len(), 2, "{done:#?}");
    let job = done
        .iter()
        .find(|job| job["id"] == waits["job"])
        .expect("it is listed");
    assert_eq!(text(&job["item"]), "issue:acme/web#6");
    let prompts = mine.wrote("prompts").unwrap();
    for words in ["ISSUE-WORDS", "pr.opened by alice in pr:acme/web#9"] {
        assert_eq!(prompts.matches(words).count(), 1, "{prompts}");
    }
}
