//! What a model and its person are told about a write that conflicts, and whether a process is alive.

use std::time::Duration;

use tenure_core::liveness::{Doubt, Proof};
use tenure_core::session::Doing;
use tenure_core::write_conflict::{Finding, Mode, Neighbour, Way};

use crate::message_page::compare;

#[test]
fn every_conflict_is_on_its_page() {
    let mut page = String::new();
    for (title, finding) in findings() {
        page += &format!("## {title}\n\n");
        page += &format!("person: {}\n", finding.headline("/home/dev/web"));
        if !finding.blocks(Mode::Warn) {
            page += &format!("warned: {}\n", finding.sentence(false));
        }
        if finding.blocks(Mode::Block) {
            page += &format!("blocked: {}\n", finding.sentence(true));
        }
        page += &format!("log: {}\n\n\n", finding.evidence());
    }
    compare("44-write-conflicts", &(page.trim_end().to_owned() + "\n"));
}

fn findings() -> Vec<(&'static str, Finding)> {
    let second = |doing, way| Finding::SecondWriter {
        path: "/home/dev/web/src/a.rs".into(),
        handle: "codex-m3x9".into(),
        dir: "/home/dev/web".into(),
        ago: Duration::from_secs(90),
        doing,
        way,
    };
    let moved = |others: &[(&str, Option<Doing>)]| Finding::TreeMoved {
        command: "git stash".into(),
        root: "/home/dev/web".into(),
        others: others
            .iter()
            .map(|(handle, doing)| Neighbour {
                handle: (*handle).into(),
                doing: *doing,
            })
            .collect(),
        own_tree: "../web-2".into(),
    };
    let key = || Way::Claim("path:acme/web:src/a.rs".into());
    vec![
        (
            "Another session wrote the file",
            second(Some(Doing::Busy), key()),
        ),
        (
            "It waits for a person",
            second(Some(Doing::Waiting), Way::Reserved),
        ),
        (
            "No claim can reserve the file",
            second(Some(Doing::Idle), Way::Wait("it is outside any repository")),
        ),
        (
            "Another session reserved the file",
            Finding::Reserved {
                path: "/home/dev/web/src/a.rs".into(),
                key: "path:acme/web:src/**".into(),
                handle: "codex-m3x9".into(),
                own_key: "path:acme/web:src/a.rs".into(),
            },
        ),
        (
            "A command changes the files of others",
            moved(&[("codex-m3x9", Some(Doing::Busy)), ("claude-p2wq", None)]),
        ),
        (
            "The same, of many",
            moved(&[
                ("codex-m3x9", None),
                ("claude-p2wq", None),
                ("gemini-7h2k", None),
                ("qwen-9f4d", None),
                ("opencode-3c8v", None),
            ]),
        ),
        (
            "Writing needs a claim",
            Finding::Unclaimed {
                pattern: "issue:acme/web#*".into(),
            },
        ),
    ]
}

#[test]
fn every_verdict_about_a_process_is_on_its_page() {
    let (pid, age) = (4711, Duration::from_secs(40));
    let host = || "build-3".to_owned();
    let proofs = [
        Proof::Rebooted,
        Proof::Absent { pid },
        Proof::PidReused {
            pid,
            recorded: 88_123,
            seen: 91_456,
        },
        Proof::Thread { pid, of: 4700 },
        Proof::Zombie { pid },
    ];
    let doubts = [
        Doubt::OtherHost,
        Doubt::PrivateBoot,
        Doubt::OtherNamespace,
        Doubt::ForeignProc,
        Doubt::Unreadable("permission denied".into()),
        Doubt::Unverified,
        Doubt::Watched { host: host(), age },
        Doubt::HostSilent { host: host(), age },
    ];
    let mut page = "## It is dead\n\n".to_owned();
    proofs
        .iter()
        .for_each(|proof| page += &format!("{proof}\n"));
    page += "\n\n## It cannot be checked from here\n\n";
    doubts
        .iter()
        .for_each(|doubt| page += &format!("{doubt}\n"));
    compare("45-liveness", &page);
}
