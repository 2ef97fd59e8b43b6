//! A model that answers the real agents on loopback, so that they run whole turns offline.
//!
//! One port speaks every dialect that the agents speak: Anthropic messages (Claude Code), `OpenAI` responses
//! (Codex) and chat completions (opencode), Gemini `generateContent`. What it answers stands in the
//! prompt, line by line, see [`MockModel`]. Everything that it was asked is kept, because what reached
//! the model is what a hook said to it.
//!
//! It is a few threads of the test itself and ends with it; a request that it holds is released when it is
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

use state::State;
pub use state::{Api, Asked};

/// The model: it answers as the last prompt of the user says.
///
/// Each line of the prompt that begins with a directive is a step; the others mean nothing. At a terminal, where a
/// line is the whole prompt, ` ;; ` parts one step from the next.
///
/// - `MOCK:bash COMMAND`: call the shell tool.
/// - `MOCK:tool NAME {json}`: call this tool.
/// - `MOCK:sleep SECONDS`: keep silent before the next step.
/// - `MOCK:hold NAME`: keep silent until the test calls [`MockModel::release`] with the name.
/// - `MOCK:say WORDS`: answer `MOCK-SAID WORDS`.
/// - `MOCK:error CODE`: answer with this HTTP status.
/// - `MOCK:fail NAME`: fail as a provider does: `server`, `overloaded`, `limit`, `limit-until`, `history`, `cut`,
///   `cut-text`.
/// - `MOCK:hang NAME`: the same as `hold`, without a sign of life in between.
///
/// Tools are called one after the other, each when the one before was answered. After the last step it says
/// `MOCK-TOOL-DONE` and the beginning of what the last tool answered, or `MOCK-SLEPT` where it only waited, or
/// `MOCK-OK` where there was no step. Questions that offer no tool (titles, summaries) get `MOCK-OK`.
#[derive(Debug)]
pub struct MockModel {
    port: u16,
    state: Arc<State>,
    door: Option<JoinHandle<()>>,
}

impl MockModel {
    /// Listens on a free port of loopback.
    pub fn start() -> MockModel {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
        let port = listener.local_addr().expect("it listens").port();
        let state = Arc::new(State::default());
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

    /// Everything that it was asked so far, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked()
    }

    /// Whether this text stood anywhere in what it was asked.
    pub fn was_told(&self, text: &str) -> bool {
        self.asked().iter().any(|asked| asked.says(text))
    }

    /// Waits until it is asked something of this kind.
    #[track_caller]
    pub fn await_asked(
        &self,
        deadline: Duration,
        what: &str,
        is: impl Fn(&Asked) -> bool,
    ) -> Asked {
        poll(deadline, &format!("the model is asked {what}"), || {
            self.asked().into_iter().find(|asked| is(asked))
        })
    }

    /// Lets go of every answer, now or later, that `MOCK:hold NAME` keeps back.
    pub fn release(&self, name: &str) {
        self.state.release(name);
    }
}

impl Drop for MockModel {
    fn drop(&mut self) {
        self.state.close();
        // Wakes the thread that accepts; if that fails it has ended already.
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
