//! `tenure hook AGENT --stream`: one process for all events of an agent that hosts many sessions.
//!
//! An event per line in, an answer per line out, in the same order; `{}` if there is nothing to say. Each event has the
//! time that a hook of its own would have. One that takes longer is answered by the watchdog, and the process ends with
//! it; the agent starts another for its next event. The end of the input is the agent's end.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use serde_json::{Map, Value, json};
use tenure_agents::{Adapter, KEY_SCHEME};
use tenure_app::hook_store::HookStore;
use tenure_core::id::AgentName;
use tenure_core::write_conflict::GuardMode;
use tenure_host::event_input::EventLines;
use tenure_service::answer::Problem;

use super::deadline::Deadline;
use super::{answer, say};
use crate::beside;
use crate::sink;

/// The agent's question which item owns which conversation, when it starts.
const OWNERS: &str = "gateway_start";

pub fn run(adapter: &'static Adapter, mode: Option<GuardMode>) {
    beside::follow_store();
    let mut events = EventLines::stdin();
    loop {
        match events.next_event() {
            Ok(Some(event)) => {
                if !answers(adapter, mode, &event) {
                    return;
                }
            }
            Ok(None) => return,
            Err(error) => return say(&format!("tenure: cannot read the event: {error}")),
        }
    }
}

/// Answers an event; returns whether others may follow.
fn answers(adapter: &'static Adapter, mode: Option<GuardMode>, event: &[u8]) -> bool {
    let time = Deadline::in_stream(adapter, mode);
    let answered = AssertUnwindSafe(|| {
        if adapter.read(event).name == OWNERS {
            time.watch();
            let owners = owners(adapter, time.event_until());
            time.answer();
            return sink::out(&owners.to_string()).is_ok();
        }
        // What says nothing has an answer too: who reads them counts.
        answer(adapter, mode, &time, event, false) || sink::out("{}").is_ok()
    });
    let Ok(goes_on) = std::panic::catch_unwind(answered) else {
        time.answer_as_prepared();
        return false;
    };
    time.finish();
    goes_on
}

/// The owner of every conversation, without the scheme of its item.
fn owners(adapter: &Adapter, until: Instant) -> Value {
    let found = HookStore::prepare_existing(until).and_then(|store| {
        let Some(store) = store else {
            return Ok(Vec::new());
        };
        let agent = AgentName::known(adapter.name);
        let found = store.going_on().open()?.owners(&agent);
        Ok(found.map_err(Problem::from)?.value)
    });
    let found = found.unwrap_or_else(|problem| {
        say(&format!("tenure: {}", problem.message));
        Vec::new()
    });
    let owners = found.into_iter().filter_map(|(id, item)| {
        let key = item.as_str().strip_prefix(KEY_SCHEME)?;
        Some((id.to_string(), json!(key)))
    });
    json!({"owners": owners.collect::<Map<String, Value>>()})
}
