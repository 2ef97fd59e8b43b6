//! What tenure printed in a test run, one JSON object per line, in the file that TENURE_SEEN names: the arguments, both
//! outputs and the exit code of each command that failed or wrote to stderr.
//!
//! The pages of messages are checked against it, because no test can know what the code of a command can print.

mod library;

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The variable that names the file; without it nothing is recorded.
pub const VARIABLE: &str = "TENURE_SEEN";

/// A command of tenure that ended, as the library in its process wrote it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Seen {
    pub args: Vec<String>,
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Seen {
    /// What a test run recorded, in an order that does not depend on which test ran first.
    pub fn read(file: &Path) -> Vec<Self> {
        let bytes = std::fs::read(file).expect("the other tests wrote it");
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().map(serde_json::from_str);
        let mut all: Vec<Self> = lines.collect::<Result<_, _>>().expect("whole lines");
        all.sort();
        all.dedup();
        all
    }

    /// The words behind `tenure`, as a shell reads them.
    pub fn typed(&self) -> String {
        let words: Vec<String> = self.args.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }
}

/// The variables that make a process record what it prints; none if nothing is recorded.
pub(crate) fn variables() -> Vec<(String, String)> {
    let Some(file) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        return Vec::new();
    };
    let text = |path: PathBuf| path.into_os_string().into_string().expect("a path of text");
    let library = library::find(&file);
    [("LD_PRELOAD", library), (VARIABLE, file)]
        .map(|(name, path)| (name.to_owned(), text(path)))
        .into()
}

/// A word as it is typed, on one line.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=/.,:@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let mut text = String::new();
    for letter in word.chars() {
        match letter {
            '\'' => text.push_str("'\\''"),
            letter if letter.is_alphanumeric() || letter.is_ascii_graphic() || letter == ' ' => {
                text.push(letter);
            }
            letter => text.extend(letter.escape_default()),
        }
    }
    format!("'{text}'")
}
