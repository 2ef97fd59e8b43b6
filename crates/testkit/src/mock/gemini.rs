//! The Gemini `generateContent` API, as Gemini CLI uses it.

use serde_json::{Value, json};

use super::reply::{Event, Reply};
use super::script::{Act, Message};

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

pub(super) fn reply(act: &Act) -> Reply {
    let part = match act {
        Act::Shell(command) => {
            let args = json!({"command": command, "description": "mock"});
            json!({"functionCall": {"name": "run_shell_command", "args": args}})
        }
        Act::Tool { name, input } => json!({"functionCall": {"name": name, "args": input}}),
        Act::Say(text) => json!({"text": text}),
        Act::Refuse(code) => json!({"text": format!("refused with {code}")}),
        Act::Fail(_) => json!({"text": "MOCK-CUT"}),
    };
    let whole = json!({
        "candidates": [{
            "content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0,
        }],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "mock", "responseId": "mock",
    });
    Reply {
        before: Vec::new(),
        after: vec![Event::bare(whole.clone())],
        whole,
    }
}

/// Questions that the CLI asks for itself, in JSON: which model to use, and who speaks next.
pub(super) fn aside(body: &Value) -> Option<Act> {
    let wanted = &body["generationConfig"]["responseMimeType"];
    (wanted == "application/json").then(|| {
        let said = json!({
            "reasoning": "mock", "model_choice": "flash", "next_speaker": "user",
            "complexity_score": 10, "complexity_reasoning": "mock",
        });
        Act::Say(said.to_string())
    })
}
