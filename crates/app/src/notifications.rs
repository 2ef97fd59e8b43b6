//! The process beside a keeper or a dashboard's server that notifies the user of what happens to the sessions of this
//! machine.
//!
//! It looks for itself, so nothing that it does holds up the process beside which it runs, and it runs only while a
//! channel is configured. *Crash*: it is started again. It ends with that process, which is the reader of its output.

use std::io;
use std::path::Path;
use std::process::Child;
use std::thread::Builder;
use std::time::Duration;

use tenure_core::ignore::Ignore;
use tenure_host::pause;

use crate::settings::Settings;
use crate::settings::notify::NotifyChannel;

/// Starts that process for a store, if the settings name one, and a state directory.
pub type StartNotifier = fn(Option<&str>, &Path) -> io::Result<Child>;

/// How often it is looked whether a channel is configured, or the process has ended.
const EVERY: Duration = Duration::from_secs(15);

/// Keeps that process running until this one ends.
pub fn keep(store: Option<&str>, dir: &Path, start: StartNotifier) -> io::Result<()> {
    let (store, dir) = (store.map(str::to_owned), dir.to_owned());
    let run = move || loop {
        if is_wanted()
            && let Ok(mut child) = start(store.as_deref(), &dir)
        {
            child.wait().ignore("it is started again");
        }
        pause::sleep(EVERY);
    };
    let thread = Builder::new().name("notifications".to_owned());
    thread.spawn(run).map(drop)
}

fn is_wanted() -> bool {
    let is_its = |channel: &NotifyChannel| !channel.needs_terminal();
    Settings::of_user().is_ok_and(|settings| settings.notify.iter().any(is_its))
}
