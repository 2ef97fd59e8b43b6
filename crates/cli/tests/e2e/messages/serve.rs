//! Tokens, and serving the HTTP API.

use tenure_testkit::Env;

use super::page::Page;
use crate::support::line::session;

pub(super) fn tokens(env: &mut Env, page: &mut Page) {
    let person = env.agent("outsider");
    page.title("Tokens");
    page.run(&person, "tenure token list");
    let made = page.ok(&person, "tenure token new ci --scope read,act");
    page.replace(made.stdout.trim(), "tenure.ci.7d1f0c…");
    page.run(&person, "tenure token list");
    page.run(&person, "tenure token new ci");
    page.run(&person, "tenure token new browser");
    page.run(&person, "tenure token new 'a b'");
    page.run(&person, "tenure token new other --scope all");
    page.ok(&person, "tenure token revoke ci");
    page.run(&person, "tenure token revoke ci");
    page.run(&person, "tenure log --kind token.revoked");
    page.title("An agent gets none");
    let claude = session(env, "claude");
    page.run(&claude, "tenure token new mine");
    page.run(&claude, "tenure serve --open");
    page.title("Serve: refused");
    page.run(&person, "tenure serve --listen 0.0.0.0:7420");
    page.run(
        &person,
        "tenure serve --behind-proxy --public-url http://agents.example.org",
    );
}
