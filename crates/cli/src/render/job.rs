//! Jobs as people read them.

use tenure_service::view::{DeliveryView, JobView};

use crate::lines::Lines;
use crate::output::{Cell, ago, table};

/// How people read the state of a job.
fn state(job: &JobView) -> String {
    match (job.state.as_str(), &job.outcome, &job.parked) {
        ("ended", ..) if job.unpublished.is_some() => "result waits".to_owned(),
        ("ended", Some(outcome), _) => outcome.clone(),
        ("begun", ..) if job.past_timeout => "running, past its timeout".to_owned(),
        ("begun", ..) => "running".to_owned(),
        ("parked", _, Some(parked)) => match parked.until {
            Some(until) => format!("parked until {until}"),
            None => "parked".to_owned(),
        },
        ("queued", ..) if job.not_before.is_some() => "waiting to retry".to_owned(),
        (state, ..) => state.to_owned(),
    }
}

fn why(job: &JobView) -> Option<String> {
    if let Some(why) = &job.unpublished {
        return Some(format!(
            "{why}; run `tenure queue publish {}` to publish it",
            job.id
        ));
    }
    let parked = job.parked.as_ref().map(|parked| parked.why.as_str());
    let waits = job.failure.as_deref().filter(|_| job.not_before.is_some());
    let why = parked.or(job.why.as_deref()).or(waits);
    why.map(str::to_owned)
}

/// `j-k7qd2m4zw9  claude on issue:acme/web#6`.
pub fn name(job: &JobView) -> String {
    format!("{}  {} on {}", job.id, job.worker(), job.item)
}

pub fn line(job: &JobView) -> Lines {
    let why = why(job).map_or_else(String::new, |why| format!(": {why}"));
    Lines::from(format!("{}  {}{why}", name(job), state(job)))
}

/// A delivery that waits for its forge.
pub fn waiting(delivery: &DeliveryView) -> String {
    let (id, event) = (delivery.id, &delivery.event);
    let item = delivery.item.as_deref().or(delivery.repo.as_deref());
    let item = item.unwrap_or("-");
    format!("delivery {id}  {event} on {item}  waits: {}", delivery.why)
}

pub fn list<'a>(jobs: impl ExactSizeIterator<Item = &'a JobView>) -> Lines {
    if jobs.len() == 0 {
        return "no jobs".into();
    }
    let now = tenure_host::clock::wall();
    let rows: Vec<Vec<Cell>> = jobs
        .map(|job| {
            [
                job.id.clone(),
                state(job),
                job.worker(),
                job.item.clone(),
                ago(job.created_at, now),
                job.events.len().to_string(),
                job.run.clone().unwrap_or_else(|| "-".to_owned()),
                job.rule.clone().unwrap_or_else(|| "-".to_owned()),
                why(job).unwrap_or_else(|| "-".to_owned()),
            ]
            .map(Cell::plain)
            .to_vec()
        })
        .collect();
    let heads = [
        "JOB", "STATE", "AGENT", "ITEM", "QUEUED", "EVENTS", "RUN", "RULE", "WHY",
    ];
    table(&heads, &rows)
}

pub fn one(job: &JobView) -> Lines {
    let now = tenure_host::clock::wall();
    let mut lines = line(job);
    let mut row = |name: &str, value: String| lines.line(format!("  {name:<13} {value}"));
    if job.root != job.item {
        row("continues", job.root.clone());
    }
    if let Some(rule) = &job.rule {
        row("rule", rule.clone());
    }
    if let Some(skill) = &job.skill {
        row("skill", skill.clone());
    }
    row("queued", ago(job.created_at, now));
    if let Some(run) = &job.run {
        row("run", run.clone());
    }
    if let Some(pid) = job.pid {
        row("runner", format!("pid {pid}"));
    }
    if let Some(at) = job.not_before {
        row("next try", at.to_string());
    }
    for event in &job.events {
        row(
            "event",
            format!("{} ({})", event.summary, ago(event.at, now)),
        );
    }
    lines
}

pub fn deliveries(all: &[DeliveryView]) -> Lines {
    if all.is_empty() {
        return "no deliveries".into();
    }
    let now = tenure_host::clock::wall();
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let rows: Vec<Vec<Cell>> = all
        .iter()
        .map(|one| {
            [
                one.id.to_string(),
                one.verdict.clone(),
                one.event.clone(),
                or_none(&one.item),
                or_none(&one.author),
                ago(one.received_at, now),
                or_none(&one.job),
                one.why.clone(),
            ]
            .map(Cell::plain)
            .to_vec()
        })
        .collect();
    let heads = [
        "DELIVERY", "VERDICT", "EVENT", "ITEM", "AUTHOR", "RECEIVED", "JOB", "WHY",
    ];
    table(&heads, &rows)
}
