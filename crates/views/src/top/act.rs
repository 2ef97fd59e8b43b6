//! What a person can do to the session under the cursor, each by the use case of its verb.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use tenure_app::open::Context;
use tenure_app::{keeper, survivors, window};
use tenure_core::id::QuestionId;
use tenure_core::ignore::Ignore;
use tenure_core::key::Key;
use tenure_core::reason::Reason;
use tenure_elsewhere::answers::{AnswerRequest, Answerer, PersonsAnswer, reply};
use tenure_host::env;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::{CutOffView, SessionView};
use tenure_service::{ActFor, HandoffRequest, ReleaseRequest};

use crate::details::told;
use crate::survivors::ended;

/// An act, with what the person typed for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    GoTo,
    /// Answers what the session asks, once the whole question is shown.
    Answer,
    Tell,
    Resume,
    Dismiss,
    End,
    EndSurvivors,
    Free,
    Give,
    /// Shows who held an item; not done here.
    History,
    /// Starts a run where the session works.
    Run,
}

/// How an act is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// It changes nothing, so it is done at once.
    Nothing,
    /// What the session asks is read and shown first.
    Question,
    Yes,
    /// One text after the other: what each is, and what may be chosen for it.
    Texts(&'static [(&'static str, Choices)]),
}

/// What Up and Down offer for a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choices {
    None,
    /// What the session holds or waits for.
    Items,
    /// The other sessions that are alive.
    Others,
    /// Those of the list.
    Agents,
}

/// How long a process may take to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// All of them, in the order of the last line.
const ALL: [Act; 11] = [
    Act::GoTo,
    Act::Answer,
    Act::Tell,
    Act::Resume,
    Act::Dismiss,
    Act::End,
    Act::EndSurvivors,
    Act::Free,
    Act::Give,
    Act::History,
    Act::Run,
];

const ITEM: &str = "an item; Up and Down choose";
const REASON: &str = "a reason, which is logged";

impl Act {
    pub fn of_key(key: char) -> Option<Self> {
        ALL.into_iter().find(|act| act.key().0 == key)
    }

    /// Its key, and what the last line says about it.
    pub fn key(self) -> (char, &'static str) {
        match self {
            Act::GoTo => ('g', "go to"),
            Act::Answer => ('a', "answer"),
            Act::Tell => ('t', "tell"),
            Act::Resume => ('r', "resume"),
            Act::Dismiss => ('d', "dismiss"),
            Act::End => ('e', "end"),
            Act::EndSurvivors => ('s', "end what it left running"),
            Act::Free => ('f', "free"),
            Act::Give => ('G', "give"),
            Act::History => ('h', "history"),
            Act::Run => ('n', "new run"),
        }
    }

    pub fn asks(self) -> Asks {
        match self {
            Act::GoTo => Asks::Nothing,
            Act::Answer => Asks::Question,
            Act::Tell => Asks::Texts(&[("a message", Choices::None)]),
            Act::End => Asks::Texts(&[(
                "a reason; its claims are released, its process keeps running",
                Choices::None,
            )]),
            Act::Free => Asks::Texts(&[(ITEM, Choices::Items), (REASON, Choices::None)]),
            Act::Give => Asks::Texts(&[
                (ITEM, Choices::Items),
                ("to whom; Up and Down choose", Choices::Others),
                (REASON, Choices::None),
            ]),
            Act::History => Asks::Texts(&[(ITEM, Choices::Items)]),
            Act::Run => Asks::Texts(&[
                ("an agent; Up and Down choose", Choices::Agents),
                ("an item, such as issue:acme/web#42", Choices::Items),
                ("what it shall do, in a worktree of its own", Choices::None),
            ]),
            Act::Resume | Act::Dismiss | Act::EndSurvivors => Asks::Yes,
        }
    }

    /// What is done, in a few words.
    pub fn short(self, handle: &str) -> String {
        match self {
            Act::EndSurvivors => format!("end what {handle} left running"),
            Act::Free => format!("free what {handle} holds"),
            Act::Give => format!("give what {handle} holds"),
            Act::History => "history".to_owned(),
            Act::Run => "new run".to_owned(),
            _ => format!("{} {handle}", self.key().1),
        }
    }

    /// The question before it is done.
    pub fn question(self, handle: &str) -> String {
        match self {
            Act::Resume => format!("leave this list and resume {handle} here?"),
            Act::Dismiss => format!("take {handle} off the list of cut-off sessions?"),
            Act::EndSurvivors => format!("end the processes that {handle} left running?"),
            _ => format!("{}?", self.short(handle)),
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
            (Act::Answer, _) => match &session.host {
                Some(host) => Some(format!("it runs on {host}")),
                None if session.activity != Some("waiting") => said("it asks nothing"),
                None => None,
            },
            (Act::Tell | Act::End | Act::Run, _) => None,
            (Act::Free | Act::Give, _) if is_over => said("it is over; what it held is free"),
            (Act::Free | Act::Give, _) => {
                let holds = session.claims.iter().flatten().next().is_some();
                (!holds).then(|| "it holds nothing".to_owned())
            }
            (Act::History, _) => {
                let none = || "it holds nothing and waits for nothing".to_owned();
                items(session).next().is_none().then(none)
            }
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

/// What a session holds, waits for, or held when it was cut off.
pub fn items(session: &SessionView) -> impl Iterator<Item = &str> {
    let held = session.claims.iter().flatten().map(|held| &held.key);
    let waits = session.waits_for.iter().flatten().map(|wait| &wait.key);
    let left = session.resume.iter().flat_map(|left| &left.held);
    let left = left.map(|held| &held.key);
    held.chain(waits).chain(left).map(String::as_str)
}

/// What may be chosen for a text.
pub fn choices(of: Choices, session: Option<&SessionView>, all: &[SessionView]) -> Vec<String> {
    match of {
        Choices::None => Vec::new(),
        Choices::Items => session
            .into_iter()
            .flat_map(items)
            .map(str::to_owned)
            .collect(),
        Choices::Others => {
            let is_other = |one: &&SessionView| {
                let is_own = session.is_some_and(|own| own.id == one.id);
                !is_own && one.ended_at.is_none() && one.state != "dead"
            };
            let others = all.iter().filter(is_other);
            others.map(|one| one.handle.clone()).collect()
        }
        Choices::Agents => {
            let mut names: Vec<String> = all.iter().map(|one| one.agent.clone()).collect();
            names.sort();
            names.dedup();
            names
        }
    }
}

/// Sends a person's answer to the question that was shown; returns what the person is told.
pub fn send_answer(
    context: &mut Context,
    handle: &str,
    id: &str,
    answer: PersonsAnswer,
) -> Result<String, Problem> {
    let by = Answerer::person(context)?;
    let request = AnswerRequest {
        session: handle.to_owned(),
        id: QuestionId::parse(id)?,
        answer,
    };
    let sent = reply::answer(context, &by, request)?;
    Ok(format!("{} sent to {handle}", sent.answer))
}

/// Does it; returns what a person is told. To resume is not done here: its agent takes the terminal. Nor is an answer,
/// which is no text: see [`send_answer`].
pub fn act(
    context: &mut Context,
    act: Act,
    handle: &str,
    texts: &[String],
) -> Result<String, Problem> {
    let text = |at: usize| texts.get(at).map_or("", String::as_str);
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
        Act::Tell => {
            let sent = context.service().tell(handle, text(0))?.value;
            tenure_elsewhere::wake::start_turn(context, &sent).finish_beside();
            Ok(told(&sent))
        }
        Act::Resume | Act::History | Act::Answer => Ok(String::new()),
        Act::Free => {
            let request = ReleaseRequest {
                key: Key::parse(text(0))?,
                epoch: None,
                done: false,
            };
            let act_for = act_for(Some(Reason::parse(text(1))?));
            let claim = context.service().release(&act_for, &request)?.value;
            Ok(format!("{} is free", claim.key))
        }
        Act::Give => {
            let request = HandoffRequest {
                key: Key::parse(text(0))?,
                to: text(1).to_owned(),
                epoch: None,
                note: None,
            };
            let act_for = act_for(Some(Reason::parse(text(2))?));
            let claim = context.service().handoff(&act_for, &request)?.value;
            let to = claim
                .holder
                .map_or_else(|| text(1).to_owned(), |to| to.handle);
            Ok(format!("{to} has {}", claim.key))
        }
        Act::Run => {
            let dir = match handle {
                "" => ".".to_owned(),
                handle => context.service().show(handle)?.value.session.dir,
            };
            start(&dir, text(0), text(1), text(2))
        }
        Act::Dismiss => {
            context.service().dismiss(&act_for(None))?;
            Ok(format!("dismissed {handle}"))
        }
        Act::End => {
            let reason = Reason::parse(text(0))?;
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

/// Starts a run, which goes on by itself, and waits for its first words.
fn start(dir: &str, agent: &str, item: &str, prompt: &str) -> Result<String, Problem> {
    let failed = |why: String| {
        let hint = Hint::run(
            "run",
            [agent, item, "--prompt", prompt],
            "to start it from a shell",
        );
        Problem::new(Class::Refused, "not_started", why, hint)
    };
    let program = env::program().map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(program);
    command.args([
        "run",
        agent,
        item,
        "--prompt",
        prompt,
        "--worktree",
        "--json",
    ]);
    command
        .current_dir(dir)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    // What a person types here does not reach it.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let started = command.stdout(Stdio::piped()).spawn();
    let mut child =
        started.map_err(|error| failed(format!("cannot start `tenure run`: {error}")))?;
    let mut first = String::new();
    if let Some(output) = child.stdout.take() {
        let mut output = BufReader::new(output);
        output.read_line(&mut first).ignore("then it said nothing");
        // It ends by itself; nothing that it says later is read.
        let wait = move || {
            std::io::copy(&mut output, &mut std::io::sink()).ignore("it has ended");
            child.wait().ignore("it has ended");
        };
        std::thread::Builder::new()
            .spawn(wait)
            .map_err(|error| failed(error.to_string()))?;
    }
    let said: serde_json::Value = serde_json::from_str(&first).unwrap_or_default();
    match (
        said["run"]["id"].as_str(),
        said["error"]["message"].as_str(),
    ) {
        (Some(run), _) => Ok(format!("{run}: {agent} works on {item}")),
        (None, Some(why)) => Err(failed(why.to_owned())),
        (None, None) => Err(failed("`tenure run` said nothing".to_owned())),
    }
}
