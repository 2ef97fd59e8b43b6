//! Starting a keeper: a starter, its parent, and the keeper itself.
//!
//! *Crash* at any step: the lock is released with the last process that holds it, and the next command starts again.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt;
use tenure_core::id::Ticket;
use tenure_core::ignore::Ignore;
use tenure_core::time::Timestamp;
use tenure_core::world::World;
use tenure_host::kernel_lock::Sharing;
use tenure_host::machine::Machine;
use tenure_host::{clock, env, peer};

use super::ask::{ANSWERS_WITHIN, connect};
use super::files::KeeperFiles;
use super::order::KeeperOrder;
use super::wire::{KeeperCommand, Response, receive, send};
use crate::settings::Settings;
use crate::store_place::StorePlace;

/// What a keeper inherits from the environment of the command that starts it: how to reach the store, and nothing of an
/// agent.
const KEPT: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "PATH",
    "TZ",
    "LANG",
    "LC_ALL",
    "XDG_CONFIG_HOME",
    "PGPASSWORD",
    "PGPASSFILE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// How large its log may get before it is started anew.
const MAX_LOG: u64 = 1 << 20;

/// Which of the processes this one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Starter,
    Parent,
    Keeper,
}

impl Stage {
    fn word(self) -> &'static str {
        match self {
            Stage::Starter => "start",
            Stage::Parent => "parent",
            Stage::Keeper => "keep",
        }
    }

    pub fn of(word: &str) -> Option<Self> {
        [Stage::Starter, Stage::Parent, Stage::Keeper]
            .into_iter()
            .find(|stage| stage.word() == word)
    }
}

/// How often a process that stays looks whether the keeper is there.
const LOOKS_EVERY: Duration = Duration::from_secs(5);

/// A connection that tells the keeper to look around when it ends.
#[derive(Debug)]
pub struct Tells {
    stream: UnixStream,
}

impl Tells {
    /// Whether the keeper is still on the other side. It says nothing here.
    fn is_heard(&self) -> bool {
        peer::is_silent(&self.stream)
    }
}

/// A connection over which the keeper says when it may be a waiter's turn.
#[derive(Debug)]
pub struct Turns {
    stream: UnixStream,
    ticket: Ticket,
}

impl Turns {
    /// Whether it is for this waiter, and the keeper is still there.
    pub fn is_for(&self, ticket: Ticket) -> bool {
        self.ticket == ticket && !peer::has_left(&self.stream)
    }

    /// The same connection, to be woken by.
    pub fn stream(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }
}

/// The keeper as a process that stays knows it.
#[derive(Debug)]
pub struct KeeperHandle {
    place: StorePlace,
    tells: Option<Tells>,
    looked: Instant,
    /// Since when it is not there, although it was started.
    missing_since: Option<Timestamp>,
}

impl KeeperHandle {
    /// Makes sure that a keeper runs; none if the store needs none.
    pub fn start(settings: &Settings, place: &StorePlace, machine: &Machine) -> Option<Self> {
        place.server().filter(|_| settings.keeper)?;
        Some(Self {
            tells: ensure(settings, place, machine),
            place: place.clone(),
            looked: clock::instant(),
            missing_since: None,
        })
    }

    /// Asks it to say when it may be a waiter's turn; none if it does not answer.
    pub fn turns(&self, machine: &Machine, ticket: Ticket) -> Option<Turns> {
        let files = KeeperFiles::of(self.place.dir(), &self.place.shown(), machine.observer());
        let stream = connect(&files).ok()?;
        let ask = KeeperCommand::Wait { ticket: ticket.0 };
        send(&stream, ask, ANSWERS_WITHIN).ok()?;
        match receive(&stream, ANSWERS_WITHIN).ok()? {
            Response::Accepted => Some(Turns { stream, ticket }),
            _ => None,
        }
    }

    /// Starts it again if it is gone.
    pub fn look_after(&mut self, settings: &Settings, machine: &Machine) {
        let now = clock::instant();
        if now.duration_since(self.looked) < LOOKS_EVERY {
            return;
        }
        self.looked = now;
        if self.tells.as_ref().is_some_and(Tells::is_heard) {
            self.missing_since = None;
        } else {
            self.missing_since = self.missing_since.or_else(|| Some(clock::wall()));
            self.tells = ensure(settings, &self.place, machine);
        }
    }

    /// Since when it is not there; one that was just started is, soon.
    pub fn missing_since(&self) -> Option<Timestamp> {
        self.missing_since
    }
}

/// Makes sure that a keeper runs, if the store needs one. Nothing waits for it, and a failure is not the caller's: the
/// session lives by its own lease.
pub fn ensure(settings: &Settings, place: &StorePlace, machine: &Machine) -> Option<Tells> {
    let order = KeeperOrder::of(settings, place).filter(|_| settings.keeper)?;
    let files = KeeperFiles::of(&order.dir, &place.shown(), machine.observer());
    let told = connect(&files).and_then(|stream| {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        send(
            &stream,
            KeeperCommand::LookAfterwards { version },
            ANSWERS_WITHIN,
        )?;
        Ok(Tells { stream })
    });
    match told {
        Ok(tells) => Some(tells),
        Err(_) => {
            start(&files, &order)
                .ignore("another command is faster, or nothing can be started here");
            None
        }
    }
}

/// Starts a keeper, if none holds the lock.
pub fn start(files: &KeeperFiles, order: &KeeperOrder) -> io::Result<()> {
    files.make()?;
    let lock = files
        .locks()?
        .try_lock(&files.lock_name()?, Sharing::Exclusive);
    let lock = lock.map_err(io::Error::other)?;
    lock.pass_on()?;
    let number = lock.as_fd().as_raw_fd();
    let mut starter = command(Stage::Starter, number)?
        .stderr(std::fs::File::from(log(&files.log())?))
        .spawn()?;
    // Only the processes that it starts hold the lock now.
    drop(lock);
    if let Some(mut pipe) = starter.stdin.take() {
        order.write(&mut pipe)?;
    }
    starter.wait().map(drop)
}

fn log(path: &Path) -> io::Result<fs_err::File> {
    let is_long = fs_err::symlink_metadata(path).is_ok_and(|found| found.len() > MAX_LOG);
    fs_err::OpenOptions::new()
        .append(!is_long)
        .write(true)
        .truncate(is_long)
        .create(true)
        .mode(0o600)
        .open(path)
}

/// This program at a stage, with an environment of its own.
pub fn command(stage: Stage, lock: RawFd) -> io::Result<Command> {
    let mut command = Command::new(env::installed()?);
    command
        .args(["__keeper", stage.word(), "--lock", &lock.to_string()])
        .env_clear()
        .envs(KEPT.iter().filter_map(|name| Some((name, env::var(name)?))))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    Ok(command)
}
