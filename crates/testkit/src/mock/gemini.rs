//! The Gemini `generateContent` API, as Gemini CLI uses it.

use serde_json::{Value, json};

use super::reply::{MockReply, StreamEvent};
use super::script::{Message, MockAct};

pub(super) fn messages(body: &Value) -> Vec<Message> {
    let contents = body["contents"].as_array().into_iter().flatten();
    contents
        .filter(|content| content["role"] != "model")
        .flat_map(|content| content["parts"].as_array().into_iter().flatten())
        .filter_map(|part| match part.get("functionResponse") {
            Some(answer) => Some(Message::Answered(answer["response"].to_string())),
            None => Some(Message::Said(part["text"].as_str()?.to_owned())),
        })
        .collect()
}

pub(super) fn refusal(code: u16) -> Value {
    let message = format!("mock error {code}");
    json!({"error": {"code": code, "message": message, "status": "MOCK"}})
}

pub(super) fn reply(act: &MockAct) -> MockReply {
    let part = match act {
        MockAct::Shell(command) => {
            let args = json!({"command": command, "description": "mock"});
            json!({"functionCall": {"name": "run_shell_command", "args": args}})
        }
        MockAct::Tool { name, input } => json!({"functionCall": {"name": name, "args": input}}),
        MockAct::Say(text) => json!({"text": text}),
        MockAct::Refuse(code) => json!({"text": format!("refused with {code}")}),
        MockAct::Fail(_) => json!({"text": "MOCK-CUT"}),
    };
    let whole = json!({
        "candidates": [{
            "content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0,
        }],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "mock", "responseId": "mock",
    });
    MockReply {
        before: Vec::new(),
        after: vec![StreamEvent::bare(whole.clone())],
        whole,
    }
}

/// Questions that the CLI asks for itself, in JSON: which model to use, and who speaks next.
pub(super) fn aside(body: &Value) -> Option<MockAct> {
    let wanted = &body["generationConfig"]["responseMimeType"];
    (wanted == "application/json").then(|| {
        let said = json!({
            "reasoning": "mock", "model_choice": "flash", "next_speaker": "user",
            "complexity_score": 10, "complexity_reasoning": "mock",
        });
        MockAct::Say(said.to_string())
    })
}
