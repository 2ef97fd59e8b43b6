use tenure_core::queue::choose::Limits;

use crate::app::App;
use crate::output::{Outcome, Output};
use crate::render::job as shown;

/// Explain why a job is not running
///
/// The limit on jobs that run at once is the dispatcher's and is not checked here.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Job id, or the beginning of one
    #[arg(value_name = "JOB")]
    job: String,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let limits = Limits {
        concurrency: usize::MAX,
    };
    let answer = context.service().explain_job(&args.job, &limits)?;
    let explained = &answer.value.explanation;
    let mut text = shown::line(&answer.value.job);
    let until = explained
        .until
        .map_or_else(String::new, |until| format!(" (until {until})"));
    text.line(format!("  {}{until}", explained.why));
    Ok(Output::new("job", &answer.value.job, text)
        .with("explanation", explained)
        .told(&answer))
}
