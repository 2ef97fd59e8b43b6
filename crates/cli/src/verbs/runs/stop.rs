use tenure_core::reason::Reason;
use tenure_runs::{settle, stop};

use super::shown;
use crate::app::App;
use crate::output::{Outcome, Output};

/// Stop a run: its agent and the processes that the agent started
///
/// The agent gets its own stop signal, some time to end, and is then killed. Its conversation can be resumed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run id, or the beginning of one
    #[arg(value_name = "RUN")]
    run: String,

    /// Reason, logged
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,

    /// Give up on a run that cannot be reached, such as on a host that is gone; frees its conversation
    #[arg(long, requires = "reason")]
    abandon: bool,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    if let (true, Some(reason)) = (args.abandon, &args.reason) {
        settle::all(&mut context)?;
        let answer = context.service().abandon_run(&args.run, reason)?;
        let text = shown::line(&answer.value);
        return Ok(Output::new("run", &answer.value, text).told(&answer));
    }
    let why = match &args.reason {
        Some(reason) => reason.to_string(),
        None => "asked to stop".to_owned(),
    };
    let stopped = stop::stop(&mut context, &args.run, &why)?;
    let mut text = shown::line(&stopped.run);
    for survivor in &stopped.survivors {
        text.line(format!(
            "  still running: pid {} ({})",
            survivor.pid, survivor.command
        ));
    }
    Ok(Output::new("run", &stopped.run, text).with("survivors", &stopped.survivors))
}
