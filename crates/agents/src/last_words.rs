//! What was said last in a conversation: a person's prompt and the agent's words, from the end of its transcript.
//!
//! They are read when a person looks, and never stored. Only the last part of a file is read, so an answer that
//! thousands of lines of a tool follow may be missing. *Older version*: what a file does not have is not shown.

use serde_json::Value;
use tenure_core::text;

use crate::adapter::Adapter;
use crate::turn_records::Speech;

/// The most characters of each that are kept.
const MAX_CHARS: usize = 2_000;

/// What was said last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastWords {
    /// What the agent was asked.
    pub prompt: Option<String>,
    /// What it answered since, or before if it has not answered yet.
    pub words: Option<String>,
}

/// The last words at the end of a transcript of this agent.
pub fn in_transcript(agent: &Adapter, tail: &[u8]) -> LastWords {
    let mut last = LastWords::default();
    let Some(read) = agent.turn_records.map(|records| records.speech) else {
        return last;
    };
    for line in tail.rsplit(|byte| *byte == b'\n') {
        // Half a line at the start is no record.
        let Ok(fields) = serde_json::from_slice(line) else {
            continue;
        };
        let (kept, said) = match read(&fields) {
            Some(Speech::Prompt(said)) => (&mut last.prompt, said),
            Some(Speech::Words(said)) => (&mut last.words, said),
            None => continue,
        };
        if kept.is_none() && !said.trim().is_empty() {
            *kept = Some(text::clipped(said.trim(), MAX_CHARS));
        }
        if last.prompt.is_some() && last.words.is_some() {
            break;
        }
    }
    last
}

/// The texts in a list of parts, without what is no text.
pub(crate) fn texts(parts: &Value) -> String {
    let parts = parts.as_array().into_iter().flatten();
    let texts = parts.filter(|part| part["thought"] != true);
    let texts: Vec<&str> = texts.filter_map(|part| part["text"].as_str()).collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn last(agent: &str, lines: &[Value]) -> (Option<String>, Option<String>) {
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let found = in_transcript(crate::adapter(agent).unwrap(), lines.join("\n").as_bytes());
        (found.prompt, found.words)
    }

    fn both(prompt: &str, words: &str) -> (Option<String>, Option<String>) {
        (Some(prompt.to_owned()), Some(words.to_owned()))
    }

    #[test]
    fn of_claude_they_are_what_a_person_typed_and_no_result_of_a_tool_or_words_of_a_subagent() {
        let said = |content: Value| json!({"type": "assistant", "message": {"content": content}});
        let mut aside = said(json!([{"type": "text", "text": "a subagent"}]));
        aside["isSidechain"] = true.into();
        let lines = [
            json!({"type": "user", "message": {"content": "fix it"}}),
            said(
                json!([{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "I look."}]),
            ),
            json!({"type": "last-prompt", "lastPrompt": "fix it"}),
            said(json!([{"type": "tool_use", "name": "Bash"}])),
            json!({"type": "user", "message": {"content": [{"type": "tool_result", "content": "x"}]}}),
            aside,
        ];
        assert_eq!(last("claude", &lines), both("fix it", "I look."));
        assert_eq!(
            last("claude", &lines[..1]),
            (Some("fix it".to_owned()), None)
        );
    }

    #[test]
    fn of_codex_they_are_its_items() {
        let item = |kind: &str, part: &str, text: &str| {
            json!({"type": "event_msg", "payload": {"type": "item_completed",
                "item": {"type": kind, "content": [{"type": part, "text": text}]}}})
        };
        let lines = [
            item("UserMessage", "text", "fix it"),
            item("AgentMessage", "Text", "done"),
            json!({"type": "response_item", "payload": {"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": "<environment_context>"}]}}),
        ];
        assert_eq!(last("codex", &lines), both("fix it", "done"));
    }

    #[test]
    fn of_gemini_they_are_without_what_hooks_added() {
        let user = |text: &str| json!({"type": "user", "content": [{"text": text}]});
        let lines = [
            user("<hook_context>you are gemini-1</hook_context>\n\nfix it"),
            json!({"type": "gemini", "content": "done", "model": "m"}),
            json!({"type": "gemini", "content": "", "model": "m"}),
            json!({"type": "user", "content": [{"functionResponse": {"name": "x"}}]}),
            user("<session_context>\nThis is the Gemini CLI"),
        ];
        assert_eq!(last("gemini", &lines), both("fix it", "done"));
    }

    #[test]
    fn of_qwen_they_are_a_persons_and_no_thoughts() {
        let said = |kind: &str, by: &str, parts: Value| json!({"type": kind, "provenance": by, "message": {"parts": parts}});
        let lines = [
            said("user", "real_user", json!([{"text": "fix it"}])),
            said(
                "assistant",
                "assistant_output",
                json!([{"text": "hm", "thought": true}, {"text": "done"}]),
            ),
            said("user", "system", json!([{"text": "go on"}])),
        ];
        assert_eq!(last("qwen", &lines), both("fix it", "done"));
    }

    #[test]
    fn long_ones_are_cut_and_an_agent_without_such_records_has_none() {
        let long = "a".repeat(MAX_CHARS * 2);
        let lines = [json!({"type": "last-prompt", "lastPrompt": long})];
        let (prompt, _) = last("claude", &lines);
        assert_eq!(prompt.unwrap().chars().count(), MAX_CHARS);
        assert_eq!(last("generic", &lines), (None, None));
    }
}
