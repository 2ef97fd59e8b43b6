use tenure_core::service::ListRequest;

use crate::app::App;
use crate::output::{Outcome, Shown};
use crate::{render, unmanaged};

/// Show sessions: who is alive, where, since when, and what each holds
///
/// Agents that run without hooks are shown as unmanaged; tenure adopt PID makes a session of one.
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
    let unmanaged = match opened.config().is_on("ps.unmanaged") {
        true => unmanaged::find(&mut opened)?,
        false => Vec::new(),
    };
    let text = render::people(&answer.value, &unmanaged, app.verbose);
    Ok(Shown::new("sessions", &answer.value, text)
        .with("unmanaged", &unmanaged)
        .told(&answer))
}
