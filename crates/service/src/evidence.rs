//! What was observed of the machine for one use case, separate from what it may write.
//!
//! A use case names what it needs to know ([`Want`]) and stops. Its transaction is dropped, the machine is
//! observed, and the use case runs again with the observations. So nothing outside the store is read while a
//! lock is held. Observations are kept for all runs of one use case and for no other.

use std::borrow::Borrow;

use tenure_core::agent::{DaemonSpec, Traces};
use tenure_core::conversation::fitness::Existence;
use tenure_core::id::{NativeId, SessionId, SessionToken};
use tenure_core::process::{Ancestor, Carriers, Process, Sighting, Signs, StartTicks, Survivors};
use tenure_core::session::Workdir;
use tenure_core::witness::{Kept, Question, Subject, Testimony, Witness};
use tenure_core::world::World;
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
    /// Whether a turn of this conversation, which the daemon runs, is in progress.
    Turn(DaemonSpec, Process, NativeId),
    /// Where these files are, and what they are.
    Files(Vec<String>),
    /// The remotes of the repositories with these common directories.
    Remotes(Vec<String>),
    /// What agents and terminals report about these.
    Testimony(Vec<Subject>, Question),
    /// Whether these files and directories exist.
    Paths(Vec<String>),
    /// Whether a process of an agent, with this directory, exited by itself.
    Parting(Traces, String, Process),
    /// Whether agents still have these conversations.
    Conversations(Vec<Kept>),
}

/// The ancestors of a process that registers, and the directory it works in.
#[derive(Debug, Clone)]
pub struct Surroundings {
    pub chain: Vec<Ancestor>,
    pub workdir: Workdir,
}

/// Everything observed so far.
#[derive(Debug, Default)]
pub struct Evidence {
    seen: Vec<(Process, Sighting)>,
    left_behind: Vec<(SessionToken, Survivors)>,
    carriers: Vec<(String, Carriers)>,
    surroundings: Option<Surroundings>,
    window: Option<Option<Ancestor>>,
    turns: Vec<(Process, NativeId, Option<bool>)>,
    files: Vec<(String, Option<RepoFile>)>,
    remotes: Vec<(String, Option<String>)>,
    testimonies: Vec<(SessionId, Question, Testimony)>,
    has_witness: bool,
    paths: Vec<(String, bool)>,
    partings: Vec<(Process, Option<bool>)>,
    conversations: Vec<(Kept, Existence)>,
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
                let found = world.carriers(&runs);
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
            Want::Turn(spec, daemon, conversation) => {
                // A daemon that did not answer is not asked again.
                let is_silent = |(asked, _, said): &(Process, NativeId, Option<bool>)| {
                    *asked == daemon && said.is_none()
                };
                let said = if self.turns.iter().any(is_silent) {
                    None
                } else {
                    world.has_turn(&spec, &daemon, &conversation)
                };
                self.turns.push((daemon, conversation, said));
            }
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
                let kept = answers.map(|(about, said)| (about.session, question, said));
                self.testimonies.extend(kept);
            }
            Want::Paths(paths) => {
                let found = world.are_there(&paths);
                self.paths.extend(paths.into_iter().zip(found));
            }
            Want::Parting(traces, home, process) => {
                let was_orderly = world.was_orderly(&traces, &home, &process);
                self.partings.push((process, was_orderly));
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

    /// What was observed of a process. Pids usually differ, so they are compared first.
    pub fn sighting(&self, process: &Process) -> Option<&Sighting> {
        let is_it = |seen: &Process| seen.pid == process.pid && seen == process;
        let mut found = self.seen.iter().filter(|(seen, _)| is_it(seen));
        found.next().map(|(_, sighting)| sighting)
    }

    pub fn left_behind(&self, lives: SessionToken) -> Option<&Survivors> {
        known(&self.left_behind, &lives)
    }

    pub fn carriers(&self, run: &str) -> Option<&Carriers> {
        let mut known = self.carriers.iter();
        known.find(|(of, _)| of == run).map(|(_, found)| found)
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
        let is_it = |(asked, about, _): &&(Process, NativeId, Option<bool>)| {
            asked == daemon && about == conversation
        };
        self.turns.iter().find(is_it).map(|(_, _, said)| *said)
    }

    pub fn file(&self, path: &str) -> Option<&Option<RepoFile>> {
        known(&self.files, path)
    }

    pub fn is_there(&self, path: &str) -> Option<bool> {
        known(&self.paths, path).copied()
    }

    /// Whether a process exited by itself, once that was checked.
    pub fn was_orderly(&self, process: &Process) -> Option<Option<bool>> {
        known(&self.partings, process).copied()
    }

    /// Whether an agent still has a conversation, once that was checked.
    pub fn existence(&self, kept: &Kept) -> Option<Existence> {
        known(&self.conversations, kept).copied()
    }

    pub fn testimony(&self, session: SessionId) -> Option<&Testimony> {
        self.answer_to(session, Question::Activity)
    }

    /// The answer to at least this question.
    pub fn answer_to(&self, session: SessionId, question: Question) -> Option<&Testimony> {
        let fits = |(one, asked, _): &&(SessionId, Question, Testimony)| {
            *one == session && *asked >= question
        };
        let found = self.testimonies.iter().rev().find(fits);
        found.map(|(_, _, testimony)| testimony)
    }

    pub fn remote(&self, common_dir: &str) -> Option<&Option<String>> {
        known(&self.remotes, common_dir)
    }
}

fn known<'a, Q: PartialEq + ?Sized, K: Borrow<Q>, V>(all: &'a [(K, V)], key: &Q) -> Option<&'a V> {
    let mut found = all.iter().filter(|(known, _)| known.borrow() == key);
    found.next().map(|(_, value)| value)
}
