//! Where state is kept, and opening what is there: the one place that knows which backend a location names.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tenure_core::process::Observer;
use tenure_core::store::Store;
use tenure_host::kernel_lock::LockDir;
use tenure_host::machine::Machine;
use tenure_host::state_dir::{StateDir, StateDirError};
use tenure_host::{clock, cwd};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_store::{Patience, SqliteStore};

use crate::place;
use crate::settings::Settings;
use tenure_host::env::var as env;

/// The name of the database in the state directory.
const DATABASE: &str = "tenure.db";
/// The name of the directory of locks in it.
const LOCKS: &str = "locks";

/// The file of the store that the settings name.
pub fn store_file(settings: &Settings) -> Result<PathBuf, Problem> {
    let default = StateDir::locate(&env).map_err(state_problem);
    let Some(named) = &settings.store else {
        return Ok(default?.join(DATABASE));
    };
    if env("TENURE_TEST").is_some_and(|value| value == "1") {
        default?;
    }
    named_file(named)
}

fn named_file(named: &str) -> Result<PathBuf, Problem> {
    if let Some((scheme, _)) = named.split_once("://") {
        let message = format!("this version of tenure supports only SQLite stores, not {scheme}");
        return Err(unavailable(message, "set store to a file path"));
    }
    let path = PathBuf::from(named);
    if path.is_absolute() {
        return Ok(path);
    }
    let relative = || {
        let message = format!(
            "the store {named} is a relative path, and the current directory no longer exists"
        );
        let hint = "change to a directory that exists, or set store to an absolute path";
        unavailable(message, hint)
    };
    Ok(cwd::current().ok_or_else(relative)?.join(path))
}

/// Opens a store, with news about it for the person, if any. Anything not done by `until` fails as busy.
pub fn open_store(
    file: &Path,
    observer: &Observer,
    until: Option<Instant>,
) -> Result<(Box<dyn Store>, Option<String>), Problem> {
    let boot = observer.boot.clone();
    let limit = until.map(|until| Patience {
        until,
        pause: tenure_host::pause::sleep,
    });
    let mut store = SqliteStore::open_until(file, Box::new(move || clock::now(&boot)), limit)?;
    let news = store.take_news();
    Ok((Box::new(store), news))
}

/// Whether a store was never made, or was removed whole.
pub fn is_absent(file: &Path) -> bool {
    SqliteStore::is_absent(file)
}

/// An empty store for a caller that reads before a store exists; creates nothing.
pub fn empty_store(file: &Path, observer: &Observer) -> Result<Box<dyn Store>, Problem> {
    let boot = observer.boot.clone();
    let store = SqliteStore::standing_for(file, Box::new(move || clock::now(&boot)))?;
    Ok(Box::new(store))
}

/// Whether nothing has this name. If that cannot be checked, something may; opening it then reports the reason.
pub fn is_missing(path: &Path) -> bool {
    let found = fs_err::symlink_metadata(path);
    found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

fn dir_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

/// The directory of a store's file, created if missing.
pub fn state_dir_of(file: &Path) -> Result<StateDir, Problem> {
    StateDir::open(dir_of(file)).map_err(state_problem)
}

/// The same for a caller that only reads: creates nothing.
pub fn peeked_state_dir_of(file: &Path) -> Result<StateDir, Problem> {
    StateDir::peek(dir_of(file)).map_err(state_problem)
}

/// Creates the state directory if missing; returns its path in that case.
pub fn make_state_dir() -> Result<Option<PathBuf>, Problem> {
    make_dir_of(&settings_and_store()?.1).map(|(_, made)| made)
}

/// The directory of a store's file, and its path if it was missing.
pub fn make_dir_of(file: &Path) -> Result<(StateDir, Option<PathBuf>), Problem> {
    let was_missing = is_missing(dir_of(file));
    let state = state_dir_of(file)?;
    let made = was_missing.then(|| state.path().to_owned());
    Ok((state, made))
}

/// Where the state directory is, whether or not it can be used.
pub fn state_path() -> Option<PathBuf> {
    let settings = Settings::of_user().ok()?;
    Some(store_file(&settings).ok()?.parent()?.to_owned())
}

/// The settings of this directory, and the store's file, which they then show.
pub fn settings_and_store() -> Result<(Settings, PathBuf), Problem> {
    let worktree = place::worktree_here();
    let mut settings = Settings::of_project(worktree.as_ref().map(|found| found.root.as_path()))?;
    let file = store_file(&settings)?;
    if settings.store.is_none() {
        let origin = if env("TENURE_HOME").is_some_and(|home| !home.is_empty()) {
            "TENURE_HOME"
        } else {
            "default"
        };
        settings.show("store", file.display().to_string(), origin);
    }
    Ok((settings, file))
}

/// This machine, as its state directory knows it.
pub fn machine_of(state: &StateDir) -> Result<Machine, Problem> {
    Machine::new(state.host().clone()).map_err(|error| {
        let message = format!("cannot read the process table: {error}");
        let hint = Hint::step("mount /proc, which tenure needs");
        Problem::new(Class::Internal, "internal", message, hint)
    })
}

/// The same where no store is needed.
pub fn machine() -> Result<Machine, Problem> {
    machine_of(&state_dir_of(&settings_and_store()?.1)?)
}

/// The locks of the state directory.
pub fn locks() -> Result<LockDir, Problem> {
    lock_dir(&state_dir_of(&settings_and_store()?.1)?)
}

/// The same for a caller that only reads; none if nothing was ever locked.
pub fn locks_if_any() -> Result<Option<LockDir>, Problem> {
    let state = peeked_state_dir_of(&settings_and_store()?.1)?;
    if is_missing(&state.path().join(LOCKS)) {
        Ok(None)
    } else {
        lock_dir(&state).map(Some)
    }
}

fn lock_dir(state: &StateDir) -> Result<LockDir, Problem> {
    LockDir::open(&state.path().join(LOCKS)).map_err(|error| {
        let hint = Hint::run("config", [""; 0], "to see where tenure stores its state");
        Problem::new(Class::Store, "store_unavailable", error.to_string(), hint)
    })
}

fn unavailable(message: String, hint: &str) -> Problem {
    Problem::new(Class::Store, "store_unavailable", message, Hint::step(hint))
}

#[allow(clippy::needless_pass_by_value)] // for map_err
fn state_problem(error: StateDirError) -> Problem {
    unavailable(error.to_string(), &error.hint())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_refused_by_its_scheme_and_shows_no_password() {
        let refused = named_file("postgres://ann:secret@db/tenure").unwrap_err();
        assert_eq!(
            (refused.class, refused.kind.as_str()),
            (Class::Store, "store_unavailable")
        );
        assert!(
            refused.message.ends_with("not postgres"),
            "{}",
            refused.message
        );
        assert_eq!(named_file("/srv/a.db").unwrap(), Path::new("/srv/a.db"));
    }
}
