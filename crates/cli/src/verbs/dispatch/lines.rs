//! The lines that a dispatcher prints while it works, for people and for programs.

use serde_json::{Value, json};
use tenure_app::dispatch::clerk::News;
use tenure_app::queue::Report;
use tenure_core::text;

/// One line, both ways.
pub(super) struct Said {
    pub for_people: String,
    pub for_programs: Value,
}

impl Said {
    pub fn of(report: &Report) -> Self {
        Self {
            for_people: for_people(report),
            for_programs: for_programs(report),
        }
    }
}

/// Something about dispatch.toml.
pub(super) fn note(text: &str) -> Said {
    Said {
        for_people: format!("note: {text}"),
        for_programs: json!({"v": 1, "event": "note", "text": text}),
    }
}

pub(super) fn listening(address: &str) -> Said {
    Said {
        for_people: format!("listening for webhooks at http://{address}/hooks/"),
        for_programs: json!({"v": 1, "event": "listening", "address": address}),
    }
}

pub(super) fn without_webhooks() -> Said {
    let for_people =
        "running the queue; without dispatch.toml no webhooks are received (tenure dispatch init)";
    Said {
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
    }
}

fn for_people(report: &Report) -> String {
    match report {
        Report::Started { job, run } => format!(
            "{job}  {} on {} runs as {} in {}",
            run.agent,
            run.item,
            run.id,
            text::name(&run.dir)
        ),
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
    }
}

#[cfg(test)]
mod tests {
    use tenure_app::dispatch::Swept;
    use tenure_core::id::JobId;
    use tenure_core::key::Key;
    use tenure_core::time::Timestamp;
    use tenure_service::answer::{Class, Hint, Problem};
    use tenure_service::view::{JobView, ParkedView, RunView};

    use super::*;

    const ITEM: &str = "issue:git.example.org/acme/web#7";

    fn run(state: &str, outcome: Option<&str>) -> Box<RunView> {
        let run = json!({
            "id": "r-2m4zw9", "agent": "mine", "item": ITEM, "root": ITEM, "state": state,
            "outcome": outcome, "fell_back": false, "dir": "/home/dev/web",
            "shares_dir": false, "exclusive": false, "trigger": "queue",
            "created_at": "2026-11-15T08:00:00.000Z", "usage": {},
        });
        Box::new(serde_json::from_value(run).unwrap())
    }

    fn job(parked: Option<ParkedView>) -> Box<JobView> {
        Box::new(JobView {
            id: JobId::mint([7; 16]).to_string(),
            agent: "mine".into(),
            item: ITEM.into(),
            root: ITEM.into(),
            rule: Some("fix".into()),
            trust: "trusted".into(),
            repo: Some("acme/web".into()),
            state: "queued".into(),
            attempt: 1,
            failures: 0,
            failure: None,
            run: None,
            pid: None,
            parked,
            not_before: None,
            skill: Some("fix".into()),
            created_at: Timestamp(0),
            taken_at: None,
            ended_at: None,
            outcome: None,
            why: None,
            events: Vec::new(),
        })
    }

    fn problem(class: Class, kind: &str, message: &str) -> Box<Problem> {
        let hint = Hint::verb("ps", "for details");
        Box::new(Problem::new(class, kind, message, hint))
    }

    fn reports() -> Vec<Report> {
        let id = || JobId::mint([7; 16]);
        let forge = || "home".to_owned();
        vec![
            Report::Started {
                job: id(),
                run: run("running", None),
            },
            Report::Refused {
                job: id(),
                problem: problem(Class::Usage, "not_found", "no directory /home/dev/web"),
            },
            Report::Parked(job(Some(ParkedView {
                reason: "cap".into(),
                until: None,
                why: "6 runs in the last hour (runs_per_hour is 6)".into(),
            }))),
            Report::Returned(job(None)),
            Report::Settled(run("ended", Some("interrupted"))),
            Report::Damaged(problem(
                Class::Store,
                "store_damaged",
                "a job in the store is damaged",
            )),
            Report::Away(problem(
                Class::Store,
                "store_unavailable",
                "cannot reach the store",
            )),
            Report::Back,
            Report::Forge(News::Swept {
                forge: forge(),
                found: Swept {
                    closed: vec![Key::parse(ITEM).unwrap()],
                    again: vec!["5f0c7a10".into()],
                    missed: Vec::new(),
                },
            }),
            Report::Forge(News::Failed {
                forge: forge(),
                why: "the forge answered 502 Bad Gateway".into(),
            }),
        ]
    }

    /// Its place on the page. A new report needs one, and a line in `reports`.
    fn place(report: &Report) -> usize {
        match report {
            Report::Started { .. } => 0,
            Report::Refused { .. } => 1,
            Report::Parked(_) => 2,
            Report::Returned(_) => 3,
            Report::Settled(_) => 4,
            Report::Damaged(_) => 5,
            Report::Away(_) => 6,
            Report::Back => 7,
            Report::Forge(News::Swept { .. }) => 8,
            Report::Forge(News::Failed { .. }) => 9,
        }
    }

    #[test]
    fn every_line_of_a_dispatcher_is_on_its_page() {
        let places: Vec<usize> = reports().iter().map(place).collect();
        assert_eq!(places, (0..10).collect::<Vec<_>>());
        let mut page =
            "## Lines of `tenure dispatch`, each followed by the same with --json\n".to_owned();
        let start = [
            note(
                "rule fix: git asks for the credential with this program and /home/dev/home.token, which its wrap must let the agent reach",
            ),
            listening("127.0.0.1:7421"),
            without_webhooks(),
        ];
        let later = reports().iter().map(Said::of).collect::<Vec<_>>();
        for said in start.iter().chain(&later) {
            page += &format!("\n{}\n{}\n", said.for_people, said.for_programs);
        }
        crate::message_page::compare("58-dispatcher-lines", &page);
    }
}
