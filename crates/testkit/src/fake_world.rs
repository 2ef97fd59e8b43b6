//! A machine without processes: it shows only what the test sets up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::agent::{DaemonSpec, Traces};
use tenure_core::id::{HostId, NativeId};
use tenure_core::process::{
    Ancestor, BootId, CallerFacts, LeftProcess, Observer, Process, ProcessAppearance, RunState,
    Sighting, Signs, StartTicks, Survivor, Survivors,
};
use tenure_core::repository::{Home, Repository};
use tenure_core::session::Workdir;
use tenure_core::tree_lock::TreeLock;
use tenure_core::world::{RunningAgent, World};
use tenure_core::write_conflict::{FileStamp, RepoFile};

/// A world. Its clones show the same processes, each to its own observer.
#[derive(Debug, Clone)]
pub struct FakeWorld {
    /// The observer, which a test may change, for example to another namespace or boot.
    pub observer: Observer,
    state: Arc<Mutex<WorldState>>,
}

#[derive(Debug)]
struct WorldState {
    seen: HashMap<u32, Sighting>,
    looks: HashMap<u32, ProcessAppearance>,
    ticks: u64,
    drawn: u64,
    survivors: Survivors,
    signs: Vec<Signs>,
    carriers: std::collections::BTreeMap<String, Survivors>,
    windows: HashMap<String, u32>,
    exit_traces: HashMap<u32, bool>,
    paths: Vec<String>,
    turns: HashMap<String, bool>,
    branches: HashMap<String, Option<String>>,
    agents: Vec<RunningAgent>,
    since_boot: Option<Duration>,
    repository: Option<FakeRepository>,
}

#[derive(Debug, Clone)]
struct FakeRepository {
    root: String,
    repository: Repository,
}

impl Default for FakeWorld {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeWorld {
    /// A host "host" in its boot "boot", with no processes.
    pub fn new() -> FakeWorld {
        FakeWorld {
            observer: Observer {
                host: HostId::new("host"),
                boot: BootId {
                    id: "boot".to_owned(),
                    private: false,
                },
                pid_ns: 1,
                proc_is_own: true,
                shared_store: false,
            },
            state: Arc::new(Mutex::new(WorldState {
                seen: HashMap::new(),
                looks: HashMap::new(),
                ticks: 1_000,
                drawn: 0,
                survivors: Survivors::default(),
                signs: Vec::new(),
                carriers: std::collections::BTreeMap::new(),
                windows: HashMap::new(),
                exit_traces: HashMap::new(),
                paths: Vec::new(),
                turns: HashMap::new(),
                branches: HashMap::new(),
                agents: Vec::new(),
                since_boot: Some(Duration::ZERO),
                repository: None,
            })),
        }
    }

    fn lock(&self) -> MutexGuard<'_, WorldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process with this pid. If there is none, one starts now, with its own start ticks.
    pub fn process(&self, pid: u32) -> Process {
        let mut state = self.lock();
        let start = match state.seen.get(&pid) {
            Some(Sighting::Present { start, .. }) => *start,
            _ => {
                state.ticks += 100;
                let start = StartTicks {
                    ticks: state.ticks,
                    shifted: false,
                };
                let sighting = Sighting::Present {
                    start,
                    state: RunState::Going,
                    threads: 1,
                };
                state.seen.insert(pid, sighting);
                start
            }
        };
        Process {
            host: self.observer.host.clone(),
            boot: self.observer.boot.clone(),
            pid_ns: self.observer.pid_ns,
            pid,
            start,
        }
    }

    /// The paths whose existence was checked so far.
    pub fn paths_looked_for(&self) -> Vec<String> {
        self.lock().paths.clone()
    }

    /// Removes the process with this pid; the next [`FakeWorld::process`] is a different one.
    pub fn exit(&self, pid: u32) {
        self.see(pid, Sighting::Absent);
    }

    /// Sets the sighting for a pid.
    pub fn see(&self, pid: u32, sighting: Sighting) {
        let mut state = self.lock();
        if sighting == Sighting::Absent {
            state.looks.remove(&pid);
        }
        state.seen.insert(pid, sighting);
    }

    /// Sets the executable and arguments of the process with this pid.
    pub fn looks_like(&self, pid: u32, exe: &str, argv: &[&str]) {
        let looks = looks(exe, argv);
        self.lock().looks.insert(pid, looks);
    }

    /// What is visible about a caller whose ancestry is `pids`: itself, its parent, and so on.
    ///
    /// Processes without an appearance of their own look like plain workers. There is no terminal
    /// and no variable.
    pub fn facts(&self, pids: &[u32]) -> CallerFacts {
        let chain = pids
            .iter()
            .map(|pid| Ancestor {
                process: self.process(*pid),
                looks: match self.lock().looks.get(pid) {
                    Some(looks) => looks.clone(),
                    None => looks("/usr/bin/worker", &["worker"]),
                },
                leads_terminal: false,
                forked: false,
            })
            .collect();
        CallerFacts {
            observer: self.observer.clone(),
            chain,
            chain_broken: None,
            has_terminal: false,
            at_terminal: false,
            session_variable: None,
            native_variables: Vec::new(),
            dir: "/work".to_owned(),
            repository: self
                .lock()
                .repository
                .as_ref()
                .map(|found| found.repository.clone()),
            token: None,
        }
    }
}

impl FakeWorld {
    /// Makes a directory the root of a repository, and the one that callers are in.
    pub fn has_repository(&self, root: &str, remote: Option<&str>) {
        let repository = Repository {
            home: Home {
                dir: format!("{root}/.git"),
                mark: Some("1:2:3".to_owned()),
            },
            remote: remote.map(str::to_owned),
        };
        self.lock().repository = Some(FakeRepository {
            root: root.to_owned(),
            repository,
        });
    }

    /// Sets the processes that carry the variable of a run.
    pub fn carry(&self, run: &str, carriers: Survivors) {
        self.lock().carriers.insert(run.to_owned(), carriers);
    }

    /// A process that was left running.
    pub fn left(&self, pid: u32, command: &str, can_end: bool) -> LeftProcess {
        LeftProcess {
            process: self.process(pid),
            above: Vec::new(),
            shown: Survivor {
                pid,
                command: command.to_owned(),
                since: None,
                can_end,
            },
        }
    }

    pub fn leave_behind(&self, survivors: Survivors) {
        self.lock().survivors = survivors;
    }

    /// The signs by which survivors were last searched.
    pub fn signs(&self) -> Vec<Signs> {
        self.lock().signs.clone()
    }
}

impl FakeWorld {
    /// Makes every daemon report the process with this pid as the window of this conversation.
    pub fn opens(&self, pid: u32, conversation: &str) {
        self.lock().windows.insert(conversation.to_owned(), pid);
    }

    /// Sets whether a process that is gone exited by itself; by default that is unknown.
    pub fn parts(&self, pid: u32, orderly: bool) {
        self.lock().exit_traces.insert(pid, orderly);
    }

    /// Starts an agent in a directory, on a conversation.
    pub fn starts_agent(&self, agent: &'static str, pid: u32, dir: &str, argv: &[&str]) {
        self.looks_like(pid, agent, argv);
        let process = self.facts(&[pid]).chain.remove(0);
        self.lock().agents.push(RunningAgent {
            agent,
            process,
            dir: Some(dir.to_owned()),
        });
    }

    /// Checks out a branch in a directory, or a commit without one.
    pub fn checks_out(&self, dir: &str, branch: Option<&str>) {
        let branch = branch.map(str::to_owned);
        self.lock().branches.insert(dir.to_owned(), branch);
    }

    /// Makes every daemon report whether a turn of this conversation is in progress. Before that,
    /// no daemon answers.
    pub fn says_of_turn(&self, conversation: &str, runs: bool) {
        self.lock().turns.insert(conversation.to_owned(), runs);
    }
}

impl World for FakeWorld {
    fn observer(&self) -> &Observer {
        &self.observer
    }

    fn since_boot(&self) -> Option<Duration> {
        self.lock().since_boot
    }

    fn look(&self, pid: u32) -> Sighting {
        let state = self.lock();
        state.seen.get(&pid).cloned().unwrap_or(Sighting::Absent)
    }

    fn survivors(&self, signs: &[Signs]) -> Vec<Survivors> {
        let mut state = self.lock();
        state.signs = signs.to_vec();
        let of = |sign: &Signs| match &sign.run {
            Some(run) if sign.agents_too => state.carriers.get(run).cloned().unwrap_or_default(),
            _ => state.survivors.clone(),
        };
        signs.iter().map(of).collect()
    }

    /// No process has a parent.
    fn chain(&self, pid: u32) -> Vec<Ancestor> {
        self.facts(&[pid]).chain
    }

    /// The window that was set, unless that process is gone.
    fn window(
        &self,
        _spec: &DaemonSpec,
        _daemon: &Process,
        conversation: &NativeId,
    ) -> Option<Ancestor> {
        let pid = *self.lock().windows.get(conversation.as_str())?;
        let is_there = matches!(self.look(pid), Sighting::Present { .. });
        is_there.then(|| self.facts(&[pid]).chain.remove(0))
    }

    fn was_orderly(&self, _traces: &Traces, _home: &str, gone: &Process) -> Option<bool> {
        self.lock().exit_traces.get(&gone.pid).copied()
    }

    fn has_turn(
        &self,
        _spec: &DaemonSpec,
        _daemon: &Process,
        conversation: &NativeId,
    ) -> Option<bool> {
        self.lock().turns.get(conversation.as_str()).copied()
    }

    /// The repository that the test made, if the directory is in it.
    fn place(&self, dir: &str) -> Workdir {
        Workdir {
            dir: dir.to_owned(),
            repo: self.file(dir).map(|file| file.repo),
            ..Workdir::default()
        }
    }

    fn agents(&self) -> Vec<RunningAgent> {
        self.lock().agents.clone()
    }

    fn branch(&self, dir: &str) -> Option<Option<String>> {
        self.lock().branches.get(dir).cloned()
    }

    fn file(&self, path: &str) -> Option<RepoFile> {
        let found = self.lock().repository.clone()?;
        let below = path.strip_prefix(&found.root)?;
        let is_inside = below.is_empty() || below.starts_with('/');
        is_inside.then(|| RepoFile {
            repo: found.repository.name().to_owned(),
            root: found.root.clone(),
            relative: below.trim_start_matches('/').to_owned(),
            head: None,
            branch: None,
            // Every file is there, and was just changed.
            stamp: Some(FileStamp {
                size: 1,
                modified: i64::MAX,
            }),
            repository: found.repository,
        })
    }

    /// Every path exists.
    fn are_there(&self, paths: &[String]) -> Vec<bool> {
        self.lock().paths.extend_from_slice(paths);
        vec![true; paths.len()]
    }

    fn remote(&self, common_dir: &str) -> Option<String> {
        let found = self.lock().repository.clone()?.repository;
        found.remote.filter(|_| found.home.dir == common_dir)
    }

    /// No directory is a worktree.
    fn tree_lock(&self, _dir: &str) -> Option<String> {
        None
    }

    fn set_tree_lock(&self, _dir: &str, _handle: Option<&str>) {}

    fn tree_locks(&self, _dir: &str) -> Vec<TreeLock> {
        Vec::new()
    }

    fn change_tree_lock(&self, _lock: &TreeLock, _handle: Option<&str>) {}

    /// Never the same twice in one world, always the same sequence in one test.
    fn random(&self) -> [u8; 16] {
        let mut state = self.lock();
        state.drawn += 1;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&scatter(state.drawn).to_be_bytes());
        bytes[8..].copy_from_slice(&scatter(!state.drawn).to_be_bytes());
        bytes
    }
}

fn looks(exe: &str, argv: &[&str]) -> ProcessAppearance {
    let name = exe.rsplit('/').next().unwrap_or(exe);
    ProcessAppearance {
        exe: exe.to_owned(),
        argv: argv.iter().map(|arg| (*arg).to_owned()).collect(),
        // The kernel truncates it to 15 bytes.
        comm: name.chars().take(15).collect(),
    }
}

/// SplitMix64: maps numbers to numbers without a visible pattern.
fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_that_exited_comes_back_as_another_process() {
        let world = FakeWorld::new();
        assert_eq!(world.look(7), Sighting::Absent);
        let first = world.process(7);
        assert!(first.same_as(&world.process(7)));
        world.exit(7);
        assert_eq!(world.look(7), Sighting::Absent);
        assert!(!first.same_as(&world.process(7)));
    }

    #[test]
    fn facts_show_the_chain_and_its_looks() {
        let world = FakeWorld::new();
        world.looks_like(20, "/usr/bin/claude", &["claude", "--fork-session"]);
        let facts = world.facts(&[30, 20, 1]);
        let exes: Vec<_> = facts.chain.iter().map(|a| a.looks.exe.as_str()).collect();
        assert_eq!(
            exes,
            ["/usr/bin/worker", "/usr/bin/claude", "/usr/bin/worker"]
        );
        assert!(facts.chain[1].process.same_as(&world.process(20)));
    }

    #[test]
    fn random_bytes_differ_and_repeat_from_world_to_world() {
        let (one, two) = (FakeWorld::new(), FakeWorld::new());
        let drawn: Vec<_> = (0..100).map(|_| one.random()).collect();
        let again: Vec<_> = (0..100).map(|_| two.random()).collect();
        assert_eq!(drawn, again);
        let different: std::collections::HashSet<_> = drawn.iter().collect();
        assert_eq!(different.len(), 100);
    }
}
