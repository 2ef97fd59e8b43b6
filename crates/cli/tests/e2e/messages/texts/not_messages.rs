//! What stands in the sources as a text and is said to nobody.

/// Sources whose texts are compared with what others say, or put into it, and said to nobody.
pub(super) const READ_NOT_SAID: &[&str] = &[
    "agents/src/codex.rs",
    "agents/src/gemini.rs",
    "agents/src/run/body.rs",
    "agents/src/run/claude.rs",
    "agents/src/run/codex.rs",
    "agents/src/run/gemini.rs",
    "agents/src/run/opencode.rs",
    "agents/src/run/qwen.rs",
];

/// What is said in these sources after all.
pub(super) const SAID_THERE: &[&str] = &[
    "asks again in {seconds}s, attempt {attempt}",
    "the turn failed",
    "the turn was aborted",
];

/// Other texts that are not messages: where, why, and which.
pub(super) const NOT_MESSAGES: &[(&str, &str, &[&str])] = &[];
