//! Linux: /proc, pidfds and namespaces, read directly.
//!
//! The kernel's answer to `pidfd_open` decides whether a process is absent. /proc only shows what it is,
//! because with hidepid /proc hides live processes. Only the time namespace's offsets are cached; they cannot
//! change for a process that does not change them itself.
//!
//! The meaning of each answer of the kernel. Only "absent" and "a thread" can prove a death.
//!
//! | asked | answer | decision |
//! |---|---|---|
//! | pidfd_open | a descriptor | a process has this pid: read its stat |
//! | | ESRCH | absent |
//! | | EINVAL (before 6.15), ENOENT (since) | the pid is a thread's, or only a group's or session's: no process has it. `Tgid` in its status distinguishes a thread from absent. Trusted only if pidfd_open works on ourselves; a filter that gives every call the same answer is bypassed with kill |
//! | | ENOSYS (before 5.3), EPERM (a seccomp filter) | ask kill |
//! | | EMFILE, ENFILE, ENOMEM, anything else | ask kill, which needs no descriptor and no memory |
//! | kill(pid, 0) | done, EPERM | something has this pid: a `Tgid` that is not the pid makes it a thread, else read its stat |
//! | | ESRCH | absent |
//! | | anything else | unreadable |
//! | /proc/PID/stat | ENOENT, ESRCH | ask the kernel again: absent, or unreadable (hidepid) |
//! | | EINTR | read again |
//! | | EACCES, EPERM, EMFILE, ENFILE, ENOMEM, EIO, an unknown form | unreadable |
//! | /proc/PID/status (`Tgid`) | cannot be read | if pidfd_open reported no process: absent; after kill: continue with stat |
//! | /proc/PID/status (`Uid`) | cannot be read | unreadable: the process is not recorded |
//! | /proc/PID/environ | ENOENT, ESRCH | the process ended: no survivor |
//! | | anything else | a survivor cannot be ruled out |
//! | /proc/PID/exe, cmdline, comm | cannot be read | empty: the process is not recognised |
//! | /proc/self/ns/pid, boot_id | cannot be read | nothing is inspected or recorded: the command fails |
//! | /proc/self | cannot be read, or is not our pid | /proc is foreign: every process is unreadable |
//! | /proc/self/timens_offsets | ENOENT | a kernel without time namespaces: no offset |
//! | | anything else | the command fails |

mod alarm;
mod changes;
mod descriptors;
mod files;
mod lock_fds;
mod locks;
mod log_readers;
mod open_files;
mod proc;
mod processes;
mod sockets;
mod stat;
mod timens;

use std::io::{self, ErrorKind};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, OFlags, PROC_SUPER_MAGIC, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal};
use rustix::time::{ClockId, clock_gettime};
use tenure_core::process::{BootId, ProcessAppearance, StartTicks};

use crate::path_error::{at, refused};
use crate::piped::ProcessLimits;
use crate::system::view::{ProcessStat, View};
use crate::unseen::Unseen;

use proc::{FILE_LIMIT, numbers, proc_path, read_file, read_text};
use stat::parse_stat;
use timens::Offsets;

pub use alarm::{Alarm, alarm};
pub use changes::listen;
pub use descriptors::{file_id, file_of, own_descriptor, own_descriptors, path_through};
pub use files::{filesystem_magic, give_back, reserve, unnamed_file};
pub use locks::{holders_of_files_named, inode_id, locked_inodes, locks, locks_of_files_named};
pub use log_readers::readers_of_log;
pub use open_files::writers;
pub use processes::{
    environment, has_socket, listening_socket, own_working_dir, owner, pids, real_uid, working_dir,
};
pub use sockets::{local_socket, peer};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const OFFSETS: &str = "/proc/self/timens_offsets";

/// A command line is only read up to this length: it shows what a process is, and may be megabytes long.
const CMDLINE_LIMIT: usize = 64 * 1024;

/// A list of children is only read up to this length.
const CHILDREN_LIMIT: usize = 64 * 1024;

/// Opens a directory only to identify it, even if it may not be read.
pub const TO_BE_NAMED: OFlags = OFlags::PATH;

pub fn boot_id() -> io::Result<BootId> {
    let path = Path::new(BOOT_ID);
    let text = read_text(path).map_err(|e| at("read", path, e))?;
    let id = text.trim();
    if id.is_empty() {
        return Err(refused("read", path, "it is empty"));
    }
    Ok(BootId {
        id: id.to_owned(),
        private: is_mounted_over(path)? || !is_on_procfs(path),
    })
}

/// Whether something is mounted at exactly this path.
fn is_mounted_over(path: &Path) -> io::Result<bool> {
    if let Ok(found) = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::empty())
        && found
            .stx_attributes_mask
            .contains(StatxAttributes::MOUNT_ROOT)
    {
        return Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
    }
    let table = "/proc/self/mountinfo";
    Ok(mountinfo_has(
        &fs_err::read(table)?,
        path.as_os_str().as_bytes(),
    ))
}

/// Whether a mount table names `path` as a mount point. Only for paths that need no escapes there.
fn mountinfo_has(table: &[u8], path: &[u8]) -> bool {
    table
        .split(|b| *b == b'\n')
        .any(|line| line.split(|b| *b == b' ').nth(4) == Some(path))
}

/// A boot id that is not the kernel's own file was mounted over a directory above it.
fn is_on_procfs(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| found.f_type == PROC_SUPER_MAGIC)
}

pub fn pid_namespace() -> io::Result<u64> {
    Ok(fs_err::metadata("/proc/self/ns/pid")?.ino())
}

/// Whether /proc shows our own pid namespace.
pub fn proc_is_own() -> bool {
    let own = std::process::id().to_string();
    fs_err::read_link("/proc/self")
        .is_ok_and(|target| target.as_os_str().as_bytes() == own.as_bytes())
}

/// Reads everything that must not fail later.
pub fn prepare() -> io::Result<()> {
    offsets().map(|_| ())
}

fn offsets() -> io::Result<Offsets> {
    static KNOWN: OnceLock<Offsets> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(*known);
    }
    let path = Path::new(OFFSETS);
    let found = match read_text(path) {
        Ok(text) => {
            timens::parse(&text).ok_or_else(|| refused("read", path, "it has an unknown form"))?
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Offsets::default(),
        Err(error) => return Err(at("read", path, error)),
    };
    Ok(*KNOWN.get_or_init(|| found))
}

/// Milliseconds of the kernel's monotonic clock, the same in every time namespace.
///
/// Unreadable offsets count as none; `prepare` rules that out beforehand.
pub fn steady_millis() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    let shown = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    let steady = shown - offsets().unwrap_or_default().monotonic;
    i64::try_from(steady.div_euclid(1_000_000)).unwrap_or(i64::MAX)
}

/// Milliseconds since boot, sleep included, the same in every time namespace.
pub fn boot_millis() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    let shown = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    let since = shown - offsets().unwrap_or_default().boottime;
    i64::try_from(since.div_euclid(1_000_000)).unwrap_or(i64::MAX)
}

enum Probe {
    There,
    Gone,
    /// The number belongs to a thread of this process.
    Thread(u32),
    Unsure(String),
}

/// Asks the kernel, not /proc, whether a process has this number.
fn probe(pid: Pid) -> Probe {
    match open_pidfd_of(pid) {
        Ok(_) => Probe::There,
        Err(Errno::SRCH) => Probe::Gone,
        Err(Errno::INVAL | Errno::NOENT) if open_pidfd_of(rustix::process::getpid()).is_ok() => {
            match thread_group(pid) {
                Some(group) if group == number(pid) => {
                    Probe::Unsure(Unseen::Replaced { pid: group }.to_string())
                }
                Some(group) => Probe::Thread(group),
                None => Probe::Gone,
            }
        }
        Err(error) => probe_without_pidfd(pid, error),
    }
}

/// The same with signal 0, which needs neither a descriptor nor a kernel with pidfds.
fn probe_without_pidfd(pid: Pid, pidfd: Errno) -> Probe {
    match rustix::process::test_kill_process(pid) {
        Ok(()) | Err(Errno::PERM) => match thread_group(pid) {
            Some(group) if group != number(pid) => Probe::Thread(group),
            _ => Probe::There,
        },
        Err(Errno::SRCH) => Probe::Gone,
        Err(kill) => {
            let (pidfd, kill) = (pidfd.into(), kill.into());
            Probe::Unsure(Unseen::NoAnswer { pidfd, kill }.to_string())
        }
    }
}

fn open_pidfd_of(pid: Pid) -> rustix::io::Result<OwnedFd> {
    rustix::process::pidfd_open(pid, PidfdFlags::empty())
}

/// The process of a process or thread id, if readable.
fn thread_group(pid: Pid) -> Option<u32> {
    let status = fs_err::read(proc_path(number(pid), "status")).ok()?;
    parse_thread_group(&status)
}

fn parse_thread_group(status: &[u8]) -> Option<u32> {
    numbers(status, b"Tgid:")?.next()?.parse().ok()
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

fn raw(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

pub fn view(pid: u32) -> View {
    let Some(known) = raw(pid) else {
        return View::Unreadable(format!("{pid} is not a pid"));
    };
    match probe(known) {
        Probe::Gone => return View::Absent,
        Probe::Thread(of) => return View::Thread { of },
        Probe::Unsure(why) => return View::Unreadable(why),
        Probe::There => {}
    }
    let path = proc_path(pid, "stat");
    match read_seen(&path) {
        Ok(seen) => View::Present(seen),
        Err(error) if has_vanished(&error) => match probe(known) {
            Probe::Gone => View::Absent,
            Probe::Thread(of) => View::Thread { of },
            Probe::Unsure(why) => View::Unreadable(why),
            Probe::There => View::Unreadable(format!(
                "{} is missing though the process exists",
                path.display()
            )),
        },
        Err(error) => View::Unreadable(at("read", &path, error).to_string()),
    }
}

pub fn view_self() -> io::Result<ProcessStat> {
    let path = Path::new("/proc/self/stat");
    read_seen(path).map_err(|e| at("read", path, e))
}

/// A process that is reaped between opening and reading yields ESRCH.
fn has_vanished(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

fn read_seen(path: &Path) -> io::Result<ProcessStat> {
    let text = read_file(path, FILE_LIMIT)?;
    let stat = parse_stat(&text)
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "it has an unknown form"))?;
    let shift = offsets()?.boottime_ticks(rustix::param::clock_ticks_per_second());
    let ticks = u64::try_from(i128::from(stat.start) - shift)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "its start is before the boot"))?;
    let start = StartTicks {
        ticks,
        shifted: offsets()?.boottime != 0,
    };
    Ok(ProcessStat { stat, start })
}

/// The effective user of a process.
pub fn effective_uid(pid: u32) -> io::Result<u32> {
    let path = proc_path(pid, "status");
    let text = fs_err::read(&path)?;
    parse_effective_uid(&text).ok_or_else(|| refused("read", &path, "it has no Uid line"))
}

fn parse_effective_uid(status: &[u8]) -> Option<u32> {
    numbers(status, b"Uid:")?.nth(1)?.parse().ok()
}

/// The executable of a process, empty if unreadable.
pub fn executable(pid: u32) -> String {
    let exe = fs_err::read_link(proc_path(pid, "exe"));
    exe.map(|path| path.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The appearance of a process; unreadable parts stay empty.
pub fn looks(pid: u32, comm: Option<&str>) -> ProcessAppearance {
    let command = read_file(&proc_path(pid, "cmdline"), CMDLINE_LIMIT);
    ProcessAppearance {
        exe: executable(pid),
        argv: split_argv(&command.unwrap_or_default()),
        comm: comm.map_or_else(|| read_comm(pid), str::to_owned),
    }
}

fn read_comm(pid: u32) -> String {
    let text = fs_err::read(proc_path(pid, "comm")).unwrap_or_default();
    let name = text.strip_suffix(b"\n").unwrap_or(&text);
    String::from_utf8_lossy(name).into_owned()
}

fn split_argv(cmdline: &[u8]) -> Vec<String> {
    let whole = cmdline.strip_suffix(b"\0").unwrap_or(cmdline);
    if cmdline.is_empty() {
        return Vec::new();
    }
    whole
        .split(|b| *b == 0)
        .map(|argument| String::from_utf8_lossy(argument).into_owned())
        .collect()
}

/// A descriptor of the process that has this pid now.
pub fn open_pidfd(pid: u32) -> Option<OwnedFd> {
    open_pidfd_of(raw(pid)?).ok()
}

/// Limits what a process may use from now on.
pub fn limit(pid: u32, limits: ProcessLimits) -> io::Result<()> {
    let pid = raw(pid).ok_or(io::ErrorKind::NotFound)?;
    for (resource, most) in [
        (Resource::As, limits.memory),
        (Resource::Cpu, limits.seconds),
        (Resource::Fsize, limits.file),
        (Resource::Core, 0),
    ] {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        rustix::process::prlimit(Some(pid), resource, limit)?;
    }
    Ok(())
}

/// Has the kernel send this process a signal when its parent ends.
pub fn end_with_parent(signal: Signal) -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(
        signal,
    ))?)
}

/// Keeps other processes of the same user from reading the memory of this one.
pub fn hide_memory() -> io::Result<()> {
    let hidden = rustix::process::DumpableBehavior::NotDumpable;
    Ok(rustix::process::set_dumpable_behavior(hidden)?)
}

/// Sends a signal to the process of a descriptor.
pub fn signal_pidfd(pidfd: BorrowedFd<'_>, signal: Signal) -> io::Result<()> {
    Ok(rustix::process::pidfd_send_signal(pidfd, signal)?)
}

pub fn fill_random(buffer: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::rand::getrandom(&mut buffer[filled..], rustix::rand::GetRandomFlags::empty())
        {
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error)),
        }
    }
    Ok(())
}

/// What a descriptor of a process refers to: a path, or the number of a pipe or a socket.
pub fn descriptor(pid: u32, fd: u32) -> Option<PathBuf> {
    fs_err::read_link(proc_path(pid, &format!("fd/{fd}"))).ok()
}

/// The children of all threads of a process, at most this many, because each is listed with the thread that
/// started it.
pub fn children(pid: u32, most: usize) -> Vec<u32> {
    let tasks = fs_err::read_dir(proc_path(pid, "task"));
    let tasks = tasks.into_iter().flatten().flatten().take(most);
    let mut found: Vec<u32> = Vec::new();
    for task in tasks {
        let list = read_file(&task.path().join("children"), CHILDREN_LIMIT).unwrap_or_default();
        let list = String::from_utf8_lossy(&list);
        let numbers = list.split_ascii_whitespace();
        found.extend(numbers.filter_map(|word| word.parse::<u32>().ok()));
    }
    found.truncate(most);
    found
}

/// The time since boot, in this process's own time namespace.
pub fn since_boot() -> Option<Duration> {
    Duration::try_from(clock_gettime(ClockId::Boottime)).ok()
}

/// The time from the boot to this many ticks.
pub fn after_boot(ticks: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_millis(ticks.saturating_mul(1_000) / per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_l20_a_mount_at_exactly_the_boot_id_is_found_in_the_table() {
        let table = b"22 1 0:5 / /proc rw - proc proc rw\n23 22 0:6 /b /proc/sys/kernel/random/boot_id ro - tmpfs x rw\n";
        assert!(mountinfo_has(table, BOOT_ID.as_bytes()));
        assert!(!mountinfo_has(&table[..36], BOOT_ID.as_bytes()));
        assert!(!mountinfo_has(table, b"/proc/sys"));
    }

    #[test]
    fn the_effective_uid_is_the_second_number() {
        let status =
            b"Name:\tx\\nUid:\t9\t9\t9\t9\nUmask:\t0022\nUid:\t1000\t0\t5\t5\nGid:\t1\t1\t1\t1\n";
        assert_eq!(parse_effective_uid(status), Some(0));
        assert_eq!(parse_effective_uid(b"Name:\tx\n"), None);
    }

    #[test]
    fn a_thread_names_the_process_that_it_belongs_to() {
        let status = b"Name:\tx\\nTgid:\t9\nUmask:\t0022\nTgid:\t41\nNgid:\t0\nPid:\t42\n";
        assert_eq!(parse_thread_group(status), Some(41));
        assert_eq!(parse_thread_group(b"Name:\tx\n"), None);
    }

    #[test]
    fn arguments_keep_their_empty_ones() {
        assert_eq!(split_argv(b"a\0\0b c\0"), ["a", "", "b c"]);
        assert_eq!(split_argv(b"title without end"), ["title without end"]);
        assert!(split_argv(b"").is_empty());
    }

    /// The fallback for a kernel without pidfds, a filter that forbids them, or a process without descriptors.
    #[test]
    fn without_pidfds_a_signal_that_is_not_sent_tells_processes_threads_and_the_dead_apart() {
        let own = rustix::process::getpid();
        let ask = |pid: Pid| probe_without_pidfd(pid, Errno::NOSYS);
        assert!(matches!(ask(own), Probe::There));
        let thread = std::thread::spawn(|| {
            let tid = rustix::thread::gettid();
            (probe_without_pidfd(tid, Errno::NOSYS), probe(tid))
        });
        let (by_signal, by_pidfd) = thread.join().unwrap();
        let group = number(own);
        assert!(matches!(by_signal, Probe::Thread(of) if of == group));
        assert!(matches!(by_pidfd, Probe::Thread(of) if of == group));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let dead = raw(child.id()).unwrap();
        assert!(matches!(ask(dead), Probe::Gone));
    }

    #[test]
    fn f_l08_nonsense_pids_are_unreadable_not_absent() {
        assert!(matches!(view(0), View::Unreadable(_)));
        assert!(matches!(view(u32::MAX), View::Unreadable(_)));
    }
}
