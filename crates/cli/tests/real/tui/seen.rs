//! What tenure says of a session, beside what its screen and its agent's own files say.

use std::fmt;

use serde_json::Value;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::tui::{Doing, Tui};

use super::{newest, settles};

/// What `tenure ps --json` says of an agent.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    state: String,
    activity: String,
    asks: Option<String>,
    by: Option<String>,
    certain: bool,
    whole: Value,
}

impl Seen {
    /// Reads it off a session.
    pub(super) fn of(session: &Value) -> Seen {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let by = &session["activity_by"];
        Seen {
            state: text(&session["state"]).unwrap_or_default(),
            activity: text(&session["activity"]).unwrap_or_default(),
            asks: text(&session["asks"]),
            by: text(&by["source"]),
            certain: by["certain"] != false,
            whole: session.clone(),
        }
    }

    /// Whether it is what a person at the window sees. Where nothing says so, a doubt will do, a false word not.
    pub(super) fn is(&self, doing: Doing) -> bool {
        let agrees = self.activity == doing.to_string() || !self.certain;
        let asks = self.asks.is_some() == (self.activity == "waiting");
        self.state == "live" && agrees && asks
    }

    /// Whether tenure says exactly this.
    pub(super) fn says(&self, activity: &str) -> bool {
        self.state == "live" && self.activity == activity && self.certain
    }

    /// The whole answer.
    pub(super) fn whole(&self) -> &Value {
        &self.whole
    }
}

/// A cell of the table in docs/agents.md.
impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.state != "live" {
            return write!(f, "{}", self.state);
        }
        write!(
            f,
            "{}{}",
            self.activity,
            if self.certain { "" } else { "?" }
        )?;
        if self.activity == "waiting" && self.asks.is_none() {
            write!(f, ", not for what")?;
        }
        if let Some(by) = &self.by {
            write!(f, " ({by})")?;
        }
        Ok(())
    }
}

/// Waits until tenure says this, which no screen shows in the same way for every agent, or its time is over.
#[track_caller]
pub(super) fn settled_as(world: &RealWorld, kind: Real, activity: &str) -> Seen {
    settles(
        || newest(world, kind).map_or_else(|| Seen::of(&Value::Null), |one| Seen::of(&one)),
        |seen| seen.says(activity),
    )
}

/// Waits until the screen says this, and then until tenure does, or its time is over.
#[track_caller]
pub(super) fn look(world: &RealWorld, tui: &Tui, doing: Doing) -> Seen {
    tui.await_doing(doing);
    let kind = tui.kind();
    let seen = settles(
        || newest(world, kind).map_or_else(|| Seen::of(&Value::Null), |one| Seen::of(&one)),
        |seen| seen.is(doing),
    );
    let own = settles(
        || own_word(world, kind, tui.agent_pid()),
        |own| own.as_ref().is_none_or(|own| *own == doing.to_string()),
    );
    if let Some(own) = own {
        let screen = tui.window.screen();
        assert_eq!(own, doing.to_string(), "its own registry\n{screen}");
    }
    seen
}

/// The same, which must agree.
#[track_caller]
pub(super) fn agree(world: &RealWorld, tui: &Tui, doing: Doing, when: &str) -> Seen {
    let seen = look(world, tui, doing);
    let (name, screen) = (tui.kind().name(), tui.window.screen());
    assert!(
        seen.is(doing),
        "{when}: {name} is {doing}, ps says {seen}: {:#}\n{screen}",
        seen.whole
    );
    seen
}

/// What the agent's own registry says that this process does, where it keeps one.
pub(super) fn own_word(world: &RealWorld, kind: Real, pid: u32) -> Option<String> {
    if kind != Real::Claude {
        return None;
    }
    let file = world.home().join(format!(".claude/sessions/{pid}.json"));
    let text = std::fs::read_to_string(file).ok()?;
    let entry: Value = serde_json::from_str(&text).ok()?;
    // It has a word of its own for a prompt beside a command that goes on.
    let status = entry["status"].as_str()?;
    Some(if status == "shell" { "idle" } else { status }.to_owned())
}
