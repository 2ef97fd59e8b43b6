//! The `OpenAI` chat completions API, as opencode and Qwen Code use it.

use serde_json::{Value, json};

use super::reply::{MockReply, StreamEvent};
use super::responses::text;
use super::script::{Message, MockAct};
use super::state::MockState;

pub(super) fn messages(body: &Value) -> Vec<Message> {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages
        .filter_map(|message| match message["role"].as_str()? {
            "user" => Some(Message::Said(text(&message["content"]))),
            "tool" => Some(Message::Answered(text(&message["content"]))),
            _ => None,
        })
        .collect()
}

pub(super) fn reply(body: &Value, act: &MockAct, state: &MockState) -> MockReply {
    let call = |name: &str, input: &Value| {
        let function = json!({"name": name, "arguments": input.to_string()});
        json!([{"index": 0, "id": state.id("call_"), "type": "function", "function": function}])
    };
    let (said, calls) = match act {
        MockAct::Shell(command) => {
            let mut input = json!({"command": command, "description": "mock"});
            let offered = body["tools"].as_array().into_iter().flatten();
            let mut names = offered.filter_map(|tool| tool["function"]["name"].as_str());
            let name = names.find(|name| *name == "run_shell_command");
            if name.is_some() {
                input["is_background"] = json!(false);
            }
            (Value::Null, Some(call(name.unwrap_or("bash"), &input)))
        }
        MockAct::Tool { name, input } => (Value::Null, Some(call(name, input))),
        MockAct::Say(text) => (json!(text), None),
        MockAct::Refuse(code) => (json!(format!("refused with {code}")), None),
        MockAct::Fail(_) => (json!("MOCK-CUT"), None),
    };
    let finish = if calls.is_some() {
        "tool_calls"
    } else {
        "stop"
    };
    let mut message = json!({"role": "assistant", "content": said});
    if let Some(calls) = calls {
        message["tool_calls"] = calls;
    }
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let id = state.id("chatcmpl-");
    let chunk = |choice: Value| {
        json!({
            "id": id, "object": "chat.completion.chunk", "created": 1, "model": body["model"],
            "choices": [choice],
        })
    };
    let first = chunk(json!({"index": 0, "delta": message, "finish_reason": null}));
    let mut last = chunk(json!({"index": 0, "delta": {}, "finish_reason": finish}));
    last["usage"] = usage.clone();
    MockReply {
        before: Vec::new(),
        after: [first, last, json!("[DONE]")].map(StreamEvent::bare).into(),
        whole: json!({
            "id": id, "object": "chat.completion", "created": 1, "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage,
        }),
    }
}
