use clap::CommandFactory;
use clap_complete::{Shell, generate};

use super::Outcome;
use crate::app::App;
use crate::cli::Cli;
use crate::output::Shown;

/// Print a shell's completion script
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure completions bash > ~/.local/share/bash-completion/completions/tenure
  tenure completions zsh > ~/.zfunc/_tenure")]
pub struct Args {
    /// The shell
    shell: Shell,
}

pub fn run(args: &Args, _: &App) -> Outcome {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "tenure", &mut script);
    let text = String::from_utf8_lossy(&script).into_owned();
    Ok(Shown::new("completions", &text, text.clone()))
}
