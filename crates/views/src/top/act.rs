//! What a person can do to the session under the cursor, each by the use case of its verb.

use std::time::Duration;

use tenure_app::open::Context;
use tenure_app::{keeper, survivors, window};
use tenure_core::reason::Reason;
use tenure_service::ActFor;
use tenure_service::answer::Problem;
use tenure_service::view::{CutOffView, SessionView};

use crate::details::told;
use crate::survivors::ended;

/// An act, with what the person typed for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    GoTo,
    Tell,
    Resume,
    Dismiss,
    End,
    EndSurvivors,
}

/// How an act is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// It changes nothing, so it is done at once.
    Nothing,
    Yes,
    /// A text, and what it is.
    Text(&'static str),
}

/// How long a process may take to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// All of them, in the order of the last line.
const ALL: [Act; 6] = [
    Act::GoTo,
    Act::Tell,
    Act::Resume,
    Act::Dismiss,
    Act::End,
    Act::EndSurvivors,
];

impl Act {
    pub fn of_key(key: char) -> Option<Self> {
        ALL.into_iter().find(|act| act.key().0 == key)
    }

    /// Its key, and what the last line says about it.
    pub fn key(self) -> (char, &'static str) {
        match self {
            Act::GoTo => ('g', "go to"),
            Act::Tell => ('t', "tell"),
            Act::Resume => ('r', "resume"),
            Act::Dismiss => ('d', "dismiss"),
            Act::End => ('e', "end"),
            Act::EndSurvivors => ('s', "end what it left running"),
        }
    }

    pub fn asks(self) -> Asks {
        match self {
            Act::GoTo => Asks::Nothing,
            Act::Tell => Asks::Text("a message"),
            Act::End => Asks::Text("a reason; its claims are released, its process keeps running"),
            Act::Resume | Act::Dismiss | Act::EndSurvivors => Asks::Yes,
        }
    }

    /// What is done, in a few words.
    pub fn short(self, handle: &str) -> String {
        match self {
            Act::EndSurvivors => format!("end what {handle} left running"),
            _ => format!("{} {handle}", self.key().1),
        }
    }

    /// The question before it is done.
    pub fn question(self, handle: &str) -> String {
        match self {
            Act::Resume => format!("leave this list and resume {handle} here?"),
            Act::Dismiss => format!("take {handle} off the list of cut-off sessions?"),
            Act::EndSurvivors => format!("end the processes that {handle} left running?"),
            Act::GoTo | Act::Tell | Act::End => format!("{}?", self.short(handle)),
        }
    }

    /// Why it is not offered for this session. The service decides whether it is done.
    pub fn refusal(self, session: &SessionView) -> Option<String> {
        let is_over = session.ended_at.is_some() || session.state == "dead";
        let said = |why: &str| Some(why.to_owned());
        match (self, &session.resume) {
            (Act::GoTo | Act::End, _) if is_over => said("it is over"),
            (Act::GoTo, _) => {
                let host = session.host.as_ref();
                host.map(|host| format!("it runs on {host}"))
            }
            (Act::Tell | Act::End, _) => None,
            (Act::Resume | Act::Dismiss, None) => said("it was not cut off"),
            (
                Act::Resume,
                Some(CutOffView {
                    command: None,
                    problem,
                    ..
                }),
            ) => {
                let why = problem.as_deref();
                said(why.unwrap_or("its agent has no command for that"))
            }
            (Act::Resume | Act::Dismiss, Some(_)) => None,
            (Act::EndSurvivors, _) => {
                let mut left = session.survivors.iter().flatten();
                let none = || "it left nothing running that can be ended".to_owned();
                (!left.any(|one| one.can_end)).then(none)
            }
        }
    }

    /// Those that the last line offers for this session.
    pub fn for_session(session: &SessionView) -> impl Iterator<Item = Act> {
        ALL.into_iter().filter(|act| act.refusal(session).is_none())
    }
}

/// Does it; returns what a person is told. To resume is not done here: its agent takes the terminal.
pub fn act(context: &mut Context, act: Act, handle: &str, text: &str) -> Result<String, Problem> {
    let act_for = |reason: Option<Reason>| ActFor {
        session: Some(handle.to_owned()),
        reason,
    };
    match act {
        Act::GoTo => {
            let found = context.service().window(handle)?.value;
            window::focus(context, &found)?;
            context.service().attend(handle)?;
            let place = found.session.place;
            let place = place.map_or_else(String::new, |place| format!(" at {place}"));
            Ok(format!("switched to {handle}{place}"))
        }
        Act::Tell => Ok(told(&context.service().tell(handle, text)?.value)),
        Act::Resume => Ok(String::new()),
        Act::Dismiss => {
            context.service().dismiss(&act_for(None))?;
            Ok(format!("dismissed {handle}"))
        }
        Act::End => {
            let reason = Reason::parse(text)?;
            keeper::end(context, &act_for(Some(reason)))?;
            Ok(format!("{handle} ended"))
        }
        Act::EndSurvivors => {
            let done = survivors::end(context, &act_for(None), GRACE)?;
            let said = ended(&done);
            let lines: Vec<&str> = said.as_str().lines().map(str::trim).collect();
            Ok(lines.join("; "))
        }
    }
}
