//! The README: short before its reference, and what it shows is there.

#![allow(clippy::unwrap_used)]

use std::path::Path;

/// How many words a newcomer reads before the reference.
const MOST_WORDS: usize = 900;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).unwrap()
}

#[test]
fn the_part_before_the_reference_is_short() {
    let text = readme();
    let (before, _) = text
        .split_once("\n## Reference\n")
        .expect("a reference part");
    let words = before.split_whitespace().count();
    assert!(words <= MOST_WORDS, "{words} words");
}

/// What it is, for whom, and the next command, before anything else.
#[test]
fn the_first_screen_says_what_to_run() {
    let text = readme();
    let first: String = text.lines().take(20).collect::<Vec<_>>().join("\n");
    for said in [
        "coding agents",
        "It is for ",
        "cargo install --locked --path crates/cli",
        "tenure install",
        "docs/demo.svg",
    ] {
        assert!(first.contains(said), "{said} is not on the first screen");
    }
}

#[test]
fn every_file_that_is_linked_exists() {
    let text = readme();
    let mut links = 0;
    for rest in text.split("](").skip(1) {
        let target = rest.split(')').next().unwrap();
        if !target.contains("://") {
            assert!(root().join(target).exists(), "{target} is not there");
            links += 1;
        }
    }
    assert!(links > 5, "{links}");
}
