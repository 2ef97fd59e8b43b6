use serde_json::json;
use tenure_core::reason::Reason;

use crate::app::App;
use crate::output::{Outcome, Shown};

/// Take this session out of a mission; works whatever is wrong with what is stored
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission leave
  tenure mission leave 041-login")]
pub struct Args {
    /// The mission, if not the active one
    #[arg(value_name = "MISSION")]
    named: Option<String>,

    /// The same, as the other verbs take it
    #[arg(long, value_name = "MISSION", conflicts_with = "named")]
    mission: Option<String>,

    /// Reason, logged (required when --session names another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut opened = app.open()?;
    let here = opened.here();
    let naming = app.naming(args.reason.as_ref());
    let named = args.named.as_deref().or(args.mission.as_deref());
    let answer = opened.service().leave_mission(&naming, &here, named)?;
    let left = &answer.value;
    let text = match left.cleared {
        true => format!(
            "left {}; it is no longer this session's active mission",
            left.mission
        ),
        false => format!("left {}", left.mission),
    };
    let part = json!({"mission": left.mission, "pointer_cleared": left.cleared});
    Ok(Shown::new("left", &part, text).told(&answer))
}
