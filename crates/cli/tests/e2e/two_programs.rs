//! `tenure` and `tenure-server`: what each links, and how one becomes the other.

use std::process::Command;

use tenure_testkit::Env;

use crate::support::env;

/// How the names of crates that speak over a network begin in mangled symbols.
const NETWORK: [&str; 7] = [
    "_ZN4axum",
    "_ZN5hyper",
    "_ZN6rustls",
    "_ZN4ureq",
    "_ZN5tokio",
    "_ZN14tokio_postgres",
    "_ZN13tenure_server",
];

#[test]
fn what_hooks_start_links_no_network_code() {
    let lean = symbols(env!("CARGO_BIN_EXE_tenure"));
    let whole = symbols(env!("CARGO_BIN_EXE_tenure-server"));
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
         Pass them through `Network` (crates/cli/src/network.rs).",
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
    let kind = |program: &str| {
        let bytes = std::fs::read(program).expect("it was built");
        u16::from_ne_bytes([bytes[16], bytes[17]])
    };
    assert_eq!(kind(env!("CARGO_BIN_EXE_tenure")), EXEC);
    assert_eq!(kind(env!("CARGO_BIN_EXE_tenure-server")), DYN);
}

fn symbols(program: &str) -> String {
    let listed = Command::new("nm").arg(program).output();
    let listed = listed.expect("nm comes with the C compiler");
    assert!(listed.status.success());
    String::from_utf8(listed.stdout).expect("names of symbols are text")
}

#[test]
fn a_missing_second_program_is_named() {
    let env = env();
    let dir = env.dir().join("alone");
    std::fs::create_dir(&dir).unwrap();
    let alone = dir.join("tenure");
    std::fs::copy(env.tenure_path(), &alone).unwrap();
    let env = Env::new(&alone);
    let refused = env.tenure(&["dispatch", "check"]);
    assert_eq!(refused.code, 70, "{refused:?}");
    assert!(
        refused.stderr.contains("tenure-server"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("cargo install"),
        "{}",
        refused.stderr
    );
}
