//! The program beside this one: the same command line with everything that speaks over a network.

use std::os::unix::process::CommandExt;
use std::process::Command;

use tenure_host::env;
use tenure_service::answer::{Class, Hint, Problem};

use crate::output::Outcome;

/// Its name.
const WHOLE: &str = "tenure-server";

/// Lets it take this process over; returns only if it cannot be started.
pub fn execute() -> Outcome {
    let own = env::program().map_err(|error| missing(&error.to_string()))?;
    let whole = own.with_file_name(WHOLE);
    #[expect(
        clippy::disallowed_methods,
        reason = "the same command line, for the other program"
    )]
    let arguments = std::env::args_os().skip(1);
    let error = Command::new(&whole).args(arguments).exec();
    Err(missing(&format!("{}: {error}", whole.display())).into())
}

fn missing(why: &str) -> Problem {
    let message = format!("cannot start {WHOLE}, which is installed beside tenure: {why}");
    let hint = Hint::step(
        "install both programs: cargo install --path crates/cli, or cargo build -p tenure",
    );
    Problem::new(Class::Internal, "no_server_program", message, hint)
}
