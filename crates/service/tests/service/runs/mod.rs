//! Runs, on a store that panics where one writes what it did not lock, or locks it out of order.

mod ending;
mod falling_back;
mod parking;
mod spending;
mod starting;
mod stopping;
mod waiting;

use tenure_core::conversation::Home;
use tenure_core::conversation::fitness::{Existence, Left};
use tenure_core::event::{Event, EventFilter};
use tenure_core::id::{AgentName, NativeId, RunId, WorkerRole};
use tenure_core::process::Ancestor;
use tenure_core::run::{Outcome, Run, Trigger, Usage};
use tenure_core::session::Workdir;
use tenure_core::store::{Store, TxMode};
use tenure_core::time::Timestamp;
use tenure_service::error::Error;
use tenure_service::view::{RunView, SessionView};
use tenure_service::{
    ActFor, EndRun, ListRequest, NextProcess, PlanRequest, SetRequest, StartRun, StartTurn, Started,
};

use crate::{Rig, Who, key};

const ITEM: &str = "issue:acme/web#6";
const DIR: &str = "/work/web";

fn worker() -> AgentName {
    AgentName::known("worker")
}

fn native(text: &str) -> NativeId {
    NativeId::parse(text).unwrap()
}

fn id(n: u8) -> RunId {
    RunId::mint([n; 16])
}

/// A run that is asked for: its number, its agent's and its runner's process.
#[derive(Clone)]
struct Asked {
    n: u8,
    item: &'static str,
    agent: u32,
    runner: u32,
    dir: &'static str,
    shares_dir: bool,
    exclusive: bool,
    fresh: bool,
    existence: Existence,
    goes_on: Option<RunId>,
}

/// The run with this number: its runner is process 100 + n, its agent 200 + n.
fn asked(n: u8) -> Asked {
    Asked {
        n,
        item: ITEM,
        agent: 200 + u32::from(n),
        runner: 100 + u32::from(n),
        dir: DIR,
        shares_dir: false,
        exclusive: false,
        fresh: false,
        existence: Existence::CannotTell,
        goes_on: None,
    }
}

/// How a run ended that went well.
fn done(n: u8, after: &str) -> EndRun {
    EndRun {
        id: id(n),
        outcome: Outcome::Done,
        why: "the agent reported success".into(),
        exit_code: Some(0),
        left: Left::Sound,
        after: Some(native(after)),
        usage: Usage::default(),
        parked: None,
    }
}

fn ended(n: u8, outcome: Outcome) -> EndRun {
    EndRun {
        outcome,
        after: None,
        ..done(n, "any")
    }
}

/// A rig whose callers run agents.
struct Office {
    rig: Rig,
    /// A person at a shell outside any session.
    shell: Who,
}

impl Office {
    fn new() -> Office {
        let rig = Rig::new();
        let shell = rig.here(&[10]);
        Office { rig, shell }
    }

    fn home(&self, dir: &str) -> Home {
        Home {
            host: self.rig.world.observer.host.clone(),
            user: "1000".into(),
            agent_home: None,
            repo_host: None,
            dir: dir.into(),
        }
    }

    /// The process of a run's agent, below its runner.
    fn chain(&self, asked: &Asked) -> Vec<Ancestor> {
        self.rig.world.facts(&[asked.agent, asked.runner]).chain
    }

    fn request(&mut self, asked: &Asked) -> Result<StartRun, Error> {
        let plan = PlanRequest {
            role: WorkerRole::default(),
            agent: worker(),
            item: key(asked.item),
            here: self.home(asked.dir),
            fresh: asked.fresh,
        };
        let planned = self
            .rig
            .call(&self.shell, |service| service.plan_run(&plan))?;
        let begin = planned.begin(asked.existence)?;
        Ok(StartRun {
            id: id(asked.n),
            begin,
            planned,
            intended: None,
            chain: self.chain(asked),
            runner: self.rig.world.process(asked.runner),
            workdir: Workdir {
                dir: asked.dir.into(),
                ..Workdir::default()
            },
            shares_dir: asked.shares_dir,
            exclusive: asked.exclusive,
            timeout: Some(std::time::Duration::from_secs(60)),
            trigger: Trigger::Call,
            goes_on: asked.goes_on.clone(),
            skill: None,
            prompt_hash: "00".into(),
            log: format!("/state/runs/{}", asked.n),
            job: None,
        })
    }

    /// One attempt to start, by the runner.
    fn turn(&mut self, asked: &Asked) -> Result<StartTurn, Error> {
        let request = self.request(asked)?;
        let runner = self.rig.here(&[asked.runner]);
        self.rig
            .call(&runner, |service| service.start_run(&request, None))
    }

    #[track_caller]
    fn starts(&mut self, asked: &Asked) -> Started {
        match self.turn(asked).unwrap() {
            StartTurn::Started(started) => *started,
            other => panic!("{other:?}"),
        }
    }

    /// Started and begun.
    #[track_caller]
    fn begins(&mut self, asked: &Asked) -> Started {
        let started = self.starts(asked);
        let run = id(asked.n);
        let begun = self
            .rig
            .call(&self.shell, |service| service.run_begins(&run));
        assert_eq!(begun.unwrap().state, "running");
        started
    }

    fn names(&mut self, asked: &Asked, native_id: &str) -> Result<RunView, Error> {
        let (run, chain, home) = (id(asked.n), self.chain(asked), self.home(asked.dir));
        self.rig.call(&self.shell, |service| {
            service.run_is_named(&run, &native(native_id), &chain, &home)
        })
    }

    /// Started, begun, and named.
    #[track_caller]
    fn works(&mut self, asked: &Asked, native_id: &str) -> Started {
        let started = self.begins(asked);
        self.names(asked, native_id).unwrap();
        started
    }

    fn ends(&mut self, asked: &Asked, end: &EndRun) -> Result<RunView, Error> {
        self.rig.world.exit(asked.agent);
        let ended = self.rig.call(&self.shell, |service| service.end_run(end));
        self.rig.world.exit(asked.runner);
        ended
    }

    /// The next process of a run, behind its gate.
    fn falls_back(&mut self, asked: &Asked, unknown: &str, next: u32) -> Result<RunView, Error> {
        let chain = self.rig.world.facts(&[next, asked.runner]).chain;
        let next = NextProcess {
            run: id(asked.n),
            unknown: native(unknown),
            chain,
            intended: None,
            prompt_hash: "11".into(),
        };
        let fell = self
            .rig
            .call(&self.shell, |service| service.run_falls_back(&next));
        fell.map(|fell| fell.expect("its session is its own").0)
    }

    fn record(&mut self, n: u8) -> Run {
        let mut tx = self.rig.store.inner().begin(TxMode::Read).unwrap();
        tx.run_by_id(&id(n)).unwrap().unwrap()
    }

    fn show(&mut self, n: u8) -> RunView {
        let run = id(n);
        let shown = self
            .rig
            .call(&self.shell, |service| service.show_run(run.as_str()));
        shown.unwrap()
    }

    /// Sets the conversation of an item by hand.
    fn sets(&mut self, item: &str, native_id: &str) {
        let request = SetRequest {
            role: WorkerRole::default(),
            agent: worker(),
            item: key(item),
            native_id: native(native_id),
            home: self.home(DIR),
            revision: None,
        };
        let set = self.rig.call(&self.shell, |service| {
            service.set_conversation(&ActFor::default(), &request)
        });
        set.unwrap();
    }

    /// The conversation of an item: its native id, as a run would find it.
    fn current(&mut self, item: &str) -> Option<String> {
        let mut tx = self.rig.store.inner().begin(TxMode::Read).unwrap();
        let record = tx
            .conversation(&worker(), &WorkerRole::default(), &key(item))
            .unwrap()?;
        record.open().map(|current| current.native_id.to_string())
    }

    /// Every native id of an item, with why it ended.
    fn history(&mut self, item: &str) -> Vec<(String, Option<&'static str>)> {
        let mut tx = self.rig.store.inner().begin(TxMode::Read).unwrap();
        let past = tx
            .past_ids(&worker(), &WorkerRole::default(), &key(item))
            .unwrap()
            .into_iter();
        past.map(|one| {
            let why = one.ended.map(|end| end.why.as_str());
            (one.native_id.to_string(), why)
        })
        .collect()
    }

    /// The session that the run with this number is.
    fn session(&mut self, n: u8) -> SessionView {
        let handle = self.show(n).session.unwrap();
        let all = ListRequest {
            closed_too: true,
            ..ListRequest::default()
        };
        let listed = self.rig.call(&self.shell, |service| service.list(&all));
        let mut sessions = listed.unwrap().items.into_iter();
        sessions.find(|one| one.handle == handle).unwrap()
    }

    fn events(&mut self, item: &str) -> Vec<Event> {
        let filter = EventFilter {
            key: Some(key(item)),
            ..EventFilter::default()
        };
        let mut tx = self.rig.store.inner().begin(TxMode::Read).unwrap();
        tx.events(&filter).unwrap()
    }

    /// How often something of this kind was recorded about an item.
    fn count(&mut self, item: &str, kind: &str) -> usize {
        let events = self.events(item);
        events.iter().filter(|event| event.kind == kind).count()
    }

    fn later(&self, seconds: i64) -> Timestamp {
        Timestamp(self.rig.clock.now().wall.0 + seconds * 1000)
    }
}

#[track_caller]
fn held(turn: Result<StartTurn, Error>) -> (&'static str, Vec<u32>) {
    match turn.unwrap() {
        StartTurn::Held { error, watch } => {
            (error.kind(), watch.iter().map(|one| one.pid).collect())
        }
        other => panic!("{other:?}"),
    }
}
