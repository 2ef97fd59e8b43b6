use crate::app::App;
use crate::output::{Outcome, Shown};
use crate::render;

/// Show everything about one session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure show claude-k7qd
  tenure show k7qd --json")]
pub struct Args {
    /// Its handle, its id, or any unique part of either
    #[arg(value_name = "SESSION")]
    name: String,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut opened = app.open()?;
    let answer = opened.service().show(&args.name)?;
    let text = render::session(&answer.value, app.verbose);
    Ok(Shown::new("session", &answer.value.session, text)
        .with("meta", &answer.value.metadata)
        .told(&answer))
}
