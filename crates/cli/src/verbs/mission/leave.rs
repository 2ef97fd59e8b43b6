use serde_json::json;
use tenure_app::mission_token;
use tenure_core::mission::MissionId;
use tenure_core::reason::Reason;

use crate::app::App;
use crate::output::{Outcome, Output, warn};

/// Leave a mission; works even if stored data is invalid
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission leave
  tenure mission leave 041-login")]
pub struct Args {
    /// Mission to leave [default: the active one]
    #[arg(value_name = "MISSION")]
    named: Option<String>,

    /// Same as MISSION, as in the other commands
    #[arg(long, value_name = "MISSION", conflicts_with = "named")]
    mission: Option<String>,

    /// Reason, logged (required when --session names another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let here = context.here();
    let act_for = app.act_for(args.reason.as_ref());
    let named = args.named.as_deref().or(args.mission.as_deref());
    let answer = context.service().leave_mission(&act_for, &here, named)?;
    let left = &answer.value;
    // Only a valid mission has a token; the name of another may lead out of the directory.
    if MissionId::parse(&left.mission).is_ok()
        && let Err(error) = mission_token::remove(context.dir(), &left.session, &left.mission)
    {
        warn(format!(
            "warning: cannot remove the token of {}: {error}",
            left.mission
        ));
    }
    let text = if left.cleared {
        format!(
            "left {}; it is no longer this session's active mission",
            left.mission
        )
    } else {
        format!("left {}", left.mission)
    };
    let part = json!({"mission": left.mission, "pointer_cleared": left.cleared});
    Ok(Output::new("left", &part, text).told(&answer))
}
