//! Who holds a lock, and what dies with its holder.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure_host::file::write_atomic;
use tenure_host::kernel_lock::{HeldLock, LockDir, LockError, Patience, Sharing};
use tenure_host::lock_table;

use crate::files::skipped;
use crate::worker::{Place, Process, SOON, TASK, TASK_ARGS, is_held, plain, say, until};

/// Runs something that must not block, and fails if it does.
#[track_caller]
fn at_once<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = channel();
    std::thread::spawn(move || drop(send.send(act())));
    receive.recv_timeout(SOON).expect("it answers at once")
}

#[test]
fn f_k01_the_lock_of_a_holder_that_was_killed_is_free_at_once() {
    let place = Place::new();
    for _ in 0..5 {
        let mut holder = place.holder("a");
        assert!(is_held(place.try_lock("a")));
        holder.process.kill9();
        assert!(!is_held(place.try_lock("a")));
    }
}

#[test]
fn f_k02_a_leaked_handle_is_an_error_at_once_that_names_its_place() {
    let place = Place::new();
    let (locks, name) = (&place.locks, plain("a"));
    let line = line!() + 1;
    let held = locks.try_lock(&name, Sharing::Exclusive).unwrap();
    std::mem::forget(held);
    for patience in [
        Patience::None,
        Patience::AtMost(Duration::from_secs(3600)),
        Patience::Endless,
    ] {
        for sharing in [Sharing::Exclusive, Sharing::Shared] {
            let locks = place.locks.clone();
            let error = at_once(move || locks.lock(&plain("a"), sharing, patience).unwrap_err());
            let LockError::HeldHere { name, place } = &error else {
                panic!("{error}")
            };
            assert_eq!(name, "a");
            assert!(
                place.starts_with(&format!("{}:{line}:", file!())),
                "{place}"
            );
            assert!(error.to_string().contains(place), "{error}");
        }
    }
}

#[test]
fn f_k03_a_section_within_a_section_uses_the_handle_or_fails_at_once() {
    let place = Place::new();
    let held = place.try_lock("a").unwrap();
    let inner = held.again();
    let locks = place.locks.clone();
    let second = at_once(move || locks.lock(&plain("a"), Sharing::Exclusive, Patience::Endless));
    assert!(matches!(second, Err(LockError::HeldHere { .. })));
    held.unlock();
    let mut other = place.start("hold a");
    until("it waits", || (place.waiting("a") == 1).then_some(()));
    assert!(other.is_silent(), "one handle is left");
    inner.unlock();
    assert_eq!(other.says(), "held");
    other.process.kill9();
    place.try_lock("a").unwrap().unlock();
}

/// Two wait for a dead holder's lock: one gets it, and the file that both waited at is still the lock.
#[test]
fn f_k04_two_who_find_a_dead_holder_never_both_get_its_lock() {
    let place = Place::new();
    let mut holder = place.holder("a");
    let inode = |path: &Path| std::fs::metadata(path).unwrap().ino();
    let file = place.locks.file_of(&plain("a"));
    let born = inode(&file);
    let mut second = place.start("hold a");
    for round in 0..15 {
        let third = place.start("hold a");
        until("both wait", || (place.waiting("a") == 2).then_some(()));
        holder.process.kill9();
        let (winner, loser) = until("one has it", || {
            match (second.receive.try_recv(), third.receive.try_recv()) {
                (Ok(_), Ok(_)) => panic!("both have it in round {round}"),
                (Ok(_), Err(_)) => Some(false),
                (Err(_), Ok(_)) => Some(true),
                (Err(_), Err(_)) => None,
            }
        })
        .then_some(())
        .map_or_else(|| (0, 1), |()| (1, 0));
        let mut both = [Some(second), Some(third)];
        holder = both[winner].take().unwrap();
        second = both[loser].take().unwrap();
        until("the other waits", || {
            (place.waiting("a") == 1).then_some(())
        });
        assert!(second.is_silent(), "both have it in round {round}");
        assert!(is_held(place.try_lock("a")));
        assert_eq!(inode(&file), born, "the lock is another file now");
    }
}

#[test]
fn f_k05_what_is_in_the_lock_file_decides_nothing() {
    let place = Place::new();
    let file = place.locks.file_of(&plain("a"));
    let own = format!("{{\"pid\":{}}}", std::process::id());
    for content in ["", "{\"pid\":1", "\0\0\0", &own, "1\n"] {
        std::fs::write(&file, content).unwrap();
        place.try_lock("a").unwrap().unlock();
        let mut holder = place.holder("a");
        std::fs::write(&file, content).unwrap();
        assert!(is_held(place.try_lock("a")), "{content:?}");
        holder.process.kill9();
        assert!(!is_held(place.try_lock("a")), "{content:?}");
    }
}

#[test]
fn f_k06_a_lock_is_one_file_without_a_guard_of_its_own() {
    let place = Place::new();
    let mut holder = place.holder("a");
    let names = || {
        let entries = std::fs::read_dir(place.locks.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(), ["n-a"]);
    holder.process.kill9();
    place.try_lock("a").unwrap().unlock();
    assert_eq!(names(), ["n-a"]);
}

#[test]
fn f_k07_a_holder_that_stands_still_keeps_its_lock() {
    let place = Place::new();
    let holder = place.holder("a");
    holder.process.signal(Signal::STOP);
    until("it stands", || {
        (holder.process.state() == 'T').then_some(())
    });
    let patience = Patience::AtMost(Duration::from_millis(300));
    let began = Instant::now();
    let outcome = place.locks.lock(&plain("a"), Sharing::Exclusive, patience);
    assert!(is_held(outcome));
    assert!(began.elapsed() >= Duration::from_millis(300));
    holder.process.signal(Signal::CONT);
    holder.finish();
    place.try_lock("a").unwrap().unlock();
}

/// Its thread stays in the kernel's queue and holds the lock briefly when its turn comes.
#[test]
fn a_wait_that_was_given_up_never_looks_like_a_holder() {
    let place = Place::new();
    for round in 0..50 {
        let holder = place.holder("a");
        for _ in 0..30 {
            let patience = Patience::AtMost(Duration::from_micros(100));
            assert!(is_held(place.locks.lock(
                &plain("a"),
                Sharing::Exclusive,
                patience
            )));
        }
        holder.finish();
        let again = place.try_lock("a");
        assert!(again.is_ok(), "round {round}: {again:?}");
    }
}

#[test]
fn those_who_share_a_lock_keep_out_only_those_who_do_not() {
    let place = Place::new();
    let (one, two) = (place.start("share a"), place.start("share a"));
    assert_eq!((one.says(), two.says()), ("held".into(), "held".into()));
    let here = place.locks.try_lock(&plain("a"), Sharing::Shared).unwrap();
    let again = place.locks.try_lock(&plain("a"), Sharing::Shared).unwrap();
    drop((here, again));
    assert!(is_held(place.try_lock("a")));
    one.finish();
    assert!(is_held(place.try_lock("a")));
    two.finish();
    let held = place.try_lock("a").unwrap();
    let waiter = place.start("share a");
    until("it waits", || (place.waiting("a") == 1).then_some(()));
    held.unlock();
    assert_eq!(waiter.says(), "held");
}

/// The waiter has the removed file open; a later process creates a new one.
#[test]
fn a_lock_whose_file_was_removed_while_one_waited_is_taken_again() {
    let place = Place::new();
    let first = place.holder("a");
    let waiter = place.start("hold a");
    until("it waits", || (place.waiting("a") == 1).then_some(()));
    std::fs::remove_file(place.locks.file_of(&plain("a"))).unwrap();
    let second = place.try_lock("a").unwrap();
    first.finish();
    until("it waits again", || (place.waiting("a") == 1).then_some(()));
    assert!(waiter.is_silent(), "two hold one lock");
    second.unlock();
    assert_eq!(waiter.says(), "held");
}

/// A program that another thread starts has all descriptors briefly, between fork and exec.
#[test]
fn a_lock_that_was_given_back_is_free_while_other_threads_start_programs() {
    let place = Place::new();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                Command::new("/no/such/program").spawn().unwrap_err();
            }
        });
        let outcome = (0..3000).find_map(|_| place.try_lock("a").map(HeldLock::unlock).err());
        over.store(true, Ordering::Relaxed);
        assert!(outcome.is_none(), "nobody holds it: {outcome:?}");
    });
}

#[test]
fn f_k12_a_symbolic_link_in_the_place_of_a_lock_file_is_refused() {
    let place = Place::new();
    let (theirs, link) = (place.path("theirs"), place.locks.file_of(&plain("a")));
    std::fs::write(&theirs, "precious").unwrap();
    std::os::unix::fs::symlink(&theirs, &link).unwrap();
    let locks = place.locks;
    let error = at_once(move || locks.try_lock(&plain("a"), Sharing::Exclusive).unwrap_err());
    assert!(matches!(error, LockError::Unusable { .. }), "{error}");
    assert!(
        error.to_string().contains(link.to_str().unwrap()),
        "{error}"
    );
    let error = write_atomic(&link, b"x").unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    assert_eq!(std::fs::read(&theirs).unwrap(), b"precious");
}

/// Runs [`outlive`] in a pid namespace of its own, whose end kills the heir too.
#[test]
fn a_lock_that_outlived_its_taker_is_seen_inside_a_pid_namespace() {
    let place = Place::new();
    let mut unshare = vec!["unshare", "-pf", "--mount-proc", "--kill-child"];
    if !rustix::process::geteuid().is_root() {
        unshare.insert(1, "-r");
    }
    let mut allowed = Command::new(unshare[0]);
    let allowed = allowed.args(&unshare[1..]).arg("true").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        return skipped(&format!("{unshare:?} is not allowed here"));
    }
    let output = Command::new(unshare[0])
        .args(&unshare[1..])
        .arg(std::env::current_exe().unwrap())
        .args(TASK_ARGS)
        .env(TASK, format!("{} outlive a", place.dir.path().display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("seen"), "{said}");
}

/// Has a process take a lock, hand it to a child and exit; then looks for the lock.
pub fn outlive(dir: &Path, locks: &LockDir, name: &str) {
    let (send, receive) = channel();
    let mut taker = Process::start(&format!("{} leave {name}", dir.display()), 0, &send);
    let heir = receive.recv_timeout(SOON).unwrap().1.unwrap();
    assert!(taker.0.wait().unwrap().success());
    assert!(Path::new("/proc").join(heir).exists());
    assert!(is_held(locks.try_lock(&plain(name), Sharing::Exclusive)));
    assert!(lock_table::state(locks, &plain(name)).held, "it looks free");
    say("seen");
}

/// The kernel's table of locks is longer than what it gives at once.
#[test]
fn a_held_lock_is_seen_however_many_others_come_and_go() {
    let place = Place::new();
    let _others: Vec<HeldLock> = (0..100)
        .map(|n| place.try_lock(&format!("other{n}")).unwrap())
        .collect();
    let held = place.try_lock("a").unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let some: Vec<HeldLock> = (0..20)
                    .map(|n| place.try_lock(&format!("brief{n}")).unwrap())
                    .collect();
                drop(some);
            }
        });
        let state = || lock_table::state(&place.locks, &plain("a"));
        let seen = (0..500).filter(|_| state().held).count();
        over.store(true, Ordering::Relaxed);
        assert_eq!(seen, 500);
    });
    held.unlock();
    assert!(!lock_table::state(&place.locks, &plain("a")).held);
}
