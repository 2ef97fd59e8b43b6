use crate::app::App;
use crate::output::{Outcome, Shown};
use crate::render;

/// Show which session this is, and what decided that
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure whoami
  tenure whoami --json | jq -r .session.id")]
pub struct Args {}

pub fn run(_: &Args, app: &App) -> Outcome {
    let mut opened = app.open()?;
    let answer = opened.service().whoami(&app.naming(None))?;
    let text = render::session(&answer.value, true);
    Ok(Shown::new("session", &answer.value.session, text)
        .with("resolved", &answer.value.resolved)
        .with("meta", &answer.value.metadata)
        .told(&answer))
}
