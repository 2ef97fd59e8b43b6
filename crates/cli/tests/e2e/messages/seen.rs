//! Whether the pages show every failure that other tests see, for each command and sub-command.
//!
//! Which kinds a command can return follows from all the code below it, which no test can read. But the other tests make
//! nearly every failure there is. Run them with `TENURE_SEEN=FILE`, then this test with the same variable.
//!
//! A failure that was printed as text has the kind of the message on the pages that it has most words in common with.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tenure_testkit::seen::{AS_TEXT, VARIABLE};

use super::complete::{Call, calls, is_of};
use super::page::folder;
use crate::env;
use crate::support::output::commands;

/// Kinds with one message for all commands, made in one place before the command does anything of its own.
const SHARED: &[&str] = &[
    "ambiguous",
    "config",
    "malformed",
    "no_session",
    "no_such_session",
    "output_failed",
    "reason_needed",
    "store_busy",
    "store_damaged",
    "store_full",
    "store_log_lost",
    "store_moved",
    "store_replaced",
    "store_too_new",
    "store_unavailable",
    "store_unfinished",
    "superseded",
    "unexpected",
    "usage",
];

/// Failures of one command that no page shows, with the reason.
const UNSHOWN: &[(&str, &str, &str)] = &[
    (
        "conversation set",
        "not_found",
        "is shown for other commands with a directory; conversations.rs makes it",
    ),
    (
        "resume",
        "command",
        "is shown for lock; an agent that is not installed",
    ),
    (
        "run",
        "command",
        "is shown for lock; an agent that is not installed",
    ),
    (
        "dispatch explain",
        "body_forgotten",
        "needs a body that is kept no longer; dispatch_again.rs makes it",
    ),
    (
        "dispatch explain",
        "no_such_delivery",
        "is shown for dispatch replay; dispatch_again.rs makes it",
    ),
    (
        "dispatch ping",
        "dispatch_config",
        "is shown for dispatch check; dispatch_ping.rs makes it",
    ),
    (
        "dispatch ping",
        "no_answer",
        "needs a program that never answers; dispatch_ping.rs makes it",
    ),
    (
        "dispatch replay",
        "body_forgotten",
        "needs a body that is kept no longer; dispatch_again.rs makes it",
    ),
    (
        "dispatch replay",
        "unreadable_delivery",
        "is shown for dispatch explain; dispatch_again.rs makes it",
    ),
    (
        "dispatch replay",
        "unreadable_file",
        "is shown for dispatch explain; dispatch_again.rs makes it",
    ),
    (
        "queue retry",
        "not_yet",
        "needs a job that would be parked again; queue_parked.rs makes it",
    ),
    (
        "end",
        "cannot_tell",
        "needs a process that cannot be checked; end_kill.rs makes it",
    ),
    (
        "end",
        "kept",
        "needs the background service of an agent; windowless.rs makes it",
    ),
    (
        "run",
        "cannot_tell",
        "is on the page of errors; run_limits.rs makes it",
    ),
    (
        "run",
        "internal",
        "a runner that is killed; run_storm.rs makes it",
    ),
    (
        "run",
        "survivors",
        "is on the page of errors; run_survivors.rs makes it",
    ),
    (
        "run",
        "unknown_conversation",
        "is on the page of errors; run_rows.rs makes it",
    ),
    (
        "run",
        "untrusted",
        "needs settings of Gemini CLI; run_agents.rs makes it",
    ),
    (
        "transcript show",
        "invalid",
        "fails once, after a stored path was changed; transcripts.rs makes it",
    ),
];

#[test]
#[ignore = "reads what the other tests saw; set TENURE_SEEN to one file for both"]
fn every_failure_that_a_test_sees_is_shown() {
    let file =
        std::env::var_os(VARIABLE).expect("TENURE_SEEN names the file that the other tests wrote");
    let seen = std::fs::read_to_string(file).expect("the other tests wrote it");
    let (commands, calls) = (commands(&env()), calls());
    let mut missing = BTreeSet::new();
    let mut pairs = BTreeSet::new();
    let mut elsewhere = Elsewhere::read();
    for line in seen.lines() {
        let mut columns = line.split('\t');
        let mut column = || {
            columns
                .next()
                .expect("a kind, a message and a command line")
        };
        let (kind, message, typed) = (column(), column(), column());
        let Some(words) = command_of(&commands, typed) else {
            continue;
        };
        let kind = if kind == AS_TEXT {
            match kind_by_words(&calls, message) {
                Some(kind) => kind,
                None => {
                    if elsewhere.lacks(message) {
                        missing.insert(format!("\"{message}\": tenure {typed}"));
                    }
                    continue;
                }
            }
        } else {
            kind
        };
        let name = words.join(" ");
        let is_shown = |kind: &str| {
            let mut shown = calls.iter().filter(|call| is_of(call, words));
            shown.any(|call| call.kind.as_deref() == Some(kind))
        };
        let is_excused = |kind: &str| {
            let mut all = UNSHOWN.iter();
            all.any(|(command, unshown, _)| *command == name && *unshown == kind)
        };
        pairs.insert((name.clone(), kind));
        if !SHARED.contains(&kind) && !is_excused(kind) && !is_shown(kind) {
            missing.insert(format!("{kind}: tenure {name} (such as tenure {typed})"));
        }
    }
    for (command, kind, _) in UNSHOWN {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let mut shown = calls.iter().filter(|call| is_of(call, &words));
        assert!(
            !shown.any(|call| call.kind.as_deref() == Some(*kind)),
            "a page shows {kind} of {command}: take it off UNSHOWN"
        );
    }
    elsewhere.write();
    let missing: Vec<String> = missing.into_iter().collect();
    assert!(
        pairs.len() > 100 && missing.is_empty(),
        "{} failures were seen; add these to a page in crates/cli/tests/e2e/messages, or list them in UNSHOWN with the \
         reason:\n{}",
        pairs.len(),
        missing.join("\n")
    );
}

/// The page of messages that other tests make, because they need more than a page can set up. `UPDATE=1` adds what is
/// missing there.
struct Elsewhere {
    messages: Vec<String>,
    updates: bool,
}

impl Elsewhere {
    fn file() -> PathBuf {
        folder().join("98-elsewhere.txt")
    }

    fn read() -> Self {
        let text = std::fs::read_to_string(Self::file()).unwrap_or_default();
        let messages = text
            .lines()
            .filter_map(|line| line.strip_prefix("! error: "));
        Self {
            messages: messages.map(str::to_owned).collect(),
            updates: std::env::var_os("UPDATE").is_some_and(|value| value == "1"),
        }
    }

    fn lacks(&mut self, message: &str) -> bool {
        let is_like = |known: &String| likeness(known, message) >= ALIKE;
        if self.messages.iter().any(is_like) {
            return false;
        }
        if self.updates {
            self.messages.push(stable(message));
        }
        !self.updates
    }

    fn write(mut self) {
        if self.updates {
            self.messages.sort();
            let lines = self.messages.iter().map(|one| format!("! error: {one}\n"));
            let text: String = lines.collect();
            let title = "## Messages that other tests make\n\n";
            std::fs::write(Self::file(), format!("{title}{text}")).expect("it can be written");
        }
    }
}

/// A message without what differs from run to run.
fn stable(message: &str) -> String {
    let mut text = String::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once("/tmp/tenure-") {
        text.push_str(before);
        text.push_str("/home/dev");
        rest = after.get(6..).unwrap_or_default();
    }
    text.push_str(rest);
    text
}

/// How much two messages have in common that count as one.
const ALIKE: f64 = 0.7;

/// The kind of the message on a page that is most like this one, if they count as one.
fn kind_by_words<'a>(calls: &'a [Call], message: &str) -> Option<&'a str> {
    let likenesses = calls.iter().filter_map(|call| {
        let likeness = likeness(call.message.as_deref()?, message);
        // The usage of a hook has no kind.
        Some((likeness, call.kind.as_deref().unwrap_or("usage")))
    });
    let best = likenesses.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let kind = if message.contains(" is not valid: ") {
        "malformed"
    } else {
        best.1
    };
    (best.0 >= ALIKE).then_some(kind)
}

/// How many words two messages have in common, in the same order, as a part of the longer one.
fn likeness(one: &str, other: &str) -> f64 {
    let (one, other) = (words_of(one), words_of(other));
    let mut before = vec![0_u32; other.len() + 1];
    for word in &one {
        let mut row = vec![0];
        for (at, candidate) in other.iter().enumerate() {
            let joined = before[at] + u32::from(candidate == word);
            row.push(joined.max(row[at]).max(before[at + 1]));
        }
        before = row;
    }
    let longer = u32::try_from(one.len().max(other.len())).unwrap_or(u32::MAX);
    f64::from(before[other.len()]) / f64::from(longer)
}

/// The words of a message; what differs from case to case is the same word.
fn words_of(message: &str) -> Vec<&str> {
    let is_name = |word: &str| {
        let mut letters = word.trim_end_matches([',', ';', '.']).chars();
        letters.any(|one| !one.is_alphabetic() && one != '\'')
    };
    let words = message.split(' ');
    words
        .map(|word| if is_name(word) { "NAME" } else { word })
        .collect()
}

/// The command that was typed: the longest whose words are there in this order, behind any flags.
fn command_of<'a>(commands: &'a [Vec<String>], typed: &str) -> Option<&'a Vec<String>> {
    let words: Vec<&str> = typed.split(' ').collect();
    let starts = |command: &&Vec<String>| {
        let first = words.iter().position(|word| *word == command[0]);
        let rest = first.map(|first| words[first..].iter().filter(|word| !word.starts_with('-')));
        rest.is_some_and(|mut rest| {
            command
                .iter()
                .all(|word| rest.next() == Some(&word.as_str()))
        })
    };
    let earliest = |command: &&Vec<String>| {
        let first = words.iter().position(|word| *word == command[0]);
        (std::cmp::Reverse(first), command.len())
    };
    commands.iter().filter(starts).max_by_key(earliest)
}
