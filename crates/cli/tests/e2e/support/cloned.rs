//! A dispatcher that fetches acme/web from a forge on loopback.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::Env;

use super::git_host::{FETCH, GitHost, PUSH};
use super::webhook::{SECRET, person, repository};

/// A file that only its owner can read.
pub fn private(file: &Path, text: &str) {
    std::fs::write(file, text).expect("the environment is ours");
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(file, mode).expect("the environment is ours");
}

/// Writes what a dispatcher needs. `repo` is added to its repository, `rules` are its rules.
pub fn set_up(env: &Env, host: &GitHost, top: &str, repo: &str, rules: &str) {
    let dir = env.home().join(".config/tenure");
    std::fs::create_dir_all(dir.join("skills")).expect("the environment is ours");
    std::fs::write(dir.join("skills/fix.md"), "Fix {{ item }}.").expect("the environment is ours");
    private(&dir.join("home.secret"), SECRET);
    private(&dir.join("home.token"), FETCH.0);
    private(&dir.join("push.token"), PUSH.0);
    let url = &host.url;
    let text = format!(
        "listen = \"127.0.0.1:0\"\n{top}\n\
         [forge.home]\nkind = \"forgejo\"\nsecret_files = [\"home.secret\"]\n\
         url = {url:?}\ntoken_file = \"home.token\"\nown_account = \"bot\"\n\
         [repo.\"acme/web\"]\nforge = \"home\"\n{repo}\n{rules}\n",
    );
    std::fs::write(dir.join("dispatch.toml"), text).expect("the environment is ours");
}

/// A rule for alice and a scripted agent.
pub fn rule(more: &str) -> String {
    format!(
        "[[rule]]\nrepo = \"acme/web\"\n\
         on = [\"issue.opened\", \"issue.comment\", \"pr.opened\", \"pr.comment\"]\n\
         authors = [\"alice\"]\nagent = \"mine\"\nskill = \"fix\"\n{more}\n"
    )
}

/// A pull request of alice's with this head, from a branch of the repository itself.
pub fn pull(number: u64, head: &str) -> Value {
    json!({
        "action": "opened", "number": number,
        "pull_request": {
            "id": 500 + number, "number": number, "title": "A change", "body": "", "state": "open",
            "user": person("alice", 3), "labels": [], "assignees": [], "draft": false, "merged": false,
            "html_url": format!("https://git.example.org/acme/web/pulls/{number}"),
            "created_at": "2026-11-16T06:00:00Z", "updated_at": "2026-11-16T06:00:00Z",
            "head": {"ref": "fix", "sha": head, "repo": {"id": 17, "full_name": "acme/web"}},
            "base": {"ref": "main", "sha": head, "repo": {"id": 17, "full_name": "acme/web"}},
        },
        "repository": repository(), "sender": person("alice", 3),
    })
}
