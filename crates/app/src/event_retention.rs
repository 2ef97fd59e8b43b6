//! Removing old events from the log and, where `retention` is set, sessions that ended long ago.
//!
//! A command does it when it opens the store, for some milliseconds; the next command goes on. Without the setting a store
//! of this machine keeps everything, and one on a server its events for 90 days: nobody there feels responsible for what
//! all of them write. On a store of this machine, finding that nothing is old is one read of one row. A server is asked at
//! most once an hour. Hooks never do it.
//!
//! *Crash*: each batch is a transaction. *Clock jump*: a clock that is set far ahead removes events early, except the
//! newest; no rule reads the log.

use std::path::Path;
use std::time::{Duration, SystemTime};

use tenure_core::id::SessionId;
use tenure_core::ignore::Ignore;
use tenure_core::store::ClosedAt;
use tenure_core::time::Timestamp;
use tenure_host::{clock, file, read};
use tenure_service::Service;

const EVERY: Duration = Duration::from_secs(3600);
/// How long removing goes on; one batch is removed in any case.
const MAX_TIME: Duration = Duration::from_millis(10);
/// Its modification time is that of the last complete removal on a server.
const MARKER: &str = "events-swept";
/// The same of sessions.
const SESSIONS: &str = "sessions-swept";

/// Removes events that need not be stored any more; `shared` is the state directory if the store is on a server.
pub(crate) fn sweep(service: &mut Service<'_>, shared: Option<&Path>, age: Duration) {
    let marker = shared.map(|dir| dir.join(MARKER));
    if marker.as_deref().is_some_and(is_new) {
        return;
    }
    let set = Some(age).filter(|age| !age.is_zero());
    if set.is_none() && shared.is_none() {
        return;
    }
    // Otherwise the server's clock says what is old.
    let before = set.map(|age| clock::wall().minus(age));
    let until = clock::instant() + MAX_TIME;
    loop {
        match service.forget_events_before(before) {
            Ok(answer) if answer.value && clock::instant() < until => {}
            Ok(answer) if answer.value => return,
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

fn is_new(marker: &Path) -> bool {
    let swept = fs_err::metadata(marker).and_then(|found| found.modified());
    let is_new = |at: SystemTime| at.elapsed().is_ok_and(|age| age < EVERY);
    swept.is_ok_and(is_new)
}

/// Removes sessions that ended before that long and that nothing needs, some at a time, all of them at most once an hour; `dir` is the
/// state directory, where it is kept how far it came.
pub(crate) fn sweep_sessions(service: &mut Service<'_>, dir: &Path, age: Duration) {
    let marker = dir.join(SESSIONS);
    if age.is_zero() {
        return;
    }
    let mut after = read::text(&marker, 200).ok().and_then(|text| place(&text));
    // Where the last command stopped halfway, this one goes on.
    if after.is_none() && is_new(&marker) {
        return;
    }
    let before = clock::wall().minus(age);
    let until = clock::instant() + MAX_TIME;
    loop {
        // The command itself reports a store that cannot be used.
        let Ok(step) = service.forget_sessions(before, after, true) else {
            return;
        };
        after = step.value.next;
        if after.is_none() || clock::instant() >= until {
            break;
        }
    }
    let next = after.map_or_else(String::new, |(at, id)| format!("{} {id}", at.0));
    file::write_atomic(&marker, next.as_bytes()).ignore("the next command tries again");
}

fn place(text: &str) -> Option<ClosedAt> {
    let (at, id) = text.trim().split_once(' ')?;
    Some((Timestamp(at.parse().ok()?), SessionId::parse(id).ok()?))
}
