//! What code left in a working copy of the dispatcher's tells nobody what that working copy is.

use serde_json::{Value, json};
use tenure_testkit::{Scripted, poll, scratch_git};

use crate::env;
use crate::support::forge_api::{conversations, jobs, list};
use crate::support::line::SOON;
use crate::support::webhook::{Dispatcher, comment, issue, set_up};

#[test]
fn a_repository_that_an_agent_put_in_its_place_is_not_taken_for_the_one_that_it_works_on() {
    let env = env();
    let private = env.dir().join("private");
    scratch_git(
        &private,
        Some("https://private.example.org/alice/secret.git"),
    );
    let mine = Scripted::new(
        &env,
        "mine",
        &format!(
            "cat >/dev/null; init; rm -rf .git; echo 'gitdir: {}/.git' >.git; done_",
            private.display()
        ),
    );
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let done = |count: usize| {
        poll(SOON, "the jobs are over", || {
            let jobs = jobs(&env);
            let over = jobs.iter().filter(|job| job["outcome"] == "done");
            (over.count() == count).then_some(())
        });
    };
    door.deliver("issues", "d-1", &issue(6, "opened"));
    done(1);
    let before = conversations(&env);
    mine.does("cat >/dev/null; echo $mode >>$dir/modes; init; done_");
    door.deliver("issue_comment", "d-2", &comment(6, 1, "alice", "Go on."));
    done(2);
    assert_eq!(mine.wrote("modes").as_deref(), Some("resume\n"));
    let sessions = list(&env, &["ps", "-a", "--json"], "sessions");
    let repos: Vec<&Value> = sessions.iter().map(|session| &session["repo"]).collect();
    assert!(!repos.is_empty(), "{sessions:#?}");
    assert!(
        repos.iter().all(|repo| **repo == json!("acme/web")),
        "{sessions:#?}"
    );
    let after = conversations(&env);
    assert_eq!(before.len(), after.len());
    let text = format!("{sessions:?} {after:?}");
    assert!(!text.contains("private"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}
