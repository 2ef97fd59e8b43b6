//! The command line: what is typed, and which verb it goes to.

use std::cell::Cell;
use std::ffi::OsString;

use clap::{Args, CommandFactory, FromArgMatches, Parser};

use crate::app::App;
use crate::beside;
use crate::build;
use crate::exit::Exit;
use crate::output::{Output, Style, colours, put, warn};
use crate::sink::mention;
use crate::usage::Grammar;
use crate::verbs::{self, Internal, JOBS, ServerVerbs, Verb};

/// Show which coding agents are alive and what each one works on, and stop two of them working on the same thing
#[derive(Debug, Parser)]
#[command(
    name = "tenure",
    version = build::OWN.to_string(),
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "\
Examples:
  tenure ps                          list sessions: state, location, claims
  tenure claim issue:acme/web#42     claim an item; fails while a live session holds it
  tenure release issue:acme/web#42   release it (--done marks it finished)
  tenure why issue:acme/web#42       explain why an item is held, and what you can do

Run `tenure help --all` for every command, `tenure help COMMAND` for one."
)]
pub struct Cli {
    #[command(flatten)]
    global: Global,

    #[command(subcommand)]
    verb: Verb,
}

/// The options of every verb.
#[derive(Debug, clap::Args)]
struct Global {
    /// Print one JSON object on stdout
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,

    /// Act on behalf of this session: handle, id, or a unique part of either
    #[arg(
        long,
        global = true,
        value_name = "SESSION",
        help_heading = "Global options"
    )]
    session: Option<String>,

    /// Print nothing on success; ps prints only the handles
    #[arg(long, short, global = true, help_heading = "Global options")]
    quiet: bool,

    /// Print more detail, including the evidence behind each answer
    #[arg(long, short, global = true, help_heading = "Global options")]
    verbose: bool,
}

/// The word that is the verb, after global options.
fn verb_of(arguments: &[OsString]) -> Option<&str> {
    let mut words = arguments.iter().skip(1);
    loop {
        match words.next()?.to_str()? {
            "--session" => drop(words.next()?),
            option if option.starts_with('-') => {}
            verb => return Some(verb),
        }
    }
}

/// Reads a correct command line; none if it is anything else. The grammar of all verbs costs as much as opening a store, so
/// only that of the typed verb is made.
fn parse_verb(arguments: &[OsString]) -> Option<Cli> {
    let verb = Verb::grammar_of(verb_of(arguments)?)?;
    let mut root = Global::augment_args(clap::Command::new("tenure"))
        .disable_help_subcommand(true)
        .subcommand(verb);
    let parsed = root
        .try_get_matches_from_mut(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    // The end of the process frees it at once.
    std::mem::forget(root);
    parsed.ok()
}

/// How to show what happens before the flags are read, or instead of reading them.
pub fn style_before_parsing(arguments: &[OsString]) -> Style {
    let mut before_command = arguments.iter().take_while(|arg| *arg != "--");
    Style {
        json: before_command.any(|arg| arg == "--json"),
        quiet: false,
    }
}

/// Parses, runs one verb, shows its answer.
pub fn run(arguments: &[OsString], server: Option<ServerVerbs>) -> Exit {
    let hook = verbs::hook::typed(arguments);
    if hook.is_none() {
        beside::follow_store();
    }
    let is_internal = arguments
        .get(1)
        .and_then(|word| word.to_str())
        .is_some_and(|word| word.starts_with("__"));
    if is_internal {
        // A keeper's environment names no store; only stores on servers have keepers.
        if arguments.get(1).is_some_and(|word| word == "__keeper") {
            beside::take_over();
        }
        return run_internal(arguments);
    }
    if let Some(rest) = hook {
        return verbs::hook::run_typed(&rest);
    }
    if let Some((args, style)) = verbs::statusline::typed(arguments) {
        return verbs::statusline::run_typed(&args, style);
    }
    let style = style_before_parsing(arguments);
    let parsed = match parse_verb(arguments) {
        Some(cli) => Ok(cli),
        None => Cli::command()
            .try_get_matches_from(arguments)
            .and_then(|matches| Cli::from_arg_matches(&matches)),
    };
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return show_parse_error(error, arguments, style),
    };
    let style = Style {
        json: cli.global.json,
        quiet: cli.global.quiet,
    };
    let app = App {
        style,
        session: cli.global.session,
        verbose: cli.global.verbose,
        changes: cli.verb.changes(),
        grammar: Cli::command,
        mirrored: Cell::new(false),
        notifies: Cell::new(false),
    };
    let names_server = match &cli.verb {
        Verb::Store(args) => args.names_stores(),
        Verb::Import(args) => args.names_server(),
        _ => false,
    };
    if names_server {
        beside::take_over();
    }
    let outcome = match (&cli.verb, server) {
        (Verb::Dispatch(args), Some(server)) => (server.dispatch)(args, &app),
        (Verb::Mcp(args), Some(server)) => (server.mcp)(args, &app),
        (Verb::Serve(args), Some(server)) => (server.serve)(args, &app),
        (verb, _) => verb.run(&app),
    };
    app.catch_up_mirrors();
    if let Some(news) = tenure_app::server_store::take_news() {
        warn(format!("warning: {news}"));
    }
    let exit = match outcome {
        Ok(shown) => app.show(&shown),
        Err(mut failure) => {
            tenure_app::keeper::say_since(&mut failure.problem);
            app.show_error(&failure)
        }
    };
    // Nobody waits for it who reads the answer.
    app.notify_deaths();
    exit
}

fn run_internal(arguments: &[OsString]) -> Exit {
    let style = Style {
        json: false,
        quiet: false,
    };
    match Internal::try_parse_from(arguments) {
        Ok(verb) => match verbs::run_internal(&verb, Cli::command) {
            Ok(shown) => style.show(&shown).end(false),
            Err(failure) => style.show_error(&failure).end(false),
        },
        Err(error) => show_parse_error(error, arguments, style),
    }
}

/// Help and version are answers; everything else is an error of usage.
fn show_parse_error(error: clap::Error, arguments: &[OsString], style: Style) -> Exit {
    use clap::error::ErrorKind;
    let grammar = Grammar {
        command: Cli::command,
        jobs: JOBS,
    };
    let json = style.json;
    let text = error.to_string();
    let answer = match error.kind() {
        ErrorKind::DisplayHelp => Some(Output::new("help", &text.trim_end(), "")),
        ErrorKind::DisplayVersion => Some(Output::new("version", &build::OWN, "")),
        _ => None,
    };
    if let Some(answer) = answer {
        if json {
            return style.show(&answer).end(false);
        }
        let shown = if colours() {
            error.render().ansi().to_string()
        } else {
            text
        };
        return match put(shown.trim_end()) {
            Ok(_) => Exit::DONE,
            Err(failure) => style.show_error(&failure).end(false),
        };
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        if !json {
            mention(&format!("{}\n", text.trim_end()));
        }
        let failure = grammar.incomplete(arguments);
        return style.show_error(&failure).end(false);
    }
    let failure = grammar.failure(error, arguments);
    style.show_error(&failure).end(false)
}

/// Whether a command can be typed as it stands.
#[cfg(test)]
pub fn can_be_typed(words: &[&str]) -> Result<(), clap::Error> {
    let typed = std::iter::once("tenure").chain(words.iter().copied());
    Cli::try_parse_from(typed).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_verb_alone_reads_the_same_as_among_all() {
        for line in [
            "tenure ps -a --limit 3",
            "tenure sessions --json",
            "tenure claim issue:acme/web#42 --note x -q --session s",
            "tenure claim wp:1 --wait 10m --json -- make -j2 --json",
            "tenure mission join m1 --role lead",
            "tenure mission list -v",
            "tenure lock x -- true",
            "tenure --json ps",
            "tenure -qv --session s claim wp:1",
            "tenure --session=s claim wp:1",
        ] {
            let alone = parse_verb(&words(line)).unwrap_or_else(|| panic!("{line}"));
            let among = Cli::try_parse_from(words(line)).unwrap();
            assert_eq!(format!("{alone:?}"), format!("{among:?}"));
        }
    }

    #[test]
    fn what_is_not_a_correct_verb_is_left_to_the_whole_grammar() {
        for line in [
            "tenure",
            "tenure nothing",
            "tenure --nothing ps",
            "tenure --session",
            "tenure ps --nothing",
            "tenure ps --help",
            "tenure --version",
        ] {
            assert!(parse_verb(&words(line)).is_none(), "{line}");
        }
    }
}
