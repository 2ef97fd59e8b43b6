//! The world that real agents run in.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::config;
use super::hooks::{self, Hooked};
use super::keeper::Keeper;
use super::kind::Real;
use super::screen::Screen;
use crate::agent::Agent;
use crate::env::Env;
use crate::git::scratch_git;
use crate::mock::MockModel;
use crate::output::Output;

/// How long a turn may take on a busy machine.
const TURN: Duration = Duration::from_secs(110);

/// The remote of the project, which does not exist.
const REMOTE: &str = "https://example.invalid/team/project.git";

/// A home, a project and a model, for any real agents at once.
#[derive(Debug)]
pub struct RealWorld {
    cache: PathBuf,
    ready: Mutex<BTreeSet<Real>>,
    // Dropped in this order: the driver that starts agents, the keeper that ends what is left of
    // them, the model, the directory.
    driver: Agent,
    _keeper: Keeper,
    mock: MockModel,
    env: Env,
}

impl RealWorld {
    /// A new world for this tenure executable, with the agents that `TENURE_REAL_AGENTS` names.
    #[track_caller]
    pub fn begin(tenure: &Path) -> RealWorld {
        let Some(cache) = std::env::var_os("TENURE_REAL_AGENTS").map(PathBuf::from) else {
            panic!("TENURE_REAL_AGENTS names no directory; run: scripts/test --real");
        };
        RealWorld::with_agents_in(&cache, tenure)
    }

    /// The same, with the agents in this directory, which need not exist until one is used.
    pub fn with_agents_in(cache: &Path, tenure: &Path) -> RealWorld {
        let mut env = Env::new(tenure);
        let mock = MockModel::start();
        for (key, value) in config::variables(&env.home(), &mock.url()) {
            env.set(key, value);
        }
        scratch_git(&env.work(), Some(REMOTE));
        config::write_user(&env.home(), &env.dir().join("bin"));
        let keeper = Keeper::start(env.place(), &env.variables());
        let driver = env.agent("driver");
        driver.set_patience(TURN);
        RealWorld {
            cache: cache.to_owned(),
            ready: Mutex::new(BTreeSet::new()),
            driver,
            _keeper: keeper,
            mock,
            env,
        }
    }

    pub fn mock(&self) -> &MockModel {
        &self.mock
    }

    pub fn home(&self) -> PathBuf {
        self.env.home()
    }

    /// TENURE_HOME, which is in the home and does not exist until tenure creates it.
    ///
    /// It is not the default directory, because tests are refused there.
    pub fn state(&self) -> PathBuf {
        self.home().join(".tenure")
    }

    /// The repository that agents work in by default.
    pub fn project(&self) -> PathBuf {
        self.env.work()
    }

    /// A directory for the test's own files, outside the home and the project.
    pub fn scratch(&self) -> PathBuf {
        self.env.dir().join("tmp")
    }

    /// The environment below it: the directories, and workers that are not real agents.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The worker that starts the agents. It is detached and does not look like an agent.
    pub fn driver(&self) -> &Agent {
        &self.driver
    }

    /// Runs tenure in the project, from outside any session.
    #[track_caller]
    #[must_use = "what a command answered is there to be checked"]
    pub fn tenure(&self, args: &[&str]) -> Output {
        self.env.tenure(args)
    }

    /// An agent, whose home is prepared at the first call.
    ///
    /// From then on its program is on PATH. Of two versions, the one that was requested last is.
    pub fn agent(&self, kind: Real) -> RealAgent<'_> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if ready.iter().all(|other| other.name() != kind.name()) {
            let (project, url) = (self.project(), self.mock.url());
            (kind.row().prepare)(&self.home(), &[&project], &url);
        }
        ready.insert(kind);
        let link = self.env.dir().join("bin").join(kind.name());
        let fresh = link.with_extension("fresh");
        std::os::unix::fs::symlink(kind.program(&self.cache), &fresh)
            .and_then(|()| std::fs::rename(&fresh, &link))
            .unwrap_or_else(|error| panic!("{}: {error}", link.display()));
        RealAgent { world: self, kind }
    }

    /// The path that a person would type.
    pub(super) fn program(&self, kind: Real) -> String {
        let program = kind.program(&self.cache);
        program
            .to_str()
            .expect("the cache's path is text")
            .to_owned()
    }
}

/// One of the programs, in a world.
#[derive(Debug, Clone, Copy)]
pub struct RealAgent<'w> {
    pub(super) world: &'w RealWorld,
    pub(super) kind: Real,
}

impl RealAgent<'_> {
    pub fn kind(&self) -> Real {
        self.kind
    }

    /// The program at a terminal of its own, with these arguments, detached.
    pub fn at_terminal(&self, args: &[&str]) -> Screen {
        let world = self.world;
        Screen::open(&world.env, &world.program(self.kind), args)
    }

    /// Makes every hook of the agent run this command, with the event's JSON as its input and the
    /// event's name for `{}`.
    pub fn hook(&self, command: &str) {
        hooks::write(self.kind, &self.world.home(), command);
    }

    /// Makes every hook of the agent record its input.
    pub fn record_hooks(&self) -> Hooked {
        let hooked = Hooked::new(&self.world.scratch());
        self.hook(hooked.command());
        hooked
    }
}
