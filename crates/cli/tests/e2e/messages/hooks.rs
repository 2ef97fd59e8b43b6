//! What hooks and the status line tell a model and the person beside it.

use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{Agent, Env, scratch_git};

use super::page::Page;
use crate::support::line::{handle, run, take};

const HOOK: &str = "tenure hook claude";

fn event(conversation: &str, name: &str, more: &Value) -> Value {
    let mut event = json!({"hook_event_name": name, "session_id": conversation});
    let more = more.as_object().expect("an object").clone();
    event.as_object_mut().expect("an object").extend(more);
    event
}

fn start(env: &Env, page: &mut Page, conversation: &str) -> Agent {
    let agent = env.agent("claude");
    let started = event(conversation, "SessionStart", &json!({"source": "startup"}));
    page.hook(&agent, &started, HOOK);
    agent
}

fn writes(dir: &Path, file: &str) -> Value {
    json!({"tool_name": "Write", "cwd": dir, "tool_input": {"file_path": dir.join(file)}})
}

pub(super) fn hooks(env: &mut Env, page: &mut Page) {
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    page.cd(&repo);
    page.title("Start");
    let ann = start(env, page, "7f3c");
    let bob = start(env, page, "8a1b");
    take(&ann, "wp:1");
    take(&ann, "wp:2");
    page.run(&ann, "tenure ps");
    page.title("A second writer, a reserved path, a moved branch");
    let block = "tenure hook claude --mode block";
    let write = |session: &str, when: &str, file: &str| event(session, when, &writes(&repo, file));
    page.hook(&ann, &write("7f3c", "PreToolUse", "src/db.rs"), HOOK);
    std::fs::create_dir_all(repo.join("src")).expect("a scratch directory is writable");
    std::fs::write(repo.join("src/db.rs"), "written").expect("a scratch directory is writable");
    page.hook(&ann, &write("7f3c", "PostToolUse", "src/db.rs"), HOOK);
    page.hook(&bob, &write("8a1b", "PreToolUse", "src/db.rs"), HOOK);
    page.hook(&bob, &write("8a1b", "PreToolUse", "src/db.rs"), block);
    run(&ann, 0, "claim path:acme/web:src/**");
    page.hook(&bob, &write("8a1b", "PreToolUse", "src/ui.rs"), HOOK);
    page.hook(&bob, &write("8a1b", "PreToolUse", "src/ui.rs"), block);
    let stash = json!({"cwd": repo, "tool_name": "Bash", "tool_input": {"command": "git stash"}});
    page.hook(&bob, &event("8a1b", "PreToolUse", &stash), HOOK);
    page.hook(&bob, &event("8a1b", "PreToolUse", &stash), block);
    let gemini = env.agent("gemini");
    let started = json!({"hook_event_name": "SessionStart", "session_id": "5e6f", "source": "startup", "cwd": repo});
    page.hook(&gemini, &started, "tenure hook gemini");
    let tool = json!({"hook_event_name": "BeforeTool", "session_id": "5e6f", "cwd": repo,
        "tool_name": "write_file", "tool_input": {"file_path": repo.join("src/db.rs")}});
    page.hook(&gemini, &tool, "tenure hook gemini");
    let prompt = json!({"hook_event_name": "BeforeAgent", "session_id": "5e6f", "cwd": repo, "prompt": "go on"});
    page.hook(&gemini, &prompt, "tenure hook gemini");
    page.title("Notices");
    run(&bob, 0, "takeover wp:1 --reason stuck");
    let other = handle(&bob);
    run(&ann, 0, &format!("handoff wp:2 --to {other}"));
    env.tenure(&["tell", &handle(&ann), "main is frozen until noon"])
        .ok();
    let prompt = |session: &str| event(session, "UserPromptSubmit", &json!({"prompt": "go on"}));
    page.hook(&ann, &prompt("7f3c"), HOOK);
    page.hook(&bob, &prompt("8a1b"), HOOK);
    page.title("Ends and starts");
    let quit = json!({"reason": "prompt_input_exit"});
    page.hook(&bob, &event("8a1b", "SessionEnd", &quit), HOOK);
    page.learn(env);
    ann.kill9();
    let again = env.agent("claude");
    let resumed = event("7f3c", "SessionStart", &json!({"source": "resume"}));
    page.hook(&again, &resumed, HOOK);
    let twin = env.agent("claude");
    page.hook(&twin, &resumed, HOOK);
    page.hook(&again, &prompt("7f3c"), HOOK);
    page.title("Status line");
    let shown = json!({"session_id": "7f3c", "hook_event_name": "Status"});
    page.hook(&again, &shown, "tenure statusline claude");
    page.hook(&env.agent("outsider"), &shown, "tenure statusline claude");
    page.title("Log");
    page.run(&again, "tenure log");
}

pub(super) fn hook_generic(env: &mut Env, page: &mut Page) {
    let out = env.agent("outsider");
    page.title("Any program");
    let hook = "tenure hook generic";
    let tell = |page: &mut Page, more: Value| {
        let mut event = json!({"agent": "nightly"});
        let more = more.as_object().expect("an object").clone();
        event.as_object_mut().expect("an object").extend(more);
        page.hook(&out, &event, hook);
    };
    let pid = out.pid();
    tell(page, json!({"event": "start", "pid": pid}));
    tell(
        page,
        json!({"event": "waiting", "pid": pid, "asks": "deploy?"}),
    );
    page.run(&out, "tenure ps");
    tell(page, json!({"event": "end", "pid": pid}));
    tell(page, json!({"event": "dance", "session_id": "n1"}));
    tell(
        page,
        json!({"event": "start", "pid": 4_194_303, "session_id": "n1"}),
    );
    page.feed(&out, "not JSON", hook);
    page.title("Usage");
    for line in [
        "tenure hook",
        "tenure hook cobol",
        "tenure hook claude --mode loud",
    ] {
        page.run_once(&out, line, None);
    }
}

pub(super) fn outages(env: &mut Env, page: &mut Page) {
    page.title("The store cannot be used");
    let repo = env.work();
    let claude = start(env, page, "7f3c");
    let store = env.state().join("tenure.db");
    let whole = std::fs::read(&store).expect("it was made");
    page.learn(env);
    std::fs::write(&store, "not a database").expect("the state is ours");
    let write = |session: &str| event(session, "PreToolUse", &writes(&repo, "src/db.rs"));
    page.hook(&claude, &write("7f3c"), HOOK);
    let closed = "TENURE_GUARD_ON_ERROR=closed tenure hook claude";
    page.hook(&claude, &write("7f3c"), closed);
    page.hook(&env.agent("claude"), &write("8a1b"), closed);
    page.hook(
        &claude,
        &json!({"session_id": "7f3c"}),
        "tenure statusline claude",
    );
    std::fs::write(&store, whole).expect("the state is ours");
    page.run(&claude, "tenure status");
}
