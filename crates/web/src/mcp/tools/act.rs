//! The tools that change who holds what, and the one that sends a message.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tenure_app::keeper;
use tenure_app::keys::{distinct_keys_here, key_here};
use tenure_app::open::{Context, Purpose};
use tenure_app::watch::{CheckResult, repeatable, wait_for_turn, watch_store};
use tenure_core::key::Key;
use tenure_core::notice::Pending;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::{
    ActFor, Answer, CheckOutcome, ClaimRequest, Delivery, Grant, HandoffRequest, Pick,
    ReleaseRequest, SentMessage,
};

use super::{Arguments, Effect, Spec};
use crate::mcp::call::{self, ToolCall};
use crate::mcp::end::CallEnd;
use crate::mcp::reply::{ToolAnswer, ToolResult};

/// How long a claim may wait: clients give up on a call after a minute.
const MAX_WAIT_SECONDS: u64 = 30;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Items, such as issue:acme/web#42, #42, wp:041/WP03 or path:src/db/**
    #[schemars(length(min = 1, max = 100))]
    keys: Vec<String>,
    /// With several items: any claims the first that is free, all claims all of them or none
    #[serde(default)]
    pick: Option<ClaimPick>,
    /// Wait in the queue for at most this many seconds
    #[serde(default)]
    #[schemars(range(max = 30))]
    wait_seconds: u64,
    /// Shown to other sessions: what you do with it
    #[serde(default)]
    note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ClaimPick {
    Any,
    All,
}

impl Arguments for Claim {
    const SPEC: Spec = Spec {
        name: "claim",
        title: "Claim a work item before you work on it",
        description: "Take an issue, work package or path, so that no other agent works on it. Fails while a live \
             session holds it; succeeds at once if its holder died. Not for reading code, and not to take an item from \
             a session that works on it.",
        effect: Effect::Adds,
        is_repeatable: true,
    };

    fn run(self, call: &ToolCall) -> ToolResult {
        let request = self.request()?;
        let wait = Duration::from_secs(self.wait_seconds);
        let mut context = call.open(Purpose::Change)?;
        if call.end.is_unread() {
            return Err(interrupted());
        }
        let answer = claim(&mut context, &request, wait, &call.end)?;
        if !call.end.is_unread() {
            call::finish(&mut context);
        }
        if call.end.is_unread() {
            return give_back(&mut context, &answer.value);
        }
        let said: Vec<String> = answer.value.iter().map(granted).collect();
        let line = said.join("; ");
        let said = match answer.value.as_slice() {
            [one] if self.pick != Some(ClaimPick::All) => ToolAnswer::new(line, "claim", one),
            several => ToolAnswer::new(line, "claims", &several),
        };
        Ok(said.told(&answer))
    }
}

impl Claim {
    fn request(&self) -> Result<ClaimRequest, Problem> {
        let usage = |message: String, step: &str| {
            Problem::new(Class::Usage, "usage", message, Hint::step(step))
        };
        if self.wait_seconds > MAX_WAIT_SECONDS {
            let message = format!("wait_seconds is {}", self.wait_seconds);
            return Err(usage(
                message,
                "wait at most 30 seconds, then call it again",
            ));
        }
        if self.keys.is_empty() {
            return Err(usage("no item was given".into(), "pass one in keys"));
        }
        if self.keys.len() > 1 && self.pick.is_none() {
            let message = format!("{} items were given without pick", self.keys.len());
            return Err(usage(message, "pass pick: any or all"));
        }
        let any = self.pick == Some(ClaimPick::Any);
        let keys = distinct_keys_here(&self.keys)?.into_iter();
        Ok(ClaimRequest {
            keys: keys.map(|one| one.key).collect(),
            pick: if any { Pick::Any } else { Pick::All },
            request: None,
            once: false,
            reopen: false,
            note: self.note.clone(),
            require_quiet: any,
        })
    }
}

fn claim(
    context: &mut Context,
    request: &ClaimRequest,
    wait: Duration,
    end: &CallEnd,
) -> Result<Answer<Vec<Grant>>, Problem> {
    let act_for = ActFor::default();
    if wait.is_zero() {
        return Ok(context.service().claim(&act_for, request)?);
    }
    let mut watch = watch_store(context);
    if let Ok(news) = end.news.try_clone()
        && watch.wake_by(news).is_err()
    {
        // Then it is seen at the next check.
    }
    let request = repeatable(context, request);
    let claimed = wait_for_turn(
        context,
        &mut watch,
        wait,
        |service, waiting| {
            // What is free at once is granted to a client that only reads.
            let is_over = match waiting.ticket {
                Some(_) => end.is_over(),
                None => end.is_unread(),
            };
            // Of a check whose outcome is unknown, the next one finds it out.
            if is_over && !waiting.unconfirmed {
                return Ok(Answer {
                    value: None,
                    notices: Pending::default(),
                    damaged: None,
                });
            }
            let turn = service.claim_turn(&act_for, &request, waiting)?;
            Ok(Answer {
                value: Some(turn.value),
                notices: turn.notices,
                damaged: turn.damaged,
            })
        },
        |turn| match turn {
            Some(CheckOutcome::Granted(grants)) => CheckResult::Done(grants),
            Some(CheckOutcome::Wait(wait)) => CheckResult::Wait(wait),
            None => CheckResult::GivenUp(interrupted()),
        },
    );
    claimed.map_err(|unfinished| unfinished.problem)
}

/// Releases what was granted to a call whose answer nobody reads.
fn give_back(context: &mut Context, grants: &[Grant]) -> ToolResult {
    let new = grants.iter().filter(|one| one.already_held != Some(true));
    for grant in new {
        let request = ReleaseRequest {
            key: Key::parse(&grant.key)?,
            epoch: Some(tenure_core::id::Epoch(grant.epoch)),
            done: false,
        };
        keeper::release(context, &ActFor::default(), &request)?;
    }
    call::finish(context);
    Err(interrupted())
}

fn interrupted() -> Problem {
    let hint = Hint::step("call it again");
    let message = "nobody waits for this call any more; nothing was claimed";
    Problem::new(Class::TimedOut, "interrupted", message, hint)
}

fn granted(grant: &Grant) -> String {
    let word = if grant.already_held == Some(true) {
        "you already hold"
    } else {
        "claimed"
    };
    let mut line = format!("{word} {} (epoch {})", grant.key, grant.epoch);
    if let Some(previous) = &grant.taken_from {
        line.push_str(&format!(
            "; its previous holder {} is gone ({}): check {} for unfinished work",
            previous.handle, previous.proof, previous.dir
        ));
    }
    line
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The item, as it was claimed
    key: String,
    /// The item is finished: nobody can claim it again by mistake
    #[serde(default)]
    done: bool,
}

impl Arguments for Release {
    const SPEC: Spec = Spec {
        name: "release",
        title: "Give back a claimed work item",
        description: "Give up an item that this session holds, so that others can claim it; with done, mark it \
             finished. Do it when your work on it is over. Not if you only pause: a claim ends by itself when your \
             session ends.",
        effect: Effect::GivesUp,
        is_repeatable: false,
    };

    fn run(self, call: &ToolCall) -> ToolResult {
        let request = ReleaseRequest {
            key: key_here(&self.key)?,
            epoch: None,
            done: self.done,
        };
        let mut context = call.open(Purpose::Change)?;
        let answer = keeper::release(&mut context, &ActFor::default(), &request)?;
        call::finish(&mut context);
        let word = if self.done { "done" } else { "released" };
        let claim = &answer.value;
        let line = format!("{} {word} (epoch {})", claim.key, claim.epoch);
        Ok(ToolAnswer::new(line, "claim", claim).told(&answer))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    /// The item
    key: String,
    /// Handle of the session that gets it
    to: String,
    /// For that session: what is left to do
    #[serde(default)]
    note: Option<String>,
}

impl Arguments for Handoff {
    const SPEC: Spec = Spec {
        name: "handoff",
        title: "Hand a claimed work item over to another session",
        description: "Give an item that this session holds to another live session, with a note on what is left. Use \
             it when both of you agreed. Not to get rid of an item: use release.",
        effect: Effect::GivesUp,
        is_repeatable: false,
    };

    fn run(self, call: &ToolCall) -> ToolResult {
        let request = HandoffRequest {
            key: key_here(&self.key)?,
            to: self.to,
            epoch: None,
            note: self.note,
        };
        let mut context = call.open(Purpose::Change)?;
        let answer = keeper::handoff(&mut context, &ActFor::default(), &request)?;
        call::finish(&mut context);
        let claim = &answer.value;
        let holder = claim.holder.as_ref();
        let holder = holder.map_or("", |session| session.handle.as_str());
        let line = format!(
            "handed {} over to {holder} (epoch {})",
            claim.key, claim.epoch
        );
        Ok(ToolAnswer::new(line, "claim", claim).told(&answer))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tell {
    /// Handle of the session that gets the message
    to: String,
    /// The message, at most 1000 characters
    message: String,
}

impl Arguments for Tell {
    const SPEC: Spec = Spec {
        name: "tell",
        title: "Send a message to another session",
        description: "The other agent sees it at its next prompt or tool call. Use it to ask for an item or to warn \
             about a change that concerns it. A message grants no permission. Not for notes to yourself, and not to \
             report progress to a person.",
        effect: Effect::Adds,
        is_repeatable: false,
    };

    fn run(self, call: &ToolCall) -> ToolResult {
        let mut context = call.open(Purpose::Change)?;
        call::check_selected(&mut context)?;
        let answer = context.service().tell(&self.to, &self.message)?;
        tenure_elsewhere::wake::start_turn(&mut context, &answer.value).finish_beside();
        call::finish(&mut context);
        let SentMessage {
            session, delivery, ..
        } = &answer.value;
        let handle = &session.handle;
        let line = match delivery {
            Delivery::Delivered => {
                format!("delivered: {handle} will see it at its next prompt or tool call")
            }
            Delivery::Waiting => {
                format!("waiting: {handle} will see it when it is resumed or reports again")
            }
        };
        Ok(ToolAnswer::new(line, "session", session)
            .with("delivery", delivery)
            .told(&answer))
    }
}
