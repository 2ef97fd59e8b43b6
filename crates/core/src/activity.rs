//! What a session is shown to be doing, from its events, its agent's own files and the commands that it runs.
//!
//! Hooks do not report everything: not a turn that a person cancels, not a prompt that is answered. If the
//! agent keeps a file that has this, the file is read when someone looks. A file that is written at every
//! change is current however old it is: a turn may end, with an event, while a subagent continues and the agent
//! stays busy. An event overrides the file only while the agent may not have written the file yet. Between the
//! events and a file that reports only some ends, the newer one counts. A prompt that is followed by a command
//! was answered. If nothing reports the end of a state, the state is shown as uncertain once it is old.
//!
//! *Clock jump*: both times are wall-clock times of one machine and decide only what is shown. A file from the
//! future counts as newer: an agent writes its file at every change, so the file is still current.

use std::time::Duration;

use crate::session::{Activity, Doing};
use crate::time::Timestamp;
use crate::witness::OwnReport;

/// How long an agent may be silent before a state that can end without an event is uncertain.
pub const DOUBTED_AFTER: Duration = Duration::from_secs(60);

/// How long after a turn was cancelled its last tool may still send an event.
const AFTERMATH: Duration = Duration::from_secs(2);

/// How far apart an event and the agent's file may report the same prompt.
const SAME_PROMPT: Duration = Duration::from_secs(5);

/// How long after an event the agent may not have written its file yet.
const UNWRITTEN: Duration = Duration::from_secs(2);

/// No one reads and answers a question faster, so a command that began sooner is not the one that was asked
/// about.
const ANSWERED: Duration = Duration::from_millis(200);

/// The name of events as a source, for people.
pub const EVENTS: &str = "events";

/// The name of its commands as a source, for people.
pub const PROCESSES: &str = "its processes";

/// All sources for what a session is doing.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    pub events: Option<&'a Activity>,
    /// When it last reported.
    pub seen_at: Timestamp,
    pub own: Option<&'a OwnReport>,
    /// When its newest running command began, if that was checked.
    pub runs_since: Option<Timestamp>,
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
    /// `events`, `its processes`, or the name of the agent's own file.
    pub source: &'static str,
    /// Whether no unreported change is possible since then.
    pub certain: bool,
    /// Whether its turn ended by itself and no event reports that.
    pub ended_by_itself: bool,
}

impl Words<'_> {
    /// The source that counts among events and the agent's own files. At equal times the file, which is written
    /// later.
    pub fn newest(&self) -> Option<ShownActivity> {
        let said = self.own.and_then(|word| self.said(word));
        let told = self.events.map(|activity| self.told(activity));
        match (told, said) {
            (Some(told), Some(said)) if told.since > said.since && self.is_news(&told, &said) => {
                Some(told)
            }
            (told, said) => said.or(told),
        }
    }

    /// What events report, or the command that began after a prompt.
    fn told(&self, activity: &Activity) -> ShownActivity {
        let answered = |began: &Timestamp| activity.since.age_at(*began) >= ANSWERED;
        let runs = self.runs_since.filter(answered);
        match runs.filter(|_| activity.doing == Doing::Waiting) {
            Some(began) => ShownActivity {
                doing: Doing::Busy,
                since: began,
                asks: None,
                source: PROCESSES,
                certain: true,
                ended_by_itself: false,
            },
            None => ShownActivity {
                doing: activity.doing,
                since: activity.since,
                asks: activity.asks.clone(),
                source: EVENTS,
                certain: !self.may_be_over(activity),
                ended_by_itself: false,
            },
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
            doing,
            since: word.at,
            asks: told
                .or_else(|| word.asks.clone())
                .filter(|_| doing == Doing::Waiting),
            source: word.source,
            certain: true,
            ended_by_itself: word.ended_by_itself && doing == Doing::Idle,
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

/// Whether a turn ended since a person was last with the session.
///
/// The end of a turn has an event, or a record in the agent's file. If that file reports only rest, a person
/// cancelled the turn and was there. A session that no person ever visited has finished nothing for one.
pub fn is_finished(
    shown: Option<&ShownActivity>,
    events: Option<&Activity>,
    attended_at: Option<Timestamp>,
) -> bool {
    let rests = shown.is_some_and(|shown| shown.doing == Doing::Idle);
    let told = events.filter(|activity| activity.doing == Doing::Idle);
    let said = shown.filter(|shown| shown.ended_by_itself);
    let ended = told
        .map(|activity| activity.since)
        .max(said.map(|shown| shown.since));
    let (Some(ended), Some(attended_at)) = (ended, attended_at) else {
        return false;
    };
    rests && ended > attended_at
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: &str = "its own registry";

    fn told(doing: Doing, at: i64) -> Activity {
        Activity {
            doing,
            since: Timestamp(at),
            asks: None,
        }
    }

    fn said(doing: Doing, at: i64) -> OwnReport {
        OwnReport {
            doing: Some(doing),
            asks: None,
            title: None,
            at: Timestamp(at),
            ended_by_itself: false,
            source: REGISTRY,
            tells: &[Doing::Busy, Doing::Waiting, Doing::Idle],
        }
    }

    fn words<'a>(events: Option<&'a Activity>, own: Option<&'a OwnReport>) -> Words<'a> {
        Words {
            events,
            seen_at: Timestamp(0),
            own,
            runs_since: None,
            attended_at: None,
            silent_ends: &[],
            now: Timestamp(0),
        }
    }

    #[test]
    fn the_newer_word_counts() {
        let doing = |events: i64, own: i64| {
            let (events, own) = (told(Doing::Waiting, events), said(Doing::Idle, own));
            words(Some(&events), Some(&own)).newest().unwrap().doing
        };
        assert_eq!(doing(2, 1), Doing::Waiting);
        assert_eq!(doing(1, 2), Doing::Idle);
        assert_eq!(doing(1, 1), Doing::Idle);
    }

    #[test]
    fn a_file_that_tells_every_change_holds_until_it_is_written_again() {
        let seen = |told_at: i64, now: i64, own: &OwnReport| {
            let stop = told(Doing::Idle, told_at);
            let all = Words {
                now: Timestamp(now),
                ..words(Some(&stop), Some(own))
            };
            let shown = all.newest().unwrap();
            (shown.doing, shown.source)
        };
        let busy = said(Doing::Busy, 1_000);
        let (by_file, by_event) = ((Doing::Busy, REGISTRY), (Doing::Idle, EVENTS));
        assert_eq!(seen(5_000, 7_000, &busy), by_event, "not written yet");
        assert_eq!(seen(5_000, 7_001, &busy), by_file, "a subagent goes on");
        let half = OwnReport {
            tells: &[Doing::Busy],
            ..busy
        };
        assert_eq!(seen(5_000, 7_001, &half), by_event, "it would not tell");
    }

    #[test]
    fn a_command_that_began_after_the_question_was_allowed() {
        let seen = |doing: Doing, began: i64, own: Option<&OwnReport>| {
            let events = Activity {
                asks: Some("permission for `make`".into()),
                ..told(doing, 1_000)
            };
            let all = Words {
                runs_since: Some(Timestamp(began)),
                ..words(Some(&events), own)
            };
            let shown = all.newest().unwrap();
            (shown.doing, shown.source, shown.asks.is_some())
        };
        let asks = (Doing::Waiting, EVENTS, true);
        assert_eq!(seen(Doing::Waiting, 900, None), asks, "it ran before");
        assert_eq!(
            seen(Doing::Waiting, 1_199, None),
            asks,
            "too soon for a yes"
        );
        let runs = (Doing::Busy, PROCESSES, false);
        assert_eq!(seen(Doing::Waiting, 1_200, None), runs);
        assert_eq!(seen(Doing::Idle, 1_200, None).0, Doing::Idle);
        let cancelled = OwnReport {
            tells: &[Doing::Busy],
            ..said(Doing::Idle, 1_300)
        };
        assert_eq!(seen(Doing::Waiting, 1_200, Some(&cancelled)).0, Doing::Idle);
    }

    #[test]
    fn a_tool_that_was_stopped_does_not_begin_a_turn() {
        let own = said(Doing::Idle, 10_000);
        let doing = |at: i64, attended: Option<i64>| {
            let events = told(Doing::Busy, at);
            let all = Words {
                attended_at: attended.map(Timestamp),
                ..words(Some(&events), Some(&own))
            };
            all.newest().unwrap().doing
        };
        assert_eq!(doing(10_300, None), Doing::Idle);
        assert_eq!(doing(10_300, Some(10_300)), Doing::Busy, "a prompt does");
        assert_eq!(doing(12_001, None), Doing::Busy);
    }

    #[test]
    fn one_word_alone_counts() {
        let busy = told(Doing::Busy, 1);
        let only = words(Some(&busy), None).newest().unwrap();
        assert_eq!((only.doing, only.source), (Doing::Busy, EVENTS));
        let waits = said(Doing::Waiting, 1);
        let only = words(None, Some(&waits)).newest().unwrap();
        assert_eq!((only.doing, only.source), (Doing::Waiting, REGISTRY));
        assert_eq!(words(None, None).newest(), None);
    }

    #[test]
    fn a_file_without_a_status_leaves_the_events() {
        let (busy, mute) = (told(Doing::Busy, 1), said(Doing::Idle, 9));
        let mute = OwnReport {
            doing: None,
            ..mute
        };
        let seen = words(Some(&busy), Some(&mute)).newest().unwrap();
        assert_eq!((seen.doing, seen.source), (Doing::Busy, EVENTS));
    }

    #[test]
    fn an_old_file_of_the_same_state_makes_the_state_no_older() {
        let (events, own) = (told(Doing::Busy, 50), said(Doing::Busy, 10));
        let seen = words(Some(&events), Some(&own)).newest().unwrap();
        assert_eq!((seen.since, seen.source), (Timestamp(50), EVENTS));
    }

    #[test]
    fn of_one_prompt_the_event_says_what_is_asked() {
        let asks = |at: i64, own_at: i64, doing: Doing| {
            let events = Activity {
                asks: Some("permission for `rm -rf build`".into()),
                ..told(Doing::Waiting, at)
            };
            let own = OwnReport {
                asks: Some("permission prompt".into()),
                ..said(doing, own_at)
            };
            words(Some(&events), Some(&own)).newest().unwrap().asks
        };
        let event = Some("permission for `rm -rf build`".to_owned());
        assert_eq!(asks(1_000, 1_200, Doing::Waiting), event);
        assert_eq!(asks(1_200, 1_000, Doing::Waiting), event);
        let later = asks(1_000, 60_000, Doing::Waiting);
        assert_eq!(later.as_deref(), Some("permission prompt"));
        assert_eq!(asks(1_000, 1_200, Doing::Idle), None);
    }

    #[test]
    fn a_state_that_can_end_without_a_word_is_in_doubt_when_it_is_old() {
        let waits = told(Doing::Waiting, 0);
        let certain = |silent: &[Doing], seen_at: i64, now: i64, own: Option<&OwnReport>| {
            let all = Words {
                seen_at: Timestamp(seen_at),
                silent_ends: silent,
                now: Timestamp(now),
                ..words(Some(&waits), own)
            };
            all.newest().unwrap().certain
        };
        let silent = &[Doing::Waiting];
        assert!(certain(silent, 0, 60_000, None));
        assert!(!certain(silent, 0, 60_001, None));
        assert!(certain(silent, 30_000, 90_000, None), "it was heard of");
        assert!(
            certain(&[Doing::Busy], 0, 60_001, None),
            "this end has an event"
        );
        let older = said(Doing::Busy, -5);
        assert!(
            certain(silent, 0, 60_001, Some(&older)),
            "its file would have told"
        );
        let half = OwnReport {
            tells: &[Doing::Busy],
            ..older
        };
        assert!(!certain(silent, 0, 60_001, Some(&half)));
    }

    #[test]
    fn a_turn_is_finished_until_a_person_was_there() {
        let idle = told(Doing::Idle, 100);
        let finished = |events: &Activity, own: Option<&OwnReport>, attended: Option<i64>| {
            let shown = words(Some(events), own).newest();
            is_finished(shown.as_ref(), Some(events), attended.map(Timestamp))
        };
        assert!(finished(&idle, None, Some(50)));
        assert!(!finished(&idle, None, Some(100)));
        assert!(!finished(&idle, None, None), "nobody was ever there");
        assert!(!finished(&told(Doing::Busy, 100), None, Some(50)));
        let rests = said(Doing::Idle, 110);
        assert!(finished(&idle, Some(&rests), Some(50)));
        let cancelled = told(Doing::Busy, 60);
        assert!(
            !finished(&cancelled, Some(&rests), Some(50)),
            "who cancelled it was there"
        );
        let failed = OwnReport {
            ended_by_itself: true,
            ..rests
        };
        assert!(
            finished(&cancelled, Some(&failed), Some(50)),
            "no one saw it fail"
        );
        assert!(!finished(&cancelled, Some(&failed), Some(110)));
        assert!(!is_finished(None, None, Some(Timestamp(1))));
    }
}
