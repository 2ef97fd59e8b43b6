//! The rules of claims against a model of them: random workers claim, give back, hand on, take over, die,
//! end, resume and fall silent, and after every step store and model must agree.
//!
//! Workers live in two pid namespaces and cannot see those of the other: to them the others are Unknown,
//! and only the lease counts. What the model leaves to chance is checked for itself: who lost an item
//! without an act had died or been silent for long enough, and every grant is one event.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use tenure_core::event::EventFilter;
use tenure_core::id::{AgentName, Epoch, NativeId};
use tenure_core::key::Key;
use tenure_core::notice::Channel;
use tenure_core::policy::Policy;
use tenure_core::reason::Reason;
use tenure_core::registration::Source;
use tenure_core::session::Place;
use tenure_core::store::{Mode, Store};
use tenure_service::{
    ClaimRequest, GuardRequest, HandoffRequest, Naming, Pick, RegisterRequest, ReleaseRequest,
    Reply, Service, Subject, TakeoverRequest,
};
use tenure_store::SqliteStore;
use tenure_testkit::{FakeClock, FakeWorld, RecordingStore};

const WORKERS: usize = 4;
const ITEMS: usize = 3;
const LEASE: i64 = 600;
const LOCK_DELAY: i64 = 15;

#[derive(Debug, Clone)]
enum Step {
    /// The worker starts, registers again, or resumes in a new process where its last one is dead.
    Register(usize),
    /// The worker resumes in a process of the other namespace.
    Move(usize),
    Kill(usize),
    End(usize),
    Advance(i64),
    /// Who, which item, and whether it may be taken up again.
    Claim(usize, usize, bool),
    /// Who, which item, and whether it is done.
    Release(usize, usize, bool),
    /// Who, which item, and to whom.
    Handoff(usize, usize, usize),
    Takeover(usize, usize),
    Guard(usize, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    /// By its holder's own act.
    Given,
    Done,
    Ended,
    Death,
    Lease,
    Taken,
}

/// How one worker looks to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Live,
    Gone,
    Trusted,
    Suspect,
    Expired,
}

#[derive(Debug, Clone, Copy, Default)]
struct Worker {
    known: bool,
    closed: bool,
    alive: bool,
    pid: u32,
    inside: bool,
    life: u32,
    lease: i64,
}

#[derive(Debug, Clone, Copy)]
struct Hold {
    epoch: u64,
    life: u32,
    end: End,
}

/// What a session must be told: by what kind of notice, about which item, with which epoch.
type Told = (&'static str, String, u64);

fn name(item: usize) -> String {
    format!("wp:{item}")
}

fn key(item: usize) -> Key {
    Key::parse(&name(item)).unwrap()
}

#[derive(Debug, Clone)]
struct Model {
    now: i64,
    pids: u32,
    workers: [Worker; WORKERS],
    epochs: [u64; ITEMS],
    /// Whose the newest hold of an item is.
    last: [usize; ITEMS],
    /// A worker's newest hold of an item.
    holds: [[Option<Hold>; ITEMS]; WORKERS],
    untold: [Vec<Told>; WORKERS],
    /// What the last step must come to: an epoch, or the kind of its refusal.
    answer: Result<u64, &'static str>,
    told: Vec<Told>,
    /// Items granted again to a worker that resumed, and how many others took.
    regranted: Vec<(String, u64)>,
    taken: usize,
}

impl Model {
    fn hold(&self, item: usize) -> Option<(usize, Hold)> {
        let who = self.last[item];
        let hold = self.holds[who][item]?;
        (hold.epoch == self.epochs[item] && self.epochs[item] > 0).then_some((who, hold))
    }

    fn holder(&self, item: usize) -> Option<usize> {
        let (who, hold) = self.hold(item)?;
        (hold.end == End::Open).then_some(who)
    }

    fn is_done(&self, item: usize) -> bool {
        matches!(self.hold(item), Some((_, hold)) if hold.end == End::Done)
    }

    /// How a worker looks to anybody inside, or outside.
    fn stands(&self, who: usize, inside: bool) -> Standing {
        let (worker, past) = (&self.workers[who], self.now - self.workers[who].lease);
        match worker.inside == inside {
            _ if worker.closed => Standing::Gone,
            true if worker.alive => Standing::Live,
            true => Standing::Gone,
            _ if past < 0 => Standing::Trusted,
            _ if past < LOCK_DELAY => Standing::Suspect,
            _ => Standing::Expired,
        }
    }

    fn close(&mut self, who: usize, end: End) {
        self.workers[who].closed = true;
        for hold in self.holds[who].iter_mut().flatten() {
            if hold.end == End::Open {
                hold.end = end;
            }
        }
    }

    fn end(&mut self, who: usize, item: usize, end: End) {
        if let Some(hold) = &mut self.holds[who][item] {
            hold.end = end;
        }
    }

    fn grant(&mut self, who: usize, item: usize) -> u64 {
        self.epochs[item] += 1;
        self.last[item] = who;
        let (epoch, life) = (self.epochs[item], self.workers[who].life);
        let end = End::Open;
        self.holds[who][item] = Some(Hold { epoch, life, end });
        epoch
    }

    /// A session that resumes: in this process, with what nobody took since.
    fn resume(&mut self, who: usize) {
        let former = self.workers[who].life;
        let worker = &mut self.workers[who];
        (worker.life, worker.closed) = (former + 1, false);
        let gone = |hold: &Hold| matches!(hold.end, End::Ended | End::Death | End::Lease);
        for item in 0..ITEMS {
            match self.holds[who][item].filter(gone) {
                Some(hold) if hold.epoch == self.epochs[item] => {
                    let epoch = self.grant(who, item);
                    self.regranted.push((name(item), epoch));
                }
                Some(hold) if hold.life == former => {
                    self.taken += 1;
                    let untold = &mut self.untold[who];
                    if !untold
                        .iter()
                        .any(|told| told.0 == "lost" && told.1 == name(item))
                    {
                        untold.push(("lost", name(item), self.epochs[item]));
                    }
                }
                _ => {}
            }
        }
    }

    fn start_process(&mut self, who: usize) {
        self.pids += 1;
        (self.workers[who].pid, self.workers[who].alive) = (self.pids, true);
    }

    fn claim(&mut self, who: usize, item: usize, reopen: bool) -> Result<u64, &'static str> {
        let inside = self.workers[who].inside;
        if self.is_done(item) && !reopen {
            return Err("done");
        }
        match self.holder(item) {
            None => {}
            Some(holder) if holder == who => return Ok(self.epochs[item]),
            Some(holder) => match self.stands(holder, inside) {
                Standing::Live | Standing::Trusted => return Err("held"),
                Standing::Suspect => return Err("suspect"),
                Standing::Gone => self.close(holder, End::Death),
                Standing::Expired => {
                    self.end(holder, item, End::Lease);
                    self.untold[holder].push(("lost", name(item), self.epochs[item] + 1));
                }
            },
        }
        Ok(self.grant(who, item))
    }

    /// Whether an item is a worker's, and why not.
    fn own(&mut self, who: usize, item: usize) -> Result<u64, &'static str> {
        let (epoch, inside) = (self.epochs[item], self.workers[who].inside);
        let robbed = |hold: &Hold| matches!(hold.end, End::Death | End::Lease | End::Taken);
        match self.holder(item) {
            Some(holder) if holder == who => return Ok(epoch),
            _ if self.holds[who][item].is_some_and(|h| robbed(&h) && h.epoch < epoch) => {
                return Err("lost");
            }
            Some(holder) if self.stands(holder, inside) != Standing::Gone => return Err("held"),
            Some(holder) => self.close(holder, End::Death),
            None if self.is_done(item) => return Err("done"),
            None => {}
        }
        Err("free")
    }

    fn handoff(&mut self, who: usize, item: usize, to: usize) -> Result<u64, &'static str> {
        self.own(who, item)?;
        if to == who {
            return Err("already_held");
        }
        let stands = self.stands(to, self.workers[who].inside);
        if stands == Standing::Gone {
            self.close(to, End::Death);
            return Err("not_live");
        } else if stands != Standing::Live {
            return Err("cannot_tell");
        }
        self.end(who, item, End::Given);
        let epoch = self.grant(to, item);
        self.untold[to].push(("handed", name(item), epoch));
        Ok(epoch)
    }

    fn takeover(&mut self, who: usize, item: usize) -> Result<u64, &'static str> {
        let Some(holder) = self.holder(item) else {
            return Err(if self.is_done(item) { "done" } else { "free" });
        };
        if holder == who {
            return Err("already_held");
        }
        self.end(holder, item, End::Taken);
        let epoch = self.grant(who, item);
        self.untold[holder].push(("lost", name(item), epoch));
        Ok(epoch)
    }

    /// The worker whose call a step is.
    fn caller(step: &Step) -> Option<usize> {
        match *step {
            Step::Kill(_) | Step::Advance(_) => None,
            Step::Register(who) | Step::Move(who) | Step::End(who) => Some(who),
            Step::Claim(who, ..) | Step::Release(who, ..) | Step::Handoff(who, ..) => Some(who),
            Step::Takeover(who, _) | Step::Guard(who, _) => Some(who),
        }
    }
}

impl ReferenceStateMachine for Model {
    type State = Model;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Model> {
        let mut workers = [Worker::default(); WORKERS];
        (workers[1].inside, workers[3].inside) = (true, true);
        Just(Model {
            now: 0,
            pids: 100,
            workers,
            epochs: [0; ITEMS],
            last: [0; ITEMS],
            holds: [[None; ITEMS]; WORKERS],
            untold: Default::default(),
            answer: Ok(0),
            told: Vec::new(),
            regranted: Vec::new(),
            taken: 0,
        })
        .boxed()
    }

    fn transitions(_: &Model) -> BoxedStrategy<Step> {
        let who = 0..WORKERS;
        let rarely = || prop::bool::weighted(0.25);
        let both = || (0..WORKERS, 0..ITEMS);
        prop_oneof![
            4 => who.clone().prop_map(Step::Register),
            1 => who.clone().prop_map(Step::Move),
            2 => who.clone().prop_map(Step::Kill),
            1 => who.clone().prop_map(Step::End),
            3 => prop::sample::select(vec![15, 300, 585, 601, 609, 616]).prop_map(Step::Advance),
            8 => (both(), rarely()).prop_map(|((who, item), yes)| Step::Claim(who, item, yes)),
            3 => (both(), rarely()).prop_map(|((who, item), yes)| Step::Release(who, item, yes)),
            2 => (both(), who).prop_map(|((who, item), to)| Step::Handoff(who, item, to)),
            2 => both().prop_map(|(who, item)| Step::Takeover(who, item)),
            3 => both().prop_map(|(who, item)| Step::Guard(who, item)),
        ]
        .boxed()
    }

    fn preconditions(model: &Model, step: &Step) -> bool {
        let worker = |who: usize| &model.workers[who];
        match *step {
            Step::Advance(_) | Step::Register(_) => true,
            Step::Move(who) => {
                let stands = model.stands(who, !worker(who).inside);
                worker(who).known && matches!(stands, Standing::Gone | Standing::Expired)
            }
            Step::Kill(who) => worker(who).known && worker(who).alive,
            Step::Handoff(who, _, to) => worker(who).alive && worker(to).known,
            _ => Model::caller(step).is_some_and(|who| worker(who).alive),
        }
    }

    fn apply(mut model: Model, step: &Step) -> Model {
        (model.answer, model.taken) = (Ok(0), 0);
        model.told.clear();
        model.regranted.clear();
        let registers = matches!(step, Step::Register(_) | Step::Move(_));
        if let Some(who) = Model::caller(step) {
            if model.workers[who].closed && !registers {
                model.answer = Err("nobody");
                return model;
            }
            model.workers[who].lease = model.now + LEASE;
        }
        match *step {
            Step::Advance(seconds) => model.now += seconds,
            Step::Kill(who) => model.workers[who].alive = false,
            Step::End(who) => model.close(who, End::Ended),
            Step::Register(who) => {
                if !model.workers[who].alive {
                    model.close(who, End::Death);
                    model.start_process(who);
                }
                model.workers[who].known = true;
                if model.workers[who].closed {
                    model.resume(who);
                }
            }
            Step::Move(who) => {
                model.close(who, End::Lease);
                model.start_process(who);
                model.workers[who].inside ^= true;
                model.resume(who);
            }
            Step::Claim(who, item, reopen) => model.answer = model.claim(who, item, reopen),
            Step::Release(who, item, done) => {
                model.answer = model.own(who, item);
                if model.answer.is_ok() {
                    model.end(who, item, if done { End::Done } else { End::Given });
                }
            }
            Step::Handoff(who, item, to) => model.answer = model.handoff(who, item, to),
            Step::Takeover(who, item) => model.answer = model.takeover(who, item),
            Step::Guard(who, item) => model.answer = model.own(who, item),
        }
        if let Some(who) = Model::caller(step) {
            model.told = std::mem::take(&mut model.untold[who]);
            model.told.sort_by_key(|told| told.0 != "lost");
        }
        model
    }
}

/// The service on a store in memory.
struct Real {
    /// The model before the next step.
    before: Model,
    outside: FakeWorld,
    within: FakeWorld,
    clock: FakeClock,
    store: RecordingStore<SqliteStore>,
    handles: [String; WORKERS],
}

/// What came back: the answer, and what the caller was told with it.
type Said = (Result<u64, &'static str>, Vec<Told>);

fn said<T>(reply: Reply<T>, epoch: impl FnOnce(T) -> u64) -> Said {
    let (answer, notices) = match reply {
        Ok(answer) => (Ok(epoch(answer.value)), answer.notices),
        Err(failure) => (Err(failure.error.kind()), failure.notices),
    };
    let told = notices.first.into_iter().map(|notice| {
        let epoch = notice.epoch.map_or(0, |epoch| epoch.0);
        (notice.kind.as_str(), notice.key.unwrap_or_default(), epoch)
    });
    (answer, told.collect())
}

fn claim_of(number: usize, reopen: bool) -> ClaimRequest {
    ClaimRequest {
        keys: vec![key(number)],
        pick: Pick::All,
        request: None,
        once: false,
        reopen,
        note: None,
        require_quiet: false,
    }
}

impl Real {
    fn world(&self, who: &Worker) -> FakeWorld {
        let world = if who.inside {
            &self.within
        } else {
            &self.outside
        };
        world.clone()
    }

    fn call<T>(
        &mut self,
        who: &Worker,
        act: impl FnOnce(&mut Service<'_>) -> Reply<T>,
    ) -> Reply<T> {
        let world = self.world(who);
        let (facts, policy) = (world.facts(&[who.pid]), Policy::default());
        let mut service = Service::new(&mut self.store, &world, &facts, policy);
        let reply = act(&mut service);
        let told = match &reply {
            Ok(answer) => &answer.notices,
            Err(failure) => &failure.notices,
        };
        service.delivered(told, Channel::Json).expect("it is kept");
        reply
    }

    fn register(&mut self, who: usize, model: &Model) -> Said {
        let worker = &model.workers[who];
        let request = RegisterRequest {
            subject: Subject::Given(self.world(worker).facts(&[worker.pid]).chain),
            agent: Some(AgentName::known("worker")),
            native_id: NativeId::parse(&format!("n{who}")).ok(),
            transcript: None,
            source: Source::Start,
            hosted: false,
            place: Place::default(),
            place_named: false,
            title: None,
            parent: None,
            reason: None,
            metadata: Default::default(),
        };
        let reply = self.call(worker, |service| service.register(&request));
        said(reply, |registered| {
            self.handles[who] = registered.session.handle;
            let held = registered.regranted.into_iter();
            let regranted: Vec<_> = held.map(|held| (held.key, held.epoch)).collect();
            assert_eq!(regranted, model.regranted, "granted again to {who}");
            assert_eq!(registered.taken.len(), model.taken, "taken from {who}");
            0
        })
    }

    fn carry_out(&mut self, step: &Step, model: &Model) -> Option<Said> {
        let me = Naming::default();
        let caller = &model.workers[Model::caller(step)?];
        let (epoch, note) = (None, None);
        Some(match *step {
            Step::Kill(_) | Step::Advance(_) => return None,
            Step::Register(who) | Step::Move(who) => self.register(who, model),
            Step::End(_) => said(self.call(caller, |service| service.end(&me)), |_| 0),
            Step::Claim(_, item, reopen) => {
                let request = claim_of(item, reopen);
                let reply = self.call(caller, |service| service.claim(&me, &request));
                said(reply, |grants| grants[0].epoch)
            }
            Step::Release(_, item, done) => {
                let key = key(item);
                let request = ReleaseRequest { key, epoch, done };
                let reply = self.call(caller, |service| service.release(&me, &request));
                said(reply, |claim| claim.epoch)
            }
            Step::Handoff(_, item, to) => {
                let (key, to) = (key(item), self.handles[to].clone());
                #[rustfmt::skip]
                let request = HandoffRequest { key, to, epoch, note };
                let reply = self.call(caller, |service| service.handoff(&me, &request));
                said(reply, |claim| claim.epoch)
            }
            Step::Takeover(_, item) => {
                let (key, from, reason) = (key(item), None, Reason::parse("test").ok());
                #[rustfmt::skip]
                let request = TakeoverRequest { key, from, epoch, note };
                let because = Naming { reason, ..me };
                let reply = self.call(caller, |service| service.takeover(&because, &request));
                said(reply, |claim| claim.epoch)
            }
            Step::Guard(_, item) => {
                let key = key(item);
                let request = GuardRequest { key, epoch };
                let reply = self.call(caller, |service| service.guard(&me, &request));
                said(reply, |claim| claim.epoch)
            }
        })
    }

    /// Every item has the holder and the epoch that the model says, and a grant event for every epoch.
    fn agrees(&mut self, model: &Model) {
        let mut tx = self.store.begin(Mode::Read).unwrap();
        for (number, key) in (0..ITEMS).map(key).enumerate() {
            let record = tx.claim(&key).unwrap();
            let epoch = record.as_ref().map_or(0, |record| record.epoch.0);
            assert_eq!(epoch, model.epochs[number], "epoch of {key}");
            let current = record.as_ref().and_then(|record| record.current());
            let holder = current.and_then(|hold| tx.session(hold.session).unwrap());
            let holder = holder.map(|session| session.handle.to_string());
            let expected = model.holder(number).map(|who| self.handles[who].clone());
            assert_eq!(holder, expected, "holder of {key}");
            let mut filter = EventFilter::default();
            (filter.key, filter.limit) = (Some(key.clone()), 10_000);
            let events = tx.events(&filter).unwrap();
            let grant = |kind: &str| ["claim.granted", "claim.taken"].contains(&kind);
            let (grants, ends): (Vec<_>, Vec<_>) =
                events.iter().partition(|event| grant(&event.kind));
            let granted: Vec<_> = grants.iter().filter_map(|event| event.epoch).collect();
            let every: Vec<_> = (1..=epoch).map(Epoch).collect();
            assert_eq!(granted, every, "grants of {key}");
            let over = epoch - u64::from(expected.is_some());
            assert_eq!(ends.len() as u64, over, "ends of {key}");
        }
    }

    /// Who lost an item without its own act was dead, or silent for lease and lock-delay.
    fn nobody_was_robbed(&self, step: &Step, model: &Model) {
        let (before, acted) = (&self.before, Model::caller(step));
        for item in 0..ITEMS {
            let taken = matches!(step, Step::Takeover(_, taken) if *taken == item);
            let holder = before.holder(item);
            if taken || holder == acted || holder == model.holder(item) {
                continue;
            }
            if let Some(worker) = holder.map(|holder| before.workers[holder]) {
                let silent = before.now - worker.lease >= LOCK_DELAY;
                assert!(!worker.alive || silent, "{item} was lost by {step:?}");
            }
        }
    }
}

impl StateMachineTest for Real {
    type SystemUnderTest = Real;
    type Reference = Model;

    fn init_test(model: &Model) -> Real {
        let (outside, clock) = (FakeWorld::new(), FakeClock::new());
        let mut within = outside.clone();
        within.observer.pid_ns = 2;
        Real {
            before: model.clone(),
            outside,
            within,
            store: RecordingStore::new(SqliteStore::in_memory(clock.source()).unwrap()),
            clock,
            handles: Default::default(),
        }
    }

    fn apply(mut real: Real, model: &Model, step: Step) -> Real {
        let passed = (model.now - real.before.now).unsigned_abs();
        real.clock.advance(Duration::from_secs(passed));
        if let Step::Kill(who) = step {
            real.outside.exit(model.workers[who].pid);
        }
        if let Some((answer, told)) = real.carry_out(&step, model) {
            assert_eq!(answer, model.answer, "{step:?}");
            assert_eq!(told, model.told, "told at {step:?}");
        }
        real.nobody_was_robbed(&step, model);
        real.agrees(model);
        real.before = model.clone();
        real
    }
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

prop_state_machine! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_the_rules_of_claims_hold(sequential 1..60 => Real);
}
