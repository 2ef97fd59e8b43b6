//! What `tenure` and `tenure-server` link. Both are built before this runs, because it is a test of the whole workspace.

#![allow(clippy::disallowed_methods)] // The programs are files of the build.

use std::path::{Path, PathBuf};
use std::process::Command;

fn server() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_tenure-server"))
}

/// How the names of crates that speak over a network begin in mangled symbols.
const NETWORK: [&str; 7] = [
    "_ZN4axum",
    "_ZN5hyper",
    "_ZN6rustls",
    "_ZN4ureq",
    "_ZN5tokio",
    "_ZN14tokio_postgres",
    "_ZN15tenure_dispatch",
];

#[test]
fn what_hooks_start_links_no_network_code() {
    let lean = symbols(&server().with_file_name("tenure"));
    let whole = symbols(&server());
    let of_network = |all: &str| -> Vec<String> {
        let ours = |line: &&str| NETWORK.iter().any(|name| line.contains(name));
        all.lines().filter(ours).map(str::to_owned).collect()
    };
    assert!(
        !of_network(&whole).is_empty(),
        "the names are looked for as they are spelt"
    );
    let found = of_network(&lean);
    assert!(
        found.is_empty(),
        "tenure links {} functions that only tenure-server needs, such as {:#?}\n\
         No crate that the package `tenure` depends on may depend on them.",
        found.len(),
        found.iter().take(5).collect::<Vec<_>>(),
    );
}

/// A fixed address spares the loader a write to every page of tables at each start. What listens on a network has none.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn what_hooks_start_has_a_fixed_address_and_the_server_has_none() {
    // From elf.h: an executable with a fixed address, and one that can be loaded anywhere.
    const EXEC: u16 = 2;
    const DYN: u16 = 3;
    let kind = |program: &Path| {
        let bytes = std::fs::read(program).expect("it was built");
        u16::from_ne_bytes([bytes[16], bytes[17]])
    };
    assert_eq!(kind(&server().with_file_name("tenure")), EXEC);
    assert_eq!(kind(&server()), DYN);
}

fn symbols(program: &Path) -> String {
    let listed = Command::new("nm").arg(program).output();
    let listed = listed.expect("nm comes with the C compiler");
    assert!(listed.status.success());
    String::from_utf8(listed.stdout).expect("names of symbols are text")
}
