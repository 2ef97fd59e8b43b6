//! The worker's executable: where cargo built it, and under which names it is run.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The built `fakeagent`, which lies beside the directory of this test's executable.
pub fn find() -> PathBuf {
    let own = std::env::current_exe().expect("a running program has an executable");
    let dir = own.parent().expect("an executable lies in a directory");
    let dir = match dir.file_name() {
        Some(name) if name == "deps" => dir.parent().unwrap_or(dir),
        _ => dir,
    };
    let program = dir.join("fakeagent");
    assert!(
        program.is_file(),
        "{} is missing; run: cargo build -p tenure-testkit --bin fakeagent \
         (with the profile and target of this test)",
        program.display()
    );
    program
}

/// Makes the program available under this name in `dir`, so that /proc/PID/exe shows the name.
pub fn link(program: &Path, dir: &Path, name: &str) -> PathBuf {
    let link = dir.join(name);
    match std::fs::hard_link(program, &link) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(_) => copy(program, &link),
    }
    link
}

/// Copies by a process of its own: where this one had the file open for writing, a process that another
/// thread forks at that moment would have it open too, and to execute it would fail (ETXTBSY).
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
