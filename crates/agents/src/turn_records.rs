//! What the records of an agent's transcript show about its turns and that no event reports: a turn that was
//! cancelled, failed or hit a limit, and requests to the model that are tried again.
//!
//! Only the last part of a file is read, and only for agents whose row understands their records. If the start of
//! another turn follows, the file gives no answer: events report what happens next.
//!
//! *Crash*: half a line is not a record. *Older version*: a file without such records gives no answer.

use serde_json::Value;
use tenure_core::session::Doing;
use tenure_core::time::Timestamp;
use tenure_core::witness::{OwnReport, TurnEnd};

/// The name of the source for people.
pub const SOURCE: &str = "its transcript";

/// How the reason of a limit ends if the agent waits for its end and then continues.
pub const CONTINUES: &str = "it continues by itself";

/// Longer lines are conversation.
const MAX_LENGTH: usize = 64 << 10;

/// How the records of an agent's transcript are read: one JSON object per line, with its `timestamp`.
#[derive(Debug, Clone, Copy)]
pub struct TurnRecords {
    pub read: fn(&Value) -> Option<Record>,
    /// How what was said is read.
    pub(crate) speech: fn(&Value) -> Option<Speech>,
    /// How many bytes at the end of the file contain the last of them.
    pub tail: u64,
}

/// A record in which somebody says something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Speech {
    Prompt(String),
    Words(String),
}

/// A record that shows something about a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A turn begins, or the model is asked for the first time after something new.
    Begins,
    /// The model answers.
    Answers,
    /// The model is asked again, because it did not answer.
    Retries(Option<String>),
    Ends(TurnEnd),
    Fails(Option<String>),
    /// The provider accepts no more requests, perhaps until a time.
    Limited(Option<String>, Option<Timestamp>),
    /// When the provider accepts requests again.
    ResetsAt(Timestamp),
}

/// What the last records show.
pub fn report(records: &TurnRecords, tail: &[u8]) -> OwnReport {
    let turn = last_turn(records, tail);
    let answers = |one: &&(Record, Timestamp)| matches!(one.0, Record::Begins | Record::Answers);
    let resets_at = turn.iter().find_map(|(record, _)| match record {
        Record::ResetsAt(at) => Some(*at),
        _ => None,
    });
    let silent = OwnReport {
        answered_at: turn.iter().find(answers).map(|(_, at)| *at),
        ..OwnReport::empty(SOURCE, &[Doing::Busy])
    };
    let mut shown = turn
        .iter()
        .filter(|(record, _)| !matches!(record, Record::ResetsAt(_)));
    let Some((record, at)) = shown.next() else {
        return silent;
    };
    let ended = |doing: Doing, why: &Option<String>| OwnReport {
        doing: Some(doing),
        why: why.clone(),
        at: *at,
        ..silent.clone()
    };
    match record {
        Record::Begins | Record::Answers | Record::ResetsAt(_) => silent,
        Record::Ends(end) => OwnReport {
            turn_end: Some(*end),
            ..ended(Doing::Idle, &None)
        },
        Record::Fails(why) => ended(Doing::Failed, why),
        Record::Limited(why, until) => OwnReport {
            until: until.or(resets_at),
            ..ended(Doing::Limited, why)
        },
        Record::Retries(why) => {
            let before = shown.take_while(|(record, _)| matches!(record, Record::Retries(_)));
            let before: Vec<Timestamp> = before.map(|(_, at)| *at).collect();
            let attempt = || format!("attempt {}", before.len() + 2);
            OwnReport {
                at: *before.last().unwrap_or(at),
                ..ended(Doing::Retrying, &why.clone().or_else(|| Some(attempt())))
            }
        }
    }
}

/// The records since the last turn began, newest first, and the one that began it.
fn last_turn(records: &TurnRecords, tail: &[u8]) -> Vec<(Record, Timestamp)> {
    let lines = tail.rsplit(|byte| *byte == b'\n');
    let mut turn = Vec::new();
    for (record, at) in lines.filter_map(|line| record(records, line)) {
        let begins = record == Record::Begins;
        turn.push((record, at));
        if begins {
            break;
        }
    }
    turn
}

fn record(records: &TurnRecords, line: &[u8]) -> Option<(Record, Timestamp)> {
    if line.is_empty() || line.len() > MAX_LENGTH {
        return None;
    }
    let fields: Value = serde_json::from_slice(line).ok()?;
    let at = fields["timestamp"].as_str()?.parse().ok()?;
    Some(((records.read)(&fields)?, at))
}

/// A time in seconds since 1970, as providers state it.
pub(crate) fn seconds(field: &Value) -> Option<Timestamp> {
    let millis = field.as_i64()?.checked_mul(1_000)?;
    Some(Timestamp(millis))
}

/// The reason of a failure in a few words.
pub(crate) mod reason {
    use tenure_core::text;

    /// How much of a reason is kept, in characters.
    const MAX_LENGTH: usize = 80;

    /// The first sentence of what an agent reports, on one line.
    pub(crate) fn of_failure(said: &str) -> Option<String> {
        let said = said.trim().trim_matches(['[', ']']);
        let said = said.strip_prefix("API Error: ").unwrap_or(said);
        let ends = [". ", " · ", "\n"].into_iter();
        let end = ends.filter_map(|end| said.find(end)).min();
        let first = said[..end.unwrap_or(said.len())].trim_end_matches('.');
        (!first.is_empty()).then(|| text::clipped(&text::line(first), MAX_LENGTH))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(agent: &str, lines: &[Value]) -> OwnReport {
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        read_text(agent, &lines.join("\n"))
    }

    fn read_text(agent: &str, text: &str) -> OwnReport {
        let records = crate::adapter(agent).unwrap().turn_records.unwrap();
        report(&records, text.as_bytes())
    }

    fn at(second: u32) -> String {
        format!("2026-11-17T22:48:{second:02}.000Z")
    }

    fn when(second: u32) -> Timestamp {
        at(second).parse().unwrap()
    }

    #[test]
    fn claude_says_until_when_it_is_limited() {
        // As 2.1.325 writes it.
        let limit = json!({"type": "assistant", "timestamp": at(48), "isApiErrorMessage": true,
            "error": "rate_limit", "apiError": "usage_limit_reached", "apiErrorStatus": 429,
            "quotaLimits": {"status": "rejected", "resetsAt": 1_794_962_928, "rateLimitType": "five_hour"},
            "message": {"role": "assistant", "model": "<synthetic>", "content": [
                {"type": "text", "text": "You've hit your 5-hour limit · resets 12:48am (UTC)"}]}});
        let found = read("claude", std::slice::from_ref(&limit));
        assert_eq!(found.doing, Some(Doing::Limited));
        assert_eq!(found.until, Some(Timestamp(1_794_962_928_000)));
        let why = Some("You've hit your 5-hour limit; it continues by itself");
        assert_eq!(found.why.as_deref(), why);
        let next = json!({"type": "user", "timestamp": at(50), "message": {"content": "go on"}});
        assert_eq!(read("claude", &[limit, next]).doing, None);
    }

    #[test]
    fn claude_asks_its_model_again_without_anything_new() {
        let request = |second: u32, tail: &[&str]| json!({"type": "api-request", "timestamp": at(second), "keep": 6, "tail": tail});
        let first = request(36, &["a289", "46fc"]);
        let (second, third) = (request(37, &[]), request(38, &[]));
        let shape = json!({"type": "api-request-shape", "timestamp": at(38)});
        assert_eq!(read("claude", std::slice::from_ref(&first)).doing, None);
        let tries = read(
            "claude",
            &[first.clone(), second.clone(), third.clone(), shape],
        );
        assert_eq!(tries.doing, Some(Doing::Retrying));
        assert_eq!(
            (tries.at, tries.why.as_deref()),
            (when(37), Some("attempt 3"))
        );
        let answer = json!({"type": "assistant", "timestamp": at(40), "message": {"content": []}});
        let over = read(
            "claude",
            &[first.clone(), second.clone(), third.clone(), answer],
        );
        assert_eq!((over.doing, over.answered_at), (None, Some(when(40))));
        let fails = json!({"type": "assistant", "timestamp": at(41), "isApiErrorMessage": true, "error": "server_error",
            "message": {"content": [{"type": "text",
                "text": "API Error: 500 Internal server error. This is a server-side issue, usually temporary"}]}});
        let failed = read("claude", &[first, second, third, fails]);
        assert_eq!(failed.doing, Some(Doing::Failed));
        assert_eq!(failed.why.as_deref(), Some("500 Internal server error"));
    }

    #[test]
    fn codex_records_errors_limits_and_what_a_person_interrupts() {
        // As 0.166.0 writes them.
        let event = |second: u32, payload: Value| json!({"timestamp": at(second), "type": "event_msg", "payload": payload});
        let begins = event(30, json!({"type": "task_started", "turn_id": "01a1"}));
        let ends = |error: Value| {
            event(
                39,
                json!({"type": "task_complete", "last_agent_message": null, "error": error}),
            )
        };
        let failed = ends(
            json!({"message": "unexpected status 401 Unauthorized: Incorrect API key provided, url: http://127.0.0.1:1/v1",
            "codex_error_info": {"http_connection_failed": {"http_status_code": 401}}}),
        );
        let found = read("codex", &[begins.clone(), failed.clone()]);
        assert_eq!((found.doing, found.at), (Some(Doing::Failed), when(39)));
        let why = found.why.unwrap();
        assert!(
            why.starts_with("unexpected status 401 Unauthorized"),
            "{why}"
        );
        assert_eq!(
            read("codex", &[failed, begins.clone()]).doing,
            None,
            "it goes on"
        );
        let count = event(
            38,
            json!({"type": "token_count", "rate_limits":
            {"primary": {"used_percent": 100.0, "resets_at": 1_794_962_918}, "secondary": null}}),
        );
        let limit = ends(
            json!({"message": "You’ve hit your usage limit. Visit https://example.com or try again at Nov 18th",
            "codex_error_info": "usage_limit_exceeded"}),
        );
        let found = read("codex", &[begins.clone(), count.clone(), limit]);
        assert_eq!(
            (found.doing, found.until),
            (Some(Doing::Limited), Some(Timestamp(1_794_962_918_000)))
        );
        assert_eq!(found.why.as_deref(), Some("You’ve hit your usage limit"));
        let ended = read("codex", &[begins.clone(), count, ends(Value::Null)]);
        assert_eq!(
            (ended.doing, ended.turn_end),
            (Some(Doing::Idle), Some(TurnEnd::ByItself))
        );
        let aborted = event(50, json!({"type": "turn_aborted", "reason": "interrupted"}));
        let aborted = read("codex", &[begins.clone(), aborted]);
        assert_eq!(aborted.turn_end, Some(TurnEnd::ByPerson));
        let call = json!({"timestamp": at(35), "type": "response_item", "payload": {"type": "function_call"}});
        assert_eq!(read("codex", &[begins, call]).answered_at, Some(when(35)));
    }

    #[test]
    fn gemini_records_what_a_person_cancelled_behind_what_follows_it() {
        let info = |second: u32, text: &str| json!({"id": "4a", "timestamp": at(second), "type": "info", "content": text});
        let user = json!({"timestamp": at(41), "type": "user", "content": [{"text": "Request cancelled."}]});
        let whole = json!({"$set": {"messages": "x".repeat(1_000_000)}});
        let text = format!(
            "{}\n{}\n{user}\n{whole}\n{{\"id\":",
            info(20, "Request cancelled."),
            info(40, "Request cancelled.")
        );
        let found = read_text("gemini", &text);
        assert_eq!((found.doing, found.at), (Some(Doing::Idle), when(40)));
        assert_eq!(found.turn_end, Some(TurnEnd::ByPerson));
        // The end of `/compress`.
        for (kind, text) in [
            ("info", ""),
            ("error", "Failed to compress chat history: 500"),
        ] {
            let ends = json!({"timestamp": at(42), "type": kind, "content": text});
            assert_eq!(read("gemini", &[ends]).turn_end, Some(TurnEnd::ByPerson));
        }
        // After a No it writes the conversation again, as far as it stays.
        let again = json!({"timestamp": at(41), "type": "gemini", "content": [{"text": "Done."}], "tokens": null});
        let refused = read("gemini", &[info(40, "Request cancelled."), user, again]);
        assert_eq!((refused.doing, refused.at), (Some(Doing::Idle), when(40)));
        let answer = json!({"timestamp": at(43), "type": "gemini", "content": "Done.", "model": "gemini-2.5-flash"});
        let next = read("gemini", &[info(40, "Request cancelled."), answer]);
        assert_eq!((next.doing, next.answered_at), (None, Some(when(43))));
        for nothing in [
            json!("Request cancelled."),
            info(1, "Switched to another model."),
            json!({"timestamp": "soon", "type": "info", "content": "Request cancelled."}),
        ] {
            assert_eq!(read("gemini", &[nothing]).doing, None);
        }
    }

    #[test]
    fn qwen_records_each_request_that_fails() {
        // As 0.24.4 writes it.
        let error = |second: u32| {
            json!({"timestamp": at(second), "type": "system", "subtype": "ui_telemetry",
            "systemPayload": {"uiEvent": {"event.name": "qwen-code.api_error", "status_code": 429,
                "error_message": "429 You exceeded your current quota, please check your plan and billing details."}}})
        };
        let prompt = json!({"timestamp": at(1), "type": "user", "message": {}});
        let found = read("qwen", &[prompt.clone(), error(5), error(9)]);
        assert_eq!((found.doing, found.at), (Some(Doing::Retrying), when(5)));
        assert!(
            found
                .why
                .unwrap()
                .starts_with("429 You exceeded your current quota")
        );
        let answer = json!({"timestamp": at(12), "type": "assistant", "message": {}});
        assert_eq!(read("qwen", &[prompt, error(5), answer]).doing, None);
    }
}
