//! Whether every message is on a page: each command with its help, a success and every way in which it fails, and
//! every kind of error, notice and event.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tenure_core::event::EventKind;
use tenure_core::notice::NoticeKind;

use super::page::{folder, words as words_of};
use super::said::{Line, said};
use crate::env;
use crate::support::output::commands;

/// Exit codes that no page shows for a command, with the reason.
const UNSHOWN: &[(&str, u8, &str)] = &[
    (
        "release",
        9,
        "needs a sandbox that hides the process of the holder",
    ),
    ("adopt", 9, "needs a /proc that hides the process"),
    ("install", 7, "waits a minute for another install"),
    ("uninstall", 7, "waits a minute for another uninstall"),
    (
        "dispatch",
        7,
        "needs a program that accepts a connection and never answers; dispatch_ping.rs makes it",
    ),
];

/// Codes that every command ends with for the same reasons; the pages of usage, names and the store show them.
const COMMON: &[u8] = &[0, 2, 6, 8, 70];

/// Kinds of error that no page shows, with the reason. Those of the service are on the page of errors.
const UNMADE: &[(&str, &str)] = &[
    (
        "hook_timed_out",
        "is told to the agent, never printed as an error; hook_watchdog.rs makes it",
    ),
    (
        "clone",
        "is why a job waits, which queue explain shows; dispatch_code.rs makes it",
    ),
    (
        "fetch",
        "is why a job waits, which queue explain shows; dispatch_code.rs makes it",
    ),
    (
        "no_server_program",
        "needs an installation without its second program; two_programs.rs makes it",
    ),
    (
        "no_answer",
        "needs a program that never answers; dispatch_ping.rs makes it",
    ),
    (
        "still_running",
        "needs a dispatcher or an agent that does not end",
    ),
    ("unexpected", "a panic"),
];

/// Whether the pages are being written by other tests of this run; then nothing about them is known.
fn being_written() -> bool {
    std::env::var_os("UPDATE").is_some_and(|value| value == "1")
}

pub(super) struct Call {
    words: Vec<String>,
    pub(super) code: u8,
    pub(super) kind: Option<String>,
    /// What it says, line by line.
    pub(super) said: Vec<Line>,
}

/// All pages, by their names.
fn pages() -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder()).expect("there are pages");
    let pages = entries.map(|entry| {
        let path = entry.expect("it can be read").path();
        let text = std::fs::read_to_string(&path).expect("it is text");
        let name = path.file_name().expect("a name");
        (name.to_string_lossy().into_owned(), text)
    });
    pages.collect()
}

/// The page of failures that other tests make. What it shows counts for no command: it does not show their kinds.
pub(super) const ELSEWHERE: &str = "98-elsewhere.txt";

/// The commands of all pages but that of other tests, with how each ended.
pub(super) fn calls() -> Vec<Call> {
    let mut calls = entries();
    calls.retain(|call| !call.words.is_empty());
    calls
}

/// The same with errors that are shown without a command.
pub(super) fn entries() -> Vec<Call> {
    let mut pages = pages();
    pages.remove(ELSEWHERE);
    pages.values().flat_map(|page| entries_of(page)).collect()
}

/// What a page shows: commands, with what each said and how it ended.
pub(super) fn entries_of(page: &str) -> Vec<Call> {
    let mut entries = Vec::new();
    let (mut typed, mut stdout, mut stderr) = (String::new(), String::new(), String::new());
    for line in page.lines() {
        if let Some(line) = line.strip_prefix("$ ") {
            (typed, stdout, stderr) = (line.to_owned(), String::new(), String::new());
        } else if let Some(line) = line.strip_prefix("! ") {
            stderr.push_str(&format!("{line}\n"));
        } else if let Some(call) = line.strip_prefix("exit ").and_then(ended) {
            let words = typed.split(' ').skip_while(|word| *word != "tenure");
            let behind = words_of(&typed)
                .into_iter()
                .skip_while(|word| word != "tenure");
            let behind: Vec<String> = behind.skip(1).collect();
            entries.push(Call {
                words: words.skip(1).map(str::to_owned).collect(),
                said: said(&behind, &stdout, &stderr, call.0.into()),
                code: call.0,
                kind: call.1,
            });
            (typed, stdout, stderr) = Default::default();
        } else {
            stdout.push_str(&format!("{line}\n"));
        }
    }
    entries
}

/// The exit code and the kind behind `exit`.
fn ended(text: &str) -> Option<(u8, Option<String>)> {
    let (code, kind) = match text.split_once(" (") {
        Some((code, kind)) => (code, kind.strip_suffix(')').map(str::to_owned)),
        None => (text, None),
    };
    Some((code.parse().ok()?, kind))
}

pub(super) fn is_of(call: &Call, words: &[String]) -> bool {
    let mut typed = call.words.iter().filter(|word| !word.starts_with('-'));
    words.iter().all(|word| typed.next() == Some(word))
}

#[test]
fn every_command_is_shown_with_its_help_and_a_success() {
    if being_written() {
        return;
    }
    let calls = calls();
    let mut missing = Vec::new();
    for words in commands(&env()) {
        let name = words.join(" ");
        let asks_help = |call: &Call| call.words.iter().any(|word| word == "--help");
        if !calls
            .iter()
            .any(|call| is_of(call, &words) && asks_help(call))
        {
            missing.push(format!("tenure {name} --help"));
        }
        let has_own = commands_below(&words, &calls);
        let works = |call: &Call| is_of(call, &words) && call.code == 0 && !asks_help(call);
        if !has_own && !calls.iter().any(works) {
            missing.push(format!("tenure {name}: a call that succeeds"));
        }
    }
    assert!(
        missing.is_empty(),
        "add these to a page in crates/cli/tests/e2e/messages:\n{}",
        missing.join("\n")
    );
}

/// Whether a command has commands of its own, which are shown instead.
fn commands_below(words: &[String], calls: &[Call]) -> bool {
    ["mission", "meta", "transcript"].contains(&words.join(" ").as_str())
        && calls.iter().any(|call| is_of(call, words))
}

/// The codes that the manual page of a command lists.
fn listed(env: &tenure_testkit::Env, command: &str) -> Vec<u8> {
    let page = env.tenure(&["man", command]).ok().stdout;
    let status = page.split("EXIT STATUS").nth(1).expect("a list of codes");
    let status = status.split(".SH").next().unwrap_or_default();
    let codes = status.lines().filter_map(|line| {
        let code = line.strip_prefix("\\fB")?.strip_suffix("\\fR")?;
        code.parse().ok()
    });
    codes.collect()
}

#[test]
fn every_way_to_fail_is_shown() {
    if being_written() {
        return;
    }
    let env = env();
    let calls = calls();
    let mut missing = Vec::new();
    for words in commands(&env).iter().filter(|words| words.len() == 1) {
        let command = words[0].as_str();
        for code in listed(&env, command) {
            let is_excused = UNSHOWN
                .iter()
                .any(|(name, unshown, _)| *name == command && *unshown == code);
            let is_shown = calls
                .iter()
                .any(|call| is_of(call, words) && call.code == code);
            assert!(
                !(is_excused && is_shown),
                "{command} is shown with exit {code}: take it off UNSHOWN"
            );
            if !COMMON.contains(&code) && !is_excused && !is_shown {
                missing.push(format!("tenure {command}: exit {code}"));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "show these on a page in crates/cli/tests/e2e/messages, or list them in UNSHOWN with the reason. If the \
         command never ends so, its codes in crates/cli/src/verbs/man/exits.rs are wrong:\n{}",
        missing.join("\n")
    );
}

/// The line that shows how a command is called, of each command on the page of help.
fn usages() -> Vec<(Vec<String>, String)> {
    let help = pages().remove("01-help.txt").expect("the page of help");
    let mut usages = Vec::new();
    for block in help.split("\n$ tenure ").skip(1) {
        let asked = block.lines().next().unwrap_or_default();
        let usage = block.lines().find(|line| line.starts_with("Usage: "));
        if let (Some(name), Some(usage)) = (asked.strip_suffix(" --help"), usage) {
            let words = name.split(' ').map(str::to_owned).collect();
            usages.push((words, usage.to_owned()));
        }
    }
    usages
}

/// Sub-commands too: what takes an item or a session is shown with one that does not exist.
#[test]
fn every_name_that_a_command_takes_is_shown_wrong() {
    if being_written() {
        return;
    }
    let taken = [
        ("malformed", ["<KEY>", "[KEY", "<ITEM>"]),
        ("no_such_session", ["<SESSION>", "[SESSION]", "|SESSION]"]),
    ];
    let (calls, usages) = (calls(), usages());
    let mut missing = Vec::new();
    for (words, usage) in &usages {
        for (kind, names) in &taken {
            let takes_it = names.iter().any(|name| usage.contains(name));
            let is_shown = |call: &Call| is_of(call, words) && call.kind.as_deref() == Some(kind);
            if takes_it && !calls.iter().any(is_shown) {
                missing.push(format!("tenure {}: {kind}", words.join(" ")));
            }
        }
    }
    assert!(
        usages.len() > 40 && missing.is_empty(),
        "add these to `names` in crates/cli/tests/e2e/messages/claims.rs:\n{}",
        missing.join("\n")
    );
}

/// The manual page of a command lists every code that a page shows for it.
#[test]
fn every_code_that_is_shown_is_listed() {
    if being_written() {
        return;
    }
    let env = env();
    let calls = calls();
    let mut unlisted = BTreeSet::new();
    for words in commands(&env).iter().filter(|words| words.len() == 1) {
        let codes = listed(&env, &words[0]);
        // A failure of ours has a kind; a code that the caller chose, a signal's, or that of a tenure inside is in no
        // list.
        let own = |call: &&Call| {
            let not_ours = |word: &String| word == "--conflict-exit" || word == "tenure";
            let foreign = call.words.iter().any(not_ours);
            is_of(call, words) && call.kind.is_some() && !foreign && call.code < 128
        };
        let shown = calls.iter().filter(own).map(|call| call.code);
        let strange = shown.filter(|code| !codes.contains(code));
        unlisted.extend(strange.map(|code| format!("{}: exit {code}", words[0])));
    }
    assert!(
        unlisted.is_empty(),
        "add these to crates/cli/src/verbs/man/exits.rs:\n{}",
        Vec::from_iter(unlisted).join("\n")
    );
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    files
}

/// The kinds that the command line and the app give to errors of their own.
fn own_kinds() -> BTreeSet<String> {
    let mut kinds = BTreeSet::new();
    for part in ["cli/src", "app/src"] {
        for file in sources(&crates().join(part)) {
            let text = std::fs::read_to_string(&file).expect("it is text");
            for start in ["Problem::new(", "CliError::new("] {
                for after in text.split(start).skip(1) {
                    kinds.extend(second_argument(after));
                }
            }
        }
    }
    kinds
}

/// The text behind the first comma, if it is one.
fn second_argument(after: &str) -> Option<String> {
    let (_, rest) = after.split_once(',')?;
    let quoted = rest.trim_start().strip_prefix('"')?;
    Some(quoted.split('"').next()?.to_owned())
}

/// The kinds that the service gives to its errors.
fn service_kinds() -> BTreeSet<String> {
    kinds_in("service/src/error/mod.rs")
}

/// The kinds that a file gives to its errors.
fn kinds_in(file: &str) -> BTreeSet<String> {
    let file = crates().join(file);
    let text = std::fs::read_to_string(file).expect("it is text");
    let body = text.split("fn kind(&self)").nth(1).expect("it has kinds");
    let body = body.split("\n    }\n").next().unwrap_or_default();
    let kinds = body.split("=> \"").skip(1);
    kinds
        .filter_map(|rest| Some(rest.split('"').next()?.to_owned()))
        .collect()
}

#[test]
fn every_kind_of_error_is_shown() {
    if being_written() {
        return;
    }
    let shown: BTreeSet<String> = calls().into_iter().filter_map(|call| call.kind).collect();
    let values = pages().remove("99-errors.txt").expect("the page of errors");
    let of_value = |kind: &String| values.contains(&format!("({kind})\n"));
    let is_unmade = |kind: &String| UNMADE.iter().any(|(unmade, _)| unmade == kind);
    let own = own_kinds();
    let missing: Vec<&String> = own
        .iter()
        .filter(|kind| !shown.contains(*kind) && !is_unmade(kind) && !of_value(kind))
        .collect();
    assert!(
        own.len() > 15 && missing.is_empty(),
        "no page shows {missing:?}"
    );
    let stale: Vec<_> = UNMADE
        .iter()
        .filter(|(kind, _)| shown.contains(*kind) || !own.contains(*kind))
        .collect();
    assert!(stale.is_empty(), "take these off UNMADE: {stale:?}");
    for (file, least) in [("run/error.rs", 10), ("queue/error.rs", 5)] {
        let kinds = kinds_in(&format!("service/src/{file}"));
        let is_shown = |kind: &&String| shown.contains(*kind) || of_value(kind);
        let missing: Vec<&String> = kinds.iter().filter(|kind| !is_shown(kind)).collect();
        assert!(
            kinds.len() > least && missing.is_empty(),
            "no page shows {missing:?}; make one of each in crates/cli/src/error_samples.rs"
        );
    }
    let service = service_kinds();
    let missing: Vec<&String> = service.iter().filter(|kind| !of_value(kind)).collect();
    assert!(
        service.len() > 30 && missing.is_empty(),
        "make one of each in crates/cli/src/error_samples.rs: {missing:?}"
    );
}

#[test]
fn every_kind_of_event_and_notice_is_shown() {
    if being_written() {
        return;
    }
    let text: String = pages().into_values().collect();
    let missing: Vec<&&str> = EventKind::NAMES
        .iter()
        .filter(|kind| !text.contains(&format!("  {kind} ")))
        .collect();
    assert!(missing.is_empty(), "no page shows events of {missing:?}");
    let missing: Vec<&&str> = NoticeKind::NAMES
        .iter()
        .filter(|kind| !text.contains(&format!("tenure notice ({kind}): ")))
        .collect();
    assert!(missing.is_empty(), "no page shows notices of {missing:?}");
}
