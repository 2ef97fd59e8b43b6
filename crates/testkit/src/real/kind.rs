//! The real agents.

use std::path::{Path, PathBuf};

use super::rows::{AgentCase, claude, codex, gemini, opencode, qwen};

/// A real agent in a pinned version, as `scripts/real-agents` installs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Real {
    Claude,
    ClaudeOld,
    Codex,
    Gemini,
    Opencode,
    Qwen,
}

impl Real {
    pub const ALL: [Real; 6] = [
        Real::Claude,
        Real::ClaudeOld,
        Real::Codex,
        Real::Gemini,
        Real::Opencode,
        Real::Qwen,
    ];

    pub(super) fn row(self) -> &'static AgentCase {
        match self {
            Real::Claude => &claude::NOW,
            Real::ClaudeOld => &claude::OLD,
            Real::Codex => &codex::ROW,
            Real::Gemini => &gemini::ROW,
            Real::Opencode => &opencode::ROW,
            Real::Qwen => &qwen::ROW,
        }
    }

    /// The name of its program, which is also tenure's name for it.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    pub fn version(self) -> &'static str {
        self.row().version
    }

    /// A valid id that no conversation has.
    pub fn nobody(self) -> &'static str {
        self.row().nobody
    }

    /// Whether a headless turn reports its end to hooks.
    pub fn says_end(self) -> bool {
        self.row().says_end
    }

    /// Whether it keeps each conversation in a file of its own.
    pub fn keeps_files(self) -> bool {
        self.row().keeps_files
    }

    /// The executables that it starts, each below the previous one. The last one is the agent.
    pub fn wrapped(self) -> &'static [&'static str] {
        self.row().children
    }

    /// tenure's adapter for it.
    pub fn adapter(self) -> &'static tenure_agents::Adapter {
        tenure_agents::adapter(self.name()).expect("tenure has a row for every agent here")
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A gateway hosts sessions instead of being one, so the scenarios of [`Real`] do not fit it.
    const GATEWAYS: [&str; 1] = ["openclaw"];

    #[test]
    fn what_is_run_is_what_the_script_installs() {
        let script = include_str!("../../../../scripts/real-agents");
        let quoted = |line: &'static str| line.strip_prefix("    \"")?.strip_suffix('"');
        let installed: Vec<Vec<&str>> = script
            .lines()
            .filter_map(quoted)
            .map(|words| words.split(' ').collect())
            .filter(|words: &Vec<&str>| !GATEWAYS.contains(&words[0]))
            .collect();
        assert_eq!(installed.len(), Real::ALL.len());
        for (words, kind) in installed.iter().zip(Real::ALL) {
            assert_eq!([words[0], words[2]], [kind.name(), kind.version()]);
        }
    }

    #[test]
    fn every_agent_that_tenure_installs_for_is_run() {
        for name in tenure_agents::names(|row| row.settings.is_some()) {
            let is_run =
                GATEWAYS.contains(&name) || Real::ALL.iter().any(|kind| kind.name() == name);
            assert!(
                is_run,
                "{name} is not in `Real`, so no test runs the program"
            );
        }
    }
}
