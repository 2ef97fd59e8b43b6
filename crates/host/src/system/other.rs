//! A system whose processes cannot be inspected yet. Tested on none.
//!
//! Nothing here may prove a death: processes are unreadable, /proc is never our own, and the boot
//! id is marked private. A reboot goes unnoticed, so deadlines of an earlier boot may stay open
//! longer than they should; they never expire too early.

use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};
use tenure_core::process::{BootId, ProcessAppearance};

use crate::stat::{ProcessStat, View};

/// Opens a directory only to identify it.
pub(crate) const TO_BE_NAMED: OFlags = OFlags::RDONLY;

const WHY: &str = "not supported on this system";

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, WHY)
}

/// A boot id that proves nothing.
pub fn boot_id() -> io::Result<BootId> {
    Ok(BootId {
        id: "unknown".to_owned(),
        private: true,
    })
}

/// There are no pid namespaces.
pub fn pid_namespace() -> io::Result<u64> {
    Ok(0)
}

/// There is no /proc.
pub fn proc_is_own() -> bool {
    false
}

/// Nothing to read beforehand.
pub(crate) fn prepare() -> io::Result<()> {
    Ok(())
}

/// Milliseconds of the monotonic clock.
pub(crate) fn steady_millis() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec
        .saturating_mul(1_000)
        .saturating_add(time.tv_nsec as i64 / 1_000_000)
}

/// Milliseconds of the monotonic clock: whether it counts sleep is the system's choice.
pub(crate) fn boot_millis() -> i64 {
    steady_millis()
}

pub(crate) fn view(_pid: u32) -> View {
    View::Unreadable(WHY.to_owned())
}

pub(crate) fn view_self() -> io::Result<ProcessStat> {
    Err(unsupported())
}

pub(crate) fn effective_uid(_pid: u32) -> io::Result<u32> {
    Err(unsupported())
}

pub(crate) fn executable(_pid: u32) -> String {
    String::new()
}

pub(crate) fn looks(_pid: u32, comm: Option<&str>) -> ProcessAppearance {
    ProcessAppearance {
        comm: comm.unwrap_or_default().to_owned(),
        ..ProcessAppearance::default()
    }
}

pub(crate) fn open_pidfd(_pid: u32) -> Option<OwnedFd> {
    None
}

pub(crate) fn limit(_pid: u32, _limits: crate::piped::ProcessLimits) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn signal_pidfd(_pidfd: BorrowedFd<'_>, _signal: Signal) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn filesystem_magic(_dir: BorrowedFd<'_>) -> io::Result<Option<u32>> {
    Ok(None)
}

pub(crate) fn descriptor(_pid: u32, _fd: u32) -> Option<PathBuf> {
    None
}

pub(crate) fn children(_pid: u32, _most: usize) -> Vec<u32> {
    Vec::new()
}

pub(crate) fn since_boot() -> Option<Duration> {
    None
}

pub(crate) fn after_boot(_ticks: u64) -> Duration {
    Duration::ZERO
}

/// The listener of a socket is unknown, so no connection is made.
pub(crate) fn connect(_socket: &Path) -> io::Result<(UnixStream, u32)> {
    Err(unsupported())
}

pub(crate) fn fill_random(buffer: &mut [u8]) -> io::Result<()> {
    fs_err::File::open("/dev/urandom")?.read_exact(buffer)
}
