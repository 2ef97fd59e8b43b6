use std::io::Read;

use serde_json::json;
use tenure_app::transcript::{self, MAX_BYTES};
use tenure_core::reason::Reason;
use tenure_core::time::Span;
use tenure_host::append::Durability;
use tenure_service::ActFor;
use tenure_service::answer::{Class, Hint};

use crate::app::App;
use crate::output::{self, CliError, Outcome, Output};

/// Append JSON lines from stdin, all or nothing, under the file's lock
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Handle, id, or a unique part of either
    #[arg(value_name = "SESSION")]
    name: String,

    /// Wait until the lines are on disk
    #[arg(long)]
    durable: bool,

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
    let lines = stdin()?;
    let act_for = ActFor {
        session: Some(args.name.clone()),
        reason: args.reason.clone(),
    };
    let durability = if args.durable {
        Durability::Disk
    } else {
        Durability::Kernel
    };
    let answer = transcript::append(&mut app.open()?, &act_for, &lines, args.wait.0, durability)?;
    let done = &answer.value;
    let (path, count) = (&done.file.path, done.lines);
    let part = json!({"path": path, "session": done.file.handle, "offset": done.offset, "lines": count, "bytes": lines.len()});
    let text = format!("appended {} to {path}", output::count(count, "line"));
    Ok(Output::new("transcript", &part, text).told(&answer))
}

fn stdin() -> Result<Vec<u8>, CliError> {
    let usage = |message: String, step: &str| {
        CliError::new(Class::Usage, "usage", message, Hint::step(step))
    };
    let mut lines = Vec::new();
    let read = std::io::stdin().take(MAX_BYTES + 1).read_to_end(&mut lines);
    read.map_err(|error| {
        usage(
            format!("cannot read stdin: {error}"),
            "write whole lines to stdin",
        )
    })?;
    if lines.len() as u64 > MAX_BYTES {
        Err(usage(
            "the input is larger than 64 MiB".into(),
            "append it in smaller parts",
        ))
    } else {
        Ok(lines)
    }
}
