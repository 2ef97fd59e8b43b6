//! Working the queue in the foreground: a line for each thing that happens.

use std::io::IsTerminal;

use tenure_core::ignore::Ignore;
use tenure_core::queue::choose::Limits;
use tenure_dispatch::endpoints::Endpoints;
use tenure_dispatch::forge_worker::ForgeWorkers;
use tenure_dispatch::listener::listen;
use tenure_dispatch::live::LiveConfig;
use tenure_dispatch::queue::{DispatchWorker, Report};
use tenure_dispatch::{Checked, Config};
use tenure_service::answer::{Class, Hint};

use tenure_app::dispatchers;
use tenure_cli::verbs::dispatch::WorkArgs;

use super::lines::{self, ReportLine};
use super::settings_file::load_if_any;
use tenure_cli::app::App;
use tenure_cli::child::signal_exit;
use tenure_cli::exit::Exit;
use tenure_cli::lines::Lines;
use tenure_cli::output::{CliError, Outcome, Output, put};

/// How many jobs run at once where nothing else is said.
const CONCURRENCY: u32 = 4;

pub fn run(options: &WorkArgs, app: &App) -> Outcome {
    // Secrets and tokens are read next, and the environment may have others.
    tenure_host::secrecy::hide_memory();
    // A SIGHUP that arrives while this starts must not end it.
    tenure_host::watch::catch_signals().ignore("the worker tries again, and says it");
    let checked = load_if_any(&options.file)?;
    let mut context = app.open()?;
    let endpoints = Endpoints::default();
    let mut live = None;
    let mut server = None;
    let mut worker = DispatchWorker::new(limits(options, CONCURRENCY));
    if let Some(Checked { config, notes }) = checked {
        for note in &notes {
            say(app, &lines::note(note));
        }
        worker = DispatchWorker::new(limits(options, config.concurrency))
            .keeping(config.keep_deliveries);
        endpoints.are(names(&config));
        let address = options.listen.unwrap_or(config.listen);
        let config = LiveConfig::new(config);
        let listening = listen(address, config.clone(), endpoints.clone())?;
        let at = listening.address.to_string();
        say(app, &lines::listening(&at));
        server = Some(listening);
        worker = worker.with(ForgeWorkers::start(&config)?);
        live = Some(config);
    }
    let address = server.as_ref().map(|server| server.address);
    let file = live.as_ref().map(|live| live.now().file.clone());
    let note = dispatchers::note(&context, address, file.as_deref())?;
    worker = worker.noting(endpoints.clone(), note);
    if server.is_none() {
        say(app, &lines::without_webhooks());
    }
    // A terminal that closes ends what was started in it.
    let reloads = live.filter(|_| !std::io::stdout().is_terminal());
    let mut report = |report: Report| say(app, &ReportLine::of(&report));
    let worked = loop {
        let worked = worker.work(&mut context, &mut report);
        match (&worked, &reloads) {
            (Ok(signal), Some(live)) if *signal == HANGUP => {
                let fault = reload(options, live, &endpoints, &mut worker);
                let fault = fault.err().map(|error| error.problem.message);
                say(app, &lines::reloaded(fault.as_deref()));
            }
            _ => break worked,
        }
    };
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

const HANGUP: i32 = rustix::process::Signal::HUP.as_raw();

fn limits(options: &WorkArgs, concurrency: u32) -> Limits {
    Limits {
        concurrency: options.concurrency.unwrap_or(concurrency) as usize,
    }
}

fn names(config: &Config) -> impl Iterator<Item = String> {
    config.forges.iter().map(|forge| forge.name.clone())
}

/// Reads the file again. If it has a fault, everything stays as it was. The address stays in any case.
fn reload(
    options: &WorkArgs,
    live: &LiveConfig,
    endpoints: &Endpoints,
    worker: &mut DispatchWorker,
) -> Result<(), CliError> {
    let Some(Checked { config, .. }) = load_if_any(&options.file)? else {
        let hint = Hint::step("put the file back, then send SIGHUP again");
        let message = "the file is gone";
        return Err(CliError::new(Class::NotFound, "no_file", message, hint));
    };
    let (limits, keeps) = (limits(options, config.concurrency), config.keep_deliveries);
    endpoints.are(names(&config));
    live.replace(config);
    Ok(worker.reload(limits, keeps)?)
}

fn say(app: &App, said: &ReportLine) {
    let line = if app.style.json {
        said.for_programs.to_string()
    } else {
        said.for_people.clone()
    };
    put(Lines::from(line).as_str()).ignore("nobody reads it any more; the queue goes on");
}
