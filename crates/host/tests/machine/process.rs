//! Processes in every state that a holder can be in.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tenure_core::liveness::{Liveness, judge};
use tenure_core::process::{Process, RunState, Sighting};
use tenure_host::pidfd::{ProcessWatch, ProcessWatches};
use tenure_host::process::{IdentifyError, chain, identify, look, looks};

use crate::child::{Owned, again, answers, observer, skipped, until};

fn state_of(pid: u32) -> Option<RunState> {
    match look(pid) {
        Sighting::Present { state, .. } => Some(state),
        _ => None,
    }
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn f_l10_a_stopped_process_is_seen_and_alive() {
    let child = Owned::start("sleep", &["1000"]);
    let observer = observer();
    let recorded = identify(child.pid(), &observer).unwrap();
    send(child.pid(), Signal::STOP);
    until("stopped", || {
        (state_of(child.pid()) == Some(RunState::Stopped)).then_some(())
    });
    assert_eq!(
        judge(&recorded, &observer, &look(child.pid())),
        Liveness::Alive
    );
}

#[test]
fn f_l05_a_zombie_is_seen_and_dead_and_not_recorded() {
    let child = Owned::start("true", &[]);
    until("zombie", || {
        (state_of(child.pid()) == Some(RunState::Zombie)).then_some(())
    });
    let observer = observer();
    assert!(matches!(
        identify(child.pid(), &observer),
        Err(IdentifyError::Exited { .. })
    ));
    let Sighting::Present { start, threads, .. } = look(child.pid()) else {
        panic!("the zombie vanished");
    };
    assert_eq!(threads, 1);
    let recorded = Process {
        host: observer.host.clone(),
        boot: observer.boot.clone(),
        pid_ns: observer.pid_ns,
        pid: child.pid(),
        start,
    };
    assert!(matches!(
        judge(&recorded, &observer, &look(child.pid())),
        Liveness::Dead(_)
    ));
    let watch = ProcessWatch::open(&recorded).unwrap();
    assert!(watch.wait(Duration::ZERO).unwrap());
}

#[test]
fn a_reaped_process_is_absent() {
    let mut child = Owned::start("sleep", &["1000"]);
    let recorded = identify(child.pid(), &observer()).unwrap();
    child.end();
    assert_eq!(look(child.pid()), Sighting::Absent);
    assert!(matches!(
        identify(child.pid(), &observer()),
        Err(IdentifyError::NoSuchProcess { .. })
    ));
    assert!(ProcessWatch::open(&recorded).is_none());
    let watches = ProcessWatches::on([&recorded]);
    assert!(watches.open.is_empty() && watches.some_gone, "look again");
    let elsewhere = Process {
        pid_ns: recorded.pid_ns + 1,
        ..recorded
    };
    assert!(!ProcessWatches::on([&elsewhere]).some_gone, "out of sight");
}

#[test]
fn f_l01_a_pid_that_is_a_thread_now_is_no_process() {
    let (tell, told) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        tell.send(u32::try_from(tid).unwrap()).unwrap();
        ended.recv().ok();
    });
    let tid = told.recv().unwrap();
    let of = std::process::id();
    assert_eq!(look(tid), Sighting::Thread { of });
    let error = identify(tid, &observer()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("there is no process {tid}; it is a thread of process {of}")
    );
    let mut recorded = identify(of, &observer()).unwrap();
    recorded.pid = tid;
    assert!(ProcessWatch::open(&recorded).is_none());
    assert!(matches!(
        judge(&recorded, &observer(), &look(tid)),
        Liveness::Dead(_)
    ));
    drop(end);
    thread.join().unwrap();
}

/// Its number stays in use as the group's; some kernels then answer as for a thread.
#[test]
fn the_dead_leader_of_a_living_group_is_absent() {
    let mut leader = Command::new("sh")
        .args(["-c", "sleep 1000 >/dev/null 2>&1 & echo $!"])
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = leader.id();
    let output = {
        let mut text = String::new();
        let mut stdout = leader.stdout.take().unwrap();
        std::io::Read::read_to_string(&mut stdout, &mut text).unwrap();
        text
    };
    leader.wait().unwrap();
    let seen = look(pid);
    send(output.trim().parse().unwrap(), Signal::KILL);
    assert_eq!(seen, Sighting::Absent);
}

#[test]
fn f_l08_without_descriptors_the_dead_are_absent_and_the_living_unreadable() {
    let mut dead = Owned::start("sleep", &["1000"]);
    let living = Owned::start("sleep", &["1000"]);
    dead.end();
    let task = format!("starved {} {}", dead.pid(), living.pid());
    let output = again(&[], &task).output().unwrap();
    let seen = answers(&output);
    assert_eq!(seen.len(), 2, "{output:?}");
    assert_eq!(seen[0], "Absent");
    assert!(
        seen[1].starts_with("Unreadable") && seen[1].contains("Too many open files"),
        "{seen:?}"
    );
}

#[test]
fn f_l01_a_watch_is_not_opened_on_a_reused_pid() {
    let child = Owned::start("sleep", &["1000"]);
    let mut recorded = identify(child.pid(), &observer()).unwrap();
    recorded.start.ticks -= 2;
    assert!(ProcessWatch::open(&recorded).is_none());
    let elsewhere = Process {
        pid_ns: 1,
        ..identify(child.pid(), &observer()).unwrap()
    };
    assert!(ProcessWatch::open(&elsewhere).is_none());
}

#[test]
fn a_watch_wakes_when_its_process_is_killed() {
    let mut child = Owned::start("sleep", &["1000"]);
    let recorded = identify(child.pid(), &observer()).unwrap();
    let watch = ProcessWatch::open(&recorded).unwrap();
    assert!(!watch.wait(Duration::from_millis(1)).unwrap());
    let waiter = std::thread::spawn(move || watch.wait(Duration::from_secs(10)));
    child.0.kill().unwrap();
    assert!(waiter.join().unwrap().unwrap());
    child.end();
}

#[test]
fn a_watch_sends_signals_to_its_process() {
    let mut child = Owned::start("sleep", &["1000"]);
    let recorded = identify(child.pid(), &observer()).unwrap();
    let watch = ProcessWatch::open(&recorded).unwrap();
    watch.signal(Signal::TERM).unwrap();
    assert!(watch.wait(Duration::from_secs(10)).unwrap());
    child.end();
    // Its number may be reused now; the descriptor still refers to the one that is gone.
    assert!(watch.signal(Signal::TERM).is_err());
}

#[test]
fn a_process_of_another_user_is_not_recorded() {
    if !rustix::process::geteuid().is_root() {
        let refused = identify(1, &observer());
        assert!(
            matches!(
                refused,
                Err(IdentifyError::OtherUser { .. } | IdentifyError::Unreadable { .. })
            ),
            "{refused:?}"
        );
        return;
    }
    use std::os::unix::process::CommandExt;
    let child = Owned(
        std::process::Command::new("sleep")
            .arg("1000")
            .uid(12_345)
            .spawn()
            .unwrap(),
    );
    let refused = identify(child.pid(), &observer());
    assert!(
        matches!(refused, Err(IdentifyError::OtherUser { uid: 12_345, .. })),
        "{refused:?}"
    );
}

#[test]
fn f_l09_a_hostile_name_does_not_hide_a_process() {
    let dir = tempfile::tempdir().unwrap();
    let sleep = ["/usr/bin/sleep", "/bin/sleep"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists());
    let hostile = dir.path().join("a) Z 1\n(b");
    // A multi-call binary goes by its name, so it is linked only if it is not one.
    if std::fs::canonicalize(sleep.unwrap()).unwrap().file_name() != Some("sleep".as_ref()) {
        skipped("sleep is a multi-call binary here");
        return;
    }
    std::os::unix::fs::symlink(sleep.unwrap(), &hostile).unwrap();
    let child = Owned::start(hostile.to_str().unwrap(), &["1000"]);
    assert_eq!(state_of(child.pid()), Some(RunState::Going));
    assert_eq!(looks(child.pid()).comm, "a) Z 1\n(b");
    // The kernel lets the parent continue before the arguments are in place.
    let argv = until("arguments", || {
        Some(looks(child.pid()).argv).filter(|argv| !argv.is_empty())
    });
    assert_eq!(argv, [hostile.to_str().unwrap(), "1000"]);
    assert!(looks(child.pid()).exe.ends_with("sleep"));
}

#[test]
fn the_chain_starts_here_and_leads_to_the_parent() {
    let (chain, broken) = chain(&observer());
    assert_eq!(chain[0].process.pid, std::process::id());
    assert_eq!(
        chain[0].process,
        identify(std::process::id(), &observer()).unwrap()
    );
    assert_eq!(
        chain[0].looks.exe,
        std::env::current_exe().unwrap().to_str().unwrap()
    );
    assert_eq!(chain[1].process.pid, std::os::unix::process::parent_id());
    let pids: std::collections::HashSet<u32> = chain.iter().map(|a| a.process.pid).collect();
    assert_eq!(pids.len(), chain.len());
    let oldest_last = chain
        .windows(2)
        .all(|pair| pair[1].process.start.ticks <= pair[0].process.start.ticks);
    assert!(oldest_last, "{chain:?}");
    assert!(broken.is_none() || !pids.contains(&1), "{broken:?}");
}
