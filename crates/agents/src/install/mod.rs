//! Which settings make each agent call us, and how they come in and go out again.
//!
//! Everything here is text in, text out. One file per kind of settings: a `hooks` object in JSON
//! ([`hooks_file`]), Codex's sandbox and its trust in hooks ([`sandbox`], [`trust`]), a plugin of our own
//! for opencode ([`opencode`]) and for Claude Code ([`plugin`]), a script for git ([`git_hook`]). [`HOOKS`] is the table: an agent with a
//! `hooks` object is a row in it.

mod command;
pub mod git_hook;
pub mod hooks_file;
pub mod opencode;
pub mod plugin;
pub mod sandbox;
mod splice;
pub mod trust;

pub use command::{HookLine, MODES, word_of};
pub use hooks_file::{Edited, Entry, HooksFormat, Refusal};

/// Claude Code: seconds. A time of its own also extends the 1.5 s that all session-end hooks share.
pub const CLAUDE: HooksFormat = HooksFormat {
    agent: "claude",
    events: &[
        ("SessionStart", 5),
        ("SessionEnd", 5),
        ("UserPromptSubmit", 5),
        ("PreToolUse", 5),
        ("PostToolUse", 5),
        ("PostToolUseFailure", 5),
        ("PermissionRequest", 5),
        ("Notification", 5),
        ("Stop", 5),
        ("StopFailure", 5),
        ("SubagentStart", 5),
        ("SubagentStop", 5),
        ("PreCompact", 5),
        ("PostCompact", 5),
    ],
    comments: false,
    byte_order_mark: true,
    named: false,
};

/// Codex: seconds. It warns about more than three for an end and an interrupt.
pub const CODEX: HooksFormat = HooksFormat {
    agent: "codex",
    events: &[
        ("SessionStart", 5),
        ("SessionEnd", 3),
        ("UserPromptSubmit", 5),
        ("PreToolUse", 5),
        ("PostToolUse", 5),
        ("PermissionRequest", 5),
        ("PreCompact", 5),
        ("PostCompact", 5),
        ("SubagentStart", 5),
        ("SubagentStop", 5),
        ("Stop", 5),
        ("Interrupt", 3),
    ],
    comments: false,
    byte_order_mark: false,
    named: false,
};

/// Gemini CLI: milliseconds.
pub const GEMINI: HooksFormat = HooksFormat {
    agent: "gemini",
    events: &[
        ("SessionStart", 5000),
        ("SessionEnd", 5000),
        ("BeforeAgent", 5000),
        ("AfterAgent", 5000),
        ("BeforeTool", 5000),
        ("AfterTool", 5000),
        ("PreCompress", 5000),
        ("Notification", 5000),
    ],
    comments: true,
    byte_order_mark: false,
    named: true,
};

/// The agents that have a `hooks` object.
pub const HOOKS: &[&HooksFormat] = &[&CLAUDE, &CODEX, &GEMINI];

#[cfg(test)]
mod tests;
