//! Missions.

use tenure_testkit::{Env, scratch_git};

use super::page::Page;
use crate::support::line::{register, session};

pub(super) fn missions(env: &mut Env, page: &mut Page) {
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    page.cd(&repo);
    let (claude, codex) = (env.agent("claude"), env.agent("codex"));
    for (agent, name) in [(&claude, "claude"), (&codex, "codex")] {
        register(agent, name, &format!("--dir {}", repo.display()));
    }
    let (gemini, out) = (session(env, "gemini"), env.agent("outsider"));
    page.title("Join");
    page.run(&claude, "tenure mission list");
    page.run(&claude, "tenure mission status");
    page.run(&claude, "tenure mission check");
    page.run(&claude, "tenure mission join 041-login --role developer");
    page.run(&codex, "tenure mission join 041-login --role developer");
    page.run(
        &codex,
        "TENURE_MISSIONS_ROLES=developer,reviewer tenure mission join 041-login --role boss",
    );
    page.run(&out, "tenure mission join 041-login --role developer");
    page.run(
        &codex,
        "tenure mission join 042-logout --role developer --session gemini",
    );
    page.title("Focus and drive");
    page.run(&claude, "tenure mission focus wp:WP03");
    page.run(&claude, "tenure mission drive active -v");
    page.run(&codex, "tenure mission focus wp:WP03");
    page.run(&codex, "tenure mission drive active --strict");
    page.run(&codex, "tenure mission drive active");
    page.run(&codex, "tenure mission focus none");
    page.run(&codex, "tenure mission focus wp:WP03 --strict");
    page.run(&codex, "tenure mission focus WP03");
    page.run(&codex, "tenure mission drive maybe");
    page.title("See");
    page.run(&claude, "tenure mission status");
    page.run(&out, "tenure mission status --mission 041-login");
    page.run(&out, "tenure mission status --mission 099-other");
    page.run(&claude, "tenure mission list");
    page.run(&claude, "tenure mission check");
    page.run(&claude, "tenure whoami");
    page.title("The active mission");
    page.run(&claude, "tenure mission use");
    page.run(&claude, "tenure mission use 041-login --for repo");
    page.run(&claude, "tenure mission use --clear --for repo");
    page.run(&gemini, "tenure mission use 041-login");
    page.run(&out, "tenure mission use 041-login --for user");
    page.run(&gemini, "tenure mission status");
    page.title("Leave");
    page.run(&claude, "tenure mission leave");
    page.run(&claude, "tenure mission leave 041-login");
    page.run(&out, "tenure log");
}
