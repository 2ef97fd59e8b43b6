//! Whether the pages show every message that other tests see, and every kind of failure for each command and sub-command.
//!
//! What a command can print follows from all the code below it, which no test can read. But the other tests make nearly
//! every message there is. Run them with `TENURE_SEEN=FILE`, then this test with the same variable.
//!
//! A failure that was printed as text has the kind of the same message on a page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use tenure_testkit::seen::{Seen, VARIABLE};

use super::complete::{calls, entries, is_of};
use super::elsewhere::Elsewhere;
use super::said::{kind, said};
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
    "store_outcome_unknown",
    "store_replaced",
    "store_too_new",
    "store_unavailable",
    "store_unfinished",
    "store_unmigrated",
    "superseded",
    "unexpected",
    "usage",
];

/// Failures of one command that no page shows, with the reason.
const UNSHOWN: &[(&str, &str, &str)] = &[
    (
        "claim",
        "none_free",
        "needs many items that are all held; pooled.rs makes it",
    ),
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
        "end",
        "not_owner",
        "needs two people on a server; keeper/roles.rs makes it",
    ),
    (
        "handoff",
        "not_owner",
        "needs two people on a server; keeper/roles.rs makes it",
    ),
    (
        "release",
        "not_owner",
        "needs two people on a server; keeper/roles.rs makes it",
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
        "run",
        "cannot_tell",
        "is on the page of errors; run_limits.rs makes it",
    ),
    (
        "run",
        "survivors_unknown",
        "is on the page of errors; run_unfinished.rs makes it",
    ),
    (
        "store migrate",
        "store_in_use",
        "is on the page of errors; keeper/one.rs makes it",
    ),
    (
        "transcript append",
        "nested",
        "is shown for lock; transcript_append.rs makes it",
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
        "transcript show",
        "invalid",
        "fails once, after a stored path was changed; transcripts.rs makes it",
    ),
];

#[test]
#[ignore = "reads what the other tests saw; set TENURE_SEEN to one file for both"]
fn every_message_that_a_test_sees_is_shown() {
    let file = std::env::var_os(VARIABLE).map(PathBuf::from);
    let file = file.expect("TENURE_SEEN names the file that the other tests wrote");
    let (commands, calls, kinds) = (commands(&env()), calls(), kinds());
    let mut missing = BTreeSet::new();
    let mut pairs = BTreeSet::new();
    let mut seen = Seen::read(&file);
    let mut elsewhere = Elsewhere::read(&seen);
    // Text is what people read: JSON is shown only for what no test prints as text. Short commands are easy to read.
    seen.sort_by_key(|seen| {
        let is_json = kind(&seen.stdout, &seen.stderr).is_some();
        (is_json, seen.typed().len())
    });
    for seen in &seen {
        let typed = &seen.typed();
        let Some(words) = command_of(&commands, typed) else {
            continue;
        };
        for line in elsewhere.lacks(seen) {
            missing.insert(format!("{line}, exit {}: tenure {typed}", seen.code));
        }
        let Some(kind) = kind_of(seen, &kinds) else {
            continue;
        };
        let kind = kind.as_str();
        let name = words.join(" ");
        let is_shown = |kind: &str| {
            let mut shown = calls.iter().filter(|call| is_of(call, words));
            shown.any(|call| call.kind.as_deref() == Some(kind))
        };
        let is_excused = |kind: &str| {
            let mut all = UNSHOWN.iter();
            all.any(|(command, unshown, _)| *command == name && *unshown == kind)
        };
        pairs.insert((name.clone(), kind.to_owned()));
        if !SHARED.contains(&kind) && !is_excused(kind) && !is_shown(kind) {
            missing.insert(format!("{kind}: tenure {name} (such as tenure {typed})"));
        }
    }
    let is_on_a_page = |(command, kind, _): &&(&str, &str, &str)| {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let mut shown = calls.iter().filter(|call| is_of(call, &words));
        shown.any(|call| call.kind.as_deref() == Some(*kind))
    };
    let stale: Vec<_> = UNSHOWN.iter().filter(is_on_a_page).collect();
    assert!(stale.is_empty(), "take these off UNSHOWN: {stale:?}");
    elsewhere.write();
    let missing: Vec<String> = missing.into_iter().collect();
    assert!(
        !pairs.is_empty() && missing.is_empty(),
        "{} kinds of failures were seen; add these to a page in crates/cli/tests/e2e/messages, or list a kind in UNSHOWN \
         with the reason:\n{}",
        pairs.len(),
        missing.join("\n")
    );
}

/// The kind of each error on the pages, by its form.
fn kinds() -> BTreeMap<String, String> {
    let mut kinds = BTreeMap::new();
    for call in entries() {
        let first = call
            .said
            .into_iter()
            .find(|line| line.text.starts_with("error: "));
        if let (Some(error), Some(kind)) = (first, call.kind) {
            kinds.insert(error.form, kind);
        }
    }
    kinds
}

/// The kind of a failure, from its JSON or by its message.
fn kind_of(seen: &Seen, kinds: &BTreeMap<String, String>) -> Option<String> {
    let known = || {
        let said = said(&seen.args, &seen.stdout, &seen.stderr, seen.code);
        said.iter().find_map(|line| kinds.get(&line.form).cloned())
    };
    kind(&seen.stdout, &seen.stderr).or_else(known)
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
