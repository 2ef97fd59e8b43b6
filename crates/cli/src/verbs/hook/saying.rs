//! Saying the answer to an event to the agent.

use std::time::Instant;

use serde_json::{Value, json};
use tenure_agents::EventAnswer;
use tenure_app::hook_store::HookStore;
use tenure_app::keeper::EventReply;
use tenure_app::mirror::{self as mirrors, Check};
use tenure_core::id::SessionId;
use tenure_core::ignore::Ignore;
use tenure_core::notice::{Channel, Notice};
use tenure_core::notification::Reason;
use tenure_core::session::Doing;
use tenure_elsewhere::wake::{after_event, waits_after};
use tenure_service::HandledEvent;
use tenure_service::answer::Problem;
use tenure_views::notify::sender::{self, Order};

use super::{After, Hook, HookOutcome, Recorded, say};
use crate::sink::{self, Unwritten};

/// Of how many deaths one event lets the user be notified; `ps` has the others.
const MAX_DEATHS: usize = 8;

impl HookOutcome {
    /// Prints what is said to an event, then lets its notices count as delivered.
    pub(super) fn tell_agent(self, hook: &Hook<'_>) {
        let reply = self.reply;
        let is_silent = reply == EventReply::default();
        let (has_notices, session) = (reply.notifies, reply.session);
        for note in &reply.notes {
            say(note);
        }
        let answer = EventAnswer {
            context: (!reply.lines.is_empty()).then(|| reply.lines.join("\n")),
            message: reply.message,
            block: reply.block,
            token: reply.token,
            foreign_to: reply.foreign_to,
            waits: self.after.store().is_some_and(|store| {
                store.wakes(hook.adapter.name) && waits_after(hook.adapter, hook.report)
            }),
        };
        let said = hook.adapter.answer(&hook.report.name, &answer);
        // Who reads a stream counts the answers.
        let said = said.or_else(|| hook.streams.then(|| json!({})));
        if said.is_some() || !matches!(self.after, After::Nothing) {
            hook.time.answer();
        }
        let channel = said.as_ref().map_or(Channel::Nowhere, show);
        if let Some(store) = self.after.store() {
            after_event(store.dir(), hook.adapter, hook.report);
        }
        match self.after {
            After::Nothing => {}
            After::Own(recorded, told) => {
                let Recorded {
                    mut store,
                    handled,
                    buried,
                    dir,
                    ..
                } = *recorded;
                delivered(&mut store, &told, channel);
                notify(hook, &store, handled.id);
                notify_of_deaths(hook, &store, &buried);
                if is_silent && !handled.quiet_for.is_zero() {
                    store.settle(handled.quiet_for);
                }
                // Last: a mirror that has to wait delays the agent, but costs it no notice and no block.
                mirror(store, &handled, &dir, hook.until);
            }
            After::Keeper(sent) => {
                let for_model = channel == Channel::Hook;
                let (store, event) = *sent;
                notify(hook, &store, session);
                if has_notices && (for_model || channel == Channel::Terminal) {
                    store
                        .printed(&event, for_model)
                        .ignore("the next answer tells them again");
                }
            }
        }
    }
}

/// Lets a process of its own notify the user of what the event says, if a channel wants it.
fn notify(hook: &Hook<'_>, store: &HookStore, session: Option<SessionId>) {
    let reason = match hook.report.doing {
        Some(Doing::Waiting) => Reason::Asks,
        Some(Doing::Failed) => Reason::Failed,
        Some(Doing::Limited) => Reason::Limited,
        _ => return,
    };
    if hook.report.subagent.is_none() {
        start(hook, store, reason, session.as_slice());
    }
}

/// The same for the deaths that the event proved: those of sessions that were in its way.
fn notify_of_deaths(hook: &Hook<'_>, store: &HookStore, buried: &[SessionId]) {
    start(
        hook,
        store,
        Reason::Died,
        &buried[..buried.len().min(MAX_DEATHS)],
    );
}

fn start(hook: &Hook<'_>, store: &HookStore, reason: Reason, of: &[SessionId]) {
    // A process that goes on collects its children.
    let start = if hook.streams {
        sender::start_and_stay
    } else {
        sender::start
    };
    for id in of {
        if sender::wants_alone(store.channels(), reason)
            && start(&Order::state(reason, Some(id.to_string()))).is_err()
        {
            // The event is recorded, and `ps` shows it.
        }
    }
}

/// Brings the files up to date that show sessions to other tools, in what is left of the time. An event may have
/// changed others than its own session: it records the deaths that it finds.
fn mirror(store: HookStore, handled: &HandledEvent, dir: &str, until: Instant) {
    if let Some(mut context) = store.with_mirrors(dir) {
        let check = Check::Own(handled.id);
        for said in mirrors::catch_up_until(&mut context, check, until) {
            say(&format!("warning: {said}"));
        }
    }
}

/// Writes the answer; what its part for the model reached.
fn show(answer: &Value) -> Channel {
    match sink::out(&answer.to_string()) {
        Ok(()) => match sink::channel(&std::io::stdout(), true, false) {
            Channel::Json => Channel::Hook,
            // Only a person reads a terminal, and /dev/null has no reader.
            elsewhere => elsewhere,
        },
        Err(Unwritten::ReaderLeft) => Channel::Nowhere,
        Err(Unwritten::Failed(error)) => {
            say(&format!("tenure: the output could not be written: {error}"));
            Channel::Nowhere
        }
    }
}

fn delivered(store: &mut HookStore, told: &[Notice], channel: Channel) {
    if told.is_empty() || channel == Channel::Nowhere {
        return;
    }
    let kept = store.open().and_then(|mut service| {
        let kept = service.delivered(told, channel);
        kept.map_err(Problem::from)
    });
    if let Err(problem) = kept {
        say(&format!(
            "tenure: these notices will be shown again: {}",
            problem.message
        ));
    }
}
