//! Removing old events from the log.
//!
//! A command does it when it opens the store, for some milliseconds; the next command goes on. On a store
//! of this machine, finding that nothing is old is one read of one row. A server is asked at most once an hour. Hooks
//! never do it.
//!
//! *Crash*: each batch is a transaction. *Clock jump*: a clock that is set far ahead removes events early, except the
//! newest; no rule reads the log.

use std::path::Path;
use std::time::{Duration, SystemTime};

use tenure_core::ignore::Ignore;
use tenure_host::{clock, file};
use tenure_service::Service;

const EVERY: Duration = Duration::from_secs(3600);
/// How long removing may take.
const MAX_TIME: Duration = Duration::from_millis(10);
/// Its modification time is that of the last complete removal on a server.
const MARKER: &str = "events-swept";

/// Removes events that need not be stored any more; `shared` is the state directory if the store is on a server.
pub(crate) fn sweep(service: &mut Service<'_>, shared: Option<&Path>) {
    let marker = shared.map(|dir| dir.join(MARKER));
    let is_new = |at: SystemTime| at.elapsed().is_ok_and(|age| age < EVERY);
    let swept = marker.as_ref().map(fs_err::metadata);
    let swept = swept.and_then(|found| found.and_then(|found| found.modified()).ok());
    if swept.is_some_and(is_new) {
        return;
    }
    let until = clock::instant() + MAX_TIME;
    while clock::instant() < until {
        match service.forget_events() {
            Ok(answer) if answer.value => {}
            Ok(_) => {
                if let Some(marker) = marker {
                    file::write_atomic(&marker, b"").ignore("the next command tries again");
                }
                return;
            }
            // The command itself reports a store that cannot be used.
            Err(_) => return,
        }
    }
}
