//! What people see of the keepers.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use tenure_core::world::World;
use tenure_service::answer::Problem;
use tenure_service::view::KeeperView;

use super::ask::{self, KeeperStop};
use super::away::is_away;
use super::files::KeeperFiles;
use super::wire::KeeperStatus;
use crate::location::place_of_server;
use crate::location::{StorePlace, machine_of, peeked_state_dir_of, settings_and_store};
use crate::open::{Purpose, open};

/// The keepers of a store.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct KeeperReport {
    /// Whether the store needs keepers; a store in a file does not.
    pub needed: bool,
    /// The keeper of this machine, if one runs.
    pub local: Option<KeeperStatus>,
    /// All keepers that the store knows, the one that reported last first.
    pub keepers: Vec<KeeperView>,
    /// Why the store could not be asked, if so.
    pub store_problem: Option<String>,
}

/// The files of the keeper here; none if the store needs no keeper.
fn files_here() -> Result<Option<KeeperFiles>, Problem> {
    let (_, place) = settings_and_store()?;
    if place.server().is_none() {
        return Ok(None);
    }
    files_of(&place).map(Some)
}

fn files_of(place: &StorePlace) -> Result<KeeperFiles, Problem> {
    let machine = machine_of(&peeked_state_dir_of(place)?)?;
    Ok(KeeperFiles::of(
        place.dir(),
        &place.shown(),
        machine.observer(),
    ))
}

/// What the keeper for a store says about itself, whatever the settings here name; none if none runs.
pub fn status_at(store: &str, dir: &Path) -> Result<Option<KeeperStatus>, Problem> {
    ask::status(&files_of(&place_of_server(store, dir)?)?)
}

/// Ends that keeper.
pub fn stop_at(store: &str, dir: &Path) -> Result<KeeperStop, Problem> {
    ask::stop(&files_of(&place_of_server(store, dir)?)?)
}

/// The keeper of this machine, and those of the others.
pub fn report() -> Result<KeeperReport, Problem> {
    let Some(files) = files_here()? else {
        return Ok(KeeperReport {
            needed: false,
            local: None,
            keepers: Vec::new(),
            store_problem: None,
        });
    };
    let local = ask::status(&files)?;
    let asked = open(Purpose::Look).and_then(|mut context| {
        let answer = context.service().keepers();
        answer.map(|answer| answer.value).map_err(Problem::from)
    });
    let (keepers, store_problem) = match asked {
        Ok(keepers) => (keepers, None),
        Err(problem) => (Vec::new(), Some(problem.message)),
    };
    Ok(KeeperReport {
        needed: true,
        local,
        keepers,
        store_problem,
    })
}

/// Ends the keeper of this machine.
pub fn stop_here() -> Result<KeeperStop, Problem> {
    match files_here()? {
        Some(files) => ask::stop(&files),
        None => Ok(KeeperStop::NotRunning),
    }
}

/// Adds to the error of a store that does not answer since when the keeper of this machine has had no answer.
pub fn say_since(problem: &mut Problem) {
    if !is_away(problem) {
        return;
    }
    let files = files_here().ok().flatten();
    let status = files.and_then(|files| ask::status(&files).ok().flatten());
    if let Some(since) = status.and_then(|status| status.away_since) {
        let said = format!("; the keeper of this machine has had no answer since {since}");
        problem.message.push_str(&said);
        problem
            .data
            .insert("since".to_owned(), since.to_string().into());
    }
}
