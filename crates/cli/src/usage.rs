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
    /// Turns an error of clap into one of ours.
    pub fn failure(self, error: &clap::Error, arguments: &[OsString]) -> CliError {
        let typed = self.typed(arguments);
        let (message, hint) = match error.kind() {
            ErrorKind::InvalidSubcommand => self.no_such_verb(error, &typed, arguments),
            ErrorKind::UnknownArgument => self.no_such_flag(error, &typed, arguments),
            _ => (said(error), typed.help()),
        };
        CliError::new(Class::Usage, "usage", message, hint)
    }

    /// A command line without a command, or without one of a verb's own.
    pub fn incomplete(self, arguments: &[OsString]) -> CliError {
        let typed = self.typed(arguments);
        let usage = |message: String, hint| CliError::new(Class::Usage, "usage", message, hint);
        match typed.verb {
            Some(_) => usage(
                format!("no command was given after {}", typed.name()),
                typed.help(),
            ),
            None => {
                let hint = Hint::verb("ps", "to list sessions");
                usage("no command was given".to_owned(), hint).or(every_verb())
            }
        }
    }

    /// The message and hint for a word that is not a verb of those before it.
    pub fn no_verb(self, before: &[&str], word: &str) -> (String, Hint) {
        let line = ["tenure"].iter().chain(before).map(OsString::from);
        let typed = self.typed(&line.collect::<Vec<OsString>>());
        self.not_among(&typed, word, |_| None)
    }

    /// The same with the whole command as it may be meant, if that can be typed.
    fn not_among(
        self,
        typed: &Typed,
        word: &str,
        corrected: impl FnOnce(&str) -> Option<Hint>,
    ) -> (String, Hint) {
        let whose = match typed.verb {
            Some(_) => format!("{} has no command {word:?}", typed.name()),
            None => format!("unknown command {word:?}"),
        };
        let usual = self.usual(word).filter(|_| typed.verb.is_none());
        let near = || nearest_of(word, names_of(&typed.command)).map(|near| (near, ""));
        let Some((near, flags)) = usual.or_else(near) else {
            return (whose, typed.help());
        };
        let hint = flags.is_empty().then(|| corrected(&near)).flatten();
        let hint = hint.unwrap_or_else(|| match typed.verb {
            None => help(self.verb(&near), &[]),
            Some(_) => help(
                typed.verb,
                &[&typed.below[..], std::slice::from_ref(&near)].concat(),
            ),
        });
        (format!("{whose}; did you mean {near}{flags}?"), hint)
    }

    /// The verb and flags for a word that people know from other tools.
    fn usual(self, word: &str) -> Option<(String, &'static str)> {
        let (_, verbs, flags) = USUAL.iter().find(|(usual, _, _)| usual.contains(&word))?;
        let verb = verbs.iter().find_map(|verb| self.verb(verb))?;
        Some((verb.to_owned(), flags))
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
            command: (self.command)(),
        };
        typed.command.build();
        let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str());
        while let Some(word) = words.next() {
            if word == "--session" {
                words.next();
            }
            if word.starts_with('-') && word != "--" {
                continue;
            }
            let Some(found) = typed.command.find_subcommand(word).cloned() else {
                break;
            };
            match typed.verb {
                None => typed.verb = self.verb(found.get_name()),
                Some(_) => typed.below.push(found.get_name().to_owned()),
            }
            typed.command = found;
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
        self.not_among(typed, &word, |near| self.corrected(arguments, &word, near))
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
            let message = format!("{name} does not accept {word:?} here");
            return (message, typed.help());
        }
        let flag = word.split('=').next().unwrap_or(&word);
        let flags = typed
            .command
            .get_arguments()
            .filter_map(|arg| arg.get_long());
        let flags = flags.map(|flag| format!("--{flag}"));
        let Some(near) = nearest_of(flag, flags) else {
            return (format!("{name} has no option {flag}"), typed.help());
        };
        let message = format!("{name} has no option {flag}; did you mean {near}?");
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

fn every_verb() -> Hint {
    Hint::run("help", ["--all"], "to list every command")
}

/// The help of a verb, or of one of its own, which anyone may read.
fn help(verb: Option<&'static str>, below: &[String]) -> Hint {
    let Some(verb) = verb else {
        return every_verb();
    };
    let args = below.iter().map(String::as_str).chain(["--help"]);
    Hint {
        // Help is safe for everyone, whatever its verb does.
        audience: For::Anyone,
        ..Hint::run(verb, args, "for its options and examples")
    }
}

/// Words that people know from other tools, and the verb for each: the first of these that exists.
const USUAL: &[(&[&str], &[&str], &str)] = &[
    (&["list", "ls"], &["ps"], ""),
    (&["attach"], &["goto"], ""),
    (&["kill"], &["end"], " --kill"),
    (&["start"], &["run", "register"], ""),
];

/// The verb that was typed, and a verb of its own.
struct Typed {
    verb: Option<&'static str>,
    below: Vec<String>,
    command: clap::Command,
}

impl Typed {
    fn help(&self) -> Hint {
        help(self.verb, &self.below)
    }

    /// Its name in a message.
    fn name(&self) -> String {
        let words = self
            .verb
            .into_iter()
            .chain(self.below.iter().map(String::as_str));
        words.collect::<Vec<&str>>().join(" ")
    }
}

/// The names of a command's verbs.
fn names_of(command: &clap::Command) -> impl Iterator<Item = String> {
    let verbs = command.get_subcommands();
    verbs.map(|verb| verb.get_name().to_owned())
}

/// How many letters of a word may be wrong, missing or too many.
const MOST_WRONG: usize = 2;

/// The name that is spelt most like a word. A word that begins differently, or has more than a few wrong letters, is
/// not a typo.
fn nearest_of(word: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let begins = |text: &str| text.trim_start_matches('-').chars().next();
    let first = begins(word)?;
    let near = names.filter(|name| begins(name) == Some(first));
    let near = near.map(|name| (distance(word, &name), name));
    let near = near.filter(|(distance, name)| {
        // In a short word, that many wrong letters leave too little.
        *distance <= MOST_WRONG && *distance < name.trim_start_matches('-').len()
    });
    near.min().map(|(_, name)| name)
}

/// How many letters must be changed, added, removed or swapped with the next one.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![(0..=other.len()).collect::<Vec<usize>>()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let differs = usize::from(one[i - 1] != other[j - 1]);
            let least = (rows[i - 1][j] + 1)
                .min(row[j - 1] + 1)
                .min(rows[i - 1][j - 1] + differs);
            let is_swapped =
                i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
            row.push(if is_swapped {
                least.min(rows[i - 2][j - 2] + 1)
            } else {
                least
            });
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
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
    // Messages of clap and of the standard library in our own terms.
    choices(&own_reason(&lines.join(" ")))
        .replace("subcommand", "command")
        .replace(
            "the following required arguments were not provided:",
            "missing",
        )
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

/// An invalid value with the reason alone: clap has named the value already.
fn own_reason(message: &str) -> String {
    let Some((head, reason)) = message.split_once("': ") else {
        return message.to_owned();
    };
    if let Some((_, why)) = reason.split_once(" is not valid: ") {
        return format!("{head}': {why}");
    }
    let range = reason.split_once(" is not in ");
    match range.and_then(|(_, range)| range.split_once("..=")) {
        Some((low, high)) => format!("{head}': expected a number from {low} to {high}"),
        None => message.to_owned(),
    }
}

/// `<--one|--other>` as manuals write a choice: `(--one | --other)`.
fn choices(message: &str) -> String {
    let Some((before, rest)) = message.split_once("<--") else {
        return message.to_owned();
    };
    let mut open = 1;
    let end = rest.find(|c| {
        open += i32::from(c == '<') - i32::from(c == '>');
        open == 0
    });
    let Some(end) = end else {
        return message.to_owned();
    };
    let all = rest[..end].replace('|', " | ");
    format!("{before}(--{all}){}", choices(&rest[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_another_word() {
        let verbs = [
            "ps", "claim", "claims", "status", "show", "end", "log", "help",
        ];
        let near = |word: &str| nearest_of(word, verbs.iter().map(|verb| (*verb).to_owned()));
        for (word, verb) in [
            ("clain", "claim"),
            ("calim", "claim"),
            ("claimss", "claims"),
            ("satus", "status"),
            ("sttus", "status"),
            ("shwo", "show"),
            ("lgo", "log"),
        ] {
            assert_eq!(near(word).as_deref(), Some(verb), "{word}");
        }
        for word in ["", "x", "pause", "list", "sessions", "elephant"] {
            assert_eq!(near(word), None, "{word}");
        }
        let flags = ["--limit", "--all"].map(str::to_owned);
        let near = nearest_of("--limt", flags.into_iter());
        assert_eq!(near.as_deref(), Some("--limit"));
    }
}
