//! Which agents there are, and what is different about each from outside.

use std::path::{Path, PathBuf};

/// A real agent of a pinned version. `scripts/real-agents` installs the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Real {
    /// Claude Code 2.1.325.
    Claude,
    /// Claude Code 2.1.197, which npm gives to who has Node 20.
    ClaudeOld,
    /// Codex CLI 0.166.0.
    Codex,
    /// Gemini CLI 0.61.0.
    Gemini,
    /// opencode 1.18.33.
    Opencode,
}

impl Real {
    pub const ALL: [Real; 5] = [
        Real::Claude,
        Real::ClaudeOld,
        Real::Codex,
        Real::Gemini,
        Real::Opencode,
    ];

    /// The name of its program, which is also what tenure calls it.
    pub fn name(self) -> &'static str {
        match self {
            Real::Claude | Real::ClaudeOld => "claude",
            Real::Codex => "codex",
            Real::Gemini => "gemini",
            Real::Opencode => "opencode",
        }
    }

    pub fn version(self) -> &'static str {
        match self {
            Real::Claude => "2.1.325",
            Real::ClaudeOld => "2.1.197",
            Real::Codex => "0.166.0",
            Real::Gemini => "0.61.0",
            Real::Opencode => "1.18.33",
        }
    }

    /// Whether it is Claude Code.
    pub fn is_claude(self) -> bool {
        matches!(self, Real::Claude | Real::ClaudeOld)
    }

    /// Its program in the cache.
    pub(super) fn program(self, cache: &Path) -> PathBuf {
        let (name, version) = (self.name(), self.version());
        let folder = cache.join(format!("{name}-{version}"));
        assert!(
            folder.join(".complete").is_file(),
            "{name} {version} is not in {}; run: scripts/real-agents",
            cache.display()
        );
        folder.join("node_modules/.bin").join(name)
    }
}
