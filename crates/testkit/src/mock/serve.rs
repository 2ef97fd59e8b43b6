//! Accepting connections, and one thread for each.

use std::io::{self, BufReader};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::{Value, json};

use super::failure::ErrorResponse;
use super::http::{self, Request};
use super::reply::{self, MockReply};
use super::script::{self, Message, MockAct, MockAnswer};
use super::state::{MockState, ModelApi, RecordedRequest};
use super::{anthropic, chat, gemini, responses};

/// Headers that carry a key, real or dummy.
const SECRET: &[&str] = &["authorization", "x-api-key", "x-goog-api-key"];

pub(super) fn serve(listener: &TcpListener, state: &Arc<MockState>) {
    let mut connections = Vec::new();
    for stream in listener.incoming() {
        if state.is_closed() {
            break;
        }
        // A client that hangs up before it is accepted connects again.
        let Ok(stream) = stream else { continue };
        let Ok(ours) = stream.try_clone() else {
            continue;
        };
        let state = Arc::clone(state);
        let thread = std::thread::spawn(move || {
            // Tests kill agents in the middle of requests, so an error is normal.
            converse(&stream, &state).ok();
            stream.shutdown(Shutdown::Both).ok();
        });
        connections.push((ours, thread));
    }
    for (stream, _) in &connections {
        // An error means that it is already closed.
        stream.shutdown(Shutdown::Both).ok();
    }
    for (_, thread) in connections {
        let ended = thread.join();
        assert!(ended.is_ok(), "a connection of the mock model panicked");
    }
}

/// Answers one request after another, until an answer is a stream.
fn converse(stream: &TcpStream, state: &MockState) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(request) = Request::read(&mut reader)? {
        let api = api(&request);
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let streams = match api {
            ModelApi::Gemini => request.path.contains("streamGenerateContent"),
            _ => body["stream"] == true,
        };
        let asked = RecordedRequest {
            api,
            line: format!("{} {}", request.method, request.path),
            headers: request.headers,
            body,
        };
        state.record(without_keys(asked.clone()));
        let (answer, refusal, reply) = match api {
            ModelApi::Other => {
                let (code, value) = other(&request.method, &request.path);
                http::json(&mut writer, code, &[], &value)?;
                continue;
            }
            _ => answer(&asked, state),
        };
        if refusal.is_none() && streams {
            return reply::stream(&mut writer, state, &answer, &reply);
        }
        reply::wait(state, &answer, || Ok(()))?;
        match refusal {
            Some(no) => http::json(&mut writer, no.code, &no.headers, &no.body)?,
            None => http::json(&mut writer, 200, &[], &reply.whole)?,
        }
    }
    Ok(())
}

fn without_keys(mut asked: RecordedRequest) -> RecordedRequest {
    asked
        .headers
        .retain(|(name, _)| !SECRET.contains(&name.as_str()));
    asked
}

fn api(request: &Request) -> ModelApi {
    let path = request.path.split('?').next().unwrap_or_default();
    if request.method != "POST" {
        ModelApi::Other
    } else if path.ends_with("/v1/messages") {
        ModelApi::Anthropic
    } else if path.ends_with("/responses") {
        ModelApi::Responses
    } else if path.ends_with("/chat/completions") {
        ModelApi::Chat
    } else if path.ends_with("enerateContent") {
        ModelApi::Gemini
    } else {
        ModelApi::Other
    }
}

fn answer(
    asked: &RecordedRequest,
    state: &MockState,
) -> (MockAnswer, Option<ErrorResponse>, MockReply) {
    let body = &asked.body;
    let messages: Vec<Message> = match asked.api {
        // Requests for titles and summaries repeat the prompt, but must not run its steps.
        _ if !asked.offers_tools() => Vec::new(),
        ModelApi::Anthropic => anthropic::messages(body),
        ModelApi::Responses => responses::messages(body),
        ModelApi::Chat => chat::messages(body),
        ModelApi::Gemini => gemini::messages(body),
        ModelApi::Other => Vec::new(),
    };
    let mut answer = script::answer(&messages);
    if let (ModelApi::Gemini, Some(act)) = (asked.api, gemini::aside(body)) {
        answer.act = act;
        answer.delays.clear();
    }
    let refusal = match answer.act {
        MockAct::Refuse(code) => Some(ErrorResponse {
            code,
            headers: Vec::new(),
            body: match asked.api {
                ModelApi::Anthropic => anthropic::refusal(code),
                ModelApi::Gemini => gemini::refusal(code),
                _ => responses::refusal(code),
            },
        }),
        MockAct::Fail(how) => how.refusal(asked.api),
        _ => None,
    };
    let reply = match asked.api {
        ModelApi::Anthropic => anthropic::reply(body, &answer.act, state),
        ModelApi::Chat => chat::reply(body, &answer.act, state),
        ModelApi::Gemini => gemini::reply(&answer.act),
        ModelApi::Responses | ModelApi::Other => responses::reply(body, &answer.act, state),
    };
    let reply = match answer.act {
        MockAct::Fail(how) => reply.cut(how, asked.api),
        _ => reply,
    };
    (answer, refusal, reply)
}

/// Other requests that agents make.
fn other(method: &str, path: &str) -> (u16, Value) {
    if path.contains("countTokens") {
        (200, json!({"totalTokens": 10}))
    } else if path.contains("count_tokens") {
        (200, json!({"input_tokens": 10}))
    } else if path.contains("/models") {
        let models = json!([{"id": "mock-model", "object": "model"}]);
        (200, json!({"object": "list", "data": models, "models": []}))
    } else if method == "POST" {
        (200, json!({}))
    } else {
        (
            404,
            json!({"error": {"message": "the mock model has nothing there"}}),
        )
    }
}
