use crate::app::App;
use crate::jobs as shown;
use crate::output::{Outcome, Output};
use tenure_app::run::stop;

/// Run a parked or waiting job now
///
/// A job that the breaker parked needs a person: the count of its item starts again. A job that is over a cap or a
/// budget of its rule stays parked.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Job id, or the beginning of one
    #[arg(value_name = "JOB")]
    job: String,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    stop::end_overdue(&mut context)?;
    let answer = context.service().retry_job(&args.job)?;
    let text = shown::line(&answer.value);
    Ok(Output::new("job", &answer.value, text).told(&answer))
}
