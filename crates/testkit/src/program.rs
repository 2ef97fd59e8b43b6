//! The worker's executable: where cargo built it, and under which names it is run.
//!
//! Cargo builds it with the tests of this package and of the workspace, but not with those of
//! another package alone. If it is missing, or older than the sources of this package, a test makes
//! cargo build it. Tests that need it at the same time wait for the first of them.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// The built `fakeagent`, in the parent directory of this test's executable.
pub fn find() -> PathBuf {
    let own = std::env::current_exe().expect("a running program has an executable");
    let dir = own.parent().expect("an executable lies in a directory");
    let dir = match dir.file_name() {
        Some(name) if name == "deps" => dir.parent().unwrap_or(dir),
        _ => dir,
    };
    let program = dir.join("fakeagent");
    if !is_current(&program) {
        let lock = File::create(dir.join(".fakeagent.lock")).expect("the target is writable");
        lock.lock().expect("a file in the target can be locked");
        if !is_current(&program) {
            build(dir);
        }
    }
    assert!(program.is_file(), "{} was not built", program.display());
    program
}

/// Whether it exists and is newer than its sources.
fn is_current(program: &Path) -> bool {
    let built = program.metadata().and_then(|found| found.modified());
    built.is_ok_and(|built| built >= newest(&sources()))
}

/// Where this package's sources were when it was built.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// When a file below here was last written; the Unix epoch if there is none.
fn newest(dir: &Path) -> SystemTime {
    let entries = dir.read_dir().into_iter().flatten().flatten();
    let times = entries.filter_map(|entry| {
        if entry.file_type().ok()?.is_dir() {
            Some(newest(&entry.path()))
        } else {
            entry.metadata().ok()?.modified().ok()
        }
    });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Makes cargo build it with the profile and target of this test, whose directory is `dir`.
fn build(dir: &Path) {
    let profile = match dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let above = dir.parent().unwrap_or(dir);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "tenure-testkit",
        ])
        .args(["--bin", "fakeagent", "--profile", profile])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null());
    // With an explicit target such as x86_64-unknown-linux-gnu, the profile's directory is one
    // level deeper.
    let target = above.file_name().unwrap_or_default();
    if target.to_string_lossy().matches('-').count() < 2 {
        command.arg("--target-dir").arg(above)
    } else {
        let root = above.parent().unwrap_or(above);
        command
            .arg("--target-dir")
            .arg(root)
            .arg("--target")
            .arg(target)
    };
    let output = command.output().expect("cargo can be run");
    assert!(
        output.status.success(),
        "fakeagent cannot be built by {command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Makes the program available under this name in `dir`, so that /proc/PID/exe shows the name. The name may have
/// folders in front.
pub fn link(program: &Path, dir: &Path, name: &str) -> PathBuf {
    let link = dir.join(name);
    let folder = link.parent().expect("a link lies in a directory");
    std::fs::create_dir_all(folder).expect("the directory of links is writable");
    match std::fs::hard_link(program, &link) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(_) => copy(program, &link),
    }
    link
}

/// Copies in a separate process. If this process had the file open for writing, a process that
/// another thread forks at that moment would have it open too, and executing it would fail
/// (ETXTBSY).
fn copy(program: &Path, link: &Path) {
    let scratch = tempfile::Builder::new()
        .prefix("copy-")
        .tempdir_in(link.parent().expect("a link lies in a directory"))
        .expect("the directory of links is writable");
    let whole = scratch.path().join("whole");
    let status = Command::new("cp")
        .arg(program)
        .arg(&whole)
        .status()
        .expect("cp can be run");
    assert!(status.success(), "cp of {} failed", program.display());
    std::fs::rename(&whole, link).expect("the copy can be renamed within its file system");
}
