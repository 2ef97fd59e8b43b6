//! pgbouncer in front of a server.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::{Asker, PostgresServer, free_port, tool, unprivileged};
use crate::poll;

/// When a client gets another connection to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMode {
    Session,
    Transaction,
    Statement,
}

/// A running pooler. It ends with the test.
#[derive(Debug)]
pub struct Bouncer {
    child: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl Bouncer {
    /// A pooler with this many connections to the server.
    #[track_caller]
    pub fn start(server: &PostgresServer, mode: PoolMode, connections: usize) -> Bouncer {
        let dir = tempfile::Builder::new()
            .prefix("tenure-pgbouncer-")
            .tempdir()
            .expect("a directory");
        let port = free_port();
        let mode = match mode {
            PoolMode::Session => "session",
            PoolMode::Transaction => "transaction",
            PoolMode::Statement => "statement",
        };
        let config = format!(
            "[databases]\ntenure = host={} port={} dbname=tenure user=tenure\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\n\
             default_pool_size = {connections}\nmax_client_conn = 200\nserver_login_retry = 1\nlogfile = {}\n",
            server.socket_dir().display(),
            server.port(),
            dir.path().join("log").display(),
        );
        let path: PathBuf = dir.path().join("pgbouncer.ini");
        std::fs::write(&path, config).expect("its settings");
        let child = unprivileged("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(tool("TENURE_PGBOUNCER"))
            .arg(&path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("pgbouncer starts");
        poll(
            Duration::from_secs(30),
            "pgbouncer accepts connections",
            || TcpStream::connect(("127.0.0.1", port)).ok(),
        );
        Bouncer {
            child,
            port,
            _dir: dir,
        }
    }

    /// The URL of a store in this schema, through the pooler.
    pub fn url(&self, schema: &str) -> String {
        format!(
            "postgres://tenure@127.0.0.1:{}/tenure?schema={schema}",
            self.port
        )
    }

    /// A connection through it.
    #[track_caller]
    pub fn asker(&self) -> Asker {
        let mut config = tokio_postgres::Config::new();
        config
            .host("127.0.0.1")
            .port(self.port)
            .user("tenure")
            .dbname("tenure");
        Asker::connect(&config)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        if self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }
}
