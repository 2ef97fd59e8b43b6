use tenure_core::reason::Reason;
use tenure_runs::stop;

use super::selection::JobSelection;
use crate::app::App;
use crate::output::Outcome;

/// Cancel jobs that are not running
///
/// A job that is over and whose result waits for a person keeps that result, but no longer waits.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: JobSelection,

    /// Reason, logged
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let why = match &args.reason {
        Some(reason) => reason.to_string(),
        None => "on request".to_owned(),
    };
    stop::end_overdue(&mut context)?;
    let which = args.which.request(app)?;
    let answer = context.service().cancel_jobs(&which, &why)?;
    args.which.show(&answer)
}
