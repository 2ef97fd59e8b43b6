//! Saying the answer to an event: to the agent, or to the hook that waits for this process.

use std::time::Instant;

use serde_json::Value;
use tenure_agents::Answer;
use tenure_app::hook_store::HookStore;
use tenure_app::late::kept::{Kept, Taken};
use tenure_app::late::process::{Asker, Fate};
use tenure_app::mirror::{self as mirrors, Check};
use tenure_core::notice::{Channel, Notice};
use tenure_service::HandledEvent;
use tenure_service::answer::Problem;

use super::{Earlier, Hook, Said, brief, say};
use crate::sink::{self, Unwritten};

impl Said {
    /// Prints what is said to an event, and in front of it what is left to say about earlier ones.
    pub(super) fn tell_agent(mut self, hook: &Hook<'_>, earlier: &Earlier) {
        for note in &self.reply.notes {
            say(note);
        }
        let taken = self.earlier(earlier);
        let mut lines = taken
            .as_ref()
            .map_or_else(Vec::new, |taken| taken.lines.clone());
        lines.extend(self.reply.lines.iter().cloned());
        let mut messages = taken
            .as_ref()
            .map_or_else(Vec::new, |taken| taken.messages.clone());
        messages.extend(self.reply.message.clone());
        let answer = Answer {
            context: brief::text(&lines),
            message: (!messages.is_empty()).then(|| messages.join("\n")),
            block: self.reply.block.clone(),
            token: self.reply.token.clone(),
        };
        let said = hook.adapter.answer(&hook.report.name, &answer);
        hook.time.answer();
        let channel = said.as_ref().map_or(Channel::Nowhere, show);
        if let Some(taken) = taken
            && channel != Channel::Nowhere
        {
            taken.said();
        }
        match self.asked.take() {
            Some(asked) => asked.printed(channel),
            None => {
                let told = std::mem::take(&mut self.delivers);
                self.deliver(&told, channel);
            }
        }
        self.record(hook.until);
    }

    /// What this event says about earlier ones. Beside a denial an agent may drop it.
    fn earlier(&self, earlier: &Earlier) -> Option<Taken> {
        let kept = earlier.kept.as_ref().filter(|_| earlier.speaks)?;
        if self.reply.block.is_some() {
            return None;
        }
        let lines = &self.reply.lines;
        let said: Vec<u64> = lines.iter().filter_map(|line| line.notice).collect();
        let used: usize = lines.iter().map(|line| line.text.len() + 1).sum();
        kept.take(brief::MOST_BYTES.saturating_sub(used), &said)
    }

    /// Offers it to the hook that started this process. If that waits no longer, it is kept for the next event.
    pub(super) fn tell_hook(mut self, hook: &Hook<'_>, asker: &Asker, kept: Option<&Kept>) {
        hook.time.answer();
        let told = std::mem::take(&mut self.delivers);
        match (asker.answer(&self.reply, hook.until), kept) {
            (Fate::Reached(channel), _) => self.deliver(&told, channel),
            (Fate::Late, None) => {}
            (Fate::Late, Some(kept)) => {
                let reply = std::mem::take(&mut self.reply);
                let mark = |ids: &[u64]| {
                    let is_kept =
                        |notice: &&Notice| notice.id.is_some_and(|id| ids.contains(&id.0));
                    let told: Vec<Notice> = told.iter().filter(is_kept).cloned().collect();
                    self.deliver(&told, Channel::Hook);
                };
                if kept
                    .keep(&reply.lines, reply.message.as_deref(), mark)
                    .is_err()
                {
                    // The notices are told again; the rest is lost.
                }
            }
        }
        self.record(hook.until);
    }

    /// Records which notices were told. If that fails, the next answer tells them again.
    fn deliver(&mut self, told: &[Notice], channel: Channel) {
        if let Some((store, ..)) = &mut self.recorded {
            delivered(store, told, channel);
        }
    }

    /// Records the rest: a mirror that has to wait delays the agent, but costs it no notice and no block.
    fn record(self, until: Instant) {
        let Some((mut store, handled, dir)) = self.recorded else {
            return;
        };
        if self.settles {
            store.settle();
        }
        mirror(store, &handled, &dir, until);
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
