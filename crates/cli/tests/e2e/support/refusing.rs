//! A kernel that refuses some calls.

use std::path::Path;
use std::process::Command;

use tenure_testkit::{Cmd, Env};

/// A shell line for whose commands these calls fail, each as `CALL:ERROR`, or `CALL:ERROR:ARGUMENT:VALUE` if only the
/// call with this argument fails.
pub fn refusing(env: &Env, calls: &[&str], line: &str) -> Cmd {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/refusing.c");
    let program = env.dir().join("refusing");
    if !program.exists() {
        let made = Command::new("cc")
            .args(["-O1", "-o"])
            .args([&program, &source])
            .output()
            .expect("the C compiler can be run");
        assert!(made.status.success(), "{made:?}");
    }
    Cmd::new(program.display().to_string())
        .args(calls.iter().copied())
        .args(["--", "sh", "-c", line])
}
