//! Working the queue in the foreground: a line for each thing that happens.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use tenure_app::dispatch::clerk::{Clerks, News};
use tenure_app::dispatch::{Checked, running};
use tenure_app::queue::{Report, Worker};
use tenure_core::queue::choose::Limits;
use tenure_core::text;
use tenure_server::listen;

use super::settings_file::SettingsFile;
use crate::app::App;
use crate::child::signal_exit;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{Outcome, Output, put};

#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    file: SettingsFile,

    /// Listen at this address [default: the one in dispatch.toml, else 127.0.0.1:7421]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// Run at most N jobs at once [default: the number in dispatch.toml, else 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: Option<u32>,
}

/// How many jobs run at once where nothing else is said.
const CONCURRENCY: u32 = 4;

pub fn run(options: &Options, app: &App) -> Outcome {
    // Secrets and tokens are read next, and the environment may have others.
    tenure_host::secrecy::hide_memory();
    let checked = options.file.load_if_any()?;
    let mut context = app.open()?;
    let mut server = None;
    let mut concurrency = CONCURRENCY;
    let mut keeps = None;
    let mut clerks = None;
    let mut file = None;
    if let Some(Checked { config, notes }) = checked {
        for note in &notes {
            say(
                app,
                &format!("note: {note}"),
                &json!({"v": 1, "event": "note", "text": note}),
            );
        }
        concurrency = config.concurrency;
        keeps = Some(config.keep_deliveries);
        file = Some(config.file.clone());
        let address = options.listen.unwrap_or(config.listen);
        let config = Arc::new(config);
        let listening = listen(address, config.clone())?;
        let at = listening.address.to_string();
        say(
            app,
            &format!("listening for webhooks at http://{at}/hooks/"),
            &json!({"v": 1, "event": "listening", "address": at}),
        );
        server = Some(listening);
        clerks = Some(Clerks::start(&config)?);
    }
    let address = server.as_ref().map(|server| server.address);
    let _note = running::note(&context, address, file.as_deref())?;
    if server.is_none() {
        say(
            app,
            "running the queue; without dispatch.toml no webhooks are received (tenure dispatch init)",
            &json!({"v": 1, "event": "working", "webhooks": false}),
        );
    }
    let limits = Limits {
        concurrency: options.concurrency.unwrap_or(concurrency) as usize,
    };
    let mut worker = Worker::new(limits);
    if let Some(keeps) = keeps {
        worker = worker.keeping(keeps);
    }
    if let Some(clerks) = clerks {
        worker = worker.with(clerks);
    }
    let mut report = |report: Report| say(app, &for_people(&report), &for_programs(&report));
    let worked = worker.work(&mut context, &mut report);
    if let Some(server) = server {
        server.stop();
    }
    let signal = worked?;
    let asked = [rustix::process::Signal::INT, rustix::process::Signal::TERM];
    let exit = if asked.iter().any(|one| one.as_raw() == signal) {
        Exit::DONE
    } else {
        signal_exit(signal)
    };
    Ok(Output::silent(exit))
}

fn say(app: &App, for_people: &str, for_programs: &Value) {
    let line = if app.style.json {
        for_programs.to_string()
    } else {
        for_people.to_owned()
    };
    if put(Lines::from(line).as_str()).is_err() {
        // Nobody reads it any more; the queue goes on.
    }
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
        Report::Forge(News::Swept { forge, found }) => json!({
            "v": 1, "event": "forge.swept", "forge": forge,
            "closed": found.closed, "redelivered": found.again,
        }),
        Report::Forge(News::Trouble { forge, why }) => json!({
            "v": 1, "event": "forge.trouble", "forge": forge, "message": why,
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
        Report::Forge(News::Trouble { forge, why }) => {
            format!("forge {forge}  {}", text::line(why))
        }
    }
}
