//! A system whose processes cannot be inspected yet. It was run on none.
//!
//! Nothing here may prove a death: processes are unreadable, /proc is never our own, and the boot
//! id is marked private. A reboot goes unnoticed, so deadlines of an earlier boot may stay open
//! longer than they should; they never expire too early.

use std::collections::{HashMap, HashSet};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;
use rustix::io::{Errno, FdFlags};
use rustix::net::{AddressFamily, SocketType};
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};
use tenure_core::process::{BootId, ProcessAppearance};

use crate::piped::ProcessLimits;
use crate::system::view::{ProcessStat, View};
use crate::system::{FileChanges, InodeId, LockEntry, LogReader, OwnDescriptor, Peer};

/// Opens a directory only to identify it.
pub const TO_BE_NAMED: OFlags = OFlags::RDONLY;

const WHY: &str = "not supported on this system";

fn unsupported<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, WHY))
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
pub fn prepare() -> io::Result<()> {
    Ok(())
}

/// Milliseconds of the monotonic clock.
pub fn steady_millis() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec
        .saturating_mul(1_000)
        .saturating_add(time.tv_nsec / 1_000_000)
}

/// Milliseconds of the monotonic clock: whether it counts sleep is the system's choice.
pub fn boot_millis() -> i64 {
    steady_millis()
}

pub fn since_boot() -> Option<Duration> {
    None
}

pub fn after_boot(_ticks: u64) -> Duration {
    Duration::ZERO
}

pub fn view(_pid: u32) -> View {
    View::Unreadable(WHY.to_owned())
}

pub fn view_self() -> io::Result<ProcessStat> {
    unsupported()
}

pub fn effective_uid(_pid: u32) -> io::Result<u32> {
    unsupported()
}

pub fn real_uid(_pid: u32) -> Option<u32> {
    None
}

pub fn owner(_pid: u32) -> io::Result<u32> {
    unsupported()
}

pub fn executable(_pid: u32) -> String {
    String::new()
}

pub fn looks(_pid: u32, comm: Option<&str>) -> ProcessAppearance {
    ProcessAppearance {
        comm: comm.unwrap_or_default().to_owned(),
        ..ProcessAppearance::default()
    }
}

pub fn working_dir(_pid: u32) -> io::Result<PathBuf> {
    unsupported()
}

pub fn environment(_pid: u32, _most: u64) -> io::Result<Vec<u8>> {
    unsupported()
}

pub fn descriptor(_pid: u32, _fd: u32) -> Option<PathBuf> {
    None
}

pub fn has_socket(_pid: u32, _inode: u64) -> bool {
    false
}

pub fn children(_pid: u32, _most: usize) -> Vec<u32> {
    Vec::new()
}

/// No process may be left out of a list of all of them, so there is none.
pub fn pids() -> io::Result<std::iter::Empty<io::Result<u32>>> {
    unsupported()
}

pub fn writers(_path: &Path) -> Vec<u32> {
    Vec::new()
}

pub fn listening_socket(_port: u16, _uid: u32) -> Option<u64> {
    None
}

pub fn limit(_pid: u32, _limits: ProcessLimits) -> io::Result<()> {
    unsupported()
}

pub fn open_pidfd(_pid: u32) -> Option<OwnedFd> {
    None
}

pub fn signal_pidfd(_pidfd: BorrowedFd<'_>, _signal: Signal) -> io::Result<()> {
    unsupported()
}

/// Nothing tells a process of its parent's end. Those that ask for it also end when their input does.
pub fn end_with_parent(_signal: Signal) -> io::Result<()> {
    Ok(())
}

/// There are no timers that send a signal; the limits of a process still hold.
pub type Alarm = std::convert::Infallible;

pub fn alarm(_signal: nix::sys::signal::Signal, _after: Duration) -> Option<Alarm> {
    None
}

pub fn hide_memory() -> io::Result<()> {
    unsupported()
}

pub fn file_id(found: &rustix::fs::Stat) -> (u64, u64) {
    (found.st_dev as u64, found.st_ino)
}

pub fn inode_id(found: &Metadata) -> InodeId {
    let [high, low] = [found.dev() >> 32, found.dev() & u64::from(u32::MAX)];
    (high as u32, low as u32, found.ino())
}

/// The kernel does not list locks, so none is shown. They are held all the same.
pub fn locks() -> HashMap<InodeId, LockEntry> {
    HashMap::new()
}

pub fn locks_of_files_named(_names: &HashSet<&str>) -> HashMap<InodeId, LockEntry> {
    HashMap::new()
}

pub fn holders_of_files_named(_names: &HashSet<&str>) -> Vec<(u32, HashMap<InodeId, LockEntry>)> {
    Vec::new()
}

pub fn locked_inodes() -> io::Result<HashSet<u64>> {
    unsupported()
}

pub fn readers_of_log(_index: &Path) -> Vec<LogReader> {
    Vec::new()
}

/// The open descriptors. The listing uses one itself, which is closed afterwards.
pub fn own_descriptors() -> io::Result<impl Iterator<Item = RawFd>> {
    let entries = fs_err::read_dir("/dev/fd")?;
    Ok(entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

pub fn own_descriptor(_descriptor: RawFd) -> Option<OwnDescriptor> {
    None
}

pub fn file_of(_descriptor: RawFd) -> Option<(u64, u64)> {
    None
}

/// The path of an open file or directory now. Unlike on Linux, what takes its name next is what the path reaches then.
#[cfg(target_vendor = "apple")]
pub fn path_through(file: BorrowedFd<'_>) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt;

    let path = rustix::fs::getpath(file)?.into_bytes();
    Ok(std::ffi::OsString::from_vec(path).into())
}

#[cfg(not(target_vendor = "apple"))]
pub fn path_through(_file: BorrowedFd<'_>) -> io::Result<PathBuf> {
    unsupported()
}

pub fn own_working_dir() -> io::Result<PathBuf> {
    unsupported()
}

/// What watches a store looks at it from time to time instead.
pub fn listen(_watched: &[(&Path, FileChanges)]) -> io::Result<OwnedFd> {
    unsupported()
}

/// An empty file without a name, for its owner alone, in the directory for temporary files.
pub fn unnamed_file(name: &str) -> io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let own = std::process::id();
    let path = std::env::temp_dir().join(format!("tenure-{name}-{own}-{count}"));
    let file = fs_err::OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    fs_err::remove_file(&path)?;
    Ok(file.into_file())
}

/// No space is reserved: a write may still meet a full disk.
pub fn reserve(_file: BorrowedFd<'_>, _from: u64, _length: u64) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

pub fn give_back(_file: BorrowedFd<'_>, _from: u64, _length: u64) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

pub fn filesystem_magic(_dir: BorrowedFd<'_>) -> io::Result<Option<u32>> {
    Ok(None)
}

/// A local socket that is not inherited and whose calls do not wait.
pub fn local_socket() -> io::Result<OwnedFd> {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(socket.as_fd(), true)?;
    Ok(socket)
}

/// Who is on the other side is unknown, so nothing is said there.
pub fn peer(_socket: BorrowedFd<'_>) -> io::Result<Peer> {
    unsupported()
}

pub fn fill_random(buffer: &mut [u8]) -> io::Result<()> {
    fs_err::File::open("/dev/urandom")?.read_exact(buffer)
}
