use tenure_app::open::Context;
use tenure_app::window;
use tenure_service::ListRequest;
use tenure_service::answer::{Class, Hint};

use crate::app::App;
use crate::output::{CliError, Outcome, Output};

/// Switch to the window a session runs in
///
/// Without SESSION, switches to the one on this machine that has been waiting for you longest.
///
/// Selects its tmux pane, and switches to it when run inside the same tmux. Outside tmux, runs the command in the
/// setting goto.command. If there is none, fails and shows where the session is and how to open it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure goto                  to the session that waits longest
  tenure goto claude-k7qd
  tenure goto k7qd

To focus a terminal window without tmux, set in ~/.config/tenure/config.toml:
  [goto]
  command = \"my-terminal --focus-tty {tty}\"

{handle}, {pid}, {tty} and {pane} are replaced. The command is not run through a shell,
and is ended after 3 seconds.")]
pub struct Args {
    /// Handle, id, or a unique part of either
    #[arg(id = "open", value_name = "SESSION")]
    name: Option<String>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => waits_longest(&mut context)?,
    };
    let found = match context.service().window(&name) {
        Ok(found) => found,
        Err(failure) => return Err(with_resume(failure.into(), &mut context, &name)),
    };
    window::focus(&context, &found.value)?;
    let place = found.value.session.place.as_deref();
    let handle = &found.value.session.handle;
    let text = match place {
        Some(place) => format!("switched to {handle} at {place}"),
        None => format!("switched to {handle}"),
    };
    context.service().attend(handle)?;
    Ok(Output::new("session", &found.value.session, text).told(&found))
}

/// The handle of the session of this machine that has been waiting for a person longest: the first one in the order of
/// every list.
fn waits_longest(context: &mut Context) -> Result<String, CliError> {
    let listed = context.service().list(&ListRequest::default())?.value;
    let mut sessions = listed.items.into_iter();
    // The window of one on another machine cannot be shown.
    let waits = sessions.find(|one| one.host.is_none() && one.waits_for_a_person());
    waits.map(|one| one.handle).ok_or_else(|| {
        let hint = Hint::verb("ps", "to list sessions");
        CliError::new(
            Class::Refused,
            "none_waits",
            "no session on this machine waits for you",
            hint,
        )
    })
}

/// Names the command that resumes a session which has ended, if one can.
fn with_resume(mut failure: CliError, context: &mut Context, name: &str) -> CliError {
    if failure.problem.kind != "not_live" {
        return failure;
    }
    let found = context.service().resumable(name).ok();
    if let Some(found) = found.filter(|found| found.value.problem.is_none()) {
        let handle = [&found.value.session.handle];
        let resume = Hint::run("resume", handle, "to resume it");
        failure.problem.hints.insert(0, resume);
    }
    failure
}
