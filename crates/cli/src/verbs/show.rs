use tenure_app::last_words;
use tenure_app::open::Context;

use crate::app::App;
use crate::output::{Outcome, Output};
use crate::render;

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

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open_until_exit()?;
    let mut answer = context.service().show(&args.name)?;
    last_words::add(&mut context, &mut answer.value.session);
    let mut text = render::session(&answer.value, app.verbose);
    let session = &answer.value.session;
    render::add_last_words(&mut text, session, None);
    render::add_survivors(&mut text, session);
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
