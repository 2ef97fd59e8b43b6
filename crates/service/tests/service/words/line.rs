//! The words of a line, and the parts of its answer.

use serde_json::Value;

use super::{House, Worker};

/// Words as they stand in a line.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Says the words of a line, and expects this code.
#[track_caller]
pub fn run(worker: &Worker, code: i32, line: &str) -> Value {
    let said = worker.tenure(&words(line));
    assert_eq!(said.code, code, "{line}: {:#}", said.json());
    said.json()
}

/// The same for what must fail with this kind of error.
#[track_caller]
pub fn refused(worker: &Worker, code: i32, kind: &str, line: &str) -> Value {
    let answer = run(worker, code, line);
    assert_eq!(answer["error"]["kind"], kind, "{line}: {answer}");
    answer["error"].clone()
}

/// A worker that is a session.
pub fn session(house: &House, name: &str) -> Worker {
    let worker = house.agent(name);
    register(&worker, name, "");
    worker
}

#[track_caller]
pub fn register(worker: &Worker, name: &str, more: &str) -> Value {
    let pid = worker.pid();
    run(
        worker,
        0,
        &format!("register --agent {name} --pid {pid} {more}"),
    )
}

/// The handle of the session that a worker is.
#[track_caller]
pub fn handle(worker: &Worker) -> String {
    text(&run(worker, 0, "whoami")["session"]["handle"])
}

#[track_caller]
pub fn text(value: &Value) -> String {
    let text = value.as_str();
    text.unwrap_or_else(|| panic!("{value} is no text"))
        .to_owned()
}

/// Claims and returns the epoch.
#[track_caller]
pub fn take(worker: &Worker, key: &str) -> u64 {
    let answer = run(worker, 0, &format!("claim {key}"));
    answer["claim"]["epoch"].as_u64().expect("an epoch")
}

/// Who holds a key, and its epoch.
#[track_caller]
pub fn holder(house: &House, key: &str) -> (Option<String>, u64) {
    let claim = house.tenure(&["why", key]).ok().json()["claim"].clone();
    let handle = claim["holder"]["handle"].as_str().map(str::to_owned);
    (handle, claim["epoch"].as_u64().expect("an epoch"))
}

/// The notices of an answer.
#[track_caller]
pub fn told(answer: &Value) -> &Vec<Value> {
    answer["notices"].as_array().expect("notices are a list")
}

/// The log, of everything or of one key.
#[track_caller]
pub fn events(worker: &Worker, key: &str) -> Vec<Value> {
    let answer = run(worker, 0, &format!("log {key}"));
    answer["events"].as_array().expect("a list").clone()
}

/// An item as anyone sees it, whose holder and epoch must be these.
#[track_caller]
pub fn stands(worker: &Worker, key: &str, holder: Option<&str>, epoch: u64) {
    let claim = &run(worker, 0, &format!("why {key}"))["claim"];
    assert_eq!(claim["holder"]["handle"].as_str(), holder, "{claim}");
    assert_eq!(claim["epoch"], epoch, "{claim}");
}

/// Everything that anyone holds.
#[track_caller]
pub fn all_held(house: &House) -> Vec<String> {
    let claims = house.tenure(&["claims"]).ok().json()["claims"].clone();
    let claims = claims.as_array().expect("a list");
    claims.iter().map(|claim| text(&claim["key"])).collect()
}
