//! Which settings make each agent call tenure, and how they are added and removed.
//!
//! Everything here is text in, text out. One file per kind of settings: a `hooks` object in JSON
//! ([`hooks_file`]) with the status line (`status_line`), Codex's sandbox and its trust in hooks ([`sandbox`],
//! [`trust`]), our own plugin for opencode (`opencode`) and for Claude Code ([`plugin`]), a script for git
//! ([`git_hook`]). [`Settings`], a part of an agent's row, names those that it has.

mod command;
pub mod git_hook;
pub mod hooks_file;
pub(crate) mod opencode;
pub mod plugin;
pub mod project_trust;
pub mod sandbox;
mod splice;
mod status_line;
pub mod trust;

pub use command::{HookLine, MODES, word_of};
pub use hooks_file::{Edited, Entry, HooksFormat, Refusal};
pub use status_line::StatusLine;

/// The settings that make an agent call tenure.
#[derive(Debug)]
pub struct Settings {
    /// The variable that overrides the agent's own directory, and the folder in it.
    pub variable: Option<(&'static str, &'static str)>,
    /// The agent's own directory below the home directory.
    pub home: &'static str,
    /// Its directory in a project.
    pub project: &'static str,
    /// The file in either directory.
    pub file: &'static str,
    pub format: Format,
    /// What disables its hooks.
    pub off: Option<OffSwitch>,
    /// The file in the user's directory with its sandbox and trust settings.
    pub sandbox: Option<&'static str>,
    /// Whether the hooks can be a plugin directory ([`plugin`]).
    pub has_plugin: bool,
    /// Whether the agent reads the file only when it starts, so that a change reaches no running one.
    pub is_read_at_start: bool,
}

/// The format of the file.
#[derive(Debug)]
pub enum Format {
    /// A `hooks` object among the user's own settings.
    Hooks(HooksFormat),
    /// A file of our own.
    Script(Script),
}

/// A file that is completely ours.
#[derive(Debug)]
pub struct Script {
    pub text: fn(&HookLine) -> String,
    /// What an installed one runs; none if it is not ours.
    pub read: fn(&str) -> Option<HookLine>,
    /// What the user should know before it is there.
    pub note: &'static str,
}

/// A setting, and the value at which it switches something off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffSwitch {
    pub path: &'static [&'static str],
    pub value: bool,
}

impl Settings {
    /// The `hooks` object, if that is the format.
    pub fn hooks(&self) -> Option<&HooksFormat> {
        match &self.format {
            Format::Hooks(format) => Some(format),
            Format::Script(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
