//! `tenure`: shows which coding agents are alive and what each holds, and stops two working on the same thing.
//!
//! A verb parses to a request of core, makes one call to the service, and renders the answer.
//!
//! Two programs have this command line. `tenure` is started at every tool call of every agent, so it links nothing
//! that speaks over a network. `tenure-server`, installed beside it, links all of it; `tenure` executes it for the
//! verbs in [`Network`]. Which code a program links is decided by what its `main` passes to [`main`].

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod app;
mod beside;
mod brief;
mod child;
mod cli;
mod colour;
mod columns;
mod command;
mod exit;
mod first_steps;
#[cfg(test)]
mod help_tests;
#[cfg(test)]
mod hint_tests;
mod hooks_setup;
mod jobs;
mod kept_store;
mod lines;
mod long_list;
mod network;
mod output;
mod person;
#[cfg(test)]
mod readme_tests;
mod render;
mod run_window;
mod screen;
mod sink;
mod spooled;
mod standing;
mod summary;
mod survivors;
mod tree;
mod unexpected;
mod usage;
mod verbs;

use std::ffi::OsString;
use std::process::ExitCode;

pub use crate::network::Network;

use crate::exit::Exit;

pub fn main(network: Network) -> ExitCode {
    std::panic::set_hook(Box::new(unexpected::report));
    tenure_host::file_limit::survive();
    #[expect(clippy::disallowed_methods, reason = "they are passed on from here")]
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let style = cli::style_before_parsing(&arguments);
    let Exit(code) = tenure_host::stack::with_room(|| {
        let code = std::panic::catch_unwind(|| cli::run(&arguments, network));
        code.unwrap_or_else(|payload| unexpected::show(payload.as_ref(), style, &arguments))
    });
    ExitCode::from(code)
}
