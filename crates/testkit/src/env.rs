//! The environment of one test: a private home, a private state directory, and workers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::Agent;
use crate::host::Host;
use crate::job::ProcessJob;
use crate::output::Output;
use crate::place::TestRoot;
use crate::postgres::PostgresServer;
use crate::shell::Shell;
use crate::space::Space;
use crate::terminal::Terminal;
use crate::worker::WorkerHandle;

/// A private directory, and everything that a test starts in it.
///
/// Workers have only the variables PATH (with `tenure` first), HOME, TENURE_HOME, TENURE_TEST,
/// LANG, TMPDIR and those that [`Env::set`] adds.
#[derive(Debug)]
pub struct Env {
    space: Arc<Space>,
    added: Vec<(String, String)>,
    /// The server of its store, if it has one, and the schema there.
    server: Option<(PostgresServer, String)>,
}

impl Env {
    /// A new environment for this tenure executable, which need not exist until it is run.
    ///
    /// If the tests run with `TENURE_TEST_STORE=postgres`, its store is a new one on their shared
    /// server, so that the same test covers both backends.
    pub fn new(tenure: &Path) -> Env {
        let mut env = Env {
            space: Arc::new(Space::new(TestRoot::new(tenure))),
            added: Vec::new(),
            server: None,
        };
        if std::env::var_os("TENURE_TEST_STORE").is_some_and(|store| store == "postgres") {
            env.use_server();
        }
        env
    }

    fn use_server(&mut self) {
        let server = PostgresServer::shared();
        let schema = server.new_schema();
        self.set("TENURE_STORE", server.url(&schema));
        self.server = Some((server, schema));
        let made = self.tenure(&["store", "migrate"]);
        assert_eq!(made.code, 0, "{made}");
    }

    /// The server of its store, if it has one, and the schema there.
    pub fn server(&self) -> Option<(&PostgresServer, &str)> {
        let server = self.server.as_ref();
        server.map(|(server, schema)| (server, schema.as_str()))
    }

    /// The directory of it all, without symbolic links.
    pub fn dir(&self) -> &Path {
        self.space.place.root()
    }

    pub fn home(&self) -> PathBuf {
        self.dir().join("home")
    }

    /// TENURE_HOME, which does not exist until tenure creates it.
    pub fn state(&self) -> PathBuf {
        self.dir().join("state")
    }

    /// The directory that workers start in.
    pub fn work(&self) -> PathBuf {
        self.dir().join("work")
    }

    /// The remote of a repository that no other test has a clone of, nor anyone on this machine.
    pub fn own_remote(&self, name: &str) -> String {
        let own = self.dir().file_name().unwrap_or_default();
        let own = own.to_string_lossy().to_lowercase();
        format!("https://github.com/{own}/{name}")
    }

    pub fn tenure_path(&self) -> &Path {
        self.space.place.tenure()
    }

    /// Sets a variable for workers that are started later, and for [`Env::tenure`].
    pub fn set(&mut self, key: &str, value: impl Into<String>) {
        self.added.push((key.to_owned(), value.into()));
    }

    pub(crate) fn place(&self) -> &TestRoot {
        &self.space.place
    }

    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let mut all = self.space.place.variables();
        all.extend(self.added.iter().cloned());
        all
    }

    /// Runs tenure from outside any session.
    #[track_caller]
    #[must_use = "what a command answered is there to be checked"]
    pub fn tenure(&self, args: &[&str]) -> Output {
        let mut cmd = self.space.place.tenure_with(args);
        for (key, value) in &self.added {
            cmd = cmd.env(key, value);
        }
        let plain = self.space.plain();
        ProcessJob::start(plain, &self.space.place, cmd).finish(plain)
    }

    /// An agent with this name, without a terminal.
    pub fn agent(&self, name: &str) -> Agent {
        self.agent_with(name, &[])
    }

    /// The same, with arguments on its command line.
    pub fn agent_with(&self, name: &str, args: &[&str]) -> Agent {
        self.start(name, args, None)
    }

    /// An agent with this name, which leads a process session at a terminal of its own.
    pub fn agent_at_terminal(&self, name: &str) -> Agent {
        self.start(name, &[], Some(Terminal::open()))
    }

    fn start(&self, name: &str, args: &[&str], terminal: Option<Terminal>) -> Agent {
        let worker =
            WorkerHandle::detached(&self.space.place, &self.variables(), name, args, terminal);
        Agent::new(worker, Arc::clone(&self.space))
    }

    /// A host with this name and boot id, whose processes see no others; `None` if this system makes
    /// no pid namespaces for us.
    #[track_caller]
    pub fn host(&self, name: &str, boot: &str) -> Option<Host> {
        Host::start(Arc::clone(&self.space), &self.variables(), name, boot)
    }

    /// A real interactive shell, which leads a process session at a terminal of its own.
    pub fn shell_at_terminal(&self) -> Shell {
        Shell::open(Arc::clone(&self.space), &self.variables())
    }
}
