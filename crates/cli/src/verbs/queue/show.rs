use crate::app::App;
use crate::output::{Outcome, Output};
use crate::render::job as shown;

/// Show one job: what asked for it, its runs and how it ended
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Job id, or the beginning of one
    #[arg(value_name = "JOB")]
    job: String,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let answer = context.service().show_job(&args.job)?;
    let text = shown::one(&answer.value);
    Ok(Output::new("job", &answer.value, text).told(&answer))
}
