use serde_json::json;
use tenure_app::transcript;
use tenure_core::reason::Reason;
use tenure_core::time::Span;
use tenure_service::ActFor;

use crate::app::App;
use crate::output::{Outcome, Output};

/// Cut an incomplete last line off the transcript, into a file beside it
///
/// Fails (exit 3) while a live process has the transcript open for writing: it may be about to write the rest.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure transcript repair claude-k7qd
  tenure transcript repair claude-k7qd --reason 'the agent was killed' --json | jq -r .transcript.quarantine")]
pub struct Args {
    /// Handle, id, or a unique part of either
    #[arg(value_name = "SESSION")]
    name: String,

    /// Wait for the lock at most this long
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        allow_hyphen_values = true
    )]
    wait: Span,

    /// Reason, logged (required for a session other than your own)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let act_for = ActFor {
        session: Some(args.name.clone()),
        reason: args.reason.clone(),
    };
    let answer = transcript::repair(&mut app.open()?, &act_for, args.wait.0)?;
    let (file, cut) = &answer.value;
    let path = &file.path;
    let (text, aside) = match cut {
        Some(cut) => {
            let aside = cut.quarantine.display().to_string();
            let text = format!("cut {} bytes off {path}; they are in {aside}", cut.bytes);
            (text, Some(aside))
        }
        None => (format!("{path}: the last line is complete"), None),
    };
    let part = json!({
        "path": path, "session": file.handle, "repaired": cut.is_some(), "quarantine": aside,
        "offset": cut.as_ref().map_or(0, |cut| cut.offset),
        "bytes": cut.as_ref().map_or(0, |cut| cut.bytes),
    });
    Ok(Output::new("transcript", &part, text).told(&answer))
}
