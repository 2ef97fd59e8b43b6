//! Whether a refused resume may be followed by a fresh run of the same prompt.
//!
//! At most once, and only if it is certain that the prompt reached no model: running work twice is worse than
//! not running it. Whatever is in doubt is reported instead.

use crate::conversation::fitness::Existence;
use crate::run::end::{Ending, Start, cause};
use crate::run::failure::ErrorClass;

/// Why a run is not repeated in a new conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoFallback {
    /// It was not a resume.
    NotResumed,
    /// This run fell back already.
    FellBackBefore,
    /// Someone stopped it, or its time was over.
    Stopped,
    /// Work may have been done.
    TurnBegan,
    /// A part of the stream could not be read, so work may have been done.
    Garbled,
    /// The agent did not end by itself with an error.
    NoFailedExit,
    /// The agent did not report that the conversation is unknown.
    NotUnknown,
    /// The agent still has the conversation.
    Present,
    /// It cannot be told whether the agent still has the conversation.
    CannotTell,
}

/// Decides for a run that ended so. `existence` is looked up after that end.
pub fn may_fall_back(
    ending: &Ending<'_>,
    fell_back_before: bool,
    existence: Existence,
) -> Result<(), NoFallback> {
    let seen = ending.seen;
    if ending.start == Start::Fresh {
        return Err(NoFallback::NotResumed);
    }
    if fell_back_before {
        return Err(NoFallback::FellBackBefore);
    }
    if ending.stop.is_some() {
        return Err(NoFallback::Stopped);
    }
    if seen.turn_began() || seen.id().is_some() || seen.succeeded() {
        return Err(NoFallback::TurnBegan);
    }
    if seen.unreadable() > 0 {
        return Err(NoFallback::Garbled);
    }
    if !ending.exit.failed() {
        return Err(NoFallback::NoFailedExit);
    }
    let class = cause(ending).map(|error| error.class);
    if class != Some(ErrorClass::UnknownConversation) {
        return Err(NoFallback::NotUnknown);
    }
    match existence {
        Existence::Absent => Ok(()),
        Existence::Present => Err(NoFallback::Present),
        Existence::CannotTell => Err(NoFallback::CannotTell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NativeId;
    use crate::run::end::{Exit, Stop};
    use crate::run::failure::AgentFailure;
    use crate::run::line::{Final, RunLine};
    use crate::run::progress::{RunProgress, Totals};
    use crate::time::Timestamp;

    const NOW: Timestamp = Timestamp(1_794_735_000_000);

    struct Case {
        lines: Vec<RunLine>,
        exit: Exit,
        stop: Option<Stop>,
        stderr: ErrorClass,
        start: Start,
        fell_back_before: bool,
        existence: Existence,
    }

    fn refused() -> Case {
        Case {
            lines: vec![],
            exit: Exit::Code(1),
            stop: None,
            stderr: ErrorClass::UnknownConversation,
            start: Start::Resumed {
                compacts: true,
                before: None,
            },
            fell_back_before: false,
            existence: Existence::Absent,
        }
    }

    fn decided(case: &Case) -> Result<(), NoFallback> {
        let mut seen = RunProgress::new(Totals::NOTHING);
        for line in &case.lines {
            seen.feed(line.clone(), NOW);
        }
        let stderr = AgentFailure::new(case.stderr, "told");
        let ending = Ending {
            seen: &seen,
            exit: case.exit,
            stop: case.stop,
            stderr: Some(&stderr),
            start: case.start,
            parked_before: 0,
            now: NOW,
        };
        may_fall_back(&ending, case.fell_back_before, case.existence)
    }

    #[test]
    fn f_r16_an_absent_conversation_is_replaced_once() {
        assert_eq!(decided(&refused()), Ok(()));
        let again = Case {
            fell_back_before: true,
            ..refused()
        };
        assert_eq!(decided(&again), Err(NoFallback::FellBackBefore));
        let told = AgentFailure::new(ErrorClass::UnknownConversation, "told");
        let structured = Case {
            lines: vec![RunLine::Final(Final::failed(told))],
            stderr: ErrorClass::Other,
            ..refused()
        };
        assert_eq!(decided(&structured), Ok(()));
    }

    #[test]
    fn each_condition_is_needed() {
        let line = |line: RunLine| Case {
            lines: vec![line],
            ..refused()
        };
        let id = NativeId::parse("a").unwrap();
        let waits = RunLine::WaitsForProvider { why: "500".into() };
        for (case, expected) in [
            (
                Case {
                    start: Start::Fresh,
                    ..refused()
                },
                NoFallback::NotResumed,
            ),
            (
                Case {
                    stop: Some(Stop::Asked),
                    ..refused()
                },
                NoFallback::Stopped,
            ),
            (line(RunLine::TurnBegan), NoFallback::TurnBegan),
            (line(RunLine::Thought), NoFallback::TurnBegan),
            (line(waits), NoFallback::TurnBegan),
            (line(RunLine::Named(id)), NoFallback::TurnBegan),
            (line(RunLine::Unreadable), NoFallback::Garbled),
            (
                Case {
                    existence: Existence::Present,
                    ..refused()
                },
                NoFallback::Present,
            ),
            (
                Case {
                    existence: Existence::CannotTell,
                    ..refused()
                },
                NoFallback::CannotTell,
            ),
        ] {
            assert_eq!(decided(&case), Err(expected));
        }
        for exit in [
            Exit::Code(0),
            Exit::Code(143),
            Exit::Signal(15),
            Exit::Unknown,
        ] {
            let case = Case { exit, ..refused() };
            assert_eq!(decided(&case), Err(NoFallback::NoFailedExit), "{exit:?}");
        }
    }

    #[test]
    fn no_other_error_is_followed_by_a_second_run() {
        for class in [
            ErrorClass::Limit,
            ErrorClass::Server,
            ErrorClass::Network,
            ErrorClass::Damaged,
            ErrorClass::History,
            ErrorClass::Overflow,
            ErrorClass::Busy,
            ErrorClass::Other,
        ] {
            let case = Case {
                stderr: class,
                ..refused()
            };
            assert_eq!(decided(&case), Err(NoFallback::NotUnknown), "{class:?}");
        }
    }
}
