//! How a registration is resolved: which session a process with a conversation is.
//!
//! Pure: what the store knows about the process and the conversation comes in as a [`View`], and a [`Plan`]
//! comes out. Nothing is ever matched by terminal, directory, name or age. The process decides first. The
//! conversation decides only for a process without a session, and only if no live session is in it.

use crate::id::{NativeId, SessionId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistrationSource {
    /// Its start, or a person's command.
    Start,
    /// The start of a conversation that the agent reports as a fork.
    Fork,
    /// Any later event: the start was lost.
    Event,
}

/// An incoming registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The conversation that the process reports.
    pub native_id: Option<NativeId>,
    pub source: RegistrationSource,
    /// Whether the process was started with its agent's fork flag.
    pub fork_flag: bool,
    /// Whether the process hosts several conversations.
    pub hosted: bool,
    /// Whether it is the window of a daemon's conversations, which shows one of them at a time.
    pub in_window: bool,
}

/// An open session whose current process is the registering one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession {
    pub id: SessionId,
    pub native_id: Option<NativeId>,
    /// The conversation that it was forked from.
    pub fork_of: Option<NativeId>,
    /// Whether it shares the process.
    pub hosted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationOwner {
    pub id: SessionId,
    /// Whether it is gone: ended, proved dead, or expired and not checkable.
    pub gone: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// Open sessions whose current process is this one.
    pub here: Vec<OpenSession>,
    /// The session that ended while this process continued.
    pub ended_here: Option<SessionId>,
    /// The session of which this process was an earlier life.
    pub superseded: Option<SessionId>,
    pub owner: Option<ConversationOwner>,
}

/// What happens to the ownership of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NativeMove {
    /// It is, or becomes, the session's own.
    Own,
    /// Another live session owns it: this one visits.
    Visit(SessionId),
    /// A session that is gone owned it. It moves, with what that session would be granted again.
    Take(SessionId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// The process is already this session.
    Same(SessionId),
    /// The session gets its first conversation.
    First(SessionId, NativeMove),
    /// The session enters another conversation.
    Rotated(SessionId, NativeMove),
    /// A separate session in a process that hosts several.
    Hosted,
    /// A fork: a separate session.
    Forked {
        /// Whether the reported conversation is its own; otherwise it is its parent's.
        own_native: bool,
    },
    /// The next process of a session that is gone.
    Resumed(SessionId),
    /// A second live process in a session's conversation.
    Twin {
        /// The session that owns the conversation, or whose earlier life this process was.
        of: SessionId,
        /// Whether the reported conversation belongs to that session.
        visits: bool,
    },
    New,
    /// The same, found at a later event than its start.
    Healed,
    /// Several hosted sessions match, and nothing selects one.
    Ambiguous,
}

impl Plan {
    /// The session that registers again, if it is a known one.
    pub fn known(&self) -> Option<SessionId> {
        match self {
            Plan::Same(id) | Plan::First(id, _) | Plan::Rotated(id, _) | Plan::Resumed(id) => {
                Some(*id)
            }
            _ => None,
        }
    }

    pub fn word(&self) -> &'static str {
        match self {
            Plan::Same(_) | Plan::First(..) => "same",
            Plan::Rotated(..) => "rotated",
            Plan::Hosted => "hosted",
            Plan::Forked { .. } => "forked",
            Plan::Resumed(_) => "resumed",
            Plan::Twin { .. } => "twin",
            Plan::New => "new",
            Plan::Healed => "healed",
            Plan::Ambiguous => "ambiguous",
        }
    }
}

pub fn plan(arrival: &Arrival, view: &View) -> Plan {
    if arrival.hosted {
        if let Some(plan) = plan_hosted(arrival, view) {
            return plan;
        }
    } else if let Some(session) = view.here.iter().find(|session| !session.hosted) {
        return plan_here(session, arrival, view.owner);
    } else if !view.here.is_empty() {
        return plan_hosted(arrival, view).unwrap_or(Plan::Hosted);
    }
    plan_newcomer(arrival, view)
}

/// The process is already a session.
fn plan_here(session: &OpenSession, arrival: &Arrival, owner: Option<ConversationOwner>) -> Plan {
    let Some(native_id) = &arrival.native_id else {
        return Plan::Same(session.id);
    };
    if session.fork_of.as_ref() == Some(native_id) || session.native_id.as_ref() == Some(native_id)
    {
        return Plan::Same(session.id);
    }
    let moves = match owner {
        Some(owner) if owner.id == session.id => return Plan::Same(session.id),
        Some(owner) if owner.gone => NativeMove::Take(owner.id),
        Some(owner) => NativeMove::Visit(owner.id),
        None => NativeMove::Own,
    };
    match session.native_id {
        None => Plan::First(session.id, moves),
        Some(_) => Plan::Rotated(session.id, moves),
    }
}

/// The process is a host: each conversation is a session. `None` means that it is new.
fn plan_hosted(arrival: &Arrival, view: &View) -> Option<Plan> {
    let Some(native_id) = &arrival.native_id else {
        return match view.here.as_slice() {
            [] => None,
            [only] => Some(Plan::Same(only.id)),
            _ => Some(Plan::Ambiguous),
        };
    };
    let mut here = view.here.iter();
    let known = here.find(|session| session.native_id.as_ref() == Some(native_id));
    if let Some(session) = known {
        return Some(Plan::Same(session.id));
    }
    // A session that was registered by process alone waits for its first conversation. The session of a window goes
    // on with the window.
    let mut here = view.here.iter();
    let goes_on =
        here.find(|session| arrival.in_window || (!session.hosted && session.native_id.is_none()))?;
    Some(plan_here(goes_on, arrival, view.owner))
}

/// The process has no session yet.
fn plan_newcomer(arrival: &Arrival, view: &View) -> Plan {
    if let Some(of) = view.superseded {
        let visits = view.owner.is_some_and(|owner| owner.id == of);
        return Plan::Twin { of, visits };
    }
    if arrival.source == RegistrationSource::Fork || arrival.fork_flag {
        return Plan::Forked {
            own_native: fork_owns_native(arrival, view.owner),
        };
    }
    if let Some(id) = view.ended_here {
        let still_its = view.owner.is_none_or(|owner| owner.id == id);
        if still_its && (arrival.native_id.is_none() || view.owner.is_some()) {
            return Plan::Resumed(id);
        }
    }
    match (view.owner, arrival.source) {
        (Some(owner), _) if owner.gone => Plan::Resumed(owner.id),
        (Some(owner), _) => Plan::Twin {
            of: owner.id,
            visits: true,
        },
        (None, _) if arrival.hosted => Plan::Hosted,
        (None, RegistrationSource::Event) => Plan::Healed,
        (None, _) => Plan::New,
    }
}

/// A conversation with an owner is the parent's. An unknown one is the fork's own if the agent reports a fork,
/// or at any event after the start; a start with only the fork flag still names the parent's (seen with Claude
/// Code 2.1.197).
fn fork_owns_native(arrival: &Arrival, owner: Option<ConversationOwner>) -> bool {
    arrival.native_id.is_some() && owner.is_none() && arrival.source != RegistrationSource::Start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> SessionId {
        SessionId::mint(0, [n; 10])
    }

    fn native(text: &str) -> Option<NativeId> {
        NativeId::parse(text).ok()
    }

    fn arrives(native_id: &str) -> Arrival {
        Arrival {
            native_id: native(native_id),
            source: RegistrationSource::Start,
            fork_flag: false,
            hosted: false,
            in_window: false,
        }
    }

    fn here(n: u8, native_id: &str) -> OpenSession {
        OpenSession {
            id: id(n),
            native_id: native(native_id),
            fork_of: None,
            hosted: false,
        }
    }

    fn owned(n: u8, gone: bool) -> Option<ConversationOwner> {
        Some(ConversationOwner { id: id(n), gone })
    }

    fn with(here: OpenSession) -> View {
        View {
            here: vec![here],
            ..View::default()
        }
    }

    fn of(owner: Option<ConversationOwner>) -> View {
        View {
            owner,
            ..View::default()
        }
    }

    fn twin(visits: bool) -> Plan {
        Plan::Twin { of: id(1), visits }
    }

    fn by(source: RegistrationSource, native_id: &str) -> Arrival {
        Arrival {
            source,
            ..arrives(native_id)
        }
    }

    #[test]
    fn an_unknown_process_with_an_unknown_conversation_is_new_or_healed() {
        assert_eq!(plan(&arrives("a"), &View::default()), Plan::New);
        assert_eq!(plan(&arrives(""), &View::default()), Plan::New);
        let late = by(RegistrationSource::Event, "a");
        assert_eq!(plan(&late, &View::default()), Plan::Healed);
    }

    #[test]
    fn f_i06_a_live_process_keeps_its_session_when_its_conversation_changes() {
        let view = with(here(1, "a"));
        assert_eq!(plan(&arrives("a"), &view), Plan::Same(id(1)));
        assert_eq!(plan(&arrives(""), &view), Plan::Same(id(1)));
        assert_eq!(
            plan(&arrives("b"), &view),
            Plan::Rotated(id(1), NativeMove::Own)
        );
        let back = View {
            owner: owned(1, false),
            ..view.clone()
        };
        assert_eq!(plan(&arrives("older"), &back), Plan::Same(id(1)));
        let of_dead = View {
            owner: owned(2, true),
            ..view.clone()
        };
        assert_eq!(
            plan(&arrives("b"), &of_dead),
            Plan::Rotated(id(1), NativeMove::Take(id(2)))
        );
        let of_living = View {
            owner: owned(2, false),
            ..view
        };
        assert_eq!(
            plan(&arrives("b"), &of_living),
            Plan::Rotated(id(1), NativeMove::Visit(id(2)))
        );
    }

    #[test]
    fn the_first_conversation_is_no_rotation() {
        let view = with(here(1, ""));
        assert_eq!(
            plan(&arrives("a"), &view),
            Plan::First(id(1), NativeMove::Own)
        );
    }

    #[test]
    fn f_i22_a_late_start_event_is_a_rotation_not_a_second_session() {
        let view = with(here(1, "a"));
        let late = by(RegistrationSource::Event, "b");
        assert_eq!(plan(&late, &view), Plan::Rotated(id(1), NativeMove::Own));
    }

    #[test]
    fn f_i20_a_process_that_hosts_has_a_session_for_each_conversation() {
        let hosted = |text: &str| Arrival {
            hosted: true,
            ..arrives(text)
        };
        assert_eq!(plan(&hosted("a"), &View::default()), Plan::Hosted);
        let one = OpenSession {
            hosted: true,
            ..here(1, "a")
        };
        let view = with(one.clone());
        assert_eq!(plan(&hosted("a"), &view), Plan::Same(id(1)));
        assert_eq!(plan(&hosted("b"), &view), Plan::Hosted);
        // The window of a daemon's conversations shows one at a time.
        let in_window = Arrival {
            in_window: true,
            ..hosted("b")
        };
        let rotated = Plan::Rotated(id(1), NativeMove::Own);
        assert_eq!(plan(&in_window, &view), rotated);
        let two = View {
            here: vec![
                one,
                OpenSession {
                    hosted: true,
                    ..here(2, "b")
                },
            ],
            ..View::default()
        };
        assert_eq!(plan(&hosted(""), &two), Plan::Ambiguous);
        let resumed = View {
            owner: owned(3, true),
            ..two
        };
        assert_eq!(plan(&hosted("c"), &resumed), Plan::Resumed(id(3)));
    }

    #[test]
    fn f_i08_a_second_live_resume_is_a_twin() {
        let view = of(owned(1, false));
        assert_eq!(plan(&arrives("a"), &view), twin(true));
    }

    #[test]
    fn a_dead_sessions_conversation_is_resumed() {
        let view = of(owned(1, true));
        assert_eq!(plan(&arrives("a"), &view), Plan::Resumed(id(1)));
    }

    #[test]
    fn f_h12_a_fork_is_never_its_parent() {
        let parent = of(owned(1, true));
        let flagged = Arrival {
            fork_flag: true,
            ..arrives("a")
        };
        assert_eq!(plan(&flagged, &parent), Plan::Forked { own_native: false });
        assert_eq!(
            plan(&flagged, &View::default()),
            Plan::Forked { own_native: false }
        );
        let said = by(RegistrationSource::Fork, "b");
        assert_eq!(
            plan(&said, &View::default()),
            Plan::Forked { own_native: true }
        );

        let fork = OpenSession {
            fork_of: native("a"),
            ..here(2, "")
        };
        let running = View {
            here: vec![fork],
            ..parent
        };
        assert_eq!(plan(&flagged, &running), Plan::Same(id(2)));
    }

    #[test]
    fn a_superseded_process_becomes_a_twin() {
        let view = View {
            superseded: Some(id(1)),
            owner: owned(1, false),
            ..View::default()
        };
        assert_eq!(plan(&arrives("a"), &view), twin(true));
        let silent = View {
            superseded: Some(id(1)),
            ..View::default()
        };
        assert_eq!(plan(&arrives(""), &silent), twin(false));
    }

    #[test]
    fn a_session_that_ended_while_its_process_went_on_is_resumed() {
        let view = View {
            ended_here: Some(id(1)),
            ..View::default()
        };
        assert_eq!(plan(&arrives(""), &view), Plan::Resumed(id(1)));
        let same = View {
            owner: owned(1, true),
            ..view.clone()
        };
        assert_eq!(plan(&arrives("a"), &same), Plan::Resumed(id(1)));
        assert_eq!(plan(&arrives("b"), &view), Plan::New);
    }
}
