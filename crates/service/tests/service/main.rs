//! What the service promises where time, namespaces and boots matter, in a world that tests can turn.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod activity;
mod behalf;
mod burial;
mod claims;
mod globs;
mod identity;
mod kill;
mod locks;
mod looking;
mod missions;
mod paths;
mod registering;
mod resume;
mod several;
mod titles;
mod windows;
mod words;

use std::time::Duration;

use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::key::Key;
use tenure_core::notice::{Channel, Notice, NoticeKind};
use tenure_core::policy::Policy;
use tenure_core::process::{BootId, CallerFacts, RunState, Sighting};
use tenure_core::reason::Reason;
use tenure_core::registration::Source;
use tenure_core::session::{MetaKey, Workdir};
use tenure_core::store::{Mode, Store};
use tenure_core::time::{Span, Timestamp};
use tenure_service::answer::Class;
use tenure_service::error::Error;
use tenure_service::view::ClaimView;
use tenure_service::{
    ActFor, ClaimRequest, GuardRequest, MetaChange, Pick, RegisterRequest, Registered,
    ReleaseRequest, RenewRequest, Service, Subject, Turn, Wait, Waiting,
};
use tenure_store::SqliteStore;
use tenure_testkit::{FakeClock, FakeWorld, RecordingStore};

const LEASE: Duration = Duration::from_secs(600);
const LOCK_DELAY: Duration = Duration::from_secs(15);
const TICK: Duration = Duration::from_millis(1);
const DAY: i64 = 24 * 3600 * 1000;

/// A caller: the processes above it, in a namespace, with what stands in its environment.
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

    /// A caller in a pid namespace of its own.
    fn inside(&self, pids: &[u32]) -> Who {
        let mut who = self.here(pids);
        who.world.observer.pid_ns = 2;
        who
    }

    /// A caller of an agent's sandbox, which only a variable can name.
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
            source: Source::Start,
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

    /// One look of a waiter at its turn.
    fn look(&mut self, who: &Who, waiting: &mut Waiting, text: &str) -> Option<Wait> {
        let (request, me) = (asks(&[text]), ActFor::default());
        let turn = self
            .call(who, |service| service.claim_turn(&me, &request, waiting))
            .unwrap();
        match turn {
            Turn::Granted(_) => None,
            Turn::Wait(wait) => {
                waiting.ticket = Some(wait.ticket);
                Some(wait)
            }
        }
    }

    /// A process of `who` that waits.
    fn waiting(&self, pid: u32) -> Waiting {
        Waiting {
            process: self.world.process(pid),
            ticket: None,
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

#[test]
fn f_l11_no_jump_of_the_wall_clock_frees_or_holds_anything() {
    let (mut rig, _far, near) = unseen();
    let start = rig.clock.now().wall.0;
    for days in [1, -1, 400, -400] {
        rig.clock.set_wall(Timestamp(start + days * DAY));
        assert_eq!(kind(rig.claim(&near, "wp:1")), "held", "{days} days");
    }
    rig.clock.advance(LEASE);
    rig.clock.set_wall(Timestamp(start - 400 * DAY));
    assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect");
    rig.clock.set_wall(Timestamp(start + 400 * DAY));
    assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect");
    rig.clock.advance(LOCK_DELAY);
    rig.clock.set_wall(Timestamp(start - 400 * DAY));
    assert_eq!(rig.claim(&near, "wp:1").unwrap().epoch, 2);
}

#[test]
fn f_l14_a_night_of_suspend_does_not_count() {
    let (mut rig, far, near) = unseen();
    rig.clock.advance(LEASE / 2);
    let evening = rig.clock.now().wall.0;
    rig.clock.set_wall(Timestamp(evening + DAY / 2));
    assert_eq!(kind(rig.claim(&near, "wp:1")), "held");
    rig.clock.advance(LEASE / 2 - TICK);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "held");
    rig.clock.advance(TICK);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect");
    assert_eq!(rig.guard(&far, "wp:1").unwrap().epoch, 1);
}

#[test]
fn doubt_frees_nothing_before_lease_and_lock_delay_are_over() {
    let (mut rig, far, near) = unseen();
    rig.clock.advance(LEASE + LOCK_DELAY - TICK);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect");
    rig.clock.advance(TICK);
    let claim = rig.claim(&near, "wp:1").unwrap();
    assert_eq!(claim.epoch, 2);
    assert_eq!(claim.taken_from.unwrap().by, "lease");
    assert_eq!(kind(rig.guard(&far, "wp:1")), "lost");
    assert_eq!(rig.lost(), ["wp:1"]);
    assert_eq!(kind(rig.guard(&far, "wp:1")), "lost");
    assert_eq!(rig.lost(), [""; 0]);
}

#[test]
fn a_renewal_within_the_lock_delay_restores() {
    let (mut rig, far, near) = unseen();
    rig.clock.advance(LEASE + LOCK_DELAY - TICK);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect");
    assert_eq!(rig.guard(&far, "wp:1").unwrap().epoch, 1);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "held");
    rig.clock.advance(LEASE - TICK);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "held");
}

#[test]
fn a_call_on_behalf_of_a_session_does_not_renew_it() {
    let (mut rig, _far, near) = unseen();
    let handle = rig.claim(&near, "wp:1").unwrap_err();
    let holder = handle
        .claim()
        .unwrap()
        .holder
        .as_ref()
        .unwrap()
        .handle
        .clone();
    rig.clock.advance(LEASE);
    let act_for = ActFor {
        session: Some(holder),
        reason: Reason::parse("test").ok(),
    };
    let request = asks(&["wp:2"]);
    let claim = rig.call(&near, |service| service.claim(&act_for, &request));
    assert_eq!(kind(claim), "cannot_tell", "it is not seen to live");
    let change = MetaChange::Set(MetaKey::parse("team").unwrap(), "blue".into());
    rig.call(&near, |service| service.change_metadata(&act_for, &change))
        .unwrap();
    assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect");
}

#[test]
fn declared_silence_lasts_as_declared_and_no_renewal_shortens_it() {
    let (mut rig, far, near) = unseen();
    let hour = Duration::from_secs(3600);
    assert_eq!(kind(rig.renew(&far, Some(4 * hour + TICK))), "usage");
    rig.renew(&far, Some(2 * hour)).unwrap();
    rig.renew(&far, None).unwrap();
    rig.clock.advance(hour);
    rig.guard(&far, "wp:1").unwrap();
    rig.clock.advance(hour - TICK);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "held");
    rig.clock.advance(TICK);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect");
    rig.clock.advance(LOCK_DELAY);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "granted");
}

#[test]
fn f_l20_a_boot_id_of_a_containers_own_proves_no_death_and_its_lease_never_ends() {
    let mut rig = Rig::new();
    let private = |id: &str| BootId {
        id: id.to_owned(),
        private: true,
    };
    let (mut far, mut near) = (rig.here(&[20]), rig.here(&[30]));
    far.world.observer.boot = private("container");
    rig.clock.new_era("container", true);
    rig.register(&far, "far");
    rig.claim(&far, "wp:1").unwrap();
    for boot in [private("another"), rig.world.observer.boot.clone()] {
        near.world.observer.boot = boot.clone();
        rig.clock.new_era(&boot.id, boot.private);
        rig.register(&near, "near");
        rig.clock.advance(100 * LEASE);
        assert_eq!(kind(rig.claim(&near, "wp:1")), "held", "{boot:?}");
        near = rig.here(&[31]);
    }
}

#[test]
fn f_i23_from_a_sandbox_nothing_is_taken_until_a_call_outside_proves_the_death() {
    let mut rig = Rig::new();
    let (holder, agent) = (rig.here(&[20]), rig.here(&[30]));
    rig.register(&holder, "holder");
    rig.claim(&holder, "wp:1").unwrap();
    let token = rig.register(&agent, "agent").token.unwrap();
    let tool = rig.sandboxed(&token);
    let refused = rig.claim(&tool, "wp:1").unwrap_err();
    assert_eq!(refused.class(), Class::CannotTell);
    rig.clock.advance(2 * (LEASE + LOCK_DELAY));
    assert_eq!(kind(rig.claim(&tool, "wp:1")), "cannot_tell");
    rig.guard(&agent, "wp:1").unwrap_err();
    assert_eq!(kind(rig.claim(&tool, "wp:1")), "cannot_tell", "it lives");
    holder.dies();
    assert_eq!(kind(rig.claim(&tool, "wp:1")), "cannot_tell");
    let looks = |service: &mut Service<'_>| service.own_session(&ActFor::default());
    rig.call(&agent, looks).unwrap();
    let claim = rig.claim(&tool, "wp:1").unwrap();
    assert_eq!(claim.taken_from.unwrap().by, "death");
    assert_eq!(claim.holder.unwrap().native_id.as_deref(), Some("agent"));
}

/// The call outside answers before the death is recorded; where that fails, the next call does it.
#[test]
fn f_i23_a_death_that_could_not_be_recorded_is_recorded_by_the_next_call_outside() {
    let mut failed = 0;
    for transaction in 1..10 {
        let mut rig = Rig::new();
        let (holder, agent) = (rig.here(&[20]), rig.here(&[30]));
        rig.register(&holder, "holder");
        rig.claim(&holder, "wp:1").unwrap();
        let agents = rig.register(&agent, "agent");
        let tool = rig.sandboxed(&agents.token.unwrap());
        assert_eq!(kind(rig.claim(&tool, "wp:1")), "cannot_tell");
        holder.dies();
        rig.store.busy_at(transaction);
        let (facts, policy) = (agent.facts(), Policy::default());
        let mut service = Service::new(&mut rig.store, &agent.world, &facts, policy);
        let answered = service.own_session(&ActFor::default()).is_ok();
        let was_busy = !rig.store.take_worktree_changes();
        failed += usize::from(answered && was_busy);
        let looks = |service: &mut Service<'_>| service.own_session(&ActFor::default());
        rig.call(&agent, looks).unwrap();
        assert_eq!(kind(rig.claim(&tool, "wp:1")), "granted", "{transaction}");
        rig.call(&agent, looks).unwrap();
        let asker = SessionId::parse(&agents.session.id).unwrap();
        let mut tx = rig.store.begin(Mode::Read).unwrap();
        assert_eq!(tx.has_doubts(asker), Ok(false), "what is settled is over");
    }
    assert!(failed > 0, "no answer came before a death that failed");
}

#[test]
fn a_superseded_process_is_told_that_it_lost_and_comes_back_as_a_twin() {
    let (mut rig, far, near) = unseen();
    rig.clock.advance(LEASE + LOCK_DELAY);
    let next = rig.here(&[40]);
    let resumed = rig.register(&next, "far");
    assert_eq!(resumed.session.registered, Some("resumed"));
    assert_eq!(resumed.regranted[0].epoch, 2);
    for refused in [rig.guard(&far, "wp:1"), rig.claim(&far, "wp:2")] {
        let error = refused.unwrap_err();
        assert_eq!((error.kind(), error.class()), ("superseded", Class::Lost));
    }
    let twin = rig.register(&far, "far");
    assert_eq!(twin.session.registered, Some("twin"));
    assert_eq!(twin.session.twin_of, Some(resumed.session.id));
    assert_eq!(kind(rig.guard(&far, "wp:1")), "held");
    assert_eq!(kind(rig.claim(&near, "wp:1")), "held");
    rig.guard(&next, "wp:1").unwrap();
}

#[test]
fn a_process_that_ends_its_session_twice_goes_on_as_the_same_session() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    let born = rig.register(&ann, "n1");
    rig.claim(&ann, "wp:1").unwrap();
    for life in [2, 3, 4] {
        let ends = |service: &mut Service<'_>| service.end(&ActFor::default());
        rig.call(&ann, ends).unwrap();
        let again = rig.register(&ann, "n1");
        assert_eq!(again.session.registered, Some("resumed"), "life {life}");
        assert_eq!(again.session.id, born.session.id);
        assert_eq!(again.session.process.life, life);
        assert_eq!(again.regranted.len(), 1, "life {life}");
    }
}

#[test]
fn whoever_enters_a_dead_sessions_conversation_gets_what_it_held() {
    let mut rig = Rig::new();
    let [dead, heir, thief] = [20, 30, 40].map(|pid| rig.here(&[pid]));
    let former = rig.register(&dead, "old");
    for item in ["wp:left", "wp:taken", "wp:given"] {
        rig.claim(&dead, item).unwrap();
    }
    rig.release(&dead, "wp:given");
    rig.register(&heir, "mine");
    rig.claim(&heir, "wp:own").unwrap();
    rig.register(&thief, "thief");
    dead.dies();
    rig.claim(&thief, "wp:taken").unwrap();
    let entered = rig.register(&heir, "old");
    assert_eq!(entered.session.registered, Some("rotated"));
    let keys: Vec<_> = entered
        .regranted
        .iter()
        .map(|held| held.key.as_str())
        .collect();
    assert_eq!(keys, ["wp:left"]);
    assert_eq!(entered.regranted[0].epoch, 2);
    assert_eq!(entered.taken.len(), 1, "{:?}", entered.taken);
    rig.guard(&heir, "wp:left").unwrap();
    rig.guard(&heir, "wp:own").unwrap();
    let seen = rig.call(&heir, |service| service.show(&former.session.handle));
    assert_eq!(seen.unwrap().session.state, "ended");
    let late = rig.register(&rig.here(&[50]), "old");
    assert_eq!(late.session.registered, Some("twin"), "it has an owner");
}

#[test]
fn f_c21_cover_by_an_ancestor_ends_with_its_life() {
    let mut rig = Rig::new();
    let [top, parent, child] = [&[10][..], &[20, 10], &[30, 20, 10]].map(|pids| rig.here(pids));
    for (who, name) in [(&top, "top"), (&parent, "parent"), (&child, "child")] {
        rig.register(who, name);
    }
    rig.claim(&top, "wp:top").unwrap();
    rig.claim(&parent, "wp:1").unwrap();
    for item in ["wp:1", "wp:top"] {
        assert!(rig.guard(&child, item).unwrap().via.is_some(), "{item}");
    }
    parent.dies();
    let orphan = rig.here(&[30]);
    assert_eq!(kind(rig.guard(&orphan, "wp:1")), "free");
    let next = rig.here(&[40, 10]);
    assert_eq!(rig.register(&next, "parent").regranted.len(), 1);
    for item in ["wp:1", "wp:top"] {
        assert_eq!(kind(rig.guard(&orphan, item)), "held", "{item}");
    }
}

#[test]
fn f_c06_nothing_that_a_loser_does_renews_its_successor() {
    let (mut rig, far, _near) = unseen();
    let mut heir = rig.here(&[50]);
    heir.world.observer.pid_ns = 4;
    let third = rig.here(&[60]);
    rig.register(&heir, "heir");
    rig.register(&third, "third");
    rig.clock.advance(LEASE + LOCK_DELAY);
    assert_eq!(rig.claim(&heir, "wp:1").unwrap().epoch, 2);
    rig.clock.advance(LEASE - TICK);
    // The loser lives, and calls on.
    assert_eq!(kind(rig.guard(&far, "wp:1")), "lost");
    assert_eq!(kind(rig.claim(&far, "wp:1")), "held");
    rig.renew(&far, None).unwrap();
    assert_eq!(kind(rig.claim(&third, "wp:1")), "held");
    rig.clock.advance(TICK);
    assert_eq!(kind(rig.claim(&third, "wp:1")), "suspect");
}

/// However long the holder was silent before, its claim begins a lease of its own.
#[test]
fn f_c04_a_fresh_claim_does_not_inherit_an_old_heartbeat() {
    // A heartbeat of nine seconds ago is young enough for every other call.
    for silent in [Duration::from_secs(9), LEASE - TICK] {
        let mut rig = Rig::new();
        let (first, far, near) = (rig.inside(&[10]), rig.inside(&[20]), rig.here(&[30]));
        for (who, name) in [(&first, "first"), (&far, "far"), (&near, "near")] {
            rig.register(who, name);
        }
        rig.claim(&first, "wp:1").unwrap();
        rig.clock.advance(silent);
        rig.world.exit(10);
        assert_eq!(rig.claim(&far, "wp:1").unwrap().epoch, 2);
        for part in [LEASE / 2, LEASE / 2 - TICK] {
            rig.clock.advance(part);
            assert_eq!(kind(rig.claim(&near, "wp:1")), "held", "{silent:?}");
        }
        rig.clock.advance(TICK);
        assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect", "{silent:?}");
    }
}

/// Nothing is collected yet; what is dropped by age are notes about written files, of the writer alone.
#[test]
fn f_d06_age_and_number_drop_nothing_of_a_session_that_lives() {
    let mut rig = Rig::new();
    let old = rig.here(&[20]);
    let born = rig.register(&old, "old").session;
    rig.claim(&old, "wp:1").unwrap();
    let year = Duration::from_secs(365 * 24 * 3600);
    for pid in 1_000..1_600 {
        let brief = rig.here(&[pid]);
        rig.register(&brief, &format!("n{pid}"));
        rig.claim(&brief, &format!("wp:{pid}")).unwrap();
        rig.call(&brief, |service| service.end(&ActFor::default()))
            .unwrap();
        rig.clock.advance(year / 600);
    }
    let watcher = rig.here(&[30]);
    rig.register(&watcher, "watcher");
    let seen = rig.call(&watcher, |service| service.list(&Default::default()));
    let seen: Vec<_> = seen.unwrap().items.into_iter().map(|one| one.id).collect();
    assert!(seen.contains(&born.id), "{seen:?}");
    assert_eq!(kind(rig.claim(&watcher, "wp:1")), "held");
    let kept = rig.guard(&old, "wp:1").unwrap();
    assert_eq!(kept.epoch, 1);
}

#[test]
fn a_waiter_for_an_unseen_holder_looks_again_when_its_lease_and_lock_delay_end() {
    let (mut rig, _far, near) = unseen();
    rig.clock.advance(LEASE / 2);
    let mut waiting = rig.waiting(31);
    let wait = rig.look(&near, &mut waiting, "wp:1").unwrap();
    assert_eq!(wait.at_most, Some(LEASE / 2));
    rig.clock.advance(LEASE / 2);
    let wait = rig.look(&near, &mut waiting, "wp:1").unwrap();
    assert_eq!(wait.at_most, Some(LOCK_DELAY));
    rig.clock.advance(LOCK_DELAY);
    assert!(rig.look(&near, &mut waiting, "wp:1").is_none());
}

/// Three sessions here; the first holds wp:1, the others wait for it in this order.
fn line() -> (Rig, [Who; 3], [Waiting; 2]) {
    let mut rig = Rig::new();
    let all = [20, 30, 40].map(|pid| rig.here(&[pid]));
    for (who, name) in all.iter().zip(["a", "b", "c"]) {
        rig.register(who, name);
    }
    rig.claim(&all[0], "wp:1").unwrap();
    let mut waiting = [rig.waiting(31), rig.waiting(41)];
    for (who, waiting) in all[1..].iter().zip(&mut waiting) {
        assert!(rig.look(who, waiting, "wp:1").is_some());
    }
    (rig, all, waiting)
}

#[test]
fn a_waiter_that_does_not_act_within_a_second_is_passed_over_and_keeps_its_place() {
    let (mut rig, [ann, bob, eve], [mut slow, mut quick]) = line();
    rig.release(&ann, "wp:1");
    let second = Duration::from_secs(1);
    let wait = rig.look(&eve, &mut quick, "wp:1").unwrap();
    assert_eq!(wait.at_most, Some(second));
    rig.clock.advance(second - TICK);
    let wait = rig.look(&eve, &mut quick, "wp:1").unwrap();
    assert_eq!(wait.at_most, Some(TICK), "the turn began when it was noted");
    rig.clock.advance(TICK);
    assert!(rig.look(&eve, &mut quick, "wp:1").is_none());
    assert!(rig.look(&bob, &mut slow, "wp:1").is_some(), "it waits on");
    let mut late = rig.waiting(21);
    assert!(rig.look(&ann, &mut late, "wp:1").is_some());
    rig.release(&eve, "wp:1");
    assert!(rig.look(&ann, &mut late, "wp:1").is_some(), "not its turn");
    assert!(rig.look(&bob, &mut slow, "wp:1").is_none(), "its turn");
}

#[test]
fn f_c22_a_stopped_waiter_is_passed_over_without_a_wait() {
    let (mut rig, [ann, bob, eve], [mut stopped, mut next]) = line();
    rig.release(&ann, "wp:1");
    let (start, threads) = (stopped.process.start, 1);
    let see = |state| Sighting::Present {
        start,
        state,
        threads,
    };
    rig.world.see(31, see(RunState::Stopped));
    assert!(rig.look(&eve, &mut next, "wp:1").is_none());
    rig.world.see(31, see(RunState::Going));
    rig.release(&eve, "wp:1");
    assert!(rig.look(&ann, &mut rig.waiting(21), "wp:1").is_some());
    assert!(rig.look(&bob, &mut stopped, "wp:1").is_none());
}

#[test]
fn any_number_of_dead_holders_can_stand_before_the_item_that_is_taken() {
    let mut rig = Rig::new();
    let keys: Vec<String> = (0..250).map(|number| format!("wp:{number}")).collect();
    for (pid, text) in (1_000..).zip(&keys) {
        let dead = rig.here(&[pid]);
        rig.register(&dead, text);
        rig.claim(&dead, text).unwrap();
        dead.dies();
    }
    let heir = rig.here(&[20]);
    rig.register(&heir, "heir");
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    for pick in [Pick::Any, Pick::All] {
        let request = ClaimRequest {
            pick,
            ..asks(&keys)
        };
        let grants = rig.call(&heir, |service| service.claim(&ActFor::default(), &request));
        let count = if pick == Pick::Any { 1 } else { 250 };
        assert_eq!(grants.unwrap().len(), count);
    }
}

#[test]
fn any_number_of_waiters_can_be_shown() {
    let mut rig = Rig::new();
    let holder = rig.here(&[20]);
    rig.register(&holder, "holder");
    rig.claim(&holder, "wp:1").unwrap();
    for pid in 1_000..1_250 {
        let who = rig.here(&[pid]);
        rig.register(&who, &format!("n{pid}"));
        let mut waiting = rig.waiting(pid + 1_000);
        rig.look(&who, &mut waiting, "wp:1").unwrap();
    }
    let why = rig.call(&holder, |service| service.why(&key("wp:1")));
    assert_eq!(why.unwrap().why.waiters.len(), 250);
    let seen = rig.call(&holder, |service| service.list(&Default::default()));
    assert_eq!(seen.unwrap().items.len(), 251);
}
