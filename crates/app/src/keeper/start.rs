//! Starting a keeper: a starter, its parent, and the keeper itself.
//!
//! *Crash* at any step: the lock is released with the last process that holds it, and the next command starts again.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt;
use tenure_core::id::Ticket;
use tenure_core::world::World;
use tenure_host::kernel_lock::Sharing;
use tenure_host::machine::Machine;
use tenure_host::{clock, descriptors, env, pause, peer, secrecy};

use super::ask::{ANSWERS_WITHIN, connect};
use super::events::Render;
use super::files::KeeperFiles;
use super::keep::{MADE_WAY, files_of, keep};
use super::order::Order;
use super::wire::{Ask, Response, receive, send};
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
const LONGEST_LOG: u64 = 1 << 20;
/// How long a parent waits before it starts a keeper that crashed again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How often a parent that waits looks whether it should go on.
const SLICE: Duration = Duration::from_millis(100);
/// A keeper that ran this long did not crash because of how it was started.
const STEADY: Duration = Duration::from_secs(60);

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
pub struct Kept {
    place: StorePlace,
    tells: Option<Tells>,
    looked: Instant,
}

impl Kept {
    /// Makes sure that a keeper runs; none if the store needs none.
    pub fn start(settings: &Settings, place: &StorePlace, machine: &Machine) -> Option<Self> {
        place.server().filter(|_| settings.keeper)?;
        Some(Self {
            tells: ensure(settings, place, machine),
            place: place.clone(),
            looked: clock::instant(),
        })
    }

    /// Asks it to say when it may be a waiter's turn; none if it does not answer.
    pub fn turns(&self, machine: &Machine, ticket: Ticket) -> Option<Turns> {
        let files = KeeperFiles::of(self.place.dir(), &self.place.shown(), machine.observer());
        let stream = connect(&files).ok()?;
        let ask = Ask::Wait { ticket: ticket.0 };
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
        if !self.tells.as_ref().is_some_and(Tells::is_heard) {
            self.tells = ensure(settings, &self.place, machine);
        }
    }
}

/// Makes sure that a keeper runs, if the store needs one. Nothing waits for it, and a failure is not the caller's: the
/// session lives by its own lease.
pub fn ensure(settings: &Settings, place: &StorePlace, machine: &Machine) -> Option<Tells> {
    let order = Order::of(settings, place).filter(|_| settings.keeper)?;
    let files = KeeperFiles::of(&order.dir, &place.shown(), machine.observer());
    let told = connect(&files).and_then(|stream| {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        send(&stream, Ask::LookAfterwards { version }, ANSWERS_WITHIN)?;
        Ok(Tells { stream })
    });
    match told {
        Ok(tells) => Some(tells),
        Err(_) => {
            if start(&files, &order).is_err() {
                // Another command is faster, or nothing can be started here.
            }
            None
        }
    }
}

/// Starts a keeper, if none holds the lock.
pub(super) fn start(files: &KeeperFiles, order: &Order) -> io::Result<()> {
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
    let is_long = fs_err::symlink_metadata(path).is_ok_and(|found| found.len() > LONGEST_LOG);
    fs_err::OpenOptions::new()
        .append(!is_long)
        .write(true)
        .truncate(is_long)
        .create(true)
        .mode(0o600)
        .open(path)
}

/// This program at a stage, with an environment of its own.
fn command(stage: Stage, lock: RawFd) -> io::Result<Command> {
    let mut command = Command::new(installed(env::program()?));
    command
        .args(["__keeper", stage.word(), "--lock", &lock.to_string()])
        .env_clear()
        .envs(KEPT.iter().filter_map(|name| Some((name, env::var(name)?))))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    Ok(command)
}

/// The program that has this one's name now: the kernel marks one that was replaced.
fn installed(program: PathBuf) -> PathBuf {
    let name = program.to_string_lossy();
    match name.strip_suffix(" (deleted)") {
        Some(replaced) => PathBuf::from(replaced),
        None => program,
    }
}

/// What this program does when it was started as one of the stages.
pub fn main(stage: Stage, lock: RawFd, render: Render) -> io::Result<u8> {
    secrecy::hide_memory();
    let order = Order::read()?;
    match stage {
        Stage::Starter => {
            descriptors::pass_on_only(lock)?;
            rustix::process::setsid()?;
            let mut parent = command(Stage::Parent, lock)?.spawn()?;
            if let Some(mut pipe) = parent.stdin.take() {
                order.write(&mut pipe)?;
            }
            Ok(0)
        }
        Stage::Parent => parent(&order, lock),
        Stage::Keeper => Ok(keep(&order, render)),
    }
}

/// Starts the keeper, and again whenever it crashes.
fn parent(order: &Order, lock: RawFd) -> io::Result<u8> {
    let files = files_of(order).map_err(|problem| io::Error::other(problem.message))?;
    let mut wait = FIRST_PAUSE;
    loop {
        let began = clock::instant();
        let mut keeper = command(Stage::Keeper, lock)?.spawn()?;
        if let Some(mut pipe) = keeper.stdin.take() {
            order.write(&mut pipe)?;
        }
        let ended = keeper.wait()?;
        match ended.code() {
            Some(0) => return Ok(0),
            Some(code) if code == i32::from(MADE_WAY) => return execute_again(order, lock),
            _ => {}
        }
        if clock::instant().duration_since(began) > STEADY {
            wait = FIRST_PAUSE;
        }
        if !rest(&files, wait) {
            return Ok(0);
        }
        wait = (wait * 2).min(LONGEST_PAUSE);
    }
}

/// Waits before the next start; false if there is to be none, because somebody asked for that or the state directory is
/// gone.
fn rest(files: &KeeperFiles, length: Duration) -> bool {
    let until = clock::instant() + length;
    while clock::instant() < until {
        if files.stop_mark().exists() || !files.exist() {
            return false;
        }
        pause::sleep(SLICE);
    }
    true
}

/// Becomes the program that is installed now, in the same stage.
fn execute_again(order: &Order, lock: RawFd) -> io::Result<u8> {
    let (read, mut write) = io::pipe()?;
    order.write(&mut write)?;
    drop(write);
    let mut next = command(Stage::Parent, lock)?;
    next.stdin(read);
    let error = next.exec();
    Err(error)
}
