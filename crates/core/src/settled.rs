//! Events that need no store: a hook that would find nothing to do ends before it opens one.
//!
//! Most events only show that an agent is still at work. If the store had such an event, wrote at most a heartbeat and had
//! nothing to say, it will do the same with the next one until something else changes. So the hook leaves a note: for which
//! event of which process, in which generation of the store, and when the next heartbeat is due. A later hook of the same
//! process with the same event finds the note and ends.
//!
//! A store gets a new [`Generation`] with every commit that may change an answer, before that commit is acknowledged.
//! Heartbeats and traces of written files do not count: no plain event is answered differently because of them.
//!
//! *Crash*: a process that is killed between its commit and the new generation leaves notes that are out of date. They end
//! with the heartbeat, so what was stored is told at most one heartbeat later. *Clock jump*: only the monotonic clock
//! counts, and a note that promises more than one heartbeat is not believed. *Older version*: an unreadable note is none.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use crate::process::Process;
use crate::time::Now;

/// A name for one state of a store, as far as it decides how plain events are answered; never given to another state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation(pub String);

/// An event that only shows that an agent is still at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainEvent {
    /// Process and event; no two have the same.
    text: String,
}

impl PlainEvent {
    /// An event of a process. `says` is everything in it that could be new to the store.
    pub fn new(process: &Process, says: &[Option<&str>]) -> Self {
        let Process {
            host,
            boot,
            pid_ns,
            pid,
            start,
        } = process;
        Self {
            text: format!("{host:?} {boot:?} {pid_ns} {pid} {start:?} {says:?}\n"),
        }
    }

    /// A number for the place of its note. Events that share one only replace each other's notes.
    pub fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.text.hash(&mut hasher);
        hasher.finish()
    }

    /// The note that the store had nothing to do for this event, and that no heartbeat is due for `quiet`.
    pub fn note(&self, generation: &Generation, now: &Now, quiet: Duration) -> String {
        let until = now.after(quiet).at;
        format!("{until} {:?}\n{}", generation.0, self.text)
    }

    /// Whether a note shows that there is nothing to do for this event now. Heartbeats are written `every` so often.
    pub fn is_settled(
        &self,
        note: &str,
        generation: &Generation,
        now: &Now,
        every: Duration,
    ) -> bool {
        let Some((first, text)) = note.split_once('\n') else {
            return false;
        };
        let Some((until, noted)) = first.split_once(' ') else {
            return false;
        };
        let every = i64::try_from(every.as_millis()).unwrap_or(i64::MAX);
        let left = until.parse::<i64>().map(|at| at.saturating_sub(now.steady));
        // After the event is the rest of a longer note.
        text.starts_with(&self.text)
            && noted == format!("{:?}", generation.0)
            && left.is_ok_and(|left| left > 0 && left <= every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::HostId;
    use crate::process::{BootId, StartTicks};
    use crate::time::{Era, Timestamp};

    const EVERY: Duration = Duration::from_secs(10);

    fn process() -> Process {
        Process {
            host: HostId::new("h1"),
            boot: BootId {
                id: "b1".into(),
                private: false,
            },
            pid_ns: 1,
            pid: 7,
            start: StartTicks {
                ticks: 99,
                shifted: false,
            },
        }
    }

    fn at(steady: i64) -> Now {
        Now {
            wall: Timestamp(0),
            era: Era {
                id: "b1".into(),
                private: false,
            },
            steady,
        }
    }

    fn generation(name: &str) -> Generation {
        Generation(name.to_owned())
    }

    fn event() -> PlainEvent {
        PlainEvent::new(&process(), &[Some("busy"), None])
    }

    #[test]
    fn the_same_event_in_the_same_generation_is_settled_until_its_heartbeat_is_due() {
        let note = event().note(&generation("g"), &at(1_000), Duration::from_secs(4));
        let settled = |steady| event().is_settled(&note, &generation("g"), &at(steady), EVERY);
        assert!(settled(1_000) && settled(4_999));
        assert!(!settled(5_000), "a heartbeat is due");
        assert!(!event().is_settled(&note, &generation("h"), &at(1_000), EVERY));
        assert!(
            !event().is_settled(&note, &generation(""), &at(1_000), EVERY),
            "a beginning is not the same"
        );
    }

    #[test]
    fn a_note_that_promises_more_than_one_heartbeat_is_not_believed() {
        let note = event().note(&generation("g"), &at(900_000), EVERY);
        assert!(event().is_settled(&note, &generation("g"), &at(900_000), EVERY));
        assert!(
            !event().is_settled(&note, &generation("g"), &at(1_000), EVERY),
            "of another boot, whose clock was further"
        );
        let shorter = EVERY / 2;
        assert!(!event().is_settled(&note, &generation("g"), &at(900_000), shorter));
    }

    #[test]
    fn another_process_and_another_event_are_not_settled() {
        let note = event().note(&generation("g"), &at(0), EVERY);
        let boot = BootId {
            id: "b2".into(),
            private: false,
        };
        let ticks = |ticks, shifted| StartTicks { ticks, shifted };
        let others = [
            Process {
                pid: 8,
                ..process()
            },
            Process {
                pid_ns: 2,
                ..process()
            },
            Process { boot, ..process() },
            Process {
                host: HostId::new("h2"),
                ..process()
            },
            // Its number was given to another process.
            Process {
                start: ticks(100, false),
                ..process()
            },
        ];
        for other in others {
            let other = PlainEvent::new(&other, &[Some("busy"), None]);
            assert!(!other.is_settled(&note, &generation("g"), &at(0), EVERY));
        }
        let says: [&[Option<&str>]; 4] = [
            &[None, None],
            &[Some("busy"), Some("")],
            &[Some("busy")],
            &[Some("busy\", None"), None],
        ];
        for says in says {
            let other = PlainEvent::new(&process(), says);
            assert!(!other.is_settled(&note, &generation("g"), &at(0), EVERY));
        }
    }

    #[test]
    fn what_is_left_of_a_longer_note_is_not_read_and_a_torn_one_settles_nothing() {
        let note = event().note(&generation("g"), &at(0), EVERY);
        let longer = format!("{note}of an earlier note\n");
        assert!(event().is_settled(&longer, &generation("g"), &at(0), EVERY));
        for end in 0..note.len() {
            let torn = &note[..end];
            assert!(
                !event().is_settled(torn, &generation("g"), &at(0), EVERY),
                "{torn:?}"
            );
        }
        for bad in ["", "\n", " \n", "x \"g\"\n", "9223372036854775808 \"g\"\n"] {
            let bad = format!("{bad}{}", event().text);
            assert!(
                !event().is_settled(&bad, &generation("g"), &at(0), EVERY),
                "{bad:?}"
            );
        }
    }
}
