use tenure_app::open::Context;
use tenure_host::clock;
use tenure_service::view::SessionView;

use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Output};
use crate::render::{self, field};
use crate::survivors::named;

/// Show everything about one session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure show claude-k7qd
  tenure show k7qd --json")]
pub struct Args {
    /// Handle, id, or a unique part of either
    #[arg(value_name = "SESSION")]
    name: String,
}

/// Whether its conversation can be resumed now. If that is unknown, no command is shown.
fn can_be_resumed(context: &mut Context, handle: &str) -> bool {
    let found = context.service().resumable(handle);
    found.is_ok_and(|answer| answer.value.problem.is_none())
}

/// Adds what a session that is over left running.
fn add_survivors(text: &mut Lines, session: &SessionView) {
    let now = clock::wall();
    let survivors = session.survivors.as_deref().unwrap_or_default();
    for survivor in survivors {
        text.line(field("still runs", &named(survivor, now)));
    }
    if let Some(why) = &session.survivors_unsure {
        text.line(field("still runs", &format!("perhaps more: {why}")));
    }
    if survivors.iter().any(|one| one.can_end) {
        let command = format!("tenure end {} --kill-survivors", session.handle);
        text.line(field("", &format!("a person can end it with `{command}`")));
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let answer = context.service().show(&args.name)?;
    let mut text = render::session(&answer.value, app.verbose);
    let session = &answer.value.session;
    add_survivors(&mut text, session);
    if session.ended_at.is_some() && can_be_resumed(&mut context, &session.handle) {
        text.line(format!(
            "  {:<13} tenure resume {}",
            "resume", session.handle
        ));
    }
    Ok(Output::new("session", &answer.value.session, text)
        .with("meta", &answer.value.metadata)
        .told(&answer))
}
