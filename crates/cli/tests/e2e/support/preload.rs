//! Libraries that change what a process is told.

use std::path::Path;
use std::process::Command;

use tenure_testkit::Env;

/// Compiles a library of these tests; its path.
pub fn library(env: &Env, name: &str) -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e");
    let library = env.dir().join(format!("{name}.so"));
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &tests.join(format!("{name}.c"))])
        .arg("-ldl")
        .output()
        .expect("the C compiler can be run");
    assert!(made.status.success(), "{made:?}");
    library.display().to_string()
}
