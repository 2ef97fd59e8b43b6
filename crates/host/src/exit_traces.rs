//! Whether an agent's process that is gone exited in order.
//!
//! Some agents give each of their processes a directory with a lock file, and remove it when they
//! exit by themselves. A signal, a crash or a closed window leaves it behind, until the agent is
//! started again and removes the unlocked ones. So an unlocked directory that was created when the
//! process started means that the process was cut off. No directory means that it exited in order,
//! unless a later start may have removed it.
//!
//! In doubt there is no answer. *Crash*: nothing is written. *Clock jump*: a wall clock that was
//! set between the start of the process and now hides its directory; the exit then counts as
//! orderly. *Older version*: an agent version without such directories never gets an answer.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tenure_core::agent::Traces;
use tenure_core::process::{Observer, Process};

use crate::system;

/// How long before its directory a process may seem to have started; the kernel counts in hundredths of a
/// second.
const EARLY: Duration = Duration::from_secs(1);
/// How long a start may take to create the directory.
const LATE: Duration = Duration::from_secs(10);
/// How long a start may take to remove what others left.
const CLEARS: Duration = Duration::from_millis(500);

/// Whether a process that is gone exited by itself; `None` if unknown.
pub(crate) fn was_orderly(
    traces: &Traces,
    home: &Path,
    gone: &Process,
    observer: &Observer,
) -> Option<bool> {
    let is_ours = gone.boot == observer.boot && gone.pid_ns == observer.pid_ns;
    if !is_ours || gone.start.shifted {
        return None;
    }
    let began = moment(gone.start.ticks)?;
    let folder = home.join(traces.folder);
    let found = left(traces, home, &folder)?;
    let locked = system::locked_inodes().ok()?;
    let is_its_own = |trace: &Trace| {
        let made = trace.made + EARLY >= began && trace.made <= began + LATE;
        made && !trace.is_daemon_s && !locked.contains(&trace.inode)
    };
    if found.iter().any(is_its_own) {
        return Some(false);
    }
    let changed = fs_err::metadata(&folder).ok()?.modified().ok()?;
    let is_older = |trace: &Trace| trace.made + CLEARS < changed;
    found.iter().all(is_older).then_some(true)
}

struct Trace {
    made: SystemTime,
    inode: u64,
    is_daemon_s: bool,
}

fn left(traces: &Traces, home: &Path, folder: &Path) -> Option<Vec<Trace>> {
    let daemon = home.join(traces.daemon);
    let mut found = Vec::new();
    for entry in fs_err::read_dir(folder).ok()? {
        let dir = entry.ok()?.path();
        // A directory that disappears in the meantime was not left behind.
        let Ok(lock) = fs_err::metadata(dir.join(traces.lock)) else {
            continue;
        };
        let runs = fs_err::read_link(dir.join(traces.link));
        found.push(Trace {
            made: lock.modified().ok()?,
            inode: lock.ino(),
            is_daemon_s: runs.is_ok_and(|runs| runs.starts_with(&daemon)),
        });
    }
    Some(found)
}

/// The wall-clock time this many ticks after the boot.
pub(crate) fn moment(ticks: u64) -> Option<SystemTime> {
    let ago = system::since_boot()?.checked_sub(system::after_boot(ticks))?;
    SystemTime::now().checked_sub(ago)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACES: Traces = Traces {
        folder: "tmp/arg0",
        lock: ".lock",
        link: "patch",
        daemon: "packages/daemon",
    };

    struct Home {
        dir: tempfile::TempDir,
        observer: Observer,
        process: Process,
    }

    impl Home {
        /// An agent's home, and a process that started now.
        fn new() -> Home {
            let host = tenure_core::id::HostId::new("host");
            let observer = Observer {
                host: host.clone(),
                boot: crate::boot::boot_id().unwrap(),
                pid_ns: 1,
                proc_is_own: true,
                shared_store: false,
            };
            let since_boot = system::since_boot().unwrap();
            let per_second = rustix::param::clock_ticks_per_second();
            let ticks = u64::try_from(since_boot.as_millis()).unwrap() * per_second / 1000;
            let process = Process {
                host,
                boot: observer.boot.clone(),
                pid_ns: 1,
                pid: 7,
                start: tenure_core::process::StartTicks {
                    ticks,
                    shifted: false,
                },
            };
            let dir = tempfile::tempdir().unwrap();
            fs_err::create_dir_all(dir.path().join(TRACES.folder)).unwrap();
            Home {
                dir,
                observer,
                process,
            }
        }

        /// The directory of a process that started this many seconds ago.
        fn made(&self, name: &str, ago: u64) -> fs_err::File {
            let dir = self.dir.path().join(TRACES.folder).join(name);
            fs_err::create_dir(&dir).unwrap();
            let lock = fs_err::File::create(dir.join(TRACES.lock)).unwrap();
            let made = SystemTime::now() - Duration::from_secs(ago);
            lock.file().set_modified(made).unwrap();
            lock
        }

        fn was_orderly(&self) -> Option<bool> {
            was_orderly(&TRACES, self.dir.path(), &self.process, &self.observer)
        }
    }

    #[test]
    fn what_is_left_behind_was_cut_off() {
        let home = Home::new();
        home.made("own", 0);
        assert_eq!(home.was_orderly(), Some(false));
    }

    #[test]
    fn what_took_its_directory_away_went_in_order() {
        let home = Home::new();
        assert_eq!(home.was_orderly(), Some(true));
        // The directory of one that was cut off long ago.
        home.made("other", 100);
        assert_eq!(home.was_orderly(), Some(true));
    }

    #[test]
    fn a_start_since_then_leaves_it_open() {
        let home = Home::new();
        let lock = home.made("later", 0);
        rustix::fs::flock(lock.file(), rustix::fs::FlockOperation::LockExclusive).unwrap();
        assert_eq!(home.was_orderly(), None);
    }

    #[test]
    fn what_the_daemon_left_is_not_the_window_s() {
        let home = Home::new();
        home.made("daemon", 0);
        let runs = home.dir.path().join("packages/daemon/bin/agent");
        let link = home.dir.path().join("tmp/arg0/daemon/patch");
        std::os::unix::fs::symlink(runs, link).unwrap();
        assert_eq!(home.was_orderly(), None);
    }

    #[test]
    fn another_boot_or_no_directory_is_not_answered_for() {
        let mut home = Home::new();
        home.process.boot.id = "another".to_owned();
        assert_eq!(home.was_orderly(), None);
        let home = Home::new();
        fs_err::remove_dir(home.dir.path().join(TRACES.folder)).unwrap();
        assert_eq!(home.was_orderly(), None);
    }
}
