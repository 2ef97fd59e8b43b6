use tenure_app::run::stop;
use tenure_core::reason::Reason;

use super::shown;
use crate::app::App;
use crate::output::{Outcome, Output};

/// Stop a run: its agent, and everything that only the agent can have started
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
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
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
