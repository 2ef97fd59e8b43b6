//! The command line: what is typed, and which verb it goes to.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::app::App;
use crate::exit::Exit;
use crate::output::{Style, Trouble};
use crate::verbs::{self, Verb};

/// Shows which coding agents are really alive and what each is working on, and keeps two off the same thing
#[derive(Debug, Parser)]
#[command(
    name = "tenure",
    version,
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "\
Examples:
  tenure ps                          who is alive, where, and what each holds
  tenure claim issue:acme/web#42     take an item; refused while a living session has it
  tenure release issue:acme/web#42   give it back (--done: it is finished)
  tenure why issue:acme/web#42       why an item is held, and what would free it

More: tenure help --all lists every verb by job, tenure help VERB explains one."
)]
pub struct Cli {
    /// Print exactly one JSON object on stdout
    #[arg(long, global = true, help_heading = "Everywhere")]
    json: bool,

    /// Act for this session: its handle, its id, or any unique part of either
    #[arg(
        long,
        global = true,
        value_name = "SESSION",
        help_heading = "Everywhere"
    )]
    session: Option<String>,

    /// Print nothing on success
    #[arg(long, short, global = true, help_heading = "Everywhere")]
    quiet: bool,

    /// Say more: what decided, and on what evidence
    #[arg(long, short, global = true, help_heading = "Everywhere")]
    verbose: bool,

    #[command(subcommand)]
    verb: Verb,
}

/// Parses, runs one verb, shows its answer.
pub fn run(arguments: Vec<OsString>) -> Exit {
    let wants_json = arguments
        .iter()
        .take_while(|arg| *arg != "--")
        .any(|arg| arg == "--json");
    let parsed = Cli::command()
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return show_parse_error(&error, wants_json),
    };
    let style = Style {
        json: cli.json,
        quiet: cli.quiet,
    };
    let app = App {
        style,
        session: cli.session,
        verbose: cli.verbose,
        grammar: Cli::command,
    };
    match verbs::run(&cli.verb, &app) {
        Ok(shown) => style.show(&shown),
        Err(trouble) => style.show_trouble(&trouble),
    }
}

/// Help and version are answers; everything else is an error of usage.
fn show_parse_error(error: &clap::Error, json: bool) -> Exit {
    use clap::error::ErrorKind;
    let is_answer = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    if is_answer || !json {
        if error.print().is_err() {
            // Nobody is left to tell.
        }
        return if is_answer { Exit::DONE } else { Exit::USAGE };
    }
    let text = error.to_string();
    let message = text
        .lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned();
    let trouble = Trouble::new(
        Exit::USAGE,
        "usage",
        message,
        "tenure help VERB shows how it is used",
    );
    Style { json, quiet: false }.show_trouble(&trouble)
}
