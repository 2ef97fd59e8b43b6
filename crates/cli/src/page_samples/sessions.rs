//! What a list says about a session, the status line of an agent, and why an agent has no session.

use tenure_app::hooked::Hooks;
use tenure_core::order::Rank;
use tenure_core::session::EndKind;
use tenure_core::time::Timestamp;
use tenure_core::witness::TerminalPlace;
use tenure_service::Glance;
use tenure_service::view::{ActivityBy, CutOffView, ProcessView, SessionView};

use crate::message_page::compare;
use crate::standing::{end_kind, way_on, words_within};
use crate::summary::glance;

/// 2026-11-16 08:00 UTC.
const NOW: Timestamp = Timestamp(1_794_816_000_000);
const EARLIER: Timestamp = Timestamp(1_794_815_700_000);

fn session() -> SessionView {
    SessionView {
        id: "s".into(),
        handle: "claude-k7qd".into(),
        agent: "claude".into(),
        native_id: None,
        native_ids: None,
        state: "live",
        why: "pid 4711 is running".into(),
        activity: Some("busy"),
        activity_since: Some(EARLIER),
        activity_by: None,
        asks: None,
        finished: false,
        rank: None,
        collides_with: None,
        twin_of: None,
        twins: None,
        parent: None,
        title: None,
        title_by: None,
        dir: "/home/dev/web".into(),
        repo: None,
        branch: None,
        place: None,
        process: ProcessView {
            host_id: None,
            boot_id: None,
            pid_ns: None,
            pid: Some(4711),
            start_ticks: None,
            life: 1,
            verified: true,
        },
        registered: None,
        started_at: EARLIER,
        last_seen_at: EARLIER,
        lease_until: None,
        ended_at: None,
        end_reason: None,
        end_kind: None,
        resume: None,
        claims: None,
        waits_for: None,
        wrote: None,
    }
}

fn live() -> Vec<SessionView> {
    let waiting = |asks: Option<&str>| SessionView {
        activity: Some("waiting"),
        asks: asks.map(str::to_owned),
        ..session()
    };
    let collides = |others: &[&str]| SessionView {
        rank: Some(Rank::Collides.as_str()),
        collides_with: Some(others.iter().map(|other| (*other).to_owned()).collect()),
        ..session()
    };
    let unsure = ActivityBy {
        source: "events",
        at: EARLIER,
        certain: false,
    };
    vec![
        session(),
        SessionView {
            activity_by: Some(unsure),
            ..session()
        },
        waiting(None),
        waiting(Some("permission for `rm -rf build`")),
        collides(&["codex-m3x9"]),
        collides(&["codex-m3x9", "gemini-7h2k", "qwen-9f4d"]),
        SessionView {
            twins: Some(vec!["claude-p2wq".into()]),
            ..session()
        },
        SessionView {
            place: Some(TerminalPlace::NoWindow.to_string()),
            ..session()
        },
        SessionView {
            place: Some(TerminalPlace::Gone.to_string()),
            ..session()
        },
        SessionView {
            finished: true,
            activity: Some("idle"),
            ..session()
        },
        SessionView {
            state: "unknown",
            why: "it runs on another machine".into(),
            ..session()
        },
    ]
}

fn over(kind: EndKind) -> SessionView {
    SessionView {
        state: "ended",
        why: "ended".into(),
        ended_at: Some(EARLIER),
        end_kind: Some(kind.as_str()),
        ..session()
    }
}

fn cut_off(command: Option<&str>, problem: Option<&str>, starting: Option<u32>) -> SessionView {
    SessionView {
        resume: Some(CutOffView {
            command: command.map(str::to_owned),
            problem: problem.map(str::to_owned),
            starting,
            held: Vec::new(),
        }),
        ..over(EndKind::CutOff)
    }
}

#[test]
fn every_state_of_a_session_is_on_its_page() {
    let mut page = "## What a session does\n\n".to_owned();
    let mut add = |line: &str| page += &format!("{line}\n");
    for one in live() {
        add(&words_within(&one, NOW, false, None));
    }
    add("\n\n## How it ended\n");
    for kind in [EndKind::CutOff, EndKind::Left, EndKind::Moved] {
        add(&format!("ended 5m ago{}", end_kind(&over(kind))));
    }
    add("\n\n## What was cut off\n");
    let cut = [
        cut_off(Some("tenure resume claude-k7qd"), None, None),
        cut_off(
            None,
            Some("its directory /home/dev/web no longer exists"),
            None,
        ),
        cut_off(None, None, None),
        cut_off(None, None, Some(4712)),
    ];
    for one in &cut {
        add(&words_within(one, NOW, false, None));
        way_on(one)
            .into_iter()
            .for_each(|line| add(&format!("  {line}")));
    }
    add("\n\n## The status line of an agent\n");
    for one in glances() {
        add(&plain(glance(&one).as_str()));
    }
    add("\n\n## Why an agent has no session\n");
    for (hooks, first) in [
        (Hooks::Installed, Some(tenure_agents::FirstEvent::Prompt)),
        (Hooks::Installed, Some(tenure_agents::FirstEvent::Start)),
        (Hooks::Untrusted, None),
        (Hooks::Off, None),
        (Hooks::Missing, None),
        (Hooks::None, None),
        (Hooks::Unknown, None),
    ] {
        add(&hooks.why("codex", first));
    }
    compare("16-standing", &page);
}

/// Without its colours.
fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| {
        kept + part.split_once('m').map_or("", |(_, rest)| rest)
    })
}

fn glances() -> Vec<Glance> {
    let quiet = || Glance {
        handle: "claude-k7qd".into(),
        repo: Some("acme/web".into()),
        holds: Vec::new(),
        lost: Vec::new(),
        twins: Vec::new(),
        waiting: Vec::new(),
        cut_off: Vec::new(),
    };
    let names = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
    vec![
        quiet(),
        Glance {
            holds: names(&["issue:acme/web#6", "pr:acme/web#9"]),
            ..quiet()
        },
        Glance {
            lost: vec![("issue:acme/web#6".into(), "codex-m3x9".into())],
            ..quiet()
        },
        Glance {
            twins: names(&["claude-p2wq"]),
            ..quiet()
        },
        Glance {
            waiting: names(&["codex-m3x9", "gemini-7h2k"]),
            ..quiet()
        },
        Glance {
            cut_off: names(&["codex-m3x9"]),
            ..quiet()
        },
        Glance {
            cut_off: names(&["codex-m3x9", "gemini-7h2k"]),
            ..quiet()
        },
    ]
}
