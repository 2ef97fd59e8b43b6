//! Every hint can be typed: its verb exists, and its arguments are that verb's.

use std::path::Path;

use clap::CommandFactory;
use tenure_core::hint::Hint;

use crate::cli::{Cli, can_be_typed};
use crate::error_samples::errors;
use crate::output::command_line;

/// How long a source file may be.
const LONGEST: u64 = 1 << 20;

#[test]
fn the_hints_of_every_error_can_be_typed() {
    for error in errors() {
        let hints = error.hints();
        assert!(!hints.is_empty(), "{error:?}");
        for hint in hints {
            check(&hint);
        }
    }
}

fn check(hint: &Hint) {
    let said = command_line(hint);
    let Some(verb) = hint.verb else {
        let words: Vec<&str> = said.split([' ', '`']).collect();
        let is_verb = |word: &str| Cli::command().find_subcommand(word).is_some();
        let names_one = |pair: &[&str]| pair[0] == "tenure" && is_verb(pair[1]);
        assert!(
            !words.windows(2).any(names_one),
            "a command in a step: {said}"
        );
        return;
    };
    assert!(said.starts_with(&format!("run `tenure {verb}")), "{said}");
    // A number is filled in; any other word in capitals is text and stands for itself.
    let filled = hint.args.iter().map(|word| match word.as_str() {
        "PID" => "1",
        other => other,
    });
    let words: Vec<&str> = std::iter::once(verb).chain(filled).collect();
    let parsed = can_be_typed(&words);
    assert!(parsed.is_ok(), "{said}: {}", parsed.expect_err("refused"));
}

#[test]
fn every_hint_in_the_sources_names_a_verb_that_exists() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let grammar = Cli::command();
    let mut found = 0;
    for file in sources(&crates) {
        let text = tenure_host::read::whole(&file, LONGEST).expect("a source file");
        let text = String::from_utf8(text).expect("text");
        for start in ["Hint::run(", "Hint::verb("] {
            for after in text.split(start).skip(1) {
                let Some(quoted) = after.trim_start().strip_prefix('"') else {
                    continue;
                };
                let verb = quoted.split('"').next().unwrap_or_default();
                let exists = grammar.find_subcommand(verb).is_some();
                assert!(exists, "{}: no verb {verb:?}", file.display());
                found += 1;
            }
        }
    }
    assert!(found > 50, "only {found} hints were found");
}

fn sources(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs_err::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "tests") {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs")
            && !path.ends_with("core/src/hint.rs")
            && !path.ends_with("cli/src/hint_tests.rs")
        {
            files.push(path);
        }
    }
    files
}
