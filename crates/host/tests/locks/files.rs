//! Files that are replaced as a whole, by many writers.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use tenure_host::file::write_atomic;
use tenure_host::kernel_lock::{LockDir, LockName, Patience, Sharing};

use crate::worker::{Place, TASK, TASK_ARGS, Worker};

/// Reports, past the harness, that a test did not run.
pub fn skipped(why: &str) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    writeln!(std::io::stderr().lock(), "skipped {name}: {why}").unwrap();
}

/// Replaces a file again and again by a run of one letter.
pub fn write(path: &Path, letter: &str, rounds: usize) {
    // Private files must be private without a umask.
    rustix::process::umask(rustix::fs::Mode::empty());
    for round in 0..rounds {
        let text = letter.repeat(1 + 7919 * (round % 5));
        write_atomic(path, text.as_bytes()).unwrap();
    }
}

#[test]
fn f_k09_f_k10_writers_never_share_a_temporary_file_nor_let_others_read_it() {
    let place = Place::new();
    let out = place.path("out");
    std::fs::create_dir(&out).unwrap();
    write_atomic(&out.join("f"), b"a").unwrap();
    let mut workers: Vec<Worker> = ["b", "c", "d", "e", "g", "h", "i", "j"]
        .map(|letter| place.start(&format!("write out/f {letter} 60")))
        .into();
    let (mut seen, mut temporary) = (0, 0);
    while workers
        .iter_mut()
        .any(|worker| worker.process.0.try_wait().unwrap().is_none())
    {
        let text = std::fs::read(out.join("f")).unwrap();
        assert!(text.iter().all(|byte| *byte == text[0]), "torn");
        assert_eq!((text.len() - 1) % 7919, 0, "torn");
        seen += 1;
        for entry in std::fs::read_dir(&out).unwrap().flatten() {
            // A renamed one is checked in the next round.
            let Ok(found) = entry.metadata() else {
                continue;
            };
            assert_eq!(found.permissions().mode() & 0o777, 0o600, "{entry:?}");
            temporary += u32::from(entry.file_name() != "f");
        }
    }
    workers.into_iter().for_each(Worker::finish);
    assert!(seen > 0);
    println!("{seen} reads, {temporary} temporary files seen");
    assert_eq!(
        std::fs::read_dir(&out).unwrap().count(),
        1,
        "nothing is left behind"
    );
}

#[test]
fn f_k10_f_k11_a_file_is_private_from_birth_and_flushed_before_and_after_its_name() {
    let place = Place::new();
    if !Command::new("strace")
        .arg("-V")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        return skipped("strace is not installed");
    }
    let trace = place.path("trace");
    let status = Command::new("strace")
        .args([
            "-f",
            "-y",
            "-e",
            "trace=openat,write,fchmod,fsync,fdatasync,rename,renameat,renameat2",
        ])
        .arg("-o")
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .args(TASK_ARGS)
        .env(
            TASK,
            format!("{} write file x 1", place.dir.path().to_str().unwrap()),
        )
        .stdout(Stdio::null())
        .status()
        .unwrap();
    if !status.success() {
        return skipped("strace may not trace here");
    }
    let text = std::fs::read_to_string(trace).unwrap();
    let dir = format!("<{}>", place.dir.path().to_str().unwrap());
    let steps: Vec<&str> = text.lines().filter_map(|line| step(line, &dir)).collect();
    let expected = [
        "made 0600",
        "written",
        "flushed",
        "renamed",
        "directory flushed",
    ];
    assert_eq!(steps, expected, "{text}");
}

/// What a line of the trace does, if it matters for a file's durability.
fn step(line: &str, dir: &str) -> Option<&'static str> {
    let is = |call: &str| line.contains(&format!(" {call}("));
    let temporary = line.contains("/.file.");
    if is("openat") && temporary && line.contains(", 0600)") {
        Some("made 0600")
    } else if is("openat") && temporary {
        Some("made readable for others")
    } else if is("write") && temporary {
        Some("written")
    } else if (is("fsync") || is("fdatasync")) && temporary {
        Some("flushed")
    } else if line.contains(" rename") && temporary {
        Some("renamed")
    } else if (is("fsync") || is("fdatasync")) && line.contains(dir) {
        Some("directory flushed")
    } else {
        None
    }
}

/// Commits a change, then updates the mirror from what is committed when its lock is acquired.
pub fn mirror(dir: &Path, locks: &LockDir, rounds: usize) {
    let (state, shown) = (dir.join("state"), dir.join("mirror"));
    let read = |path: &Path| -> u64 { std::fs::read_to_string(path).unwrap().parse().unwrap() };
    let endless = |path: &Path| {
        let name = LockName::of_path(path).unwrap();
        locks
            .lock(&name, Sharing::Exclusive, Patience::Endless)
            .unwrap()
    };
    for _ in 0..rounds {
        let held = endless(&state);
        write_atomic(&state, (read(&state) + 1).to_string().as_bytes()).unwrap();
        held.unlock();
        let held = endless(&shown);
        let newest = read(&state);
        assert!(newest >= read(&shown), "the mirror would go back");
        write_atomic(&shown, newest.to_string().as_bytes()).unwrap();
        held.unlock();
    }
}

#[test]
fn f_k15_a_mirror_that_is_written_under_its_lock_never_stays_behind() {
    let place = Place::new();
    for file in ["state", "mirror"] {
        write_atomic(&place.path(file), b"0").unwrap();
    }
    let workers: Vec<Worker> = (0..4).map(|_| place.start("mirror 40")).collect();
    workers.into_iter().for_each(Worker::finish);
    for file in ["state", "mirror"] {
        assert_eq!(
            std::fs::read_to_string(place.path(file)).unwrap(),
            "160",
            "{file}"
        );
    }
}
