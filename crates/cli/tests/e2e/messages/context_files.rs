//! Context files that disagree with their session, missions with chosen ids, and writers of one file.

use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{Agent, scratch_git};

use super::page::Page;
use crate::env;
use crate::support::forge::forge;
use crate::support::installed::put;
use crate::support::line::{register, run, session};

#[test]
fn context_files() {
    let env = env();
    let mut page = Page::new("46-context-files", &env);
    let claude = env.agent("claude");
    register(&claude, "claude", "--native-id 7f3c");
    run(&claude, 0, "register --native-id 8a1b");
    run(&claude, 0, "mission join 041-login --role developer");
    let file = env.home().join("context.json");
    let mut check = |title: &str, text: &str| {
        page.title(title);
        put(&file, text);
        page.cat(&claude, &file);
        page.run(&claude, &format!("tenure verify --file {}", file.display()));
    };
    check(
        "A file of an earlier time",
        "{\n  \"session_id\": \"7f3c\",\n  \"project_dir\": 7,\n  \"started_at\": \"2999-01-01T00:00:00Z\",\n  \
         \"ended_at\": \"2026-11-15T09:00:00Z\"\n}\n",
    );
    check(
        "A participant at another time",
        "{\n  \"mission_id\": \"041-login\",\n  \"joined_at\": \"1999-01-01T00:00:00Z\",\n  \
         \"last_activity_at\": \"1999-01-01T00:00:00Z\"\n}\n",
    );
    check(
        "A file that names no session",
        "{\n  \"branch\": \"main\"\n}\n",
    );
    check("A file that is not JSON", "{\n  \"session_id\": 8a1b\n}\n");
    check("A torn file", "{\n  \"session_id\": \"8a1b\",\n");
    page.check(&env);
}

#[test]
fn participants() {
    let env = env();
    let mut page = Page::new("50-participants", &env);
    let [claude, codex] = ["claude", "codex"].map(|name| session(&env, name));
    let join = "tenure mission join 041-login --role developer --participant";
    let (one, other) = ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "00BX5ZZKBKACTAV9WEVGEMMVRZ");
    page.title("Chosen ids");
    page.run(&claude, &format!("{join} {one}"));
    page.run(&claude, &format!("{join} {other}"));
    page.run(&codex, &format!("{join} {one}"));
    page.learn(&env);
    claude.kill9();
    page.run(&codex, &format!("{join} {one}"));
    page.run(&codex, "tenure log --limit 3");
    page.title("An id that is not valid");
    forge(
        &env,
        "INSERT INTO missions (id, created_at) VALUES ('a b', 1)",
    );
    page.run(&codex, "tenure mission check --all");
    page.check(&env);
}

const HOOK: &str = "tenure hook claude";

fn event(conversation: &str, name: &str, dir: &Path, file: &str) -> Value {
    json!({
        "hook_event_name": name, "session_id": conversation, "cwd": dir, "tool_name": "Write",
        "tool_input": {"file_path": dir.join(file)},
    })
}

/// Files that one session wrote and another is about to write.
#[test]
fn second_writers() {
    let env = env();
    let mut page = Page::new("48-second-writers", &env);
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    page.cd(&repo);
    let start = |conversation: &str| -> Agent {
        let agent = env.agent("claude");
        let event = json!({"hook_event_name": "SessionStart", "session_id": conversation, "source": "startup"});
        agent
            .tenure_stdin(&["hook", "claude"], &event.to_string())
            .ok();
        agent
    };
    let (ann, bob) = (start("7f3c"), start("8a1b"));
    page.title("A file whose claim was released as done");
    run(&ann, 0, "claim path:acme/web:src/db.rs");
    run(&ann, 0, "release path:acme/web:src/db.rs --done");
    let write = |page: &mut Page, file: &str| {
        page.hook(&ann, &event("7f3c", "PreToolUse", &repo, file), HOOK);
        page.hook(&ann, &event("7f3c", "PostToolUse", &repo, file), HOOK);
        let block = "tenure hook claude --mode block";
        page.hook(&bob, &event("8a1b", "PreToolUse", &repo, file), block);
    };
    write(&mut page, "src/db.rs");
    page.title("A file whose name ends with a space");
    write(&mut page, "src/notes ");
    page.check(&env);
}
