//! What a system must tell about its processes, each point as a test against `tenure_host::system` alone.
//!
//! On a system on which tenure was never run, this is the first thing to run, and its output is the report:
//!
//! ```text
//! cargo test -p tenure-host --test system
//! ```
//!
//! A point that fails is one that this system's module still has to learn. docs/windows.md has the same list.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use tenure_core::process::RunState;
use tenure_host::system::view::{ProcessStat, View};
use tenure_host::system::{self, FileChanges};

/// A child of the test that is killed and reaped with it.
struct Owned(Child);

impl Owned {
    fn sleeper() -> Owned {
        Owned::start(Command::new("sleep").arg("1000"))
    }

    fn start(command: &mut Command) -> Owned {
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        let child = Owned(child);
        // Between fork and exec it still looks like this test.
        until("it runs its program", || {
            !system::executable(child.pid()).ends_with(own_name().as_str())
        });
        child
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
    }

    fn reap(&mut self) {
        self.0.wait().unwrap();
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // For a process that was already reaped the error means nothing.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn own_name() -> String {
    let own = std::env::current_exe().unwrap();
    own.file_name().unwrap().to_str().unwrap().to_owned()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::yield_now();
    }
}

fn present(pid: u32) -> ProcessStat {
    system::prepare().unwrap();
    match system::view(pid) {
        View::Present(seen) => seen,
        other => panic!("process {pid} is there, but: {other:?}"),
    }
}

fn is_ready(fd: impl AsFd, within: Duration) -> bool {
    let span = Timespec::try_from(within).unwrap();
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    poll(&mut fds, Some(&span)).unwrap() > 0
}

const NOW: Duration = Duration::ZERO;
const SOON: Duration = Duration::from_secs(20);

// Identity: which boot, which process, whose.

#[test]
fn identity_of_the_boot_stays_and_processes_can_be_inspected() {
    let first = system::boot_id().unwrap();
    assert!(!first.id.is_empty());
    assert_eq!(first, system::boot_id().unwrap());
    assert_eq!(
        system::pid_namespace().unwrap(),
        system::pid_namespace().unwrap()
    );
    assert!(system::proc_is_own(), "no process can be inspected");
}

#[test]
fn identity_of_a_process_is_its_start_however_often_it_is_asked() {
    let own = present(std::process::id());
    assert_eq!(system::view_self().unwrap().start, own.start);
    let child = Owned::sleeper();
    let seen = present(child.pid());
    assert!(seen.start.ticks >= own.start.ticks, "{seen:?} {own:?}");
    until("the clock went on", || {
        system::since_boot() > Some(system::after_boot(seen.stat.start) + Duration::from_millis(50))
    });
    assert_eq!(present(child.pid()).start, seen.start);
}

#[test]
fn identity_outlives_the_program_that_a_process_runs() {
    let mut child = Command::new("sh")
        .args(["-c", "read line; exec sleep 1000"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let child = Owned(child);
    let before = present(child.pid());
    input.write_all(b"go\n").unwrap();
    until("another program", || {
        system::executable(child.pid()).ends_with("sleep")
            || system::looks(child.pid(), None).comm == "sleep"
    });
    assert_eq!(present(child.pid()).start, before.start);
}

#[test]
fn identity_includes_the_user() {
    let child = Owned::sleeper();
    let own = rustix::process::geteuid().as_raw();
    assert_eq!(system::effective_uid(child.pid()).unwrap(), own);
    assert_eq!(
        system::real_uid(child.pid()),
        Some(rustix::process::getuid().as_raw())
    );
    assert_eq!(system::owner(child.pid()).unwrap(), own);
}

#[test]
fn identity_shows_program_arguments_and_directory() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let child = Owned::start(Command::new("sleep").arg("1000").current_dir(&dir));
    // Right after an exec a kernel may show none.
    until("its arguments", || {
        system::looks(child.pid(), None).argv == ["sleep", "1000"]
    });
    let looks = system::looks(child.pid(), None);
    assert_eq!(looks.exe, system::executable(child.pid()));
    assert!(Path::new(&looks.exe).is_absolute(), "{looks:?}");
    assert_eq!(system::working_dir(child.pid()).unwrap(), dir);
}

/// A system may withhold them, but must say so: what cannot be read may be a survivor.
#[test]
fn identity_shows_the_variables_or_says_that_they_are_withheld() {
    let mut command = Command::new("sleep");
    let child = Owned::start(command.arg("1000").env("TENURE_TEST_SIGN", "kept"));
    let shows = |all: &[u8]| {
        let mut entries = all.split(|byte| *byte == 0);
        entries.any(|entry| entry == b"TENURE_TEST_SIGN=kept")
    };
    // Right after an exec a kernel may show none.
    until(
        "its variables, or a refusal",
        || match system::environment(child.pid(), 1 << 20) {
            Ok(all) => shows(&all),
            Err(error) => {
                println!("withheld: {error}");
                true
            }
        },
    );
}

// Death: what proves it, and what does not.

#[test]
fn death_is_certain_once_a_process_was_reaped() {
    let mut child = Owned::sleeper();
    present(child.pid());
    child.kill();
    child.reap();
    assert_eq!(system::view(child.pid()), View::Absent);
}

/// It has exited, although its pid is still taken.
#[test]
fn death_shows_before_the_process_is_reaped() {
    let mut child = Owned::sleeper();
    child.kill();
    until("it has exited", || match system::view(child.pid()) {
        View::Present(seen) => seen.stat.state == RunState::Zombie && seen.stat.threads <= 1,
        View::Absent => true,
        View::Thread { .. } | View::Unreadable(_) => false,
    });
}

#[test]
fn death_is_not_what_a_stopped_process_shows() {
    let child = Owned::sleeper();
    let before = present(child.pid());
    let pid = Pid::from_raw(child.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    until("stopped", || {
        present(child.pid()).stat.state == RunState::Stopped
    });
    assert_eq!(present(child.pid()).start, before.start);
    kill_process(pid, Signal::CONT).unwrap();
    until("going", || {
        present(child.pid()).stat.state == RunState::Going
    });
}

#[test]
fn death_is_never_concluded_from_nonsense() {
    for pid in [0, u32::MAX] {
        let view = system::view(pid);
        assert!(matches!(view, View::Unreadable(_)), "{pid}: {view:?}");
    }
}

#[test]
fn death_is_not_what_a_process_of_another_user_shows() {
    let view = system::view(1);
    assert!(
        matches!(view, View::Present(_) | View::Unreadable(_)),
        "{view:?}"
    );
}

// Reuse: a pid alone is nobody.

#[test]
fn reuse_of_a_pid_shows_in_the_start() {
    let mut known = HashSet::new();
    let mut last = 0;
    for _ in 0..50 {
        let mut child = Owned::sleeper();
        let seen = present(child.pid());
        assert!(seen.start.ticks >= last, "a start went back");
        last = seen.start.ticks;
        assert!(known.insert((child.pid(), seen.start.ticks)), "{seen:?}");
        child.kill();
        child.reap();
    }
}

// Ancestors: the way up, and down.

/// The child of a child, killed with the test. Nobody else ends it, so the pid is its own until then.
struct Grandchild(u32);

impl Drop for Grandchild {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.0.cast_signed()).unwrap();
        kill_process(pid, Signal::KILL).ok();
    }
}

fn shell_with_child() -> (Owned, Grandchild) {
    let mut child = Command::new("sh")
        .args(["-c", "sleep 1000 & echo $!; wait"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let output = child.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    (Owned(child), Grandchild(line.trim().parse().unwrap()))
}

#[test]
fn ancestors_are_found_from_parent_to_parent() {
    let (shell, below) = shell_with_child();
    let own = std::process::id();
    let parents = [below.0, shell.pid(), own].map(|pid| present(pid).stat.parent);
    let above = std::os::unix::process::parent_id();
    assert_eq!(parents, [shell.pid(), own, above]);
}

#[test]
fn ancestors_reach_the_top() {
    let mut pid = std::process::id();
    let mut visited = HashSet::new();
    while pid > 1 {
        assert!(visited.insert(pid), "{visited:?}");
        let seen = present(pid);
        pid = seen.stat.parent;
    }
}

#[test]
fn ancestors_that_end_leave_another_parent_not_a_wrong_one() {
    let (mut shell, below) = shell_with_child();
    let before = present(below.0);
    shell.kill();
    shell.reap();
    until("another parent", || {
        present(below.0).stat.parent != shell.pid()
    });
    assert_eq!(present(below.0).start, before.start);
}

#[test]
fn ancestors_know_their_children_and_every_process_is_listed_once() {
    let child = Owned::sleeper();
    let own = std::process::id();
    assert!(system::children(own, 512).contains(&child.pid()));
    let all: Vec<u32> = system::pids().unwrap().flatten().collect();
    for pid in [own, child.pid()] {
        assert_eq!(all.iter().filter(|one| **one == pid).count(), 1, "{pid}");
    }
}

// Watch: an exit is seen without asking again and again.

#[test]
fn watch_wakes_when_the_process_exits_and_not_before() {
    let mut child = Owned::sleeper();
    let watch = system::open_pidfd(child.pid()).unwrap();
    assert!(!is_ready(&watch, NOW));
    child.kill();
    assert!(
        is_ready(&watch, SOON),
        "it waits to be reaped, and has exited"
    );
    child.reap();
    assert!(is_ready(&watch, NOW), "it stays so");
}

#[test]
fn watch_signals_the_process_that_it_watches() {
    use std::os::unix::process::ExitStatusExt;

    let mut child = Owned::sleeper();
    let watch = system::open_pidfd(child.pid()).unwrap();
    system::signal_pidfd(watch.as_fd(), Signal::TERM).unwrap();
    assert!(is_ready(&watch, SOON));
    let status = child.0.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
    let error = system::signal_pidfd(watch.as_fd(), Signal::TERM);
    assert!(
        error.is_err(),
        "it is gone, even if its pid is in use again"
    );
}

#[test]
fn watch_of_what_is_gone_is_refused() {
    let mut child = Owned::sleeper();
    child.kill();
    child.reap();
    assert!(system::open_pidfd(child.pid()).is_none());
}

#[test]
fn watch_of_files_wakes_for_what_it_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a");
    std::fs::write(&file, "x").unwrap();
    let entries = system::listen(&[(dir.path(), FileChanges::Entries)]).unwrap();
    let both = system::listen(&[(dir.path(), FileChanges::EntriesAndWrites)]).unwrap();
    let writes = system::listen(&[(&file, FileChanges::Writes)]).unwrap();
    std::fs::write(&file, "y").unwrap();
    assert!(is_ready(&both, SOON) && is_ready(&writes, SOON));
    assert!(!is_ready(&entries, NOW));
    std::fs::write(dir.path().join("b"), "x").unwrap();
    assert!(is_ready(&entries, SOON));
}

// What else is asked of a system.

#[test]
fn clocks_go_forward_and_agree_with_the_starts_of_processes() {
    let (steady, boot) = (system::steady_millis(), system::boot_millis());
    let child = Owned::sleeper();
    let start = system::after_boot(present(child.pid()).stat.start);
    let since = system::since_boot().unwrap();
    assert!(system::steady_millis() >= steady && system::boot_millis() >= boot);
    assert!(since + Duration::from_millis(20) >= start);
    assert!(since < start + Duration::from_secs(60));
}

#[test]
fn peers_of_local_sockets_are_known() {
    let (one, _other) = UnixStream::pair().unwrap();
    let peer = system::peer(one.as_fd()).unwrap();
    assert_eq!(peer.pid, std::process::id());
    assert_eq!(peer.uid, rustix::process::geteuid().as_raw());
}

#[test]
fn locks_show_their_holders() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure-system-lock");
    let file = File::create(&path).unwrap();
    let place = system::inode_id(&file.metadata().unwrap());
    assert!(!system::own_descriptor(file.as_raw_fd()).unwrap().holds_lock);
    file.lock().unwrap();
    assert!(system::own_descriptor(file.as_raw_fd()).unwrap().holds_lock);
    let names = HashSet::from(["tenure-system-lock"]);
    let held = system::locks_of_files_named(&names);
    assert!(held[&place].held);
    assert_eq!(held[&place].pids, [std::process::id()]);
    file.unlock().unwrap();
    assert!(!system::locks_of_files_named(&names).contains_key(&place));
}

#[test]
fn descriptors_are_listed_and_reach_the_file_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (before, after) = (dir.path().join("before"), dir.path().join("after"));
    std::fs::create_dir(&before).unwrap();
    let opened = File::open(&before).unwrap();
    let found = opened.metadata().unwrap();
    assert!(
        system::own_descriptors()
            .unwrap()
            .any(|fd| fd == opened.as_raw_fd())
    );
    let file = system::file_of(opened.as_raw_fd());
    assert_eq!(file, Some((found.dev(), found.ino())));
    let path = system::path_through(opened.as_fd()).unwrap();
    std::fs::rename(&before, &after).unwrap();
    std::fs::create_dir(&before).unwrap();
    std::fs::write(path.join("x"), "x").unwrap();
    assert!(after.join("x").is_file() && !before.join("x").is_file());
}

#[test]
fn files_without_a_name_are_written_and_read() {
    use std::io::Seek;

    let mut file = system::unnamed_file("test").unwrap();
    file.write_all(b"text").unwrap();
    file.rewind().unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "text");
    assert_eq!(file.metadata().unwrap().nlink(), 0);
}
