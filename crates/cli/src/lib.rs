//! `tenure`: shows which coding agents are alive and what each holds, and stops two working on the same thing.
//!
//! A verb parses to a request of core, makes one call to the service, and renders the answer.
//!
//! Two programs have this command line. `tenure` is started at every tool call of every agent, so its package depends on
//! nothing that speaks over a network. `tenure-server`, a package of its own that is installed beside it, depends on all
//! of it; `tenure` executes it ([`beside`]) for the dispatcher and for stores on servers.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod app;
pub mod beside;
pub mod child;
mod cli;
mod command;
pub mod exit;
mod first_steps;
#[cfg(test)]
mod help_tests;
#[cfg(test)]
mod hint_tests;
mod hooks_setup;
mod kept_store;
mod long_list;
pub mod output;
mod person;
#[cfg(test)]
mod readme_tests;
pub mod render;
mod run_window;
mod session_list;
mod since;
mod sink;
mod unexpected;
mod usage;
pub mod verbs;

use std::ffi::OsString;
use std::process::ExitCode;

pub use tenure_views::lines;
use tenure_views::{build, colour, columns, screen, standing, survivors, timeline, tree};

use crate::exit::Exit;
use crate::verbs::ServerVerbs;

/// Runs the command line of this process. `server` runs the verbs that only one of the programs has, in that one.
pub fn main(server: Option<ServerVerbs>) -> ExitCode {
    std::panic::set_hook(Box::new(unexpected::report));
    tenure_host::file_limit::survive();
    #[expect(clippy::disallowed_methods, reason = "they are passed on from here")]
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let style = cli::style_before_parsing(&arguments);
    let Exit(code) = tenure_host::stack::with_room(|| {
        let code = std::panic::catch_unwind(|| cli::run(&arguments, server));
        code.unwrap_or_else(|payload| unexpected::show(payload.as_ref(), style, &arguments))
    });
    ExitCode::from(code)
}
