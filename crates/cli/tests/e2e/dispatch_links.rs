//! A pull request that continues the conversation of its issue.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env, Scripted, poll};

use crate::env;
use crate::support::git_host::git;
use crate::support::line::SOON;
use crate::support::run::all;
use crate::support::webhook::{Dispatcher, issue, set_up};

fn pull(number: u64, head: &str) -> Value {
    let person = json!({"id": 3, "login": "alice", "username": "alice"});
    let repository =
        json!({"id": 17, "name": "web", "full_name": "acme/web", "default_branch": "main"});
    json!({
        "action": "opened", "number": number, "repository": repository, "sender": person,
        "pull_request": {
            "id": 200 + number, "number": number, "title": "Mend the login", "body": "Closes #6",
            "state": "open", "merged": false, "user": person, "labels": [], "assignees": [],
            "html_url": format!("https://git.example.org/acme/web/pulls/{number}"),
            "head": {"ref": "tenure/issue-6", "sha": head, "repo": repository},
            "base": {"ref": "main", "sha": "2".repeat(40), "repo": repository},
            "created_at": "2026-11-16T07:00:00Z", "updated_at": "2026-11-16T07:00:00Z",
        },
    })
}

/// A repository with a pull request; its head.
fn with_pull(env: &Env, ann: &Agent) -> String {
    let repo = env.dir().join("web");
    set_up(env, "");
    let repo = repo.to_str().expect("it is text");
    let git = ["-C", repo, "update-ref", "refs/pull/9/head", "HEAD"];
    ann.run(Cmd::new("git").args(git)).ok();
    let head = ann.run(Cmd::new("git").args(["-C", repo, "rev-parse", "HEAD"]));
    let head = head.ok().stdout.trim().to_owned();
    let file = env.home().join(".config/tenure/dispatch.toml");
    let text = std::fs::read_to_string(&file).expect("it is text");
    let text = text.replace("\"issue.comment\"]", "\"issue.comment\", \"pr.opened\"]");
    std::fs::write(&file, text).expect("a scratch directory can be read and written");
    head
}

#[track_caller]
fn over(env: &Env, count: usize) -> Vec<Value> {
    poll(SOON, "the runs are over", || {
        let runs = all(env);
        let ended = runs.iter().filter(|run| run["state"] == "ended").count();
        (ended == count).then_some(runs)
    })
}

/// A place of its own would be another directory than that of the conversation.
#[test]
fn a_pull_request_is_worked_on_in_the_place_of_the_issue_that_it_closes() {
    let env = env();
    Scripted::new(&env, "mine", "cat >/dev/null; init; done_");
    let ann = env.agent("ann");
    let head = with_pull(&env, &ann);
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    over(&env, 1);
    let (status, answer) = door.deliver("pull_request", "d-2", &pull(9, &head));
    assert_eq!(status, 202, "{answer}");
    let runs = over(&env, 2);
    assert_eq!(runs[0]["item"], "pr:acme/web#9");
    assert_eq!(runs[0]["native_id"], runs[1]["native_id"], "{runs:#?}");
    assert_eq!(runs[0]["dir"], runs[1]["dir"], "{runs:#?}");
    assert_eq!(runs[0]["outcome"], "done");
}

#[test]
fn a_pull_request_that_closes_an_issue_is_worked_on_at_its_own_head() {
    let env = env();
    let looks = "git rev-parse HEAD >>$dir/heads; cat >/dev/null; init; done_";
    let mine = Scripted::new(&env, "mine", looks);
    let ann = env.agent("ann");
    let main = with_pull(&env, &ann);
    let repo = env.dir().join("web");
    let who = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"];
    let words = ["commit-tree", "-p", "HEAD", "-m", "theirs", "HEAD^{tree}"];
    let head = git(&repo, &[&who[..], &words[..]].concat());
    git(&repo, &["update-ref", "refs/pull/9/head", &head]);
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    over(&env, 1);
    door.deliver("pull_request", "d-2", &pull(9, &head));
    let runs = over(&env, 2);
    assert_eq!(runs[0]["native_id"], runs[1]["native_id"], "{runs:#?}");
    assert_eq!(mine.wrote("heads"), Some(format!("{main}\n{head}\n")));
}

/// No run ends any more after the item was closed.
#[test]
fn the_place_of_a_closed_item_is_removed_without_another_run() {
    let mut env = env();
    env.set("TENURE_GRACE", "1s");
    Scripted::new(&env, "mine", "cat >/dev/null; init; done_");
    let ann = env.agent("ann");
    with_pull(&env, &ann);
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    let runs = over(&env, 1);
    let worktree = PathBuf::from(runs[0]["dir"].as_str().unwrap());
    assert!(worktree.is_dir());
    let (status, answer) = door.deliver("issues", "d-2", &issue(6, "closed"));
    assert_eq!(answer["verdict"], "acted", "{status}: {answer}");
    let closed = Instant::now();
    poll(SOON, "the grace is over", || {
        (closed.elapsed() > Duration::from_secs(2)).then_some(())
    });
    assert!(worktree.is_dir(), "nobody has looked");
    door.process.kill9();
    let _next = Dispatcher::start(&ann);
    poll(SOON, "the worktree is removed", || {
        (!worktree.exists()).then_some(())
    });
}
