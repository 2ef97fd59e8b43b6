//! The variables by which agents mark the processes that they start.
//!
//! A process that inherits one seems to belong to a session that it is not part of. So none of them is passed
//! on to an agent that is started for work of its own, whichever agent it is.

/// A name, or the beginning of one with `*` behind it. Keys and directories of an agent are no marks.
pub const MARKS: &[&str] = &[
    // Claude Code.
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_MESSAGING_*",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_EFFORT",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PID",
    "CLAUDE_PLUGIN_DATA",
    "CLAUDE_PLUGIN_ROOT",
    "CLAUDE_PROJECT_DIR",
    // Codex.
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_*",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "CODEX_TOOL_CALL_ID",
    "CODEX_VERSION",
    // Gemini CLI. The last one makes it trust every directory.
    "GEMINI_CLI",
    "GEMINI_CWD",
    "GEMINI_PROJECT_DIR",
    "GEMINI_SESSION_ID",
    "GEMINI_CLI_TRUST_WORKSPACE",
    // Qwen Code.
    "QWEN_CODE",
    "QWEN_CODE_SESSION_ID",
    "QWEN_PROJECT_DIR",
    // opencode, and Kilo, which is made of it.
    "AGENT",
    "KILO",
    "KILO_PID",
    "OPENCODE",
    "OPENCODE_PID",
    // Others that were seen.
    "COPILOT_AGENT_SESSION_ID",
    "COPILOT_CLI",
    "COPILOT_HOOK_DIR",
    "COPILOT_PROJECT_DIR",
    "HERMES_SESSION_ID",
    "OPENCLAW_CLI",
    "OPENCLAW_GATEWAY_PORT",
    "OPENCLAW_SHELL",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_that_tells_a_session_is_a_mark() {
        let ids = tenure_core::agent::AGENTS
            .iter()
            .filter_map(|spec| spec.id_variable);
        let own = crate::ADAPTERS
            .iter()
            .flat_map(|one| [one.pid_variable, one.env_file_variable]);
        let is_mark = |name: &str| {
            MARKS.iter().any(|mark| match mark.strip_suffix('*') {
                Some(begin) => name.starts_with(begin),
                None => name == *mark,
            })
        };
        for name in ids.chain(own.flatten()) {
            assert!(
                is_mark(name),
                "add {name} to MARKS: a run must not pass it on"
            );
        }
    }
}
