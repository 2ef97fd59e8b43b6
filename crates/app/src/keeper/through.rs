//! The way to the store through the keeper, which has a connection.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::world::World;
use tenure_host::clock;
use tenure_host::machine::Machine;
use tenure_store::server::{Through, Unreached};

use super::ask::{ANSWERS_WITHIN, connect};
use super::files::KeeperFiles;
use super::wire::{KeeperCommand, Response, receive, send};
use crate::store_place::StorePlace;

/// How a command of this machine reaches a store through its keeper; none if the store is not on a server.
pub fn through(place: &StorePlace, machine: &Machine) -> Option<Through> {
    place.server()?;
    let files = KeeperFiles::of(place.dir(), &place.shown(), machine.observer());
    Some(Through(Arc::new(move |until| {
        reach(&files, ANSWERS_WITHIN, until)
    })))
}

/// The same for the keeper itself, which has no other way: a second connection, made because the server is slow to
/// accept the first, would make the server slower.
pub fn through_itself(place: &StorePlace, machine: &Machine) -> Option<Through> {
    place.server()?;
    let files = KeeperFiles::of(place.dir(), &place.shown(), machine.observer());
    Some(Through(Arc::new(move |until| {
        let reached = reach(&files, Duration::MAX, until)?;
        let late = Unreached {
            code: None,
            why: None,
        };
        reached.ok_or(late).map(Some)
    })))
}

/// A connection through the keeper; none if no keeper answers within a time, or an older one.
fn reach(
    files: &KeeperFiles,
    patience: Duration,
    until: Instant,
) -> Result<Option<UnixStream>, Unreached> {
    let left = until.saturating_duration_since(clock::instant());
    let within = patience.min(left).max(Duration::from_millis(1));
    let Ok(stream) = connect(files) else {
        return Ok(None);
    };
    let asked = send(&stream, KeeperCommand::Store, within).and_then(|()| receive(&stream, within));
    match asked {
        Ok(Response::Reached) => Ok(Some(stream)),
        Ok(Response::Unreached { code, why }) => Err(Unreached { code, why }),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// What the keeper tells a command that asked for the store.
pub fn greeting(reached: Result<(), &Unreached>) -> Vec<u8> {
    let response = match reached {
        Ok(()) => Response::Reached,
        Err(Unreached { code, why }) => Response::Unreached {
            code: code.clone(),
            why: why.clone(),
        },
    };
    let mut line = serde_json::to_vec(&response).unwrap_or_default();
    line.push(b'\n');
    line
}
