//! `mission use`: sets, clears or shows the active mission.

use serde_json::json;
use tenure_core::mission::MissionId;
use tenure_core::reason::Reason;
use tenure_service::answer::{Class, Hint};
use tenure_service::{PointRequest, PointerOwner};

use super::shown::{decision, warn};
use crate::app::App;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};

/// Set the active mission, or show it
///
/// It stays set until changed. A session's own active mission takes precedence over its repository's, and that
/// over its user's.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission use 041-login
  tenure mission use 041-login --for repo      for every worktree of this repository
  tenure mission use --clear --for user
  tenure mission use                           show the active mission, and why")]
pub struct Args {
    /// Mission to make active
    #[arg(value_name = "MISSION", conflicts_with = "clear")]
    mission: Option<String>,

    /// Whose active mission to set
    #[arg(long = "for", value_name = "WHOSE", default_value = "session")]
    whose: WhoseArg,

    /// Clear it
    #[arg(long)]
    clear: bool,

    /// Reason, logged (required when --session names another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

impl Args {
    pub fn changes(&self) -> bool {
        self.mission.is_some() || self.clear
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum WhoseArg {
    /// This session
    Session,
    /// This repository, in all its worktrees
    Repo,
    /// This user
    User,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mission = args.mission.as_deref().map(MissionId::parse).transpose()?;
    if !args.changes() {
        return active(args, app);
    }
    let request = PointRequest {
        whose: match args.whose {
            WhoseArg::Session => PointerOwner::Session,
            WhoseArg::Repo => PointerOwner::Repo,
            WhoseArg::User => PointerOwner::User,
        },
        mission,
    };
    let mut context = app.open()?;
    let here = context.here();
    let act_for = app.act_for(args.reason.as_ref());
    let answer = context
        .service()
        .point_to_mission(&act_for, &here, &request)?;
    let pointed = &answer.value;
    let warnings: Vec<String> = pointed.faults.iter().map(ToString::to_string).collect();
    warn(app, &warnings);
    let mut text = Lines::from(match (&pointed.mission, &pointed.before) {
        (Some(mission), _) => format!("{mission} is now the {}'s active mission", pointed.whose),
        (None, Some(before)) => format!(
            "{before} is no longer the {}'s active mission",
            pointed.whose
        ),
        (None, None) => format!("the {} had no active mission", pointed.whose),
    });
    text.extend(&decision(app, &pointed.pointer));
    let part = json!({
        "for": pointed.whose,
        "name": pointed.name,
        "mission": pointed.mission,
        "before": pointed.before,
    });
    Ok(Output::new("use", &part, text)
        .with("pointer", &pointed.pointer)
        .with("warnings", &warnings)
        .told(&answer))
}

/// Shows which mission is meant when none is named.
fn active(args: &Args, app: &App) -> Outcome {
    if args.whose != WhoseArg::Session {
        let message = "no mission was given";
        let name = Hint::step("pass a mission, or --clear");
        let mut failure = CliError::new(Class::Usage, "usage", message, name);
        let show = Hint::run("mission", ["use"], "to see the active mission");
        failure.problem.hints.push(show);
        return Err(failure);
    }
    let mut context = app.open()?;
    let here = context.here();
    let answer = context
        .service()
        .active_mission(&app.act_for(None), &here)?;
    let pointer = &answer.value;
    let warnings: Vec<String> = pointer
        .passed_over
        .iter()
        .map(ToString::to_string)
        .collect();
    warn(app, &warnings);
    let mission = pointer.mission.as_deref().unwrap_or_default();
    let text = format!("{mission} ({})", pointer.evidence);
    Ok(Output::new("pointer", pointer, text).told(&answer))
}
