//! A worker of the queue: a process that sends events, takes jobs, runs an agent for them and
//! sweeps, as the dice decide, until it is killed.
//!
//! Its agent is a separate process that waits to be let go, as the product's does, and records
//! itself when it works. The worker records what it was told is stored.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};
use tenure_core::conversation::Home;
use tenure_core::conversation::fitness::{Existence, Left};
use tenure_core::id::{AgentName, JobId, RunId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::process::Process;
use tenure_core::queue::choose::Limits;
use tenure_core::queue::delivery::{Delivery, Verdict};
use tenure_core::queue::step::Retry;
use tenure_core::queue::{Caps, JobSpec, Trust};
use tenure_core::run::{Outcome, Trigger, Usage};
use tenure_core::session::Workdir;
use tenure_core::time::Timestamp;
use tenure_core::world::World;
use tenure_host::caller::RUN_VARIABLE;
use tenure_host::process;
use tenure_service::{
    Accept, Arrival, Decided, EndRun, Failure, GiveBack, ListJobs, LookForJobs, NewJob, Person,
    PlanRequest, StartRun, StartTurn, TakeJob, TakenJob, Undecided, WhichJobs,
};
use tenure_testkit::conformance::sample;

use crate::record::{Log, monotonic};
use crate::worker::{ChaosWorker, Orders};

const ITEMS: u64 = 4;
/// Jobs of two rules wait in one conversation, one behind the other.
const RULES: [&str; 2] = ["fix", "look"];
/// Fewer than there are conversations.
pub const LIMITS: Limits = Limits { concurrency: 3 };
/// Refusals that are right at some moment or other.
const EXPECTED: &[&str] = &[
    "not_yet",
    "late",
    "wrong_state",
    "held",
    "parked",
    "not_running",
    "survivors",
    "store_busy",
    "store_unavailable",
    "store_outcome_unknown",
];

/// A line of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum QueueLine {
    /// It is about to send an event.
    Brings { event: String },
    /// The event is stored.
    Stored { event: String },
    /// It is about to record that a run waits for a usage limit, until this time of the wall clock.
    Parks { run: String, until: i64 },
    /// It made a call.
    Called { millis: u64 },
    /// It got an answer that nobody should get.
    Failed { what: String },
}

/// A line of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Work {
    Begins { at: u64, job: String, item: String },
    Ends { at: u64 },
}

/// The orders of an agent.
#[derive(Debug, Clone)]
pub struct AgentOrders {
    pub run: String,
    pub job: String,
    pub item: String,
    pub millis: u64,
}

/// Acts as the agent of a run: waits to be let go, works for a while, and records that.
pub fn be_agent(dir: &Path, orders: &AgentOrders) -> io::Result<()> {
    let mut byte = [0];
    if io::Read::read(&mut io::stdin(), &mut byte)? == 0 {
        // Its runner died, or changed its mind.
        return Ok(());
    }
    let mut log = Log::open(&dir.join(format!("{}.agent", orders.run)))?;
    log.write(&Work::Begins {
        at: monotonic(),
        job: orders.job.clone(),
        item: orders.item.clone(),
    })?;
    tenure_host::pause::sleep(std::time::Duration::from_millis(orders.millis));
    log.write(&Work::Ends { at: monotonic() })
}

/// Works until it is time to leave, or until it is killed.
pub fn work(orders: Orders) -> Result<(), Box<dyn std::error::Error>> {
    let (until, is_shared) = (orders.until, orders.store.is_some());
    // A server that is down at the end is nobody's fault.
    let is_over = || is_shared && monotonic() > until;
    let mut worker = match QueueWorker::new(orders) {
        Err(_) if is_over() => return Ok(()),
        worker => worker?,
    };
    while monotonic() < until {
        match worker.base.dice.below(100) {
            0..35 => worker.bring()?,
            35..80 => worker.run_one()?,
            80..86 => worker.sweep()?,
            86..88 => worker.decide()?,
            88..90 => worker.end_late()?,
            90..93 => worker.return_late()?,
            93..97 => worker.retry_some()?,
            97..98 => worker.cancel_one()?,
            _ => match worker.base.reopen() {
                Err(_) if is_over() => return Ok(()),
                opened => opened?,
            },
        }
        let pause = worker.base.dice.between(0, 4_000);
        tenure_host::pause::sleep(std::time::Duration::from_micros(pause));
    }
    Ok(())
}

pub struct QueueWorker {
    base: ChaosWorker,
    log: Log,
    own: Process,
    events: u64,
    /// The jobs that it has taken so far.
    taken: Vec<TakenJob>,
}

type Failed = Box<dyn std::error::Error>;

impl QueueWorker {
    pub fn new(orders: Orders) -> Result<Self, Failed> {
        let log = Log::open(&orders.dir.join(format!("{}.queue", orders.name)))?;
        let base = ChaosWorker::new(orders)?;
        let own = process::identify(std::process::id(), base.machine.observer())?;
        Ok(Self {
            base,
            log,
            own,
            events: 0,
            taken: Vec::new(),
        })
    }

    /// The same for a step of a job that this process took and did not return: no other process may
    /// have it.
    fn ask_own<T>(&mut self, what: &str, reply: Result<T, Failure>) -> io::Result<Option<T>> {
        if let Err(failure) = &reply
            && failure.error.kind() == "late"
        {
            let what = format!("{what}: its job was taken from a runner that lives");
            self.log.write(&QueueLine::Failed { what })?;
        }
        self.ask(what, reply)
    }

    /// The product's answer; `None` for a refusal that can be correct.
    fn ask<T>(&mut self, what: &str, reply: Result<T, Failure>) -> io::Result<Option<T>> {
        let millis = u64::try_from(self.base.took.as_millis()).unwrap_or(u64::MAX);
        self.log.write(&QueueLine::Called { millis })?;
        match reply {
            Ok(value) => Ok(Some(value)),
            Err(failure) if EXPECTED.contains(&failure.error.kind()) => Ok(None),
            Err(failure) => {
                let what = format!("{what}: {}: {}", failure.error.kind(), failure.error);
                self.log.write(&QueueLine::Failed { what })?;
                Ok(None)
            }
        }
    }

    fn bytes(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        for half in bytes.chunks_mut(8) {
            half.copy_from_slice(&self.base.dice.below(u64::MAX).to_be_bytes());
        }
        bytes
    }

    /// Stores an event, as a webhook does, and decides what is undecided; sometimes another worker does that.
    fn bring(&mut self) -> Result<(), Failed> {
        self.events += 1;
        let event = format!("{}-{}", self.base.orders.name, self.events);
        let item = format!("issue:acme/web#{}", 1 + self.base.dice.below(ITEMS));
        let rule = RULES[usize::try_from(self.base.dice.below(2))?];
        let arrival = Arrival::New(Box::new(Undecided {
            delivery: delivery(&event, Verdict::Waits),
            body: Vec::new(),
            headers: serde_json::to_string(&[&item, rule])?,
            answers: Some("{}".to_owned()),
            replayed: false,
        }));
        self.log.write(&QueueLine::Brings {
            event: event.clone(),
        })?;
        // Sometimes twice, as a forge that got no answer.
        for _ in 0..=u8::from(self.base.dice.percent(5)) {
            let arrivals = [arrival.clone()];
            let reply = self.base.call(|service| service.store_all(&arrivals));
            if self.ask("store", reply)?.is_none() {
                return Ok(());
            }
            self.log.write(&QueueLine::Stored {
                event: event.clone(),
            })?;
        }
        if self.base.dice.percent(80) {
            self.decide()?;
        }
        Ok(())
    }

    /// Decides what is undecided, no matter who stored it.
    fn decide(&mut self) -> Result<(), Failed> {
        let reply = self.base.call(|service| service.undecided(&["home"], 8));
        let Some(oldest) = self.ask("undecided", reply)? else {
            return Ok(());
        };
        let mut decisions = Vec::new();
        for stored in oldest.found {
            let [item, rule]: [String; 2] = serde_json::from_str(&stored.row.headers)?;
            let (item, event) = (
                Key::parse(&item)?,
                stored.row.delivery_id.unwrap_or_default(),
            );
            decisions.push(Decided::Now(Box::new(Accept {
                delivery: Delivery {
                    id: stored.row.delivery,
                    item: Some(item.clone()),
                    rule: Some(rule.clone()),
                    ..delivery(&event, Verdict::Queued)
                },
                person: Person::No,
                repository: None,
                jobs: vec![NewJob {
                    role: WorkerRole::default(),
                    id: JobId::mint(self.bytes()),
                    agent: AgentName::parse("chaos")?,
                    item,
                    rule: Some(rule),
                    trust: Trust::Trusted,
                    repo: None,
                    spec: spec(),
                    summary: event,
                    data: "{}".to_owned(),
                    reply: None,
                }],
            })));
        }
        if decisions.is_empty() {
            return Ok(());
        }
        let reply = self.base.call(|service| service.decide_all(&decisions));
        self.ask("decide", reply)?;
        Ok(())
    }

    fn run_one(&mut self) -> Result<(), Failed> {
        let reply = self
            .base
            .call(|service| service.waiting_jobs(&LookForJobs::within(LIMITS)));
        let Some(waiting) = self.ask("look", reply)? else {
            return Ok(());
        };
        let mut job = self.base.dice.pick(&waiting.jobs).cloned();
        if self.base.dice.percent(20) {
            // A job that should wait for others, or has been taken.
            job = self.any_open()?.and_then(|id| JobId::parse(&id).ok());
        }
        let Some(taken) = self.take(job)? else {
            return Ok(());
        };
        let run = RunId::mint(self.bytes());
        let mut agent = self.start_agent(&taken, &run)?;
        if self.start_run(&taken, &run, &agent)? {
            self.release(&taken, &run, &mut agent)
        } else {
            drop(agent.stdin.take());
            agent.wait()?;
            self.give_back_own(&taken, Retry::InUse)
        }
    }

    /// Takes a job, which it keeps; now and then only after it returned it once.
    fn take(&mut self, job: Option<JobId>) -> Result<Option<TakenJob>, Failed> {
        let Some(job) = job else {
            return Ok(None);
        };
        let request = TakeJob {
            job,
            runner: self.own.clone(),
            limits: LIMITS,
        };
        let reply = self.base.call(|service| service.take_job(&request));
        let Some(taken) = self.ask("take", reply)? else {
            return Ok(None);
        };
        let before = self.taken.iter().rfind(|one| one.of.id == taken.of.id);
        let before = before.cloned();
        self.taken.push(taken.clone());
        if let Some(before) = before {
            self.return_old(&before)?;
        }
        if !self.base.dice.percent(15) {
            return Ok(Some(taken));
        }
        self.give_back_own(&taken, Retry::Again)?;
        if self.base.dice.percent(50) {
            return self.take(Some(taken.of.id));
        }
        Ok(None)
    }

    /// Returns an attempt that is over while this process has the next one: only the number tells them apart.
    fn return_old(&mut self, before: &TakenJob) -> Result<(), Failed> {
        let request = self.returns(before, Retry::Again);
        let reply = self.base.call(|service| service.give_back_job(&request));
        if self.ask("return an old attempt", reply)?.is_some() {
            let what = format!("attempt {} returned a later one", before.of.attempt);
            self.log.write(&QueueLine::Failed { what })?;
        }
        Ok(())
    }

    fn start_agent(&mut self, taken: &TakenJob, run: &RunId) -> io::Result<Child> {
        let millis = self.base.dice.between(1, 60);
        Command::new(std::env::current_exe()?)
            .args(["agent", "--run", run.as_str()])
            .args(["--job", taken.of.id.as_str()])
            .args(["--item", taken.job.root.as_str()])
            .args(["--millis", &millis.to_string()])
            .arg("--dir")
            .arg(&self.base.orders.dir)
            .env_clear()
            .env(RUN_VARIABLE, run.as_str())
            .stdin(Stdio::piped())
            .spawn()
    }

    /// Records the run of a waiting agent; returns whether it may be let go.
    fn start_run(&mut self, taken: &TakenJob, run: &RunId, agent: &Child) -> Result<bool, Failed> {
        let dir = format!("/work/{}", taken.job.root);
        let observer = self.base.machine.observer().clone();
        let plan = PlanRequest {
            role: WorkerRole::default(),
            agent: taken.job.agent.clone(),
            item: taken.job.item.clone(),
            here: Home {
                host: observer.host.clone(),
                user: "0".to_owned(),
                agent_home: None,
                repo_host: None,
                dir: dir.clone(),
            },
            fresh: false,
        };
        let reply = self.base.call(|service| service.plan_run(&plan));
        let Some(planned) = self.ask("plan", reply)? else {
            return Ok(false);
        };
        let request = StartRun {
            timeout: None,
            id: run.clone(),
            begin: planned.begin(Existence::CannotTell)?,
            planned,
            intended: None,
            chain: process::chain_from(agent.id(), &observer).0,
            runner: self.own.clone(),
            workdir: Workdir {
                dir,
                ..Workdir::default()
            },
            shares_dir: true,
            exclusive: false,
            trigger: Trigger::Queue,
            goes_on: None,
            skill: None,
            prompt_hash: "00".to_owned(),
            log: run.to_string(),
            job: Some(taken.of.clone()),
        };
        let reply = self.base.call(|service| service.start_run(&request, None));
        match self.ask_own("start", reply)? {
            Some(StartTurn::Started(_)) => Ok(true),
            Some(StartTurn::Settle(run)) => {
                self.settle(&run)?;
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    fn release(&mut self, taken: &TakenJob, run: &RunId, agent: &mut Child) -> Result<(), Failed> {
        let gate = agent.stdin.take();
        if self.base.dice.percent(10) {
            drop(gate);
            agent.wait()?;
            return self.end(run, Outcome::Failed);
        }
        let reply = self.base.call(|service| service.run_begins(run));
        if self.ask_own("begin", reply)?.is_none() {
            drop(gate);
            agent.wait()?;
            return self.give_back_own(taken, Retry::Later);
        }
        if let Some(mut gate) = gate {
            gate.write_all(b"1")?;
        }
        agent.wait()?;
        let outcome = match self.base.dice.below(10) {
            0 => Outcome::Stopped,
            1 => Outcome::Parked,
            2..4 => Outcome::Failed,
            _ => Outcome::Done,
        };
        self.end(run, outcome)?;
        if self.base.dice.percent(10) {
            self.end(run, Outcome::Interrupted)?;
        }
        Ok(())
    }

    fn returns(&self, taken: &TakenJob, retry: Retry) -> GiveBack {
        GiveBack {
            of: taken.of.clone(),
            runner: self.own.clone(),
            why: "so".to_owned(),
            retry,
        }
    }

    fn give_back(&mut self, taken: &TakenJob, retry: Retry) -> Result<(), Failed> {
        let request = self.returns(taken, retry);
        let reply = self.base.call(|service| service.give_back_job(&request));
        self.ask("give back", reply)?;
        Ok(())
    }

    /// Returns a job that it has: nobody else may have it.
    fn give_back_own(&mut self, taken: &TakenJob, retry: Retry) -> Result<(), Failed> {
        let request = self.returns(taken, retry);
        let reply = self.base.call(|service| service.give_back_job(&request));
        self.ask_own("give back", reply)?;
        Ok(())
    }

    /// Returns a job whose run is recorded, lets others take it, and records the end of that run afterwards.
    fn end_late(&mut self) -> Result<(), Failed> {
        let reply = self
            .base
            .call(|service| service.waiting_jobs(&LookForJobs::within(LIMITS)));
        let waiting = self.ask("look", reply)?.map(|waiting| waiting.jobs);
        let job = self.base.dice.pick(&waiting.unwrap_or_default()).cloned();
        let Some(taken) = self.take(job)? else {
            return Ok(());
        };
        let run = RunId::mint(self.bytes());
        let mut agent = self.start_agent(&taken, &run)?;
        let is_started = self.start_run(&taken, &run, &agent)?;
        drop(agent.stdin.take());
        agent.wait()?;
        self.give_back_own(&taken, Retry::Again)?;
        if is_started {
            tenure_host::pause::sleep(std::time::Duration::from_millis(
                self.base.dice.between(1, 30),
            ));
            let outcome = *self
                .base
                .dice
                .pick(&[Outcome::Failed, Outcome::Stopped])
                .unwrap_or(&Outcome::Failed);
            self.end(&run, outcome)?;
        }
        Ok(())
    }

    /// Returns something that it took long ago: that must change nothing.
    fn return_late(&mut self) -> Result<(), Failed> {
        let Some(taken) = self.base.dice.pick(&self.taken).cloned() else {
            return Ok(());
        };
        self.give_back(&taken, Retry::Again)
    }

    fn end(&mut self, run: &RunId, outcome: Outcome) -> Result<(), Failed> {
        let soon = tenure_host::clock::wall().plus(std::time::Duration::from_millis(60));
        if outcome == Outcome::Parked {
            self.log.write(&QueueLine::Parks {
                run: run.to_string(),
                until: soon.0,
            })?;
        }
        let end = EndRun {
            id: run.clone(),
            outcome,
            why: "so".to_owned(),
            exit_code: None,
            left: Left::Sound,
            after: None,
            usage: Usage::default(),
            parked: (outcome == Outcome::Parked).then_some((soon, true)),
        };
        let reply = self.base.call(|service| service.end_run(&end));
        self.ask("end", reply)?;
        Ok(())
    }

    /// Returns jobs of dead runners, and records the ends of their runs.
    pub fn sweep(&mut self) -> Result<(), Failed> {
        let reply = self.base.call(|service| service.sweep_jobs());
        let Some(swept) = self.ask("sweep", reply)? else {
            return Ok(());
        };
        for run in swept.settle {
            self.settle(&run)?;
        }
        Ok(())
    }

    fn settle(&mut self, run: &RunId) -> Result<(), Failed> {
        let end = EndRun {
            id: run.clone(),
            outcome: Outcome::Interrupted,
            why: "its processes are gone".to_owned(),
            exit_code: None,
            left: Left::Sound,
            after: None,
            usage: Usage::default(),
            parked: None,
        };
        let reply = self.base.call(|service| service.end_dead_run(&end));
        self.ask("settle", reply)?;
        Ok(())
    }

    fn any_open(&mut self) -> Result<Option<String>, Failed> {
        let list = ListJobs::default();
        let reply = self.base.call(|service| service.list_jobs(&list));
        let Some(listed) = self.ask("list", reply)? else {
            return Ok(None);
        };
        let ids: Vec<String> = listed.items.into_iter().map(|job| job.id).collect();
        Ok(self.base.dice.pick(&ids).cloned())
    }

    /// Retries a few random open jobs.
    fn retry_some(&mut self) -> Result<(), Failed> {
        for _ in 0..4 {
            if let Some(job) = self.any_open()? {
                let reply = self
                    .base
                    .call(|service| service.retry_jobs(&WhichJobs::one(&job)));
                self.ask("retry", reply)?;
            }
        }
        Ok(())
    }

    fn cancel_one(&mut self) -> Result<(), Failed> {
        if let Some(job) = self.any_open()? {
            let reply = self
                .base
                .call(|service| service.cancel_jobs(&WhichJobs::one(&job), "so"));
            self.ask("cancel", reply)?;
        }
        Ok(())
    }
}

/// An event as a delivery.
fn delivery(event: &str, verdict: Verdict) -> Delivery {
    Delivery {
        id: 0,
        endpoint: "home".to_owned(),
        delivery_id: Some(event.to_owned()),
        content_key: None,
        body_hash: None,
        received_at: Timestamp(0),
        event: "issue.comment".to_owned(),
        repo: None,
        item: None,
        author: None,
        verdict,
        rule: None,
        why: String::new(),
        job: None,
    }
}

fn spec() -> JobSpec {
    JobSpec {
        caps: Caps {
            breaker: Some(u32::MAX),
            ..Caps::default()
        },
        ..sample::job_spec()
    }
}
