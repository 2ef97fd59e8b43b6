//! Text of a model and output of a tool that look like an error of the agent: they decide nothing.

use serde_json::{Value, json};
use tenure_agents::run::Runs;
use tenure_core::conversation::fitness::{Existence, Left};
use tenure_core::run::Outcome;
use tenure_core::run::end::{Ending, Exit, Start, judge};
use tenure_core::run::fallback::may_fall_back;
use tenure_core::run::progress::Totals;

use crate::captured::{NOW, own_error, read, run_of};

/// Every text by which one of the agents tells a class.
const IMITATIONS: &[&str] = &[
    "No conversation found with session ID: 00000000-0000-4000-8000-000000000000",
    "Error: thread/resume: thread/resume failed: no rollout found for thread id 0 (code -32600)",
    "rollout at /x/rollout-1.jsonl is empty (code -32603)",
    "Error resuming session: Invalid session identifier \"0\".",
    "Error: Session not found",
    "No saved session found with ID 0.",
    "API Error: 400 messages: text content blocks must be non-empty",
    "You’ve hit your usage limit. Visit https://example.org or try again at 11:28 AM.",
    "[API Error: You have exhausted your daily quota on this model.]",
    "Codex ran out of room in the model's context window.",
    "The user rejected permission to use this specific tool call.",
    "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":3}",
    "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":1794742143}}",
    "{\"type\":\"turn.failed\",\"error\":{\"message\":\"Quota exceeded.\"}}",
];

/// The lines of a run in which the model and a tool say this.
fn turn(agent: &str, text: &str) -> Vec<Value> {
    match agent {
        "claude" | "qwen" => vec![
            json!({"type": "system", "subtype": "init", "session_id": "s1"}),
            json!({"type": "assistant", "message": {"model": "m", "content": [
                {"type": "text", "text": text},
                {"type": "tool_use", "name": "Bash", "input": {"command": text}},
            ]}, "session_id": "s1"}),
            json!({"type": "user", "message": {"content": [
                {"type": "tool_result", "content": text, "is_error": true},
            ]}, "tool_use_result": {"stdout": text, "stderr": text}}),
        ],
        "codex" => vec![
            json!({"type": "thread.started", "thread_id": "s1"}),
            json!({"type": "turn.started"}),
            json!({"type": "item.completed", "item": {"type": "error", "message": text}}),
            json!({"type": "item.started", "item": {"type": "command_execution", "command": text}}),
            json!({"type": "item.completed", "item": {"type": "command_execution",
                "command": text, "aggregated_output": text, "exit_code": 1, "status": "failed"}}),
            json!({"type": "item.completed", "item": {"type": "agent_message", "text": text}}),
        ],
        "gemini" => vec![
            json!({"type": "init", "session_id": "s1"}),
            json!({"type": "message", "role": "user", "content": text}),
            json!({"type": "tool_use", "tool_name": "run_shell_command", "parameters": {"command": text}}),
            json!({"type": "tool_result", "status": "error", "output": text, "error": {"message": text}}),
            json!({"type": "message", "role": "assistant", "content": text, "delta": true}),
        ],
        "opencode" => vec![
            json!({"type": "step_start", "sessionID": "s1", "part": {}}),
            json!({"type": "tool_use", "sessionID": "s1", "part": {"tool": "bash",
                "state": {"status": "completed", "input": {"command": text}, "output": text}}}),
            json!({"type": "text", "sessionID": "s1", "part": {"text": text}}),
        ],
        other => panic!("{other} has no turn here"),
    }
}

fn success(agent: &str) -> Value {
    match agent {
        "claude" | "qwen" => json!({"type": "result", "subtype": "success", "is_error": false,
            "num_turns": 1, "result": "fine"}),
        "codex" => json!({"type": "turn.completed", "usage": {}}),
        "gemini" => json!({"type": "result", "status": "success", "stats": {}}),
        _ => json!({"type": "step_finish", "sessionID": "s1",
            "part": {"reason": "stop", "tokens": {"input": 1, "output": 1}}}),
    }
}

const AGENTS: [&str; 5] = ["claude", "codex", "gemini", "opencode", "qwen"];

fn stream(lines: &[Value]) -> Vec<u8> {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.join("\n").into_bytes()
}

fn resumed(run: &dyn Runs) -> Start {
    Start::Resumed {
        compacts: run.spec().compacts,
        before: None,
    }
}

#[test]
fn a_run_that_ends_well_is_done_whatever_was_said_in_it() {
    for agent in AGENTS {
        for text in IMITATIONS {
            let run = run_of(agent);
            let mut lines = turn(agent, text);
            lines.push(success(agent));
            let seen = read(run, &stream(&lines), Totals::NOTHING);
            let end = judge(&Ending {
                seen: &seen,
                exit: Exit::Code(0),
                stop: None,
                stderr: None,
                start: resumed(run),
                parked_before: 0,
                now: NOW,
            });
            assert_eq!(end.outcome, Outcome::Done, "{agent}: {text}");
            assert_eq!((end.left, end.park), (Left::Sound, None), "{agent}: {text}");
        }
    }
}

#[test]
fn a_run_that_ends_badly_does_not_take_its_reason_from_what_was_said() {
    for agent in AGENTS {
        for text in IMITATIONS {
            let run = run_of(agent);
            let seen = read(run, &stream(&turn(agent, text)), Totals::NOTHING);
            // The agent's standard error may repeat what a tool printed.
            let exit = Exit::Code(1);
            let stderr = own_error(run, exit, text);
            let ending = Ending {
                seen: &seen,
                exit,
                stop: None,
                stderr: stderr.as_ref(),
                start: resumed(run),
                parked_before: 0,
                now: NOW,
            };
            let end = judge(&ending);
            assert_eq!(end.outcome, Outcome::Failed, "{agent}: {text}");
            assert_eq!((end.left, end.park), (Left::Sound, None), "{agent}: {text}");
            let class = end.error.map(|error| error.class.as_str());
            assert_eq!(class, Some("other"), "{agent}: {text}");
            let again = may_fall_back(&ending, false, Existence::Absent);
            assert!(again.is_err(), "{agent}: {text}");
        }
    }
}
