//! What the service guarantees when time, namespaces and boots matter, in a world that tests control.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod activity;
mod on_behalf;

mod claim_lines;
mod claim_several;
mod claims;
mod conversations;
mod deaths;
mod deliveries;
mod globs;
mod growth;
mod identity;
mod imports;
mod jobs;
mod kill;
mod leases;
mod lives;
mod locks;
mod missions;
mod other_sessions;
mod outage;
mod paths;
mod places;
mod registering;
mod replies;
mod resume;
mod retention;
mod runs;
mod timeline;
mod titles;
mod usage;
mod windows;
mod words;

use std::time::Duration;

use tenure_core::id::{AgentName, NativeId};
use tenure_core::key::Key;
use tenure_core::notice::{Channel, Notice, NoticeKind};
use tenure_core::policy::Policy;
use tenure_core::process::CallerFacts;
use tenure_core::reason::Reason;
use tenure_core::registration::RegistrationSource;
use tenure_core::session::Workdir;
use tenure_core::time::Span;
use tenure_service::error::Error;
use tenure_service::view::ClaimView;
use tenure_service::{
    ActFor, CheckOutcome, ClaimRequest, GuardRequest, Pick, RegisterRequest, Registered,
    ReleaseRequest, RenewRequest, Service, Subject, Wait, WaitingCaller,
};
use tenure_store::SqliteStore;
use tenure_testkit::{FakeClock, FakeWorld, RecordingStore};

const LEASE: Duration = Duration::from_secs(600);
const LOCK_DELAY: Duration = Duration::from_secs(15);
const TICK: Duration = Duration::from_millis(1);

/// A caller: its ancestors, in a namespace, with its environment.
#[derive(Clone)]
struct Who {
    world: FakeWorld,
    pids: Vec<u32>,
    token: Option<String>,
}

impl Who {
    fn facts(&self) -> CallerFacts {
        let facts = self.world.facts(&self.pids);
        CallerFacts {
            session_variable: self.token.clone(),
            ..facts
        }
    }

    fn dies(&self) {
        self.world.exit(self.pids[0]);
    }
}

struct Rig {
    world: FakeWorld,
    clock: FakeClock,
    store: RecordingStore<SqliteStore>,
    told: Vec<Notice>,
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn asks(keys: &[&str]) -> ClaimRequest {
    ClaimRequest {
        keys: keys.iter().map(|text| key(text)).collect(),
        pick: Pick::Any,
        request: None,
        once: false,
        reopen: false,
        note: None,
        require_quiet: false,
    }
}

impl Rig {
    fn new() -> Rig {
        let clock = FakeClock::new();
        Rig {
            world: FakeWorld::new(),
            store: RecordingStore::new(SqliteStore::in_memory(clock.source()).unwrap()),
            clock,
            told: Vec::new(),
        }
    }

    /// A caller that sees this machine.
    fn here(&self, pids: &[u32]) -> Who {
        Who {
            world: self.world.clone(),
            pids: pids.to_vec(),
            token: None,
        }
    }

    /// A caller in its own pid namespace.
    fn inside(&self, pids: &[u32]) -> Who {
        let mut who = self.here(pids);
        who.world.observer.pid_ns = 2;
        who
    }

    /// A caller in an agent's sandbox, which only a variable can identify.
    fn sandboxed(&self, token: &str) -> Who {
        let mut who = self.here(&[9_999]);
        who.world.observer.pid_ns = 3;
        who.token = Some(token.to_owned());
        who
    }

    fn call<T>(
        &mut self,
        who: &Who,
        act: impl FnOnce(&mut Service<'_>) -> tenure_service::Reply<T>,
    ) -> Result<T, Error> {
        let facts = who.facts();
        let mut service = Service::new(&mut self.store, &who.world, &facts, Policy::default());
        let (told, outcome) = match act(&mut service) {
            Ok(answer) => (answer.notices.first, Ok(answer.value)),
            Err(failure) => (failure.notices.first, Err(failure.error)),
        };
        service.delivered(&told, Channel::Json).expect("it is kept");
        self.told = told;
        outcome
    }

    fn request(&self, who: &Who, native: &str) -> RegisterRequest {
        RegisterRequest {
            subject: Subject::Given(who.facts().chain),
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

    fn register(&mut self, who: &Who, native: &str) -> Registered {
        let request = self.request(who, native);
        self.call(who, |service| service.register(&request))
            .unwrap()
    }

    fn claim(&mut self, who: &Who, text: &str) -> Result<ClaimView, Error> {
        let request = asks(&[text]);
        let grants = self.call(who, |service| service.claim(&ActFor::default(), &request));
        grants.map(|mut grants| grants.remove(0))
    }

    fn release(&mut self, who: &Who, text: &str) {
        let request = ReleaseRequest {
            key: key(text),
            epoch: None,
            done: false,
        };
        self.call(who, |service| service.release(&ActFor::default(), &request))
            .unwrap();
    }

    fn guard(&mut self, who: &Who, text: &str) -> Result<ClaimView, Error> {
        let request = GuardRequest {
            key: key(text),
            epoch: None,
        };
        self.call(who, |service| service.guard(&ActFor::default(), &request))
    }

    fn renew(&mut self, who: &Who, length: Option<Duration>) -> Result<(), Error> {
        let act_for = ActFor {
            session: None,
            reason: Reason::parse("a long build").ok(),
        };
        let length = length.map(Span);
        let request = RenewRequest { length };
        self.call(who, |service| service.renew(&act_for, &request))
            .map(|_| ())
    }

    /// One check of a waiter for its turn.
    fn look(&mut self, who: &Who, waiting: &mut WaitingCaller, text: &str) -> Option<Wait> {
        let (request, me) = (asks(&[text]), ActFor::default());
        let turn = self
            .call(who, |service| service.claim_turn(&me, &request, waiting))
            .unwrap();
        match turn {
            CheckOutcome::Granted(_) => None,
            CheckOutcome::Wait(wait) => {
                waiting.ticket = Some(wait.ticket);
                Some(wait)
            }
        }
    }

    /// A process of `who` that waits.
    fn waiting(&self, pid: u32) -> WaitingCaller {
        WaitingCaller {
            process: self.world.process(pid),
            ticket: None,
            unconfirmed: false,
        }
    }

    fn lost(&self) -> Vec<&str> {
        let lost = self.told.iter().filter(|one| one.kind == NoticeKind::Lost);
        lost.filter_map(|notice| notice.key.as_deref()).collect()
    }
}

#[track_caller]
fn kind<T>(answer: Result<T, Error>) -> &'static str {
    match answer {
        Ok(_) => "granted",
        Err(error) => error.kind(),
    }
}

/// A session in another namespace that holds wp:1, and one here that wants it and cannot see the other.
fn unseen() -> (Rig, Who, Who) {
    let mut rig = Rig::new();
    let (far, near) = (rig.inside(&[20]), rig.here(&[30]));
    rig.register(&far, "far");
    rig.claim(&far, "wp:1").unwrap();
    rig.register(&near, "near");
    (rig, far, near)
}
