//! The program beside this one: the same command line with everything that speaks over a network.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use tenure_app::server_store::{self, INSTALL_BOTH};
use tenure_core::ignore::Ignore;
use tenure_host::{env, event_input};
use tenure_service::answer::{Class, Hint, Problem};

use crate::output::Outcome;

/// Its name.
const WHOLE: &str = "tenure-server";

/// Lets it take this process over; returns only if it cannot be started.
pub fn execute() -> Outcome {
    let whole = program().map_err(|error| missing(WHOLE, &error))?;
    let error = Command::new(&whole).args(arguments()).exec();
    Err(missing(&whole.display().to_string(), &error).into())
}

/// Lets it take a command over that needs a store on a server, unless this is that program. If it cannot be started,
/// what opens the store says so.
pub fn take_over() {
    if !server_store::is_linked() {
        execute().ignore("the verb fails as it does for any store that cannot be opened");
    }
}

/// The same if the settings name a store on a server. Called before anything is read from stdin.
pub fn follow_store() {
    if !server_store::is_linked() && tenure_app::location::names_server() {
        take_over();
    }
}

/// The same for a hook, with the event that was read.
pub fn follow_event(event: &[u8]) {
    if !server_store::is_linked() && event_input::put_back(event).is_ok() {
        take_over();
    }
}

/// Where it is.
fn program() -> io::Result<PathBuf> {
    Ok(env::program()?.with_file_name(WHOLE))
}

/// The command line of this program.
#[expect(
    clippy::disallowed_methods,
    reason = "the same command line, for the other program"
)]
fn arguments() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(1)
}

fn missing(program: &str, error: &std::io::Error) -> Problem {
    let message = format!("cannot start {program}, which must be beside tenure: {error}");
    let hint = Hint::step(INSTALL_BOTH);
    Problem::new(Class::Internal, "no_server_program", message, hint)
}
