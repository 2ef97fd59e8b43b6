//! What is written into the forge about a job, why a job waits, and what keeps a worktree.

use serde_json::json;
use tenure_core::id::{AgentName, HostId, JobId, RunId};
use tenure_core::key::Key;
use tenure_core::queue::breaker::Breaker;
use tenure_core::queue::choose::{Choice, Limits, Load, choose};
use tenure_core::queue::code::HeadMoved;
use tenure_core::queue::reply::{Notice, ReplyKind, RunNow};
use tenure_core::queue::{Caps, Job, JobEnd, JobState, Parked, ParkedFor, Trust};
use tenure_core::run::Outcome;
use tenure_core::run::going_on::{continue_text, why};
use tenure_core::run::worktree::Objection;
use tenure_core::time::Timestamp;

use crate::message_page::compare;

const ITEM: &str = "issue:acme/web#6";
/// 2026-11-16 08:00 UTC.
const NOW: Timestamp = Timestamp(1_794_816_000_000);
/// After which a run is continued.
const CUT_OFF: &[Outcome] = &[
    Outcome::Failed,
    Outcome::Refused,
    Outcome::Timeout,
    Outcome::Stopped,
    Outcome::Interrupted,
    Outcome::Unusable,
    Outcome::Parked,
];

fn job(state: JobState) -> Job {
    let item = Key::parse(ITEM).expect("a key");
    Job {
        id: JobId::mint([0; 16]),
        agent: AgentName::known("claude"),
        root: item.clone(),
        item,
        rule: Some("fix".into()),
        trust: Trust::Trusted,
        repo: Some("acme/web".into()),
        spec: serde_json::from_value(json!({
            "ask": {"text": "do it"}, "workdir": {"dir": "/home/dev/web", "worktree": true},
        }))
        .expect("a job"),
        state,
        attempt: 1,
        failures: 0,
        failure: None,
        taken: None,
        run: Some(RunId::mint([0; 16])),
        parked: None,
        not_before: None,
        by: None,
        created_at: NOW,
        end: None,
        revision: 1,
    }
}

#[test]
fn every_reply_in_the_forge_is_on_its_page() {
    let mut page = String::new();
    let mut add = |title: &str, job: &Job, run: &RunNow| {
        let notice = Notice::of(ReplyKind::Status, job, run).expect("something to say");
        page += &format!(
            "## {title}\n\n{}\n\n",
            notice.comment(ReplyKind::Status, &job.id)
        );
    };
    let silent = RunNow::default();
    add("It runs", &job(JobState::Begun), &silent);
    let waits = RunNow {
        waiting: Some("asks again in 40s, attempt 2".into()),
        ..RunNow::default()
    };
    add("It waits for its provider", &job(JobState::Begun), &waits);
    let parked = |reason, until, why: &str| Job {
        parked: Some(Parked {
            reason,
            until,
            why: why.into(),
        }),
        ..job(JobState::Parked)
    };
    let limit = parked(ParkedFor::Limit, Some(NOW), "a usage limit was reached");
    add("It is parked until a time", &limit, &silent);
    let why = "10 runs of issue:acme/web#6 since a person last asked";
    let breaker = parked(ParkedFor::Breaker, None, why);
    add("It is parked until a person asks", &breaker, &silent);
    let why = "cannot clone acme/web: it is gone from the remote";
    add(
        "It could not be started",
        &parked(ParkedFor::Attempts, None, why),
        &silent,
    );
    let ended = |outcome, why: &str| Job {
        end: Some(JobEnd {
            at: NOW,
            outcome,
            why: why.into(),
        }),
        ..job(JobState::Ended)
    };
    let answered = RunNow {
        answer: Some("I fixed it in #7, @alice.".into()),
        ..RunNow::default()
    };
    add("It is done", &ended(Some(Outcome::Done), "done"), &answered);
    let long = RunNow {
        answer: Some("x\n".repeat(15_000)),
        ..RunNow::default()
    };
    let stopped = ended(Some(Outcome::Stopped), "");
    let notice = Notice::of(ReplyKind::Status, &stopped, &long).expect("something to say");
    let comment = notice.comment(ReplyKind::Status, &stopped.id);
    let last = comment.trim_end().rsplit('\n').next().unwrap_or_default();
    add("It was stopped", &stopped, &silent);
    let failed = ended(Some(Outcome::Timeout), "it did not end within 45m");
    add("It failed", &failed, &silent);
    let cancelled = Job {
        state: JobState::Cancelled,
        ..ended(None, "issue:acme/web#6 was closed")
    };
    add("It was cancelled", &cancelled, &silent);
    page += &format!("## Below an answer that is too long\n\n{last}\n");
    compare("51-replies", &page);
}

/// Why a job is not taken now.
fn waits() -> Vec<String> {
    let idle = || Load {
        running: 0,
        in_repo: 0,
        begun: Vec::new(),
        cost: 0.0,
        cost_since: None,
        breaker: Breaker::of(Key::parse(ITEM).expect("a key")),
        away: None,
    };
    let capped = |caps| {
        let mut job = job(JobState::Queued);
        job.spec.caps = caps;
        job
    };
    let caps = Caps {
        runs_per_hour: Some(2),
        budget_per_day: Some(5.0),
        per_repo: Some(2),
        breaker: Some(10),
    };
    let plain = || capped(Caps::default());
    let load = idle;
    let late = Job {
        not_before: Some(NOW.plus(std::time::Duration::from_secs(60))),
        ..plain()
    };
    let mut open = load();
    open.breaker.runs = 10;
    let cases = [
        (job(JobState::Starting), load()),
        (job(JobState::Begun), load()),
        (job(JobState::Parked), load()),
        (job(JobState::Ended), load()),
        (job(JobState::Cancelled), load()),
        (late, load()),
        (
            plain(),
            Load {
                away: Some(HostId::new("build-3")),
                ..load()
            },
        ),
        (capped(caps), open),
        (
            capped(caps),
            Load {
                begun: vec![NOW, NOW],
                ..load()
            },
        ),
        (
            capped(caps),
            Load {
                cost: 5.25,
                ..load()
            },
        ),
        (
            plain(),
            Load {
                running: 4,
                ..load()
            },
        ),
        (
            capped(caps),
            Load {
                in_repo: 2,
                ..load()
            },
        ),
    ];
    let why = |(job, load): &(Job, Load)| match choose(job, load, &Limits { concurrency: 4 }, NOW) {
        Choice::Take => "it can be taken".to_owned(),
        Choice::Wait { why, .. } => why,
        Choice::Park(parked) => format!("parked: {}", parked.why),
    };
    cases.iter().map(why).collect()
}

fn objections() -> Vec<Objection> {
    let files = |count: usize| (1..=count).map(|n| format!("src/{n}.rs")).collect();
    vec![
        Objection::NoHead,
        Objection::Unpushed("0123456789abcdef0123".into()),
        Objection::Changed(files(1)),
        Objection::Changed(files(7)),
        Objection::Ignored(files(2)),
        Objection::Locked("tenure: claude-k7qd works here".into()),
        Objection::Locked(String::new()),
        Objection::Occupied(vec!["4711 (vim)".into()]),
    ]
}

#[test]
fn every_reason_about_a_job_is_on_its_page() {
    let mut page = "## Why a job waits\n\n".to_owned();
    let mut add = |line: String| page += &format!("{line}\n");
    waits().into_iter().for_each(&mut add);
    let moved = HeadMoved {
        permitted: "0123456789abcdef0123".into(),
        found: "fedcba98765432100123".into(),
    };
    add(moved.to_string());
    add("\n\n## Why a worktree stays\n".to_owned());
    for objection in objections() {
        add(objection.to_string());
    }
    add("\n\n## What an agent is told when it continues\n".to_owned());
    for outcome in CUT_OFF {
        add(continue_text(*outcome, NOW));
    }
    add("\n\n## What a template is told about the run before\n".to_owned());
    for outcome in CUT_OFF.iter().chain([&Outcome::Done]) {
        add(why(*outcome).to_owned());
    }
    compare("60-job-reasons", &page);
}
