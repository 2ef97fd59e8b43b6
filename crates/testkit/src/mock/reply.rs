//! How an answer is sent: at once as JSON, or as events with pauses in between.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::failure::Failing;
use super::http;
use super::script::{Delay, MockAnswer};
use super::state::{MockState, ModelApi, WaitEnd};

/// How often a waiting stream sends a keep-alive.
const PING: Duration = Duration::from_millis(500);

/// An answer in one dialect.
pub(super) struct MockReply {
    /// The events before and after the pause.
    pub(super) before: Vec<StreamEvent>,
    pub(super) after: Vec<StreamEvent>,
    /// The same for a client that does not want a stream.
    pub(super) whole: Value,
}

impl MockReply {
    /// What is left of it if the stream is cut.
    pub(super) fn cut(mut self, how: Failing, api: ModelApi) -> MockReply {
        let kept = match (how, api) {
            (Failing::Cut, _) => 0,
            (_, ModelApi::Anthropic) => 2,
            _ => 1,
        };
        self.after.truncate(kept);
        if api == ModelApi::Gemini {
            for event in &mut self.after {
                event.data["candidates"][0]["finishReason"].take();
            }
        }
        self
    }
}

/// An event of a stream.
pub(super) struct StreamEvent {
    pub(super) name: Option<String>,
    pub(super) data: Value,
}

impl StreamEvent {
    /// An event named after the `type` in its data.
    pub(super) fn typed(data: Value) -> StreamEvent {
        let name = data["type"].as_str().map(str::to_owned);
        StreamEvent { name, data }
    }

    pub(super) fn bare(data: Value) -> StreamEvent {
        StreamEvent { name: None, data }
    }
}

/// Sends it as a stream.
pub(super) fn stream(
    to: &mut impl Write,
    state: &MockState,
    answer: &MockAnswer,
    reply: &MockReply,
) -> io::Result<()> {
    http::stream(to)?;
    for event in &reply.before {
        http::event(to, event.name.as_deref(), &event.data)?;
    }
    wait(state, answer, || http::ping(to))?;
    for event in &reply.after {
        http::event(to, event.name.as_deref(), &event.data)?;
    }
    Ok(())
}

/// Waits, in short pieces, for everything that the answer depends on.
pub(super) fn wait(
    state: &MockState,
    answer: &MockAnswer,
    mut ping: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    for delay in &answer.delays {
        let until = match delay {
            Delay::Sleep(time) => WaitEnd::Passed(Instant::now() + *time),
            Delay::Hold(name) | Delay::Hang(name) => WaitEnd::Released(name),
        };
        while !state.wait(&until, PING) {
            if !matches!(delay, Delay::Hang(_)) {
                ping()?;
            }
        }
    }
    Ok(())
}
