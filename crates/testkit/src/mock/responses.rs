//! The `OpenAI` responses API, as Codex uses it.

use serde_json::{Value, json};

use super::reply::{MockReply, StreamEvent};
use super::script::{Message, MockAct};
use super::state::MockState;

pub(super) fn messages(body: &Value) -> Vec<Message> {
    let items = body["input"].as_array().into_iter().flatten();
    items
        .filter_map(|item| {
            if item["role"] == "user" {
                return Some(Message::Said(text(&item["content"])));
            }
            let answers = item["type"].as_str()?.ends_with("_call_output");
            answers.then(|| Message::Answered(text(&item["output"])))
        })
        .collect()
}

/// The text of content, which is a string or a list of parts.
pub(super) fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

pub(super) fn refusal(code: u16) -> Value {
    json!({"error": {"message": format!("mock error {code}"), "type": "mock", "code": "mock"}})
}

pub(super) fn reply(body: &Value, act: &MockAct, state: &MockState) -> MockReply {
    let item = match act {
        MockAct::Shell(command) => shell(body, command, state),
        MockAct::Tool { name, input } => function(name, input, state),
        MockAct::Say(text) => message(text, state),
        MockAct::Refuse(code) => message(&format!("refused with {code}"), state),
        MockAct::Fail(_) => message("MOCK-CUT", state),
    };
    let id = state.id("resp_");
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15,
    });
    let after = [
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": id, "usage": usage}}),
    ];
    MockReply {
        before: vec![StreamEvent::typed(
            json!({"type": "response.created", "response": {"id": id}}),
        )],
        after: after.map(StreamEvent::typed).into(),
        whole: json!({"id": id, "object": "response", "output": [item], "usage": usage}),
    }
}

fn message(text: &str, state: &MockState) -> Value {
    let content = json!([{"type": "output_text", "text": text}]);
    json!({"type": "message", "role": "assistant", "id": state.id("msg_"), "content": content})
}

/// A tool in a namespace is called by both names, with a dot between them.
fn function(name: &str, input: &Value, state: &MockState) -> Value {
    let (space, name) = match name.split_once('.') {
        Some((space, name)) => (Some(space), name),
        None => (None, name),
    };
    let mut call = json!({
        "type": "function_call", "id": state.id("fc_"), "call_id": state.id("call_"),
        "name": name, "arguments": input.to_string(),
    });
    if let Some(space) = space {
        call["namespace"] = json!(space);
    }
    call
}

/// The name of the shell tool differs between versions; the offered one is called.
fn shell(body: &Value, command: &str, state: &MockState) -> Value {
    let tools = body["tools"].as_array().into_iter().flatten();
    let names: Vec<&str> = tools
        .filter_map(|tool| tool["name"].as_str().or(tool["type"].as_str()))
        .collect();
    let offered = |name: &str| names.contains(&name);
    if offered("exec_command") {
        let input = json!({"cmd": command, "yield_time_ms": 30_000});
        function("exec_command", &input, state)
    } else if offered("shell_command") {
        function("shell_command", &json!({"command": command}), state)
    } else if offered("exec") {
        let quoted = Value::from(command);
        json!({
            "type": "custom_tool_call", "id": state.id("ctc_"), "call_id": state.id("call_"),
            "name": "exec",
            "input": format!("const r = await tools.exec_command({{cmd: {quoted}}}); text(r);"),
        })
    } else {
        function(
            "shell",
            &json!({"command": ["bash", "-lc", command]}),
            state,
        )
    }
}
