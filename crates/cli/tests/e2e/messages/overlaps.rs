//! Claims that overlap, acts on behalf of others, whose turn it is, and why an item cannot be claimed.

use super::claims::{member, repository};
use super::page::Page;
use crate::env;
use crate::support::forge::{forge, forge_process};
use crate::support::line::{register, run, session, take, text};
use crate::support::waiter::waits;

#[test]
fn overlaps() {
    let env = env();
    let mut page = Page::new("26-overlaps", &env);
    let dir = repository(&env, &mut page);
    let [claude, codex, human] = ["claude", "codex", "human"].map(|name| member(&env, name, &dir));
    page.title("A takeover takes the holder's overlapping claims along");
    page.run(&claude, "tenure claim path:src/db/**");
    page.run(&claude, "tenure claim path:src/**");
    page.run(
        &human,
        "tenure takeover path:src/** --reason 'stuck since yesterday'",
    );
    page.run(&claude, "tenure claims --mine");
    page.run(&human, "tenure release path:src/**");
    page.run(&codex, "tenure claim path:src/db/**");
    page.run(&codex, "tenure log path:src/db/**");
    page.title("An expired claim that overlaps");
    let gemini = env.agent("gemini");
    let born = register(&gemini, "gemini", &dir);
    let id = text(&born["session"]["id"]);
    run(&gemini, 0, "claim path:acme/web:docs/guide/**");
    forge_process(&env, &id, "pid_ns = pid_ns + 1");
    forge(
        &env,
        "UPDATE sessions SET lease_at = lease_at - 605000 WHERE agent = 'gemini'",
    );
    page.run(&codex, "TENURE_LOCK_DELAY=0s tenure claim path:docs/**");
    forge_process(&env, &id, "pid_ns = pid_ns - 1");
    page.run(&gemini, "tenure claims --mine");
    page.title("A session that comes back beside an overlapping claim");
    let qwen = env.agent("qwen");
    register(&qwen, "qwen", &format!("{dir} --native-id 7f3c"));
    run(&qwen, 0, "claim path:acme/web:lib/db/**");
    page.learn(&env);
    qwen.kill9();
    page.run(&codex, "tenure claim path:lib/**");
    let again = env.agent("qwen");
    page.run(&again, "tenure register --native-id 7f3c");
    page.check(&env);
}

#[test]
fn others() {
    let env = env();
    let mut page = Page::new("27-claims-of-others", &env);
    let [claude, codex, human] = ["claude", "codex", "human"].map(|name| session(&env, name));
    let out = env.agent("outsider");
    page.title("On behalf of another session");
    for key in ["wp:1", "wp:2"] {
        take(&claude, key);
    }
    page.run(
        &codex,
        "tenure release wp:1 --session claude --reason 'it is finished'",
    );
    page.run(
        &out,
        "tenure release wp:2 --done --session claude --reason 'it is finished'",
    );
    page.run(&codex, "tenure log wp:1");
    page.run(&codex, "tenure log wp:2");
    page.title("An item that is free, and another session waits for it");
    take(&claude, "wp:3");
    let waiter = waits(&env, &codex, "wp:3", "claim wp:3 --wait 10m");
    // A process that waits, and does not take its turn.
    let start = codex.stat().expect("it lives").start;
    forge(
        &env,
        &format!(
            "UPDATE waiters SET pid = {}, start_ticks = {start}",
            codex.pid()
        ),
    );
    waiter.kill9();
    run(&claude, 0, "release wp:3");
    page.run_once(&human, "tenure claim wp:3 --wait 50ms", Some("timed_out"));
    page.title("A row of a session that does not exist");
    take(&claude, "wp:4");
    page.learn(&env);
    let nobody = "01890a5d-ac96-774b-bcce-b302099a8057";
    forge(
        &env,
        &format!(
            "PRAGMA foreign_keys = OFF; UPDATE holds SET session = '{nobody}' WHERE key = 'wp:4'"
        ),
    );
    page.run(&codex, "tenure claim wp:4");
    page.run(&codex, "tenure why wp:4");
    page.check(&env);
}

/// What a program reads: one answer for each way to refuse.
#[test]
fn answers() {
    let env = env();
    let mut page = Page::new("28-why", &env);
    let dir = repository(&env, &mut page);
    let [claude, codex] = ["claude", "codex"].map(|name| member(&env, name, &dir));
    let id = text(&run(&claude, 0, "whoami")["session"]["id"]);
    for key in ["wp:1", "wp:2", "path:acme/web:src/**"] {
        take(&claude, key);
    }
    run(&claude, 0, "release wp:2 --done");
    let answer = ".why.answer";
    page.title("Why, for a program");
    page.field(&codex, "tenure why wp:9 --json", answer);
    page.field(&claude, "tenure why wp:1 --json", answer);
    page.field(&codex, "tenure why wp:1 --json", answer);
    page.field(&codex, "tenure why wp:2 --json", answer);
    page.field(&codex, "tenure why path:src/db.rs --json", answer);
    page.title("In a sandbox that hides the holder");
    let gemini = env.agent("gemini");
    let inside = text(&register(&gemini, "gemini", "")["session"]["id"]);
    forge_process(&env, &id, "pid_ns = pid_ns + 1");
    forge_process(&env, &inside, "pid_ns = pid_ns + 2");
    let tool = env.agent("tool");
    let sandboxed = format!("TENURE_SESSION={inside}.1 tenure why");
    page.run(&tool, &format!("{sandboxed} wp:1"));
    page.field(&tool, &format!("{sandboxed} wp:1 --json"), answer);
    page.field(&tool, &format!("{sandboxed} path:src/db.rs --json"), answer);
    page.title("The lease is over, the lock delay is not");
    forge(
        &env,
        "UPDATE sessions SET lease_at = lease_at - 605000 WHERE agent = 'claude'",
    );
    page.field(
        &codex,
        "TENURE_LOCK_DELAY=1h tenure why wp:1 --json",
        answer,
    );
    page.check(&env);
}
