//! A worker: a process that is a session of the store and makes random calls.
//!
//! It calls the product in process, as the command line does, with a wall clock that jumps by hours
//! and a lease that is shorter than the time it will be stopped for. Neither may matter. Each call
//! is recorded before it is made, each answer after that.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use tenure_app::keeper;
use tenure_app::open::{Context, Purpose};
use tenure_app::place::place_here;
use tenure_app::watch::{CheckResult, repeatable, wait_for_turn};
use tenure_core::id::{AgentName, Epoch, Life, Malformed, NativeId, SessionId, SessionToken};
use tenure_core::ignore::Ignore;
use tenure_core::policy::Policy;
use tenure_core::process::CallerFacts;
use tenure_core::reason::Reason;
use tenure_core::registration::RegistrationSource;
use tenure_core::session::Workdir;
use tenure_core::store::{Store, StoreError};
use tenure_core::time::{Now, Timestamp};
use tenure_core::world::World;
use tenure_host::caller::SESSION_VARIABLE;
use tenure_host::machine::Machine;
use tenure_host::pidfd::ProcessWatches;
use tenure_host::state_dir::StateDir;
use tenure_host::watch::Watch;
use tenure_host::{caller, clock, process};
use tenure_service::{
    ActFor, CheckOutcome, ClaimRequest, Failure, Grant, RegisterRequest, ReleaseRequest, Reply,
    Service, Subject, WaitingCaller,
};
use tenure_store::sqlite::SqliteStore;

use super::dice::Dice;
use super::record::{
    CallAnswer, Claim, FAULTS_VARIABLE, Log, Op, RecordLine, RefusalRecord, Stay, monotonic,
};
use super::say::{
    ask, from_memory, key_of, nothing, refusal, refused, registration, said, said_grants, told, yes,
};
use super::weather;
use super::workspace::{self, WORKSPACE};

/// The name of the database in the state directory.
pub const DATABASE: &str = "tenure.db";
/// The state directory in a run's directory.
pub const STATE: &str = "state";
/// The directory in which workers publish their sessions.
pub const PEERS: &str = "peers";

/// The orders of a worker.
#[derive(Debug, Clone)]
pub struct Orders {
    pub dir: PathBuf,
    pub name: String,
    /// The file in which it publishes its session.
    pub slot: String,
    pub native: String,
    pub seed: u64,
    /// When it leaves, on the clock that all share.
    pub until: u64,
    /// Whether it uses only the keys of the line.
    pub line: bool,
    /// Whether it holds keys in silence.
    pub silent: bool,
    /// Whether it only waits for the key of the crowd, once.
    pub crowd: bool,
    /// The host that it runs on, if there are several: then settings name its store.
    pub host: Option<String>,
    /// The URL of the store, if it is on a server.
    pub store: Option<String>,
}

impl Orders {
    /// Whether the store may fail to answer through nobody's fault.
    pub fn may_be_away(&self) -> bool {
        self.store.is_some() || std::env::var_os(FAULTS_VARIABLE).is_some()
    }
}

/// The way to the store.
enum StoreAccess {
    Plain(Box<dyn Store>),
    /// As a command of a host has it, with a keeper.
    Host(Box<Context>),
}

pub struct ChaosWorker {
    pub(super) orders: Orders,
    pub(super) dice: Dice,
    store: StoreAccess,
    pub(super) machine: Machine,
    facts: CallerFacts,
    log: Log,
    calls: u64,
    sends: u64,
    token: Option<String>,
    pub(super) session: Option<String>,
    /// What it believes it holds.
    pub(super) holds: BTreeMap<String, u64>,
    pub(super) held: Vec<(String, u64)>,
    /// The keys of the repository that its host has; none if there is one host.
    pub(super) places: Vec<String>,
    /// Its last claim with a request id.
    pub(super) asked: Option<Claim>,
    /// Processes that it started and has not reaped.
    sent: Vec<Child>,
    /// How long its last call took.
    pub(super) took: Duration,
    /// Whether it was asked something whose outcome nobody knows; it asks no more.
    pub(super) lost: bool,
}

/// How long a worker waits before it asks a store again that was away.
const AWAY: Duration = Duration::from_millis(30);

/// Whether the store could not be used, and nothing was changed.
pub fn is_away(answer: &CallAnswer) -> bool {
    let away = ["store_unavailable", "store_busy", "store_full"];
    matches!(answer, CallAnswer::Refused(why) if away.contains(&why.kind.as_str()))
}

fn is_unknown(answer: &CallAnswer) -> bool {
    matches!(answer, CallAnswer::Refused(why) if why.kind == "store_outcome_unknown")
}

/// Acts as a process that a worker left behind.
pub fn stay(dir: &Path, name: &str, millis: u64) -> io::Result<()> {
    let mut log = Log::open(&dir.join(format!("{name}.stay")))?;
    log.write(&Stay::Begins { at: monotonic() })?;
    tenure_host::pause::sleep(Duration::from_millis(millis));
    log.write(&Stay::Ends { at: monotonic() })
}

/// Opens the store.
fn open(
    orders: &Orders,
    machine: &Machine,
    dice: &mut Dice,
) -> Result<StoreAccess, Box<dyn std::error::Error>> {
    let mut opened = || -> Result<StoreAccess, Box<dyn std::error::Error>> {
        Ok(match (&orders.store, &orders.host) {
            (None, _) => {
                let dir = orders.dir.join(STATE);
                StoreAccess::Plain(Box::new(open_file(&dir, machine, dice)?))
            }
            (Some(url), None) => StoreAccess::Plain(Box::new(weather::open(url)?)),
            (Some(_), Some(_)) => {
                let opened = tenure_app::open::open(Purpose::Write);
                StoreAccess::Host(Box::new(opened.map_err(|problem| problem.message)?))
            }
        })
    };
    // The server may be down, and the disk may fail.
    loop {
        match opened() {
            Ok(store) => return Ok(store),
            Err(error) if !orders.may_be_away() || monotonic() > orders.until => return Err(error),
            Err(_) => tenure_host::pause::sleep(AWAY),
        }
    }
}

/// Waits as a command of a host does, whose keeper looks for all waiters.
fn wait_as_command(
    context: &mut Context,
    act_for: &ActFor,
    request: &ClaimRequest,
    patience: Duration,
) -> CallAnswer {
    let mut watch = Watch::on(&context.service().watch(None));
    let request = &repeatable(context, request);
    let (mut why, mut doubt) = (None, None);
    let waited = wait_for_turn(
        context,
        &mut watch,
        patience,
        |service, waiting| {
            let turn = service.claim_turn(act_for, request, waiting);
            why = turn.as_ref().err().map(|failure| refusal(&failure.error));
            if why.as_ref().is_some_and(is_unknown) {
                doubt.clone_from(&why);
            }
            turn
        },
        |turn| match turn {
            CheckOutcome::Granted(grants) => CheckResult::Done(grants),
            CheckOutcome::Wait(wait) => CheckResult::Wait(wait),
        },
    );
    match waited {
        Ok(answer) => said_grants(&answer.value),
        // It may have been granted the key and have lost it since, which is two acts.
        Err(failed) => doubt.or(why).unwrap_or_else(|| refused(&failed.problem)),
    }
}

/// Opens the store in a file, with a clock whose wall time jumps.
fn open_file(dir: &Path, machine: &Machine, dice: &mut Dice) -> Result<SqliteStore, StoreError> {
    let boot = machine.observer().boot.clone();
    let jumps = RefCell::new(Dice::new(dice.below(u64::MAX), 1));
    let offset = Cell::new(0);
    let now = move || {
        if jumps.borrow_mut().percent(3) {
            let hours = i64::try_from(jumps.borrow_mut().below(96)).unwrap_or(0) - 48;
            offset.set(hours * 3_600_000);
        }
        let real = clock::now(&boot);
        Now {
            wall: Timestamp(real.wall.0 + offset.get()),
            ..real
        }
    };
    SqliteStore::open(&dir.join(DATABASE), Box::new(now))
}

impl ChaosWorker {
    /// Opens the store and the log.
    pub fn new(orders: Orders) -> Result<Self, Box<dyn std::error::Error>> {
        let state = match &orders.host {
            Some(host) => orders.dir.join(format!("host-{host}")),
            None => orders.dir.join(STATE),
        };
        let machine = Machine::new(StateDir::open(&state)?.host().clone())?;
        let stream = orders.name.bytes().fold(7, |sum: u64, byte| {
            sum.wrapping_mul(131).wrapping_add(u64::from(byte))
        });
        let mut dice = Dice::new(orders.seed, stream);
        let mut dir = orders.dir.clone();
        let mut places = Vec::new();
        if orders.host.is_some() {
            dir.push(WORKSPACE);
            std::env::set_current_dir(&dir)?;
            let keys = workspace::keys(&machine.observer().host);
            places = keys.map_err(|problem| problem.message)?;
        }
        let store = open(&orders, &machine, &mut dice)?;
        let dir = dir.to_string_lossy().into_owned();
        let facts = caller::facts(machine.observer().clone(), dir, None);
        let log = Log::open(&orders.dir.join(format!("{}.log", orders.name)))?;
        Ok(ChaosWorker {
            orders,
            dice,
            store,
            machine,
            facts,
            log,
            calls: 0,
            sends: 0,
            token: None,
            session: None,
            holds: BTreeMap::new(),
            held: Vec::new(),
            places,
            asked: None,
            sent: Vec::new(),
            took: Duration::ZERO,
            lost: false,
        })
    }

    /// Records that it makes no more calls.
    pub(super) fn leave(&mut self) -> io::Result<()> {
        self.log.write(&RecordLine::Leaves { at: monotonic() })
    }

    pub(super) fn service(&mut self) -> Service<'_> {
        let policy = Policy {
            lease: Duration::from_millis(200),
            lock_delay: Duration::from_millis(100),
            ..Policy::default()
        };
        match &mut self.store {
            StoreAccess::Plain(store) => {
                Service::new(store.as_mut(), &self.machine, &self.facts, policy)
            }
            StoreAccess::Host(context) => context.service(),
        }
    }

    /// Makes any call except a registration, as the command line does.
    pub(super) fn make(&mut self, act_for: &ActFor, op: &Op) -> CallAnswer {
        match (&mut self.store, op) {
            (_, Op::Recall { key, epoch }) => from_memory(key, *epoch),
            (StoreAccess::Host(context), Op::Release { key, epoch, done }) => {
                let request = ReleaseRequest {
                    key: key_of(key),
                    epoch: epoch.map(Epoch),
                    done: *done,
                };
                told(keeper::release(context, act_for, &request), yes)
            }
            (StoreAccess::Host(context), Op::End) => {
                told(keeper::end(context, act_for), |_| nothing())
            }
            _ => ask(&mut self.service(), act_for, op).0,
        }
    }

    /// Closes the store and opens it again.
    pub(super) fn reopen(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        self.store = open(&self.orders, &self.machine, &mut self.dice)?;
        Ok(())
    }

    /// Makes a call: records it, makes it, records the answer.
    pub(super) fn ask(
        &mut self,
        op: Op,
        act: impl FnOnce(&mut Self, &ActFor) -> CallAnswer,
    ) -> io::Result<CallAnswer> {
        self.calls += 1;
        let call = self.calls;
        let session = self.session.clone();
        let at = monotonic();
        self.log.write(&RecordLine::Asked {
            at,
            call,
            session,
            op,
        })?;
        let act_for = ActFor {
            session: None,
            reason: Reason::parse(&format!("{}#{call}", self.orders.name)).ok(),
        };
        let answer = act(self, &act_for);
        if is_unknown(&answer) {
            self.lost = true;
            // From here on it may be found dead.
            self.log.write(&RecordLine::Leaves { at: monotonic() })?;
            // What was sent may still arrive; nobody else is this process until then.
            if self.orders.store.is_some() {
                tenure_host::pause::sleep(weather::MAX_TIME * 2);
            }
            return Err(io::Error::other(format!(
                "call {call} has no known outcome"
            )));
        }
        let at = monotonic();
        self.log.write(&RecordLine::Answered {
            at,
            call,
            answer: answer.clone(),
        })?;
        if is_away(&answer) {
            tenure_host::pause::sleep(AWAY);
        }
        Ok(answer)
    }

    /// Calls one use case of the product.
    pub(super) fn call<T>(
        &mut self,
        case: impl FnOnce(&mut Service<'_>) -> Reply<T>,
    ) -> Result<T, Failure> {
        let began = Instant::now();
        let reply = case(&mut self.service());
        self.took = began.elapsed();
        reply.map(|answer| answer.value)
    }

    /// Becomes a session, and publishes it.
    pub(super) fn register(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        let native = self.orders.native.clone();
        let request = self.registration()?;
        let answer = loop {
            let op = Op::Register {
                native: native.clone(),
            };
            let answer = self.ask(op, |worker, _| {
                said(worker.service().register(&request), registration).0
            })?;
            if !is_away(&answer) || !self.orders.may_be_away() {
                break answer;
            }
            if monotonic() > self.orders.until {
                self.lost = true;
                return Err("the store was away until the end".into());
            }
        };
        let CallAnswer::Registered {
            session,
            regranted,
            life,
            ..
        } = answer
        else {
            return Err(format!("cannot register: {answer:?}").into());
        };
        self.holds.extend(regranted);
        let path = self.orders.dir.join(PEERS).join(&self.orders.slot);
        std::fs::write(path, &session)?;
        let id = SessionId::parse(&session)?;
        let life = Life(life);
        self.token = Some(SessionToken { id, life }.to_string());
        self.session = Some(session);
        Ok(())
    }

    /// Starts a process that carries its session's variable and continues for a while, whatever
    /// happens to this one.
    pub(super) fn send(&mut self, millis: u64) -> io::Result<()> {
        self.sends += 1;
        let name = format!("{}.{}", self.orders.name, self.sends);
        self.log.write(&RecordLine::Sends {
            at: monotonic(),
            name: name.clone(),
        })?;
        let child = std::process::Command::new(std::env::current_exe()?)
            .args(["stay", "--name", &name, "--millis", &millis.to_string()])
            .arg("--dir")
            .arg(&self.orders.dir)
            .env_clear()
            .envs(self.token.as_ref().map(|token| (SESSION_VARIABLE, token)))
            .stdin(std::process::Stdio::null())
            .spawn()?;
        self.sent.push(child);
        // Reaps those that have ended.
        self.sent
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        Ok(())
    }

    fn registration(&self) -> Result<RegisterRequest, Malformed> {
        let (chain, _) = process::chain_from(std::process::id(), self.machine.observer());
        Ok(RegisterRequest {
            subject: Subject::Given(chain),
            agent: Some(AgentName::parse("chaos")?),
            native_id: Some(NativeId::parse(&self.orders.native)?),
            transcript: None,
            source: RegistrationSource::Start,
            hosted: false,
            workdir: match self.orders.host {
                Some(_) => place_here(),
                None => Workdir {
                    dir: self.facts.dir.clone(),
                    ..Workdir::default()
                },
            },
            place_named: false,
            title: None,
            parent: None,
            reason: None,
            metadata: BTreeMap::new(),
        })
    }

    /// Waits in line for keys.
    pub(super) fn wait_in_line(
        &mut self,
        act_for: &ActFor,
        request: &ClaimRequest,
        patience: Duration,
    ) -> CallAnswer {
        let waited = match &mut self.store {
            StoreAccess::Host(context) => {
                return wait_as_command(context, act_for, request, patience);
            }
            StoreAccess::Plain(_) => self.wait_alone(act_for, request, patience),
        };
        match waited {
            Ok(Some(grants)) => said_grants(&grants),
            Ok(None) => CallAnswer::Refused(RefusalRecord {
                kind: "timed_out".into(),
                ..RefusalRecord::default()
            }),
            Err(failure) => refusal(&failure.error),
        }
    }

    /// Looks for itself; `None` on timeout.
    fn wait_alone(
        &mut self,
        act_for: &ActFor,
        request: &ClaimRequest,
        patience: Duration,
    ) -> Result<Option<Vec<Grant>>, Failure> {
        let end = Instant::now() + patience;
        let mut watch = Watch::on(&self.service().watch(None));
        let mut watched = None;
        let own = process::identify(std::process::id(), self.machine.observer());
        let mut waiting = WaitingCaller {
            process: own.expect("this process runs and is our own"),
            ticket: None,
            unconfirmed: false,
        };
        loop {
            let wait = match self.call(|service| service.claim_turn(act_for, request, &waiting))? {
                CheckOutcome::Granted(grants) => return Ok(Some(grants)),
                CheckOutcome::Wait(wait) => wait,
            };
            waiting.ticket = Some(wait.ticket);
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.call(|service| service.leave_line(wait.ticket))?;
                return Ok(None);
            }
            if watched.as_ref() != Some(&wait.about) {
                watch.turn_to(&self.service().watch(Some(&wait.about)));
                watched = Some(wait.about);
                continue;
            }
            let watches = ProcessWatches::on(&wait.watch);
            let limit = if watches.some_gone {
                Duration::ZERO
            } else {
                wait.at_most.unwrap_or(left).min(left)
            };
            watch
                .wait(&watches.open, Some(limit))
                .ignore("whatever woke it, it checks again");
        }
    }
}
