use tenure_app::open::Context;
use tenure_app::window;
use tenure_service::answer::Hint;

use crate::app::App;
use crate::output::{CliError, Outcome, Output};

/// Go to the window that a session runs in
///
/// Selects its tmux pane, and switches to it when run inside the same tmux. Elsewhere the setting goto.command is
/// run, if there is one. Otherwise it fails, and says where the session is and what opens it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure goto claude-k7qd
  tenure goto k7qd

A command for terminals without tmux, in ~/.config/tenure/config.toml:
  [goto]
  command = \"my-terminal --focus-tty {tty}\"

{handle}, {pid}, {tty} and {pane} are filled in; no shell reads the words.")]
pub struct Args {
    /// Its handle, its id, or any unique part of either
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
        Some(place) => format!("{handle} is shown at {place}"),
        None => format!("{handle} is shown"),
    };
    context.service().attend(handle)?;
    Ok(Output::new("session", &found.value.session, text).told(&found))
}

/// Names the command that takes up a session which has ended, where one can.
fn with_resume(mut trouble: CliError, context: &mut Context, name: &str) -> CliError {
    if trouble.problem.kind != "not_live" {
        return trouble;
    }
    let found = context.service().resumable(name).ok();
    if let Some(found) = found.filter(|found| found.value.problem.is_none()) {
        let handle = [&found.value.session.handle];
        let resume = Hint::run("resume", handle, "to start it again");
        trouble.problem.hints.insert(0, resume);
    }
    trouble
}
