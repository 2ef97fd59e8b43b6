//! The verbs that speak over a network: linked into this program, or executed from the one beside it.
//!
//! The dynamic loader relocates a program's tables at every start. Those of an HTTP server, a TLS library and an HTTP
//! client would be paid for by every hook. See docs/decisions/0014-two-executables.md.

use std::os::unix::process::CommandExt;
use std::process::Command;

use tenure_app::dispatch::{Connect, connect};
use tenure_host::env;
use tenure_service::answer::{Class, Hint, Problem};

use crate::app::App;
use crate::output::Outcome;
use crate::verbs::dispatch;

/// The program with everything in it.
const WHOLE: &str = "tenure-server";

/// How the verbs that speak over a network are run.
#[derive(Clone, Copy)]
pub struct Network {
    pub(crate) dispatch: fn(&dispatch::Args, &App) -> Outcome,
    /// How a runner asks a forge. Runners of the dispatcher's jobs are the dispatcher's program.
    pub(crate) connect: Option<Connect>,
    /// Whether a store on a server can be opened in this program.
    has_server_stores: bool,
}

impl Network {
    /// They are in this program.
    pub fn linked() -> Self {
        tenure_app::server_store::link();
        Self {
            dispatch: dispatch::run_linked,
            connect: Some(connect),
            has_server_stores: true,
        }
    }

    /// They are in the program beside this one, which takes this process over.
    pub fn beside() -> Self {
        Self {
            dispatch: |_, _| execute(),
            connect: None,
            has_server_stores: false,
        }
    }

    /// Hands a command over to the other program if its store is on a server and this one cannot open that. Called
    /// before anything is read from stdin. If the other program cannot be started, what opens the store says so.
    pub(crate) fn follow_store(&self) {
        if !self.has_server_stores && tenure_app::location::names_server() && execute().is_err() {
            // The verb fails as it does for any store that cannot be opened.
        }
    }
}

fn execute() -> Outcome {
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
