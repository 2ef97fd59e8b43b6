//! What may come next on a command line: clap knows the grammar, the store knows the names.
//!
//! An argument is known by the name of its value: `SESSION`, `KEY` and `MISSION` are looked up, `DIR`, `FILE` and
//! `PATH` are the shell's to offer. A new verb that uses these names needs nothing here. If only some sessions can be
//! meant, the argument's own name shows which: `open` or `cut_off`.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, complete};
use tenure_service::{Name, Nameable};

/// What only the store knows.
pub type NameLookup = fn(Nameable) -> Vec<Name>;

/// Stands for the names of files.
const FILES: &str = ":files";

pub enum Offer {
    /// The names of files.
    Files,
    /// These words, all beginning with what was typed.
    Words(Vec<CompletionCandidate>),
}

/// What may stand for the last of these words.
pub fn offer(grammar: Command, words: &[String], look: NameLookup) -> Offer {
    let before = words.split_last().map_or(words, |(_, before)| before);
    if before.iter().any(|word| word == "--") {
        return Offer::Files;
    }
    let mut grammar = with_completers(with_topics(grammar), look);
    let line = std::iter::once("tenure").chain(words.iter().map(String::as_str));
    let line = line.map(OsString::from).collect();
    let mut found = complete(&mut grammar, line, words.len(), None).unwrap_or_default();
    // Clap offers every flag wherever one may stand, which would hide what was asked for.
    let is_flag = words.last().is_some_and(|word| word.starts_with('-'));
    found.retain(|one| is_flag || !text_of(one).starts_with('-'));
    if found.iter().any(|one| text_of(one).ends_with(FILES)) {
        Offer::Files
    } else {
        Offer::Words(found)
    }
}

fn text_of(candidate: &CompletionCandidate) -> std::borrow::Cow<'_, str> {
    candidate.get_value().to_string_lossy()
}

/// The grammar in which `help` is followed by the verbs that it explains.
fn with_topics(grammar: Command) -> Command {
    let topics: Vec<Command> = grammar.get_subcommands().map(topic).collect();
    grammar.mut_subcommand("help", |help| help.subcommands(topics))
}

fn topic(verb: &Command) -> Command {
    let about = verb.get_about().cloned().unwrap_or_default();
    Command::new(verb.get_name().to_owned())
        .about(about)
        .disable_help_flag(true)
        .subcommands(verb.get_subcommands().map(topic))
}

/// The grammar with what completes each of its arguments.
fn with_completers(command: Command, look: NameLookup) -> Command {
    // Verbs that `--help` leaves out can be typed, so they are offered; all of them by name.
    let command = command.hide(false).display_order(0);
    command
        .mut_args(|arg| with_completer(arg, look))
        .mut_subcommands(|verb| with_completers(verb, look))
}

fn with_completer(arg: Arg, look: NameLookup) -> Arg {
    let name = arg.get_value_names().and_then(|names| names.first());
    let wanted: &[Nameable] = match name.map_or("", |name| name.as_str()) {
        "SESSION" => match arg.get_id().as_str() {
            "open" => &[Nameable::OpenSession],
            "cut_off" => &[Nameable::CutOffSession],
            _ => &[Nameable::Session],
        },
        "KEY" | "PREFIX" => &[Nameable::Key],
        "KEY|SESSION" => &[Nameable::Key, Nameable::Session],
        "MISSION" => &[Nameable::Mission],
        "ITEM" | "TARGET" => &[Nameable::Item, Nameable::Key],
        "DIR" | "FILE" | "PATH" => {
            let files = |_: &OsStr| vec![CompletionCandidate::new(FILES)];
            return arg.add(ArgValueCompleter::new(files));
        }
        _ => return arg,
    };
    arg.add(ArgValueCandidates::new(move || {
        let names = wanted.iter().flat_map(|of| look(*of));
        names.map(candidate).collect()
    }))
}

/// A name; an item that is also a held key is offered once.
fn candidate(name: Name) -> CompletionCandidate {
    CompletionCandidate::new(&name.name)
        .help(Some(name.about.into()))
        .id(Some(name.name))
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;

    use super::*;

    fn grammar() -> Command {
        let session = Arg::new("session").long("session").value_name("SESSION");
        let verb = Command::new("why").arg(Arg::new("key").value_name("KEY"));
        let show = Command::new("show")
            .arg(Arg::new("name").value_name("SESSION"))
            .arg(Arg::new("all").short('a').action(ArgAction::SetTrue))
            .arg(Arg::new("to").short('t').long("to").value_name("SESSION"))
            .arg(
                Arg::new("mode")
                    .long("mode")
                    .value_parser(["warn", "block"]),
            );
        let claim = Command::new("claim")
            .hide(true)
            .arg(Arg::new("keys").value_name("KEY").num_args(1..))
            .arg(Arg::new("cmd").value_name("CMD").last(true).num_args(0..));
        let lock = Command::new("lock")
            .arg(Arg::new("path").long("path").value_name("FILE"))
            .arg(Arg::new("dir").value_name("DIR"))
            .arg(Arg::new("cmd").value_name("CMD").last(true).num_args(0..));
        let mission = Command::new("mission")
            .subcommand(Command::new("join").arg(Arg::new("mission").value_name("MISSION")));
        let get = Command::new("get").arg(Arg::new("item").value_name("ITEM"));
        let some = [("goto", "open"), ("dismiss", "cut_off")]
            .map(|(verb, which)| Command::new(verb).arg(Arg::new(which).value_name("SESSION")));
        let help = Command::new("help").arg(Arg::new("topic").value_name("COMMAND").num_args(0..));
        Command::new("tenure")
            .disable_help_flag(true)
            .disable_help_subcommand(true)
            .arg(session.global(true))
            .subcommands([verb, show, claim, lock, mission, help, get])
            .subcommands(some)
    }

    fn look(of: Nameable) -> Vec<Name> {
        let names: &[&str] = match of {
            Nameable::Session => &["ann-1"],
            Nameable::OpenSession => &["open-1"],
            Nameable::CutOffSession => &["cut-1"],
            Nameable::Key => &["wp:1"],
            Nameable::Mission => &["m1"],
            Nameable::Item => &["issue:a/b#1", "wp:1"],
        };
        let name = |name: &&str| Name {
            name: (*name).to_owned(),
            about: String::new(),
        };
        names.iter().map(name).collect()
    }

    fn offered(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match offer(grammar(), &words, look) {
            Offer::Files => ":files".into(),
            Offer::Words(words) => {
                let words: Vec<_> = words.iter().map(text_of).collect();
                words.join(" ")
            }
        }
    }

    #[test]
    fn what_may_come_next_follows_from_the_grammar() {
        for (typed, next) in [
            ("sh", "show"),
            ("show ", "ann-1"),
            ("show b", ""),
            ("show x ", ""),
            ("goto ", "open-1"),
            ("dismiss ", "cut-1"),
            ("help mi", "mission"),
            ("help mission ", "join"),
            ("help mission join ", ""),
            ("why w", "wp:1"),
            ("claim a b ", "wp:1"),
            ("claim a -- ", ":files"),
            ("lock ", ":files"),
            ("lock --path=", ":files"),
            ("lock a ", ""),
            ("mission ", "join"),
            ("mission join ", "m1"),
            ("get ", "issue:a/b#1 wp:1"),
            ("show --to ", "ann-1"),
            ("show -t ", "ann-1"),
            ("show -at ", "ann-1"),
            ("show -tx ", "ann-1"),
            ("show --to=an", "--to=ann-1"),
            ("show --mode ", "warn block"),
            ("show --m", "--mode"),
            ("--session ", "ann-1"),
            ("--session x sh", "show"),
            ("show --session ", "ann-1"),
        ] {
            assert_eq!(offered(typed), next, "{typed:?}");
        }
        let verbs = "claim dismiss get goto help lock mission show why";
        assert_eq!(offered(""), verbs);
    }
}
