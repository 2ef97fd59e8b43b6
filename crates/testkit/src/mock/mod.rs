//! A model that answers the real agents on loopback, so that they run whole turns offline.
//!
//! One port speaks every dialect that the agents speak: Anthropic messages (Claude Code), `OpenAI`
//! responses (Codex) and chat completions (opencode), Gemini `generateContent`. The prompt contains
//! the answers, line by line, see [`MockModel`]. Every request is kept, because it shows what hooks
//! told the model.
//!
//! It runs in a few threads of the test and ends with it; held requests are released when it is
//! dropped.

mod anthropic;
mod chat;
mod failure;
mod gemini;
mod http;
mod reply;
mod responses;
mod script;
mod serve;
mod state;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::poll::poll;

use state::MockState;
pub use state::{ModelApi, RecordedRequest};

/// The model. The user's last prompt decides what it answers.
///
/// Each line of the prompt that begins with a directive is a step; other lines are ignored. At a
/// terminal, where the whole prompt is one line, ` ;; ` separates the steps.
///
/// - `MOCK:bash COMMAND`: call the shell tool.
/// - `MOCK:tool NAME {json}`: call this tool.
/// - `MOCK:sleep SECONDS`: send nothing before the next step.
/// - `MOCK:hold NAME`: send nothing until the test calls [`MockModel::release`] with the name.
/// - `MOCK:say WORDS`: answer `MOCK-SAID WORDS`.
/// - `MOCK:error CODE`: answer with this HTTP status.
/// - `MOCK:fail NAME`: fail as a provider does: `server`, `overloaded`, `limit`, `limit-until`, `history`, `cut`,
///   `cut-text`.
/// - `MOCK:hang NAME`: the same as `hold`, without a sign of life in between.
///
/// Tools are called one after the other, each when the previous one has answered. After the last
/// step the model says `MOCK-TOOL-DONE` and the beginning of the last tool's answer, or
/// `MOCK-SLEPT` if it only waited, or `MOCK-OK` if there was no step. Requests that offer no tool
/// (titles, summaries) get `MOCK-OK`.
#[derive(Debug)]
pub struct MockModel {
    port: u16,
    state: Arc<MockState>,
    door: Option<JoinHandle<()>>,
}

impl MockModel {
    /// Listens on a free port of loopback.
    pub fn start() -> MockModel {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
        let port = listener.local_addr().expect("it listens").port();
        let state = Arc::new(MockState::default());
        let shared = Arc::clone(&state);
        let door = std::thread::spawn(move || serve::serve(&listener, &shared));
        MockModel {
            port,
            state,
            door: Some(door),
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address, without a path.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// All requests so far, in order.
    pub fn asked(&self) -> Vec<RecordedRequest> {
        self.state.asked()
    }

    /// Whether any request contained this text.
    pub fn was_told(&self, text: &str) -> bool {
        self.asked().iter().any(|asked| asked.says(text))
    }

    /// Waits for a request that matches.
    #[track_caller]
    pub fn await_asked(
        &self,
        deadline: Duration,
        what: &str,
        is: impl Fn(&RecordedRequest) -> bool,
    ) -> RecordedRequest {
        poll(deadline, &format!("the model is asked {what}"), || {
            self.asked().into_iter().find(|asked| is(asked))
        })
    }

    /// Releases every answer, present or future, that `MOCK:hold NAME` holds back.
    pub fn release(&self, name: &str) {
        self.state.release(name);
    }
}

impl Drop for MockModel {
    fn drop(&mut self) {
        self.state.close();
        // Wakes the accepting thread; if that fails, it has already ended.
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok();
        if let Some(door) = self.door.take() {
            let ended = door.join();
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "the mock model panicked"
            );
        }
    }
}
