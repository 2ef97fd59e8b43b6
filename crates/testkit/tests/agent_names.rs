//! An agent is named in its rows alone: core's table and the agents crate. A name anywhere else is a list that
//! the next agent is not on, or an arm that stands for a certain one.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use tenure_core::agent::AGENTS;

/// Where code may name one, and why.
const ROWS: &[(&str, &str)] = &[
    ("agents/src", "the rows"),
    ("core/src/agent", "the other halves of the rows"),
    (
        "dispatch/src/init.rs",
        "the file that it writes is an example",
    ),
    ("dispatch/src/skills.rs", "the rules of that example"),
    (
        "core/src/import",
        "what other systems kept, and their names",
    ),
    ("app/src/import.rs", "their names"),
    ("cli/src/verbs/import.rs", "their names"),
    ("cli/src/verbs/demo", "it shows agents that people know"),
    ("views/src/top/sample.rs", "the fleet of its tests"),
    ("testkit", "tests"),
    ("bench", "measurements"),
];

/// Where OpenClaw alone may be named: its database is read, checked and repaired, which no other agent needs.
const REPAIRED: (&str, &[&str]) = (
    "openclaw",
    &[
        "app/src/lib.rs",
        "app/src/openclaw.rs",
        "app/src/settings",
        "app/src/transcript.rs",
        "cli/src/verbs/mod.rs",
        "cli/src/verbs/schema",
        "cli/src/verbs/verify.rs",
        "core/src/lib.rs",
        "core/src/openclaw.rs",
        "doctor/src/asked.rs",
        "doctor/src/code.rs",
        "doctor/src/table.rs",
    ],
);

fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

/// The words of a file's code: identifiers, and strings of one word in quotes. Comments, longer texts (help,
/// examples) and tests are none.
fn words(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap();
    let mut words = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("'\"'") {
            3
        } else if first == '"' {
            let end = string_end(rest);
            let inside = &rest[1..end - 1];
            if inside.chars().all(|c| is_word(c) || c == '-') {
                words.push(inside.to_owned());
            }
            end
        } else if is_word(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            words.push(rest[..end].to_owned());
            end
        } else {
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    words
}

/// Where a string ends, its closing quote included.
fn string_end(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Whether a word has an agent's name as a part: `CLAUDE`, `codex_config`, `OPENCODE_HOME`, `InstallGemini`.
fn names(word: &str) -> Option<&'static str> {
    let plain = word.to_lowercase();
    let mut known = AGENTS.iter().map(|spec| spec.name);
    known.find(|name| plain.contains(name))
}

#[test]
fn code_names_an_agent_in_its_rows_alone() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut looked = 0;
    for file in sources(crates) {
        let path = file.strip_prefix(crates).unwrap().to_str().unwrap();
        let is_excused = ROWS.iter().any(|(row, _)| path.starts_with(row));
        if is_excused || !path.contains("/src/") || path.ends_with("tests.rs") {
            continue;
        }
        looked += 1;
        let text = std::fs::read_to_string(&file).unwrap();
        let (repaired, files) = REPAIRED;
        let is_there = files.iter().any(|start| path.starts_with(start));
        for word in words(&text) {
            let named = names(&word).filter(|name| !(is_there && *name == repaired));
            assert_eq!(named, None, "{path}: {word}");
        }
    }
    assert!(looked > 100, "{looked} files were looked at");
}

#[test]
fn words_are_code_and_not_texts() {
    let code = "let x = CLAUDE; // codex\nmatch y { \"gemini\" => '\"', \"run gemini\" => install_codex() }";
    let found: Vec<String> = words(code);
    let named: Vec<&str> = found.iter().filter_map(|word| names(word)).collect();
    assert_eq!(named, ["claude", "gemini", "codex"]);
}
