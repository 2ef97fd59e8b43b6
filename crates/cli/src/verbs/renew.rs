use tenure_core::reason::Reason;
use tenure_core::time::{Span, Timestamp};
use tenure_service::RenewRequest;

use crate::app::App;
use crate::output::{Outcome, Output};

/// Renew a session's lease, or announce a period of silence
///
/// The lease matters only when tenure can't check the session's process: in another container, or if the process
/// is unknown.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure renew
  tenure renew --for 2h --reason 'long build'")]
pub struct Args {
    /// How long the session will be silent, at most 4h
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true)]
    length: Option<Span>,

    /// Reason, logged
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let request = RenewRequest {
        length: args.length,
    };
    let mut context = app.open_until_exit()?;
    let answer = context
        .service()
        .renew(&app.act_for(args.reason.as_ref()), &request)?;
    let session = &answer.value;
    let until = session
        .lease_until
        .as_ref()
        .map_or("later".to_owned(), Timestamp::to_string);
    Ok(Output::new(
        "session",
        session,
        format!("renewed the lease of {} until {until}", session.handle),
    )
    .told(&answer))
}
