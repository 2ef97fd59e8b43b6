//! What only a race or another machine brings about, and what agents are told and judged by.

use std::io;
use std::path::Path;

use tenure_app::keeper::status_at;
use tenure_core::id::{Epoch, HostId, JobId, KeeperId, Malformed, NativeId, RunId, SessionId};
use tenure_core::keeper::Unanswered;
use tenure_core::key::Key;
use tenure_core::mission::change::Change;
use tenure_core::notice::{Notice, Pending};
use tenure_core::process::{Ancestor, BootId, Looks, Process, StartTicks};
use tenure_core::program::{Found, Program};
use tenure_core::run::end::{Ending, Exit, Start, judge};
use tenure_core::run::failure::{ErrorClass, Failure};
use tenure_core::run::line::{Final, RunLine};
use tenure_core::run::prompt::compose;
use tenure_core::run::seen::{LOOP_AFTER, Seen, Totals};
use tenure_core::session::{ClosedBy, check_meta_value};
use tenure_core::time::Timestamp;
use tenure_host::append::{AppendError, Followed};
use tenure_host::host_id::HostIdError;
use tenure_host::kernel_lock::LockError;
use tenure_host::process::IdentifyError;
use tenure_host::settings_file::SettingsError;
use tenure_host::shared_fs::SharedFs;
use tenure_host::state_dir::StateDirError;
use tenure_host::unseen::Unseen;
use tenure_service::Advice;
use tenure_service::error::Error;

use crate::error_samples::shown;
use crate::hooks_setup::plan::unusable;
use crate::message_page::compare;
use crate::output::CliError;
use crate::verbs::hook::brief::context;
use crate::verbs::lock::lock_error;

/// 2026-11-16 08:00 UTC.
const NOW: Timestamp = Timestamp(1_794_816_000_000);

#[test]
fn every_rare_text_is_on_its_page() {
    let mut page = String::new();
    let mut add = |title: &str, lines: Vec<String>| {
        page += &format!("## {title}\n\n{}\n\n\n", lines.join("\n").trim_end());
    };
    add("A value that is not valid", invalid());
    add("A state directory that cannot be used", directories());
    add("A keeper for a store that is not a server", no_server());
    add("A process that cannot be recorded", processes());
    add("A lock of this process", locks());
    add("Settings that another program changed", settings());
    add("An append that was cut short", vec![torn().to_string()]);
    add("Why a hook names no process", programs());
    add("How a run ended", ends());
    let item = Key::parse("issue:acme/web#6").expect("a key");
    let prompt = compose(&item, "Fix it.");
    add("What an agent is asked", vec![prompt]);
    add("What a model is told late", notices());
    let keeper = Unanswered::NoRenewal.to_string();
    add("A keeper that has just begun", vec![keeper]);
    let past = [ClosedBy::End, ClosedBy::Death, ClosedBy::Moved];
    let past = past.iter().map(|by| by.as_verb().to_owned());
    add("A session that is over", past.collect());
    compare("99-rare-texts", &(page.trim_end().to_owned() + "\n"));
}

fn invalid() -> Vec<String> {
    let long = "x".repeat(9_000);
    let refused: Vec<Malformed> = [
        check_meta_value("a\0b").err(),
        check_meta_value(&long).err(),
        Change::named("joined_at", "now").err(),
        Change::named("colour", "red").err(),
        NativeId::parse(&long).err(),
        RunId::parse("r-1").err(),
        JobId::parse("j-1").err(),
        KeeperId::parse("k-1").err(),
        "yesterday".parse::<Timestamp>().err(),
    ]
    .into_iter()
    .flatten()
    .collect();
    assert_eq!(refused.len(), 9);
    let shown = |why| {
        let shown = shown(&CliError::from(Error::Malformed(why)));
        format!("{}\n", shown.trim_end())
    };
    refused.into_iter().map(shown).collect()
}

fn directories() -> Vec<String> {
    let path = || "/home/dev/.tenure".into();
    let shared = SharedFs::all().map(|kind| StateDirError::SharedFileSystem { path: path(), kind });
    let removed = HostIdError::Removed {
        path: "/home/dev/.tenure/host-id".into(),
    };
    let all = shared.chain([StateDirError::HostId(removed)]);
    let mut lines: Vec<String> = Vec::new();
    for error in all {
        let hint = format!("! hint: {}", error.hint());
        // One hint below all that have it.
        if lines.last() == Some(&hint) {
            lines.pop();
        }
        lines.extend([format!("! error: {error}"), hint]);
    }
    lines
}

fn no_server() -> Vec<String> {
    let refused = status_at("mysql://db.example/work", Path::new("/home/dev/.tenure"));
    refused
        .err()
        .map(|why| shown(&CliError::from(why)))
        .into_iter()
        .collect()
}

fn processes() -> Vec<String> {
    let pid = 4711;
    let errors = [
        IdentifyError::Exited { pid },
        IdentifyError::Unreadable {
            pid,
            why: "permission denied".into(),
        },
    ];
    let why = || io::Error::from(io::ErrorKind::PermissionDenied);
    let unseen = [
        Unseen::ForeignProc,
        Unseen::Unlisted(why()),
        Unseen::Unreadable {
            pid,
            why: why().to_string(),
        },
        Unseen::Replaced { pid },
        Unseen::NoAnswer {
            pidfd: io::ErrorKind::Unsupported.into(),
            kill: why(),
        },
    ];
    let errors = errors.iter().map(ToString::to_string);
    errors
        .chain(unseen.iter().map(ToString::to_string))
        .collect()
}

fn locks() -> Vec<String> {
    let held = LockError::HeldHere {
        name: "build".into(),
        place: "crates/cli/src/verbs/lock.rs:120:9".into(),
    };
    vec![shown(&lock_error(held))]
}

fn settings() -> Vec<String> {
    let path = "/home/dev/.claude/settings.json".into();
    vec![shown(&unusable(SettingsError::Changed { path }))]
}

fn torn() -> AppendError {
    AppendError::Torn {
        path: "/home/dev/.claude/projects/web/7f3c.jsonl".into(),
        offset: 4096,
        written: 100,
        length: 300,
        resumable: false,
        why: io::Error::other(Followed),
    }
}

fn programs() -> Vec<String> {
    let above = |pid: u32, exe: &str, argv: &[&str], forked: bool| Ancestor {
        process: Process {
            host: HostId::new("build-3"),
            boot: BootId {
                id: "b".into(),
                private: false,
            },
            pid_ns: 1,
            pid,
            start: StartTicks {
                ticks: 1,
                shifted: false,
            },
        },
        looks: Looks {
            exe: exe.into(),
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            comm: String::new(),
        },
        leads_terminal: false,
        forked,
    };
    let hook = ["sh", "-c", "tenure hook generic"];
    let chains = [
        vec![
            above(4711, "/bin/sh", &hook, true),
            above(4700, "/sbin/other", &["other"], false),
        ],
        vec![
            above(4711, "/bin/sh", &hook, false),
            above(4700, "/bin/sh", &hook, false),
        ],
        vec![above(4711, "/usr/bin/timeout", &["timeout", "9"], false)],
        vec![above(
            4711,
            "/bin/sh",
            &["sh", "-c", "make; tenure hook generic"],
            false,
        )],
        vec![above(4711, "/bin/sh", &["sh"], false)],
        vec![above(4711, "", &[], false)],
        vec![],
    ];
    let why = |above: Vec<Ancestor>| match (Program { above, pid: None }).find(|_| false) {
        Found::Unclear(why) => why,
        Found::Process(found) => format!("it is pid {}", found.process.pid),
    };
    chains.into_iter().map(why).collect()
}

fn ends() -> Vec<String> {
    let end = |lines: Vec<RunLine>, exit: Exit| {
        let mut seen = Seen::new(Totals::NOTHING);
        for line in lines {
            seen.feed(line, NOW);
        }
        let end = judge(&Ending {
            seen: &seen,
            exit,
            stop: None,
            stderr: None,
            start: Start::Fresh,
            parked_before: 0,
            now: NOW,
        });
        let why = end.error.map(|error| error.text).unwrap_or_default();
        format!("{}: {why}", end.outcome.as_str())
    };
    let idle = RunLine::StepEnded {
        finished: false,
        used_tokens: false,
    };
    let loops = usize::try_from(LOOP_AFTER).expect("a small number");
    let limit = RunLine::Limit { resets_at: None };
    let failed = Failure::new(ErrorClass::Other, "the provider answered 500");
    vec![
        end(vec![idle; loops], Exit::Signal(15)),
        end(vec![RunLine::TurnBegan, limit], Exit::Code(1)),
        end(vec![RunLine::Final(Final::success(None))], Exit::Code(0)),
        end(vec![], Exit::Code(0)),
        end(vec![], Exit::Code(3)),
        end(vec![RunLine::Final(Final::failed(failed))], Exit::Code(1)),
    ]
}

fn notices() -> Vec<String> {
    let session = SessionId::mint(0, [1; 10]);
    let late = Notice::of_late_grant(session, "issue:acme/web#6", Epoch(3), NOW);
    let pending = Pending {
        first: vec![late],
        more: 0,
    };
    let told = context(None, &pending, &Advice::default());
    told.lines.into_iter().map(|line| line.text).collect()
}
