//! The README is short, and what it and the other documents link is there.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

/// What a newcomer reads; docs/ has the reference.
const MAX_WORDS: usize = 1200;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).unwrap()
}

#[test]
fn it_has_at_most_so_many_words() {
    let words = readme().split_whitespace().count();
    assert!(words <= MAX_WORDS, "{words} words");
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
    let mut links = 0;
    for file in documents() {
        let text = std::fs::read_to_string(&file).unwrap();
        for rest in text.split("](").skip(1) {
            let target = rest.split([')', '#']).next().unwrap();
            if !target.contains("://") && !target.is_empty() {
                let linked = file.parent().unwrap().join(target);
                assert!(linked.exists(), "{}: {target} is not there", file.display());
                links += 1;
            }
        }
    }
    assert!(links > 20, "{links}");
}

fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    let entries = std::fs::read_dir(root().join("docs")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    found.extend(paths.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    found
}
