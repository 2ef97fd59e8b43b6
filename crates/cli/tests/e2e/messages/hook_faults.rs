//! Events that hooks cannot use, answers that they cannot give, and what agents ask people.

use std::fs::File;

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd};

use super::page::Page;
use crate::env;
use crate::support::forge::forge;
use crate::support::line::{handle, run, session, take};

/// What makes it impossible to store that a notice was delivered.
const KEEPS_NOTICES: &str = "CREATE TRIGGER keeps BEFORE UPDATE ON notices \
                             BEGIN SELECT RAISE(ABORT, 'notices cannot be changed'); END";

fn claude_event(name: &str, more: &Value) -> Value {
    let mut event = json!({"hook_event_name": name, "session_id": "7f3c"});
    let more = more.as_object().expect("an object").clone();
    event.as_object_mut().expect("an object").extend(more);
    event
}

/// Shows a line of a shell, with this event on its input if it has one.
fn shell(page: &mut Page, agent: &Agent, event: Option<&Value>, line: &str) {
    let mut cmd = Cmd::shell(&format!("{line}; exit $?"));
    let mut typed = line.to_owned();
    if let Some(event) = event {
        cmd = cmd.stdin(event.to_string());
        typed = format!("echo '{event}' | {line}");
    }
    let said = agent.run(cmd);
    page.show(agent.pid(), &typed, said, None);
}

#[test]
fn faulty_events() {
    let env = env();
    let mut page = Page::new("42-hook-faults", &env);
    let ann = env.agent("claude");
    let start = claude_event("SessionStart", &json!({"source": "startup"}));
    page.title("Events that cannot be used");
    let hook = "tenure hook claude";
    for event in [
        "",
        "[1, 2]",
        "{\"session_id\": ",
        r#"{"hook_event_name":7,"session_id":{"id":"7f3c"}}"#,
        r#"{"hook_event_name":"Notification","session_id":true,"message":["hello"]}"#,
        r#"{"hook_event_name":"Stop","cwd":"work"}"#,
        r#"{"hook_event_name":"Stop","cwd":"/home/dev/\u0007"}"#,
    ] {
        page.feed(&ann, event, hook);
    }
    let generic = "tenure hook generic";
    page.feed(&ann, r#"{"event":"start","pid":"seven"}"#, generic);
    let unclear = r#"{"event":"start","agent":"job"}"#;
    let job = env.agent("orchestrator");
    let line = format!("mkdir out; echo '{unclear}' | tenure hook generic");
    page.show(job.pid(), &line, job.run(Cmd::shell(&line)), None);
    shell(&mut page, &ann, None, "tenure hook claude </");
    shell(&mut page, &ann, None, "setsid -w tenure hook claude --late");
    page.title("Answers that cannot be given");
    page.hook(
        &ann,
        &start,
        "CLAUDE_ENV_FILE=/missing/env tenure hook claude",
    );
    shell(
        &mut page,
        &ann,
        Some(&start),
        "tenure hook claude >/dev/full",
    );
    let bob = session(&env, "bob");
    page.learn(&env);
    take(&ann, "wp:1");
    take(&bob, "wp:2");
    run(&bob, 0, "takeover wp:1 --reason stuck");
    run(&ann, 0, "takeover wp:2 --reason stuck");
    forge(&env, KEEPS_NOTICES);
    let prompt = claude_event("UserPromptSubmit", &json!({"prompt": "go on"}));
    page.hook(&ann, &prompt, hook);
    let line = "tenure whoami --json --verbose | wc -l";
    page.show(bob.pid(), line, bob.run(Cmd::shell(line)), None);
    forge(&env, "DROP TRIGGER keeps");
    env.tenure(&["ps"]).ok();
    page.title("A store that does not answer");
    let index = File::options()
        .read(true)
        .write(true)
        .open(env.state().join("tenure.db-shm"))
        .expect("the store was used");
    rustix::fs::fcntl_lock(&index, rustix::fs::FlockOperation::LockExclusive)
        .expect("nobody has it open");
    let write = json!({"tool_name": "Write", "tool_input": {"file_path": env.work().join("a.rs")}});
    let write = claude_event("PreToolUse", &write);
    page.hook(
        &ann,
        &write,
        "TENURE_GUARD_ON_ERROR=closed tenure hook claude",
    );
    drop(index);
    page.check(&env);
}

#[test]
fn questions() {
    let env = env();
    let mut page = Page::new("43-questions", &env);
    let (ann, gem) = (env.agent("claude"), env.agent("gemini"));
    let started = claude_event("SessionStart", &json!({"source": "startup"}));
    let of_gemini = |name: &str, details: Value| {
        json!({"hook_event_name": name, "session_id": "9d4e", "notification_type": "ToolPermission",
            "message": "Tool requires execution", "details": details})
    };
    for (agent, event, name) in [
        (&ann, started, "claude"),
        (&gem, of_gemini("SessionStart", json!({})), "gemini"),
    ] {
        let event = event.to_string();
        let _brief = agent.tenure_stdin(&["hook", name], &event).ok();
    }
    page.learn(&env);
    let (claude, gemini) = (handle(&ann), handle(&gem));
    page.title("What an agent asks");
    let bash = json!({"tool_name": "Bash", "tool_input": {"command": "rm -rf build"}});
    for asks in [
        json!({}),
        bash.clone(),
        json!({"tool_name": "AskUserQuestion"}),
        json!({"tool_name": "ExitPlanMode"}),
    ] {
        let event = claude_event("PermissionRequest", &asks);
        page.hook(&ann, &event, "tenure hook claude");
        page.run(&ann, &format!("tenure wait {claude} --for idle"));
    }
    let exec = of_gemini("Notification", json!({"command": "rm -rf build"}));
    let edit = of_gemini("Notification", json!({"filePath": "/home/dev/work/a.rs"}));
    for event in [&exec, &edit] {
        page.hook(&gem, event, "tenure hook gemini");
        page.run(&gem, &format!("tenure wait {gemini} --for idle"));
    }
    page.title("The same where titles are private");
    let event = claude_event("PermissionRequest", &bash);
    page.hook(
        &ann,
        &event,
        "TENURE_PRIVACY_TITLES=false tenure hook claude",
    );
    page.run(&ann, &format!("tenure wait {claude} --for idle"));
    for event in [&exec, &edit] {
        page.hook(
            &gem,
            event,
            "TENURE_PRIVACY_TITLES=false tenure hook gemini",
        );
        page.run(&gem, &format!("tenure wait {gemini} --for idle"));
    }
    page.check(&env);
}
