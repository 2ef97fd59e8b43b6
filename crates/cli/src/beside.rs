//! The program beside this one: the same command line with everything that speaks over a network.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use tenure_host::env;
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
    let message = format!("cannot start {program}, which is installed beside tenure: {error}");
    let hint = Hint::step(
        "install both programs: cargo install --path crates/cli, or cargo build -p tenure",
    );
    Problem::new(Class::Internal, "no_server_program", message, hint)
}
