//! What an end means later: whether a session left or was cut off.
//!
//! A person leaves through the agent's own exit, and an unattended turn leaves when it is over. Everything else
//! cuts off: a hang-up, a signal, a crash, a reboot. Agents report too little to distinguish the two, so their
//! terminals and the traces of their processes are checked too. Doubt counts as cut off, because that is shown
//! and can be dismissed, while a session that left is not shown again.

use serde::{Deserialize, Serialize};

use crate::agent::spec_of;
use crate::id::AgentName;
use crate::session::{Doing, EndKind, Session};
use crate::time::Timestamp;

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending<'a> {
    /// A request through tenure.
    Asked,
    /// The agent reported its end.
    Said { reason: &'a str, terminal: Terminal },
    /// Its process is gone.
    Died {
        /// Whether the agent had announced its exit and did nothing since, or its process exited in order.
        in_order: bool,
    },
}

/// What the terminal of an ending agent shows about a person there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Terminal {
    /// Nothing: there is none, or someone typed in it recently.
    #[default]
    Open,
    /// No one typed in it for a while, so no one asked the agent to exit there.
    Quiet,
    /// It is gone: its window was closed, or its connection broke.
    Gone,
}

impl Terminal {
    /// Whether someone may have asked the agent to exit in it.
    pub fn lets_leave(self, agent: &AgentName) -> bool {
        let ends_alike = || spec_of(agent).is_some_and(|spec| spec.ends_alike);
        match self {
            Terminal::Open => true,
            Terminal::Quiet => !ends_alike(),
            Terminal::Gone => false,
        }
    }
}

pub fn kind(session: &Session, doing: Option<Doing>, ending: Ending<'_>) -> EndKind {
    let left = match ending {
        Ending::Asked => true,
        _ if is_headless(session) => {
            doing.is_some_and(Doing::rests) && !awaits_its_first_turn(session)
        }
        Ending::Said { reason, terminal } => {
            let spec = spec_of(&session.agent);
            let is_clear = spec.is_none_or(|spec| !spec.unclear_ends.contains(&reason));
            is_clear && terminal.lets_leave(&session.agent)
        }
        Ending::Died { in_order } => in_order,
    };
    if left { EndKind::Left } else { EndKind::CutOff }
}

/// Whether a session that seems to be cut off was stopped by a person, who used its agent's own command at this time.
/// One that reported since then was started again.
pub fn was_stopped(session: &Session, stopped_at: Option<Timestamp>) -> bool {
    let closed = session.closed.as_ref();
    let is_cut_off = closed.is_some_and(|closed| closed.kind == EndKind::CutOff);
    is_cut_off && stopped_at.is_some_and(|at| at >= session.seen_at)
}

fn is_headless(session: &Session) -> bool {
    let start = session.start.as_ref();
    start.is_some_and(|start| start.headless)
}

/// Whether a session is unattended and nothing has happened since its start: it is idle, but not because a turn
/// ended.
pub fn awaits_its_first_turn(session: &Session) -> bool {
    is_headless(session) && is_untouched(session)
}

/// Whether nothing has happened since the start of its process.
pub fn is_untouched(session: &Session) -> bool {
    let resting = session.activity.as_ref();
    let resting = resting.filter(|activity| activity.doing.rests());
    let asked_at = session.attended_at;
    resting.is_some_and(|activity| asked_at.is_some_and(|asked| activity.since <= asked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AgentName, Handle, SessionId};
    use crate::session::{Activity, Closed, ClosedBy, Start};
    use crate::time::{Deadline, Era};

    fn session(agent: &'static str, headless: bool) -> Session {
        let lease = Deadline {
            era: Era {
                id: "b".into(),
                private: false,
            },
            at: 0,
        };
        Session {
            start: Some(Start {
                headless,
                flags: Vec::new(),
            }),
            ..Session::new(
                SessionId::mint(0, [7; 10]),
                Handle::parse("claude-k7qd").unwrap(),
                AgentName::known(agent),
                Timestamp(0),
                lease,
            )
        }
    }

    const DIED: Ending<'_> = Ending::Died { in_order: false };

    fn said(reason: &str) -> Ending<'_> {
        Ending::Said {
            reason,
            terminal: Terminal::Open,
        }
    }

    fn of_person(agent: &'static str, doing: Doing, ending: Ending<'_>) -> EndKind {
        kind(&session(agent, false), Some(doing), ending)
    }

    #[test]
    fn a_person_leaves_by_the_agent_s_own_way_out() {
        for (agent, reason, expected) in [
            ("claude", "prompt_input_exit", EndKind::Left),
            ("claude", "logout", EndKind::Left),
            ("claude", "other", EndKind::CutOff),
            ("codex", "other", EndKind::Left),
            ("gemini", "exit", EndKind::Left),
            ("qwen", "prompt_input_exit", EndKind::Left),
            ("nightly", "", EndKind::Left),
        ] {
            for doing in [Doing::Idle, Doing::Busy, Doing::Waiting] {
                let kind = of_person(agent, doing, said(reason));
                assert_eq!(kind, expected, "{agent} {reason} {doing:?}");
            }
        }
        let asked = of_person("claude", Doing::Busy, Ending::Asked);
        assert_eq!(asked, EndKind::Left);
    }

    #[test]
    fn whose_terminal_is_gone_did_not_leave_whatever_the_agent_says() {
        let ending = Ending::Said {
            reason: "exit",
            terminal: Terminal::Gone,
        };
        assert_eq!(of_person("gemini", Doing::Idle, ending), EndKind::CutOff);
    }

    #[test]
    fn who_says_the_same_at_a_signal_leaves_only_where_somebody_typed() {
        for (agent, reason, terminal, expected) in [
            ("gemini", "exit", Terminal::Quiet, EndKind::CutOff),
            (
                "qwen",
                "prompt_input_exit",
                Terminal::Quiet,
                EndKind::CutOff,
            ),
            ("gemini", "exit", Terminal::Open, EndKind::Left),
            // Its report counts: someone may have asked it to exit from elsewhere.
            (
                "claude",
                "prompt_input_exit",
                Terminal::Quiet,
                EndKind::Left,
            ),
        ] {
            let ending = Ending::Said { reason, terminal };
            let kind = of_person(agent, Doing::Idle, ending);
            assert_eq!(kind, expected, "{agent} {terminal:?}");
        }
    }

    #[test]
    fn a_turn_without_a_person_leaves_when_it_is_over() {
        for ending in [said("other"), said("exit"), DIED] {
            let of = |doing| kind(&session("claude", true), doing, ending);
            assert_eq!(of(Some(Doing::Idle)), EndKind::Left, "{ending:?}");
            for doing in [None, Some(Doing::Busy), Some(Doing::Waiting)] {
                assert_eq!(of(doing), EndKind::CutOff, "{ending:?} {doing:?}");
            }
        }
    }

    #[test]
    fn who_was_killed_before_its_first_turn_did_not_leave() {
        let mut early = session("claude", true);
        let rests_since = |at: i64| Activity::new(Doing::Idle, Timestamp(at));
        early.attended_at = Some(Timestamp(5));
        early.activity = Some(rests_since(5));
        for ending in [said("other"), DIED] {
            let kind = kind(&early, Some(Doing::Idle), ending);
            assert_eq!(kind, EndKind::CutOff, "{ending:?}");
        }
        early.activity = Some(rests_since(6));
        assert_eq!(kind(&early, Some(Doing::Idle), DIED), EndKind::Left);
    }

    #[test]
    fn what_its_agent_was_told_to_stop_was_not_cut_off_unless_it_came_back() {
        let mut ended = session("claude", false);
        ended.seen_at = Timestamp(10);
        assert!(!was_stopped(&ended, Some(Timestamp(11))), "it is open");
        ended.closed = Some(Closed {
            at: Timestamp(10),
            by: ClosedBy::End,
            why: String::new(),
            kind: EndKind::CutOff,
            dismissed_at: None,
        });
        assert!(was_stopped(&ended, Some(Timestamp(11))));
        assert!(!was_stopped(&ended, Some(Timestamp(9))), "an earlier one");
        assert!(!was_stopped(&ended, None));
    }

    #[test]
    fn a_process_that_vanished_was_cut_off_unless_it_said_goodbye() {
        let in_order = Ending::Died { in_order: true };
        assert_eq!(of_person("opencode", Doing::Idle, DIED), EndKind::CutOff);
        assert_eq!(of_person("opencode", Doing::Idle, in_order), EndKind::Left);
        let mut unread = session("claude", false);
        unread.start = None;
        assert_eq!(kind(&unread, Some(Doing::Idle), DIED), EndKind::CutOff);
    }
}
