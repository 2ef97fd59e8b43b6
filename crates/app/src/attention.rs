//! What needs attention on this machine: missed events, a log that grows.

use std::path::Path;

use tenure_host::log_readers;

use crate::open::Context;
use crate::outage;

/// All warnings, one sentence each.
pub fn warnings(context: &mut Context) -> Vec<String> {
    let log = long_log(&context.service().location());
    outage::lately(context.dir())
        .into_iter()
        .chain(log)
        .collect()
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
    let readers = log_readers::of(Path::new(&index));
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
