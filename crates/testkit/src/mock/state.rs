//! The state that the model's threads share: the requests, the released holds, and whether it has
//! ended.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelApi {
    /// `POST /v1/messages`.
    Anthropic,
    /// `POST /v1/responses`.
    Responses,
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST …:generateContent` and `…:streamGenerateContent`.
    Gemini,
    /// Any other request of an agent.
    Other,
}

#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub api: ModelApi,
    /// The method and the path with its query.
    pub line: String,
    /// The headers, with names in lower case and without keys.
    pub headers: Vec<(String, String)>,
    /// The body; null if it is not JSON.
    pub body: Value,
}

impl RecordedRequest {
    /// Whether a string in the body contains this text.
    pub fn says(&self, text: &str) -> bool {
        contains(&self.body, text)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether it is a step of a turn: only those offer tools.
    pub fn offers_tools(&self) -> bool {
        let tools = self.body.get("tools").and_then(Value::as_array);
        tools.is_some_and(|tools| !tools.is_empty())
    }
}

fn contains(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string.contains(text),
        Value::Array(all) => all.iter().any(|one| contains(one, text)),
        Value::Object(all) => all.values().any(|one| contains(one, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[derive(Debug, Default)]
struct Inner {
    asked: Vec<RecordedRequest>,
    released: BTreeSet<String>,
    closed: bool,
    ids: u64,
}

/// Shared by all threads.
#[derive(Debug, Default)]
pub(super) struct MockState {
    inner: Mutex<Inner>,
    changed: Condvar,
}

pub(super) enum WaitEnd<'a> {
    Passed(Instant),
    Released(&'a str),
}

impl MockState {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn record(&self, asked: RecordedRequest) {
        self.inner().asked.push(asked);
    }

    pub(super) fn asked(&self) -> Vec<RecordedRequest> {
        self.inner().asked.clone()
    }

    pub(super) fn release(&self, name: &str) {
        self.inner().released.insert(name.to_owned());
        self.changed.notify_all();
    }

    pub(super) fn close(&self) {
        self.inner().closed = true;
        self.changed.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.inner().closed
    }

    /// An id that is unique in this model.
    pub(super) fn id(&self, prefix: &str) -> String {
        let mut inner = self.inner();
        inner.ids += 1;
        format!("{prefix}mock{:08}", inner.ids)
    }

    /// Waits at most `piece`; returns true when the condition is met, or the model has ended.
    pub(super) fn wait(&self, until: &WaitEnd<'_>, piece: Duration) -> bool {
        let is_there = |inner: &Inner| {
            inner.closed
                || match until {
                    WaitEnd::Passed(end) => Instant::now() >= *end,
                    WaitEnd::Released(name) => inner.released.contains(*name),
                }
        };
        let end = Instant::now() + piece;
        let mut inner = self.inner();
        loop {
            if is_there(&inner) {
                return true;
            }
            let left = match until {
                WaitEnd::Passed(at) => end.min(*at),
                WaitEnd::Released(_) => end,
            }
            .saturating_duration_since(Instant::now());
            if left.is_zero() {
                return is_there(&inner);
            }
            inner = self
                .changed
                .wait_timeout(inner, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}
