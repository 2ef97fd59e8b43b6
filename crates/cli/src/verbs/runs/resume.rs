use tenure_runs::compose::go_on;

use crate::app::App;
use crate::exit::Exit;
use crate::output::Outcome;
use crate::run_window;

/// Continue a run that was cut off, parked, stopped or failed, in its conversation
///
/// The agent is told that its last turn was cut off, and why; its prompt is sent again only if it never arrived.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run id, or the beginning of one
    #[arg(value_name = "RUN")]
    run: String,

    /// Exit code if something the run needs is in use
    #[arg(long, value_name = "N", default_value_t = 125)]
    conflict_exit: u8,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let done = app.open().and_then(|mut context| {
        tenure_runs::settle::all(&mut context)?;
        let composed = go_on(&mut context, &args.run)?;
        run_window::run(&mut context, &composed, app)
    });
    done.map_err(|error| run_window::refused(error, Exit(args.conflict_exit)))
}
