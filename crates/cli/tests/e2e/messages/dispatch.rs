//! Set-up of the dispatcher, offline.

use std::os::unix::fs::PermissionsExt;

use super::page::Page;
use crate::env;
use crate::support::dispatch::{clone, fill_in, payload};
use crate::support::line::session;

#[test]
fn dispatch() {
    let env = env();
    let mut page = Page::new("55-dispatch", &env);
    let human = session(&env, "human");
    let repo = clone(&env);
    for name in ["issue", "comment", "pull_request", "delete"] {
        let to = repo.join(format!("{name}.json"));
        std::fs::copy(payload(&format!("forgejo/{name}")), to).expect("the clone is ours");
    }
    page.cd(&repo);
    page.keep_spans();
    page.title("Write dispatch.toml");
    page.run(&human, "tenure dispatch check");
    page.run_once(&human, "tenure dispatch init", None);
    page.run(&human, "tenure dispatch init");
    page.run(&human, "tenure dispatch init /dev/null/x");
    page.title("Check it");
    page.run(&human, "tenure dispatch check");
    fill_in(
        &env,
        "authors = []",
        "authors = [\"alice\"]\nagnet = \"claude\"",
    );
    fill_in(&env, "skill = \"implement\"", "skill = \"missing\"");
    let secret = env.home().join(".config/tenure/home.secret");
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&secret, mode).expect("it is ours");
    };
    mode(0o644);
    page.run(&human, "tenure dispatch check");
    mode(0o600);
    fill_in(&env, "\nagnet = \"claude\"", "");
    fill_in(&env, "skill = \"missing\"", "skill = \"implement\"");
    page.run(&human, "tenure dispatch check");
    page.title("Explain a delivery");
    page.run(&human, "tenure dispatch explain issue.json --event issues");
    page.run(
        &human,
        "tenure dispatch explain comment.json --event issue_comment",
    );
    page.run(
        &human,
        "tenure dispatch explain pull_request.json --event pull_request",
    );
    page.run(&human, "tenure dispatch explain delete.json --event delete");
    page.run(&human, "tenure dispatch explain delete.json --event fork");
    page.run(&human, "tenure dispatch explain issue.json");
    page.run(
        &human,
        "tenure dispatch explain issue.json --event 'X-Gitlab-Event: Issue Hook'",
    );
    page.run(
        &human,
        "tenure dispatch explain issue.json --forge work --event issues",
    );
    page.run(
        &human,
        "tenure dispatch explain missing.json --event issues",
    );
    page.check(&env);
}
