//! An open store with everything that a use case needs.

use std::path::{Path, PathBuf};

use tenure_core::id::Cursor;
use tenure_core::process::CallerFacts;
use tenure_core::store::Store;
use tenure_core::world::World;
use tenure_host::git::Worktree;
use tenure_host::machine::Machine;
use tenure_host::{caller, cwd};
use tenure_service::answer::Problem;
use tenure_service::{Here, Service};

use crate::location::{
    StorePlace, empty_store, is_absent, machine_of, make_dir_of, open_store, peeked_state_dir_of,
    store_place,
};
use crate::place::worktree_here;
use crate::settings::Settings;
use crate::witness::Witnesses;

/// An open store and everything that a service needs.
pub struct Context {
    pub(crate) store: Box<dyn Store>,
    pub(crate) machine: Machine,
    pub(crate) facts: CallerFacts,
    pub(crate) settings: Settings,
    pub(crate) witnesses: Witnesses,
    pub(crate) dir: PathBuf,
    pub(crate) repo: Option<String>,
    /// What a person should be told of the store.
    pub news: Option<String>,
    /// The state directory, where it was missing until now.
    pub made: Option<PathBuf>,
    /// Where the store would be, if it does not exist and an empty one is used instead.
    pub(crate) absent: Option<StorePlace>,
    /// Where the log stood when it was opened, where there are mirrors to keep up to date.
    pub mark: Option<Cursor>,
}

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To read: a store that is not there is an empty one, and nothing is made.
    Read,
    /// To change what is in it: the same, for in an empty store there is nothing to change.
    Change,
    /// To write: a store that is not there is made.
    Write,
}

/// Opens the store that the settings name, for a caller in this directory.
pub fn open(purpose: Purpose) -> Result<Context, Problem> {
    let worktree = worktree_here();
    let settings = Settings::of_project(worktree.as_ref().map(|found| found.root.as_path()))?;
    let place = store_place(&settings)?;
    let is_absent = purpose != Purpose::Write && is_absent(&place);
    let (state, made) = if is_absent {
        (peeked_state_dir_of(&place)?, None)
    } else {
        make_dir_of(&place)?
    };
    let machine = machine_of(&state)?;
    let (store, news) = if is_absent {
        (empty_store(&place, &machine)?, None)
    } else {
        open_store(&place, &machine, None)?
    };
    let facts = caller::facts(
        machine.observer().clone(),
        cwd::name().to_string_lossy().into_owned(),
        worktree.as_ref().map(Worktree::repository),
    );
    let mut context = Context {
        store,
        machine,
        facts,
        settings,
        witnesses: Witnesses,
        dir: state.path().to_owned(),
        repo: worktree.as_ref().map(Worktree::repo),
        news,
        made,
        absent: is_absent.then_some(place),
        mark: None,
    };
    // An empty store knows no session, so it cannot tell whose locks these are.
    if let Some(found) = worktree.as_ref().filter(|_| !is_absent) {
        let root = found.root.to_string_lossy();
        context.service().repair_tree_locks(&root);
    }
    if !context.settings.mirrors.is_empty() {
        context.mark = Some(context.service().newest_event()?.value);
    }
    Ok(context)
}

impl Context {
    /// Opens the store that was made since an empty one was opened in its place; whether there is one now.
    pub(crate) fn appeared(&mut self) -> Result<bool, Problem> {
        if self.absent.as_ref().is_none_or(is_absent) {
            return Ok(false);
        }
        *self = open(Purpose::Read)?;
        Ok(true)
    }

    /// Where the caller stands, for missions.
    pub fn here(&self) -> Here {
        Here {
            repo: self.repo.clone(),
            user: rustix::process::getuid().as_raw().to_string(),
            roles: self.settings.roles.clone(),
        }
    }

    /// Random bytes.
    pub fn random(&self) -> [u8; 16] {
        self.machine.random()
    }

    /// The repository of the caller's directory.
    pub fn repo(&self) -> Option<&str> {
        self.repo.as_deref()
    }

    /// The state directory of this machine: its locks, what it missed, the hosts that it knows.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The use cases for this caller.
    pub fn service(&mut self) -> Service<'_> {
        Service::new(
            self.store.as_mut(),
            &self.machine,
            &self.facts,
            self.settings.policy,
        )
        .with_witness(&self.witnesses)
    }

    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Whether a process is one that this command runs in.
    pub fn runs_in(&self, pid: u32) -> bool {
        let mut above = self.facts.chain.iter();
        above.any(|ancestor| ancestor.process.pid == pid)
    }
}
