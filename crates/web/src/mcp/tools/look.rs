//! The tools that only look.

use schemars::JsonSchema;
use serde::Deserialize;
use tenure_app::keys::key_here;
use tenure_app::open::Purpose;
use tenure_app::place::place_here;
use tenure_core::store::ClaimFilter;
use tenure_service::view::SessionView;
use tenure_service::{ActFor, ListRequest};
use tenure_views::session_list;

use super::{Arguments, Effect, Spec};
use crate::mcp::call::ToolCall;
use crate::mcp::reply::{ToolAnswer, ToolResult};

/// How many rows a list has.
const MAX_ROWS: usize = 100;
/// How many names a line has.
const MAX_NAMES: usize = 5;

/// Nothing is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Status {}

impl Arguments for Status {
    const SPEC: Spec = Spec {
        name: "status",
        title: "Show this session, what it holds and who else works here",
        description: "Your session, its claims, other sessions in this repository, messages and warnings. Call it when \
             you begin, and after an error about a claim. Not for a single item: use why. A subagent's call is its \
             parent's session.",
        effect: Effect::Nothing,
        is_repeatable: true,
    };

    fn run(self, call: &ToolCall) -> ToolResult {
        let mut context = call.open(Purpose::Read)?;
        let here = ListRequest::around(&place_here());
        let act_for = ActFor::default();
        let (answer, worktrees) = tenure_runs::status::status(&mut context, &act_for, &here)?;
        let status = &answer.value;
        let mut line = match (&status.me, &status.no_session) {
            (Some(me), _) => format!("you are {}, and so are your subagents", me.handle),
            (None, Some(why)) => format!("no session: {why}"),
            (None, None) => "no session".to_owned(),
        };
        if !status.claims.is_empty() {
            let keys = status.claims.iter().map(|claim| claim.key.as_str());
            line.push_str(&format!("; you hold {}", named(keys)));
        }
        if !status.others.is_empty() {
            line.push_str(&format!("; also here: {}", named(handles(&status.others))));
        }
        if !status.warnings.is_empty() {
            line.push_str(&format!("; {} warnings", status.warnings.len()));
        }
        Ok(ToolAnswer::new(line, "status", status)
            .with("worktrees", &worktrees)
            .told(&answer))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// Include sessions that ended
    #[serde(default)]
    all: bool,
}

impl Arguments for Sessions {
    const SPEC: Spec = Spec {
        name: "sessions",
        title: "List the sessions of all coding agents on this machine",
        description: "State, place and claims of every session, those that wait for a person first. Use it to find \
             whom to tell something or to hand an item to. Not for what concerns you here: use status.",
        effect: Effect::Nothing,
        is_repeatable: true,
    };

    fn run(self, call: &ToolCall) -> ToolResult {
        list(call, self.all)
    }
}

/// The sessions that are open.
pub fn sessions(call: &ToolCall) -> ToolResult {
    list(call, false)
}

fn list(call: &ToolCall, closed_too: bool) -> ToolResult {
    let mut context = call.open(Purpose::Read)?;
    let request = ListRequest {
        closed_too,
        limit: MAX_ROWS,
        ..ListRequest::default()
    };
    let (answer, unmanaged) = session_list::list(&mut context, &request)?;
    let found = &answer.value;
    let waiting = found.items.iter().filter(|one| one.asks.is_some());
    let waiting: Vec<&str> = waiting.map(|one| one.handle.as_str()).collect();
    let mut line = match found.items.len() + found.more {
        0 => "no sessions".to_owned(),
        1 => "1 session".to_owned(),
        many => format!("{many} sessions"),
    };
    if !waiting.is_empty() {
        line.push_str(&format!(
            "; for a person wait: {}",
            named(waiting.into_iter())
        ));
    }
    Ok(ToolAnswer::new(line, "sessions", &found.items)
        .with("more", &found.more)
        .with("more_is_least", &found.more_is_least)
        .with("unmanaged", &unmanaged)
        .told(&answer))
}

/// The items that are held.
pub fn claims(call: &ToolCall) -> ToolResult {
    let mut context = call.open(Purpose::Read)?;
    let filter = ClaimFilter {
        limit: MAX_ROWS,
        ..ClaimFilter::default()
    };
    let answer = context.service().claims(None, &filter)?;
    let found = &answer.value;
    Ok(ToolAnswer::new("", "claims", &found.items)
        .with("more", &found.more)
        .told(&answer))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// The item, such as issue:acme/web#42, #42 or path:src/db/**
    key: String,
}

impl Arguments for Why {
    const SPEC: Spec = Spec {
        name: "why",
        title: "Explain why a work item is held or free",
        description: "Who holds an item, since when and on what evidence, who waits for it, and what you can do. Not \
             needed before claim, which fails safely if the item is held.",
        effect: Effect::Nothing,
        is_repeatable: true,
    };

    fn run(self, call: &ToolCall) -> ToolResult {
        let key = key_here(&self.key)?;
        let mut context = call.open(Purpose::Read)?;
        let answer = context.service().why(&key)?;
        let (claim, why) = (&answer.value.claim, &answer.value.why);
        let line = format!("{}: {}", claim.key, standing(&why.answer));
        Ok(ToolAnswer::new(line, "claim", claim)
            .with("why", why)
            .told(&answer))
    }
}

/// The answer of `why` as a sentence: what a claim would get is not what the caller has.
fn standing(answer: &str) -> String {
    match answer {
        "granted" => "free, you can claim it".to_owned(),
        "yours" => "you hold it".to_owned(),
        other => {
            let why = other.strip_prefix("refused: ").unwrap_or(other);
            format!("you cannot claim it now: {why}")
        }
    }
}

fn handles(sessions: &[SessionView]) -> impl Iterator<Item = &str> {
    sessions.iter().map(|one| one.handle.as_str())
}

/// The first names, and how many more there are.
fn named<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = all.collect();
    let first = all[..all.len().min(MAX_NAMES)].join(", ");
    match all.len().saturating_sub(MAX_NAMES) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::standing;

    #[test]
    fn a_free_item_does_not_read_as_one_that_is_held() {
        assert_eq!(standing("granted"), "free, you can claim it");
        assert_eq!(standing("yours"), "you hold it");
        assert_eq!(standing("refused: done"), "you cannot claim it now: done");
    }
}
