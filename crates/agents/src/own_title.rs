//! Where agents themselves store the title of a conversation: in records of its transcript.
//!
//! Claude Code (tested with 2.1.325): `/rename` appends a `custom-title`, the model's own title is an
//! `ai-title`; both are repeated near the end of a long transcript, and the last of each counts.

use serde_json::Value;
use tenure_core::id::NativeId;

/// Types of the records and the field of each, by precedence.
type Records = &'static [(&'static str, &'static str)];

const KEEPERS: &[(&str, Records)] = &[(
    "claude",
    &[("custom-title", "customTitle"), ("ai-title", "aiTitle")],
)];

fn records(agent: &str) -> Option<Records> {
    let mut kept = KEEPERS.iter().filter(|(name, _)| *name == agent);
    kept.next().map(|(_, records)| *records)
}

/// Whether the agent stores titles in its transcripts at all.
pub fn is_in_transcripts(agent: &str) -> bool {
    records(agent).is_some()
}

/// The title in the last lines of a conversation's transcript. The first of these lines may be incomplete.
pub fn in_transcript(agent: &str, conversation: &NativeId, lines: &[u8]) -> Option<String> {
    let records = records(agent)?;
    let mut found: Vec<Option<String>> = vec![None; records.len()];
    for line in lines.split(|byte| *byte == b'\n') {
        let names = |kind: &str| {
            let kind = format!("\"{kind}\"");
            line.windows(kind.len()).any(|part| part == kind.as_bytes())
        };
        let Some(at) = records.iter().position(|(kind, _)| names(kind)) else {
            continue;
        };
        let Ok(record) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        let (kind, field) = records[at];
        let is_own = record["sessionId"].as_str() == Some(conversation.as_str());
        if is_own && record["type"] == kind {
            let title = record[field].as_str().filter(|title| !title.is_empty());
            found[at] = title.map(str::to_owned);
        }
    }
    found.into_iter().flatten().next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_title_of_a_transcript_counts_and_a_persons_most() {
        let id = NativeId::parse("c-1").unwrap();
        let title = |lines: &[Value]| {
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            in_transcript("claude", &id, lines.join("\n").as_bytes())
        };
        let own = |kind: &str, field: &str, text: &str| json!({"type": kind, field: text, "sessionId": "c-1"});
        let ai = |text: &str| own("ai-title", "aiTitle", text);
        let custom = |text: &str| own("custom-title", "customTitle", text);
        assert_eq!(title(&[ai("a"), ai("b")]).as_deref(), Some("b"));
        assert_eq!(title(&[custom("mine"), ai("b")]).as_deref(), Some("mine"));
        assert_eq!(
            title(&[custom("mine"), custom(""), ai("b")]).as_deref(),
            Some("b")
        );
        let talk = json!({"type": "user", "message": "\"ai-title\"", "sessionId": "c-1"});
        let others = json!({"type": "ai-title", "aiTitle": "x", "sessionId": "c-2"});
        assert_eq!(title(&[talk, others]), None);
        assert_eq!(
            in_transcript("claude", &id, b"{\"type\":\"ai-title\""),
            None
        );
    }
}
