use serde_json::json;
use tenure_app::transcript::{self, TranscriptFile};

use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Output};

/// Print the path of the transcript
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Handle, id, or a unique part of either
    #[arg(value_name = "SESSION")]
    name: String,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let answer = transcript::find(&mut app.open()?, &args.name)?;
    let TranscriptFile { file, quarantined } = &answer.value;
    let mut text = Lines::from(file.path.as_str());
    if let Some(why) = quarantined {
        text.line(format!(
            "the path stored before was wrong and was set aside: {why}"
        ));
    }
    let exists = std::path::Path::new(&file.path).exists();
    let part = json!({"path": file.path, "session": file.handle, "native_id": file.native_id, "exists": exists, "quarantined": quarantined});
    Ok(Output::new("transcript", &part, text).told(&answer))
}
