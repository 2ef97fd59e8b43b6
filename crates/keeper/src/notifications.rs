//! The process beside the keeper that notifies the user of what happens to the sessions of this machine.
//!
//! It looks for itself, so nothing that it does holds up the keeper, and it runs only while a channel is configured.
//! *Crash*: it is started again. It ends with the keeper, which is the reader of its output.

use std::io;
use std::path::Path;
use std::process::Child;
use std::thread::Builder;
use std::time::Duration;

use tenure_app::keeper::order::KeeperOrder;
use tenure_app::settings::Settings;
use tenure_app::settings::notify::NotifyChannel;
use tenure_core::ignore::Ignore;
use tenure_host::pause;

/// Starts that process for a store and a state directory.
pub type StartNotifier = fn(&str, &Path) -> io::Result<Child>;

/// How often the keeper looks whether a channel is configured, or the process has ended.
const EVERY: Duration = Duration::from_secs(15);

/// Keeps that process running until this one ends.
pub(super) fn keep(order: &KeeperOrder, start: StartNotifier) -> io::Result<()> {
    let (store, dir) = (order.store.clone(), order.dir.clone());
    let run = move || loop {
        if is_wanted()
            && let Ok(mut child) = start(&store, &dir)
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
