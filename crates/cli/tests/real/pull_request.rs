//! From an issue to the merge with the real agent: it commits, and the dispatcher pushes, opens the pull request, answers
//! the review and merges. The agent has no token.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tenure_testkit::fake_forge::{Dialect, FakeForge};
use tenure_testkit::poll;
use tenure_testkit::real::{Real, RealWorld};

use crate::dispatch::{Door, SECRET, person};
use crate::state::{LONG, hooked};

const TOKEN: &str = "a token of the tests";
const BRANCH: &str = "tenure/issue-6";
const COMMITS: &str = "MOCK:bash env >>\"$HOME/seen\"; echo x >>file; git add file; \
     git -c user.name=a -c user.email=a@example.invalid commit -qm mine";

const RULES: &str = r#"
[[rule]]
name = "fix"
repo = "acme/web"
on = ["issue.opened"]
authors = ["alice"]
agent = "claude"
skill = "fix"
env = [ENV]
push = true
open_pr = true
reply = "comment"

[[rule]]
name = "address"
repo = "acme/web"
on = ["pr.changes_requested"]
authors = ["alice"]
agent = "claude"
skill = "fix"
env = [ENV]
push = true
open_pr = true
reply = "comment"

[[rule]]
name = "merge"
repo = "acme/web"
on = ["pr.approved"]
authors = ["alice"]
agent = "claude"
skill = "merge"
env = [ENV]
fresh = true
merge = true
reply = "comment"
"#;

/// What keeps the agent from the network.
const ENV: &str =
    r#""DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC""#;

fn set_up(world: &RealWorld) -> FakeForge {
    let forge = FakeForge::start(Dialect::Forgejo);
    forge.state().git_dir = Some(world.project().join(".git"));
    let dir = world.home().join(".config/tenure");
    std::fs::create_dir_all(dir.join("skills")).unwrap();
    let skills = [
        ("fix.md", "Fix {{ item }}.\n{{ body | fenced }}"),
        ("fix-delta.md", "Go on.\n{{ news | fenced }}"),
        ("merge.md", "Look at {{ item }} once more."),
    ];
    for (name, text) in skills {
        std::fs::write(dir.join("skills").join(name), text).unwrap();
    }
    for (name, text) in [("home.secret", SECRET), ("home.token", TOKEN)] {
        let file = dir.join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let text = format!(
        "listen = \"127.0.0.1:0\"\n\
         [forge.home]\nkind = \"forgejo\"\nurl = {:?}\ntoken_file = \"home.token\"\n\
         secret_files = [\"home.secret\"]\nown_account = \"bot\"\n\
         [repo.\"acme/web\"]\nforge = \"home\"\nurl = {:?}\ntrusted = true\n{}",
        forge.url,
        world.project(),
        RULES.replace("ENV", ENV),
    );
    std::fs::write(dir.join("dispatch.toml"), text).unwrap();
    forge
}

fn repository() -> Value {
    json!({"id": 17, "name": "web", "full_name": "acme/web", "default_branch": "main"})
}

fn issue() -> Value {
    json!({
        "action": "opened", "number": 6, "repository": repository(), "sender": person("alice"),
        "issue": {
            "id": 106, "number": 6, "title": "Login fails", "body": COMMITS, "state": "open",
            "user": person("alice"), "labels": [], "assignees": [],
            "html_url": "https://example.invalid/acme/web/issues/6",
            "created_at": "2026-11-16T06:00:00Z", "updated_at": "2026-11-16T06:00:00Z", "pull_request": null,
        },
    })
}

fn pull(number: u64, head: &str, action: &str, by: &str) -> Value {
    json!({
        "action": action, "number": number, "repository": repository(), "sender": person(by),
        "pull_request": {
            "id": 500 + number, "number": number, "title": "Login fails (#6)", "body": "Closes #6",
            "state": "open", "user": person("bot"), "labels": [], "assignees": [], "draft": false,
            "merged": false, "created_at": "2026-11-16T06:10:00Z", "updated_at": "2026-11-16T06:10:00Z",
            "head": {"ref": BRANCH, "sha": head, "repo": repository()},
            "base": {"ref": "main", "sha": head, "repo": repository()},
        },
    })
}

fn review(number: u64, head: &str, kind: &str, text: &str) -> Value {
    let mut payload = pull(number, head, "reviewed", "alice");
    let kind = format!("pull_request_review_{kind}");
    payload["review"] = json!({"type": kind, "content": text});
    payload
}

/// The head of the pull request, as the forge knows it.
fn head(forge: &FakeForge, number: u64) -> String {
    let mut state = forge.state();
    state.update_heads();
    state.heads[&number].commit.clone()
}

/// The only run of a rule, once its job is over, and pushed this branch.
#[track_caller]
fn over(world: &RealWorld, rule: &str, pushed: Option<&str>) -> Value {
    let list = |words: &[&str], name: &str| -> Vec<Value> {
        let said = world.tenure(words).ok().json();
        said[name].as_array().expect("a list").clone()
    };
    let job = poll(LONG, rule, || {
        let jobs = list(&["queue", "--all", "--json"], "jobs");
        let job = jobs.into_iter().find(|job| job["rule"] == rule)?;
        assert_eq!(job["failures"], 0, "{job:#}");
        (job["state"] == "ended").then_some(job)
    });
    assert_eq!(job["outcome"], "done", "{job:#}");
    assert_eq!(job["published"].as_str(), pushed, "{job:#}");
    let runs = list(&["runs", "--json"], "runs");
    let of_job = |run: &&Value| run["id"] == job["run"];
    runs.iter().find(of_job).expect("its run").clone()
}

#[test]
#[ignore = "runs a real agent"]
fn an_issue_becomes_a_pull_request_that_is_reviewed_and_merged() {
    let world = hooked(Real::Claude);
    let forge = set_up(&world);
    let door = Door::open(&world);
    door.deliver("issues", "d-1", &issue(), "queued");
    let first = over(&world, "fix", Some(BRANCH));
    let number = poll(LONG, "a pull request is opened", || {
        forge.state().pulls.keys().next().copied()
    });
    let made = forge.state().pulls[&number].clone();
    assert_eq!((made.branch.as_str(), made.base.as_str()), (BRANCH, "main"));
    assert!(made.body.contains("Closes #6\n"), "{}", made.body);
    let before = head(&forge, number);
    let opened = pull(number, &before, "opened", "bot");
    door.deliver("pull_request", "d-2", &opened, "acted");
    let asks = review(number, &before, "rejected", COMMITS);
    door.deliver("pull_request_rejected", "d-3", &asks, "queued");
    let second = over(&world, "address", Some(BRANCH));
    assert_eq!(second["native_id"], first["native_id"], "it goes on");
    let after = poll(LONG, "the pull request is updated", || {
        Some(head(&forge, number)).filter(|now| *now != before)
    });
    let approves = review(number, &after, "approved", "Good.");
    door.deliver("pull_request_approved", "d-4", &approves, "queued");
    let third = over(&world, "merge", None);
    assert_ne!(third["native_id"], first["native_id"], "on its own");
    poll(LONG, "it is merged", || {
        (forge.state().threads[&number].state == "merged").then_some(())
    });
    poll(LONG, "the forge is told", || {
        let own = forge.own_comments();
        own.into_iter()
            .find(|one| one.body.contains("It was merged."))
    });
    assert_eq!(forge.state().pulls.len(), 1);
    let seen = std::fs::read_to_string(world.home().join("seen")).unwrap();
    assert!(!seen.contains(TOKEN) && !seen.contains(SECRET), "{seen}");
}
