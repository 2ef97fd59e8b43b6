use super::shown;
use crate::app::App;
use crate::output::{Outcome, Output};

/// Run a job now that is parked or waits to be tried again
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Job id, or the beginning of one
    #[arg(value_name = "JOB")]
    job: String,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let answer = context.service().retry_job(&args.job)?;
    let text = shown::line(&answer.value);
    Ok(Output::new("job", &answer.value, text).told(&answer))
}
