//! Tests with the real agents, offline: `scripts/test --real`.
//!
//! They are ignored unless they are asked for, so that a summary shows them as not run. Asked for without
//! the programs they fail.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

/// Makes a test of a scenario for each version of Claude Code.
macro_rules! both {
    ($($scenario:ident)*) => {
        mod now {
            $(#[test] #[ignore = "runs a real agent"]
            fn $scenario() { super::$scenario(tenure_testkit::real::Real::Claude); })*
        }
        mod v2_1_197 {
            $(#[test] #[ignore = "runs a real agent"]
            fn $scenario() { super::$scenario(tenure_testkit::real::Real::ClaudeOld); })*
        }
    };
}

/// Makes a test of each scenario in the list for each of these agents.
macro_rules! each {
    ($list:tt $($agent:ident $kind:ident)*) => { $(each!(@ $list $agent $kind);)* };
    (@ [$($scenario:ident)*] $agent:ident $kind:ident) => {
        mod $agent {
            $(#[test] #[ignore = "runs a real agent"]
            fn $scenario() { super::$scenario(tenure_testkit::real::Real::$kind); })*
        }
    };
}

/// The same for every agent.
macro_rules! all {
    ($list:tt) => {
        each! { $list claude Claude claude_2_1_197 ClaudeOld codex Codex gemini Gemini opencode Opencode qwen Qwen }
    };
}

/// The same for every agent with hooks of its own.
macro_rules! with_hooks {
    ($list:tt) => {
        each! { $list claude Claude claude_2_1_197 ClaudeOld codex Codex gemini Gemini qwen Qwen }
    };
}

mod channels;
mod claude;
mod claude_background;
mod codex;
mod codex_windows;
mod dispatch;
mod gemini_window;
mod harness;
mod mcp;
mod openclaw;
mod opencode;
mod person;
mod pull_request;
mod qwen;
mod registering;
mod run_kills;
mod runs;
mod sessions;
mod shells;
mod side_by_side;
mod state;
mod team;
mod tui;
mod turns;
mod wrapped;

use std::path::Path;

use tenure_testkit::real::{Real, RealWorld};

/// A fresh world for the tenure that was just built.
fn world() -> RealWorld {
    RealWorld::begin(Path::new(env!("CARGO_BIN_EXE_tenure")))
}

/// An agent that is not named in the lists above would never run.
#[test]
fn every_agent_is_in_the_lists() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/main.rs");
    let text = std::fs::read_to_string(here).unwrap();
    for kind in Real::ALL {
        let settings = kind.adapter().settings.as_ref().unwrap();
        let lists = if settings.hooks().is_some() { 2 } else { 1 };
        let name = format!(" {kind:?} ");
        let named = text
            .lines()
            .filter(|line| line.contains("each! {") && line.contains(&name));
        assert_eq!(named.count(), lists, "{kind:?}");
    }
}

/// A file that is not named above would never run.
#[test]
fn every_file_of_this_folder_is_a_module_of_it() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real");
    let text = std::fs::read_to_string(here.join("main.rs")).unwrap();
    for entry in std::fs::read_dir(&here).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(stem) = name
            .strip_suffix(".rs")
            .filter(|stem| !stem.starts_with('.'))
        else {
            continue;
        };
        assert!(
            stem == "main" || text.contains(&format!("mod {stem};")),
            "{name} is not run"
        );
    }
}
