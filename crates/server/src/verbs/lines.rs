//! The lines that a dispatcher prints while it works, for people and for programs.

use serde_json::{Value, json};
use tenure_core::text;
use tenure_dispatch::endpoints::EndpointNews;
use tenure_dispatch::forge_worker::News;
use tenure_dispatch::queue::Report;
use tenure_service::view::RunView;

/// One line, both ways.
pub(super) struct ReportLine {
    pub for_people: String,
    pub for_programs: Value,
}

impl ReportLine {
    pub fn of(report: &Report) -> Self {
        Self {
            for_people: for_people(report),
            for_programs: for_programs(report),
        }
    }
}

/// Something about dispatch.toml.
pub(super) fn note(text: &str) -> ReportLine {
    ReportLine {
        for_people: format!("note: {text}"),
        for_programs: json!({"v": 1, "event": "note", "text": text}),
    }
}

/// The file was read again, with this outcome.
pub(super) fn reloaded(fault: Option<&str>) -> ReportLine {
    let for_people = match fault {
        None => "reloaded dispatch.toml".to_owned(),
        Some(why) => format!("dispatch.toml was not reloaded, the old rules stay: {why}"),
    };
    ReportLine {
        for_people,
        for_programs: json!({"v": 1, "event": "reloaded", "fault": fault}),
    }
}

pub(super) fn listening(address: &str) -> ReportLine {
    ReportLine {
        for_people: format!("listening for webhooks at http://{address}/hooks/"),
        for_programs: json!({"v": 1, "event": "listening", "address": address}),
    }
}

pub(super) fn without_webhooks() -> ReportLine {
    let for_people =
        "running the queue; without dispatch.toml no webhooks are received (tenure dispatch init)";
    ReportLine {
        for_people: for_people.to_owned(),
        for_programs: json!({"v": 1, "event": "working", "webhooks": false}),
    }
}

fn for_programs(report: &Report) -> Value {
    match report {
        Report::Started { job, run } => {
            json!({"v": 1, "event": "job.started", "job_id": job, "run": run})
        }
        Report::Refused { job, problem } => json!({
            "v": 1, "event": "job.refused", "job_id": job,
            "kind": problem.kind, "message": problem.message, "hints": problem.hints,
        }),
        Report::Parked(job) => json!({"v": 1, "event": "job.parked", "job": job}),
        Report::Returned(job) => json!({"v": 1, "event": "job.returned", "job": job}),
        Report::Ended { job, run } => {
            json!({"v": 1, "event": "job.ended", "job_id": job, "run": run})
        }
        Report::Settled(run) => json!({"v": 1, "event": "run.settled", "run": run}),
        Report::Damaged(problem) => json!({
            "v": 1, "event": "store.damaged", "kind": problem.kind, "message": problem.message,
        }),
        Report::Away(problem) => json!({
            "v": 1, "event": "store.away", "kind": problem.kind, "message": problem.message,
        }),
        Report::Back => json!({"v": 1, "event": "store.back"}),
        Report::Forge(News::Swept { forge, found }) => json!({
            "v": 1, "event": "forge.swept", "forge": forge,
            "closed": found.closed, "redelivered": found.again,
        }),
        Report::Forge(News::Failed { forge, why }) => json!({
            "v": 1, "event": "forge.failed", "forge": forge, "message": why,
        }),
        Report::Forge(News::Answers { forge }) => {
            json!({"v": 1, "event": "forge.answers", "forge": forge})
        }
        Report::Endpoint(EndpointNews::Refuses { endpoint, why }) => json!({
            "v": 1, "event": "endpoint.refuses", "endpoint": endpoint, "message": why,
        }),
        Report::Endpoint(EndpointNews::Accepts { endpoint }) => {
            json!({"v": 1, "event": "endpoint.accepts", "endpoint": endpoint})
        }
    }
}

/// Whether a run goes on with a conversation, and with which skill.
fn beginning(run: &RunView) -> String {
    let how = match &run.before {
        Some(_) => "resumes its conversation",
        None => "in a new conversation",
    };
    let skill = run.skill.as_ref();
    let skill = skill.map_or_else(String::new, |skill| format!(", skill {skill}"));
    format!(" ({how}{skill})")
}

fn for_people(report: &Report) -> String {
    match report {
        Report::Started { job, run } => format!(
            "{job}  {} on {} runs as {} in {}{}",
            run.agent,
            run.item,
            run.id,
            text::name(&run.dir),
            beginning(run)
        ),
        Report::Ended { job, run } => {
            let outcome = run.outcome.as_deref().unwrap_or("ended");
            let why = run.why.as_deref().filter(|_| outcome != "done");
            let why = why.map_or_else(String::new, |why| format!(": {}", text::line(why)));
            format!(
                "{job}  {} on {} {outcome} ({}){why}",
                run.agent, run.item, run.id
            )
        }
        Report::Refused { job, problem } => format!("{job}  not started: {}", problem.message),
        Report::Parked(job) => {
            let why = job.parked.as_ref().map_or("", |parked| &parked.why);
            format!("{}  parked: {why}", job.id)
        }
        Report::Returned(job) => format!(
            "{}  queued again: its runner died before the agent started",
            job.id
        ),
        Report::Settled(run) => format!("{}  {}", run.id, run.shown_state()),
        Report::Damaged(problem) => format!("skipped: {}", text::line(&problem.message)),
        Report::Away(problem) => {
            let why = text::line(&problem.message);
            format!("waiting for the store; runs go on: {why}")
        }
        Report::Back => "the store is back; running the queue again".to_owned(),
        Report::Forge(News::Swept { forge, found }) => {
            let closed: Vec<String> = found.closed.iter().map(ToString::to_string).collect();
            let mut told = Vec::new();
            if !closed.is_empty() {
                told.push(format!("closed {}", closed.join(", ")));
            }
            if !found.again.is_empty() {
                told.push(format!(
                    "asked for lost deliveries {}",
                    found.again.join(", ")
                ));
            }
            format!("forge {forge}  {}", text::line(&told.join("; ")))
        }
        Report::Forge(News::Failed { forge, why }) => {
            format!("forge {forge}  {}", text::line(why))
        }
        Report::Forge(News::Answers { forge }) => format!("forge {forge}  answers again"),
        Report::Endpoint(EndpointNews::Refuses { endpoint, why }) => {
            format!("webhooks of forge {endpoint}  {why}")
        }
        Report::Endpoint(EndpointNews::Accepts { endpoint }) => {
            format!("webhooks of forge {endpoint}  are accepted again")
        }
    }
}
