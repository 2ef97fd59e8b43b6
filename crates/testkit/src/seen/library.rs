//! The library that records what a process prints.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SOURCE: &str = include_str!("recorder.c");

/// The compiled library, beside the file that it writes to. The first test of a run compiles it, and makes the file.
pub(super) fn find(file: &Path) -> PathBuf {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| compiled(file)).clone()
}

fn compiled(file: &Path) -> PathBuf {
    let beside = |end: &str| {
        let mut name = file.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let (source, library) = (beside(".c"), beside(".so"));
    let lock = File::create(beside(".lock")).expect("the directory of TENURE_SEEN is writable");
    lock.lock().expect("a file of ours can be locked");
    let is_current = std::fs::read_to_string(&source).is_ok_and(|text| text == SOURCE);
    if !is_current || !library.exists() {
        std::fs::write(&source, SOURCE).expect("the directory of TENURE_SEEN is writable");
        let output = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &source])
            .args(["-ldl", "-lpthread"])
            .output()
            .expect("the C compiler can be run");
        assert!(output.status.success(), "{output:?}");
    }
    if !file.exists() {
        File::create(file).expect("the directory of TENURE_SEEN is writable");
        // Some tests run tenure as another user.
        let everyone = Permissions::from_mode(0o666);
        std::fs::set_permissions(file, everyone).expect("it is ours");
    }
    library
}
