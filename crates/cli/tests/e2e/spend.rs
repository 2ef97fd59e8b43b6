//! What sessions used: read from their agents' files when somebody looks, each record once.

#![allow(clippy::unwrap_used)]

use std::fs::OpenOptions;
use std::io::Write as _;

use serde_json::{Value, json};
use tenure_testkit::Env;

use crate::env;
use crate::support::line::{handle, take};
use crate::support::transcript::{claude, file_of};

const ID: &str = "b2d6a746-0000-4000-8000-000000000012";

/// An answer of the model, as Claude Code records it: one line for each part, each with the same count.
fn answer(id: &str, input: u64, parts: usize) -> String {
    let at = tenure_host::clock::wall();
    let line = json!({"type": "assistant", "sessionId": ID, "timestamp": at.to_string(), "message": {"id": id,
        "usage": {"input_tokens": input, "cache_read_input_tokens": 1000, "output_tokens": 50}}});
    format!("{line}\n").repeat(parts)
}

fn write(file: &std::path::Path, text: &str) {
    let mut file = OpenOptions::new().append(true).open(file).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn usage(env: &Env, by: &str) -> Value {
    let said = env.tenure(&["usage", "--by", by, "--json"]).ok().json();
    said["usage"].clone()
}

#[test]
fn a_transcript_is_counted_from_where_it_was_read_last() {
    let env = env();
    let agent = claude(&env, ID);
    let file = file_of(&env, ID);
    take(&agent, "wp:1");
    write(&file, &answer("m1", 200, 3));
    let first = usage(&env, "session");
    assert_eq!(first["rows"][0]["name"], handle(&agent), "{first:#}");
    assert_eq!(first["total"]["tokens_in"], 1200);
    assert_eq!(first["total"]["tokens_out"], 50);
    assert_eq!(first["total"]["cost"], Value::Null);
    // The same answer goes on, and a line is half written.
    let torn = answer("m3", 9, 1);
    write(&file, &answer("m1", 200, 1));
    write(&file, &answer("m2", 7, 1));
    write(&file, &torn[..torn.len() / 2]);
    assert_eq!(usage(&env, "item")["rows"][0]["used"]["tokens_in"], 2207);
    write(&file, &torn[torn.len() / 2..]);
    let by_item = usage(&env, "item");
    assert_eq!(by_item["rows"][0]["name"], "wp:1");
    assert_eq!(by_item["rows"][0]["used"]["tokens_in"], 3216);
    // Its subagents write files of their own.
    let folder = file.with_extension("").join("subagents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("agent-a1.jsonl"), answer("s1", 0, 1)).unwrap();
    for _ in 0..2 {
        assert_eq!(usage(&env, "agent")["total"]["tokens_in"], 4216);
    }
    let text = env.tenure(&["usage", "--by", "day"]).ok().stdout;
    assert!(text.starts_with("DAY "), "{text}");
    assert!(text.contains("4216") && text.contains("200"), "{text}");
}

#[test]
fn what_was_counted_stays_when_the_transcript_is_gone() {
    let env = env();
    let _agent = claude(&env, ID);
    let file = file_of(&env, ID);
    write(&file, &answer("m1", 0, 1));
    assert_eq!(usage(&env, "day")["total"]["tokens_in"], 1000);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(usage(&env, "day")["total"]["tokens_in"], 1000);
    std::fs::write(&file, answer("m1", 0, 1)).unwrap();
    assert_eq!(
        usage(&env, "day")["total"]["tokens_in"],
        1000,
        "it is no longer than what was read"
    );
}
