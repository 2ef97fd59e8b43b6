use super::selection::JobSelection;
use crate::app::App;
use crate::output::Outcome;
use tenure_runs::stop;

/// Run parked or waiting jobs now
///
/// A job that the breaker parked needs a person: the count of its item starts again. A job that is over a cap or a
/// budget of its rule stays parked. If the repository of a job may be another one than it was, because its forge reported
/// another id or its deletion, a person who retries the job says that it is the right one.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: JobSelection,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    stop::end_overdue(&mut context)?;
    let which = args.which.request(app)?;
    let answer = context.service().retry_jobs(&which)?;
    args.which.show(&answer)
}
