//! Every id in a help text is one that tenure could have given.

use clap::CommandFactory;
use tenure_core::id::{Handle, JobId, RunId};

use crate::cli::Cli;

/// Agents that examples name.
const AGENTS: [&str; 5] = ["claude", "codex", "gemini", "opencode", "qwen"];

/// The texts of a command and of everything below it, with what it is called.
fn texts(command: &clap::Command, above: &str, found: &mut Vec<(String, String)>) {
    let name = format!("{above} {}", command.get_name());
    let shown = command.clone().render_long_help().to_string();
    found.push((name.clone(), shown));
    for below in command.get_subcommands() {
        texts(below, &name, found);
    }
}

/// Whether a word looks like an id and is none.
fn is_wrong(word: &str) -> bool {
    let Some((kind, code)) = word.split_once('-') else {
        return false;
    };
    let is_code = |long: usize| {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        code.len() == long && code.bytes().all(plain) && code.bytes().any(|b| b.is_ascii_digit())
    };
    match kind {
        "r" => is_code(10) && RunId::parse(word).is_err(),
        "j" => is_code(10) && JobId::parse(word).is_err(),
        agent if AGENTS.contains(&agent) => is_code(4) && Handle::parse(word).is_err(),
        _ => false,
    }
}

#[test]
fn every_id_in_a_help_text_is_a_valid_one() {
    let mut all = Vec::new();
    texts(&Cli::command(), "", &mut all);
    assert!(all.len() > 40, "{}", all.len());
    let between = |letter: char| !letter.is_ascii_alphanumeric() && letter != '-';
    let mut wrong = Vec::new();
    for (name, text) in &all {
        let words = text.split(between).filter(|word| is_wrong(word));
        wrong.extend(words.map(|word| format!("{name}: {word}")));
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn an_id_with_a_letter_that_no_code_has_is_found() {
    for word in ["j-k7qd2m4xw9", "r-k7qd2m4xw9", "gemini-m3xa"] {
        assert!(is_wrong(word), "{word}");
    }
    for word in ["j-k7qd2m4zw9", "claude-k7qd", "claude-code", "r-x"] {
        assert!(!is_wrong(word), "{word}");
    }
}
