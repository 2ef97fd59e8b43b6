//! The agents at their real terminals, in tmux: what tenure says is what a person at the window sees.

/// Makes a test of each scenario in the list for each agent with a terminal.
macro_rules! at_terminals {
    ($list:tt) => {
        each! { $list claude Claude codex Codex gemini Gemini opencode Opencode qwen Qwen }
    };
}

mod activity;
mod answers;
mod day;
mod ends;
mod harness;
mod person;
mod revival;
mod seen;
mod truth;
mod turns;
mod wake;

use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_testkit::poll;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::tui::{Tmux, Tui};

use crate::state::sessions;

/// A screen and what tenure says may differ for three seconds; a busy machine adds some.
const SHOWN: Duration = Duration::from_secs(5);

const GLANCE: Duration = Duration::from_millis(150);

/// A world in which these agents ask before they run a command, and call tenure.
#[track_caller]
fn at_terminals(kinds: &[Real]) -> (RealWorld, Tmux) {
    let world = crate::world();
    for kind in kinds {
        Tui::prepare(&world, *kind);
        let _installed = world.tenure(&["install", kind.name()]).ok();
    }
    let gate = world.project().join("gate");
    let made = std::process::Command::new("mkfifo").arg(gate).status();
    assert!(made.unwrap().success());
    let tmux = Tmux::start(&world);
    (world, tmux)
}

/// What tenure says of the newest session of this agent.
#[track_caller]
fn newest(world: &RealWorld, kind: Real) -> Option<Value> {
    newest_of(&sessions(world), kind).cloned()
}

/// The same, of these.
fn newest_of(all: &[Value], kind: Real) -> Option<&Value> {
    let own = all.iter().filter(|session| session["agent"] == kind.name());
    own.max_by_key(|session| session["started_at"].as_str())
}

/// Asks until the answer is right or the time is over; the last answer is given back.
#[track_caller]
fn settles<T>(mut ask: impl FnMut() -> T, is_right: impl Fn(&T) -> bool) -> T {
    let end = Instant::now() + SHOWN;
    let mut next = Instant::now();
    poll(SHOWN * 20, "tenure answers", || {
        if Instant::now() < next {
            return None;
        }
        let answer = ask();
        // Each time is a process, beside agents that want the machine too.
        next = Instant::now() + GLANCE;
        (is_right(&answer) || Instant::now() > end).then_some(answer)
    })
}
