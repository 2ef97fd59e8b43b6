//! `completions`: scripts that make a shell ask tenure what may come next, and what tenure answers.
//!
//! The scripts for bash, zsh and fish only call `tenure __complete`, so that they never go out of date; what
//! they get is a word a line, with a tab before what it means, or `:files` if the shell should offer files.
//! Asking only reads an existing store, and answers nothing if something is wrong.

mod engine;
mod line;

use std::ffi::OsString;
use std::time::Duration;

use clap_complete::engine::CompletionCandidate;
use clap_complete::{Shell, generate};
use tenure_app::completion;
use tenure_service::{Name, Nameable};

use self::engine::Offer;
use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Output};

/// Print a completion script for a shell
///
/// In bash, zsh and fish it also completes sessions, held keys, missions and items of conversations.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure completions bash > ~/.local/share/bash-completion/completions/tenure
  tenure completions zsh > ~/.zfunc/_tenure
  tenure completions fish > ~/.config/fish/completions/tenure.fish")]
pub struct Args {
    /// Shell
    shell: Shell,
}

/// What a shell's script asks.
#[derive(Debug, clap::Args)]
pub struct AskArgs {
    shell: Shell,

    /// Bash: the line up to the cursor, and the characters that end a word. Others: the words up to the cursor
    #[arg(last = true)]
    words: Vec<OsString>,
}

const BASH: &str = include_str!("tenure.bash");
const ZSH: &str = include_str!("tenure.zsh");
const FISH: &str = include_str!("tenure.fish");

/// How long reading the store may take: a person waits at the prompt.
const LIMIT: Duration = Duration::from_millis(500);

pub fn run(args: &Args, app: &App) -> Outcome {
    let text = match args.shell {
        Shell::Bash => BASH.to_owned(),
        Shell::Zsh => ZSH.to_owned(),
        Shell::Fish => FISH.to_owned(),
        other => {
            let mut script = Vec::new();
            generate(other, &mut app.command(), "tenure", &mut script);
            String::from_utf8_lossy(&script).into_owned()
        }
    };
    Ok(Output::new("completions", &text, Lines::own(&text)))
}

/// Answers a shell's script.
pub fn ask(args: &AskArgs, grammar: clap::Command) -> Outcome {
    let lossy = |word: &OsString| word.to_string_lossy().into_owned();
    let given: Vec<String> = args.words.iter().map(lossy).collect();
    let typed = match args.shell {
        Shell::Bash => line::TypedLine::of_line(given.first().map_or("", String::as_str)),
        _ => line::TypedLine::of_words(given.clone()),
    };
    let text = match engine::offer(grammar, &typed.words, names) {
        Offer::Files => ":files\n".to_owned(),
        Offer::Words(words) => {
            let breaks = given.get(1).map_or("", String::as_str);
            let shown = |one: &CompletionCandidate| {
                let word = one.get_value().to_string_lossy();
                let about = one.get_help().map(ToString::to_string).unwrap_or_default();
                match args.shell {
                    Shell::Bash => typed.as_bash_inserts(&word, breaks),
                    _ => format!("{word}\t{}", about.lines().next().unwrap_or_default()),
                }
            };
            let lines: Vec<String> = words.iter().map(shown).collect();
            lines.join("\n")
        }
    };
    Ok(Output::default().say(Lines::of_file(&text)))
}

fn names(of: Nameable) -> Vec<Name> {
    completion::known(of, tenure_host::clock::instant() + LIMIT)
}
