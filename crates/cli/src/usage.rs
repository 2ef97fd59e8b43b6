//! A command line that cannot be read: clap says what is wrong with it, and a hint names the one command that helps.
//!
//! That is the corrected command where clap suggests another word and it can be typed so, else the help of the verb,
//! because that is where its values and flags are explained.

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

/// Words that people know from other tools, and the verb for each.
const USUAL: &[(&str, &str)] = &[
    ("list", "ps"),
    ("ls", "ps"),
    ("attach", "goto"),
    ("kill", "end"),
    ("start", "run"),
    ("send", "tell"),
    ("settings", "config"),
];

impl Grammar {
    /// Turns an error of clap into one of ours.
    pub fn failure(self, error: clap::Error, arguments: &[OsString]) -> CliError {
        let hint = self.hint(&error, arguments);
        CliError::new(Class::Usage, "usage", message(error), hint)
    }

    /// A command line without a command, or without one of a verb's own.
    pub fn incomplete(self, arguments: &[OsString]) -> CliError {
        let typed = self.typed(arguments);
        let usage = |hint| CliError::new(Class::Usage, "usage", "no command was given", hint);
        match typed.verb {
            Some(_) => usage(typed.help()),
            None => usage(Hint::verb("ps", "to list sessions")).or(every_verb()),
        }
    }

    /// The command that helps with an error of clap.
    pub fn hint(self, error: &clap::Error, arguments: &[OsString]) -> Hint {
        let mut typed = self.typed(arguments);
        let Some((wrong, right)) = suggestion(error, &typed) else {
            return typed.help();
        };
        self.corrected(arguments, &wrong, &right)
            .unwrap_or_else(|| {
                self.descend(&mut typed, &right);
                typed.help()
            })
    }

    /// The name of a verb as the table has it.
    fn verb(self, name: &str) -> Option<&'static str> {
        let mut rows = self.jobs.iter().flat_map(|(_, verbs)| verbs.iter());
        rows.find(|(known, _)| *known == name)
            .map(|(known, _)| *known)
    }

    fn typed(self, arguments: &[OsString]) -> TypedVerb {
        let mut typed = TypedVerb {
            verb: None,
            below: Vec::new(),
            command: (self.command)(),
        };
        let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str());
        while let Some(word) = words.next() {
            if word == "--session" {
                words.next();
            }
            let is_flag = word.starts_with('-') && word != "--";
            if !is_flag && !self.descend(&mut typed, word) {
                break;
            }
        }
        typed
    }

    /// Goes on to a verb of this name, if there is one.
    fn descend(self, typed: &mut TypedVerb, word: &str) -> bool {
        let Some(found) = typed.command.find_subcommand(word).cloned() else {
            return false;
        };
        match typed.verb {
            None => typed.verb = self.verb(found.get_name()),
            Some(_) => typed.below.push(found.get_name().to_owned()),
        }
        typed.command = found;
        true
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

/// The hint to list every command.
pub fn every_verb() -> Hint {
    Hint::run("help", ["--all"], "to list every command")
}

/// The verb that was typed, and a verb of its own.
struct TypedVerb {
    verb: Option<&'static str>,
    below: Vec<String>,
    command: clap::Command,
}

impl TypedVerb {
    /// Its help, which anyone may read, whatever the verb does.
    fn help(&self) -> Hint {
        let Some(verb) = self.verb else {
            return every_verb();
        };
        let args = self.below.iter().map(String::as_str).chain(["--help"]);
        Hint {
            audience: For::Anyone,
            ..Hint::run(verb, args, "for its options and examples")
        }
    }
}

/// The word that is wrong, and what clap or [`USUAL`] has for it.
fn suggestion(error: &clap::Error, typed: &TypedVerb) -> Option<(String, String)> {
    let text = |kind| match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        // The nearest is the last.
        ContextValue::Strings(all) => all.last().cloned(),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let wrong = text(ContextKind::InvalidSubcommand)?;
            let mut usual = USUAL.iter().filter(|_| typed.verb.is_none());
            let usual = usual.find(|(word, _)| *word == wrong);
            let right = usual.map(|(_, verb)| (*verb).to_owned());
            Some((
                wrong,
                right.or_else(|| text(ContextKind::SuggestedSubcommand))?,
            ))
        }
        ErrorKind::UnknownArgument => Some((
            text(ContextKind::InvalidArg)?,
            text(ContextKind::SuggestedArg)?,
        )),
        _ => None,
    }
}

/// What clap says is wrong, on one line; the rest of what it says is in the hint.
fn message(mut error: clap::Error) -> String {
    for other in [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
        ContextKind::Suggested,
        ContextKind::Usage,
    ] {
        let _left_out = error.remove(other);
    }
    let text = error.to_string();
    // The last paragraph points to the help.
    let message = text
        .rsplit_once("\n\n")
        .map_or(&*text, |(message, _)| message);
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let lines: Vec<&str> = message.lines().map(str::trim).collect();
    lines.join(" ")
}
