//! Ten thousand corrupted events, the same ones each time: no adapter panics, and its results can be used and
//! shown.

#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_agents::{ADAPTERS, EventAnswer};
use tenure_core::id::NativeId;

const EVENTS: usize = 10_000;

/// Pseudo-random numbers, the same each time.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        let most = u64::try_from(most.max(1)).expect("sizes are small");
        usize::try_from(self.next() % most).expect("sizes are small")
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// Every event that was captured, and one of each of our own kinds.
fn events() -> Vec<Vec<u8>> {
    let captured = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/fixtures");
    let inside = |dir: &Path| -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = std::fs::read_dir(dir)
            .expect("events were captured")
            .map(|entry| entry.expect("they can be read").path())
            .collect();
        all.sort();
        all
    };
    let files = inside(&captured).into_iter().flat_map(|dir| inside(&dir));
    let mut all: Vec<Vec<u8>> = files
        .map(|file| std::fs::read(file).expect("they can be read"))
        .collect();
    assert!(all.len() > 40, "{} events were captured", all.len());
    all.push(
        json!({"event": "start", "agent": "nightly", "session_id": "7f3c", "cwd": "/w", "reason": "x",
            "subagent_id": "s1", "transcript_path": "/t/7f3c.jsonl", "writes": "/w/a"})
        .to_string()
        .into_bytes(),
    );
    all.push(
        json!({"hook_event_name": "PostToolUse", "session_id": "ses_2", "parent_id": "ses_1",
            "cwd": "/w", "tool_name": "edit", "tool_input": {"filePath": "/w/a"}})
        .to_string()
        .into_bytes(),
    );
    all
}

/// Values that do not belong where they are put.
fn odd(dice: &mut Dice) -> Value {
    match dice.below(14) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(1e308),
        4 => json!([]),
        5 => json!({"a": {"b": [1, null]}}),
        6 => json!(""),
        7 => json!("../../etc/x"),
        8 => json!("unknown"),
        9 => json!(" "),
        10 => json!("a\u{0}b\u{1b}[2J\n\u{202e}"),
        11 => json!("é".repeat(dice.below(3_000))),
        12 => json!("/".repeat(dice.below(6_000))),
        _ => json!(u64::MAX),
    }
}

/// A complete event with a field, or a part of one, replaced, renamed or removed.
fn reshape(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let Ok(Value::Object(mut object)) = serde_json::from_slice(bytes) else {
        return;
    };
    let names: Vec<String> = object.keys().cloned().collect();
    if names.is_empty() {
        return;
    }
    let name = dice.one(&names).clone();
    match dice.below(5) {
        0 => drop(object.remove(&name)),
        1 => {
            let value = object.remove(&name).unwrap_or_default();
            object.insert(name.to_uppercase(), value);
        }
        2 => {
            let inner = object.clone();
            object.insert(name, Value::Object(inner));
        }
        3 => {
            let parts = [
                "tool_input",
                "session_id",
                "hook_event_name",
                "agent_id",
                "cwd",
            ];
            object.insert((*dice.one(&parts)).to_owned(), odd(dice));
        }
        _ => drop(object.insert(name, odd(dice))),
    }
    *bytes = serde_json::to_vec(&object).expect("an object is JSON");
}

/// Corrupts an event in one way.
fn spoil(bytes: &mut Vec<u8>, dice: &mut Dice) {
    match dice.below(100) {
        0..40 => reshape(bytes, dice),
        40..55 => bytes.truncate(dice.below(bytes.len() + 1)),
        55..65 => {
            for _ in 0..=dice.below(8) {
                let at = dice.below(bytes.len());
                let byte = dice.byte();
                if let Some(one) = bytes.get_mut(at) {
                    *one = byte;
                }
            }
        }
        65..72 => {
            // Invalid bytes in the middle of a text.
            let at = dice.below(bytes.len());
            bytes.splice(at..at, [0xff, 0xfe, 0xc0, 0x80]);
        }
        72..79 => {
            let (from, to) = (dice.below(bytes.len()), dice.below(bytes.len()));
            bytes.drain(from.min(to)..from.max(to));
        }
        79..86 => {
            let (from, to) = (dice.below(bytes.len()), dice.below(bytes.len()));
            let again = bytes[from.min(to)..from.max(to)].to_vec();
            let at = dice.below(bytes.len());
            bytes.splice(at..at, again);
        }
        86..92 => {
            let opens = ["[", "{\"a\":", "{\"session_id\":", "[{\"tool_input\":"];
            let open = dice.one(&opens).as_bytes();
            let deep = open.repeat(dice.below(20_000));
            let at = dice.below(3).min(bytes.len());
            bytes.splice(at..at, deep);
        }
        92..98 => {
            let marks = b"{}[]\",:\\u0\n\t /-+eE.truefalsenull";
            for _ in 0..dice.below(30) {
                let at = dice.below(bytes.len());
                bytes.insert(at, *dice.one(marks));
            }
        }
        _ => bytes.clear(),
    }
}

fn is_plain(text: &str) -> bool {
    !text.contains(char::is_control) && text.chars().count() <= 200
}

/// Parses an event as every agent's, and checks the result.
fn check(bytes: &[u8], what: &str) {
    let said = EventAnswer {
        context: Some("context".into()),
        message: Some("message".into()),
        block: Some("block".into()),
        token: Some("token".into()),
        foreign_to: Some("foreign".into()),
        waits: true,
    };
    for adapter in ADAPTERS {
        let name = adapter.name;
        let report = adapter.read(bytes);
        if let Some(id) = &report.native_id {
            assert!(NativeId::parse(id.as_str()).is_ok(), "{what} {name}: {id}");
            assert!(
                !id.as_str().contains(['/', '\0', '\n', ' ']),
                "{what} {name}: {id}"
            );
            assert!(
                !matches!(id.as_str(), "" | "." | ".." | "unknown" | "null"),
                "{what} {name}"
            );
        }
        assert!(is_plain(&report.name), "{what} {name}: {:?}", report.name);
        if let Some(subagent) = &report.subagent {
            assert!(is_plain(&subagent.id), "{what} {name}: {subagent:?}");
            assert!(
                subagent.kind.as_deref().is_none_or(is_plain),
                "{what} {name}"
            );
        }
        if let tenure_core::agent_event::Happening::End { reason, .. } = &report.what {
            assert!(is_plain(reason), "{what} {name}: {reason:?}");
        }
        for path in [&report.dir, &report.transcript].into_iter().flatten() {
            let is_path = path.len() <= 4096 && !path.contains(char::is_control);
            assert!(is_path, "{what} {name}: {path:?}");
        }
        assert!(
            report.dir.is_none_or(|dir| dir.starts_with('/')),
            "{what} {name}"
        );
        for problem in &report.problems {
            assert!(
                problem.len() < 1_000 && !problem.contains('\n'),
                "{what} {name}: {problem:?}"
            );
        }
        let answer = adapter.answer(&report.name, &said);
        assert!(
            answer.is_some_and(|answer| answer.is_object()),
            "{what} {name}"
        );
    }
}

#[test]
fn ten_thousand_spoilt_events_are_read_without_harm() {
    let whole = events();
    let mut dice = Dice(0x5eed_0f7e_4e4e_0001);
    for number in 0..EVENTS {
        let mut bytes = dice.one(&whole).clone();
        for _ in 0..=dice.below(3) {
            spoil(&mut bytes, &mut dice);
        }
        check(&bytes, &format!("event {number}"));
    }
}

#[test]
fn events_far_larger_than_a_hook_reads_are_read_without_harm() {
    let head = br#"{"session_id":"a1","hook_event_name":"PostToolUse","event":"busy","x":"#;
    let five = 5 << 20;
    for filling in [
        &b"\"yyyyyyy"[..],
        b"[[[[[[[[",
        b"{\"a\":{}},",
        b"1,2,3,4,",
        b"\xff\xff\xff\xff",
    ] {
        let mut bytes = head.to_vec();
        bytes.extend(filling.repeat(five / filling.len()));
        check(&bytes, "five mebibytes");
        for adapter in ADAPTERS {
            let report = adapter.read(&bytes);
            let id = report.native_id.as_ref().map(NativeId::as_str);
            assert_eq!(id, Some("a1"), "{}: its beginning counts", adapter.name);
            assert_eq!(
                report.problems.len(),
                1,
                "{}: {:?}",
                adapter.name,
                report.problems
            );
        }
    }
}

#[test]
fn what_was_captured_is_read_without_a_complaint() {
    for bytes in events() {
        check(&bytes, "a captured event");
        let text = String::from_utf8_lossy(&bytes);
        for adapter in ADAPTERS {
            let report = adapter.read(&bytes);
            assert_eq!(
                report.problems,
                Vec::<String>::new(),
                "{}: {text}",
                adapter.name
            );
            assert!(report.native_id.is_some(), "{}: {text}", adapter.name);
        }
    }
}
