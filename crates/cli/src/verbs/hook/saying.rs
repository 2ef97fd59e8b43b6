//! Saying the answer to an event to the agent.

use std::time::Instant;

use serde_json::{Value, json};
use tenure_agents::Answer;
use tenure_app::hook_store::HookStore;
use tenure_app::keeper::EventReply;
use tenure_app::mirror::{self as mirrors, Check};
use tenure_core::notice::{Channel, Notice};
use tenure_service::HandledEvent;
use tenure_service::answer::Problem;

use super::{After, Hook, Recorded, Said, say};
use crate::sink::{self, Unwritten};

impl Said {
    /// Prints what is said to an event, then lets its notices count as delivered.
    pub(super) fn tell_agent(self, hook: &Hook<'_>) {
        let reply = self.reply;
        let is_silent = reply == EventReply::default();
        for note in &reply.notes {
            say(note);
        }
        let answer = Answer {
            context: (!reply.lines.is_empty()).then(|| reply.lines.join("\n")),
            message: reply.message,
            block: reply.block,
            token: reply.token,
            foreign_to: reply.foreign_to,
        };
        let said = hook.adapter.answer(&hook.report.name, &answer);
        // Who reads a stream counts the answers.
        let said = said.or_else(|| hook.streams.then(|| json!({})));
        if said.is_some() || !matches!(self.after, After::Nothing) {
            hook.time.answer();
        }
        let channel = said.as_ref().map_or(Channel::Nowhere, show);
        match self.after {
            After::Nothing => {}
            After::Own(recorded, told) => {
                let Recorded {
                    mut store,
                    handled,
                    dir,
                    ..
                } = *recorded;
                delivered(&mut store, &told, channel);
                if is_silent && !handled.quiet_for.is_zero() {
                    store.settle(handled.quiet_for);
                }
                // Last: a mirror that has to wait delays the agent, but costs it no notice and no block.
                mirror(store, &handled, &dir, hook.until);
            }
            After::Keeper(sent) => {
                let for_model = channel == Channel::Hook;
                let (store, event) = *sent;
                if (for_model || channel == Channel::Terminal)
                    && store.printed(&event, for_model).is_err()
                {
                    // The next answer tells them again.
                }
            }
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
