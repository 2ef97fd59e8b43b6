//! Claims, the queue for them, and commands that hold them.

use tenure_testkit::{Agent, Cmd, Env, poll, scratch_git};

use super::page::Page;
use crate::env;
use crate::support::forge::{forge, forge_process};
use crate::support::line::{SOON, register, run, session, take, text};
use crate::support::waiter::waits;

pub(super) fn repository(env: &Env, page: &mut Page) -> String {
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    page.cd(&repo);
    format!("--dir {}", repo.display())
}

pub(super) fn member(env: &Env, name: &str, dir: &str) -> Agent {
    let agent = env.agent(name);
    register(&agent, name, dir);
    agent
}

#[test]
fn claims() {
    let env = env();
    let mut page = Page::new("20-claims", &env);
    let dir = repository(&env, &mut page);
    let [claude, codex, human] = ["claude", "codex", "human"].map(|name| member(&env, name, &dir));
    let out = env.agent("outsider");
    page.title("Claim");
    page.run(&claude, "tenure claims");
    page.run(&claude, "tenure claim '#42' --note 'fix login'");
    page.run(&claude, "tenure claim '#42'");
    page.run(&claude, "tenure claim '#42' --once");
    page.run(&codex, "tenure claim '#42'");
    page.run(&human, "tenure claim '#42'");
    page.run(&codex, "tenure claim --any '#42' '#43'");
    page.run(&codex, "tenure claim --all '#42' '#44'");
    page.run(&codex, "tenure claim --any '#42'");
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
    page.run(&codex, "tenure claim --all wp:1 wp:1");
    page.run(&codex, "tenure claim 42");
    page.run(&codex, "tenure claim --any -");
    page.title("Why");
    page.run(&claude, "tenure why '#42'");
    page.run(&codex, "tenure why '#42'");
    page.run(&human, "tenure why '#42'");
    page.run(&out, "tenure why '#42'");
    page.run(&codex, "tenure why '#99'");
    page.run(&codex, "tenure why path:src/db/main.rs");
    page.run(&codex, "tenure why 42");
    page.title("Guard");
    page.run(&claude, "tenure guard '#42'");
    page.run(&claude, "tenure guard '#42' --epoch 9");
    page.run(&codex, "tenure guard '#42'");
    page.run(&codex, "tenure guard '#99'");
    page.run(&codex, "tenure guard path:src/db/main.rs");
    page.run(&out, "tenure guard '#42'");
    page.run(&claude, "tenure guard --lost");
    page.run(&out, "tenure guard --lost");
    page.title("Hand over");
    page.run(
        &claude,
        "tenure handoff '#42' --to codex --note 'tests are left'",
    );
    page.run(&codex, "tenure guard '#42'");
    page.run(&claude, "tenure handoff '#42' --to codex");
    page.run(&claude, "tenure handoff '#99' --to codex");
    page.run(&codex, "tenure handoff path:src/db/main.rs --to claude");
    page.run(&claude, "tenure handoff path:src/** --to nobody");
    page.run(&claude, "tenure handoff path:src/** --to codex --epoch 9");
    page.run(&out, "tenure handoff path:src/** --to codex");
    page.title("Take over");
    page.run(&claude, "tenure takeover '#42'");
    page.run(&out, "tenure takeover '#42' --reason stuck");
    page.run(&human, "tenure takeover '#42' --from claude --reason stuck");
    page.run(&human, "tenure takeover '#42' --epoch 9 --reason stuck");
    page.run(
        &human,
        "tenure takeover '#42' --reason 'stuck since yesterday'",
    );
    page.run(&human, "tenure takeover '#42' --reason 'again'");
    page.run(&human, "tenure takeover '#99' --reason 'it is free'");
    page.run(&human, "tenure takeover path:src/db/main.rs --reason stuck");
    page.run(
        &human,
        "tenure takeover path:src/** --from nobody --reason stuck",
    );
    page.run(&codex, "tenure guard '#42'");
    page.run(&codex, "tenure guard --lost");
    page.run(&codex, "tenure release '#42'");
    page.title("Release");
    page.run(&codex, "tenure release '#43'");
    page.run(&codex, "tenure release '#43'");
    page.run(&codex, "tenure release path:src/**");
    page.run(&codex, "tenure release path:src/db/main.rs");
    page.run(&out, "tenure release '#42'");
    page.run(&human, "tenure release '#42' --epoch 9");
    page.run(&human, "tenure release '#42' --done");
    page.run(&codex, "tenure claim '#42'");
    page.run(&codex, "tenure why '#42'");
    page.run(&human, "tenure why '#42'");
    page.run(&codex, "tenure handoff '#42' --to claude");
    page.run(&human, "tenure takeover '#42' --reason 'not done yet'");
    page.run(&human, "tenure claim '#42' --reopen");
    page.title("List");
    page.run(&codex, "tenure claims");
    page.run(&codex, "tenure claims --all");
    page.run(&codex, "tenure claims --mine");
    page.run(&out, "tenure claims --mine");
    page.run(&codex, "tenure claims wp: ");
    page.run(&codex, "tenure claims --limit 1");
    page.run(&codex, "tenure log '#42'");
    page.check(&env);
}

/// Every command that takes an item or a session, with one that does not exist.
#[test]
fn names() {
    let env = env();
    let mut page = Page::new("03-names", &env);
    let dir = repository(&env, &mut page);
    let [claude, _codex] = ["claude", "codex"].map(|name| member(&env, name, &dir));
    page.title("Not an item");
    for line in [
        "claim 42",
        "release 42",
        "guard 42",
        "handoff 42 --to codex",
        "takeover 42 --reason stuck",
        "why 42",
        "log '#'",
        "run claude 42 --prompt 'fix it'",
        "conversation get claude 42",
        "conversation set claude 42 7f3c",
        "conversation drop 42",
        "conversation link 42 wp:1",
        "conversation unlink 42",
        "conversation history claude 42",
    ] {
        page.run(&claude, &format!("tenure {line}"));
    }
    page.title("Not a path");
    for glob in ["a]", "[a", "{a", "a/../.."] {
        page.run(&claude, &format!("tenure claim 'path:web:{glob}'"));
    }
    page.title("Not a session");
    for line in [
        "show nobody",
        "goto nobody",
        "alive nobody",
        "wait nobody",
        "log nobody",
        "transcript show nobody",
        "transcript verify nobody",
        "tell nobody hello",
    ] {
        page.run(&claude, &format!("tenure {line}"));
    }
    let line = r#"{"sessionId":"7f3c","type":"note"}"#;
    page.feed(&claude, line, "tenure transcript append nobody");
    page.check(&env);
}

/// Holders that died, and what they left running.
#[test]
fn dead_holders() {
    let env = env();
    let mut page = Page::new("21-dead-holders", &env);
    let dir = repository(&env, &mut page);
    let [claude, codex] = ["claude", "codex"].map(|name| member(&env, name, &dir));
    for key in ["wp:1", "path:acme/web:src/**", "path:acme/web:src/db/**"] {
        take(&claude, key);
    }
    let orphan = claude.orphan(Cmd::new("sleep").arg("1000"));
    claude.kill9();
    page.learn(&env);
    page.title("The holder died and left a process running");
    page.run(&codex, "tenure why wp:1");
    page.run(&codex, "tenure claim wp:1 --require-quiet");
    page.run(&codex, "tenure claim --any wp:1");
    page.run(&codex, "tenure claim wp:1");
    page.run(&codex, "tenure claim path:src/**");
    page.run(&codex, "tenure log wp:1");
    let kill = Cmd::new("kill").args(["-9".to_owned(), orphan.to_string()]);
    codex.run(kill).ok();
    page.check(&env);
}

/// Holders whose process cannot be checked, so that the lease decides.
#[test]
fn leases() {
    let env = env();
    let mut page = Page::new("22-leases", &env);
    let dir = repository(&env, &mut page);
    let [claude, codex, human] = ["claude", "codex", "human"].map(|name| member(&env, name, &dir));
    run(&claude, 0, "register --native-id 7f3c");
    take(&claude, "wp:1");
    take(&claude, "wp:4");
    take(&codex, "wp:3");
    let id = text(&run(&claude, 0, "whoami")["session"]["id"]);
    forge_process(&env, &id, "pid_ns = pid_ns + 1");
    page.title("The lease is open");
    page.run(&codex, "tenure alive claude");
    page.run(&codex, "tenure claim wp:1");
    page.run(&codex, "tenure why wp:1");
    page.run(&codex, "tenure claim wp:2 --session claude --reason test");
    page.run(&codex, "tenure guard wp:1 --session claude --reason test");
    page.run(
        &codex,
        "tenure handoff wp:4 --to codex --session claude --reason test",
    );
    page.run(
        &human,
        "tenure takeover wp:1 --from claude --session claude --reason test",
    );
    page.run(&codex, "tenure handoff wp:3 --to claude");
    page.run(&codex, "tenure resume claude");
    page.run(&codex, "tenure wait claude --timeout 50ms");
    page.title("The lease is over, the lock delay is not");
    forge(
        &env,
        "UPDATE sessions SET lease_at = lease_at - 605000 WHERE handle LIKE 'claude-%'",
    );
    page.run(&codex, "TENURE_LOCK_DELAY=1h tenure claim wp:1");
    page.run(&codex, "TENURE_LOCK_DELAY=1h tenure why wp:1");
    page.run(&codex, "TENURE_LOCK_DELAY=1h tenure claims");
    page.title("Both are over");
    page.run(&codex, "TENURE_LOCK_DELAY=0s tenure why wp:1");
    page.run(&codex, "TENURE_LOCK_DELAY=0s tenure claim wp:1");
    page.run(&codex, "tenure log wp:1");
    page.check(&env);
}

/// Waiting in the queue.
#[test]
fn queue() {
    let env = env();
    let mut page = Page::new("24-queue", &env);
    let (claude, codex, human) = (
        session(&env, "claude"),
        session(&env, "codex"),
        session(&env, "human"),
    );
    take(&claude, "wp:1");
    page.title("Wait");
    page.run(&codex, "tenure claim wp:1 --wait 50ms");
    let waiter = waits(&env, &codex, "wp:1", "claim wp:1 --wait 10m");
    page.run(&claude, "tenure why wp:1");
    page.run(&human, "tenure claim wp:1");
    page.run(&claude, "tenure release wp:1");
    assert_eq!(waiter.wait().code, 0);
    page.run(&codex, "tenure guard wp:1");
    page.run(&codex, "tenure log wp:1");
    page.check(&env);
}

/// Commands that hold an item while they run.
#[test]
fn commands() {
    let env = env();
    let mut page = Page::new("25-claim-command", &env);
    let (claude, human) = (session(&env, "claude"), session(&env, "human"));
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
    page.check(&env);
}
