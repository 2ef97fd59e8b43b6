//! `tenure`: which coding agents are really alive, what each holds, and how two stay off the same thing.
//!
//! A verb parses to a request of core, makes one call to the service, and renders the answer.

mod app;
mod child;
mod cli;
mod config;
mod exit;
mod output;
mod render;
mod unmanaged;
mod verbs;
mod waiting;

use std::process::ExitCode;

use crate::exit::Exit;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(report_panic));
    let code = std::panic::catch_unwind(|| cli::run(std::env::args_os().collect()));
    let Exit(code) = code.unwrap_or(Exit::INTERNAL);
    ExitCode::from(code)
}

fn report_panic(info: &std::panic::PanicHookInfo<'_>) {
    let text = format!(
        "error: tenure failed unexpectedly: {info}\nhint: nothing half-done was kept; please report it with this text"
    );
    output::line(&mut std::io::stderr(), &text);
}
