//! Which records of an agent's transcript count tokens.
//!
//! As seen with Claude Code 2.1.325 (an answer has a record for each of its parts, all with the same count), Codex 0.166.0
//! (the count is of the whole thread), Gemini CLI 0.61.0 and Qwen Code 0.24.4. No transcript names money. opencode keeps
//! no transcript. *Crash*: half a line counts nothing. *Older version*: a record that is not understood counts nothing.

use serde_json::Value;
use tenure_core::run::line::Tokens;
use tenure_core::spend::CountedRecord;

use crate::run::field::{count, sum, text};
use crate::run::{claude, codex};

/// How the records of an agent are read.
#[derive(Debug, Clone, Copy)]
pub struct TokenRecords {
    agent: &'static str,
    /// What every line has that counts tokens.
    mark: &'static str,
    read: fn(&Value) -> Option<(&str, Tokens)>,
    /// The folder of its subagents' transcripts, in the folder that has the transcript's name.
    pub subagents: Option<&'static str>,
}

const ALL: &[TokenRecords] = &[
    TokenRecords {
        agent: "claude",
        mark: "\"usage\"",
        read: of_claude,
        subagents: Some("subagents"),
    },
    TokenRecords {
        agent: "codex",
        mark: "\"token_count\"",
        read: of_codex,
        subagents: None,
    },
    TokenRecords {
        agent: "gemini",
        mark: "\"tokens\"",
        read: of_gemini,
        subagents: None,
    },
    TokenRecords {
        agent: "qwen",
        mark: "\"usageMetadata\"",
        read: of_qwen,
        subagents: None,
    },
];

/// How an agent's transcript counts tokens, if it does.
pub fn of(agent: &str) -> Option<&'static TokenRecords> {
    ALL.iter().find(|records| records.agent == agent)
}

impl TokenRecords {
    /// What a line counts; `begin` is its place in the file.
    pub fn record(&self, line: &[u8], begin: u64) -> Option<CountedRecord> {
        let mark = self.mark.as_bytes();
        if !line.windows(mark.len()).any(|part| part == mark) {
            return None;
        }
        let fields: Value = serde_json::from_slice(line).ok()?;
        let (total_of, tokens) = (self.read)(&fields)?;
        let at = fields["timestamp"].as_str()?.parse().ok()?;
        (tokens != Tokens::default()).then(|| CountedRecord {
            at,
            total_of: total_of.to_owned(),
            tokens,
            begin,
        })
    }
}

fn of_claude(fields: &Value) -> Option<(&str, Tokens)> {
    (fields["type"] == "assistant").then_some(())?;
    let usage = fields.pointer("/message/usage")?;
    Some((text(fields, "/message/id")?, claude::tokens(usage)))
}

fn of_codex(fields: &Value) -> Option<(&str, Tokens)> {
    (fields.pointer("/payload/type")? == "token_count").then_some(())?;
    let usage = fields.pointer("/payload/info/total_token_usage")?;
    Some(("thread", codex::tokens(usage)))
}

/// After a No it writes earlier answers once more, without their tokens.
fn of_gemini(fields: &Value) -> Option<(&str, Tokens)> {
    (fields["type"] == "gemini").then_some(())?;
    let used = fields.get("tokens")?;
    let tokens = Tokens {
        input: sum(used, &["/input", "/tool"]),
        output: sum(used, &["/output", "/thoughts"]),
    };
    Some((text(fields, "/id")?, tokens))
}

fn of_qwen(fields: &Value) -> Option<(&str, Tokens)> {
    (fields["type"] == "assistant").then_some(())?;
    let used = fields.get("usageMetadata")?;
    let tokens = Tokens {
        input: count(used, "/promptTokenCount"),
        output: sum(used, &["/candidatesTokenCount", "/thoughtsTokenCount"]),
    };
    Some((text(fields, "/uuid")?, tokens))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(agent: &str, line: &Value) -> Option<(String, u64, u64)> {
        let record = of(agent).unwrap().record(line.to_string().as_bytes(), 7)?;
        assert_eq!(record.begin, 7);
        Some((record.total_of, record.tokens.input, record.tokens.output))
    }

    #[test]
    fn each_agent_counts_in_its_own_records() {
        let at = "2026-11-17T22:48:38.719Z";
        let claude = json!({"type": "assistant", "timestamp": at, "message": {"id": "msg_1", "usage": {
            "input_tokens": 3, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 7, "output_tokens": 5}}});
        assert_eq!(read("claude", &claude), Some(("msg_1".into(), 30, 5)));
        let codex = json!({"type": "event_msg", "timestamp": at, "payload": {"type": "token_count", "info": {
            "total_token_usage": {"input_tokens": 20, "cached_input_tokens": 8, "output_tokens": 10},
            "last_token_usage": {"input_tokens": 10, "output_tokens": 5}}}});
        assert_eq!(read("codex", &codex), Some(("thread".into(), 20, 10)));
        let gemini = json!({"id": "4a", "type": "gemini", "timestamp": at, "model": "gemini-2.5-flash",
            "tokens": {"input": 10, "output": 5, "cached": 4, "thoughts": 2, "tool": 1, "total": 18}});
        assert_eq!(read("gemini", &gemini), Some(("4a".into(), 11, 7)));
        let qwen = json!({"uuid": "q1", "type": "assistant", "timestamp": at,
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 1}});
        assert_eq!(read("qwen", &qwen), Some(("q1".into(), 10, 6)));
    }

    #[test]
    fn other_records_count_nothing() {
        let at = "2026-11-17T22:48:38.719Z";
        // No model wrote it.
        let synthetic = json!({"type": "assistant", "timestamp": at, "message": {"id": "m", "model": "<synthetic>",
            "usage": {"input_tokens": 0, "output_tokens": 0}}});
        let user = json!({"type": "user", "timestamp": at, "message": {"content": "\"usage\""}});
        for line in [synthetic, user] {
            assert_eq!(read("claude", &line), None);
        }
        let limits = json!({"type": "event_msg", "timestamp": at,
            "payload": {"type": "token_count", "info": null, "rate_limits": {}}});
        assert_eq!(read("codex", &limits), None);
        let again = json!({"id": "4a", "type": "gemini", "timestamp": at, "tokens": null});
        assert_eq!(read("gemini", &again), None);
        let torn = br#"{"type":"assistant","message":{"id":"m","usage":{"input_tok"#;
        assert_eq!(of("claude").unwrap().record(torn, 0), None);
        assert!(of("generic").is_none());
    }
}
