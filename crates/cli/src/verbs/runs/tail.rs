use serde_json::json;
use tenure_runs::settle;
use tenure_runs::window::{Update, WindowEnd, tail};

use super::transcript::Transcript;
use crate::app::App;
use crate::child::signal_exit;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output, put, warn};
use crate::run_window::{agent_line, sentence};

/// Show what the agent of a run says and does, until the run ends
///
/// Shows its text, its tools and its errors from the beginning. Ctrl-C ends the display; the run continues.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run id, or the beginning of one
    #[arg(value_name = "RUN")]
    run: String,

    /// Print every line of the agent's stream as it is
    #[arg(long)]
    raw: bool,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    settle::all(&mut context)?;
    let run = context.service().show_run(&args.run)?.value;
    let is_readable = !args.raw && !app.style.json;
    let mut transcript = Transcript::default();
    let mut failed: Option<CliError> = None;
    let closed = tail(&mut context, &run, is_readable, &mut |shown| {
        let Update::Line { raw, read } = shown else {
            return true;
        };
        let written = if app.style.json {
            put(&json!({"v": 1, "event": "agent", "data": agent_line(raw)}).to_string())
        } else {
            match (raw, read) {
                (None, _) => put("[missing]"),
                (Some(raw), Some(read)) => put_lines(&transcript.lines(raw, read)),
                (Some(raw), None) => {
                    put(Lines::from(String::from_utf8_lossy(raw).as_ref()).as_str())
                }
            }
        };
        written.unwrap_or_else(|error| {
            failed = Some(error);
            false
        })
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    put_lines(&transcript.end())?;
    let exit = match closed {
        WindowEnd::Ended(ended) => {
            if is_readable && !app.style.quiet {
                warn(sentence(&ended.run));
            }
            Exit::DONE
        }
        WindowEnd::Signal(signal) if signal != rustix::process::Signal::INT.as_raw() => {
            signal_exit(signal)
        }
        WindowEnd::Signal(_) | WindowEnd::Unread => Exit::DONE,
    };
    Ok(Output::silent(exit))
}

fn put_lines(lines: &Lines) -> Result<bool, CliError> {
    if lines.is_empty() {
        return Ok(true);
    }
    put(lines.as_str())
}
