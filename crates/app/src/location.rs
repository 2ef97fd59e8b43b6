//! Where state is stored, and opening it. Only this module knows which backend a location names.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tenure_core::id::HostId;
use tenure_core::store::Store;
use tenure_core::world::World;
use tenure_host::kernel_lock::LockDir;
use tenure_host::machine::Machine;
use tenure_host::state_dir::{StateDir, StateDirError};
use tenure_host::{clock, cwd};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_store::server::{PostgresUrl, Through};
use tenure_store::{Patience, SqliteStore};

use crate::place;
use crate::server_store;
use crate::settings::{Env, Settings};
pub use crate::store_place::StorePlace;
use tenure_host::env::var as env;

/// The name of the database in the state directory.
const DATABASE: &str = "tenure.db";
/// The name of the lock directory in it.
const LOCKS: &str = "locks";

/// Whether the user's settings name a store on a server. Every hook asks, so as little as possible
/// is read.
pub fn names_server() -> bool {
    match env("TENURE_STORE").filter(|named| !named.is_empty()) {
        Some(named) => named.to_str().is_some_and(PostgresUrl::is_one),
        None if !Settings::may_name_server() => false,
        None => {
            let named = Settings::of_user().ok().and_then(|all| all.store);
            named.as_deref().is_some_and(PostgresUrl::is_one)
        }
    }
}

/// The place of the store that the settings name.
pub fn store_place(settings: &Settings) -> Result<StorePlace, Problem> {
    place_in(settings, &env)
}

/// The place of the store that a process with this environment uses, outside any project.
pub fn place_of(env: Env<'_>) -> Result<StorePlace, Problem> {
    place_in(&Settings::of_environment(env)?, env)
}

fn place_in(settings: &Settings, env: Env<'_>) -> Result<StorePlace, Problem> {
    let default = StateDir::locate(env).map_err(state_problem);
    let Some(named) = &settings.store else {
        return Ok(StorePlace::File(default?.join(DATABASE)));
    };
    if PostgresUrl::is_one(named) {
        let dir = default?;
        let url = PostgresUrl::parse(named).map_err(|error| named_problem(&error.to_string()))?;
        let url = Box::new(url);
        return Ok(StorePlace::Server { url, dir });
    }
    if env("TENURE_TEST").is_some_and(|value| value == "1") {
        default?;
    }
    named_file(named).map(StorePlace::File)
}

/// The settings name a store that cannot be.
pub(crate) fn named_problem(why: &str) -> Problem {
    let hint = "correct TENURE_STORE, or store in config.toml: postgres://USER@HOST:PORT/DATABASE";
    unavailable(why.to_owned(), hint)
}

/// The place that an argument names. Arguments can be seen by others, so it has no password.
pub fn argued_place(named: &str) -> Result<StorePlace, Problem> {
    if !PostgresUrl::is_one(named) {
        return named_file(named).map(StorePlace::File);
    }
    let hint = "name it as postgres://USER@HOST:PORT/DATABASE";
    let url = PostgresUrl::parse(named).map_err(|error| unavailable(error.to_string(), hint))?;
    if url.password.is_some() {
        let message = "a password in a command line can be seen by other users of this machine";
        let hint = Hint::step("use PGPASSWORD, PGPASSFILE or ?password_file=FILE instead");
        return Err(Problem::new(Class::Usage, "usage", message, hint));
    }
    let dir = StateDir::locate(&env).map_err(state_problem)?;
    let url = Box::new(url);
    Ok(StorePlace::Server { url, dir })
}

/// The error for a place where there is no store.
pub fn missing_store(place: &StorePlace) -> Option<Problem> {
    let message = format!("there is no store at {}", place.shown());
    let hint = "name the store that `tenure store status` shows";
    is_absent(place).then(|| unavailable(message, hint))
}

fn named_file(named: &str) -> Result<PathBuf, Problem> {
    if let Some((scheme, _)) = named.split_once("://") {
        let message = format!("a store is a file or a PostgreSQL database, not {scheme}");
        let hint = "set store to a file path or to postgres://USER@HOST/DATABASE";
        return Err(unavailable(message, hint));
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

/// Opens a store; also returns news about it for the person, if any. Anything that is not finished
/// by `until` fails as busy. `through` is a way to a server that others have opened.
pub fn open_store(
    place: &StorePlace,
    machine: &Machine,
    through: Option<Through>,
    until: Option<Instant>,
) -> Result<(Box<dyn Store>, Option<String>), Problem> {
    let file = match place {
        StorePlace::File(file) => file,
        StorePlace::Server { url, dir } => {
            let store = server_store::open(url, dir, machine.random(), through, until)?;
            return Ok((store, None));
        }
    };
    let boot = machine.observer().boot.clone();
    let limit = until.map(|until| Patience {
        until,
        pause: tenure_host::pause::sleep,
    });
    let mut store = SqliteStore::open_until(file, Box::new(move || clock::now(&boot)), limit)?;
    let news = store.take_news();
    Ok((Box::new(store), news))
}

/// Whether a store was never created, or was removed completely. For a store on a server, only
/// opening it can tell.
pub fn is_absent(place: &StorePlace) -> bool {
    match place {
        StorePlace::File(file) => SqliteStore::is_absent(file),
        StorePlace::Server { .. } => false,
    }
}

/// An empty store for a caller that reads before a store exists; creates nothing.
pub fn empty_store(place: &StorePlace, machine: &Machine) -> Result<Box<dyn Store>, Problem> {
    let boot = machine.observer().boot.clone();
    let shown = PathBuf::from(place.shown());
    let store = SqliteStore::standing_for(&shown, Box::new(move || clock::now(&boot)))?;
    Ok(Box::new(store))
}

/// Whether no file has this name. If that cannot be checked, one may; opening it then reports the
/// reason.
pub fn is_missing(path: &Path) -> bool {
    let found = fs_err::symlink_metadata(path);
    found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// The state directory of a store's users on this machine, created if missing.
pub fn state_dir_of(place: &StorePlace) -> Result<StateDir, Problem> {
    StateDir::open(place.dir()).map_err(state_problem)
}

/// The same for a store that takes the place of another one.
pub fn state_dir_instead(place: &StorePlace, other: &StorePlace) -> Result<StateDir, Problem> {
    StateDir::open_instead(place.dir(), other.dir()).map_err(state_problem)
}

/// The same for a caller that only reads: creates nothing.
pub fn peeked_state_dir_of(place: &StorePlace) -> Result<StateDir, Problem> {
    StateDir::peek(place.dir()).map_err(state_problem)
}

/// Creates the state directory if missing; returns its path in that case.
pub fn make_state_dir() -> Result<Option<PathBuf>, Problem> {
    make_dir_of(&settings_and_store()?.1).map(|(_, made)| made)
}

/// The state directory, and its path if it was missing.
pub fn make_dir_of(place: &StorePlace) -> Result<(StateDir, Option<PathBuf>), Problem> {
    let was_missing = is_missing(place.dir());
    let state = state_dir_of(place)?;
    let made = was_missing.then(|| state.path().to_owned());
    Ok((state, made))
}

/// The path of the state directory, whether or not it is usable; the usual one if the settings cannot be read.
pub fn state_path() -> Option<PathBuf> {
    let settings = Settings::of_user().unwrap_or_default();
    Some(store_place(&settings).ok()?.dir().to_owned())
}

/// The settings of this directory, and the location of the store, which is then shown in them.
pub fn settings_and_store() -> Result<(Settings, StorePlace), Problem> {
    let worktree = place::worktree_here();
    let mut settings = Settings::of_project(worktree.as_ref().map(|found| found.root.as_path()))?;
    let place = store_place(&settings)?;
    if place.server().is_some() {
        // Without the password.
        settings.show_value("store", place.shown());
    }
    if settings.store.is_none() {
        let origin = if env("TENURE_HOME").is_some_and(|home| !home.is_empty()) {
            "TENURE_HOME"
        } else {
            "default"
        };
        settings.show("store", place.shown(), origin);
    }
    Ok((settings, place))
}

/// This machine, as identified by its state directory.
pub fn machine_of(state: &StateDir) -> Result<Machine, Problem> {
    Machine::new(state.host().clone()).map_err(|error| {
        let message = format!("cannot read the process table: {error}");
        let hint = Hint::step("mount /proc, which tenure needs");
        Problem::new(Class::Internal, "internal", message, hint)
    })
}

/// The same if no store is needed.
pub fn machine() -> Result<Machine, Problem> {
    machine_of(&state_dir_of(&settings_and_store()?.1)?)
}

/// This machine, if the store is one that several use.
pub fn shared_host() -> Result<Option<HostId>, Problem> {
    let (_, place) = settings_and_store()?;
    if place.server().is_none() {
        return Ok(None);
    }
    Ok(Some(make_dir_of(&place)?.0.host().clone()))
}

/// This machine, for a caller that only reads.
pub fn peeked_machine() -> Result<Machine, Problem> {
    machine_of(&peeked_state_dir_of(&settings_and_store()?.1)?)
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

/// A file of the state directory cannot be written.
pub(crate) fn unwritable(error: &std::io::Error) -> Problem {
    let message = format!("cannot write to the state directory: {error}");
    let hint = "make room in it or correct its permissions, then run the same command again";
    unavailable(message, hint)
}

#[allow(clippy::needless_pass_by_value)] // for map_err
pub(crate) fn state_problem(error: StateDirError) -> Problem {
    unavailable(error.to_string(), &error.hint())
}

/// The place of a store on a server, with this state directory.
pub fn place_of_server(url: &str, dir: &Path) -> Result<StorePlace, Problem> {
    let url = PostgresUrl::parse(url).map_err(|error| named_problem(&error.to_string()))?;
    Ok(StorePlace::Server {
        url: Box::new(url),
        dir: dir.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_refused_by_its_scheme_and_shows_no_password() {
        let refused = named_file("mysql://ann:secret@db/tenure").unwrap_err();
        assert_eq!(
            (refused.class, refused.kind.as_str()),
            (Class::Store, "store_unavailable")
        );
        assert!(
            refused.message.ends_with("not mysql"),
            "{}",
            refused.message
        );
        assert_eq!(named_file("/srv/a.db").unwrap(), Path::new("/srv/a.db"));
    }
}
