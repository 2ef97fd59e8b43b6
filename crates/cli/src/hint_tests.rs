//! Every hint names a verb that exists, and those on the pages of messages can be typed.

use std::path::Path;

use clap::CommandFactory;
use clap::error::ErrorKind;

use crate::cli::{Cli, can_be_typed};
use crate::readme_tests::first_command;

/// How long a source file may be.
const MAX_LENGTH: u64 = 1 << 20;

#[test]
fn every_hint_in_the_sources_names_a_verb_that_exists() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let grammar = Cli::command();
    let mut found = 0;
    for file in sources(&crates) {
        let text = tenure_host::read::whole(&file, MAX_LENGTH).expect("a source file");
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

#[test]
fn every_hint_on_a_page_can_be_typed() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages");
    let mut found = 0;
    for entry in fs_err::read_dir(pages).expect("there are pages") {
        let text = fs_err::read_to_string(entry.expect("an entry").path()).expect("it is text");
        for hint in text
            .lines()
            .filter_map(|line| line.strip_prefix("! hint: run `tenure "))
        {
            let command = hint.split('`').next().unwrap_or_default();
            // A number is filled in; any other word in capitals is text and stands for itself.
            let words = first_command(&command.replace("PID", "1"));
            let parsed = can_be_typed(&words.iter().map(String::as_str).collect::<Vec<_>>());
            let is_help = |error: &clap::Error| error.kind() == ErrorKind::DisplayHelp;
            assert!(
                parsed.is_ok() || parsed.as_ref().is_err_and(is_help),
                "{hint}: {parsed:?}"
            );
            found += 1;
        }
    }
    assert!(found > 50, "only {found} hints were found");
}
