//! The Anthropic messages API, as Claude Code uses it.

use serde_json::{Value, json};

use super::reply::{MockReply, StreamEvent};
use super::script::{Message, MockAct};
use super::state::MockState;

pub(super) fn messages(body: &Value) -> Vec<Message> {
    let messages = body["messages"].as_array().into_iter().flatten();
    let of_user = messages.filter(|message| message["role"] == "user");
    of_user
        .flat_map(|message| match &message["content"] {
            Value::String(text) => vec![Message::Said(text.clone())],
            content => {
                let blocks = content.as_array().into_iter().flatten();
                blocks.filter_map(block).collect()
            }
        })
        .collect()
}

fn block(block: &Value) -> Option<Message> {
    match block["type"].as_str()? {
        "text" => Some(Message::Said(block["text"].as_str()?.to_owned())),
        "tool_result" => Some(Message::Answered(match &block["content"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })),
        _ => None,
    }
}

pub(super) fn refusal(code: u16) -> Value {
    let message = format!("mock error {code}");
    json!({"type": "error", "error": {"type": "api_error", "message": message}})
}

pub(super) fn reply(body: &Value, act: &MockAct, state: &MockState) -> MockReply {
    let (block, delta, stop) = match act {
        MockAct::Shell(command) => tool(
            state,
            "Bash",
            &json!({"command": command, "description": "mock"}),
        ),
        MockAct::Tool { name, input } => tool(state, name, input),
        MockAct::Say(text) => said(text),
        MockAct::Refuse(code) => said(&format!("refused with {code}")),
        MockAct::Fail(_) => said("MOCK-CUT"),
    };
    let mut empty = block.clone();
    for (key, nothing) in [("text", json!("")), ("input", json!({}))] {
        if empty.get(key).is_some() {
            empty[key] = nothing;
        }
    }
    let message = json!({
        "id": state.id("msg_"), "type": "message", "role": "assistant", "model": body["model"],
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": 10, "output_tokens": 5,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        },
    });
    let mut whole = message.clone();
    whole["content"] = json!([block]);
    whole["stop_reason"] = json!(stop);
    let after = [
        json!({"type": "content_block_start", "index": 0, "content_block": empty}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({
            "type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
            "usage": {"output_tokens": 5},
        }),
        json!({"type": "message_stop"}),
    ];
    MockReply {
        before: vec![StreamEvent::typed(
            json!({"type": "message_start", "message": message}),
        )],
        after: after.map(StreamEvent::typed).into(),
        whole,
    }
}

fn said(text: &str) -> (Value, Value, &'static str) {
    let delta = json!({"type": "text_delta", "text": text});
    (json!({"type": "text", "text": text}), delta, "end_turn")
}

fn tool(state: &MockState, name: &str, input: &Value) -> (Value, Value, &'static str) {
    let block = json!({"type": "tool_use", "id": state.id("toolu_"), "name": name, "input": input});
    let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
    (block, delta, "tool_use")
}
