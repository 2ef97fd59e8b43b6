//! What an agent's own files say that no event does: a turn that was cancelled, a prompt that was answered with no.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tenure_core::time::Timestamp;
use tenure_testkit::{Agent, Cmd, Env, poll};

use crate::env;
use crate::support::hook::event;
use crate::support::line::{SOON, handle, run, text};

fn starts(env: &Env) -> Agent {
    let claude = env.agent("claude");
    event(
        &claude,
        "SessionStart",
        &json!({"source": "startup", "cwd": env.work()}),
    );
    claude
}

fn millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.expect("it is after 1970").as_millis();
    u64::try_from(millis).expect("it is before the end of time")
}

/// Writes the agent's registry as Claude Code does, below this directory of its own.
fn registers(own: &Path, agent: &Agent, more: &Value) {
    let start = agent.stat().expect("it lives").start;
    let mut entry = json!({"pid": agent.pid(), "procStart": start.to_string(), "version": "2.1.325",
        "sessionId": format!("c-{}", agent.pid()), "statusUpdatedAt": millis()});
    let parts = more.as_object().expect("an object").clone();
    entry.as_object_mut().expect("an object").extend(parts);
    let folder = own.join("sessions");
    fs::create_dir_all(&folder).expect("a private home");
    let file = folder.join(format!("{}.json", agent.pid()));
    fs::write(file, entry.to_string()).expect("a private home");
}

fn says(env: &Env, agent: &Agent, status: &str) {
    registers(
        &env.home().join(".claude"),
        agent,
        &json!({"status": status}),
    );
}

#[track_caller]
fn seen(env: &Env, agent: &Agent) -> Value {
    let answer = env.tenure(&["ps", "--json"]).ok().json();
    let all = answer["sessions"].as_array().expect("a list").iter();
    let mut found = all.filter(|one| one["process"]["pid"] == agent.pid());
    found.next().expect("it is listed").clone()
}

#[test]
fn what_no_hook_tells_the_agents_own_registry_does() {
    let env = env();
    let claude = starts(&env);
    event(&claude, "UserPromptSubmit", &json!({"prompt": "hello"}));
    assert_eq!(seen(&env, &claude)["activity_by"]["source"], "events");
    says(&env, &claude, "busy");
    assert_eq!(seen(&env, &claude)["activity"], "busy");
    // Esc.
    says(&env, &claude, "idle");
    let idle = seen(&env, &claude);
    assert_eq!(
        (&idle["activity"], &idle["finished"]),
        (&json!("idle"), &json!(false))
    );
    assert_eq!(idle["activity_by"]["source"], "its own registry");
    assert_eq!(idle["activity_by"]["certain"], true);
    let verbose = env.tenure(&["ps", "-v"]).ok().stdout;
    assert!(
        verbose.contains("idle according to its own registry, "),
        "{verbose}"
    );
    // A prompt for permission, which is answered with no.
    event(&claude, "UserPromptSubmit", &json!({"prompt": "again"}));
    let bash = json!({"tool_name": "Bash", "tool_input": {"command": "rm -rf build"}});
    event(&claude, "PermissionRequest", &bash);
    registers(
        &env.home().join(".claude"),
        &claude,
        &json!({"status": "waiting", "waitingFor": "dialog open"}),
    );
    let waits = seen(&env, &claude);
    assert_eq!(waits["activity"], "waiting");
    assert_eq!(waits["asks"], "permission for `rm -rf build`");
    says(&env, &claude, "idle");
    let idle = seen(&env, &claude);
    assert_eq!(
        (&idle["activity"], &idle["asks"]),
        (&json!("idle"), &Value::Null)
    );
    // What the session itself is shown is the same.
    let own = run(&claude, 0, &format!("show {}", handle(&claude)));
    assert_eq!(own["session"]["activity"], "idle");
}

#[test]
fn a_registry_counts_only_for_the_process_that_it_names() {
    let env = env();
    let claude = starts(&env);
    event(&claude, "UserPromptSubmit", &json!({"prompt": "hello"}));
    let own = env.home().join(".claude");
    let start = claude.stat().expect("it lives").start;
    for wrong in [
        json!({"status": "idle", "procStart": (start + 1).to_string()}),
        json!({"status": "idle", "pid": claude.pid() + 1}),
        json!({"status": "dreaming"}),
        json!({}),
        json!({"status": "idle", "statusUpdatedAt": null}),
    ] {
        registers(&own, &claude, &wrong);
        let seen = seen(&env, &claude);
        assert_eq!(seen["activity"], "busy", "{wrong}");
        assert_eq!(seen["activity_by"]["source"], "events", "{wrong}");
    }
    let file = own.join(format!("sessions/{}.json", claude.pid()));
    fs::write(&file, "{\"pid\":").expect("a private home");
    assert_eq!(seen(&env, &claude)["activity"], "busy");
}

#[test]
fn an_agent_with_another_home_than_the_callers_is_asked_there() {
    let mut env = env();
    let own = env.dir().join("elsewhere");
    env.set("CLAUDE_CONFIG_DIR", own.to_string_lossy());
    let claude = starts(&env);
    env.set("CLAUDE_CONFIG_DIR", "");
    event(&claude, "UserPromptSubmit", &json!({"prompt": "hello"}));
    registers(&own, &claude, &json!({"status": "idle"}));
    assert_eq!(seen(&env, &claude)["activity"], "idle");
}

#[test]
fn who_waits_for_a_turn_to_end_notices_that_it_was_cancelled() {
    let env = env();
    let (claude, person) = (starts(&env), env.agent("person"));
    event(&claude, "UserPromptSubmit", &json!({"prompt": "hello"}));
    says(&env, &claude, "busy");
    let handle = handle(&claude);
    let line = format!("exec tenure wait {handle} --for idle --timeout 20s --json");
    let waits = person.start(Cmd::shell(&line));
    let folder = env.home().join(".claude/sessions");
    poll(SOON, "it watches the registry", || {
        let dir = fs::read_dir(format!("/proc/{}/fdinfo", waits.pid)).ok();
        let marks = dir.into_iter().flatten().filter_map(|entry| {
            let info = fs::read_to_string(entry.ok()?.path()).ok()?;
            Some(
                info.lines()
                    .filter(|line| line.starts_with("inotify"))
                    .count(),
            )
        });
        (marks.filter(|count| *count > 0).count() > 1 && folder.is_dir()).then_some(())
    });
    says(&env, &claude, "idle");
    let answer = waits.wait().ok().json();
    assert_eq!(answer["session"]["activity"], "idle");
    assert_eq!(text(&answer["session"]["handle"]), handle);
}

/// The event that ends a turn is newer than the registry, which does not change: a subagent goes on.
#[test]
fn a_claude_whose_registry_says_busy_is_busy_behind_the_end_of_a_turn() {
    let env = env();
    let claude = starts(&env);
    event(&claude, "UserPromptSubmit", &json!({"prompt": "hello"}));
    says(&env, &claude, "busy");
    event(&claude, "Stop", &json!({}));
    let busy = poll(SOON, "the registry counts", || {
        let seen = seen(&env, &claude);
        (seen["activity"] == "busy").then_some(seen)
    });
    assert_eq!(busy["activity_by"]["source"], "its own registry");
    assert_eq!(busy["finished"], false);
}

#[test]
fn a_claude_beside_a_command_in_the_background_is_idle() {
    let env = env();
    let claude = starts(&env);
    event(&claude, "UserPromptSubmit", &json!({"prompt": "hello"}));
    says(&env, &claude, "shell");
    let idle = seen(&env, &claude);
    assert_eq!(idle["activity"], "idle");
    assert_eq!(idle["activity_by"]["source"], "its own registry");
}

/// What of an agent runs tells that it was allowed, where no event does.
#[test]
fn a_prompt_that_was_allowed_is_told_by_the_command_that_runs() {
    let env = env();
    let gemini = env.agent("gemini");
    let tell = |name: &str, more: Value| {
        let mut event =
            json!({"hook_event_name": name, "session_id": "1b0b42a9-f710", "cwd": env.work()});
        let parts = more.as_object().expect("an object").clone();
        event.as_object_mut().expect("an object").extend(parts);
        let said = gemini.tenure_stdin(&["hook", "gemini"], &event.to_string());
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said}");
    };
    let asks = json!({"notification_type": "ToolPermission", "message": "Tool Shell requires execution",
        "details": {"type": "exec", "command": "make"}});
    let command = |apart: &str, id: &str| {
        let line = format!("exec {apart} sleep 1000");
        let runs = gemini.start(Cmd::shell(&line).env("GEMINI_SESSION_ID", id));
        poll(SOON, "the command runs", || {
            let name = fs::read_to_string(format!("/proc/{}/comm", runs.pid)).ok()?;
            (name == "sleep\n").then_some(())
        });
        runs
    };
    tell("SessionStart", json!({"source": "startup"}));
    tell("BeforeAgent", json!({"prompt": "build"}));
    let before = command("setsid", "1b0b42a9-f710");
    tell("Notification", asks);
    let asked_at = millis();
    poll(SOON, "a person could have answered", || {
        (millis() > asked_at + 500).then_some(())
    });
    let others = [command("", "1b0b42a9-f710"), command("setsid", "another")];
    let waits = seen(&env, &gemini);
    assert_eq!(waits["activity"], "waiting", "{waits:#}");
    let allowed = command("setsid", "1b0b42a9-f710");
    let busy = seen(&env, &gemini);
    assert_eq!(
        (&busy["activity"], &busy["asks"]),
        (&json!("busy"), &Value::Null),
        "{busy:#}"
    );
    assert_eq!(busy["activity_by"]["source"], "its processes");
    allowed.kill9();
    assert_eq!(seen(&env, &gemini)["activity"], "waiting");
    // Not every agent tells its commands the conversation.
    let allowed = command("setsid", "");
    assert_eq!(seen(&env, &gemini)["activity"], "busy");
    allowed.kill9();
    others.iter().chain([&before]).for_each(|one| one.kill9());
}

/// Its chat as Gemini CLI writes it when a person says no.
#[test]
fn a_cancelled_turn_of_gemini_is_told_by_its_transcript() {
    let env = env();
    let gemini = env.agent("gemini");
    let folder = env.home().join(".gemini/tmp/web/chats");
    fs::create_dir_all(&folder).expect("a private home");
    let chat = folder.join("session-2026-11-15T23-31-1b0b42a9.jsonl");
    fs::write(&chat, "{\"sessionId\":\"1b0b42a9-f710\"}\n").expect("a private home");
    let tell = |name: &str, more: Value| {
        let mut event = json!({"hook_event_name": name, "session_id": "1b0b42a9-f710",
            "transcript_path": chat, "cwd": env.work()});
        let parts = more.as_object().expect("an object").clone();
        event.as_object_mut().expect("an object").extend(parts);
        let said = gemini.tenure_stdin(&["hook", "gemini"], &event.to_string());
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said}");
    };
    tell("SessionStart", json!({"source": "startup"}));
    tell("BeforeAgent", json!({"prompt": "clean up"}));
    tell(
        "Notification",
        json!({"notification_type": "ToolPermission", "message": "Tool Shell requires execution",
            "details": {"type": "exec", "command": "rm -rf build"}}),
    );
    let waits = seen(&env, &gemini);
    assert_eq!(waits["activity"], "waiting");
    assert_eq!(waits["asks"], "permission for `rm -rf build`");
    let at = Timestamp(i64::try_from(millis()).expect("it is soon"));
    let cancelled = json!({"id": "1", "timestamp": at.to_string(), "type": "info",
        "content": "Request cancelled."});
    let text = fs::read_to_string(&chat).expect("it was written");
    let after = format!("{text}{cancelled}\n{{\"$set\":{{\"messages\":[]}}}}\n");
    fs::write(&chat, after).expect("a private home");
    let idle = seen(&env, &gemini);
    assert_eq!(
        (&idle["activity"], &idle["asks"]),
        (&json!("idle"), &Value::Null)
    );
    assert_eq!(idle["activity_by"]["source"], "its transcript");
    tell("BeforeAgent", json!({"prompt": "again"}));
    assert_eq!(seen(&env, &gemini)["activity"], "busy");
}

/// Its conversation as Codex writes it when its model cannot be reached.
#[test]
fn a_turn_of_codex_that_failed_is_told_by_its_transcript() {
    let env = env();
    let codex = env.agent("codex");
    let id = "01a1e22a-f606-7903-aa1d-66fcc20ab01c";
    let folder = env.home().join(".codex/sessions/2026/11/16");
    fs::create_dir_all(&folder).expect("a private home");
    let file = folder.join(format!("rollout-2026-11-16T02-20-47-{id}.jsonl"));
    let writes = |kind: &str, more: Value| {
        let at = Timestamp(i64::try_from(millis()).expect("it is soon"));
        let mut record = json!({"timestamp": at.to_string(), "type": "event_msg",
            "payload": {"type": kind, "turn_id": "t1"}});
        let parts = more.as_object().expect("an object").clone();
        let payload = record["payload"].as_object_mut().expect("an object");
        payload.extend(parts);
        let text = fs::read_to_string(&file).unwrap_or_default();
        fs::write(&file, format!("{text}{record}\n")).expect("a private home");
    };
    let tell = |name: &str, more: Value| {
        let mut event = json!({"hook_event_name": name, "session_id": id,
            "transcript_path": file, "cwd": env.work()});
        let parts = more.as_object().expect("an object").clone();
        event.as_object_mut().expect("an object").extend(parts);
        let said = codex.tenure_stdin(&["hook", "codex"], &event.to_string());
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said}");
    };
    let prompts = || {
        writes("task_started", json!({}));
        tell("UserPromptSubmit", json!({"prompt": "clean up"}));
    };
    writes("session_meta", json!({"id": id}));
    tell("SessionStart", json!({"source": "startup"}));
    prompts();
    tell("PreModelRequest", json!({"turn_id": "t1"}));
    assert_eq!(seen(&env, &codex)["activity"], "busy");
    tell("PreModelRequest", json!({"turn_id": "t1"}));
    let tries = seen(&env, &codex);
    assert_eq!(
        (&tries["activity"], &tries["rank"]),
        (&json!("retrying"), &json!("retrying")),
        "{tries:#}"
    );
    let error = json!({"message": "mock error", "codex_error_info": "other"});
    writes("task_complete", json!({"error": error}));
    let failed = seen(&env, &codex);
    assert_eq!(failed["activity"], "failed", "{failed:#}");
    assert_eq!(failed["activity_why"], "mock error");
    assert_eq!(failed["activity_by"]["source"], "its transcript");
    assert_eq!(failed["finished"], false, "{failed:#}");
    let own = handle(&codex);
    let waited = env.tenure(&["wait", &own, "--for", "idle", "--timeout", "20s"]);
    assert_eq!(waited.code, 0, "{waited}");
    prompts();
    assert_eq!(seen(&env, &codex)["activity"], "busy");
    writes("turn_aborted", json!({"reason": "interrupted"}));
    let cancelled = seen(&env, &codex);
    assert_eq!(cancelled["activity"], "idle", "{cancelled:#}");
    assert_eq!(cancelled["finished"], false, "{cancelled:#}");
    // Between its prompts and its tools it goes on, however soon after the last turn.
    prompts();
    tell(
        "PreToolUse",
        json!({"tool_name": "Bash", "tool_input": {"command": "make"}}),
    );
    assert_eq!(seen(&env, &codex)["activity"], "busy");
}

#[test]
fn a_finished_turn_is_told_from_an_idle_prompt_until_a_person_looked() {
    let env = env();
    let claude = starts(&env);
    assert_eq!(seen(&env, &claude)["finished"], false);
    event(&claude, "UserPromptSubmit", &json!({"prompt": "hello"}));
    event(&claude, "Stop", &json!({}));
    let done = seen(&env, &claude);
    assert_eq!(
        (&done["finished"], &done["rank"]),
        (&json!(true), &json!("finished"))
    );
    // Another agent that looks does not count as a person.
    let (other, handle) = (starts(&env), handle(&claude));
    run(&other, 0, &format!("show {handle}"));
    assert_eq!(seen(&env, &claude)["finished"], true);
    let shell = env.shell_at_terminal();
    let line = format!("tenure show {handle} >/dev/tty 2>&1");
    shell.line(&line).ok();
    let seen = seen(&env, &claude);
    assert_eq!(
        (&seen["finished"], &seen["rank"]),
        (&json!(false), &json!("idle"))
    );
}
