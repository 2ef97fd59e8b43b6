//! tenure's lock and append in a program of your own.
//!
//! `cargo run -p tenure-host --example lock_and_append [DIR]`
//!
//! Choose any directory for the locks: programs that use the same one exclude each other. `tenure` itself uses
//! `locks` in its state directory (`tenure config` shows where that is).

#![allow(clippy::print_stdout)] // it shows what it does

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_host::append::{Durability, append_lines};
use tenure_host::file::write_atomic;
use tenure_host::kernel_lock::{HeldLock, LockDir, LockError, LockName, Patience, Sharing};

const PATIENCE: Patience = Patience::AtMost(Duration::from_secs(10));

fn main() -> Result<(), Box<dyn Error>> {
    let scratch = tempfile::tempdir()?;
    let dir = std::env::args_os().nth(1).map(PathBuf::from);
    let dir = dir.as_deref().unwrap_or(scratch.path());
    let locks = LockDir::open(&dir.join("locks"))?;
    println!("count is now {}", add_one(&locks, &dir.join("count"))?);
    whole_lines(&locks, &dir.join("log.jsonl"))?;
    not_without_the_handle(&locks)?;
    Ok(())
}

/// Reads, adds one, and writes, under the file's own lock, so that no other program's addition is lost.
fn add_one(locks: &LockDir, path: &Path) -> Result<u64, Box<dyn Error>> {
    // Every spelling of the path gives the same lock.
    let name = LockName::of_path(path)?;
    let held = locks.lock(&name, Sharing::Exclusive, PATIENCE)?;
    let count = match fs_err::read_to_string(path) {
        Ok(text) => text.trim().parse::<u64>()?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error.into()),
    };
    write_atomic(path, format!("{}\n", count + 1).as_bytes())?;
    // Dropping it does the same, and so does exiting.
    held.unlock();
    Ok(count + 1)
}

/// Appends lines, all or none; it takes the file's lock by itself.
fn whole_lines(locks: &LockDir, path: &Path) -> Result<(), Box<dyn Error>> {
    let lines = b"{\"type\":\"note\",\"text\":\"one\"}\n{\"type\":\"note\",\"text\":\"two\"}\n";
    let offset = append_lines(locks, path, lines, PATIENCE, Durability::Disk)?;
    println!("two lines at {offset} of {}", path.display());
    Ok(())
}

/// Code that needs the lock takes its handle. A second acquisition without the handle fails, and the error
/// names where the lock was taken.
fn not_without_the_handle(locks: &LockDir) -> Result<(), Box<dyn Error>> {
    let name = LockName::plain("example/section")?;
    let held = locks.try_lock(&name, Sharing::Exclusive)?;
    part_of_the_section(&held.again());
    match locks.lock(&name, Sharing::Exclusive, Patience::Endless) {
        Err(LockError::HeldHere { place, .. }) => println!("held already, since {place}"),
        Err(error) => return Err(error.into()),
        Ok(_) => return Err("two hold one lock".into()),
    }
    Ok(())
}

fn part_of_the_section(held: &HeldLock) {
    println!("under {}", held.name());
}
