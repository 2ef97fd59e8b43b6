use std::ffi::OsString;

use serde_json::json;
use tenure_service::answer::Class;

use super::JOBS;
use crate::app::App;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};
use crate::usage::{Grammar, every_verb};

/// Explain a command, or list all commands or exit codes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure help claim
  tenure help mission join
  tenure help --all
  tenure help exit-codes")]
pub struct Args {
    /// List every command by job
    #[arg(long)]
    all: bool,

    /// Command to explain, such as claim or mission join; or exit-codes
    #[arg(value_name = "COMMAND", num_args = 0..)]
    topic: Vec<String>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut root = app.command();
    root.build();
    let words: Vec<&str> = args.topic.iter().map(String::as_str).collect();
    match words[..] {
        [] if args.all => Ok(all(&root)),
        ["exit-codes"] => Ok(exit_codes()),
        _ => explained(app, &root, &words),
    }
}

/// What `--help` prints after these words, so that both ways of asking get one answer.
fn explained(app: &App, root: &clap::Command, words: &[&str]) -> Outcome {
    let line = ["tenure"].iter().chain(words).chain(&["--help"]);
    let line: Vec<OsString> = line.map(OsString::from).collect();
    let said = app.command().try_get_matches_from(&line).err();
    let known = words
        .iter()
        .try_fold(root, |verb, word| verb.find_subcommand(word));
    if let (Some(said), Some(_)) = (&said, known) {
        let text = said.to_string();
        return Ok(Output::new("help", &text.trim_end(), Lines::own(&text)));
    }
    let grammar = Grammar {
        command: app.grammar,
        jobs: JOBS,
    };
    let hint = said.map_or_else(every_verb, |said| grammar.hint(&said, &line));
    let message = format!("unknown command {:?}", words.join(" "));
    Err(CliError::new(Class::NotFound, "not_found", message, hint))
}

fn all(root: &clap::Command) -> Output {
    let about = |verb: &str| {
        let command = root.find_subcommand(verb);
        command
            .and_then(|c| c.get_about())
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    let mut text = String::new();
    let mut verbs = Vec::new();
    for (job, names) in JOBS {
        text.push_str(&format!("{job}:\n"));
        for (name, _) in *names {
            text.push_str(&format!("  {name:<12} {}\n", about(name)));
            verbs.push(json!({"job": job, "verb": name, "about": about(name)}));
        }
        text.push('\n');
    }
    text.push_str(
        "Run `tenure help COMMAND` to explain one, `tenure help exit-codes` for the exit codes.",
    );
    Output::new("help", &verbs, Lines::own(&text))
}

fn exit_codes() -> Output {
    let mut text = String::new();
    for (Exit(code), meaning) in Exit::TABLE {
        text.push_str(&format!("{code:>3}  {meaning}\n"));
    }
    let codes: Vec<_> = Exit::TABLE
        .iter()
        .map(|(Exit(code), meaning)| json!({"code": code, "meaning": meaning}))
        .collect();
    Output::new("exit_codes", &codes, Lines::own(&text))
}
