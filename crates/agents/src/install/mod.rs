//! Which settings make each agent call tenure, and how they are added and removed.
//!
//! Everything here is text in, text out. One file per kind of settings: a `hooks` object in JSON
//! ([`hooks_file`]) with the status line (`status_line`), Codex's sandbox and its trust in hooks ([`sandbox`],
//! [`trust`]), our own plugin for opencode (`opencode`), for OpenClaw (`openclaw`) and for Claude Code ([`plugin`]), a script for git
//! ([`git_hook`]). [`Settings`], a part of an agent's row, names those that it has.

mod command;
pub mod git_hook;
pub mod hooks_file;
pub mod mcp;
pub(crate) mod openclaw;
pub(crate) mod opencode;
pub mod plugin;
pub mod project_trust;
pub mod sandbox;
mod splice;
mod status_line;
pub mod trust;

pub use command::{HookLine, MODES, word_of};
pub use hooks_file::{Edited, HookEntry, HooksFileError, HooksFormat};
pub use mcp::McpServers;
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
    /// Where it keeps MCP servers, if tenure adds itself to them.
    pub mcp: Option<McpServers>,
}

/// The format of the file.
#[derive(Debug)]
pub enum Format {
    /// A `hooks` object among the user's own settings.
    Hooks(HooksFormat),
    /// A file of our own.
    Script(Script),
    /// A directory of our own that the agent's own command line adds to its settings.
    Package(Package),
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

/// A plugin directory that is completely ours.
#[derive(Debug)]
pub struct Package {
    /// Its main file, which the settings' `file` names.
    pub script: Script,
    /// The other files beside it.
    pub others: &'static [(&'static str, &'static str)],
    /// Whether a text is one of these, of any version.
    pub is_other: fn(&str) -> bool,
    /// The agent's program.
    pub program: &'static str,
    /// The agent's settings, in its own directory.
    pub config: &'static str,
    /// Its command lines that add a directory.
    pub add: fn(&str) -> Vec<Vec<String>>,
    /// Its command lines that remove the plugin.
    pub remove: &'static [&'static [&'static str]],
    /// Whether its settings use the plugin in a directory.
    pub is_added: fn(&str, &str) -> bool,
    /// Whether its settings name the plugin at all.
    pub is_named: fn(&str, &str) -> bool,
}

/// A setting, and the value at which it switches something off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffSwitch {
    pub path: &'static [&'static str],
    pub value: bool,
}

impl Settings {
    /// A file of MCP servers without any of them.
    pub fn blank(&self) -> &'static str {
        match self.mcp.as_ref().map(|servers| &servers.format) {
            Some(mcp::McpFormat::Json { .. }) => "{}\n",
            Some(mcp::McpFormat::Toml) | None => "",
        }
    }

    /// The `hooks` object, if that is the format.
    pub fn hooks(&self) -> Option<&HooksFormat> {
        match &self.format {
            Format::Hooks(format) => Some(format),
            Format::Script(_) | Format::Package(_) => None,
        }
    }

    /// The file that is completely ours, if there is one.
    pub fn script(&self) -> Option<&Script> {
        match &self.format {
            Format::Hooks(_) => None,
            Format::Script(script) => Some(script),
            Format::Package(package) => Some(&package.script),
        }
    }

    /// The plugin directory, if that is the format.
    pub fn package(&self) -> Option<&Package> {
        match &self.format {
            Format::Package(package) => Some(package),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
