//! A state directory that is measured, and this process as a session in it.

use std::path::{Path, PathBuf};

use tenure_core::id::{AgentName, NativeId};
use tenure_core::policy::Policy;
use tenure_core::process::{CallerFacts, Observer};
use tenure_core::registration::RegistrationSource;
use tenure_core::session;
use tenure_core::store::Store;
use tenure_core::world::World;
use tenure_host::machine::Machine;
use tenure_host::state_dir::StateDir;
use tenure_host::{caller, clock};
use tenure_service::{RegisterRequest, Registered, Reply, Service, Subject};
use tenure_store::sqlite::SqliteStore;

use crate::Failed;

/// A state directory, as the process that measures sees it.
#[derive(Debug)]
pub struct BenchStore {
    dir: PathBuf,
    machine: Machine,
    facts: CallerFacts,
}

impl BenchStore {
    /// Opens a state directory, and makes it if it is missing.
    pub fn open(dir: &Path) -> Result<Self, Failed> {
        let state = StateDir::open(dir)?;
        let machine = Machine::new(state.host().clone())?;
        let facts = caller::facts(machine.observer().clone(), "/".into(), None);
        Ok(Self {
            dir: state.path().to_owned(),
            machine,
            facts,
        })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn database(&self) -> PathBuf {
        self.dir.join("tenure.db")
    }

    /// The pids of this process and of those above it.
    pub fn pids(&self) -> Vec<u32> {
        let chain = self.facts.chain.iter();
        chain.map(|one| one.process.pid).collect()
    }

    pub fn observer(&self) -> &Observer {
        self.machine.observer()
    }

    /// A connection to its store, as tenure opens it.
    pub fn store(&self) -> Result<SqliteStore, Failed> {
        let boot = self.observer().boot.clone();
        let clock = Box::new(move || clock::now(&boot));
        Ok(SqliteStore::open(&self.database(), clock)?)
    }

    /// The use cases for this process.
    pub fn service<'a>(&'a self, store: &'a mut dyn Store) -> Service<'a> {
        Service::new(store, &self.machine, &self.facts, Policy::default())
    }

    /// Makes this process a session.
    pub fn register(&self, store: &mut dyn Store) -> Result<Registered, Failed> {
        let own = self
            .facts
            .chain
            .first()
            .ok_or("cannot see the own process")?;
        let native = format!("bench-{}-{}", own.process.pid, own.process.start.ticks);
        let request = RegisterRequest {
            subject: Subject::Given(self.facts.chain.clone()),
            agent: Some(AgentName::known("bench")),
            native_id: Some(NativeId::parse(&native)?),
            source: RegistrationSource::Start,
            hosted: false,
            workdir: session::Workdir {
                dir: "/".into(),
                repo: None,
                branch: None,
            },
            place_named: true,
            title: None,
            parent: None,
            reason: None,
            transcript: None,
            metadata: Default::default(),
        };
        answered(self.service(store).register(&request))
    }
}

/// The value of an answer, or the refusal as an error.
pub fn answered<T>(reply: Reply<T>) -> Result<T, Failed> {
    match reply {
        Ok(answer) => Ok(answer.value),
        Err(failure) => Err(failure.error.to_string().into()),
    }
}
