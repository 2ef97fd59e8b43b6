//! What an agent's transcript says about the end of a turn that no event tells.
//!
//! Only the last part of the file is read, and only for agents whose row says what such an end looks like there: a
//! turn that was cancelled, a summary that a person asked for. It tells that and nothing else, so it is asked for
//! that alone.
//!
//! *Crash*: half a line is no record. *Older version*: a file without such records says nothing.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_agents::Rests;
use tenure_core::session::Doing;
use tenure_core::time::Timestamp;
use tenure_core::witness::{OwnReport, Subject};
use tenure_host::read;

/// How much of a transcript is read. An agent may write the whole conversation again behind the record.
const TAIL: u64 = 4 << 20;
/// What people are told the source is.
const SOURCE: &str = "its transcript";

/// What the transcript says of a session, where it can say anything.
pub(super) fn own_word(subject: &Subject) -> Option<OwnReport> {
    let rests = tenure_agents::adapter(subject.agent.as_str())?.rests?;
    let path = Path::new(subject.transcript.as_deref()?);
    let tail = read::tail(path, TAIL).ok()?;
    let at = last(&rests, &tail);
    Some(OwnReport {
        doing: at.map(|_| Doing::Idle),
        asks: None,
        title: None,
        at: at.unwrap_or(Timestamp(0)),
        source: SOURCE,
        tells: &[Doing::Busy],
    })
}

/// The folder whose files change when a session comes to rest without an event.
pub fn folder_of(agent: &str, transcript: Option<&str>) -> Option<PathBuf> {
    tenure_agents::adapter(agent)?.rests?;
    Path::new(transcript?).parent().map(Path::to_owned)
}

/// When it came to rest last.
fn last(rests: &Rests, tail: &[u8]) -> Option<Timestamp> {
    let mut lines = tail.rsplit(|byte| *byte == b'\n');
    lines.find_map(|line| time_of(rests, line))
}

fn time_of(rests: &Rests, line: &[u8]) -> Option<Timestamp> {
    // Records are small; what is longer is a conversation.
    const LONGEST: usize = 4096;
    if line.len() > LONGEST {
        return None;
    }
    let record: Value = serde_json::from_slice(line).ok()?;
    let (kind, text) = (record[rests.kind].as_str()?, record[rests.text].as_str()?);
    let mut records = rests.records.iter();
    let is_it = records.any(|(its, words)| *its == kind && words.fits(text));
    let at = record[rests.at].as_str().filter(|_| is_it)?;
    at.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"id":"4a","timestamp":"2026-11-15T23:32:59.539Z","type":"info","content":"Request cancelled."}"#;

    fn found(text: &str) -> Option<String> {
        let gemini = tenure_agents::adapter("gemini").unwrap();
        let at = last(&gemini.rests.unwrap(), text.as_bytes());
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
    fn a_summary_that_a_person_asked_for_ends_with_an_empty_record() {
        let ends = RECORD.replace("Request cancelled.", "");
        assert_eq!(found(&ends).as_deref(), Some("2026-11-15T23:32:59.539Z"));
        let fails = RECORD.replace("info", "error");
        let fails = fails.replace("Request cancelled.", "Failed to compress chat history: 500");
        assert_eq!(found(&fails).as_deref(), Some("2026-11-15T23:32:59.539Z"));
        let other = RECORD.replace("Request cancelled.", "Switched to another model.");
        assert_eq!(found(&other), None);
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
