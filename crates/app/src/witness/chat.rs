//! What an agent's transcript says about the end of a turn that no event tells.
//!
//! Only the last part of the file is read, and only for agents whose row says what a cancelled turn looks like
//! there. Such a file tells when a turn was cancelled and nothing else, so it is asked for that alone.
//!
//! *Crash*: half a line is no record. *Older version*: a file without such records says nothing.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_agents::Cancelled;
use tenure_core::session::Doing;
use tenure_core::time::Timestamp;
use tenure_core::witness::{OwnWord, Subject};
use tenure_host::read;

/// How much of a transcript is read. An agent may write the whole conversation again behind the record.
const TAIL: u64 = 4 << 20;
/// What people are told the source is.
const SOURCE: &str = "its transcript";

/// What the transcript says of a session, where it can say anything.
pub(super) fn own_word(subject: &Subject) -> Option<OwnWord> {
    let cancelled = tenure_agents::adapter(subject.agent.as_str())?.cancelled?;
    let path = Path::new(subject.transcript.as_deref()?);
    let tail = read::tail(path, TAIL).ok()?;
    let at = last(&cancelled, &tail);
    Some(OwnWord {
        doing: at.map(|_| Doing::Idle),
        asks: None,
        title: None,
        at: at.unwrap_or(Timestamp(0)),
        source: SOURCE,
        tells: &[Doing::Busy],
    })
}

/// The folder whose files change when a session's turn is cancelled.
pub fn folder_of(agent: &str, transcript: Option<&str>) -> Option<PathBuf> {
    tenure_agents::adapter(agent)?.cancelled?;
    Path::new(transcript?).parent().map(Path::to_owned)
}

/// When a turn was cancelled last.
fn last(cancelled: &Cancelled, tail: &[u8]) -> Option<Timestamp> {
    let mut lines = tail.rsplit(|byte| *byte == b'\n');
    lines.find_map(|line| time_of(cancelled, line))
}

fn time_of(cancelled: &Cancelled, line: &[u8]) -> Option<Timestamp> {
    // Records are small; what is longer is a conversation.
    const LONGEST: usize = 4096;
    if line.len() > LONGEST {
        return None;
    }
    let record: Value = serde_json::from_slice(line).ok()?;
    let says = |(field, text): &(&str, &str)| record[*field].as_str() == Some(*text);
    let is_it = cancelled.says.iter().all(says);
    record[cancelled.at]
        .as_str()
        .filter(|_| is_it)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"id":"4a","timestamp":"2026-11-15T23:32:59.539Z","type":"info","content":"Request cancelled."}"#;

    fn found(text: &str) -> Option<String> {
        let gemini = tenure_agents::adapter("gemini").unwrap();
        let at = last(&gemini.cancelled.unwrap(), text.as_bytes());
        at.map(|at| at.to_string())
    }

    #[test]
    fn the_last_cancelled_turn_is_found_behind_what_follows_it() {
        let earlier = RECORD.replace("23:32:59", "22:00:00");
        let user = r#"{"id":"5b","timestamp":"2026-11-15T23:33:01.000Z","type":"user","content":[{"text":"Request cancelled."}]}"#;
        let whole = format!(
            "{{\"$set\":{{\"messages\":\"{}\"}}}}",
            "x".repeat(1_000_000)
        );
        let text = format!("{earlier}\n{RECORD}\n{{\"$set\":{{}}}}\n{user}\n{whole}\n{{\"id\":");
        assert_eq!(found(&text).as_deref(), Some("2026-11-15T23:32:59.539Z"));
    }

    #[test]
    fn what_people_write_cancels_nothing() {
        for text in [
            "",
            "Request cancelled.",
            r#"{"timestamp":"2026-11-15T23:32:59.539Z","type":"user","content":"Request cancelled."}"#,
            r#"{"timestamp":"soon","type":"info","content":"Request cancelled."}"#,
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
