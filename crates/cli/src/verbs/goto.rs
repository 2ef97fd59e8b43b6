use tenure_app::open::Context;
use tenure_app::window;
use tenure_service::answer::Hint;

use crate::app::App;
use crate::output::{CliError, Outcome, Output};

/// Switch to the window a session runs in
///
/// Selects its tmux pane, and switches to it when run inside the same tmux. Outside tmux, runs the command in the
/// setting goto.command. If there is none, fails and shows where the session is and how to open it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure goto claude-k7qd
  tenure goto k7qd

To focus a terminal window without tmux, set in ~/.config/tenure/config.toml:
  [goto]
  command = \"my-terminal --focus-tty {tty}\"

{handle}, {pid}, {tty} and {pane} are replaced. The command is not run through a shell.")]
pub struct Args {
    /// Handle, id, or a unique part of either
    #[arg(id = "open", value_name = "SESSION")]
    name: String,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let found = match context.service().window(&args.name) {
        Ok(found) => found,
        Err(failure) => return Err(with_resume(failure.into(), &mut context, &args.name)),
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
