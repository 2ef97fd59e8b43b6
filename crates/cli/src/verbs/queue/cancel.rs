use tenure_app::run::stop;
use tenure_core::reason::Reason;

use crate::app::App;
use crate::jobs as shown;
use crate::output::{Outcome, Output};

/// Cancel a job that is not running
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Job id, or the beginning of one
    #[arg(value_name = "JOB")]
    job: String,

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
    let answer = context.service().cancel_job(&args.job, &why)?;
    let text = shown::line(&answer.value);
    Ok(Output::new("job", &answer.value, text).told(&answer))
}
