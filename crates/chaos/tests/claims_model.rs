//! The model of claims against the service in process: random workers claim, give back, hand on, take over,
//! die, end, resume and fall silent, and after every step the store must be as the model says.
//!
//! Workers live in two pid namespaces and cannot see those of the other: to them the others are unknown,
//! and only the lease counts. What the model does not know is told here: who lives, whose death was noticed,
//! and the notices. Two things are checked for themselves: who lost an item without an act had died or been
//! silent for long enough, and every grant is one event.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_chaos::audit::ends_as;
use tenure_chaos::history::{Call, Name};
use tenure_chaos::model::{
    Hold, HoldEnd, KeyStates, Liveness, Model, Space, Standing, Transition as Verdict,
};
use tenure_chaos::record::{CallAnswer, Claim, Op};
use tenure_chaos::say::{AnswerWithNotices, ask, registration, said};
use tenure_core::event::EventFilter;
use tenure_core::id::{AgentName, Epoch, NativeId};
use tenure_core::key::Key;
use tenure_core::notice::Channel;
use tenure_core::policy::Policy;
use tenure_core::reason::Reason;
use tenure_core::registration::RegistrationSource;
use tenure_core::session::Workdir;
use tenure_core::store::{Store, TxMode};
use tenure_service::{ActFor, RegisterRequest, Service, Subject};
use tenure_store::SqliteStore;
use tenure_testkit::{FakeClock, FakeWorld, RecordingStore};

const WORKERS: usize = 4;
const KEYS: [&str; 3] = ["wp:0", "wp:1", "wp:2"];
const LEASE: i64 = 600;
const LOCK_DELAY: i64 = 15;

#[derive(Debug, Clone)]
enum Step {
    /// The worker starts, registers again, or resumes in a new process where its last one is dead.
    Register(usize),
    /// The worker resumes in a process of the other namespace.
    Move(usize),
    Kill(usize),
    Advance(i64),
    Ask(usize, Op),
}

#[derive(Debug, Clone, Default)]
struct Worker {
    known: bool,
    closed: bool,
    alive: bool,
    pid: u32,
    inside: bool,
    lease: i64,
    /// The items that ended in this life without an act on them, but for takeovers.
    left: BTreeSet<usize>,
}

/// What a session must be told: by what kind of notice, about which item, with which epoch.
type Told = (&'static str, String, u64);

/// The session of a worker, by the name that the model has for it.
fn name(who: usize) -> Name {
    format!("worker-{who}").into()
}

fn who(session: &str) -> usize {
    session.strip_prefix("worker-").unwrap().parse().unwrap()
}

/// How all workers stand to one that asks, and their processes.
#[derive(Debug, Clone)]
struct Seen([(Standing, usize); WORKERS]);

impl Liveness for Seen {
    fn may_be(&self, hold: &Hold, standing: Standing, call: &Call) -> bool {
        self.may_find(&hold.session, standing, call)
    }

    fn may_have_ended(&self, _: &Hold, _: &Call) -> bool {
        false
    }

    fn may_find(&self, session: &str, standing: Standing, _: &Call) -> bool {
        self.0[who(session)].0 == standing
    }

    fn open_in(&self, session: &str, _: &Call) -> Vec<usize> {
        let (standing, life) = self.0[who(session)];
        let open = Some(life).filter(|_| standing == Standing::Alive);
        open.into_iter().collect()
    }
}

/// What an answer is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judge {
    Model,
    /// The caller's session has ended: it is nobody.
    NoSession,
    /// A process becomes a session, or is one: no item changes.
    Nothing,
}

/// What a step asks, and how things stood then.
#[derive(Debug, Clone)]
struct Asked {
    call: Call,
    seen: Seen,
    items: KeyStates,
    judge: Judge,
}

#[derive(Debug, Clone)]
struct World {
    now: i64,
    pids: u32,
    workers: [Worker; WORKERS],
    space: Rc<Space>,
    items: KeyStates,
    untold: [Vec<Told>; WORKERS],
    asked: Option<Asked>,
    told: Vec<Told>,
    /// How many items others took from a worker that came back.
    taken: usize,
}

impl World {
    fn holder(&self, item: usize) -> Option<usize> {
        self.items[item].open().map(|hold| who(&hold.session))
    }

    /// How a worker looks to anybody inside, or outside.
    fn stands(&self, who: usize, inside: bool) -> Standing {
        let (worker, past) = (&self.workers[who], self.now - self.workers[who].lease);
        let is_seen = worker.inside == inside;
        if worker.closed || (is_seen && !worker.alive) {
            Standing::Dead
        } else if is_seen {
            Standing::Alive
        } else if past < 0 {
            Standing::Unknown
        } else if past < LOCK_DELAY {
            Standing::Suspect
        } else {
            Standing::Expired
        }
    }

    fn seen_by(&self, who: usize) -> Seen {
        let inside = self.workers[who].inside;
        let life = |who: usize| self.workers[who].pid as usize;
        Seen(std::array::from_fn(|who| {
            (self.stands(who, inside), life(who))
        }))
    }

    /// A session's end: what it held ends with it.
    fn close(&mut self, who: usize, by: HoldEnd) {
        self.workers[who].closed = true;
        for (place, item) in self.items.iter_mut().enumerate() {
            if item.is_of(&name(who)) {
                item.end(by);
                self.workers[who].left.insert(place);
            }
        }
    }

    /// Puts a worker into a process, of the other namespace if it moves.
    fn start(&mut self, who: usize, moves: bool) {
        if moves || !self.workers[who].alive {
            self.close(who, HoldEnd::Death);
            self.pids += 1;
            let worker = &mut self.workers[who];
            (worker.pid, worker.alive) = (self.pids, true);
            worker.inside ^= moves;
        }
    }

    /// Whom a call finds dead, and therefore buries with all that it holds.
    fn found_dead(&self, call: &Call, seen: &Seen) -> Option<usize> {
        let me = call.session.as_ref().unwrap();
        let item = |key: &str| &self.items[self.space.place(key).unwrap()];
        let holder = |key: &str| Some(who(&item(key).open_to_other(me)?.session));
        let found = match &call.op {
            Op::Claim(Claim { keys, request, .. }) => {
                let lost = item(&keys[0]).lost_by(me).and_then(Option::as_deref);
                holder(&keys[0]).filter(|_| lost.is_none() || lost != request.as_deref())
            }
            Op::Handoff { key, to, epoch } if item(key).is_of(me) => {
                let right = epoch.is_none_or(|epoch| epoch == item(key).epoch);
                right.then(|| who(to))
            }
            Op::Release { key, .. } | Op::Guard { key, .. } | Op::Handoff { key, .. } => {
                holder(key).filter(|_| item(key).lost_by(me).is_none())
            }
            _ => None,
        };
        found.filter(|found| seen.0[*found].0 == Standing::Dead)
    }

    fn ask(&mut self, by: usize, op: Op) {
        let worker = &self.workers[by];
        let registers = matches!(op, Op::Register { .. });
        let judge = match registers {
            true if !(worker.closed && worker.known) => Judge::Nothing,
            false if worker.closed => Judge::NoSession,
            _ => Judge::Model,
        };
        let call = Call {
            life: worker.pid as usize,
            tag: String::new(),
            session: Some(name(by)),
            op,
            asked: 0,
            until: 0,
            answer: None,
        };
        let seen = self.seen_by(by);
        if let Some(dead) = self
            .found_dead(&call, &seen)
            .filter(|_| judge == Judge::Model)
        {
            self.close(dead, HoldEnd::Death);
        }
        let items = self.items.clone();
        let asked = Asked {
            call,
            seen,
            items,
            judge,
        };
        if judge == Judge::Model {
            self.change(by, &asked);
        }
        if judge != Judge::NoSession {
            let worker = &mut self.workers[by];
            worker.lease = self.now + LEASE;
            (worker.known, worker.closed) = (true, worker.closed && !registers);
            self.told = std::mem::take(&mut self.untold[by]);
            self.told.sort_by_key(|told| told.0 != "lost");
        }
        self.asked = Some(asked);
    }

    fn change(&mut self, by: usize, asked: &Asked) {
        let (space, liveness) = (&*self.space, &asked.seen);
        let after = Model { space, liveness }.step(&asked.items, &asked.call);
        if asked.call.op == Op::End {
            self.close(by, HoldEnd::End);
        }
        self.items = match after {
            Verdict::To(after) if after.len() == 1 => after[0].clone(),
            Verdict::To(after) => panic!("the model is in doubt: {after:?}"),
            Verdict::No | Verdict::Same => asked.items.clone(),
        };
        self.tell(asked);
        if matches!(asked.call.op, Op::Register { .. }) {
            self.tell_resumed(by);
        }
    }

    /// What a grant means for the one who had the item, and for one who gets it without asking.
    fn tell(&mut self, asked: &Asked) {
        for (place, before) in asked.items.iter().enumerate() {
            let item = &self.items[place];
            if item.epoch == before.epoch {
                continue;
            }
            let (to, epoch) = (who(&item.newest.as_ref().unwrap().session), item.epoch);
            self.workers[to].left.remove(&place);
            let former = before.open_to_other(&name(to));
            let (whom, kind) = match (&asked.call.op, former.map(|hold| who(&hold.session))) {
                (Op::Handoff { .. }, _) => (to, "handed"),
                (Op::Takeover { .. }, Some(former)) => (former, "lost"),
                (_, Some(silent)) => {
                    self.workers[silent].left.insert(place);
                    (silent, "lost")
                }
                _ => continue,
            };
            self.untold[whom].push((kind, KEYS[place].to_owned(), epoch));
        }
    }

    /// A session that came back learns what others took since.
    fn tell_resumed(&mut self, who: usize) {
        for place in std::mem::take(&mut self.workers[who].left) {
            self.taken += 1;
            let known = |told: &Told| told.0 == "lost" && told.1 == KEYS[place];
            if !self.untold[who].iter().any(known) {
                let lost = ("lost", KEYS[place].to_owned(), self.items[place].epoch);
                self.untold[who].push(lost);
            }
        }
    }
}

fn any_key() -> impl Strategy<Value = String> {
    prop::sample::select(&KEYS[..]).prop_map(str::to_owned)
}

fn any_claim() -> impl Strategy<Value = Op> {
    let rarely = || prop::bool::weighted(0.25);
    let request = prop::option::weighted(0.25, prop::sample::select(&["r0", "r1"][..]));
    (any_key(), rarely(), rarely(), request).prop_map(|(key, reopen, once, request)| {
        Op::Claim(Claim {
            keys: vec![key],
            reopen,
            once,
            request: request.map(str::to_owned),
            ..Claim::default()
        })
    })
}

impl ReferenceStateMachine for World {
    type State = World;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<World> {
        let mut workers: [Worker; WORKERS] = Default::default();
        (workers[1].inside, workers[3].inside) = (true, true);
        let space = Rc::new(Space::new(&KEYS));
        Just(World {
            now: 0,
            pids: 100,
            workers,
            items: space.fresh(),
            space,
            untold: Default::default(),
            asked: None,
            told: Vec::new(),
            taken: 0,
        })
        .boxed()
    }

    fn transitions(_: &World) -> BoxedStrategy<Step> {
        let one = || 0..WORKERS;
        let epoch = || prop::option::weighted(0.15, 1..8_u64);
        let about = || (any_key(), epoch());
        let done = prop::bool::weighted(0.25);
        let op = prop_oneof![
            1 => Just(Op::End),
            8 => any_claim(),
            3 => (about(), done).prop_map(|((key, epoch), done)| Op::Release { key, epoch, done }),
            2 => (about(), one()).prop_map(|((key, epoch), to)| {
                let to = name(to).to_string();
                Op::Handoff { key, to, epoch }
            }),
            2 => about().prop_map(|(key, epoch)| Op::Takeover { key, from: None, epoch }),
            3 => about().prop_map(|(key, epoch)| Op::Guard { key, epoch }),
        ];
        prop_oneof![
            4 => one().prop_map(Step::Register),
            1 => one().prop_map(Step::Move),
            2 => one().prop_map(Step::Kill),
            3 => prop::sample::select(vec![15, 300, 585, 601, 609, 616]).prop_map(Step::Advance),
            19 => (one(), op).prop_map(|(who, op)| Step::Ask(who, op)),
        ]
        .boxed()
    }

    fn preconditions(world: &World, step: &Step) -> bool {
        let worker = |who: usize| &world.workers[who];
        match step {
            Step::Advance(_) | Step::Register(_) => true,
            Step::Move(who) => {
                let stands = world.stands(*who, !worker(*who).inside);
                worker(*who).known && matches!(stands, Standing::Dead | Standing::Expired)
            }
            Step::Kill(who) => worker(*who).known && worker(*who).alive,
            Step::Ask(by, Op::Handoff { to, .. }) => worker(*by).alive && worker(who(to)).known,
            Step::Ask(by, _) => worker(*by).alive,
        }
    }

    fn apply(mut world: World, step: &Step) -> World {
        (world.asked, world.taken) = (None, 0);
        world.told.clear();
        match step {
            Step::Advance(seconds) => world.now += seconds,
            Step::Kill(who) => world.workers[*who].alive = false,
            Step::Register(who) | Step::Move(who) => {
                let native = format!("n{who}");
                world.start(*who, matches!(step, Step::Move(_)));
                world.ask(*who, Op::Register { native });
            }
            Step::Ask(who, op) => world.ask(*who, op.clone()),
        }
        world
    }
}

/// The service on a store in memory.
struct Real {
    /// The world before the next step.
    before: World,
    outside: FakeWorld,
    within: FakeWorld,
    clock: FakeClock,
    store: RecordingStore<SqliteStore>,
    /// The sessions of the workers.
    ids: [String; WORKERS],
}

impl Real {
    /// With the product's names of sessions for the model's, or the other way round.
    fn renamed<T: Serialize + DeserializeOwned>(&self, value: &T, to_model: bool) -> T {
        let mut text = serde_json::to_string(value).unwrap();
        for (who, id) in self.ids.iter().enumerate().filter(|(_, id)| !id.is_empty()) {
            let (id, name) = (format!("{id:?}"), format!("{:?}", name(who)));
            text = if to_model {
                text.replace(&id, &name)
            } else {
                text.replace(&name, &id)
            };
        }
        serde_json::from_str(&text).unwrap()
    }

    fn ask(&mut self, call: &Call, world: &World) -> (CallAnswer, Vec<Told>) {
        let by = who(call.session.as_ref().unwrap());
        let worker = &world.workers[by];
        let machine = if worker.inside {
            self.within.clone()
        } else {
            self.outside.clone()
        };
        let facts = machine.facts(&[worker.pid]);
        let op = self.renamed(&call.op, false);
        let mut service = Service::new(&mut self.store, &machine, &facts, Policy::default());
        let (answer, notices): AnswerWithNotices = if let Op::Register { native } = &op {
            let reply = service.register(&register(Subject::Given(facts.chain.clone()), native));
            said(reply, |registered| {
                assert_eq!(registered.taken.len(), world.taken, "taken from {by}");
                self.ids[by].clone_from(&registered.session.id);
                registration(registered)
            })
        } else {
            let reason = Reason::parse("test").ok();
            #[rustfmt::skip]
            let act_for = ActFor { reason, ..ActFor::default() };
            ask(&mut service, &act_for, &op)
        };
        let kept = service.delivered(&notices, Channel::Json);
        kept.expect("it is kept");
        let told = notices.first.into_iter().map(|notice| {
            let epoch = notice.epoch.map_or(0, |epoch| epoch.0);
            (notice.kind.as_str(), notice.key.unwrap_or_default(), epoch)
        });
        (self.renamed(&answer, true), told.collect())
    }

    /// Every item has the holder, the epoch and the end that the model says, and a grant event for every epoch.
    fn agrees(&mut self, world: &World) {
        let mut tx = self.store.begin(TxMode::Read).unwrap();
        for (key, item) in KEYS.iter().zip(&world.items) {
            let key = Key::parse(key).unwrap();
            let record = tx.claim(&key).unwrap();
            let epoch = record.as_ref().map_or(0, |record| record.epoch.0);
            assert_eq!(epoch, item.epoch, "epoch of {key}");
            let newest = record.and_then(|record| record.newest);
            let had = newest.as_ref().map(|hold| hold.session.to_string());
            let hold = item.newest.as_ref();
            let expected = hold.map(|hold| self.ids[who(&hold.session)].clone());
            assert_eq!(had, expected, "who had {key} last");
            let ended = newest
                .and_then(|hold| hold.ended)
                .map(|end| end.by.as_str());
            let end = hold.and_then(|hold| hold.end);
            assert_eq!(ended.is_none(), end.is_none(), "whether {key} is held");
            assert!(ends_as(end, ended), "{key} ended by {ended:?}, not {end:?}");
            let mut filter = EventFilter::default();
            (filter.key, filter.limit) = (Some(key.clone()), 10_000);
            let mut events = tx.events(&filter).unwrap();
            // It stands beside a grant, and counts how often the dead were replaced.
            events.retain(|event| event.kind != "claim.replaced");
            let grant = |kind: &str| ["claim.granted", "claim.taken_over"].contains(&kind);
            let (grants, ends): (Vec<_>, Vec<_>) =
                events.iter().partition(|event| grant(&event.kind));
            let granted: Vec<_> = grants.iter().filter_map(|event| event.epoch).collect();
            let every: Vec<_> = (1..=epoch).map(Epoch).collect();
            assert_eq!(granted, every, "grants of {key}");
            let over = epoch - u64::from(item.open().is_some());
            assert_eq!(ends.len() as u64, over, "ends of {key}");
        }
    }

    /// Who lost an item without its own act was dead, or silent for lease and lock-delay.
    fn nobody_was_robbed(&self, step: &Step, world: &World) {
        let before = &self.before;
        let acted = match step {
            Step::Register(who) | Step::Move(who) | Step::Ask(who, _) => Some(*who),
            Step::Kill(_) | Step::Advance(_) => None,
        };
        for (item, name) in KEYS.iter().enumerate() {
            let taken = matches!(step, Step::Ask(_, Op::Takeover { key, .. }) if key == name);
            let holder = before.holder(item);
            if taken || holder == acted || holder == world.holder(item) {
                continue;
            }
            if let Some(worker) = holder.map(|holder| &before.workers[holder]) {
                let silent = before.now - worker.lease >= LOCK_DELAY;
                assert!(!worker.alive || silent, "{name} was lost by {step:?}");
            }
        }
    }
}

fn register(subject: Subject, native: &str) -> RegisterRequest {
    RegisterRequest {
        subject,
        agent: Some(AgentName::known("worker")),
        native_id: NativeId::parse(native).ok(),
        transcript: None,
        source: RegistrationSource::Start,
        hosted: false,
        workdir: Workdir::default(),
        place_named: false,
        title: None,
        parent: None,
        reason: None,
        metadata: Default::default(),
    }
}

/// Whether an answer is right, and leads to the items that were expected.
fn judge(asked: &Asked, answer: CallAnswer, world: &World) {
    let resumes = matches!(&answer, CallAnswer::Registered { word, .. } if word == "resumed");
    let call = Call {
        answer: Some(answer),
        ..asked.call.clone()
    };
    let (space, liveness) = (&*world.space, &asked.seen);
    let right = match (asked.judge, call.answer.as_ref().unwrap()) {
        (Judge::NoSession, CallAnswer::Refused(refusal)) => refusal.kind == "no_session",
        (Judge::Nothing, CallAnswer::Registered { regranted, .. }) => {
            !resumes && regranted.is_empty()
        }
        (Judge::Model, _) => {
            let registers = matches!(call.op, Op::Register { .. });
            let after = match (Model { space, liveness }).step(&asked.items, &call) {
                Verdict::No => Vec::new(),
                Verdict::Same => vec![asked.items.clone()],
                Verdict::To(after) => after,
            };
            after == [world.items.clone()] && registers == resumes
        }
        _ => false,
    };
    assert!(right, "a wrong answer: {call:?} after {:?}", asked.items);
}

impl StateMachineTest for Real {
    type SystemUnderTest = Real;
    type Reference = World;

    fn init_test(world: &World) -> Real {
        let (outside, clock) = (FakeWorld::new(), FakeClock::new());
        let mut within = outside.clone();
        within.observer.pid_ns = 2;
        Real {
            before: world.clone(),
            outside,
            within,
            store: RecordingStore::new(SqliteStore::in_memory(clock.source()).unwrap()),
            clock,
            ids: Default::default(),
        }
    }

    fn apply(mut real: Real, world: &World, step: Step) -> Real {
        let passed = (world.now - real.before.now).unsigned_abs();
        real.clock.advance(Duration::from_secs(passed));
        if let Step::Kill(who) = step {
            real.outside.exit(world.workers[who].pid);
        }
        if let Some(asked) = &world.asked {
            let (answer, told) = real.ask(&asked.call, world);
            judge(asked, answer, world);
            assert_eq!(told, world.told, "told at {step:?}");
        }
        real.nobody_was_robbed(&step, world);
        real.agrees(world);
        real.before = world.clone();
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
