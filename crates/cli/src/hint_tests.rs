//! Every hint can be typed: its verb exists, and its arguments are that verb's.

use std::path::Path;
use std::time::Duration;

use clap::CommandFactory;
use tenure_core::hint::Hint;
use tenure_core::id::{AgentName, Epoch, Malformed, SessionId};
use tenure_core::key::Key;
use tenure_core::liveness::Doubt;
use tenure_core::mission::StoredParticipant;
use tenure_core::mission::check::{Against, Fault, participant};
use tenure_core::mission::pointer::{Membership, Pointer, Scope, judge};
use tenure_core::process::Survivor;
use tenure_core::store::StoreError;
use tenure_core::time::Timestamp;
use tenure_service::error::{Error, NoSessionWhy};
use tenure_service::view::ClaimView;

use crate::cli::{Cli, can_be_typed};
use crate::output::command_line;

/// How long a source file may be.
const LONGEST: u64 = 1 << 20;

#[test]
fn the_hints_of_every_error_can_be_typed() {
    for error in errors() {
        let hints = error.hints();
        assert!(!hints.is_empty(), "{error:?}");
        for hint in hints {
            check(&hint);
        }
    }
}

fn check(hint: &Hint) {
    let said = command_line(hint);
    let Some(verb) = hint.verb else {
        let words: Vec<&str> = said.split([' ', '`']).collect();
        let is_verb = |word: &str| Cli::command().find_subcommand(word).is_some();
        let names_one = |pair: &[&str]| pair[0] == "tenure" && is_verb(pair[1]);
        assert!(
            !words.windows(2).any(names_one),
            "a command in a step: {said}"
        );
        return;
    };
    assert!(said.starts_with(&format!("run `tenure {verb}")), "{said}");
    // A number is filled in; any other word in capitals is text and stands for itself.
    let filled = hint.args.iter().map(|word| match word.as_str() {
        "PID" => "1",
        other => other,
    });
    let words: Vec<&str> = std::iter::once(verb).chain(filled).collect();
    let parsed = can_be_typed(&words);
    assert!(parsed.is_ok(), "{said}: {}", parsed.expect_err("refused"));
}

#[test]
fn every_hint_in_the_sources_names_a_verb_that_exists() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let grammar = Cli::command();
    let mut found = 0;
    for file in sources(&crates) {
        let text = tenure_host::read::whole(&file, LONGEST).expect("a source file");
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

fn faults() -> Vec<Fault> {
    let session = SessionId::mint(0, [1; 10]);
    let row = StoredParticipant {
        mission: "041-login".into(),
        session,
        participant: String::new(),
        role: "developer".into(),
        joined_at: Timestamp(0),
        active_at: Timestamp(0),
        drive: "active".into(),
        focus: None,
        revision: 1,
    };
    let against = Against {
        roles: &[],
        mission_is_known: true,
        handle: "claude-k7qd",
    };
    let mut found = participant(&row, against).expect_err("it has no participant");
    let scopes = [
        Scope::Session(session),
        Scope::Repo("acme/web".into()),
        Scope::User("1000".into()),
    ];
    for scope in scopes {
        let pointer = Pointer {
            scope,
            mission: "041-login".into(),
            at: Timestamp(0),
        };
        found.extend(judge(&pointer, Membership::NotJoined).err());
    }
    found
}

/// One of each.
fn errors() -> Vec<Error> {
    let key = || Key::parse("issue:acme/web#42").expect("a key");
    let handle = || "claude-k7qd".to_owned();
    let claim = || {
        Box::new(ClaimView::new(
            &tenure_core::claim::ClaimRecord::unknown(key()),
            None,
        ))
    };
    let hint = || Hint::verb("ps", "for details");
    let store = || "/s/tenure.db".to_owned();
    let nobody = [
        NoSessionWhy::NotInside,
        NoSessionWhy::UnregisteredAgent {
            agent: "claude".into(),
            pid: 7,
        },
        NoSessionWhy::EndedHere {
            handle: handle(),
            agent: AgentName::known("claude"),
        },
        NoSessionWhy::BrokenWalk("why".into()),
        NoSessionWhy::Variable("why".into()),
    ];
    let stores = [
        StoreError::Conflict,
        StoreError::Busy { store: store() },
        StoreError::Full { store: store() },
        StoreError::Unavailable {
            store: store(),
            why: "why".into(),
        },
        StoreError::Damaged {
            store: store(),
            why: "why".into(),
        },
        StoreError::LogLost {
            store: store(),
            log: "/s/tenure.db-wal".into(),
            how: "how".into(),
        },
        StoreError::Replaced { store: store() },
        StoreError::TooNew {
            store: store(),
            found: 2,
            known: 1,
            needs: "2.0".into(),
        },
    ];
    let malformed = ["key", "drive", "participant id", "something else"];
    let mut all: Vec<Error> = nobody.map(|why| Error::NoSession { why }).into();
    all.extend(stores.map(Error::Store));
    all.extend(malformed.map(|what| Error::Malformed(Malformed::new(what, "x", "why"))));
    all.extend([
        Error::Usage {
            what: "what".into(),
            hint: hint(),
        },
        Error::NotFound {
            what: "what".into(),
            hint: hint(),
        },
        Error::Invalid {
            what: "what".into(),
            hint: hint(),
        },
        Error::NoSuchSession { name: handle() },
        Error::Ambiguous {
            what: "what".into(),
            candidates: vec![handle()],
        },
        Error::Superseded {
            handle: handle(),
            life: 1,
        },
        Error::ReasonNeeded { handle: handle() },
        Error::OwnSessionOnly {
            handle: handle(),
            what: "renew its lease",
        },
        Error::PersonOnly {
            what: "kill a session's process",
        },
        Error::NotLive {
            handle: handle(),
            state: "has ended".into(),
        },
        Error::StillRunning {
            handle: handle(),
            pid: 7,
        },
        Error::CannotTell {
            handle: handle(),
            doubt: Doubt::Unverified,
            key: Some(key()),
        },
        Error::Held {
            key: key(),
            claim: claim(),
        },
        Error::Overlaps {
            key: key(),
            claim: claim(),
        },
        Error::LeftRunning {
            key: key(),
            handle: handle(),
            survivors: vec![Survivor {
                pid: 7,
                command: "make".into(),
            }],
        },
        Error::MaybeLeftRunning {
            key: key(),
            handle: handle(),
            why: "why".into(),
        },
        Error::NoneFree {
            count: 2,
            first: Box::new(Error::Free { key: key() }),
        },
        Error::TimedOut {
            waited: Duration::ZERO,
            why: Box::new(Error::Free { key: key() }),
        },
        Error::Suspect {
            key: key(),
            claim: claim(),
            left: Duration::ZERO,
        },
        Error::Done {
            key: key(),
            claim: claim(),
        },
        Error::AlreadyHeld {
            key: key(),
            epoch: Epoch(1),
        },
        Error::Free { key: key() },
        Error::Lost {
            key: key(),
            epoch: Epoch(1),
            claim: claim(),
        },
        Error::LostBefore { claims: Vec::new() },
        Error::NoSuchEpoch {
            key: key(),
            now: Epoch(1),
            named: Epoch(2),
        },
        Error::Faulty {
            what: "what".into(),
            faults: faults(),
        },
        Error::NoMission {
            what: "what".into(),
            passed_over: faults(),
        },
        Error::Collision {
            mission: "041-login".into(),
            focus: "wp:WP01".into(),
            drivers: vec![handle()],
        },
    ]);
    all
}
