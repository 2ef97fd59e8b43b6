use serde_json::json;
use tenure_core::mission::MissionId;

use crate::app::App;
use crate::output::{Outcome, Shown};

/// Check what is stored of a mission: every error at once, exit 6
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission check
  tenure mission check --mission 041-login
  tenure mission check --all     every mission and every pointer")]
pub struct Args {
    /// The mission, if not the active one
    #[arg(long, value_name = "MISSION", conflicts_with = "all")]
    mission: Option<String>,

    /// Every mission and every pointer
    #[arg(long)]
    all: bool,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mission = args.mission.as_deref().map(MissionId::parse).transpose()?;
    let mut opened = app.open()?;
    let here = opened.here();
    let naming = app.naming(None);
    let answer = opened
        .service()
        .check_missions(&naming, &here, mission.as_ref(), args.all)?;
    let checked = answer.value;
    let part = json!({"checked": checked, "faults": []});
    Ok(Shown::new(
        "check",
        &part,
        format!("nothing is wrong ({checked} checked)"),
    )
    .told(&answer))
}
