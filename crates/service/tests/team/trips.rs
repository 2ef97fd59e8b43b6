//! How often each use case waits for the server, and how much it reads while others wait for it.

use tenure_core::agent_event::Happening;
use tenure_core::id::KeeperId;
use tenure_core::reason::Reason;
use tenure_core::session::Doing;
use tenure_core::store::ClaimFilter;
use tenure_core::time::Timestamp;
use tenure_postgres::Traffic;
use tenure_service::{
    AgentEvent, GuardRequest, HandoffRequest, Pick, ReleaseRequest, RenewKeeper, RenewRequest,
    TakeoverRequest,
};
use tenure_testkit::FakeWorld;
use tenure_testkit::postgres::PostgresServer;

use super::{Desk, asks, because, bytes, key, made, me, native, worker};

/// What one statement of a transaction with locks may return: more of it could stay unread in a stopped client, which
/// then keeps its locks.
const MAX_UNDER_LOCK: usize = 64 * 1024;

struct Table {
    rows: Vec<(&'static str, u64, u64)>,
    largest: usize,
}

impl Table {
    /// Counts the round trips of one use case, which may have at most so many.
    fn count<T>(
        &mut self,
        desk: &mut Desk,
        what: &'static str,
        most: u64,
        act: impl FnOnce(&mut Desk) -> T,
    ) -> T {
        let before = desk.store.traffic();
        let answer = act(desk);
        let Traffic {
            round_trips,
            largest_under_lock,
            ..
        } = desk.store.traffic();
        self.rows
            .push((what, round_trips - before.round_trips, most));
        self.largest = self.largest.max(largest_under_lock);
        answer
    }

    #[track_caller]
    fn check(&self) {
        println!("{:<44} {:>12} {:>8}", "use case", "round trips", "at most");
        for (what, trips, most) in &self.rows {
            println!("{what:<44} {trips:>12} {most:>8}");
        }
        println!("largest answer under a lock: {} bytes", self.largest);
        let over = self.rows.iter().filter(|(_, trips, most)| trips > most);
        let over: Vec<_> = over.map(|(what, ..)| what).collect();
        assert!(over.is_empty(), "more round trips than allowed: {over:?}");
        assert!(self.largest <= MAX_UNDER_LOCK, "{} bytes", self.largest);
    }
}

fn release(text: &str, done: bool) -> ReleaseRequest {
    ReleaseRequest {
        key: key(text),
        epoch: None,
        done,
    }
}

fn heartbeat(desk: &Desk, native_id: &str) -> AgentEvent {
    AgentEvent {
        agent: Some(worker()),
        process: desk.chain().into_iter().next(),
        program: None,
        native_id: Some(native(native_id)),
        what: Happening::Other,
        subagent: None,
        terminal: tenure_core::end::Terminal::Open,
        doing: Some(Doing::Busy),
        asks: None,
        why: None,
        until: None,
        asks_model: false,
        attended: false,
        woken_by: Vec::new(),
        dir: "/work".into(),
        transcript: None,
        tool: None,
        prompt: None,
        title: None,
        reaches_model: true,
        speaks: true,
        wants_brief: false,
        briefs_late: false,
        wants_recap: false,
        address: None,
    }
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn every_use_case_waits_for_the_server_a_few_times_only() {
    let server = PostgresServer::shared();
    let url = made(&server);
    let world = FakeWorld::new();
    // A caller is usually a few processes below its agent.
    let mut ann = Desk::new(&url, &world, &[23, 22, 21, 20]);
    let mut bob = Desk::new(&url, &world, &[30]);
    let mut table = Table {
        rows: Vec::new(),
        largest: 0,
    };
    let t = &mut table;
    bob.register("b").unwrap();
    ann.at(&[20]);
    t.count(&mut ann, "register", 14, |ann| ann.register("a").unwrap());
    ann.at(&[23, 22, 21, 20]);
    t.count(&mut ann, "claim of a free key", 5, |ann| {
        ann.claim("wp:1").unwrap()
    });
    t.count(&mut ann, "claim again", 5, |ann| ann.claim("wp:1").unwrap());
    t.count(&mut bob, "claim of a held key", 5, |bob| {
        bob.claim("wp:1").unwrap_err()
    });
    t.count(&mut ann, "claim of an issue", 9, |ann| {
        ann.claim("issue:acme/web#6").unwrap()
    });
    t.count(&mut ann, "claim of a path", 13, |ann| {
        ann.claim("path:acme/web:src/**").unwrap()
    });
    t.count(&mut ann, "claim --all of 3", 5, |ann| {
        let all = asks(["wp:2", "wp:3", "wp:4"], Pick::All);
        ann.call(|service| service.claim(&me(), &all)).unwrap()
    });
    t.count(&mut ann, "guard", 4, |ann| {
        let request = GuardRequest {
            key: key("wp:1"),
            epoch: None,
        };
        ann.call(|service| service.guard(&me(), &request)).unwrap()
    });
    t.count(&mut ann, "release", 6, |ann| {
        ann.call(|service| service.release(&me(), &release("wp:2", false)))
            .unwrap()
    });
    t.count(&mut ann, "done", 6, |ann| {
        ann.call(|service| service.release(&me(), &release("wp:3", true)))
            .unwrap()
    });
    // One of them asks until when the loser may still write, another whether it lives: the dead may have left processes.
    t.count(&mut bob, "takeover", 13, |bob| {
        let request = TakeoverRequest {
            key: key("wp:1"),
            from: None,
            epoch: None,
            note: None,
            reason: Reason::parse("it is stuck").expect("a reason"),
        };
        let why = because("it is stuck");
        bob.call(|service| service.takeover(&why, &request))
            .unwrap()
    });
    let anns = ann.call(|service| service.own_session(&me())).unwrap();
    t.count(&mut bob, "handoff", 10, |bob| {
        let request = HandoffRequest {
            key: key("wp:1"),
            to: anns.session.handle,
            epoch: None,
            note: None,
        };
        bob.call(|service| service.handoff(&me(), &request))
            .unwrap()
    });
    t.count(&mut ann, "renew", 11, |ann| {
        let request = RenewRequest { length: None };
        ann.call(|service| service.renew(&me(), &request)).unwrap()
    });
    let event = heartbeat(&bob, "b");
    t.count(&mut bob, "heartbeat of a hook", 6, |bob| {
        bob.call(|service| service.handle_event(&event)).unwrap()
    });
    // Three of them look for notices about a twin that leaves.
    t.count(&mut ann, "end", 13, |ann| {
        ann.call(|service| service.end(&me())).unwrap()
    });
    table.check();
}

/// One key of 10,000 is free: all must be looked at.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn any_of_10_000_keys_is_found_in_a_few_round_trips() {
    let server = PostgresServer::shared();
    let url = made(&server);
    let world = FakeWorld::new();
    let (mut ann, mut bob) = (
        Desk::new(&url, &world, &[20]),
        Desk::new(&url, &world, &[30]),
    );
    for (desk, name) in [(&mut ann, "a"), (&mut bob, "b")] {
        desk.register(name).unwrap();
    }
    let names: Vec<String> = (0..10_000).map(|n| format!("wp:many/{n:05}")).collect();
    let names = || names.iter().map(String::as_str);
    let anns = ann
        .call(|service| service.own_session(&me()))
        .unwrap()
        .session
        .id;
    let schema = url.rsplit_once("schema=").unwrap().1;
    server.run(&format!(
        "INSERT INTO {schema}.claims (key, epoch) \
         SELECT 'wp:many/' || lpad(n::text, 5, '0'), 1 FROM generate_series(0, 9998) n; \
         INSERT INTO {schema}.holds (key, epoch, session, life, means, granted_at) \
         SELECT key, 1, '{anns}', 1, 'claim', 1 FROM {schema}.claims; ANALYZE"
    ));
    let mut table = Table {
        rows: Vec::new(),
        largest: 0,
    };
    let any = asks(names(), Pick::Any);
    let granted = table.count(&mut bob, "claim --any of 10,000", 100, |bob| {
        bob.call(|service| service.claim(&me(), &any)).unwrap()
    });
    assert_eq!(granted[0].key, "wp:many/09999");
    table.count(
        &mut bob,
        "claim --any of 10,000 that are held",
        100,
        |bob| bob.call(|service| service.claim(&me(), &any)).unwrap_err(),
    );
    table.check();
}

/// A session comes back after it died with 60 keys: all are free, or all were taken by another.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_session_with_60_lost_keys_comes_back_in_a_few_round_trips() {
    for is_taken in [false, true] {
        let server = PostgresServer::shared();
        let url = made(&server);
        let world = FakeWorld::new();
        let (mut ann, mut bob) = (
            Desk::new(&url, &world, &[20]),
            Desk::new(&url, &world, &[30]),
        );
        for (desk, name) in [(&mut ann, "a"), (&mut bob, "b")] {
            desk.register(name).unwrap();
        }
        let names: Vec<String> = (0..60)
            .map(|n| format!("wp:{n:02}-{}", "x".repeat(400)))
            .collect();
        let all = asks(names.iter().map(String::as_str), Pick::All);
        ann.call(|service| service.claim(&me(), &all)).unwrap();
        world.exit(20);
        if is_taken {
            bob.call(|service| service.claim(&me(), &all)).unwrap();
        }
        let mut table = Table {
            rows: Vec::new(),
            largest: 0,
        };
        let back = table.count(ann.at(&[21]), "register with 60 lost keys", 70, |ann| {
            ann.register("a").unwrap()
        });
        let expected = if is_taken { (0, 60) } else { (60, 0) };
        assert_eq!((back.regranted.len(), back.taken.len()), expected);
        table.check();
    }
}

/// 32 sessions of another machine, which its keeper watches, hold 192 keys: sessions and keepers are read together.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_list_of_many_claims_reads_their_holders_together() {
    let server = PostgresServer::shared();
    let url = made(&server);
    let world = FakeWorld::new();
    let mut there = Desk::new(&url, &world, &[100]);
    for holder in 0..32 {
        there.at(&[100 + holder]);
        there.register(&format!("n{holder}")).unwrap();
        let names: Vec<String> = (0..6).map(|n| format!("wp:{holder:02}/{n}")).collect();
        let all = asks(names.iter().map(String::as_str), Pick::All);
        there.call(|service| service.claim(&me(), &all)).unwrap();
    }
    let renewal = RenewKeeper {
        id: KeeperId::mint(bytes(1)),
        uid: 0,
        pid: 99,
        version: "0".into(),
        host_name: "elsewhere".into(),
        started_at: Timestamp(0),
        acknowledged: None,
    };
    let renewed = there
        .call(|service| service.renew_keeper(&renewal))
        .unwrap();
    assert_eq!(renewed.watched.len(), 32);
    let schema = url.rsplit_once("schema=").unwrap().1;
    server.run(&format!(
        "UPDATE {schema}.sessions SET host_id = 'elsewhere'; UPDATE {schema}.keepers SET host_id = 'elsewhere'"
    ));
    let mut here = Desk::new(&url, &world, &[20]);
    let mut table = Table {
        rows: Vec::new(),
        largest: 0,
    };
    let claims = table.count(
        &mut here,
        "claims: 192 of 32 sessions elsewhere",
        8,
        |here| {
            let filter = ClaimFilter::default();
            here.call(|service| service.claims(None, &filter)).unwrap()
        },
    );
    assert_eq!(claims.items.len(), 192);
    let holders = claims
        .items
        .iter()
        .filter_map(|claim| claim.holder.as_deref());
    let reported = holders.filter(|holder| holder.state == "live");
    assert_eq!(reported.count(), 192);
    table.check();
}
