//! Whether the pages show every failure that other tests see, for each command and sub-command.
//!
//! Which kinds a command can return follows from all the code below it, which no test can read. But the other tests make
//! nearly every failure there is. Run them with `TENURE_SEEN=FILE`, then this test with the same variable.
//!
//! A failure that was printed as text has the kind of the message on the pages that it has most words in common with.

use std::collections::BTreeSet;

use tenure_testkit::seen::{AS_TEXT, VARIABLE};

use super::complete::{Call, calls, is_of};
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
    "store_replaced",
    "store_too_new",
    "store_unavailable",
    "superseded",
    "unexpected",
    "usage",
];

/// Failures of one command that no page shows, with the reason.
const UNSHOWN: &[(&str, &str, &str)] = &[
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
                    missing.insert(format!("\"{message}\": tenure {typed}"));
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
    let missing: Vec<String> = missing.into_iter().collect();
    assert!(
        pairs.len() > 100 && missing.is_empty(),
        "{} failures were seen; add these to a page in crates/cli/tests/e2e/messages, or list them in UNSHOWN with the \
         reason:\n{}",
        pairs.len(),
        missing.join("\n")
    );
}

/// The kind of the message on a page that is most like this one; none if fewer than half of their words agree.
fn kind_by_words<'a>(calls: &'a [Call], message: &str) -> Option<&'a str> {
    let likenesses = calls.iter().filter_map(|call| {
        let likeness = likeness(call.message.as_deref()?, message);
        Some((likeness, call.kind.as_deref()?))
    });
    let best = likenesses.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (best.0 >= 0.5).then_some(best.1)
}

/// How many words two messages have in common, in the same order, as a part of the longer one.
fn likeness(one: &str, other: &str) -> f64 {
    let one: Vec<&str> = one.split(' ').collect();
    let other: Vec<&str> = other.split(' ').collect();
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
