//! The processes of a keeper: a starter, its parent, and the keeper itself.
//!
//! *Crash* at any step: the lock is released with the last process that holds it, and the next command starts again.

use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::time::Duration;

use tenure_app::keeper::files::KeeperFiles;
use tenure_app::keeper::order::KeeperOrder;
use tenure_app::keeper::start::{Stage, command};
use tenure_app::notifications::StartNotifier;
use tenure_host::{clock, descriptors, pause, secrecy};

use crate::events::Render;
use crate::keep::{MADE_WAY, files_of, keep};

/// How long a parent waits before it starts a keeper that crashed again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// How often a parent that waits looks whether it should go on.
const SLICE: Duration = Duration::from_millis(100);
/// A keeper that ran this long did not crash because of how it was started.
const STEADY: Duration = Duration::from_secs(60);

/// What this program does when it was started as one of the stages.
pub fn main(stage: Stage, lock: RawFd, render: Render, notify: StartNotifier) -> io::Result<u8> {
    secrecy::hide_memory();
    let order = KeeperOrder::read()?;
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
        Stage::Keeper => Ok(keep(&order, render, notify)),
    }
}

/// Starts the keeper, and again whenever it crashes.
fn parent(order: &KeeperOrder, lock: RawFd) -> io::Result<u8> {
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
        wait = (wait * 2).min(MAX_PAUSE);
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
fn execute_again(order: &KeeperOrder, lock: RawFd) -> io::Result<u8> {
    let (read, mut write) = io::pipe()?;
    order.write(&mut write)?;
    drop(write);
    let mut next = command(Stage::Parent, lock)?;
    next.stdin(read);
    let error = next.exec();
    Err(error)
}
