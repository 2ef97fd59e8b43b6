//! Real PostgreSQL servers and poolers for tests.
//!
//! `scripts/tools` brings both and `scripts/test` names them in `TENURE_POSTGRES` and `TENURE_PGBOUNCER`. They refuse to
//! run as root, so root runs them in a user namespace in which it is somebody else: files stay readable, and nothing is
//! copied.
//!
//! Tests of one run share a [`Server`]; each has a schema of its own. Who uses the server holds a kernel lock; a guard
//! beside the server ends it, and removes its directory, when nobody has held that for a moment. So a test that is
//! killed leaves no server behind. A test that stops or breaks a server makes its [own](Server::own), which ends with
//! it.

mod asker;
mod bouncer;
mod cut;
mod proxy;
mod server;

pub use asker::Asker;
pub use bouncer::{Bouncer, PoolMode};
pub use cut::Cut;
pub use proxy::Proxy;
pub use server::Server;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A program that a variable names; tests that need it fail without it.
#[track_caller]
fn tool(variable: &str) -> PathBuf {
    match std::env::var_os(variable) {
        Some(path) => PathBuf::from(path),
        None => panic!("{variable} is not set; run: scripts/test --stage postgres"),
    }
}

/// A command as a user that is not root, with nothing of this environment but PATH.
fn unprivileged(program: impl AsRef<OsStr>) -> Command {
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-user=1000", "--map-group=1000", "--"])
            .arg(program);
        command
    } else {
        Command::new(program)
    };
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null());
    command
}

/// A port that nothing listens on.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}
