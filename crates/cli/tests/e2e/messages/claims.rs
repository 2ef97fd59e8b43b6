//! Claims, the queue for them, and commands that hold them.

use tenure_testkit::{Agent, Cmd, Env, poll, scratch_git};

use super::page::Page;
use crate::support::line::{SOON, register, run, session, take};
use crate::support::waiter::waits;

fn repository(env: &Env, page: &mut Page) -> String {
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    page.cd(&repo);
    format!("--dir {}", repo.display())
}

fn member(env: &Env, name: &str, dir: &str) -> Agent {
    let agent = env.agent(name);
    register(&agent, name, dir);
    agent
}

pub(super) fn claims(env: &mut Env, page: &mut Page) {
    let dir = repository(env, page);
    let [claude, codex, human] = ["claude", "codex", "human"].map(|name| member(env, name, &dir));
    let out = env.agent("outsider");
    page.title("Claim");
    page.run(&claude, "tenure claims");
    page.run(&claude, "tenure claim '#42' --note 'fix login'");
    page.run(&claude, "tenure claim '#42'");
    page.run(&codex, "tenure claim '#42'");
    page.run(&human, "tenure claim '#42'");
    page.run(&codex, "tenure claim --any '#42' '#43'");
    page.run(&codex, "tenure claim --all '#42' '#44'");
    page.run(&claude, "tenure claim path:src/**");
    page.run(&codex, "tenure claim path:src/db/main.rs");
    page.run(&out, "tenure claim '#42'");
    page.run(&codex, "tenure claim '#50' --session claude");
    page.run(
        &codex,
        "tenure claim '#50' --session claude --reason 'asked to'",
    );
    page.run(&codex, "tenure claim");
    page.run(&codex, "tenure claim wp:1 wp:2");
    page.run(&codex, "tenure claim 42");
    page.title("Why");
    page.run(&claude, "tenure why '#42'");
    page.run(&codex, "tenure why '#42'");
    page.run(&codex, "tenure why '#99'");
    page.title("Guard");
    page.run(&claude, "tenure guard '#42'");
    page.run(&claude, "tenure guard '#42' --epoch 9");
    page.run(&codex, "tenure guard '#42'");
    page.run(&codex, "tenure guard '#99'");
    page.run(&claude, "tenure guard --lost");
    page.title("Hand over");
    page.run(
        &claude,
        "tenure handoff '#42' --to codex --note 'tests are left'",
    );
    page.run(&codex, "tenure guard '#42'");
    page.run(&claude, "tenure handoff '#42' --to codex");
    page.run(&claude, "tenure handoff path:src/** --to nobody");
    page.title("Take over");
    page.run(&claude, "tenure takeover '#42'");
    page.run(&out, "tenure takeover '#42' --reason stuck");
    page.run(
        &human,
        "tenure takeover '#42' --reason 'stuck since yesterday'",
    );
    page.run(&human, "tenure takeover '#99' --reason 'it is free'");
    page.run(&codex, "tenure guard '#42'");
    page.run(&codex, "tenure guard --lost");
    page.title("Release");
    page.run(&codex, "tenure release '#43'");
    page.run(&codex, "tenure release '#43'");
    page.run(&codex, "tenure release path:src/**");
    page.run(&out, "tenure release '#42'");
    page.run(&human, "tenure release '#42' --done");
    page.run(&codex, "tenure claim '#42'");
    page.run(&codex, "tenure why '#42'");
    page.run(&human, "tenure claim '#42' --reopen");
    page.title("List");
    page.run(&codex, "tenure claims");
    page.run(&codex, "tenure claims --all");
    page.run(&codex, "tenure claims --mine");
    page.run(&codex, "tenure claims --limit 1");
    page.run(&codex, "tenure log '#42'");
    page.title("Timeline");
    page.run(&codex, "tenure timeline");
    page.run(&codex, "tenure timeline --key '#42' --limit 2");
    page.run(&codex, "tenure timeline --key '#99'");
    page.run(&codex, "tenure timeline --since yesterday");
    page.run(&codex, "tenure timeline --after 12");
    page.run(&codex, "tenure usage --since yesterday");
    page.run(&codex, "tenure usage --by week");
}

/// Holders that died, and what they left running.
pub(super) fn dead_holders(env: &mut Env, page: &mut Page) {
    let dir = repository(env, page);
    let [claude, codex] = ["claude", "codex"].map(|name| member(env, name, &dir));
    for key in ["wp:1", "path:acme/web:src/**", "path:acme/web:src/db/**"] {
        take(&claude, key);
    }
    let orphan = claude.orphan(Cmd::new("sleep").arg("1000"));
    claude.kill9();
    page.learn(env);
    page.title("The holder died and left a process running");
    page.run(&codex, "tenure why wp:1");
    page.run(&codex, "tenure claim wp:1 --require-quiet");
    page.run(&codex, "tenure claim --any wp:1");
    page.run(&codex, "tenure claim wp:1");
    page.run(&codex, "tenure claim path:src/**");
    page.run(&codex, "tenure log wp:1");
    let kill = Cmd::new("kill").args(["-9".to_owned(), orphan.to_string()]);
    codex.run(kill).ok();
}

/// Waiting in the queue.
pub(super) fn queue(env: &mut Env, page: &mut Page) {
    let (claude, codex, human) = (
        session(env, "claude"),
        session(env, "codex"),
        session(env, "human"),
    );
    take(&claude, "wp:1");
    page.title("Wait");
    page.run(&codex, "tenure claim wp:1 --wait 50ms");
    let waiter = waits(env, &codex, "wp:1", "claim wp:1 --wait 10m");
    page.run(&claude, "tenure why wp:1");
    page.run(&human, "tenure claim wp:1");
    page.run(&claude, "tenure release wp:1");
    assert_eq!(waiter.wait().code, 0);
    page.run(&codex, "tenure guard wp:1");
    page.run(&codex, "tenure log wp:1");
}

/// Commands that hold an item while they run.
pub(super) fn claim_command(env: &mut Env, page: &mut Page) {
    let (claude, human) = (session(env, "claude"), session(env, "human"));
    take(&claude, "wp:1");
    page.title("Run a command while holding an item");
    page.run(&human, "tenure claim wp:2 -- echo deployed");
    page.run(&human, "tenure claim wp:2 -- sh -c 'exit 7'");
    page.run(&human, "tenure claim wp:1 -- echo deployed");
    page.run(&human, "tenure claim wp:1 --wait 50ms -- echo deployed");
    page.run(
        &human,
        "tenure claim wp:1 --conflict-exit 75 -- echo deployed",
    );
    page.run(&human, "tenure claim wp:2 -- ./missing");
    page.run(&human, "tenure claim wp:2 -- /etc/passwd");
    page.title("The item is taken over while the command runs");
    for on_lost in ["term", "warn"] {
        let line = format!("claim wp:3 --on-lost {on_lost} -- sleep 3");
        let runs = human.start(Cmd::new("tenure").args(line.split(' ')));
        poll(SOON, "it is held", || {
            let why = claude.tenure(&["why", "wp:3", "--json"]).json();
            (why["claim"]["state"] == "held").then_some(())
        });
        run(&claude, 0, "takeover wp:3 --reason urgent");
        let said = runs.wait();
        let kind = (said.code == 125).then_some("lost");
        page.show(human.pid(), &format!("tenure {line}"), said, kind);
        run(&claude, 0, "release wp:3");
    }
}
