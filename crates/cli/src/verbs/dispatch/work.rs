//! Working the queue in the foreground: a line for each thing that happens.

use serde_json::{Value, json};
use tenure_app::queue::{Report, Worker};
use tenure_core::queue::choose::Limits;
use tenure_core::text;

use crate::app::App;
use crate::child::signal_exit;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{Outcome, Output, put};

pub fn run(concurrency: usize, app: &App) -> Outcome {
    let mut context = app.open()?;
    let limits = Limits {
        concurrency,
        per_repo: None,
    };
    let mut worker = Worker::new(limits);
    let mut report = |report: Report| {
        let line = if app.style.json {
            for_programs(&report).to_string()
        } else {
            for_people(&report)
        };
        if put(Lines::from(line).as_str()).is_err() {
            // Nobody reads it any more; the queue goes on.
        }
    };
    let signal = worker.work(&mut context, &mut report)?;
    let asked = [rustix::process::Signal::INT, rustix::process::Signal::TERM];
    let exit = if asked.iter().any(|one| one.as_raw() == signal) {
        Exit::DONE
    } else {
        signal_exit(signal)
    };
    Ok(Output::silent(exit))
}

fn for_programs(report: &Report) -> Value {
    match report {
        Report::Started { job, run } => {
            json!({"v": 1, "event": "job.started", "job_id": job, "run": run})
        }
        Report::Refused { job, problem } => json!({
            "v": 1, "event": "job.refused", "job_id": job,
            "kind": problem.kind, "message": problem.message,
        }),
        Report::Parked(job) => json!({"v": 1, "event": "job.parked", "job": job}),
        Report::Returned(job) => json!({"v": 1, "event": "job.returned", "job": job}),
        Report::Settled(run) => json!({"v": 1, "event": "run.settled", "run": run}),
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
    }
}
