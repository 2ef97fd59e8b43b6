//! A command line that cannot be read: what is wrong with it, and the one command that helps.
//!
//! A verb or flag that was mistyped is answered with the nearest one. Everything else is answered with the help
//! of the verb that was typed, because that is where its values and flags are explained.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use tenure_core::hint::For;
use tenure_service::answer::{Class, Hint};

use crate::output::CliError;

/// The verbs by job, each with the parts of its answer.
type Jobs = &'static [(&'static str, &'static [(&'static str, &'static str)])];

/// The command line that can be typed.
#[derive(Clone, Copy)]
pub struct Grammar {
    pub command: fn() -> clap::Command,
    pub jobs: Jobs,
}

impl Grammar {
    /// What clap says of a command line, in our words.
    pub fn trouble(self, error: &clap::Error, arguments: &[OsString]) -> CliError {
        let typed = self.typed(arguments);
        let (message, hint) = match error.kind() {
            ErrorKind::InvalidSubcommand => self.no_such_verb(error, &typed, arguments),
            ErrorKind::UnknownArgument => self.no_such_flag(error, &typed, arguments),
            _ => (said(error), typed.help()),
        };
        CliError::new(Class::Usage, "usage", message, hint)
    }

    /// The verb that is spelt most like a word that is none.
    pub fn nearest_verb(self, word: &str) -> Option<&'static str> {
        let parsed = (self.command)().try_get_matches_from(["tenure", word]);
        let near = nearest(&parsed.err()?, ContextKind::SuggestedSubcommand)?;
        self.verb(&near)
    }

    /// The name of a verb as the table has it.
    fn verb(self, name: &str) -> Option<&'static str> {
        let mut rows = self.jobs.iter().flat_map(|(_, verbs)| verbs.iter());
        rows.find(|(known, _)| *known == name)
            .map(|(known, _)| *known)
    }

    fn typed(self, arguments: &[OsString]) -> Typed {
        let mut typed = Typed {
            verb: None,
            below: Vec::new(),
        };
        let mut command = (self.command)();
        let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str());
        while let Some(word) = words.next() {
            if word == "--session" {
                words.next();
            }
            if word.starts_with('-') && word != "--" {
                continue;
            }
            let Some(found) = command.find_subcommand(word).cloned() else {
                break;
            };
            match typed.verb {
                None => typed.verb = self.verb(found.get_name()),
                Some(_) => typed.below.push(found.get_name().to_owned()),
            }
            command = found;
        }
        typed
    }

    fn no_such_verb(
        self,
        error: &clap::Error,
        typed: &Typed,
        arguments: &[OsString],
    ) -> (String, Hint) {
        let word = text_of(error, ContextKind::InvalidSubcommand).unwrap_or_default();
        let whose = match typed.verb {
            Some(_) => format!("{} has no verb {word:?}", typed.name()),
            None => format!("there is no verb {word:?}"),
        };
        let Some(near) = nearest(error, ContextKind::SuggestedSubcommand) else {
            return (whose, typed.help());
        };
        let hint = self.corrected(arguments, &word, &near).unwrap_or_else(|| {
            let near_help = match typed.verb {
                None => self.verb(&near).map(help_of),
                Some(verb) => Some(
                    Typed {
                        verb: Some(verb),
                        below: vec![near.clone()],
                    }
                    .help(),
                ),
            };
            near_help.unwrap_or_else(|| typed.help())
        });
        (format!("{whose}; did you mean {near}?"), hint)
    }

    fn no_such_flag(
        self,
        error: &clap::Error,
        typed: &Typed,
        arguments: &[OsString],
    ) -> (String, Hint) {
        let word = text_of(error, ContextKind::InvalidArg).unwrap_or_default();
        let name = match typed.verb {
            Some(_) => typed.name(),
            None => "tenure".to_owned(),
        };
        if !word.starts_with('-') {
            let message = format!("{name} does not take {word:?} there");
            return (message, typed.help());
        }
        let flag = word.split('=').next().unwrap_or(&word);
        let Some(near) = nearest(error, ContextKind::SuggestedArg) else {
            return (format!("{name} has no flag {flag}"), typed.help());
        };
        let message = format!("{name} has no flag {flag}; did you mean {near}?");
        let hint = self
            .corrected(arguments, flag, &near)
            .unwrap_or_else(|| typed.help());
        (message, hint)
    }

    /// The same command with another word, if it can be typed so and anyone may.
    fn corrected(self, arguments: &[OsString], wrong: &str, right: &str) -> Option<Hint> {
        let mut words: Vec<String> = Vec::new();
        let mut done = false;
        for argument in arguments.iter().skip(1) {
            let word = argument.to_str()?;
            let value = word.strip_prefix(wrong);
            let value = value.filter(|rest| rest.is_empty() || rest.starts_with('='));
            match value.filter(|_| !done) {
                Some(value) => {
                    done = true;
                    words.push(format!("{right}{value}"));
                }
                None => words.push(word.to_owned()),
            }
        }
        let line = std::iter::once("tenure").chain(words.iter().map(String::as_str));
        let is_verb = |word: &String| self.verb(word).is_some();
        let at = words.iter().position(is_verb)?;
        let mut command = (self.command)();
        if !done || command.try_get_matches_from_mut(line).is_err() {
            return None;
        }
        let verb = self.verb(&words.remove(at))?;
        let takes_more = command
            .find_subcommand(verb)
            .is_some_and(|verb| verb.get_positionals().next().is_some());
        if words.is_empty() && takes_more {
            return None;
        }
        let hint = Hint::run(verb, words, "if that is what you meant");
        (hint.audience == For::Anyone).then_some(hint)
    }
}

pub fn every_verb() -> Hint {
    Hint::run("help", ["--all"], "to see every verb")
}

/// The help of a verb, which anyone may read.
pub fn help_of(verb: &'static str) -> Hint {
    Typed {
        verb: Some(verb),
        below: Vec::new(),
    }
    .help()
}

/// The verb that was typed, and a verb of its own.
struct Typed {
    verb: Option<&'static str>,
    below: Vec<String>,
}

impl Typed {
    fn help(&self) -> Hint {
        let Some(verb) = self.verb else {
            return every_verb();
        };
        let args = self.below.iter().map(String::as_str).chain(["--help"]);
        Hint {
            // Help takes nothing from anybody, whatever its verb does.
            audience: For::Anyone,
            ..Hint::run(verb, args, "to see how it is used")
        }
    }

    /// What it is called in a message.
    fn name(&self) -> String {
        let words = self
            .verb
            .into_iter()
            .chain(self.below.iter().map(String::as_str));
        words.collect::<Vec<&str>>().join(" ")
    }
}

/// The best of what clap suggests: it puts that last.
fn nearest(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(one) => Some(one.clone()),
        ContextValue::Strings(several) => several.last().cloned(),
        _ => None,
    }
}

fn text_of(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// What is wrong, on one line.
fn said(error: &clap::Error) -> String {
    let text = error.to_string();
    let told = text.trim_start_matches("error: ");
    let end = told
        .find("\n\nUsage:")
        .or_else(|| told.find("\n\nFor more information"));
    let message = &told[..end.unwrap_or(told.len())];
    let lines = message.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    // One word per concept: what clap calls a subcommand is a verb. What Rust says of numbers is no help.
    lines
        .join(" ")
        .replace("subcommand", "verb")
        .replace("invalid digit found in string", "expected a whole number")
        .replace(
            "cannot parse integer from empty string",
            "expected a whole number",
        )
        .replace(
            "number too large to fit in target type",
            "the number is too large",
        )
}
