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
    page.hook(
        &ann,
        &event("7f3c", "PreToolUse", &writes(&repo, "src/db.rs")),
        HOOK,
    );
    page.hook(
        &ann,
        &event("7f3c", "PostToolUse", &writes(&repo, "src/db.rs")),
        HOOK,
    );
    page.hook(
        &bob,
        &event("8a1b", "PreToolUse", &writes(&repo, "src/db.rs")),
        HOOK,
    );
    let block = "tenure hook claude --mode block";
    page.hook(
        &bob,
        &event("8a1b", "PreToolUse", &writes(&repo, "src/db.rs")),
        block,
    );
    run(&ann, 0, "claim path:acme/web:src/**");
    page.hook(
        &bob,
        &event("8a1b", "PreToolUse", &writes(&repo, "src/ui.rs")),
        HOOK,
    );
    page.hook(
        &bob,
        &event("8a1b", "PreToolUse", &writes(&repo, "src/ui.rs")),
        block,
    );
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
    page.hook(
        &ann,
        &event("7f3c", "UserPromptSubmit", &json!({"prompt": "go on"})),
        HOOK,
    );
    page.hook(
        &bob,
        &event("8a1b", "UserPromptSubmit", &json!({"prompt": "go on"})),
        HOOK,
    );
    page.title("Subagents, ends and starts");
    page.hook(
        &ann,
        &event(
            "7f3c",
            "SubagentStart",
            &json!({"agent_id": "a2", "agent_type": "general-purpose"}),
        ),
        HOOK,
    );
    page.hook(
        &ann,
        &event("7f3c", "SubagentStop", &json!({"agent_id": "a2"})),
        HOOK,
    );
    page.hook(
        &ann,
        &event("7f3c", "SessionStart", &json!({"source": "clear"})),
        HOOK,
    );
    let cleared = event("9d4e", "SessionStart", &json!({"source": "clear"}));
    page.hook(&ann, &cleared, HOOK);
    page.hook(
        &bob,
        &event(
            "8a1b",
            "SessionEnd",
            &json!({"reason": "prompt_input_exit"}),
        ),
        HOOK,
    );
    page.learn(env);
    ann.kill9();
    let again = env.agent("claude");
    let resumed = event("9d4e", "SessionStart", &json!({"source": "resume"}));
    page.hook(&again, &resumed, HOOK);
    let twin = env.agent("claude");
    page.hook(&twin, &resumed, HOOK);
    page.hook(
        &again,
        &event("9d4e", "UserPromptSubmit", &json!({"prompt": "go on"})),
        HOOK,
    );
    page.learn(env);
    again.kill9();
    twin.kill9();
    let heir = start(env, page, "2b3c");
    page.hook(&heir, &resumed, HOOK);
    let opencode = env.agent("opencode");
    let own = |name: &str| json!({"hook_event_name": name, "session_id": "ses_1", "cwd": repo});
    page.hook(&opencode, &own("SessionStart"), "tenure hook opencode");
    page.hook(&opencode, &own("SessionEnd"), "tenure hook opencode");
    page.title("Status line");
    let shown = json!({"session_id": "9d4e", "hook_event_name": "Status"});
    page.hook(&heir, &shown, "tenure statusline claude");
    page.hook(&env.agent("outsider"), &shown, "tenure statusline claude");
    page.title("Log");
    page.run(&heir, "tenure log");
}

pub(super) fn hook_generic(env: &mut Env, page: &mut Page) {
    let out = env.agent("outsider");
    page.title("Any program");
    let hook = "tenure hook generic";
    page.hook(
        &out,
        &json!({"event": "start", "agent": "nightly", "pid": out.pid()}),
        hook,
    );
    page.hook(
        &out,
        &json!({"event": "waiting", "agent": "nightly", "pid": out.pid(), "asks": "deploy?"}),
        hook,
    );
    page.run(&out, "tenure ps");
    page.hook(
        &out,
        &json!({"event": "end", "agent": "nightly", "pid": out.pid()}),
        hook,
    );
    page.hook(
        &out,
        &json!({"event": "dance", "agent": "nightly", "session_id": "n1"}),
        hook,
    );
    page.hook(
        &out,
        &json!({"event": "start", "agent": "Not A Name", "session_id": "n1"}),
        hook,
    );
    page.hook(
        &out,
        &json!({"event": "start", "agent": "nightly", "pid": 4_194_303, "session_id": "n1"}),
        hook,
    );
    page.feed(&out, "not JSON", hook);
    page.title("Usage");
    for line in [
        "tenure hook",
        "tenure hook cobol",
        "tenure hook claude codex",
        "tenure hook claude --mode loud",
        "tenure hook claude --nope",
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
    page.hook(
        &claude,
        &event("7f3c", "PreToolUse", &writes(&repo, "src/db.rs")),
        HOOK,
    );
    let closed = "TENURE_GUARD_ON_ERROR=closed tenure hook claude";
    page.hook(
        &claude,
        &event("7f3c", "PreToolUse", &writes(&repo, "src/db.rs")),
        closed,
    );
    let other = env.agent("claude");
    page.hook(
        &other,
        &event("8a1b", "PreToolUse", &writes(&repo, "src/db.rs")),
        closed,
    );
    page.hook(
        &claude,
        &json!({"session_id": "7f3c"}),
        "tenure statusline claude",
    );
    std::fs::write(&store, whole).expect("the state is ours");
    page.run(&claude, "tenure status");
}
