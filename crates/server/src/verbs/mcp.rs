//! Serving one agent over MCP, until that agent is gone.

use std::io::IsTerminal;

use tenure_cli::app::App;
use tenure_cli::exit::Exit;
use tenure_cli::output::{CliError, Outcome, Output, warn};
use tenure_cli::verbs::mcp::Args;
use tenure_host::pidfd::ProcessWatch;
use tenure_host::watch::{WakeCause, Watch};
use tenure_service::answer::{Class, Hint};

pub fn mcp(_: &Args, _: &App) -> Outcome {
    if std::io::stdin().is_terminal() {
        warn("note: speaks MCP on stdin and stdout; agents start it (`tenure install --mcp`)");
    }
    // Before anything else, so that a parent that is gone by now is not missed for long.
    let parent: Vec<ProcessWatch> = ProcessWatch::parent().into_iter().collect();
    let mut watch = Watch::on_nothing();
    watch.catch_signals().map_err(|error| broken(&error))?;
    watch.end_with_reader();
    let until_gone = move || {
        // A signal, the end of the parent, or an output that nobody reads.
        while matches!(watch.wait(&parent, None), Ok(WakeCause::Timeout)) {}
    };
    tenure_web::mcp::serve(until_gone).map_err(|error| broken(&error))?;
    Ok(Output::silent(Exit::DONE))
}

fn broken(error: &std::io::Error) -> CliError {
    let message = format!("cannot serve MCP: {error}");
    let hint = Hint::step("run it again");
    CliError::new(Class::Internal, "internal", message, hint)
}
