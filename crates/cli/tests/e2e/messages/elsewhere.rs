//! The page of messages that other tests make, because they need more than a page can set up: a server, another user, a
//! damaged file, a process that dies at the right moment.
//!
//! Each entry is the command, its messages and the exit code; what else it printed is left out. It is here because of a
//! line that no other page shows. `UPDATE=1` adds those that are missing. It removes none: a test run may leave tests out. After a run
//! of all tests, with those that need a server, `UPDATE=all` also removes what none of them made.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tenure_testkit::seen::Seen;

use super::complete::{Call, ELSEWHERE, entries, entries_of};
use super::page::folder;
use super::said::{Line, kind, said, short};
use super::stable::Stable;

/// How much of a command is shown.
const MOST_TYPED: usize = 400;

const TITLE: &str = "## Messages that other tests make\n\n";

pub struct Elsewhere {
    /// Each entry, without the empty line behind it.
    entries: Vec<String>,
    /// The forms of all lines that a page shows.
    shown: BTreeSet<String>,
    updates: bool,
}

impl Elsewhere {
    fn file() -> PathBuf {
        folder().join(ELSEWHERE)
    }

    pub fn read(seen: &[Seen]) -> Self {
        let text = std::fs::read_to_string(Self::file()).unwrap_or_default();
        let blocks = text.split("\n\n").map(str::trim);
        let blocks = blocks.filter(|block| block.starts_with("$ "));
        let mut blocks: Vec<String> = blocks.map(str::to_owned).collect();
        let mut shown = forms(entries());
        let update = std::env::var("UPDATE").unwrap_or_default();
        if update == "all" {
            let made = seen.iter().flat_map(lines);
            let made: BTreeSet<String> = made.map(|line| line.form).collect();
            blocks.retain(|block| {
                let own = forms(entries_of(block));
                own.difference(&shown).any(|form| made.contains(form))
            });
        }
        shown.extend(blocks.iter().flat_map(|block| forms(entries_of(block))));
        Self {
            entries: blocks,
            shown,
            updates: update == "1" || update == "all",
        }
    }

    /// The lines of a command that no page shows. It is added if the page is being written.
    pub fn lacks(&mut self, seen: &Seen) -> Vec<String> {
        let new = lines(seen)
            .into_iter()
            .filter(|line| !self.shown.contains(&line.form));
        let new: Vec<_> = new.collect();
        if new.is_empty() || !self.updates {
            return new.into_iter().map(|line| line.text).collect();
        }
        self.shown.extend(new.into_iter().map(|line| line.form));
        self.entries.push(entry(seen).trim_end().to_owned());
        Vec::new()
    }

    pub fn write(mut self) {
        if self.updates {
            // By message, so that like ones stand together.
            self.entries.sort_by_cached_key(|entry| {
                let call = entries_of(entry).pop();
                let first = call.and_then(|call| call.said.into_iter().next());
                (first.map(|line| line.text), entry.clone())
            });
            let text = self.entries.join("\n\n");
            std::fs::write(Self::file(), format!("{TITLE}{text}\n")).expect("it can be written");
        }
    }
}

fn lines(seen: &Seen) -> Vec<Line> {
    said(&seen.args, &seen.stdout, &seen.stderr, seen.code)
}

fn forms(calls: Vec<Call>) -> BTreeSet<String> {
    let lines = calls.into_iter().flat_map(|call| call.said);
    lines.map(|line| line.form).collect()
}

/// A command without what differs from run to run, as text even if it answered in JSON.
fn entry(seen: &Seen) -> String {
    let stable = Stable::by_form();
    let mut typed = stable.typed(&short(&seen.typed()));
    if let Some((end, _)) = typed.char_indices().nth(MOST_TYPED) {
        typed.truncate(end);
        typed.push_str("...");
    }
    let mut text = format!("$ tenure {typed}\n");
    for line in lines(seen) {
        text.push_str(&format!("! {}\n", line.text));
    }
    match kind(&seen.stdout, &seen.stderr) {
        Some(kind) => text.push_str(&format!("exit {} ({kind})\n", seen.code)),
        None => text.push_str(&format!("exit {}\n", seen.code)),
    }
    text
}
