use serde_json::json;
use tenure_core::mission::MissionId;

use crate::app::App;
use crate::output::{Outcome, Output, count};

/// Check the stored data of a mission: reports every error, exit 6
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission check
  tenure mission check --mission 041-login
  tenure mission check --all     every mission and every pointer")]
pub struct Args {
    /// Mission [default: the active one]
    #[arg(long, value_name = "MISSION", conflicts_with = "all")]
    mission: Option<String>,

    /// Check every mission, and what is set as active for every session, repository and user
    #[arg(long)]
    all: bool,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mission = args.mission.as_deref().map(MissionId::parse).transpose()?;
    let mut context = app.open()?;
    let here = context.here();
    let act_for = app.act_for(None);
    let answer = context
        .service()
        .check_missions(&act_for, &here, mission.as_ref(), args.all)?;
    let checked = answer.value;
    let part = json!({"checked": checked, "faults": []});
    let text = format!("no errors ({} checked)", count(checked, "record"));
    Ok(Output::new("check", &part, text).told(&answer))
}
