use tenure_core::service::ListRequest;

use crate::app::App;
use crate::output::{Outcome, Shown};
use crate::render;

/// Show sessions: who is alive, where, since when, and what each holds
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure ps
  tenure ps -a --limit 20      also those that ended
  tenure ps --json | jq '.sessions[] | select(.state == \"live\") | .handle'")]
pub struct Args {
    /// Also sessions that ended
    #[arg(long, short)]
    all: bool,

    /// At most this many, the newest first
    #[arg(long, value_name = "N", default_value_t = 200)]
    limit: usize,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut opened = app.open()?;
    let request = ListRequest {
        closed_too: args.all,
        limit: args.limit,
        ..ListRequest::default()
    };
    let answer = opened.service().list(&request)?;
    let text = render::sessions(&answer.value, app.verbose);
    Ok(Shown::new("sessions", &answer.value, text).told(&answer))
}
