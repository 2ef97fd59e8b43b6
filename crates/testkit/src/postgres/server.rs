//! A PostgreSQL server in a directory of its own, on a socket and on a port of this machine.

use std::fs::{File, OpenOptions};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::asker::Asker;
use super::{free_port, tool, unprivileged};
use crate::poll;

/// How long a server may take to start on a loaded machine.
const START: Duration = Duration::from_secs(60);
/// The name of its superuser and of the database.
const NAME: &str = "tenure";
/// The superuser's password, for connections by TCP.
const PASSWORD: &str = "correct horse";

static SCHEMAS: AtomicU32 = AtomicU32::new(0);

/// A running server.
#[derive(Debug)]
pub struct PostgresServer {
    dir: PathBuf,
    port: u16,
    /// The process, if only one test uses the server.
    own: Option<Child>,
    _temp: Option<tempfile::TempDir>,
    /// Held while the server is in use.
    _users: Option<File>,
}

impl PostgresServer {
    /// The server that the tests of this run share; starts it if necessary.
    #[track_caller]
    pub fn shared() -> PostgresServer {
        let run =
            std::env::var("NEXTEST_RUN_ID").unwrap_or_else(|_| std::process::id().to_string());
        let uid = rustix::process::getuid().as_raw();
        let dir = std::env::temp_dir().join(format!("tenure-postgres-{uid}-{run}"));
        let starting = lock_file(&dir, "start");
        starting.lock().expect("the lock of those who start it");
        let port = match running_port(&dir) {
            Some(port) => port,
            None => {
                if dir.exists() {
                    std::fs::remove_dir_all(&dir).expect("what a killed server left");
                }
                start_shared(&dir)
            }
        };
        let users = lock_file(&dir, "users");
        users.lock_shared().expect("the lock of those who use it");
        drop(starting);
        PostgresServer {
            dir,
            port,
            own: None,
            _temp: None,
            _users: Some(users),
        }
    }

    /// A server for one test, with these settings (`name = value`).
    #[track_caller]
    pub fn own(settings: &[&str]) -> PostgresServer {
        let temp = tempfile::Builder::new()
            .prefix("tenure-postgres-own-")
            .tempdir()
            .expect("a directory");
        let dir = temp.path().to_owned();
        let port = free_port();
        make(&dir, port);
        let conf = dir.join("data/postgresql.auto.conf");
        std::fs::write(conf, settings.join("\n") + "\n").expect("its settings");
        let mut server = PostgresServer {
            dir,
            port,
            own: None,
            _temp: Some(temp),
            _users: None,
        };
        server.start();
        server
    }

    /// Starts a test's own server again.
    #[track_caller]
    pub fn start(&mut self) {
        self.start_with(&[]);
    }

    /// The same with these environment variables.
    #[track_caller]
    pub fn start_with(&mut self, variables: &[(&str, &str)]) {
        let log = File::create(self.dir.join("log")).expect("its log");
        let mut command = unprivileged("setpriv");
        // It ends with the test, however the test ends.
        command.args(["--pdeathsig", "INT", "--"]);
        command.args(server_command(&self.dir));
        let child = command
            .envs(variables.iter().copied())
            .stdout(Stdio::from(log.try_clone().expect("its log")))
            .stderr(Stdio::from(log))
            .spawn()
            .expect("PostgreSQL starts");
        self.own = Some(child);
        wait_until_ready(&self.dir, self.port);
    }

    /// Stops a test's own server: at once, as a crash would, or after a clean shutdown.
    #[track_caller]
    pub fn stop(&mut self, crash: bool) {
        let Some(mut child) = self.own.take() else {
            return;
        };
        let signal = if crash {
            rustix::process::Signal::QUIT
        } else {
            rustix::process::Signal::INT
        };
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).expect("the server is signalled");
        child.wait().expect("the server ends");
    }

    /// Keeps what is on the disk of a stopped server under a name.
    #[track_caller]
    pub fn keep(&self, name: &str) {
        assert!(self.own.is_none(), "it is stopped");
        copy_dir(&self.dir.join("data"), &self.dir.join(name));
    }

    /// Puts what was kept back on the disk of a stopped server.
    #[track_caller]
    pub fn bring_back(&self, name: &str) {
        assert!(self.own.is_none(), "it is stopped");
        let data = self.dir.join("data");
        std::fs::remove_dir_all(&data).expect("its data");
        copy_dir(&self.dir.join(name), &data);
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory of its socket.
    pub fn socket_dir(&self) -> PathBuf {
        self.dir.join("s")
    }

    /// A schema name that no other test uses.
    pub fn new_schema(&self) -> String {
        let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
        format!("t_{}_{number}", std::process::id())
    }

    /// The URL of a store in this schema, through the socket, as the superuser.
    pub fn url(&self, schema: &str) -> String {
        self.url_as(NAME, schema)
    }

    /// The same as another role.
    pub fn url_as(&self, role: &str, schema: &str) -> String {
        format!(
            "postgres://{role}@/{NAME}?host={}&port={}&schema={schema}",
            self.socket_dir().display(),
            self.port
        )
    }

    /// The same by TCP, which needs the password.
    pub fn tcp_url(&self, password: Option<&str>, schema: &str) -> String {
        let password = password.map(|text| format!(":{}", text.replace(' ', "%20")));
        format!(
            "postgres://{NAME}{}@127.0.0.1:{}/{NAME}?schema={schema}",
            password.unwrap_or_default(),
            self.port
        )
    }

    /// The superuser's password.
    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// Runs statements as the superuser of a server on this socket, until they or the server end.
    pub fn hold_at(socket_dir: &str, port: u16, sql: &str) {
        let mut config = tokio_postgres::Config::new();
        config
            .host_path(socket_dir)
            .port(port)
            .user(NAME)
            .dbname(NAME);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let connected = config.connect(tokio_postgres::NoTls).await;
            let (client, connection) = connected.expect("a connection");
            let driver = tokio::spawn(connection);
            // It fails when the server ends.
            drop(client.simple_query(sql).await);
            driver.abort();
        });
    }

    /// Runs statements as the superuser.
    #[track_caller]
    pub fn run(&self, sql: &str) {
        self.ask(sql);
    }

    /// Runs a statement as the superuser; returns the first column of its rows.
    #[track_caller]
    pub fn ask(&self, sql: &str) -> Vec<String> {
        self.asker().ask(sql)
    }

    /// A connection of the superuser, for one who asks often.
    #[track_caller]
    pub fn asker(&self) -> Asker {
        let mut config = tokio_postgres::Config::new();
        config
            .host_path(self.socket_dir())
            .port(self.port)
            .user(NAME)
            .dbname(NAME);
        Asker::connect(&config)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop(true);
    }
}

fn copy_dir(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).output();
    let copied = copied.expect("cp starts");
    assert!(copied.status.success(), "{copied:?}");
}

fn lock_file(dir: &Path, what: &str) -> File {
    let path = dir.with_extension(what);
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .expect("a lock file")
}

fn socket(dir: &Path, port: u16) -> PathBuf {
    dir.join(format!("s/.s.PGSQL.{port}"))
}

fn running_port(dir: &Path) -> Option<u16> {
    let port = std::fs::read_to_string(dir.join("port")).ok()?;
    let port = port.trim().parse().ok()?;
    UnixStream::connect(socket(dir, port)).ok().map(|_| port)
}

/// Creates the directory of a server.
fn make(dir: &Path, port: u16) {
    std::fs::create_dir_all(dir.join("s")).expect("the directory of its socket");
    std::fs::write(dir.join("password"), PASSWORD).expect("its password");
    let made = unprivileged(tool("TENURE_POSTGRES").join("bin/initdb"))
        .arg("--pgdata")
        .arg(dir.join("data"))
        .arg("--pwfile")
        .arg(dir.join("password"))
        .args(["--username", NAME, "--encoding", "UTF8", "--locale", "C"])
        .args(["--auth-local", "trust", "--auth-host", "scram-sha-256"])
        .args(["--no-sync", "--no-instructions"])
        .output()
        .expect("initdb starts");
    assert!(made.status.success(), "initdb: {made:?}");
    let settings = format!(
        "port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{}'\nmax_connections = 200\n\
         shared_buffers = 32MB\nfsync = off\nlog_min_messages = warning\n",
        dir.join("s").display()
    );
    let conf = dir.join("data/postgresql.conf");
    let before = std::fs::read_to_string(&conf).expect("its settings");
    std::fs::write(conf, before + &settings).expect("its settings");
    std::fs::write(dir.join("port"), port.to_string()).expect("its port");
}

fn server_command(dir: &Path) -> Vec<std::ffi::OsString> {
    let program = tool("TENURE_POSTGRES").join("bin/postgres");
    vec![program.into(), "-D".into(), dir.join("data").into()]
}

fn start_shared(dir: &Path) -> u16 {
    let port = free_port();
    make(dir, port);
    let guard = dir.join("guard.sh");
    std::fs::write(&guard, include_str!("guard.sh")).expect("the guard");
    let mut command = Command::new("setsid");
    command.arg("sh").arg(guard).arg(dir);
    let server = unprivileged(&server_command(dir)[0]);
    command.arg(server.get_program()).args(server.get_args());
    command.args(&server_command(dir)[1..]);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    let mut started = command.spawn().expect("the guard starts");
    wait_until_ready(dir, port);
    // It keeps running without this process.
    drop(started.try_wait());
    port
}

fn wait_until_ready(dir: &Path, port: u16) {
    poll(START, "PostgreSQL accepts connections", || {
        UnixStream::connect(socket(dir, port)).ok()
    });
    // The socket exists before the server accepts connections.
    let mut config = tokio_postgres::Config::new();
    config
        .host_path(dir.join("s"))
        .port(port)
        .user(NAME)
        .dbname("postgres");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let made = poll(START, "PostgreSQL is ready", || {
        runtime.block_on(async {
            let (client, connection) = config.connect(tokio_postgres::NoTls).await.ok()?;
            let driver = tokio::spawn(connection);
            let made = client
                .simple_query(&format!("CREATE DATABASE {NAME}"))
                .await;
            driver.abort();
            Some(made)
        })
    });
    if let Err(error) = made {
        let code = error.code().map(|code| code.code().to_owned());
        // It exists already, or this server is a standby.
        assert!(
            matches!(code.as_deref(), Some("42P04" | "25006")),
            "{error:?}"
        );
    }
}
