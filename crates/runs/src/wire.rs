//! What a runner reports to the window that started it: one line of JSON each, on its standard
//! output.
//!
//! It reports only what the window cannot read elsewhere: whether the run started, and that it fell
//! back or ended. The agent's output is in the log. A window that is gone or does not read never
//! blocks the runner.

use std::io::{BufRead, Write};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tenure_core::hint::Hint;
use tenure_core::ignore::Ignore;
use tenure_service::answer::{Class, Problem, Reader};
use tenure_service::view::RunView;

use super::spool::SpooledEnd;
use tenure_app::unfinished::{By, Unfinished};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)] // a few in the life of a process
pub enum Message {
    Refused(WireProblem),
    Started {
        run: Box<RunView>,
        /// Notes for a person: claims that were not taken along, other sessions in the directory.
        notes: Vec<String>,
    },
    FellBack {
        run: Box<RunView>,
    },
    /// The end is recorded or spooled; it is included only if it could not be stored next to the
    /// log.
    Ended {
        end: Option<Box<SpooledEnd>>,
    },
}

/// A [`Problem`] in serialised form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WireProblem {
    class: String,
    kind: String,
    message: String,
    lines: Vec<String>,
    hints: Vec<Advice>,
    data: Map<String, Value>,
    reader: String,
    by: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Advice {
    verb: Option<String>,
    args: Vec<String>,
    why: String,
}

/// Verbs that occur in a runner's refusals.
const VERBS: &[&str] = &[
    "claim",
    "config",
    "conversation",
    "goto",
    "log",
    "ps",
    "register",
    "run",
    "runs",
    "show",
    "takeover",
    "why",
];

const CLASSES: &[(Class, &str)] = &[
    (Class::Refused, "refused"),
    (Class::Usage, "usage"),
    (Class::Held, "held"),
    (Class::NotFound, "not_found"),
    (Class::Lost, "lost"),
    (Class::Invalid, "invalid"),
    (Class::TimedOut, "timed_out"),
    (Class::Store, "store"),
    (Class::CannotTell, "cannot_tell"),
    (Class::Internal, "internal"),
];

const READERS: &[(Reader, &str)] = &[
    (Reader::Person, "person"),
    (Reader::Newcomer, "newcomer"),
    (Reader::Program, "program"),
];

const CAUSES: &[(By, &str)] = &[
    (By::Problem, "problem"),
    (By::MissingProgram, "missing_program"),
    (By::UnusableProgram, "unusable_program"),
];

fn name_of<T: PartialEq>(table: &[(T, &'static str)], value: &T) -> String {
    let found = table.iter().find(|(known, _)| known == value);
    found.map_or_else(String::new, |(_, name)| (*name).to_owned())
}

fn named<T: Copy>(table: &[(T, &'static str)], name: &str) -> Option<T> {
    let found = table.iter().find(|(_, known)| *known == name);
    found.map(|(value, _)| *value)
}

impl From<Unfinished> for WireProblem {
    fn from(unfinished: Unfinished) -> Self {
        let problem = unfinished.problem;
        let hints = problem.hints.into_iter().map(|hint| Advice {
            verb: hint.verb.map(str::to_owned),
            args: hint.args,
            why: hint.why,
        });
        Self {
            class: name_of(CLASSES, &problem.class),
            kind: problem.kind,
            message: problem.message,
            lines: problem.lines,
            hints: hints.collect(),
            data: problem.data,
            reader: name_of(READERS, &problem.reader),
            by: name_of(CAUSES, &unfinished.by),
        }
    }
}

impl From<WireProblem> for Unfinished {
    fn from(refusal: WireProblem) -> Self {
        let hints = refusal.hints.into_iter().map(|advice| {
            let verb = VERBS
                .iter()
                .find(|verb| advice.verb.as_deref() == Some(**verb));
            match verb {
                Some(verb) => Hint::run(verb, advice.args, advice.why),
                None => Hint::step(advice.why),
            }
        });
        let problem = Problem {
            class: named(CLASSES, &refusal.class).unwrap_or(Class::Internal),
            kind: refusal.kind,
            message: refusal.message,
            lines: refusal.lines,
            hints: hints.collect(),
            data: refusal.data,
            notices: Default::default(),
            reader: named(READERS, &refusal.reader).unwrap_or_default(),
        };
        let by = named(CAUSES, &refusal.by).unwrap_or(By::Problem);
        Unfinished { problem, by }
    }
}

impl Message {
    /// Sends it, whether or not a window is there to read it.
    pub fn send(&self, to: &mut impl Write) {
        let Ok(mut line) = serde_json::to_vec(self) else {
            return;
        };
        line.push(b'\n');
        to.write_all(&line)
            .and_then(|()| to.flush())
            .ignore("the window is gone; the run continues");
    }

    /// The next message; none if the runner has ended.
    pub fn receive(from: &mut impl BufRead) -> Option<Self> {
        let mut line = String::new();
        let count = from.read_line(&mut line).ok()?;
        if count == 0 {
            return None;
        }
        serde_json::from_str(&line).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_arrives_as_it_was() {
        let hint = Hint::run("runs", ["show", "r-1"], "for details");
        let mut problem = Problem::new(Class::Held, "held", "it is taken", hint.clone());
        problem.hints.push(Hint::step("wait"));
        problem.data.insert("run".into(), "r-1".into());
        problem.reader = Reader::Person;
        let sent = Message::Refused(WireProblem::from(Unfinished {
            problem,
            by: By::MissingProgram,
        }));
        let mut bytes = Vec::new();
        sent.send(&mut bytes);
        let received = Message::receive(&mut bytes.as_slice()).unwrap();
        let Message::Refused(refusal) = received else {
            panic!("{received:?}");
        };
        let Unfinished { problem, by } = refusal.into();
        assert_eq!(
            (problem.class, problem.kind.as_str()),
            (Class::Held, "held")
        );
        assert_eq!(problem.hints, [hint, Hint::step("wait")]);
        assert_eq!((problem.reader, by), (Reader::Person, By::MissingProgram));
        assert_eq!(problem.data["run"], "r-1");
    }

    #[test]
    fn a_runner_that_ended_says_nothing() {
        assert_eq!(Message::receive(&mut &b""[..]), None);
        assert_eq!(Message::receive(&mut &b"{\"half\n"[..]), None);
    }
}
