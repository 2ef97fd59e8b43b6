//! What a participant works on, and whether it drives it.

use tenure_core::mission::MissionId;
use tenure_core::mission::change::Change;
use tenure_core::reason::Reason;
use tenure_service::ChangeRequest;

use super::shown::{decision, warn};
use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Shown};

/// Say what this session works on: wp:ID, step:ID or none
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission focus wp:WP03
  tenure mission focus step:42 --strict     refused while another drives it
  tenure mission focus none")]
pub struct FocusArgs {
    /// wp:ID, step:ID or none
    #[arg(value_name = "FOCUS")]
    focus: String,

    #[command(flatten)]
    more: More,
}

/// Say whether this session drives its focus on: active or inactive
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission drive active
  tenure mission drive active --strict      refused while another drives the same focus
  tenure mission drive inactive")]
pub struct DriveArgs {
    /// active or inactive
    #[arg(value_name = "DRIVE")]
    drive: String,

    #[command(flatten)]
    more: More,
}

#[derive(Debug, clap::Args)]
struct More {
    /// The mission, if not the active one
    #[arg(long, value_name = "MISSION")]
    mission: Option<String>,

    /// Refuse (exit 3) what another live participant drives, instead of a warning
    #[arg(long)]
    strict: bool,

    /// Why, on record; needed with --session for one that is not one's own
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn focus(args: &FocusArgs, app: &App) -> Outcome {
    update("focus", &args.focus, &args.more, app)
}

pub fn drive(args: &DriveArgs, app: &App) -> Outcome {
    update("drive", &args.drive, &args.more, app)
}

fn update(field: &str, value: &str, more: &More, app: &App) -> Outcome {
    let request = ChangeRequest {
        mission: more.mission.as_deref().map(MissionId::parse).transpose()?,
        change: Change::named(field, value)?,
        strict: more.strict,
    };
    let mut opened = app.open()?;
    let here = opened.here();
    let naming = app.naming(more.reason.as_ref());
    let answer = opened
        .service()
        .change_participant(&naming, &here, &request)?;
    let changed = &answer.value;
    let passed = changed.pointer.passed_over.iter().map(ToString::to_string);
    let warnings: Vec<String> = changed.warnings.iter().cloned().chain(passed).collect();
    warn(app, &warnings);
    let one = &changed.participant;
    let focus = one.focus.as_deref().unwrap_or("none");
    let mut text = Lines::from(format!(
        "{} in {}: focus {focus}, drive {}",
        one.session.handle, one.mission, one.drive
    ));
    text.extend(&decision(app, &changed.pointer));
    Ok(Shown::new("participant", one, text)
        .with("pointer", &changed.pointer)
        .with("warnings", &warnings)
        .told(&answer))
}
