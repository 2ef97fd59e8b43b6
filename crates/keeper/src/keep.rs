//! The keeper's own process: takes the socket, starts the thread that speaks to the store, and answers.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;

use tenure_core::id::KeeperId;
use tenure_core::ignore::Ignore;
use tenure_core::world::World;
use tenure_host::kernel_lock::{LockError, Sharing};
use tenure_host::machine::Machine;
use tenure_host::state_dir::StateDir;
use tenure_host::{clock, file, peer};
use tenure_service::answer::{Class, Hint, Problem};

use super::events::{Events, Recording, Render};
use super::listener::{Listener, ListenerEnd};
use super::renewal::{Renewals, SharedState, beat, first_status};
use tenure_app::keeper::files::KeeperFiles;
use tenure_app::keeper::generation::Generations;
use tenure_app::keeper::order::KeeperOrder;
use tenure_app::keeper::through::greeting;
use tenure_app::location::{machine_of, place_of_server};
use tenure_app::notifications::{self, StartNotifier};
use tenure_app::server_store;
use tenure_app::store_place::StorePlace;

/// The exit code that asks the parent to execute the program again.
pub const MADE_WAY: u8 = 75;
/// The exit code of a crash.
const CRASHED: u8 = 70;

/// Keeps until it is asked to end; the lock was passed on to this process.
pub fn keep(order: &KeeperOrder, render: Render, notify: StartNotifier) -> u8 {
    match kept(order, true, render, notify) {
        Ok(ListenerEnd::Ended) => 0,
        Ok(ListenerEnd::MadeWay) => MADE_WAY,
        Err(problem) => {
            let line = format!("{} {}\n", clock::wall(), problem.message);
            io::stderr()
                .write_all(line.as_bytes())
                .ignore("there is no log");
            CRASHED
        }
    }
}

/// The same in this process, as a service manager starts it.
pub fn keep_here(
    settings: &tenure_app::settings::Settings,
    place: &StorePlace,
    render: Render,
    notify: StartNotifier,
) -> Result<(), Problem> {
    let order = KeeperOrder::of(settings, place).ok_or_else(|| {
        let message = "only a store on a server has a keeper; this one is a file".to_owned();
        let hint = Hint::step("set `store` in config.toml, then run `tenure keeper` again");
        Problem::new(Class::Usage, "no_keeper_needed", message, hint)
    })?;
    kept(&order, false, render, notify).map(drop)
}

/// Where the files of an order's keeper are.
pub(super) fn files_of(order: &KeeperOrder) -> Result<KeeperFiles, Problem> {
    let (place, machine) = whereabouts(order)?;
    let observer = machine.observer();
    Ok(KeeperFiles::of(&order.dir, &place.shown(), observer))
}

fn whereabouts(order: &KeeperOrder) -> Result<(StorePlace, Machine), Problem> {
    let place = place_of_server(&order.store, &order.dir)?;
    let state = StateDir::open(&order.dir).map_err(failed)?;
    Ok((place, machine_of(&state)?))
}

fn kept(
    order: &KeeperOrder,
    has_lock: bool,
    render: Render,
    notify: StartNotifier,
) -> Result<ListenerEnd, Problem> {
    let (place, machine) = whereabouts(order)?;
    let files = files_of(order)?;
    files.make().map_err(failed)?;
    let _lock = hold(&files, has_lock)?;
    let pass_on = server_store::relay(&place, greeting)?;
    let listener = bind(&files).map_err(failed)?;
    let id = KeeperId::mint(machine.random());
    let shared = SharedState::new(first_status(&id, &place.shown(), clock::wall()));
    let (tell, commands) = mpsc::channel();
    let (wake, woken) = UnixStream::pair().map_err(failed)?;
    let policy = order.policy();
    let known = shared.clone();
    let recording = Recording {
        place: place.clone(),
        machine: machine.clone(),
        policy,
        beat: beat(&policy),
        shared: shared.clone(),
        commands: tell.clone(),
        render,
        generations: Generations::begin(&files, &id).map_err(failed)?,
    };
    let events = Events::start(&recording).map_err(failed)?;
    drop(recording);
    notifications::keep(Some(&order.store), &order.dir, notify).map_err(failed)?;
    let thread = std::thread::Builder::new()
        .name("store".to_owned())
        .spawn(move || {
            let wake = || {
                (&wake).write_all(&[0]).ignore("the other thread has ended");
            };
            Renewals::new(place, machine, policy, id, known).run(&commands, wake);
        })
        .map_err(failed)?;
    let listener = Listener::new(listener, pass_on, woken, shared, tell, events, &policy);
    let mut listener = listener.map_err(failed)?;
    let closed = listener.run();
    // The row is removed before the socket: a client that finds no socket must find no row either.
    if closed.is_err() {
        listener.give_up();
    }
    if thread.join().is_err() {
        return Err(NotKept::StoreThread.into());
    }
    file::remove(&files.socket()).map_err(ended)?;
    drop(listener);
    closed.map_err(ended)
}

/// The lock, which was either passed on to this process or is free.
fn hold(
    files: &KeeperFiles,
    has_lock: bool,
) -> Result<Option<tenure_host::kernel_lock::HeldLock>, Problem> {
    let locks = files.locks().map_err(failed)?;
    let name = files.lock_name().map_err(failed)?;
    match (locks.try_lock(&name, Sharing::Exclusive), has_lock) {
        (Err(LockError::Nested { .. }), true) => Ok(None),
        (Ok(lock), false) => Ok(Some(lock)),
        (Err(LockError::Held { .. }), _) => {
            let message = "a keeper is already running for this store".to_owned();
            let hint = Hint::run("keeper", ["status"], "to see it");
            Err(Problem::new(
                Class::Refused,
                "keeper_running",
                message,
                hint,
            ))
        }
        (Ok(_), true) => Err(NotKept::NoLock.into()),
        (Err(error), _) => Err(failed(error)),
    }
}

/// Only the holder of the lock does this, so whatever has the name belongs to a keeper that is gone.
fn bind(files: &KeeperFiles) -> io::Result<std::os::unix::net::UnixListener> {
    use std::os::unix::fs::FileTypeExt;
    let path = files.socket();
    match fs_err::symlink_metadata(&path) {
        Ok(found) if found.file_type().is_socket() => fs_err::remove_file(&path)?,
        Ok(_) => {
            let why = format!("{} is not a socket; move it away", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = peer::listen(&path)?;
    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Why this process is no keeper, or no longer one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    #[error("the keeper did not start: {0}")]
    Failed(String),
    #[error("the keeper did not start: its lock was not passed on to it")]
    NoLock,
    #[error("the keeper ended: {0}")]
    Ended(String),
    #[error("the keeper ended: its thread that speaks to the store failed")]
    StoreThread,
}

impl From<NotKept> for Problem {
    fn from(error: NotKept) -> Self {
        let hint = Hint::run("keeper", ["status"], "to see whether one runs");
        Problem::new(Class::Refused, "keeper_failed", error.to_string(), hint)
    }
}

fn failed(why: impl std::fmt::Display) -> Problem {
    NotKept::Failed(why.to_string()).into()
}

fn ended(why: impl std::fmt::Display) -> Problem {
    NotKept::Ended(why.to_string()).into()
}
