//! What needs attention on this machine: missed events, a log that grows.

use std::path::Path;

use tenure_host::{read, system};

use crate::dispatchers;
use crate::location::store_place;
use crate::open::Context;
use crate::outage;
use crate::settings::notify::NotifyChannel;

/// The longest reason of a failed channel.
const MAX_FAULT: u64 = 4096;

/// All warnings, one sentence each.
pub fn warnings(context: &mut Context) -> Vec<String> {
    let log = long_log(&context.service().location());
    outage::lately(context.dir())
        .into_iter()
        .chain(log)
        .chain(other_store(context))
        .chain(dispatchers::warnings(context))
        .chain(failed_channels(context))
        .collect()
}

/// An agent that is started without TENURE_STORE uses another store than this caller.
pub fn other_store(context: &Context) -> Option<String> {
    let own = store_place(&context.settings).ok()?.shown();
    let filed = context.settings.as_filed()?;
    let filed = store_place(&filed).map_or_else(|_| "another store".to_owned(), |at| at.shown());
    (own != filed).then(|| {
        format!(
            "TENURE_STORE names {own}, but config.toml names {filed}; agents that are started without TENURE_STORE use \
             the second one"
        )
    })
}

/// Channels on which the last notification failed, until one succeeds.
fn failed_channels(context: &Context) -> Vec<String> {
    let failed = |channel: &NotifyChannel| {
        let file = format!("notify/{}.failed", channel.name);
        let why = read::text(&context.dir().join(file), MAX_FAULT).ok()?;
        let name = &channel.name;
        Some(format!("the notification channel {name} failed: {why}"))
    };
    context.settings.notify.iter().filter_map(failed).collect()
}

/// A log this long is no longer being truncated; it is usually below 1 MiB.
const LONG_LOG: u64 = 2 * 1024 * 1024;

/// A log that cannot be truncated, and the reader that prevents it.
fn long_log(store: &str) -> Option<String> {
    let length = fs_err::metadata(format!("{store}-wal")).ok()?.len();
    if length < LONG_LOG {
        return None;
    }
    let index = format!("{store}-shm");
    let readers = system::readers_of_log(Path::new(&index));
    let readers: Vec<String> = readers
        .into_iter()
        .map(|reader| format!("pid {} ({})", reader.pid, reader.name))
        .collect();
    let who = if readers.is_empty() {
        "a process in another pid namespace".to_owned()
    } else {
        readers.join(", ")
    };
    let mib = length / (1024 * 1024);
    Some(format!(
        "the store's write-ahead log has grown to {mib} MiB and cannot be truncated while {who} reads it"
    ))
}
