//! Which dispatchers are running: each leaves a note in the state directory.
//!
//! A note identifies its process completely, not only by pid, and counts only while exactly that
//! process is alive. *Crash*: the note stays, and the next reader removes it once the process is
//! proved dead; a reused pid is another process. *Reboot*: the same. *Older version*: it leaves no
//! note and is not found.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tenure_core::dispatch::endpoint::EndpointState;
use tenure_core::ignore::Ignore;
use tenure_core::liveness::{Liveness, judge};
use tenure_core::process::Process;
use tenure_core::world::World;
use tenure_host::{file, process, read};
use tenure_service::answer::{Class, Hint, Problem};

use crate::open::Context;

const MAX_LENGTH: u64 = 64 << 10;
const DIR: &str = "dispatchers";

/// A dispatcher that is, or may be, alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningDispatcher {
    pub process: Process,
    /// Where it listens for webhooks.
    pub address: Option<SocketAddr>,
    /// Its dispatch.toml.
    pub config: Option<PathBuf>,
    /// What arrived at its endpoints.
    #[serde(default)]
    pub endpoints: BTreeMap<String, EndpointState>,
    /// Forges that do not answer as they should, each with the reason.
    #[serde(default)]
    pub failing: BTreeMap<String, String>,
    /// Why it is unknown from here whether it is alive; none if it is known.
    #[serde(skip)]
    pub doubt: Option<String>,
}

/// A note, removed when its dispatcher ends.
#[derive(Debug)]
pub struct Note {
    path: PathBuf,
    told: RunningDispatcher,
}

impl Note {
    /// Writes what changed for other processes to read.
    pub fn update(
        &mut self,
        endpoints: BTreeMap<String, EndpointState>,
        failing: &BTreeMap<String, String>,
    ) {
        if endpoints == self.told.endpoints && *failing == self.told.failing {
            return;
        }
        self.told.endpoints = endpoints;
        self.told.failing.clone_from(failing);
        let written = serde_json::to_vec(&self.told).map_err(io::Error::from);
        written
            .and_then(|bytes| file::write_atomic(&self.path, &bytes))
            .ignore("the next change is written again");
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    file::remove(path).ignore("the next reader finds its process dead");
}

/// Notes that this process is a dispatcher.
pub fn note(
    context: &Context,
    address: Option<SocketAddr>,
    config: Option<&Path>,
) -> Result<Note, Problem> {
    let written = || -> io::Result<Note> {
        let own = process::identify(std::process::id(), context.machine().observer());
        let own = own.map_err(|error| io::Error::other(error.to_string()))?;
        let dir = context.dir().join(DIR);
        file::make_dirs(&dir)?;
        let path = dir.join(format!("{}-{}", own.pid, own.start.ticks));
        let note = RunningDispatcher {
            process: own,
            address,
            config: config.map(whole),
            endpoints: BTreeMap::new(),
            failing: BTreeMap::new(),
            doubt: None,
        };
        file::write_atomic(&path, &serde_json::to_vec(&note)?)?;
        Ok(Note { path, told: note })
    };
    written().map_err(|error| {
        let message = format!("cannot note in the state directory that a dispatcher runs: {error}");
        let hint = Hint::step("make the state directory writable, then start it again");
        Problem::new(Class::Internal, "internal", message, hint)
    })
}

/// The canonical path of a file.
pub fn whole(file: &Path) -> PathBuf {
    fs_err::canonicalize(file).unwrap_or_else(|_| file.to_owned())
}

/// What somebody should know of the dispatchers of this state directory, one sentence each.
pub fn warnings(context: &Context) -> Vec<String> {
    let mut told = Vec::new();
    for one in find(context) {
        for (name, state) in &one.endpoints {
            let why = state.complaint();
            told.extend(why.map(|why| format!("webhooks of forge {name}: {why}")));
        }
    }
    told
}

/// The dispatchers of this state directory.
pub fn find(context: &Context) -> Vec<RunningDispatcher> {
    let dir = context.dir().join(DIR);
    let Ok(entries) = fs_err::read_dir(dir) else {
        return Vec::new();
    };
    let mut found: Vec<RunningDispatcher> = entries
        .flatten()
        .filter_map(|entry| of_note(context, &entry.path()))
        .collect();
    found.sort_by_key(|one| one.process.pid);
    found
}

fn of_note(context: &Context, path: &Path) -> Option<RunningDispatcher> {
    let bytes = read::whole(path, MAX_LENGTH).ok()?;
    let mut note: RunningDispatcher = serde_json::from_slice(&bytes).ok()?;
    let machine = context.machine();
    let seen = machine.look(note.process.pid);
    match judge(&note.process, machine.observer(), &seen) {
        Liveness::Alive => Some(note),
        Liveness::Dead(_) => {
            remove(path);
            None
        }
        Liveness::Unknown(doubt) => {
            note.doubt = Some(doubt.to_string());
            Some(note)
        }
    }
}
