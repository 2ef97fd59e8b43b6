//! What a session is shown to be doing, from its events, its agent's own files and its processes.
//!
//! Hooks do not report everything: not a turn that a person cancels, not a prompt that is answered. If the
//! agent keeps a file that has this, the file is read when someone looks. A file that is written at every
//! change is current however old it is: a turn may end, with an event, while a subagent continues and the agent
//! stays busy. An event overrides the file only while the agent may not have written the file yet. Between the
//! events and a file that reports only some ends, the newer one counts. A prompt that is followed by a command
//! was answered. If nothing reports the end of a state, the state is shown as uncertain once it is old.
//!
//! A turn ends in one of four ways: by itself, with an error, at a limit of its provider, or because a person
//! cancelled it. Agents then also report that they rest. That is the same end, and does not replace the reason.
//!
//! *Clock jump*: both times are wall-clock times of one machine and decide only what is shown. A file from the
//! future counts as newer: an agent writes its file at every change, so the file is still current.

use std::time::Duration;

use crate::agent_event::QuestionText;
use crate::session::{Activity, Doing};
use crate::time::Timestamp;
use crate::witness::{OwnReport, TurnEnd};

/// How long an agent may be silent before a state that can end without an event is uncertain.
pub const DOUBTED_AFTER: Duration = Duration::from_secs(60);

/// How long the end of a turn is news for a person who has not seen it.
pub const FINISHED_FOR: Duration = Duration::from_secs(30 * 60);

/// An agent that tries again only after this long waits for its provider's limit.
const LONG_WAIT: Duration = Duration::from_secs(60);

/// How long after a turn was cancelled its last tool may still send an event.
const AFTERMATH: Duration = Duration::from_secs(2);

/// How far apart an event and the agent's file may report the same prompt.
const SAME_PROMPT: Duration = Duration::from_secs(5);

/// How far apart an event and the agent's file may report the same end of a turn.
const SAME_END: Duration = Duration::from_secs(5);

/// How long after an event the agent may not have written its file yet.
const UNWRITTEN: Duration = Duration::from_secs(2);

/// No one reads and answers a question faster, so a command that began sooner is not the one that was asked
/// about.
const ANSWERED: Duration = Duration::from_millis(200);

/// The name of events as a source, for people.
pub const EVENTS: &str = "events";

/// The name of its commands as a source, for people.
pub const PROCESSES: &str = "its processes";

/// The name of the state of its process as a source, for people.
pub const KERNEL: &str = "the kernel";

/// What an event reports about a session's activity.
#[derive(Debug, Clone, Copy)]
pub struct ActivityReport<'a> {
    pub doing: Doing,
    pub asks: Option<&'a QuestionText>,
    pub why: Option<&'a str>,
    pub until: Option<Timestamp>,
    /// Whether a person did it, or it starts the conversation: whatever was before is over.
    pub is_new: bool,
}

/// What a session does after an event, if that is new.
pub fn after(
    before: Option<&Activity>,
    heard: &ActivityReport<'_>,
    now: Timestamp,
) -> Option<Activity> {
    let doing = heard.doing;
    if !heard.is_new && before.is_some_and(|before| outlasts(before.doing, doing)) {
        return None;
    }
    let same = before.filter(|before| before.doing == doing && !heard.is_new);
    let asked_before = same.and_then(|before| before.asks.as_deref());
    let next = Activity {
        doing,
        since: same.map_or(now, |before| before.since),
        asks: heard.asks.map(|asks| asks.after(asked_before)),
        why: heard.why.map(str::to_owned),
        until: heard.until,
    };
    let says_nothing = next.asks.is_none() && next.why.is_none() && next.until.is_none();
    match same {
        Some(before) if says_nothing || *before == next => None,
        _ => Some(next),
    }
}

/// Whether a state stays although an event reports rest. The end of a turn by itself is no news about one that
/// failed.
fn outlasts(before: Doing, heard: Doing) -> bool {
    match heard {
        Doing::Idle => before.outlasts_rest(),
        Doing::Finished => matches!(before, Doing::Failed | Doing::Limited),
        _ => false,
    }
}

/// All sources for what a session is doing.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    pub events: Option<&'a Activity>,
    /// When it last reported.
    pub seen_at: Timestamp,
    pub own: Option<&'a OwnReport>,
    /// When its newest running command began, if that was checked.
    pub runs_since: Option<Timestamp>,
    /// Whether its process is stopped.
    pub suspended: bool,
    /// When it last asked its model and when before that, if its agent reports each request.
    pub asked: (Option<Timestamp>, Option<Timestamp>),
    /// When a person was last seen with it.
    pub attended_at: Option<Timestamp>,
    /// What this agent can stop doing without sending an event.
    pub silent_ends: &'a [Doing],
    pub now: Timestamp,
}

/// What a session is doing, and the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownActivity {
    pub doing: Doing,
    pub since: Timestamp,
    /// What it waits for a person to answer, on one line.
    pub asks: Option<String>,
    /// Why it failed, is limited or retries, on one line.
    pub why: Option<String>,
    /// Until when it is limited, or when it tries again.
    pub until: Option<Timestamp>,
    /// `events`, `its processes`, `the kernel`, or the name of the agent's own file.
    pub source: &'static str,
    /// Whether no unreported change is possible since then.
    pub certain: bool,
    /// Whether it is idle because its turn ended by itself.
    pub ended_by_itself: bool,
}

impl ShownActivity {
    fn new(doing: Doing, since: Timestamp, source: &'static str) -> Self {
        Self {
            doing,
            since,
            asks: None,
            why: None,
            until: None,
            source,
            certain: true,
            ended_by_itself: false,
        }
    }
}

impl Words<'_> {
    /// The source that counts. At equal times the agent's file, which is written later.
    pub fn newest(&self) -> Option<ShownActivity> {
        let said = self.own.and_then(|word| self.said(word));
        let told = self.events.map(|activity| self.told(activity));
        let shown = match (told, said) {
            (Some(told), Some(said)) if told.doing.rests() && said.doing.rests() => {
                self.end_of_turn(told, said)
            }
            (Some(told), Some(said)) if told.since > said.since && self.is_news(&told, &said) => {
                told
            }
            (told, said) => said.or(told)?,
        };
        let shown = self.with_requests(shown);
        // A stopped process does nothing, whatever it did before.
        let since = shown.since;
        let stopped = || ShownActivity::new(Doing::Suspended, since, KERNEL);
        let shown = if self.suspended { stopped() } else { shown };
        Some(self.timed(shown))
    }

    /// Two requests to the model without an answer between them: the first failed.
    fn with_requests(&self, shown: ShownActivity) -> ShownActivity {
        let answered_at = self.own.map(|word| word.answered_at);
        match (shown.doing, self.asked.1, answered_at) {
            (Doing::Busy, Some(before), Some(answered_at))
                if before >= shown.since && Some(before) > answered_at =>
            {
                ShownActivity {
                    why: Some("its model did not answer".to_owned()),
                    ..ShownActivity::new(Doing::Retrying, before, EVENTS)
                }
            }
            _ => shown,
        }
    }

    /// Both report rest, and one of them knows how the turn ended.
    fn end_of_turn(&self, told: ShownActivity, said: ShownActivity) -> ShownActivity {
        let apart = told
            .since
            .age_at(said.since)
            .max(said.since.age_at(told.since));
        let is_same = apart <= SAME_END;
        let is_later = said.since > told.since && !is_same;
        let knows = |shown: &ShownActivity| shown.doing != Doing::Idle;
        let by_person = self.own.and_then(|word| word.turn_end) == Some(TurnEnd::ByPerson);
        match (is_same, is_later) {
            (true, _) if by_person || knows(&said) => said,
            (_, true) if by_person || knows(&said) || knows(&told) => said,
            (false, false) if told.since > said.since && self.is_news(&told, &said) => told,
            _ if knows(&told) => told,
            // No event has reported another turn since, so this rest began with the end of that one.
            _ if told.ended_by_itself => ShownActivity {
                since: told.since,
                ended_by_itself: true,
                ..said
            },
            // The event knows better: a person asked for what the file calls a turn.
            _ => ShownActivity {
                ended_by_itself: false,
                ..said
            },
        }
    }

    /// A limit that is over is the end of a turn that failed. An agent that waits long before it tries again is
    /// limited.
    fn timed(&self, shown: ShownActivity) -> ShownActivity {
        let doing = match (shown.doing, shown.until) {
            (Doing::Limited, Some(until)) if until <= self.now => Doing::Failed,
            (Doing::Retrying, Some(until)) if self.now.age_at(until) > LONG_WAIT => Doing::Limited,
            (doing, _) => doing,
        };
        ShownActivity { doing, ..shown }
    }

    /// What events report, or the command that began after a prompt.
    fn told(&self, activity: &Activity) -> ShownActivity {
        let answered = |began: &Timestamp| activity.since.age_at(*began) >= ANSWERED;
        let runs = self.runs_since.filter(answered);
        if let Some(began) = runs.filter(|_| activity.doing == Doing::Waiting) {
            return ShownActivity::new(Doing::Busy, began, PROCESSES);
        }
        let answered_at = self.own.and_then(|word| word.answered_at);
        let is_answered = answered_at.is_some() && answered_at > self.asked.0;
        // An end without a text of the model, although the model answered: a tool was its last word.
        let is_wordless = activity.doing == Doing::Failed && activity.why.is_none();
        let finished = activity.doing == Doing::Finished
            || (is_wordless && self.asked.0.is_some() && is_answered);
        ShownActivity {
            doing: if finished {
                Doing::Idle
            } else {
                activity.doing
            },
            since: activity.since,
            asks: activity.asks.clone(),
            why: activity.why.clone(),
            until: activity.until,
            source: EVENTS,
            certain: !self.may_be_over(activity),
            ended_by_itself: finished,
        }
    }

    /// Whether an event after the file was written can change what the file reports.
    fn is_news(&self, told: &ShownActivity, said: &ShownActivity) -> bool {
        // A file that reports every end is written at every change.
        let tells = |doing: &Doing| self.own.is_some_and(|word| word.tells.contains(doing));
        let holds = [Doing::Busy, Doing::Waiting, Doing::Idle].iter().all(tells);
        let is_fresh = told.since.age_at(self.now) <= UNWRITTEN;
        let agrees = told.doing == said.doing;
        !self.echoes(told, said) && (!holds || agrees || is_fresh)
    }

    /// Whether an event is only the echo of a cancelled turn: a stopped tool reports that it is done.
    fn echoes(&self, told: &ShownActivity, said: &ShownActivity) -> bool {
        let prompted = self.attended_at == Some(told.since);
        (told.doing, said.doing) == (Doing::Busy, Doing::Idle)
            && said.since.age_at(told.since) <= AFTERMATH
            && !prompted
    }

    fn said(&self, word: &OwnReport) -> Option<ShownActivity> {
        let doing = word.doing?;
        // Files have the kind of the prompt, events the command. For the same prompt the event is more precise.
        let apart = |at: Timestamp| at.age_at(word.at).max(word.at.age_at(at));
        let same = self.events.filter(|activity| {
            activity.doing == Doing::Waiting && apart(activity.since) <= SAME_PROMPT
        });
        let told = same.and_then(|activity| activity.asks.clone());
        Some(ShownActivity {
            asks: told
                .or_else(|| word.asks.clone())
                .filter(|_| doing == Doing::Waiting),
            why: word.why.clone(),
            until: word.until,
            ended_by_itself: word.turn_end == Some(TurnEnd::ByItself) && doing == Doing::Idle,
            ..ShownActivity::new(doing, word.at, word.source)
        })
    }

    /// Whether the state of the last event may have ended without one.
    fn may_be_over(&self, activity: &Activity) -> bool {
        let last = self.seen_at.max(activity.since);
        let told = (self.own).is_some_and(|word| word.tells.contains(&activity.doing));
        let silent = self.silent_ends.contains(&activity.doing) && !told;
        silent && last.age_at(self.now) > DOUBTED_AFTER
    }
}

/// Whether a turn ended by itself since a person was last with the session, and not long ago. A session that no
/// person ever visited has finished nothing for one.
pub fn is_finished(
    shown: Option<&ShownActivity>,
    attended_at: Option<Timestamp>,
    now: Timestamp,
) -> bool {
    let ended = shown.filter(|shown| shown.doing == Doing::Idle && shown.ended_by_itself);
    let (Some(ended), Some(attended_at)) = (ended, attended_at) else {
        return false;
    };
    ended.since > attended_at && ended.since.age_at(now) < FINISHED_FOR
}

#[cfg(test)]
mod tests;
