//! An open store and everything that a use case needs.

use std::path::{Path, PathBuf};

use tenure_core::agent;
use tenure_core::id::Ticket;
use tenure_core::process::CallerFacts;
use tenure_core::store::{Checkpoint, Store};
use tenure_core::time::Timestamp;
use tenure_core::world::World;
use tenure_host::git::Worktree;
use tenure_host::machine::Machine;
use tenure_host::{caller, cwd};
use tenure_service::answer::Problem;
use tenure_service::{MissionPlace, Service};

use crate::event_retention;
use crate::keeper::{self, KeeperHandle, Turns};
use crate::location::{
    StorePlace, empty_store, is_absent, machine_of, make_dir_of, open_store, peeked_state_dir_of,
    store_place,
};
use crate::place::worktree_here;
use crate::settings::Settings;
use crate::witness::Witnesses;

pub struct Context {
    pub store: Box<dyn Store>,
    pub machine: Machine,
    pub facts: CallerFacts,
    pub settings: Settings,
    pub witnesses: Witnesses,
    pub dir: PathBuf,
    pub repo: Option<String>,
    /// A message about the store for the person.
    pub news: Option<String>,
    /// The state directory, if it was just created.
    pub made: Option<PathBuf>,
    /// Where the store would be, if it does not exist and an empty one is used instead.
    pub absent: Option<StorePlace>,
    /// The keeper of this machine, for a caller that writes.
    pub keeper: Option<KeeperHandle>,
    /// Whether its use cases keep nothing.
    pub looks_only: bool,
}

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To change nothing at all: what others record on the way, such as a death, is not recorded.
    Examine,
    /// To look at a store and its keepers: the same as to read, and no keeper is started.
    Look,
    /// To read: a missing store counts as empty, and nothing is created.
    Read,
    /// To change existing data: the same, because an empty store has nothing to change.
    Change,
    /// To write: a missing store is created.
    Write,
}

/// Opens the store that the settings name, for a caller in this directory.
pub fn open(purpose: Purpose) -> Result<Context, Problem> {
    let worktree = worktree_here();
    let settings = Settings::of_project(worktree.as_ref().map(|found| found.root.as_path()))?;
    let place = store_place(&settings)?;
    let is_absent = purpose != Purpose::Write && is_absent(&place);
    if purpose != Purpose::Examine {
        keeper::settle_host(&place, settings.policy, None)?;
    }
    let (state, made) = if is_absent {
        (peeked_state_dir_of(&place)?, None)
    } else {
        make_dir_of(&place)?
    };
    let machine = machine_of(&state)?;
    let (store, news) = if is_absent {
        (empty_store(&place, &machine)?, None)
    } else {
        open_store(&place, &machine, keeper::through(&place, &machine), None)?
    };
    let facts = caller::facts(
        machine.observer().clone(),
        cwd::name().to_string_lossy().into_owned(),
        worktree.as_ref().map(Worktree::repository),
    );
    let store = match purpose {
        Purpose::Examine => store,
        _ => keeper::told_first(store, &place, &machine, settings.policy, &facts)?,
    };
    let mut context = Context {
        witnesses: Witnesses {
            dir: (!is_absent && purpose != Purpose::Examine).then(|| state.path().to_owned()),
        },
        dir: state.path().to_owned(),
        repo: worktree.as_ref().map(Worktree::repo),
        news,
        made,
        keeper: (starts_keeper(purpose) && !is_absent && !is_boxed(&facts))
            .then(|| KeeperHandle::start(&settings, &place, &machine))
            .flatten(),
        store,
        machine,
        facts,
        settings,
        absent: is_absent.then_some(place),
        looks_only: purpose == Purpose::Examine,
    };
    if purpose != Purpose::Examine {
        look_after(&mut context, worktree.as_ref());
    }
    Ok(context)
}

fn starts_keeper(purpose: Purpose) -> bool {
    !matches!(purpose, Purpose::Examine | Purpose::Look)
}

/// What each command does for the store that it opens.
fn look_after(context: &mut Context, worktree: Option<&Worktree>) {
    // An empty store knows no session, so it cannot judge these locks, and has nothing to remove.
    if context.absent.is_some() {
        return;
    }
    if let Some(found) = worktree {
        let root = found.root.to_string_lossy();
        context.service().repair_tree_locks(&root);
    }
    let shared = context.store.is_shared().then(|| context.dir.clone());
    let (dir, age) = (context.dir.clone(), context.settings.keep_ended);
    event_retention::sweep(&mut context.service(), shared.as_deref(), age);
    event_retention::sweep_sessions(&mut context.service(), &dir, age);
}

/// Whether an agent's sandbox hides the agent from its caller. The keeper of a sandbox would watch nothing.
fn is_boxed(facts: &CallerFacts) -> bool {
    let is_named = facts.session_variable.is_some() || !facts.native_variables.is_empty();
    let mut above = facts.chain.iter();
    is_named && !above.any(|ancestor| agent::recognise(&ancestor.looks).is_some())
}

impl Context {
    /// Opens the store if it was created after an empty one was opened in its place; returns
    /// whether it exists now.
    pub(crate) fn appeared(&mut self) -> Result<bool, Problem> {
        if self.absent.as_ref().is_none_or(is_absent) {
            return Ok(false);
        }
        *self = open(Purpose::Read)?;
        Ok(true)
    }

    /// Ends the use of the store in a process that exits next: the kernel frees at once what a file's store has open. A
    /// server is told.
    pub fn leave_to_exit(self) {
        if !self.store.is_shared() {
            std::mem::forget(self);
        }
    }

    /// The caller's surroundings, for missions.
    pub fn here(&self) -> MissionPlace {
        MissionPlace {
            repo: self.repo.clone(),
            user: rustix::process::getuid().as_raw().to_string(),
            roles: self.settings.roles.clone(),
        }
    }

    pub fn random(&self) -> [u8; 16] {
        self.machine.random()
    }

    /// Whether there are mirrors to keep up to date.
    pub fn has_mirrors(&self) -> bool {
        self.absent.is_none() && !self.settings.mirrors.is_empty()
    }

    /// The repository of the caller's directory.
    pub fn repo(&self) -> Option<&str> {
        self.repo.as_deref()
    }

    /// The state directory of this machine: its locks, its log of missed events, and the known
    /// hosts.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether the user trusts the repository of a worktree.
    pub fn trusts(&mut self, worktree: Option<&Worktree>) -> Result<bool, Problem> {
        let settings = self.settings.clone();
        settings.trusts(worktree, |name| {
            Ok(self.service().repository_hosts(name)?.value)
        })
    }

    /// The use cases for this caller.
    pub fn service(&mut self) -> Service<'_> {
        let service = Service::new(
            self.store.as_mut(),
            &self.machine,
            &self.facts,
            self.settings.policy,
        )
        .with_witness(&self.witnesses);
        if self.looks_only {
            service.only_looking()
        } else {
            service
        }
    }

    /// Looks after the store, for a process that stays and writes often.
    pub fn checkpoint(&mut self, checkpoint: Checkpoint) {
        self.store.checkpoint(checkpoint);
    }

    /// Starts the keeper of this machine again if it is gone, for a process that stays.
    pub fn look_after_keeper(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            keeper.look_after(&self.settings, &self.machine);
        }
    }

    /// Since when the keeper of this machine is gone, for a process that stays.
    pub fn keeper_missing_since(&self) -> Option<Timestamp> {
        self.keeper.as_ref()?.missing_since()
    }

    /// Asks the keeper of this machine to say when it may be a waiter's turn; none without one.
    pub(crate) fn turns(&self, ticket: Ticket) -> Option<Turns> {
        let kept = self.keeper.as_ref()?;
        kept.turns(&self.machine, ticket)
    }

    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Whether a process is an ancestor of this command.
    pub fn runs_in(&self, pid: u32) -> bool {
        let mut above = self.facts.chain.iter();
        above.any(|ancestor| ancestor.process.pid == pid)
    }
}
