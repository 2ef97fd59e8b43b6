//! Which settings make each agent call us, and how they come in and go out again.
//!
//! Everything here is text in, text out. One file per kind of settings: a `hooks` object in JSON
//! ([`hooks_file`]) with the line at the agent's prompt (`status_line`), Codex's sandbox and its trust in hooks ([`sandbox`], [`trust`]), a plugin of our own
//! for opencode (`opencode`) and for Claude Code ([`plugin`]), a script for git ([`git_hook`]). Which of them an
//! agent has is said by [`Settings`], a part of its row.

mod command;
pub mod git_hook;
pub mod hooks_file;
pub(crate) mod opencode;
pub mod plugin;
pub mod sandbox;
mod splice;
mod status_line;
pub mod trust;

pub use command::{HookLine, MODES, word_of};
pub use hooks_file::{Edited, Entry, HooksFormat, Refusal};
pub use status_line::StatusLine;

/// The settings that make an agent call us.
#[derive(Debug)]
pub struct Settings {
    /// The variable that moves the agent's own directory, and the folder in what it names.
    pub variable: Option<(&'static str, &'static str)>,
    /// The agent's own directory below the home directory.
    pub home: &'static str,
    /// Its directory in a project.
    pub project: &'static str,
    /// The file in either.
    pub file: &'static str,
    pub format: Format,
    /// What keeps its hooks from running.
    pub off: Option<OffSwitch>,
    /// The file in the user's directory with its sandbox and what it trusts.
    pub sandbox: Option<&'static str>,
    /// Whether the hooks can be a plugin directory ([`plugin`]).
    pub has_plugin: bool,
}

/// How the file is written.
#[derive(Debug)]
pub enum Format {
    /// A `hooks` object among the user's own settings.
    Hooks(HooksFormat),
    /// A file that is ours.
    Script(Script),
}

/// A file that is ours from its first byte to its last.
#[derive(Debug)]
pub struct Script {
    pub text: fn(&HookLine) -> String,
    /// What an installed one runs; none if it is not ours.
    pub read: fn(&str) -> Option<HookLine>,
}

/// A switch among the settings, and at which value no hook runs.
#[derive(Debug)]
pub struct OffSwitch {
    pub path: &'static [&'static str],
    pub value: bool,
}

impl Settings {
    /// The `hooks` object, where that is the format.
    pub fn hooks(&self) -> Option<&HooksFormat> {
        match &self.format {
            Format::Hooks(format) => Some(format),
            Format::Script(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
