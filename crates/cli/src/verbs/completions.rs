use clap_complete::{Shell, generate};

use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Shown};

/// Print a shell's completion script
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure completions bash > ~/.local/share/bash-completion/completions/tenure
  tenure completions zsh > ~/.zfunc/_tenure")]
pub struct Args {
    shell: Shell,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut script = Vec::new();
    generate(args.shell, &mut app.command(), "tenure", &mut script);
    let text = String::from_utf8_lossy(&script).into_owned();
    Ok(Shown::new("completions", &text, Lines::own(&text)))
}
