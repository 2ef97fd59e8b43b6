use tenure_app::window;

use crate::app::App;
use crate::output::{Outcome, Shown};

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
    #[arg(value_name = "SESSION")]
    name: String,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut opened = app.open()?;
    let found = opened.service().window(&args.name)?;
    window::focus(&opened, &found.value)?;
    let place = found.value.session.place.as_deref();
    let handle = &found.value.session.handle;
    let text = match place {
        Some(place) => format!("{handle} is shown at {place}"),
        None => format!("{handle} is shown"),
    };
    opened.service().attend(handle)?;
    Ok(Shown::new("session", &found.value.session, text).told(&found))
}
