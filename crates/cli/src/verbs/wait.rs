use tenure_app::awaited;
use tenure_core::time::Span;
use tenure_service::Until;

use crate::app::App;
use crate::child::unfinished;
use crate::output::{Outcome, Shown};

/// Wait until a session ends, or is idle
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure wait claude-k7qd
  tenure wait claude-k7qd --for idle --timeout 10m")]
pub struct Args {
    /// Its handle, its id, or any unique part of either
    #[arg(value_name = "SESSION")]
    name: String,

    /// What to wait for
    #[arg(long = "for", value_name = "WHAT", default_value = "end")]
    what: What,

    /// Wait at most this long
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    timeout: Option<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Its end or its death
    End,
    /// The end of its turn, or its end
    Idle,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let until = match args.what {
        What::End => Until::Ends,
        What::Idle => Until::Rests,
    };
    let timeout = args.timeout.map(|Span(length)| length);
    let mut opened = app.open()?;
    let answer = awaited::session(&mut opened, &args.name, until, timeout).map_err(unfinished)?;
    let session = &answer.value;
    let text = format!("{} is {}: {}", session.handle, session.state, session.why);
    Ok(Shown::new("session", session, text).told(&answer))
}
