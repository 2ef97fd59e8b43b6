//! Tests that this machine cannot run.

use std::io::Write;

/// Says past the test's captured output that a test did nothing.
pub fn skipped(why: &str) {
    let test = std::thread::current();
    writeln!(
        std::io::stderr(),
        "skipped: {}: {why}",
        test.name().unwrap_or("?")
    )
    .ok();
}
