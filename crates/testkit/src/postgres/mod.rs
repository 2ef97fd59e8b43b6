//! Real PostgreSQL servers and poolers for tests.
//!
//! `scripts/tools` installs both, and `scripts/test` sets `TENURE_POSTGRES` and `TENURE_PGBOUNCER`
//! to their paths. They refuse to run as root, so root runs them as another user in a user
//! namespace: files stay readable, and nothing is copied.
//!
//! The tests of one run share a [`PostgresServer`]; each test has its own schema. Users of the server hold
//! a kernel lock. A guard process stops the server and removes its directory when no one has held
//! the lock for a moment, so a killed test leaves no server behind. A test that stops or breaks a
//! server makes its [own](PostgresServer::own), which ends with the test.

mod asker;
mod bouncer;
mod cut;
mod encrypted;
mod proxy;
mod server;

pub use asker::Asker;
pub use bouncer::{Bouncer, PoolMode};
pub use cut::Cut;
pub use encrypted::certificate;
pub use proxy::Proxy;
pub use server::PostgresServer;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The program that a variable names; tests that need it fail without it.
#[track_caller]
fn tool(variable: &str) -> PathBuf {
    match std::env::var_os(variable) {
        Some(path) => PathBuf::from(path),
        None => panic!("{variable} is not set; run: scripts/test --stage postgres"),
    }
}

/// A command that runs as a user other than root, with only PATH from this environment.
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

/// An unused port.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}
