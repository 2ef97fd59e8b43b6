//! Results that wait for a person: shown, published, refused.

use serde_json::Value;
use tenure_testkit::{Env, Scripted, poll};

use crate::env;
use crate::support::cloned::{rule, set_up};
use crate::support::git_host::{GitHost, git, git_maybe};
use crate::support::line::{SOON, session, text};
use crate::support::webhook::{Dispatcher, comment, issue};

const COMMITS: &str = "cat >/dev/null; echo x >>file; git add file; \
     git -c user.name=a -c user.email=a@example.invalid commit -qm mine; git rev-parse HEAD >$dir/made; init; done_";
const BRANCH: &str = "refs/heads/tenure/issue-6";

fn forge(env: &Env) -> GitHost {
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    let asks = rule("push = true\npublish = \"ask\"");
    set_up(env, &host, "", "push_credential = \"push.token\"", &asks);
    host
}

/// The jobs that `queue` lists, once it lists this many with a result that waits.
#[track_caller]
fn waiting(env: &Env, run_count: usize) -> Vec<Value> {
    poll(SOON, "a result waits", || {
        let all = env.tenure(&["queue", "--all", "--json"]).ok().json();
        let over = |job: &Value| job["state"] == "ended";
        let all = all["jobs"].as_array().expect("a list").clone();
        if all.len() != run_count || !all.iter().all(over) {
            return None;
        }
        let listed = env.tenure(&["queue", "--json"]).ok().json();
        Some(listed["jobs"].as_array().expect("a list").clone())
    })
}

fn pushed(host: &GitHost) -> Option<String> {
    git_maybe(&host.repo, &["rev-parse", "--verify", "--quiet", BRANCH])
}

#[test]
fn a_person_publishes_a_result_that_waits() {
    let env = env();
    let mine = Scripted::new(&env, "mine", COMMITS);
    let host = forge(&env);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    let jobs = waiting(&env, 1);
    assert_eq!(jobs.len(), 1, "{jobs:#?}");
    let why = text(&jobs[0]["unpublished"]);
    assert!(why.contains("only what a person approved"), "{why}");
    let (job, run) = (text(&jobs[0]["id"]), text(&jobs[0]["run"]));
    assert_eq!(pushed(&host), None);
    let listed = env.tenure(&["queue"]).ok().stdout;
    assert!(
        listed.contains(&format!("tenure queue publish {job}")),
        "{listed}"
    );
    let shown = env.tenure(&["runs", "show", &run, "--json"]).ok().json();
    let patch = std::fs::read_to_string(text(&shown["patch"])).expect("it is there");
    assert!(patch.contains("+++ b/file"), "{patch}");
    let agent = session(&env, "claude");
    let by_agent = agent.tenure(&["queue", "publish", &job, "--json"]);
    assert_eq!(by_agent.json()["error"]["kind"], "not_yet");
    assert_eq!(pushed(&host), None);
    let done = env
        .tenure(&["queue", "publish", &job, "--json"])
        .ok()
        .json();
    assert_eq!(done["published"][0]["branch"], "tenure/issue-6");
    assert_eq!(done["jobs"][0]["unpublished"], Value::Null);
    assert_eq!(
        pushed(&host),
        mine.wrote("made").map(|it| it.trim().to_owned())
    );
    assert_eq!(waiting(&env, 1), Vec::<Value>::new());
    let again = env.tenure(&["queue", "publish", &job, "--json"]);
    assert_eq!(again.json()["error"]["kind"], "nothing_waits");
    let unknown = env.tenure(&["queue", "publish", "j-nosuchjob2", "--json"]);
    assert_eq!(unknown.json()["error"]["kind"], "no_such_job");
}

#[test]
fn a_newer_result_replaces_one_that_waits_and_a_branch_of_someone_else_is_not_overwritten() {
    let env = env();
    let mine = Scripted::new(&env, "mine", COMMITS);
    let host = forge(&env);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    let first = text(&waiting(&env, 1)[0]["id"]);
    door.deliver("issue_comment", "d-2", &comment(6, 41, "alice", "more"));
    let left = waiting(&env, 2);
    assert_eq!(left.len(), 1, "{left:#?}");
    let second = text(&left[0]["id"]);
    assert_ne!(first, second);
    let old = env.tenure(&["queue", "publish", &first, "--json"]);
    assert_eq!(old.json()["error"]["kind"], "nothing_waits");
    let theirs = host.commit(BRANCH, "theirs", "1");
    let moved = env.tenure(&["queue", "publish", &second, "--json"]);
    assert_eq!(moved.json()["error"]["kind"], "not_published");
    assert_eq!(pushed(&host), Some(theirs));
    git(&host.repo, &["update-ref", "-d", BRANCH]);
    env.tenure(&["queue", "publish", &second]).ok();
    assert_eq!(
        pushed(&host),
        mine.wrote("made").map(|it| it.trim().to_owned())
    );
}

#[test]
fn a_person_decides_against_a_result() {
    let env = env();
    Scripted::new(&env, "mine", COMMITS);
    let host = forge(&env);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    let job = text(&waiting(&env, 1)[0]["id"]);
    env.tenure(&["queue", "cancel", &job, "--reason", "no"])
        .ok();
    assert_eq!(waiting(&env, 1), Vec::<Value>::new());
    assert_eq!(pushed(&host), None);
}
