//! What was observed of the machine for one use case, separate from what it may write.
//!
//! A use case names what it needs to know ([`Want`]) and stops. Its transaction is dropped, the machine is
//! observed, and the use case runs again with the observations. So nothing outside the store is read while a
//! lock is held. Observations are kept for all runs of one use case and for no other.

use std::collections::{HashMap, HashSet};

use tenure_core::agent::{DaemonSpec, Traces};
use tenure_core::conversation::fitness::Existence;
use tenure_core::id::{NativeId, SessionId, SessionToken};
use tenure_core::process::{Ancestor, Process, Sighting, Signs, StartTicks, Survivors};
use tenure_core::session::{Session, Workdir};
use tenure_core::time::Timestamp;
use tenure_core::witness::{Question, StoredConversation, Subject, Testimony, Witness};
use tenure_core::world::{RunningAgent, World};
use tenure_core::write_conflict::RepoFile;

/// What must be observed before a use case can continue.
#[derive(Debug)]
pub enum Want {
    Processes(Vec<Process>),
    /// What these sessions left running.
    Survivors(Vec<(SessionToken, Signs)>),
    /// Processes that carry the variable of a run and did not start before this.
    Carriers(Vec<(String, StartTicks)>),
    /// The ancestors of this process, and the worktree of this directory.
    Surroundings(Option<u32>, String),
    /// The window of this conversation, which the daemon runs.
    Window(DaemonSpec, Process, NativeId),
    /// Whether turns of these conversations, which daemons run, are in progress.
    Turns(Vec<(DaemonSpec, Process, NativeId)>),
    /// The agents that run on this machine.
    Agents,
    /// The branches of the worktrees of these directories.
    Branches(Vec<String>),
    /// Where these files are, and what they are.
    Files(Vec<String>),
    /// The remotes of the repositories with these common directories.
    Remotes(Vec<String>),
    /// What agents and terminals report about these.
    Testimony(Vec<Subject>, Question),
    /// Whether these files and directories exist.
    Paths(Vec<String>),
    /// Whether these processes of agents, each with its agent's directory, exited by themselves.
    ExitTraces(Vec<(Traces, String, Process)>),
    /// Whether agents still have these conversations.
    Conversations(Vec<StoredConversation>),
}

/// The ancestors of a process that registers, and the directory it works in.
#[derive(Debug, Clone)]
pub struct Surroundings {
    pub chain: Vec<Ancestor>,
    pub workdir: Workdir,
}

/// What a look found about a session.
#[derive(Debug, Clone)]
pub struct Observation {
    pub session: Session,
    /// The branch, if it must be stored.
    pub branch: Option<Option<String>>,
    /// Whether a person was at its window.
    pub attended: bool,
    /// Whether a person stopped it, which its end did not show.
    pub stopped: bool,
}

/// The branch of a session's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchSeen {
    pub name: Option<String>,
    /// When it was last seen, if it was not read now.
    pub at: Option<Timestamp>,
}

/// Everything observed so far. A list may need it for very many sessions, so it is found by its key.
#[derive(Debug, Default)]
pub struct Evidence {
    seen: HashMap<Process, Sighting>,
    left_behind: HashMap<SessionToken, Survivors>,
    carriers: HashMap<String, Survivors>,
    surroundings: Option<Surroundings>,
    window: Option<Option<Ancestor>>,
    turns: HashMap<(Process, NativeId), Option<bool>>,
    /// Daemons that did not answer.
    silent: HashSet<Process>,
    agents: Option<Vec<RunningAgent>>,
    branches: HashMap<String, Option<Option<String>>>,
    files: HashMap<String, Option<RepoFile>>,
    remotes: HashMap<String, Option<String>>,
    testimonies: HashMap<SessionId, (Question, Testimony)>,
    has_witness: bool,
    paths: HashMap<String, bool>,
    exit_traces: HashMap<Process, Option<bool>>,
    conversations: HashMap<StoredConversation, Existence>,
}

impl Evidence {
    /// No observations yet. `witness` is set if agents and terminals can be asked at all; hooks never ask.
    pub fn none(witness: Option<&dyn Witness>) -> Self {
        Self {
            has_witness: witness.is_some(),
            ..Self::default()
        }
    }

    /// Whether agents and terminals can be asked.
    pub fn has_witness(&self) -> bool {
        self.has_witness
    }

    /// Observes what is wanted.
    pub fn gather(&mut self, world: &dyn World, witness: Option<&dyn Witness>, want: Want) {
        match want {
            Want::Processes(processes) => self.seen.extend(processes.into_iter().map(|process| {
                let sighting = world.look(process.pid);
                (process, sighting)
            })),
            Want::Survivors(wanted) => {
                let (lives, signs): (Vec<_>, Vec<_>) = wanted.into_iter().unzip();
                let found = lives.into_iter().zip(world.survivors(&signs));
                self.left_behind.extend(found);
            }
            Want::Carriers(runs) => {
                let signs = runs.iter().map(|(run, since)| Signs::of_run(run, *since));
                let found = world.survivors(&signs.collect::<Vec<_>>());
                let runs = runs.into_iter().map(|(run, _)| run);
                self.carriers.extend(runs.zip(found));
            }
            Want::Surroundings(pid, dir) => {
                self.surroundings = Some(Surroundings {
                    chain: pid.map_or_else(Vec::new, |pid| world.chain(pid)),
                    workdir: world.place(&dir),
                });
            }
            Want::Window(spec, daemon, conversation) => {
                self.window = Some(world.window(&spec, &daemon, &conversation));
            }
            Want::Turns(wanted) => {
                for (spec, daemon, conversation) in wanted {
                    // A daemon that did not answer is not asked again.
                    let said = if self.silent.contains(&daemon) {
                        None
                    } else {
                        world.has_turn(&spec, &daemon, &conversation)
                    };
                    if said.is_none() {
                        self.silent.insert(daemon.clone());
                    }
                    self.turns.insert((daemon, conversation), said);
                }
            }
            Want::Agents => self.agents = Some(world.agents()),
            Want::Branches(dirs) => self.branches.extend(dirs.into_iter().map(|dir| {
                let branch = world.branch(&dir);
                (dir, branch)
            })),
            Want::Files(paths) => self.files.extend(paths.into_iter().map(|path| {
                let found = world.file(&path);
                (path, found)
            })),
            Want::Remotes(homes) => self.remotes.extend(homes.into_iter().map(|home| {
                let remote = world.remote(&home);
                (home, remote)
            })),
            Want::Testimony(about, question) => {
                let ask = |witness: &dyn Witness| witness.testify(&about, question);
                let said = witness.map_or_else(Vec::new, ask);
                let said = said
                    .into_iter()
                    .chain(std::iter::repeat(Testimony::default()));
                let answers = about.iter().zip(said);
                let kept = answers.map(|(about, said)| (about.session, (question, said)));
                self.testimonies.extend(kept);
            }
            Want::Paths(paths) => {
                let found = world.are_there(&paths);
                self.paths.extend(paths.into_iter().zip(found));
            }
            Want::ExitTraces(wanted) => {
                for (traces, home, process) in wanted {
                    let was_orderly = world.was_orderly(&traces, &home, &process);
                    self.exit_traces.insert(process, was_orderly);
                }
            }
            Want::Conversations(kept) => {
                let found = witness.map_or_else(Vec::new, |witness| witness.have(&kept));
                let found = found
                    .into_iter()
                    .chain(std::iter::repeat(Existence::CannotTell));
                self.conversations.extend(kept.into_iter().zip(found));
            }
        }
    }

    pub fn sighting(&self, process: &Process) -> Option<&Sighting> {
        self.seen.get(process)
    }

    pub fn left_behind(&self, lives: SessionToken) -> Option<&Survivors> {
        self.left_behind.get(&lives)
    }

    pub fn carriers(&self, run: &str) -> Option<&Survivors> {
        self.carriers.get(run)
    }

    pub fn surroundings(&self) -> Option<&Surroundings> {
        self.surroundings.as_ref()
    }

    /// The window, once it was looked up.
    pub fn window(&self) -> Option<&Option<Ancestor>> {
        self.window.as_ref()
    }

    /// What a daemon reported about a conversation's turn, once it was asked.
    pub fn turn(&self, daemon: &Process, conversation: &NativeId) -> Option<Option<bool>> {
        let about = (daemon.clone(), conversation.clone());
        self.turns.get(&about).copied()
    }

    /// The agents that run on this machine, once they were looked for.
    pub fn agents(&self) -> Option<&[RunningAgent]> {
        self.agents.as_deref()
    }

    /// The branch that is checked out in a directory, once it was read.
    pub fn branch(&self, dir: &str) -> Option<&Option<Option<String>>> {
        self.branches.get(dir)
    }

    pub fn file(&self, path: &str) -> Option<&Option<RepoFile>> {
        self.files.get(path)
    }

    pub fn is_there(&self, path: &str) -> Option<bool> {
        self.paths.get(path).copied()
    }

    /// Whether a process exited by itself, once that was checked.
    pub fn was_orderly(&self, process: &Process) -> Option<Option<bool>> {
        self.exit_traces.get(process).copied()
    }

    /// Whether an agent still has a conversation, once that was checked.
    pub fn existence(&self, kept: &StoredConversation) -> Option<Existence> {
        self.conversations.get(kept).copied()
    }

    pub fn testimony(&self, session: SessionId) -> Option<&Testimony> {
        self.answer_to(session, Question::Activity)
    }

    /// The answer to at least this question; a session is asked again only to hear more.
    pub fn answer_to(&self, session: SessionId, question: Question) -> Option<&Testimony> {
        let (asked, testimony) = self.testimonies.get(&session)?;
        (*asked >= question).then_some(testimony)
    }

    pub fn remote(&self, common_dir: &str) -> Option<&Option<String>> {
        self.remotes.get(common_dir)
    }
}
