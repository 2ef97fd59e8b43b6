use tenure_app::place::unread_remote;

use crate::app::App;
use crate::output::{Outcome, Output};
use crate::render;

/// Show which session this is, and how tenure knows
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure whoami
  tenure whoami --json | jq -r .session.id")]
pub struct Args {}

pub fn run(_: &Args, app: &App) -> Outcome {
    let mut context = app.open_until_exit()?;
    let here = context.here();
    let answer = context.service().whoami(&app.act_for(None), &here)?;
    let (who, mission) = (&answer.value.who, &answer.value.mission);
    let mut text = render::session(who, true);
    let unread = app.verbose.then(|| unread_remote(&who.session.dir));
    if let Some(why) = unread.flatten() {
        text.line(render::field(
            "repository",
            &format!("named by its directory: {why}"),
        ));
    }
    text.extend(&render::membership(mission));
    let conversation = &answer.value.conversation;
    if let Some(conversation) = conversation {
        text.extend(&render::conversation(conversation));
    }
    Ok(Output::new("session", &who.session, text)
        .with("resolved", &who.resolved)
        .with("meta", &who.metadata)
        .with("participant", &mission.participant)
        .with("pointer", &mission.pointer)
        .with("faults", &mission.faults)
        .with("conversation", conversation)
        .told(&answer))
}
