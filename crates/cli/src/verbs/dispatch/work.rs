//! Working the queue in the foreground: a line for each thing that happens.

use std::net::SocketAddr;
use std::sync::Arc;

use tenure_app::dispatch::clerk::Clerks;
use tenure_app::dispatch::{Checked, running};
use tenure_app::queue::{Report, Worker};
use tenure_core::queue::choose::Limits;
use tenure_server::listen;

use super::lines::{self, Said};
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
    let mut file = None;
    let mut clerks = None;
    if let Some(Checked { config, notes }) = checked {
        for note in &notes {
            say(app, &lines::note(note));
        }
        concurrency = config.concurrency;
        keeps = Some(config.keep_deliveries);
        file = Some(config.file.clone());
        let address = options.listen.unwrap_or(config.listen);
        let config = Arc::new(config);
        let listening = listen(address, config.clone())?;
        let at = listening.address.to_string();
        say(app, &lines::listening(&at));
        server = Some(listening);
        clerks = Some(Clerks::start(&config)?);
    }
    let address = server.as_ref().map(|server| server.address);
    let _note = running::note(&context, address, file.as_deref())?;
    if server.is_none() {
        say(app, &lines::without_webhooks());
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
    let mut report = |report: Report| say(app, &Said::of(&report));
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
