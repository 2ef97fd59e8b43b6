//! The mock model over HTTP, in every dialect.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use tenure_testkit::{MockModel, ModelApi};

use crate::LONG;

fn connect(mock: &MockModel) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", mock.port())).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

fn send(mut stream: &TcpStream, path: &str, body: &Value) {
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nX-Api-Key: k\r\nContent-Length: {}",
        body.len()
    );
    write!(stream, "{head}\r\n\r\n{body}").unwrap();
    stream.flush().unwrap();
}

/// What a request that streams is answered, to its end.
fn post(mock: &MockModel, path: &str, body: &Value) -> String {
    let mut stream = connect(mock);
    send(&stream, path, body);
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// A path and a body that puts this prompt, for each dialect.
fn questions(prompt: &str) -> Vec<(ModelApi, &'static str, Value)> {
    let messages = json!([{"role": "user", "content": prompt}]);
    let responses = json!({"stream": true, "tools": [{"name": "exec_command"}], "input": messages});
    let others = json!({"stream": true, "tools": [{"name": "x"}], "messages": messages});
    let contents = json!([{"role": "user", "parts": [{"text": prompt}]}]);
    vec![
        (
            ModelApi::Anthropic,
            "/v1/messages?beta=true",
            others.clone(),
        ),
        (ModelApi::Responses, "/v1/responses", responses),
        (ModelApi::Chat, "/v1/chat/completions", others),
        (
            ModelApi::Gemini,
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            json!({"tools": [{"x": 1}], "contents": contents}),
        ),
    ]
}

fn body_of(path: &str, prompt: &str) -> Value {
    let found = questions(prompt).into_iter().find(|one| one.1 == path);
    found.unwrap().2
}

/// What can be read without waiting.
fn arrived(mut stream: &TcpStream) -> Vec<u8> {
    let mut all = vec![0; 65536];
    stream.set_nonblocking(true).unwrap();
    let length = stream.read(&mut all).unwrap_or(0);
    stream.set_nonblocking(false).unwrap();
    all.truncate(length);
    all
}

#[test]
fn every_dialect_speaks_calls_and_refuses() {
    for (at, (api, path, _)) in questions("").into_iter().enumerate() {
        let mock = MockModel::start();
        let ask = |prompt: &str| post(&mock, path, &questions(prompt)[at].2);
        let text = ask("hello");
        assert!(
            text.starts_with("HTTP/1.1 200") && text.contains("event-stream"),
            "{text}"
        );
        assert!(text.contains("MOCK-OK"), "{text}");
        assert!(ask("MOCK:bash echo 'a b'").contains("echo 'a b'"));
        assert!(ask("MOCK:tool Odd {\"k\": 17}").contains("Odd"));
        assert!(ask("MOCK:sleep 0.01").contains("MOCK-SLEPT"));
        assert!(ask("MOCK:error 429").starts_with("HTTP/1.1 429"));
        let asked = mock.asked();
        assert_eq!(asked.len(), 5);
        assert!(
            asked
                .iter()
                .all(|one| one.api == api && one.header("x-api-key").is_none())
        );
        assert!(mock.was_told("echo 'a b'") && !mock.was_told("echo 'b a'"));
    }
}

#[test]
fn a_question_without_tools_has_no_steps() {
    let mock = MockModel::start();
    let body = json!({"stream": true, "messages": [{"role": "user", "content": "MOCK:error 500"}]});
    assert!(post(&mock, "/v1/messages", &body).contains("MOCK-OK"));
}

#[test]
fn an_answer_is_held_until_it_is_released_or_everything_ends() {
    for (_, path, body) in questions("MOCK:hold it") {
        let mock = MockModel::start();
        let mut stream = connect(&mock);
        send(&stream, path, &body);
        mock.await_asked(LONG, "to hold", |asked| asked.says("MOCK:hold it"));
        mock.release("other");
        // Another question is answered meanwhile, and this one is not.
        assert!(post(&mock, path, &body_of(path, "hello")).contains("MOCK-OK"));
        let mut text = String::from_utf8(arrived(&stream)).unwrap();
        assert!(!text.contains("MOCK-SLEPT"), "{text}");
        mock.release("it");
        stream.read_to_string(&mut text).unwrap();
        assert!(text.contains("MOCK-SLEPT"), "{text}");
    }
    for (_, path, body) in questions("MOCK:hold it") {
        let mock = MockModel::start();
        let mut stream = connect(&mock);
        send(&stream, path, &body);
        mock.await_asked(LONG, "to hold", |asked| asked.says("MOCK:hold it"));
        drop(mock);
        // Whatever arrived, the connection is over.
        stream.read_to_end(&mut Vec::new()).ok();
    }
}
