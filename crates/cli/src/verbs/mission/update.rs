//! What `focus` and `drive` have in common: a change of what a participant does.

use tenure_core::mission::MissionId;
use tenure_core::mission::change::MissionChange;
use tenure_core::reason::Reason;
use tenure_service::ChangeRequest;

use super::shown::{decision, warn};
use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Output};

#[derive(Debug, clap::Args)]
pub struct More {
    /// Mission [default: the active one]
    #[arg(long, value_name = "MISSION")]
    mission: Option<String>,

    /// Fail (exit 3) if another live participant drives the same focus, instead of warning
    #[arg(long)]
    strict: bool,

    /// Reason, logged (required when --session names another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn update(field: &str, value: &str, more: &More, app: &App) -> Outcome {
    let request = ChangeRequest {
        mission: more.mission.as_deref().map(MissionId::parse).transpose()?,
        change: MissionChange::named(field, value)?,
        strict: more.strict,
    };
    let mut context = app.open()?;
    let here = context.here();
    let act_for = app.act_for(more.reason.as_ref());
    let answer = context
        .service()
        .change_participant(&act_for, &here, &request)?;
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
    Ok(Output::new("participant", one, text)
        .with("pointer", &changed.pointer)
        .with("warnings", &warnings)
        .told(&answer))
}
