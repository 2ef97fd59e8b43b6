use super::shown;
use crate::app::App;
use crate::output::{Outcome, Output};

/// List missions: participants, how many are live, how many drive
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission list
  tenure mission list --all      include missions without participants")]
pub struct Args {
    /// Include missions without participants
    #[arg(long)]
    all: bool,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let here = context.here();
    let answer = context
        .service()
        .missions(&app.act_for(None), &here, args.all)?;
    let text = shown::missions(&answer.value);
    Ok(Output::new("missions", &answer.value, text).told(&answer))
}
