//! `claim KEY -- CMD`: a command that holds an item exactly while it lives, run by [`supervise`].

use std::ffi::OsString;

use serde_json::{Map, Value, json};
use tenure_app::supervise::trampoline::{Stayed, become_command};
use tenure_app::supervise::{self, CommandEnd, Options};
use tenure_service::ClaimRequest;
use tenure_service::answer::body;

use crate::app::App;
use crate::child::{self, OWN_FAILURE};
use crate::exit::Exit;
use crate::output::{CliError, Outcome, Output, warn};

/// What to do when the item is taken over while the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OnLost {
    /// End the command
    Term,
    /// Print a warning and let it run
    Warn,
}

/// The trampoline's own arguments.
#[derive(Debug, clap::Args)]
pub struct ExecArgs {
    /// The descriptor to wait at
    #[arg(long)]
    gate: i32,

    /// The descriptor to report a failure to
    #[arg(long)]
    echo: Option<i32>,

    /// The command
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs a command under a claim. Its output is its own; ours is on stderr.
pub fn run(
    options: &Options<'_>,
    conflict: Exit,
    request: Result<ClaimRequest, CliError>,
    app: &App,
) -> Outcome {
    let mut tell = |said| warn(format!("warning: {said}"));
    let ended = request.and_then(|request| {
        let ended = supervise::run(options, request, &mut app.open()?, &mut tell);
        ended.map_err(child::unfinished)
    });
    let ended = ended.map_err(|failure| child::conflict_or_failure(failure, conflict))?;
    let channel = if app.style.json {
        app.style.report(&report(&ended))
    } else {
        app.style.tell(&ended.notices)
    };
    app.delivered(&ended.notices, channel);
    Ok(Output::silent(child::exit_of(ended.status)))
}

fn report(ended: &CommandEnd) -> Value {
    let claims: Vec<_> = ended
        .held
        .iter()
        .map(|(key, epoch)| json!({"key": key, "epoch": epoch}))
        .collect();
    let exit = child::exit_of(ended.status).0;
    let command =
        json!({"exit": exit, "session": ended.session, "claims": claims, "lost": ended.lost});
    let parts = Map::from_iter([("command".to_owned(), command)]);
    body(parts, &ended.notices)
}

/// The trampoline: waits at the gate, then becomes the command.
pub fn exec(args: &ExecArgs) -> Outcome {
    match become_command(args.gate, args.echo, &args.command) {
        Stayed::Failed(why) => {
            let failure = child::unfinished(why);
            Err(child::conflict_or_failure(failure, OWN_FAILURE))
        }
        Stayed::Told(why) => Ok(Output::silent(child::unfinished(why).exit)),
        Stayed::Closed => Ok(Output::silent(OWN_FAILURE)),
    }
}
