use serde_json::json;
use tenure_app::transcript::{self, TranscriptFile};

use crate::app::App;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{Outcome, Output, count};

/// Report an incomplete last line, malformed lines and lines of other conversations
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Handle, id, or a unique part of either
    #[arg(value_name = "SESSION")]
    name: String,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let answer = transcript::verify(&mut app.open()?, &args.name)?;
    let (TranscriptFile { file, quarantined }, found) = &answer.value;
    let clean = found.problems.is_empty() && quarantined.is_none();
    let well = if clean { ", no problems" } else { "" };
    let lines = count(found.lines, "line");
    let mut text = Lines::from(format!("{}: {lines}{well}", file.path));
    for problem in &found.problems {
        text.line(format!(
            "  line {}: {}: {}",
            problem.line, problem.kind, problem.what
        ));
    }
    if found.more > 0 {
        text.line(format!("  {} more", found.more));
    }
    let part = json!({"path": file.path, "session": file.handle, "lines": found.lines, "problems": found.problems, "more": found.more, "quarantined": quarantined});
    let exit = if clean { Exit::DONE } else { Exit::INVALID };
    Ok(Output::new("transcript", &part, text)
        .told(&answer)
        .exit(exit))
}
