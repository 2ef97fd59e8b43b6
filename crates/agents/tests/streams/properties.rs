//! Whatever a program writes: no reader panics, and nothing but a whole final event is a success.

use proptest::prelude::*;
use serde_json::Value;
use tenure_agents::ADAPTERS;
use tenure_agents::run::{AgentRun, Configured, Runs};
use tenure_core::run::Outcome;
use tenure_core::run::end::{Ending, Exit, Start, Stop, judge};
use tenure_core::run::progress::Totals;

use crate::captured::{self, NOW, own_error, read};

fn runs() -> impl Iterator<Item = &'static AgentRun> {
    ADAPTERS.iter().filter_map(|row| row.runs.as_ref())
}

fn configured() -> Configured {
    let table = serde_json::json!({
        "command": ["mine"], "resume": ["mine", "{id}"], "id": "/session_id",
        "done": "/result", "unknown": "no such", "unusable": "too long",
    });
    let table = serde_json::from_value(table).expect("it is a table");
    Configured::check("mine", table, |_| false).expect("it is right")
}

fn outcome(run: &dyn Runs, stream: &[u8], exit: Exit, stop: Option<Stop>) -> Outcome {
    let seen = read(run, stream, Totals::default());
    let stderr = own_error(run, exit, &String::from_utf8_lossy(stream));
    let end = judge(&Ending {
        seen: &seen,
        exit,
        stop,
        stderr: stderr.as_ref(),
        start: Start::Resumed {
            compacts: run.spec().compacts,
            before: None,
        },
        parked_before: 3,
        now: NOW,
    });
    end.outcome
}

fn exits() -> impl Strategy<Value = Exit> {
    prop_oneof![
        (0..256_i32).prop_map(Exit::Code),
        (1..64_i32).prop_map(Exit::Signal),
        Just(Exit::Unknown),
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_no_success(bytes in prop::collection::vec(any::<u8>(), 0..3000), exit in exits()) {
        for run in runs() {
            prop_assert_ne!(outcome(run, &bytes, exit, None), Outcome::Done);
            let text = String::from_utf8_lossy(&bytes);
            run.read_tail(&text);
            run.totals(&text);
            run.read_stderr(&text);
        }
        prop_assert_ne!(outcome(&configured(), &bytes, exit, None), Outcome::Done);
    }

    #[test]
    fn lines_that_look_like_json_are_no_success(
        lines in prop::collection::vec("[\\{\\[]?\"(type|result|is_error|status|error)\":[a-z0-9\"{}\\[\\],:]{0,40}\\}?", 0..20),
        exit in exits(),
    ) {
        for run in runs() {
            prop_assert_ne!(outcome(run, lines.join("\n").as_bytes(), exit, None), Outcome::Done);
        }
    }
}

/// The captured streams that end with a success, cut at every byte.
#[test]
fn a_stream_that_is_cut_anywhere_before_its_end_is_no_success() {
    let mut cuts = 0;
    for capture in captured::all() {
        let whole = capture.stream.trim_ascii_end();
        if outcome(capture.run, whole, capture.exit, None) != Outcome::Done {
            continue;
        }
        let step = (whole.len() / 300).max(1);
        for end in (0..whole.len()).step_by(step).chain([whole.len() - 1]) {
            cuts += 1;
            for exit in [Exit::Code(0), Exit::Signal(9)] {
                let found = outcome(capture.run, &whole[..end], exit, None);
                assert_ne!(found, Outcome::Done, "{} cut at {end}", capture.name);
            }
        }
    }
    assert!(cuts > 5000, "{cuts}");
}

/// Each field of each captured line, replaced by values that do not belong there.
#[test]
fn fields_of_any_kind_are_read_without_a_panic() {
    let odd: Vec<Value> = [
        "null",
        "true",
        "-1",
        "1e308",
        "18446744073709551615",
        "\"\"",
        "[]",
        "[[{}]]",
        "{}",
        "{\"a\":{}}",
    ]
    .iter()
    .map(|text| serde_json::from_str(text).expect("it is JSON"))
    .collect();
    let mut spoilt = 0;
    for capture in captured::all() {
        let text = String::from_utf8_lossy(&capture.stream);
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        for line in &lines {
            for path in paths(line) {
                let value = &odd[spoilt % odd.len()];
                let mut changed = line.clone();
                *changed.pointer_mut(&path).expect("it is there") = value.clone();
                capture.run.read(changed.to_string().as_bytes());
                spoilt += 1;
            }
        }
    }
    assert!(spoilt > 5000, "{spoilt}");
}

/// Where the fields of a value are, down to a few levels.
fn paths(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((path, value)) = open.pop() {
        let fields: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields
                .iter()
                .map(|(key, field)| (key.replace('~', "~0").replace('/', "~1"), field))
                .collect(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| (index.to_string(), item))
                .collect(),
            _ => Vec::new(),
        };
        for (key, field) in fields {
            let path = format!("{path}/{key}");
            found.push(path.clone());
            if path.matches('/').count() < 4 {
                open.push((path, field));
            }
        }
    }
    found
}

#[test]
fn a_line_of_a_megabyte_is_read_and_one_without_end_is_given_up() {
    let long = "x".repeat(1 << 20);
    for run in runs() {
        let texts = [
            format!("{{\"type\":\"text\",\"part\":{{\"text\":\"{long}\"}}}}"),
            format!(
                "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{long}\"}}]}}}}"
            ),
            format!("{{\"type\":\"error\",\"message\":\"{long}\"}}"),
            long.clone(),
            "[".repeat(1 << 20),
            format!("{{\"type\":\"{long}"),
        ];
        for text in texts {
            assert_ne!(
                outcome(run, text.as_bytes(), Exit::Code(0), None),
                Outcome::Done
            );
        }
        let endless = vec![b'{'; tenure_agents::run::MAX_LINE + 1];
        let seen = read(run, &endless, Totals::NOTHING);
        assert_eq!(seen.unreadable(), 1);
    }
}
