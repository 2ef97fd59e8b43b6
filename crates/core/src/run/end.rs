//! How a run ended, and what it leaves behind.
//!
//! Decided from the agent's own final event, never from its exit code alone: agents exit with 0 after a signal, a
//! refused tool and a cut-off answer. Why a run ended and whether its conversation may be resumed are two answers.
//! The same lines and the same exit give the same end, so that a run whose runner died is judged from its log.

use crate::conversation::fitness::{Left, ResumeRefusal};
use crate::id::stored_enum;
use crate::run::Outcome;
use crate::run::failure::{AgentFailure, ErrorClass};
use crate::run::park::{self, ParkEnd};
use crate::run::progress::{Limit, RunProgress};
use crate::time::Timestamp;

/// How the agent's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// It is gone, and its status went to a runner that died.
    Unknown,
}

impl Exit {
    /// Codes by which programs report that a signal ended them.
    const BY_SIGNAL: &[i32] = &[129, 130, 131, 137, 143];

    /// Whether it ended by itself, with an error.
    pub fn failed(self) -> bool {
        matches!(self, Exit::Code(code) if code != 0) && !self.is_by_signal()
    }

    fn is_by_signal(self) -> bool {
        match self {
            Exit::Code(code) => Self::BY_SIGNAL.contains(&code),
            Exit::Signal(_) | Exit::Unknown => true,
        }
    }
}

stored_enum! {
    /// What stopped a run.
    Stop, "cause of a stop" {
        Asked = "asked",
        /// It reached its time limit.
        TimedOut = "timed_out",
    }
}

/// Everything that decides an end.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    pub seen: &'a RunProgress,
    pub exit: Exit,
    /// Recorded before the agent was told to stop.
    pub stop: Option<Stop>,
    /// What the agent wrote to its standard error. It counts after a failed exit only.
    pub stderr: Option<&'a AgentFailure>,
    pub start: Start,
    /// How often the agent was parked in a row without a named time.
    pub parked_before: u32,
    pub now: Timestamp,
}

/// How the run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    Fresh,
    Resumed {
        /// Whether the agent shortens a history by itself.
        compacts: bool,
        /// What the run before this one left of the same native id.
        before: Option<Left>,
    },
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub outcome: Outcome,
    /// What it shows about the conversation.
    pub left: Left,
    /// Until when the agent is parked on this host.
    pub park: Option<ParkEnd>,
    pub error: Option<AgentFailure>,
}

impl End {
    fn of(outcome: Outcome, error: Option<AgentFailure>) -> Self {
        Self {
            outcome,
            left: Left::Sound,
            park: None,
            error,
        }
    }
}

/// Judges a run whose agent is gone.
pub fn judge(ending: &Ending<'_>) -> End {
    let seen = ending.seen;
    if seen.succeeded() {
        let refused = seen.was_only_denied();
        let outcome = if refused {
            Outcome::Refused
        } else {
            Outcome::Done
        };
        return End::of(outcome, None);
    }
    if seen.loops() {
        let text = "the agent kept asking the model without a result";
        let error = AgentFailure::new(ErrorClass::Loop, text);
        return End::of(Outcome::Failed, Some(error));
    }
    match ending.stop {
        Some(Stop::Asked) => return End::of(Outcome::Stopped, None),
        Some(Stop::TimedOut) => return End::of(Outcome::Timeout, None),
        None => {}
    }
    match cause(ending) {
        Some(error) => by_error(ending, error),
        None => without_error(ending),
    }
}

/// The error that ended the run, if one is known.
pub(crate) fn cause(ending: &Ending<'_>) -> Option<AgentFailure> {
    let seen = ending.seen;
    let is_open = matches!(ending.exit, Exit::Code(_)) && !ending.exit.is_by_signal();
    let open = seen.open_error().filter(|_| is_open);
    let stderr = ending.stderr.filter(|_| ending.exit.failed());
    let limit = seen.limit().filter(|_| ending.exit.failed());
    let limit = limit.map(|_| AgentFailure::new(ErrorClass::Limit, "usage limit reached"));
    let candidates = [seen.settled_error(), open, stderr, limit.as_ref()];
    let is_exact = |error: &&AgentFailure| {
        let contradicts = error.class.precedes_turn() && seen.turn_began();
        error.class != ErrorClass::Other && !contradicts
    };
    let mut known = candidates.into_iter().flatten();
    if let Some(exact) = known.clone().find(is_exact) {
        return Some(exact.clone());
    }
    let any = known.next()?;
    Some(AgentFailure::new(ErrorClass::Other, &any.text))
}

fn by_error(ending: &Ending<'_>, error: AgentFailure) -> End {
    match error.class {
        ErrorClass::Limit => {
            let none = Limit { resets_at: None };
            let limit = ending.seen.limit().unwrap_or(none);
            let until = park::until(limit, ending.parked_before, ending.now);
            End {
                park: Some(until),
                ..End::of(Outcome::Parked, Some(error))
            }
        }
        ErrorClass::Aborted => End::of(Outcome::Interrupted, Some(error)),
        class => {
            let left = left_behind(ending.start, class);
            let outcome = if left == Left::Unusable {
                Outcome::Unusable
            } else {
                Outcome::Failed
            };
            End {
                left,
                ..End::of(outcome, Some(error))
            }
        }
    }
}

/// Only a resume shows anything about a history.
fn left_behind(start: Start, class: ErrorClass) -> Left {
    match start {
        Start::Fresh => Left::Sound,
        Start::Resumed { compacts, before } => {
            let refusal: Option<ResumeRefusal> = class.refusal(compacts);
            refusal.map_or(Left::Sound, |refusal| Left::by(refusal, true, before))
        }
    }
}

fn without_error(ending: &Ending<'_>) -> End {
    let seen = ending.seen;
    if seen.was_only_denied() && !ending.exit.is_by_signal() {
        return End::of(Outcome::Refused, None);
    }
    let failed = |text: &str| {
        let error = AgentFailure::new(ErrorClass::Other, text);
        End::of(Outcome::Failed, Some(error))
    };
    let said_success = seen.final_event().is_some_and(|last| last.ok);
    match ending.exit {
        _ if said_success => failed("the agent reported success, but no model was asked"),
        exit if exit.is_by_signal() => End::of(Outcome::Interrupted, None),
        // Gemini, after a signal.
        Exit::Code(0) if seen.turn_began() => End::of(Outcome::Interrupted, None),
        Exit::Code(0) => failed("the agent exited without starting a turn"),
        Exit::Code(code) => failed(&format!("the agent exited with code {code} and no result")),
        Exit::Signal(_) | Exit::Unknown => End::of(Outcome::Interrupted, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::line::{Final, RunLine};
    use crate::run::progress::Totals;

    const NOW: Timestamp = Timestamp(1_794_735_000_000);
    const RESUMED: Start = Start::Resumed {
        compacts: true,
        before: None,
    };

    fn seen(lines: &[RunLine]) -> RunProgress {
        let mut seen = RunProgress::new(Totals::NOTHING);
        for line in lines {
            seen.feed(line.clone(), NOW);
        }
        seen
    }

    fn ending(seen: &RunProgress, exit: Exit) -> Ending<'_> {
        Ending {
            seen,
            exit,
            stop: None,
            stderr: None,
            start: Start::Fresh,
            parked_before: 0,
            now: NOW,
        }
    }

    fn outcome(lines: &[RunLine], exit: Exit) -> Outcome {
        judge(&ending(&seen(lines), exit)).outcome
    }

    fn failed(class: ErrorClass) -> RunLine {
        RunLine::Final(Final::failed(AgentFailure::new(class, "told")))
    }

    fn success() -> RunLine {
        RunLine::Final(Final::success(None))
    }

    const EXITS: [Exit; 7] = [
        Exit::Code(0),
        Exit::Code(1),
        Exit::Code(143),
        Exit::Code(101),
        Exit::Signal(9),
        Exit::Signal(15),
        Exit::Unknown,
    ];

    #[test]
    fn success_is_the_final_event_whatever_the_exit() {
        for exit in EXITS {
            let lines = [RunLine::TurnBegan, RunLine::Thought, success()];
            assert_eq!(outcome(&lines, exit), Outcome::Done, "{exit:?}");
            assert_ne!(outcome(&lines[..2], exit), Outcome::Done, "{exit:?}");
            assert_ne!(outcome(&[], exit), Outcome::Done, "{exit:?}");
        }
    }

    #[test]
    fn success_without_a_turn_of_the_model_is_a_failure() {
        let none = RunLine::Final(Final {
            turns: Some(0),
            ..Final::success(Some("cleared".into()))
        });
        let lines = [RunLine::TurnBegan, RunLine::Thought, none];
        assert_eq!(outcome(&lines, Exit::Code(0)), Outcome::Failed);
        let blocked = [RunLine::TurnBegan, success()];
        assert_eq!(outcome(&blocked, Exit::Code(0)), Outcome::Failed);
    }

    #[test]
    fn a_success_that_came_before_the_stop_is_done() {
        for stop in [Stop::Asked, Stop::TimedOut] {
            let done = seen(&[RunLine::Thought, success()]);
            let mut ending = ending(&done, Exit::Signal(15));
            ending.stop = Some(stop);
            assert_eq!(judge(&ending).outcome, Outcome::Done);
        }
    }

    #[test]
    fn a_stop_and_a_timeout_keep_the_conversation_whatever_else_was_said() {
        for class in [
            ErrorClass::Aborted,
            ErrorClass::History,
            ErrorClass::Limit,
            ErrorClass::UnknownConversation,
        ] {
            let seen = seen(&[failed(class)]);
            for (stop, expected) in [
                (Stop::Asked, Outcome::Stopped),
                (Stop::TimedOut, Outcome::Timeout),
            ] {
                let mut ending = ending(&seen, Exit::Code(0));
                ending.stop = Some(stop);
                ending.start = RESUMED;
                let end = judge(&ending);
                assert_eq!((end.outcome, end.left), (expected, Left::Sound));
                assert_eq!(end.park, None);
            }
        }
    }

    #[test]
    fn refused_is_denied_and_nothing_done() {
        let tool = RunLine::Tool { what: "rm".into() };
        let denied = RunLine::Denied { what: "rm".into() };
        let none = [tool.clone(), denied.clone()];
        assert_eq!(outcome(&none, Exit::Code(0)), Outcome::Refused);
        let said = [tool.clone(), denied.clone(), success()];
        assert_eq!(outcome(&said, Exit::Code(0)), Outcome::Refused);
        let some = [tool.clone(), tool, denied, success()];
        assert_eq!(outcome(&some, Exit::Code(0)), Outcome::Done);
        assert_eq!(outcome(&none, Exit::Signal(9)), Outcome::Interrupted);
    }

    #[test]
    fn an_end_without_a_result_is_interrupted_or_failed() {
        let began = [RunLine::TurnBegan];
        for (exit, expected) in [
            (Exit::Signal(9), Outcome::Interrupted),
            (Exit::Unknown, Outcome::Interrupted),
            (Exit::Code(143), Outcome::Interrupted),
            (Exit::Code(0), Outcome::Interrupted),
            (Exit::Code(1), Outcome::Failed),
            (Exit::Code(101), Outcome::Failed),
        ] {
            assert_eq!(outcome(&began, exit), expected, "{exit:?}");
        }
        assert_eq!(outcome(&[], Exit::Code(0)), Outcome::Failed);
    }

    #[test]
    fn f_r25_a_usage_limit_parks_and_keeps_the_conversation() {
        let resets_at = Some(Timestamp(NOW.0 + 7_143_000));
        let lines = [RunLine::Limit { resets_at }, failed(ErrorClass::Limit)];
        let seen_limit = seen(&lines);
        for start in [Start::Fresh, RESUMED] {
            let mut ending = ending(&seen_limit, Exit::Code(1));
            ending.start = start;
            let end = judge(&ending);
            assert_eq!((end.outcome, end.left), (Outcome::Parked, Left::Sound));
            let until = end.park.unwrap();
            assert_eq!((Some(until.at), until.named), (resets_at, true));
        }
        let unnamed = seen(&[failed(ErrorClass::Limit)]);
        let mut ending = ending(&unnamed, Exit::Code(1));
        ending.parked_before = 1;
        let until = judge(&ending).park.unwrap();
        assert_eq!(until.at.0 - NOW.0, 3_600_000);
        assert!(!until.named);
    }

    #[test]
    fn a_limit_that_the_agent_got_over_parks_nothing() {
        let resets_at = Some(Timestamp(NOW.0 + 7_143_000));
        let over = [
            RunLine::Limit { resets_at },
            RunLine::Thought,
            failed(ErrorClass::Server),
        ];
        let end = judge(&ending(&seen(&over), Exit::Code(1)));
        assert_eq!((end.outcome, end.park), (Outcome::Failed, None));
    }

    #[test]
    fn a_history_that_is_refused_is_unusable_on_a_resume_only() {
        for class in [ErrorClass::History, ErrorClass::Damaged] {
            let lines = seen(&[failed(class)]);
            let mut ending = ending(&lines, Exit::Code(1));
            let fresh = judge(&ending);
            assert_eq!((fresh.outcome, fresh.left), (Outcome::Failed, Left::Sound));
            ending.start = RESUMED;
            let end = judge(&ending);
            assert_eq!((end.outcome, end.left), (Outcome::Unusable, Left::Unusable));
        }
    }

    #[test]
    fn an_overflow_counts_the_second_time_where_the_agent_compacts() {
        let overflow = seen(&[RunLine::TurnBegan, failed(ErrorClass::Overflow)]);
        let end = |compacts, before| {
            let mut ending = ending(&overflow, Exit::Code(1));
            ending.start = Start::Resumed { compacts, before };
            let end = judge(&ending);
            (end.outcome, end.left)
        };
        let first = (Outcome::Failed, Left::Overflowed);
        let second = (Outcome::Unusable, Left::Unusable);
        assert_eq!(end(true, None), first);
        assert_eq!(end(true, Some(Left::Sound)), first);
        assert_eq!(end(true, Some(Left::Overflowed)), second);
        assert_eq!(end(false, None), second);
    }

    #[test]
    fn errors_that_are_not_the_conversations_keep_it() {
        for class in [
            ErrorClass::Authentication,
            ErrorClass::Billing,
            ErrorClass::Server,
            ErrorClass::Network,
            ErrorClass::Busy,
            ErrorClass::Untrusted,
            ErrorClass::Cap,
            ErrorClass::Other,
        ] {
            let lines = seen(&[failed(class)]);
            let mut ending = ending(&lines, Exit::Code(1));
            ending.start = RESUMED;
            let end = judge(&ending);
            assert_eq!((end.outcome, end.left), (Outcome::Failed, Left::Sound));
        }
    }

    #[test]
    fn standard_error_counts_after_a_failed_exit_and_before_a_turn() {
        let unknown = AgentFailure::new(ErrorClass::UnknownConversation, "no such conversation");
        let of = |lines: &[RunLine], exit: Exit| {
            let seen = seen(lines);
            let mut ending = ending(&seen, exit);
            ending.start = RESUMED;
            ending.stderr = Some(&unknown);
            judge(&ending).left
        };
        assert_eq!(of(&[], Exit::Code(1)), Left::Unknown);
        for exit in [
            Exit::Code(0),
            Exit::Signal(9),
            Exit::Unknown,
            Exit::Code(137),
        ] {
            assert_eq!(of(&[], exit), Left::Sound, "{exit:?}");
        }
        assert_eq!(of(&[RunLine::TurnBegan], Exit::Code(1)), Left::Sound);
    }

    #[test]
    fn a_class_from_the_agents_files_is_more_exact_than_its_message() {
        let told = RunLine::Problem(AgentFailure::new(ErrorClass::Overflow, ""));
        let lines = seen(&[failed(ErrorClass::Other), told]);
        let end = judge(&ending(&lines, Exit::Code(1)));
        let error = end.error.unwrap();
        assert_eq!(
            (error.class, error.text.as_str()),
            (ErrorClass::Overflow, "told")
        );
    }

    #[test]
    fn a_problem_that_the_agent_got_over_is_not_the_cause() {
        let problem = RunLine::Problem(AgentFailure::new(ErrorClass::History, "old"));
        let lines = seen(&[problem.clone(), RunLine::Thought]);
        let end = judge(&ending(&lines, Exit::Code(1)));
        assert_eq!(end.error.unwrap().class, ErrorClass::Other);
        let open = seen(&[RunLine::TurnBegan, problem]);
        let end = judge(&ending(&open, Exit::Code(1)));
        assert_eq!(end.error.unwrap().class, ErrorClass::History);
    }

    #[test]
    fn an_error_that_rules_success_out_does_so() {
        let error = RunLine::Failure(AgentFailure::new(ErrorClass::Other, "no"));
        let lines = [error, RunLine::Thought, success()];
        assert_eq!(outcome(&lines, Exit::Code(0)), Outcome::Failed);
    }

    #[test]
    fn a_loop_is_a_failure_even_though_the_runner_ends_it() {
        let step = RunLine::StepEnded {
            finished: false,
            used_tokens: false,
        };
        let lines = vec![step; 25];
        let end = judge(&ending(&seen(&lines), Exit::Signal(15)));
        assert_eq!(end.outcome, Outcome::Failed);
        assert_eq!(end.error.unwrap().class, ErrorClass::Loop);
    }
}
