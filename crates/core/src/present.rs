//! Which session a process belongs to.
//!
//! Pure, and the only place that decides this. A process belongs to the open sessions that have it as their
//! current process. A process that hosts several conversations belongs to several sessions, and only a name
//! selects one: what the process reports about its conversation, or the variables of a caller below it. Nothing
//! is selected by age or order.

use crate::agent;
use crate::id::{NativeId, SessionId, SessionToken};
use crate::process::{CallerFacts, Process};
use crate::session::Session;

/// What selects one of several sessions that share a process.
#[derive(Debug, Clone, Copy)]
pub enum SessionSelector<'a> {
    /// The process itself reports, in this conversation.
    Conversation(Option<&'a NativeId>),
    /// A process below it calls, with these variables.
    Variables(&'a CallerFacts),
}

/// The session of a process.
#[derive(Debug, Clone, PartialEq)]
pub enum Present {
    /// No session, or none in that conversation.
    NoSession,
    One(Box<Session>),
    /// It hosts several, and the name selects this one.
    Picked(Box<Session>),
    /// It hosts these, and nothing selects one. If it reports in a conversation, these are the sessions in it.
    Several(Vec<Session>),
}

impl Present {
    pub fn one(self) -> Option<Session> {
        match self {
            Present::One(session) | Present::Picked(session) => Some(*session),
            Present::NoSession | Present::Several(_) => None,
        }
    }
}

/// The open sessions whose current process or daemon is exactly this one, among those with the same pid.
pub fn those_of(mut at_place: Vec<Session>, process: &Process) -> Vec<Session> {
    at_place.retain(|session| session.is_open() && is_run_by(session, process));
    at_place
}

/// Whether a process is a session's own, or the daemon that runs its conversation.
pub fn is_run_by(session: &Session, process: &Process) -> bool {
    let mut recorded = session.process.iter().chain(&session.daemon);
    recorded.any(|recorded| recorded.same_as(process))
}

/// Which of its sessions a process acts as.
///
/// A caller below a process that hosts a single session belongs to that session, whatever a variable contains:
/// the kernel takes precedence over the environment. An event of a host belongs only to its conversation; if no
/// session is in it yet, one is about to be created.
pub fn which(mut sessions: Vec<Session>, named: SessionSelector<'_>) -> Present {
    let is_host = sessions.iter().any(|session| session.hosted);
    let is_meant = |session: &Session| match named {
        SessionSelector::Conversation(native_id) => {
            !is_host || (native_id.is_some() && session.native_id.as_ref() == native_id)
        }
        SessionSelector::Variables(facts) => is_named_by(facts, session),
    };
    let mut meant = sessions.iter().enumerate().filter(|(_, one)| is_meant(one));
    let (first, second) = (meant.next(), meant.next());
    let only = match (first, second) {
        (Some((place, _)), None) => Some(place),
        _ => None,
    };
    let is_shared = second.is_some();
    let calls = matches!(named, SessionSelector::Variables(_));
    match (sessions.len(), only) {
        (0, _) => Present::NoSession,
        (1, only) if calls || only.is_some() => Present::One(Box::new(sessions.remove(0))),
        (_, Some(place)) => Present::Picked(Box::new(sessions.swap_remove(place))),
        (_, None) if calls || !is_host => Present::Several(sessions),
        (_, None) if is_shared => {
            sessions.retain(is_meant);
            Present::Several(sessions)
        }
        (_, None) => Present::NoSession,
    }
}

/// The session of a caller among these, which are all that is known: that of the nearest process above it that has
/// one. An agent without a session hides those further up.
pub fn among(known: &[Session], facts: &CallerFacts) -> Option<Session> {
    for one in &facts.chain {
        let here = those_of(known.to_vec(), &one.process);
        if !here.is_empty() {
            return which(here, SessionSelector::Variables(facts)).one();
        }
        if agent::agent_of(&one.looks).is_some() {
            return None;
        }
    }
    None
}

/// Which of several sessions in one conversation of a daemon an event belongs to: the one at the window that
/// the daemon reports, else the owner of the conversation.
pub fn in_conversation(
    mut sessions: Vec<Session>,
    window: Option<&Process>,
    owner: Option<SessionId>,
) -> Option<Session> {
    let is_at = |session: &Session| {
        let its = session.process.as_ref();
        its.zip(window)
            .is_some_and(|(its, named)| its.same_as(named))
    };
    let at_window = sessions.iter().position(is_at);
    let owns = |session: &Session| Some(session.id) == owner;
    let place = at_window.or_else(|| sessions.iter().position(owns))?;
    Some(sessions.swap_remove(place))
}

/// Whether a caller's variables name a session; TENURE_SESSION takes precedence over the agents' own.
fn is_named_by(facts: &CallerFacts, session: &Session) -> bool {
    let variable = facts.session_variable.as_deref();
    if let Some(token) = variable.and_then(|text| SessionToken::parse(text).ok()) {
        return token == session.token();
    }
    facts.native_variables.iter().any(|variable| {
        let in_it = |id: &NativeId| id.as_str() == variable.value;
        variable.is_of(&session.agent) && session.native_id.as_ref().is_some_and(in_it)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AgentName, Handle, HostId};
    use crate::process::{BootId, NativeVariable, Observer, StartTicks};
    use crate::session::{Closed, ClosedBy};
    use crate::time::{Deadline, Era, Timestamp};

    fn boot() -> BootId {
        BootId {
            id: "b".into(),
            private: false,
        }
    }

    fn process(ticks: u64) -> Process {
        Process {
            host: HostId::new("h"),
            boot: boot(),
            pid_ns: 1,
            pid: 7,
            start: StartTicks {
                ticks,
                shifted: false,
            },
        }
    }

    fn native(text: &str) -> NativeId {
        NativeId::parse(text).expect("an id")
    }

    fn session(in_it: char, hosted: bool) -> Session {
        let era = Era {
            id: "b".into(),
            private: false,
        };
        Session {
            native_id: (in_it != '-').then(|| native(&in_it.to_string())),
            hosted,
            process: Some(process(100)),
            ..Session::new(
                SessionId::mint(0, [in_it as u8; 10]),
                Handle::parse("openclaw-k7qd").expect("a handle"),
                AgentName::known("openclaw"),
                Timestamp(0),
                Deadline { era, at: 0 },
            )
        }
    }

    fn variables(token: Option<&str>, in_it: Option<&str>) -> CallerFacts {
        let native_variables = in_it.map(|value| NativeVariable {
            agent: "openclaw",
            name: "OPENCLAW_SESSION",
            value: value.into(),
        });
        CallerFacts {
            observer: Observer {
                host: HostId::new("h"),
                boot: boot(),
                pid_ns: 1,
                proc_is_own: true,
                shared_store: false,
            },
            chain: Vec::new(),
            chain_broken: None,
            has_terminal: false,
            at_terminal: false,
            session_variable: token.map(str::to_owned),
            native_variables: native_variables.into_iter().collect(),
            dir: String::new(),
            repository: None,
            token: None,
        }
    }

    /// The conversation of the selected session, or how many match.
    fn shown(found: Present) -> String {
        match found {
            Present::NoSession => "nobody".into(),
            Present::One(session) | Present::Picked(session) => match session.native_id {
                Some(id) => id.to_string(),
                None => "-".into(),
            },
            Present::Several(all) => all.len().to_string(),
        }
    }

    #[test]
    fn what_a_process_says_is_its_sessions_or_its_conversations() {
        // A status line that took only the newest showed one conversation's claims in another's window.
        let rows = [
            ("", false, Some("a"), "nobody"),
            ("a", false, Some("a"), "a"),
            ("a", false, Some("b"), "a"),
            ("a", false, None, "a"),
            ("-", false, Some("a"), "-"),
            ("ab", true, Some("a"), "a"),
            ("ab", true, Some("b"), "b"),
            ("ab", true, None, "nobody"),
            ("a", true, Some("b"), "nobody"),
            ("aab", true, Some("a"), "2"),
        ];
        for (there, hosted, said, expected) in rows {
            let sessions = there.chars().map(|one| session(one, hosted)).collect();
            let said = said.map(native);
            let found = which(sessions, SessionSelector::Conversation(said.as_ref()));
            assert_eq!(shown(found), expected, "{there} {hosted} {said:?}");
        }
    }

    #[test]
    fn of_two_in_one_conversation_the_one_at_the_window_speaks_else_the_owner() {
        let at = |in_it, ticks| Session {
            process: Some(process(ticks)),
            ..session(in_it, true)
        };
        let (one, two) = (at('a', 100), at('b', 101));
        let rows = [
            (Some(101), Some(one.id), Some(two.id)),
            (Some(100), Some(two.id), Some(one.id)),
            (Some(102), Some(one.id), Some(one.id)),
            (None, Some(two.id), Some(two.id)),
            (None, None, None),
        ];
        for (window, owner, expected) in rows {
            let window = window.map(process);
            let both = vec![one.clone(), two.clone()];
            let found = in_conversation(both, window.as_ref(), owner);
            assert_eq!(found.map(|session| session.id), expected, "{window:?}");
        }
    }

    #[test]
    fn a_caller_below_a_host_is_picked_by_its_variables_among_exactly_those() {
        let token = |one| session(one, true).token().to_string();
        let (a, c) = (token('a'), token('c'));
        let rows = [
            ("", Some(a.as_str()), None, "nobody"),
            ("a", None, None, "a"),
            ("a", Some(c.as_str()), Some("c"), "a"),
            ("ab", None, None, "2"),
            ("ab", Some(a.as_str()), None, "a"),
            ("ab", None, Some("b"), "b"),
            ("ab", Some(a.as_str()), Some("b"), "a"),
            ("ab", Some(c.as_str()), Some("b"), "2"),
            ("ab", Some("nonsense"), Some("b"), "b"),
        ];
        for (there, token, in_it, expected) in rows {
            let sessions = there.chars().map(|one| session(one, true)).collect();
            let facts = variables(token, in_it);
            let found = which(sessions, SessionSelector::Variables(&facts));
            assert_eq!(shown(found), expected, "{there} {token:?} {in_it:?}");
        }
    }

    #[test]
    fn only_open_sessions_of_this_very_process_count() {
        let ended = Session {
            closed: Some(Closed {
                at: Timestamp(0),
                by: ClosedBy::End,
                why: "it ended itself".into(),
                kind: ClosedBy::End.usual_kind(),
                dismissed_at: None,
            }),
            ..session('a', false)
        };
        let unverified = Session {
            process: None,
            ..session('b', false)
        };
        let predecessor = Session {
            process: Some(process(99)),
            ..session('c', false)
        };
        let elsewhere = Session {
            process: Some(process(98)),
            daemon: Some(process(100)),
            ..session('e', true)
        };
        let all = vec![
            ended,
            unverified,
            predecessor,
            session('d', false),
            elsewhere.clone(),
        ];
        let here = those_of(all, &process(100));
        assert_eq!(here, [session('d', false), elsewhere]);
    }
}
