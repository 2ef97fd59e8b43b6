//! A machine with a keeper, and what tests do on it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tenure_testkit::pinned::{Pinned, Stat};
use tenure_testkit::postgres::{PostgresServer, Proxy};
use tenure_testkit::protocol::Started;
use tenure_testkit::{Agent, Cmd, Env, Host, Output, Signal, poll};

pub const SOON: Duration = Duration::from_secs(40);

/// A server, and an environment whose commands start keepers.
pub fn kept(more: &[(&str, &str)]) -> (PostgresServer, Env) {
    let server = PostgresServer::own(&[]);
    let env = kept_at(&server.url("tenure"), more);
    (server, env)
}

/// The same with a store at this URL.
pub fn kept_at(url: &str, more: &[(&str, &str)]) -> Env {
    let mut env = Env::new(Path::new(env!("CARGO_BIN_EXE_tenure")));
    env.set("TENURE_STORE", url);
    env.tenure(&["store", "migrate"]).ok();
    env.set("TENURE_KEEPER_START", "true");
    for (key, value) in more {
        env.set(key, *value);
    }
    env
}

/// A link to the server that a test cuts, and the URL through it.
pub fn proxied(server: &PostgresServer) -> (Proxy, String) {
    let proxy = Proxy::start(server.port());
    let direct = server.tcp_url(Some(server.password()), "tenure");
    let (own, through) = (
        format!(":{}/", server.port()),
        format!(":{}/", proxy.port()),
    );
    let url = direct.replace(&own, &through);
    (proxy, url)
}

/// A machine: its state directory makes it another host than the others. Its keeper ends with it.
pub struct Machine<'a> {
    env: &'a Env,
    home: PathBuf,
    /// Another way to the store, if it has one.
    store: Option<String>,
    person: Agent,
    /// Where its processes run, if not beside those of the test.
    host: Option<Host>,
}

/// Two machines that see no process of each other; none if this system makes no pid namespaces for us, which is said.
pub fn two_hosts(env: &Env) -> Option<(Machine<'_>, Machine<'_>)> {
    Machine::host(env, "a").zip(Machine::host(env, "b"))
}

/// Says past the test's captured output that a test did nothing.
pub fn skipped(why: &str) {
    let test = std::thread::current();
    let name = test.name().unwrap_or("?");
    writeln!(std::io::stderr(), "skipped: {name}: {why}").ok();
}

impl<'a> Machine<'a> {
    pub fn new(env: &'a Env, name: &str) -> Self {
        Self {
            home: env.dir().join(name),
            env,
            store: None,
            person: env.agent("human"),
            host: None,
        }
    }

    /// A machine whose processes see no others, with its own /proc, boot id and name.
    pub fn host(env: &'a Env, name: &str) -> Option<Self> {
        Self::booted(env, name, name)
    }

    /// The same with a state directory that may have been another machine's.
    pub fn booted(env: &'a Env, name: &str, dir: &str) -> Option<Self> {
        // Any text of this form will do, as long as each machine has its own.
        let mark = name.bytes().fold(7_u64, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let boot = format!("00000000-0000-4000-8000-{:012x}", mark & 0xffff_ffff_ffff);
        let Some(host) = env.host(name, &boot) else {
            skipped("this machine makes no pid namespaces for us");
            return None;
        };
        Some(Self {
            home: env.dir().join(dir),
            env,
            store: None,
            person: host.agent("human"),
            host: Some(host),
        })
    }

    /// Ends all its processes at once, as when a machine loses power.
    pub fn vanish(&self) {
        self.host.as_ref().expect("a host of its own").vanish();
    }

    /// The processes of a keeper of this machine at a stage of its start, or at any.
    pub fn stages(&self, stage: &str) -> Vec<Pinned> {
        let host = self.host.as_ref().expect("a host of its own");
        let is_one = |pid: &u32| {
            let line = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            let at = words.iter().position(|word| *word == b"__keeper");
            let named = at.and_then(|at| words.get(at + 1));
            named.is_some_and(|word| stage.is_empty() || *word == stage.as_bytes())
        };
        let pids = host.pids_here().into_iter().filter(is_one);
        let pinned = |pid| {
            let start = Stat::read(pid)?.start;
            Pinned::open(Started { pid, start }).ok()
        };
        pids.filter_map(pinned)
            .filter(|process| !process.is_gone())
            .collect()
    }

    /// Signals a process of this machine.
    #[track_caller]
    pub fn signal(&self, pid: u32, signal: Signal) {
        let host = self.host.as_ref().expect("a host of its own");
        let process = host.process(pid).expect("it runs");
        assert!(process.signal(signal), "pid {pid} is gone");
    }

    /// The same with another way to the store.
    pub fn through(mut self, url: String) -> Self {
        self.store = Some(url);
        self
    }

    pub fn command(&self, line: &str) -> Cmd {
        self.plain(&format!("{line} --json"))
    }

    /// The hook of an agent.
    pub fn hook(&self, agent: &str) -> Cmd {
        self.plain(&format!("hook {agent}"))
    }

    fn plain(&self, line: &str) -> Cmd {
        let command = Cmd::new("tenure")
            .args(line.split_whitespace())
            .env("TENURE_HOME", self.home.display().to_string());
        match &self.store {
            Some(store) => command.env("TENURE_STORE", store.clone()),
            None => command,
        }
    }

    /// What tenure answers here, to an agent.
    pub fn ask(&self, agent: &Agent, line: &str) -> Output {
        agent.run(self.command(line))
    }

    /// The same, with the expected code.
    #[track_caller]
    pub fn run(&self, agent: &Agent, code: i32, line: &str) -> Value {
        let output = self.ask(agent, line);
        assert_eq!(output.code, code, "{line}\n{output}");
        output.json()
    }

    /// The same for a caller outside any session.
    #[track_caller]
    pub fn person(&self, code: i32, line: &str) -> Value {
        self.run(&self.person, code, line)
    }

    /// What a person reads.
    pub fn said(&self, line: &str) -> Output {
        self.person.run(self.plain(line))
    }

    /// A worker that is a session here, and that the keeper watches.
    pub fn session(&self, name: &str) -> Agent {
        let before = self.watched().unwrap_or(0);
        let agent = self.env_agent(name);
        let pid = agent.pid();
        self.run(&agent, 0, &format!("register --agent {name} --pid {pid}"));
        poll(SOON, "the keeper watches it", || {
            (self.watched() == Some(before + 1)).then_some(())
        });
        agent
    }

    /// A worker that is not a session yet.
    pub fn env_agent(&self, name: &str) -> Agent {
        match &self.host {
            Some(host) => host.agent(name),
            None => self.env.agent(name),
        }
    }

    /// How many sessions the keeper here watches, if it runs.
    pub fn watched(&self) -> Option<u64> {
        self.keeper()["sessions"].as_u64()
    }

    /// What the keeper here says about itself; null if none runs.
    pub fn keeper(&self) -> Value {
        self.person(0, "keeper status")["keeper"]["local"].clone()
    }

    /// Waits until the keeper's list has this many claims.
    pub fn lists(&self, claims: u64) {
        poll(SOON, "the keeper lists them", || {
            (self.keeper()["claims"] == claims).then_some(())
        });
    }

    pub fn keeper_pid(&self) -> u32 {
        let pid = self.keeper()["pid"].as_u64().expect("a keeper runs");
        u32::try_from(pid).expect("a pid")
    }

    /// The directory of the keeper's files.
    pub fn files(&self) -> PathBuf {
        self.home.join("keeper")
    }

    /// The only file with this ending.
    pub fn file(&self, ending: &str) -> PathBuf {
        let all = fs_err::read_dir(self.files()).expect("the keeper's directory");
        let mut found = all
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.to_string_lossy().ends_with(ending));
        found.next().unwrap_or_else(|| panic!("no {ending} there"))
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        // The processes of a host end with it.
        if self.host.is_some() {
            return;
        }
        let stopped = || self.ask(&self.person, "keeper stop");
        if std::thread::panicking() {
            drop(stopped());
            return;
        }
        poll(SOON, "the keeper ends", || match stopped().code {
            0 => Some(()),
            // It did not answer in time.
            7 => None,
            other => panic!("keeper stop ended with {other}"),
        });
    }
}

/// Compiles the library that shifts a process's clock.
pub fn skewed_clock(dir: &Path) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/skewed_clock.c");
    let library = dir.join("skewed_clock.so");
    let output = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .output()
        .expect("the C compiler can be run");
    assert!(output.status.success(), "{output:?}");
    library.display().to_string()
}

/// Kills a process that this test started.
pub fn kill9(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Signals a process that this test started.
pub fn signal(pid: u32, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    rustix::process::kill_process(pid, signal).expect("it can be signalled");
}

/// The parent of a process.
pub fn parent_of(pid: u32) -> u32 {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let rest = stat.rsplit_once(')').expect("a name").1;
    rest.split_whitespace()
        .nth(1)
        .expect("a parent")
        .parse()
        .expect("a pid")
}
