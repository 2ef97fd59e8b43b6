//! Joining, leaving, and saying which mission is the active one.

use serde_json::json;
use tenure_core::mission::{MissionId, ParticipantId, Role};
use tenure_core::reason::Reason;
use tenure_service::answer::{Class, Hint};
use tenure_service::{JoinRequest, PointRequest, Whose};

use super::shown::{decision, warn};
use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Shown, Trouble};

/// Become a participant of a mission; joining again keeps everything but the role
///
/// The mission is this session's active one from then on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission join 041-login --role developer
  tenure mission join 041-login --role reviewer --participant 01ARZ3NDEKTSV4RRFFQ69G5FAV")]
pub struct JoinArgs {
    /// The mission
    #[arg(value_name = "MISSION")]
    mission: String,

    /// What this session is in it, such as developer or reviewer
    #[arg(long, value_name = "ROLE")]
    role: String,

    /// Its id there, a ULID, where somebody else gave it one
    #[arg(long, value_name = "ULID")]
    participant: Option<String>,

    /// Why, on record; needed with --session for one that is not one's own
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

/// Take this session out of a mission; works whatever is wrong with what is stored
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission leave
  tenure mission leave 041-login")]
pub struct LeaveArgs {
    /// The mission, if not the active one
    #[arg(value_name = "MISSION")]
    named: Option<String>,

    /// The same, as the other verbs take it
    #[arg(long, value_name = "MISSION", conflicts_with = "named")]
    mission: Option<String>,

    /// Why, on record; needed with --session for one that is not one's own
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

/// Say which mission is the active one, or show which one is
///
/// It stays so until it is changed. A session's pointer goes before its repository's, and that before its
/// user's.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission use 041-login
  tenure mission use 041-login --for repo      for every worktree of this repository
  tenure mission use --clear --for user
  tenure mission use                           show which one is active, and why")]
pub struct UseArgs {
    /// The mission
    #[arg(value_name = "MISSION", conflicts_with = "clear")]
    mission: Option<String>,

    /// Whose pointer to set
    #[arg(long = "for", value_name = "WHOSE", default_value = "session")]
    whose: WhoseArg,

    /// Forget the pointer
    #[arg(long)]
    clear: bool,

    /// Why, on record; needed with --session for one that is not one's own
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum WhoseArg {
    /// This session's
    Session,
    /// This repository's, in all its worktrees
    Repo,
    /// This user's
    User,
}

pub fn join(args: &JoinArgs, app: &App) -> Outcome {
    let request = JoinRequest {
        mission: MissionId::parse(&args.mission)?,
        role: Role::parse(&args.role)?,
        participant: args
            .participant
            .as_deref()
            .map(ParticipantId::parse)
            .transpose()?,
    };
    let mut opened = app.open()?;
    let here = opened.here();
    let naming = app.naming(args.reason.as_ref());
    let answer = opened.service().join_mission(&naming, &here, &request)?;
    let joined = &answer.value;
    warn(app, &joined.warnings);
    let one = &joined.participant;
    let word = if joined.new { "joined" } else { "is still in" };
    let text = format!(
        "{} {word} {} as {} (participant {})",
        one.session.handle, one.mission, one.role, one.participant_id
    );
    Ok(Shown::new("participant", one, text)
        .with("joined", &if joined.new { "new" } else { "same" })
        .with("warnings", &joined.warnings)
        .told(&answer))
}

pub fn leave(args: &LeaveArgs, app: &App) -> Outcome {
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

pub fn point(args: &UseArgs, app: &App) -> Outcome {
    let mission = args.mission.as_deref().map(MissionId::parse).transpose()?;
    if mission.is_none() && !args.clear {
        return active(args, app);
    }
    let request = PointRequest {
        whose: match args.whose {
            WhoseArg::Session => Whose::Session,
            WhoseArg::Repo => Whose::Repo,
            WhoseArg::User => Whose::User,
        },
        mission,
    };
    let mut opened = app.open()?;
    let here = opened.here();
    let naming = app.naming(args.reason.as_ref());
    let answer = opened
        .service()
        .point_to_mission(&naming, &here, &request)?;
    let pointed = &answer.value;
    let warnings: Vec<String> = pointed.faults.iter().map(ToString::to_string).collect();
    warn(app, &warnings);
    let mut text = Lines::from(match (&pointed.mission, &pointed.before) {
        (Some(mission), _) => format!("{mission} is the {}'s active mission", pointed.whose),
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
    Ok(Shown::new("use", &part, text)
        .with("pointer", &pointed.pointer)
        .with("warnings", &warnings)
        .told(&answer))
}

/// Shows which mission is meant when none is named.
fn active(args: &UseArgs, app: &App) -> Outcome {
    if args.whose != WhoseArg::Session {
        let message = "no mission was named";
        let hint = Hint::step("name one, or say --clear");
        let active = Hint::run("mission", ["use"], "to see the active one");
        return Err(Trouble::new(Class::Usage, "usage", message, hint).or(active));
    }
    let mut opened = app.open()?;
    let here = opened.here();
    let answer = opened.service().active_mission(&app.naming(None), &here)?;
    let pointer = &answer.value;
    let warnings: Vec<String> = pointer
        .passed_over
        .iter()
        .map(ToString::to_string)
        .collect();
    warn(app, &warnings);
    let mission = pointer.mission.as_deref().unwrap_or_default();
    let text = format!("{mission} ({}: {})", pointer.by, pointer.evidence);
    Ok(Shown::new("pointer", pointer, text).told(&answer))
}
