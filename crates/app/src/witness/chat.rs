//! What an agent's transcript shows about the end of a turn that no event reports.
//!
//! Only the last part of the file is read, and only for agents whose row defines such records: a
//! turn that was cancelled or failed, a summary that a person asked for. It is used for nothing
//! else. If the start of another turn follows, the file gives no answer: events report what happens
//! next.
//!
//! *Crash*: half a line is not a record. *Older version*: a file without such records gives no
//! answer.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_agents::{Rest, Rests};
use tenure_core::session::Doing;
use tenure_core::time::Timestamp;
use tenure_core::witness::{OwnReport, Subject};
use tenure_host::read;

/// The name of the source for people.
const SOURCE: &str = "its transcript";

/// What the transcript shows about a session, if it can show anything.
pub(super) fn own_word(subject: &Subject) -> Option<OwnReport> {
    let rests = tenure_agents::adapter(subject.agent.as_str())?.rests?;
    let path = Path::new(subject.transcript.as_deref()?);
    let tail = read::tail(path, rests.tail).ok()?;
    let rested = last(&rests, &tail);
    Some(OwnReport {
        doing: rested.map(|_| Doing::Idle),
        asks: None,
        title: None,
        at: rested.map_or(Timestamp(0), |(at, _)| at),
        ended_by_itself: rested.is_some_and(|(_, rest)| !rest.cancelled),
        source: SOURCE,
        tells: &[Doing::Busy],
    })
}

/// The folder whose files change when a session comes to rest without an event.
pub fn folder_of(agent: &str, transcript: Option<&str>) -> Option<PathBuf> {
    tenure_agents::adapter(agent)?.rests?;
    Path::new(transcript?).parent().map(Path::to_owned)
}

/// A relevant record.
enum Record {
    Rests(Timestamp, Rest),
    Begins,
}

/// When and how the session came to rest, if nothing has begun since.
fn last(rests: &Rests, tail: &[u8]) -> Option<(Timestamp, Rest)> {
    let mut lines = tail.rsplit(|byte| *byte == b'\n');
    match lines.find_map(|line| record(rests, line))? {
        Record::Rests(at, rest) => Some((at, rest)),
        Record::Begins => None,
    }
}

fn record(rests: &Rests, line: &[u8]) -> Option<Record> {
    // Records are small; longer lines are conversation.
    const LONGEST: usize = 4096;
    if line.len() > LONGEST {
        return None;
    }
    let fields: Value = serde_json::from_slice(line).ok()?;
    let text = |at: &str| fields.pointer(at).and_then(Value::as_str);
    let kind = text(rests.kind)?;
    if rests.begins.contains(&kind) {
        return Some(Record::Begins);
    }
    let mut records = rests.records.iter();
    let rest = records.find(|rest| rest.kind == kind && rest.text.fits(text(rests.text)))?;
    let at = text(rests.at)?.parse().ok()?;
    Some(Record::Rests(at, *rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"id":"4a","timestamp":"2026-11-15T23:32:59.539Z","type":"info","content":"Request cancelled."}"#;

    fn found(text: &str) -> Option<String> {
        found_by("gemini", text)
    }

    fn found_by(agent: &str, text: &str) -> Option<String> {
        let agent = tenure_agents::adapter(agent).unwrap();
        let rested = last(&agent.rests.unwrap(), text.as_bytes());
        rested.map(|(at, _)| at.to_string())
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

    #[test]
    fn a_turn_of_codex_that_failed_is_over_until_the_next_begins() {
        let record = |second: u32, kind: &str, more: &str| {
            format!(
                r#"{{"timestamp":"2026-11-16T02:23:{second:02}.942Z","ordinal":91,"type":"event_msg","payload":{{"type":"{kind}","turn_id":"01a1"{more}}}}}"#
            )
        };
        let begins = record(48, "task_started", r#","started_at":1794795828"#);
        let error = r#","last_agent_message":null,"error":{"message":"mock error","codex_error_info":"other"}"#;
        let fails = record(49, "task_complete", error);
        let aborted = record(50, "turn_aborted", r#","reason":"interrupted""#);
        let counted = record(51, "token_count", "");
        let found = |lines: &[&String]| {
            let lines: Vec<&str> = lines.iter().map(|line| line.as_str()).collect();
            found_by("codex", &lines.join("\n"))
        };
        let at = |second: u32| Some(format!("2026-11-16T02:23:{second:02}.942Z"));
        assert_eq!(found(&[&begins, &fails]), at(49));
        assert_eq!(found(&[&begins, &aborted, &counted]), at(50));
        assert_eq!(found(&[&fails, &begins, &counted]), None, "it goes on");
        let said = "x".repeat(5_000);
        let long = record(
            49,
            "task_complete",
            &format!(r#","last_agent_message":"{said}""#),
        );
        assert_eq!(found(&[&fails, &begins, &long]), None, "an event told it");
    }
}
