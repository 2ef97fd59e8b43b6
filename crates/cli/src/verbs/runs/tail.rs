use serde_json::json;
use tenure_app::run::settle;
use tenure_app::run::window::{Closed, Update, tail};

use crate::app::App;
use crate::child::signal_exit;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output, put};
use crate::run_window::agent_line;

/// Show the log of a run: every line that its agent wrote
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run id, or the beginning of one
    #[arg(value_name = "RUN")]
    run: String,

    /// Keep printing until the run ends
    #[arg(long, short)]
    follow: bool,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    settle::all(&mut context)?;
    let run = context.service().show_run(&args.run)?.value;
    let mut failed: Option<CliError> = None;
    let closed = tail(&mut context, &run, args.follow, &mut |shown| {
        let Update::Line(line) = shown else {
            return true;
        };
        let written = if app.style.json {
            put(&json!({"v": 1, "event": "agent", "data": agent_line(line)}).to_string())
        } else {
            let text = line.map_or("[missing]".into(), String::from_utf8_lossy);
            put(Lines::from(text.as_ref()).as_str())
        };
        written.unwrap_or_else(|error| {
            failed = Some(error);
            false
        })
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let exit = match closed {
        Some(Closed::Signal(signal)) if signal != rustix::process::Signal::INT.as_raw() => {
            signal_exit(signal)
        }
        _ => Exit::DONE,
    };
    Ok(Output::silent(exit))
}
