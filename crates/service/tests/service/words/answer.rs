//! Words, and places in their answer.

use serde_json::Value;

use super::{House, Worker};

/// An answer that is a success.
#[track_caller]
pub fn ask(worker: &Worker, words: &[&str]) -> Value {
    worker.tenure(words).ok().json()
}

/// The error of an answer that is a failure.
#[track_caller]
pub fn refused(worker: &Worker, code: i32, words: &[&str]) -> Value {
    worker.tenure(words).fails(code).json()["error"].clone()
}

/// An answer to a caller outside any session.
#[track_caller]
pub fn asked_by_nobody(house: &House, words: &[&str]) -> Value {
    house.tenure(words).ok().json()
}

#[track_caller]
pub fn register(worker: &Worker, words: &[&str]) -> Value {
    ask(worker, &[&["register"], words].concat())
}

/// The text at a place of an answer.
#[track_caller]
pub fn text<'a>(answer: &'a Value, at: &str) -> &'a str {
    let text = answer.pointer(at).and_then(Value::as_str);
    text.unwrap_or_else(|| panic!("no text at {at} of {answer:#}"))
}

#[track_caller]
fn list<'a>(answer: &'a Value, at: &str) -> &'a Vec<Value> {
    let list = answer.pointer(at).and_then(Value::as_array);
    list.unwrap_or_else(|| panic!("no list at {at} of {answer:#}"))
}

/// How many are listed at a place of an answer.
#[track_caller]
pub fn count(answer: &Value, at: &str) -> usize {
    list(answer, at).len()
}

/// What a session holds, as `key@epoch`.
#[track_caller]
pub fn held(answer: &Value, at: &str) -> Vec<String> {
    let one = |one: &Value| format!("{}@{}", text(one, "/key"), one["epoch"]);
    list(answer, at).iter().map(one).collect()
}

/// The entries of the log of this kind.
#[track_caller]
pub fn events(house: &House, kind: &str) -> Vec<Value> {
    let log = asked_by_nobody(house, &["log"]);
    let mut all = list(&log, "/events").clone();
    all.retain(|event| event["kind"] == kind);
    all
}

/// The session that a worker is.
#[track_caller]
pub fn me(worker: &Worker) -> String {
    text(&ask(worker, &["whoami"]), "/session/id").to_owned()
}

/// How many sessions there ever were.
#[track_caller]
pub fn sessions(house: &House) -> usize {
    count(&asked_by_nobody(house, &["ps", "-a"]), "/sessions")
}
