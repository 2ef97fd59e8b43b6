//! Working the queue in the foreground: a line for each thing that happens.

use std::io::IsTerminal;
use std::net::SocketAddr;

use tenure_app::dispatch::clerk::Clerks;
use tenure_app::dispatch::endpoints::Endpoints;
use tenure_app::dispatch::live::LiveConfig;
use tenure_app::dispatch::{Checked, Config, running};
use tenure_app::queue::{Report, Worker};
use tenure_core::queue::choose::Limits;
use tenure_server::listen;
use tenure_service::answer::{Class, Hint};

use super::lines::{self, Said};
use super::settings_file::SettingsFile;
use crate::app::App;
use crate::child::signal_exit;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output, put};

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
    // A SIGHUP that arrives while this starts must not end it.
    if tenure_host::watch::catch_signals().is_err() {
        // The worker tries again, and says it.
    }
    let checked = options.file.load_if_any()?;
    let mut context = app.open()?;
    let endpoints = Endpoints::default();
    let mut live = None;
    let mut server = None;
    let mut worker = Worker::new(limits(options, CONCURRENCY));
    if let Some(Checked { config, notes }) = checked {
        for note in &notes {
            say(app, &lines::note(note));
        }
        worker = Worker::new(limits(options, config.concurrency)).keeping(config.keep_deliveries);
        endpoints.are(names(&config));
        let address = options.listen.unwrap_or(config.listen);
        let config = LiveConfig::new(config);
        let listening = listen(address, config.clone(), endpoints.clone())?;
        let at = listening.address.to_string();
        say(app, &lines::listening(&at));
        server = Some(listening);
        worker = worker.with(Clerks::start(&config)?);
        live = Some(config);
    }
    let address = server.as_ref().map(|server| server.address);
    let file = live.as_ref().map(|live| live.now().file.clone());
    let note = running::note(&context, address, file.as_deref())?;
    worker = worker.noting(endpoints.clone(), note);
    if server.is_none() {
        say(app, &lines::without_webhooks());
    }
    // A terminal that closes ends what was started in it.
    let reloads = live.filter(|_| !std::io::stdout().is_terminal());
    let mut report = |report: Report| say(app, &Said::of(&report));
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

fn limits(options: &Options, concurrency: u32) -> Limits {
    Limits {
        concurrency: options.concurrency.unwrap_or(concurrency) as usize,
    }
}

fn names(config: &Config) -> impl Iterator<Item = String> {
    config.forges.iter().map(|forge| forge.name.clone())
}

/// Reads the file again. If it has a fault, everything stays as it was. The address stays in any case.
fn reload(
    options: &Options,
    live: &LiveConfig,
    endpoints: &Endpoints,
    worker: &mut Worker,
) -> Result<(), CliError> {
    let Some(Checked { config, .. }) = options.file.load_if_any()? else {
        let hint = Hint::step("put the file back, then send SIGHUP again");
        let message = "the file is gone";
        return Err(CliError::new(Class::NotFound, "no_file", message, hint));
    };
    let (limits, keeps) = (limits(options, config.concurrency), config.keep_deliveries);
    endpoints.are(names(&config));
    live.replace(config);
    Ok(worker.reload(limits, keeps)?)
}

fn say(app: &App, said: &Said) {
    let line = if app.style.json {
        said.for_programs.to_string()
    } else {
        said.for_people.clone()
    };
    if put(Lines::from(line).as_str()).is_err() {
        // Nobody reads it any more; the queue goes on.
    }
}
