//! Whether every text in the sources is on a page.
//!
//! The pages show messages as commands print them. Here the sources are read: a text that no page shows fails a test, so
//! that a message of a rare state gets its page, too. [`not_messages`] lists what is no message, with the reason. A text
//! counts as shown if its constant parts are on one line of a page, one after the other. Single words and panics are
//! not read.

mod literals;
mod not_messages;
mod words;

use std::path::{Path, PathBuf};

use self::literals::{Found, all_sources, below, crates, texts_of};
use self::not_messages::{NOT_MESSAGES, READ_NOT_SAID, SAID_THERE};
use self::words::{is_statement, on_one_line, parts};
use super::page::folder;

/// What all pages show.
struct Pages {
    lines: Vec<String>,
    /// Each page on one line, for texts of several lines.
    whole: Vec<String>,
}

impl Pages {
    fn read() -> Self {
        let entries = std::fs::read_dir(folder()).expect("there are pages");
        let files = entries.map(|entry| entry.expect("an entry").path());
        let (mut lines, mut whole) = (Vec::new(), Vec::new());
        for file in files {
            let text = std::fs::read_to_string(file).expect("it is text");
            let is_typed = |line: &&str| {
                ["$ ", "# ", "## "]
                    .iter()
                    .any(|mark| line.starts_with(mark))
            };
            let said = text.lines().filter(|line| !is_typed(line));
            lines.extend(said.map(on_one_line));
            whole.push(on_one_line(&text.replace("\n! ", "\n")));
        }
        Self { lines, whole }
    }

    /// Whether one of them has a text: its parts, one after the other, or the braces of a template as they are.
    fn show(&self, text: &str) -> bool {
        let is_template = text.contains("{{ ");
        is_template && self.has(text, &[text.to_owned()]) || self.has(text, &parts(text))
    }

    /// Whether one of them has these parts of a text, one after the other, as words of their own.
    fn has(&self, text: &str, parts: &[String]) -> bool {
        let parts: Vec<String> = parts.iter().map(|part| on_one_line(part)).collect();
        let parts: Vec<&str> = parts
            .iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        let shown = if text.trim().contains('\n') {
            &self.whole
        } else {
            &self.lines
        };
        shown.iter().any(|line| holds(line, &parts))
    }
}

fn holds(line: &str, parts: &[&str]) -> bool {
    let Some((first, rest)) = parts.split_first() else {
        return true;
    };
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(first).any(|(at, _)| {
        let end = at + first.len();
        let cut_before = first.starts_with(is_letter) && line[..at].ends_with(is_letter);
        let cut_after = first.ends_with(is_letter) && line[end..].starts_with(is_letter);
        !cut_before && !cut_after && holds(&line[end..], rest)
    })
}

/// The texts of each source that speaks to somebody.
fn texts() -> Vec<(String, Vec<String>)> {
    let read = all_sources().into_iter().map(|file| {
        let source = std::fs::read_to_string(&file).expect("it is text");
        (file, texts_of(&source))
    });
    let read: Vec<(PathBuf, Found)> = read.collect();
    let modules = read.iter().flat_map(|(file, found)| {
        let below = below(file);
        found.for_tests.iter().map(move |name| below.join(name))
    });
    let for_tests: Vec<PathBuf> = modules.collect();
    let is_real = |file: &Path| {
        let own = file.with_extension("");
        !for_tests.iter().any(|module| own.starts_with(module))
    };
    let real = read.into_iter().filter(|(file, _)| is_real(file));
    let named = real.map(|(file, found)| {
        let name = file.strip_prefix(crates()).expect("below the crates");
        (name.to_string_lossy().into_owned(), found.texts)
    });
    named.collect()
}

fn not_messages() -> impl Iterator<Item = (&'static str, &'static str)> {
    NOT_MESSAGES
        .iter()
        .flat_map(|(_, texts)| texts.iter().copied())
}

/// Whether a text of this source is a message, as far as the lists tell.
fn is_message(file: &str, text: &str) -> bool {
    let is_sql = file.starts_with("store/") && is_statement(text);
    let is_read = READ_NOT_SAID.contains(&file) && !SAID_THERE.contains(&text);
    !is_sql && !is_read && !not_messages().any(|listed| listed == (file, text))
}

#[test]
fn every_text_is_on_a_page() {
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        // The pages are being written.
        return;
    }
    let pages = Pages::read();
    let mut missing = String::new();
    for (file, texts) in texts() {
        let is_left = |text: &&String| is_message(&file, text) && !pages.show(text);
        for text in texts.iter().filter(is_left) {
            missing += &format!("{file}: {text:?}\n");
        }
    }
    assert!(
        missing.is_empty(),
        "show these texts on a page, as a command prints them:\n{missing}"
    );
}

#[test]
fn what_is_listed_as_no_message_is_in_its_source() {
    let (pages, all) = (Pages::read(), texts());
    let texts_in = |file: &str| all.iter().find(|(name, _)| name == file);
    for name in READ_NOT_SAID {
        assert!(texts_in(name).is_some(), "{name} is gone");
    }
    for (file, text) in not_messages() {
        let (_, texts) = texts_in(file).unwrap_or_else(|| panic!("{file} is gone"));
        let is_there = texts.iter().any(|one| one == text);
        assert!(is_there, "{file}: {text:?} is gone");
        assert!(!pages.show(text), "{file}: {text:?} is on a page");
    }
}

#[test]
fn a_text_is_found_wherever_it_is_said() {
    let source = r##"
        //! Nobody is told this.
        #![cfg_attr(test, allow(this_lint))]
        mod real;
        #[error("it broke {0} times")]
        struct Broken(u32);
        fn f() -> String {
            check().expect("a claim of the programmer");
            expect("what is asked for");
            write(b"bytes that are said");
            assert!(is_right(), "another such claim");
            format!("{} is on {host}", "a value with \
                      a break")
        }
        #[cfg(test)]
        mod tests { const T: &str = "said in a test"; }
        #[cfg(test)]
        mod samples;
    "##;
    let found = texts_of(source);
    let texts = [
        "it broke {0} times",
        "what is asked for",
        "bytes that are said",
        "{} is on {host}",
        "a value with a break",
    ];
    assert_eq!(found.texts, texts);
    assert_eq!(found.for_tests, ["tests", "samples"]);
}

#[test]
fn a_text_is_shown_where_all_its_parts_are_on_a_line() {
    let pages = Pages {
        lines: vec!["a.rs is on build-3 now".to_owned(), "in a tmux".to_owned()],
        whole: vec!["a.rs is on build-3 now in a tmux".to_owned()],
    };
    for shown in ["{} is on {host}", "{} is on {host} now", "now\nin a"] {
        assert!(pages.show(shown), "{shown}");
    }
    for other in [
        "{} was on {host}",
        "is on build-3 no",
        "now {} in",
        "is on {} is on",
    ] {
        assert!(!pages.show(other), "{other}");
    }
    let braces = parts("caps = { runs_per_hour = 6 }, {{id}} of {item:?}");
    assert_eq!(braces, ["caps = { runs_per_hour = 6 }, {id} of ", ""]);
}
