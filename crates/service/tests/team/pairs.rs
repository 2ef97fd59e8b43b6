//! Every two use cases at once on the same rows: none waits for another in a circle, and every answer is a legal one.
//!
//! Two players prepare a use case each. A third transaction then locks every row that they may need, in order; both
//! act and wait behind it; when it ends, they go on at the same moment. So a use case that takes two locks in the wrong
//! order meets one that takes them in the right order nearly every time, and the server reports a deadlock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tenure_core::agent_event::Happening;
use tenure_core::conversation::Home;
use tenure_core::conversation::fitness::Existence;
use tenure_core::id::{JobId, RunId};
use tenure_core::mission::change::Change;
use tenure_core::mission::{MissionId, Role};
use tenure_core::queue::choose::Limits;
use tenure_core::queue::code::JobCode;
use tenure_core::queue::{Caps, JobAsk, JobSpec, JobWorkdir, Trust};
use tenure_core::run::Trigger;
use tenure_core::session::{Doing, Workdir};
use tenure_core::store::{Lock, Mode, SessionFilter, Store};
use tenure_core::time::Timestamp;
use tenure_service::error::Error;
use tenure_service::{
    AgentEvent, ChangeRequest, DropRequest, HandoffRequest, Here, JoinRequest, LinkRequest,
    ListRequest, NewJob, Pick, PlanRequest, ReleaseRequest, SetRequest, StartRun, TakeJob,
    TakeoverRequest, Waiting,
};
use tenure_testkit::FakeWorld;
use tenure_testkit::postgres::{Asker, Server};

use super::{Desk, asks, because, bytes, key, made, me, native, worker};

const KEYS: [&str; 2] = ["wp:a", "wp:b"];
const PATHS: [&str; 2] = ["path:acme/web:src/**", "path:acme/web:src/x/**"];
const ITEM: &str = "issue:acme/web#6";
const PR: &str = "pr:acme/web#9";
const MISSION: &str = "launch";
/// The variable that says how often each pair meets; once without it.
const ROUNDS: &str = "TENURE_PAIR_ROUNDS";
/// The pairs are tested in so many parts, side by side.
const PARTS: usize = 4;
/// How long two players may take to wait for a lock; a use case that needs none is done by then.
const ARRIVE: Duration = Duration::from_millis(400);

/// What a player does once everything is locked by another.
type Act = Box<dyn FnOnce(&mut Player) -> Result<(), Error> + Send>;

struct Case {
    name: &'static str,
    prepare: fn(&mut Player) -> Act,
}

struct Player {
    desk: Desk,
    number: usize,
    pid: u32,
    /// How many processes and names it used.
    used: u32,
    /// The handle of the other player.
    other: String,
    handle: String,
}

fn act(case: impl FnOnce(&mut Player) -> Result<(), Error> + Send + 'static) -> Act {
    Box::new(case)
}

impl Player {
    fn new(url: &str, world: &FakeWorld, number: usize) -> Player {
        let pid = 100 + 100_000 * u32::try_from(number).unwrap();
        let mut player = Player {
            desk: Desk::new(url, world, &[pid]),
            number,
            pid,
            used: 0,
            other: String::new(),
            handle: String::new(),
        };
        player.is_there();
        player
    }

    fn fresh(&mut self) -> u32 {
        self.used += 1;
        self.pid + self.used
    }

    fn name(&self) -> String {
        format!("p{}", self.number)
    }

    /// It is a live session, whatever the last round did to it.
    fn is_there(&mut self) {
        let name = self.name();
        let there = self.desk.at(&[self.pid]).register(&name);
        self.handle = there.unwrap().session.handle;
    }

    /// Takes a key, from whoever has it.
    fn obtain(&mut self, text: &str) {
        if self.desk.claim(text).is_err() {
            // What is free now, or overlaps, stays as it is.
            drop(self.take(text));
        }
    }

    fn take(&mut self, text: &str) -> Result<(), Error> {
        let request = TakeoverRequest {
            key: key(text),
            from: None,
            epoch: None,
            note: None,
        };
        let why = because("a test");
        let taken = self.desk.call(|service| service.takeover(&why, &request));
        taken.map(|_| ())
    }

    /// A session that held what it could get and is dead now; its conversation.
    fn ghost(&mut self) -> String {
        let pid = self.fresh();
        let name = format!("g{}-{pid}", self.number);
        self.desk.at(&[pid]).register(&name).unwrap();
        for text in KEYS.iter().chain(&PATHS) {
            self.obtain(text);
        }
        self.desk.world.exit(pid);
        self.desk.at(&[self.pid]);
        name
    }

    fn home(&self) -> Home {
        Home {
            host: self.desk.world.observer.host.clone(),
            user: "1000".into(),
            agent_home: None,
            dir: "/work/web".into(),
        }
    }

    fn here() -> Here {
        Here {
            repo: None,
            user: "user".into(),
            roles: Vec::new(),
        }
    }

    fn join(&mut self) -> Result<(), Error> {
        let request = JoinRequest {
            mission: MissionId::parse(MISSION).unwrap(),
            role: Role::parse("developer").unwrap(),
            participant: None,
        };
        let joined = self
            .desk
            .call(|service| service.join_mission(&me(), &Player::here(), &request));
        joined.map(|_| ())
    }

    fn changes(&mut self, field: &str, value: &str, strict: bool) -> Result<(), Error> {
        let request = ChangeRequest {
            mission: None,
            change: Change::named(field, value).unwrap(),
            strict,
        };
        let changed = self
            .desk
            .call(|service| service.change_participant(&me(), &Player::here(), &request));
        changed.map(|_| ())
    }

    fn claims(keys: &[&str], pick: Pick) -> Act {
        let request = asks(keys.iter().copied(), pick);
        act(move |player| {
            let claimed = player.desk.call(|service| service.claim(&me(), &request));
            claimed.map(|_| ())
        })
    }

    fn releases(text: &'static str, done: bool) -> Act {
        let request = ReleaseRequest {
            key: key(text),
            epoch: None,
            done,
        };
        act(move |player| {
            let released = player.desk.call(|service| service.release(&me(), &request));
            released.map(|_| ())
        })
    }

    /// A job of the item, and its id.
    fn job(&mut self) -> JobId {
        let number = self.fresh();
        let new = NewJob {
            id: JobId::mint(bytes(number)),
            agent: worker(),
            item: key(ITEM),
            rule: Some("fix".into()),
            trust: Trust::Trusted,
            repo: None,
            spec: JobSpec {
                ask: JobAsk::Text("do it".into()),
                workdir: JobWorkdir {
                    dir: "/work".into(),
                    worktree: false,
                },
                args: Vec::new(),
                env: Vec::new(),
                wrap: Vec::new(),
                exclusive: false,
                fresh: false,
                shares_dir: false,
                timeout_ms: None,
                caps: Caps::default(),
                dispatched: true,
                trusted_repo: false,
                code: JobCode::default(),
            },
            summary: "an event".into(),
            data: "{}".into(),
            reply: None,
        };
        let queued = self.desk.call(|service| service.enqueue(&new)).unwrap();
        JobId::parse(&queued.job.id).unwrap()
    }

    /// What starts a run that holds its item while it runs.
    fn run(&mut self) -> Result<StartRun, Error> {
        let (agent, runner) = (self.fresh(), self.fresh());
        let plan = PlanRequest {
            agent: worker(),
            item: key(ITEM),
            here: self.home(),
            fresh: false,
        };
        let planned = self.desk.call(|service| service.plan_run(&plan))?;
        let world = &self.desk.world;
        Ok(StartRun {
            id: RunId::mint(bytes(runner)),
            begin: planned.begin(Existence::CannotTell)?,
            planned,
            intended: None,
            chain: world.facts(&[agent, runner]).chain,
            runner: world.process(runner),
            workdir: Workdir {
                dir: "/work/web".into(),
                ..Workdir::default()
            },
            shares_dir: true,
            exclusive: true,
            trigger: Trigger::Call,
            goes_on: None,
            skill: None,
            prompt_hash: "00".into(),
            log: format!("/state/runs/{runner}"),
            job: None,
        })
    }
}

fn heartbeat(player: &Player) -> AgentEvent {
    AgentEvent {
        agent: Some(worker()),
        process: player.desk.chain().into_iter().next(),
        program: None,
        native_id: Some(native(&player.name())),
        what: Happening::Other,
        subagent: None,
        terminal: tenure_core::end::Terminal::Open,
        doing: Some(Doing::Busy),
        asks: None,
        attended: true,
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
    }
}

/// The use cases of the table of locks.
const CASES: [Case; 21] = [
    Case {
        name: "claim",
        prepare: |_| Player::claims(&KEYS[..1], Pick::All),
    },
    Case {
        name: "path claim",
        prepare: |player| Player::claims(&PATHS[player.number..=player.number], Pick::All),
    },
    Case {
        name: "claim --all",
        prepare: |_| Player::claims(&["wp:b", "path:acme/web:src/x/**", "wp:a"], Pick::All),
    },
    Case {
        name: "claim --any",
        prepare: |_| Player::claims(&["wp:b", "wp:a"], Pick::Any),
    },
    Case {
        name: "takeover",
        prepare: |_| act(|player| player.take("wp:a")),
    },
    Case {
        name: "handoff",
        prepare: |player| {
            player.obtain("wp:a");
            act(|player| {
                let request = HandoffRequest {
                    key: key("wp:a"),
                    to: player.other.clone(),
                    epoch: None,
                    note: None,
                };
                let handed = player.desk.call(|service| service.handoff(&me(), &request));
                handed.map(|_| ())
            })
        },
    },
    Case {
        name: "release",
        prepare: |player| {
            player.obtain("wp:a");
            Player::releases("wp:a", false)
        },
    },
    Case {
        name: "done",
        prepare: |player| {
            player.obtain("wp:b");
            Player::releases("wp:b", true)
        },
    },
    Case {
        name: "end",
        prepare: |player| {
            player.obtain("wp:b");
            player.obtain("wp:a");
            act(|player| player.desk.call(|service| service.end(&me())).map(|_| ()))
        },
    },
    Case {
        name: "bury",
        prepare: |player| {
            player.ghost();
            act(|player| {
                let all = ListRequest::default();
                player.desk.call(|service| service.list(&all)).map(|_| ())
            })
        },
    },
    Case {
        name: "register with moved holds",
        prepare: |player| {
            let ghost = player.ghost();
            let pid = player.fresh();
            act(move |player| {
                let back = player.desk.at(&[pid]).register(&ghost);
                player.desk.world.exit(pid);
                player.desk.at(&[player.pid]);
                back.map(|_| ())
            })
        },
    },
    Case {
        name: "drive --strict",
        prepare: |player| {
            drop(player.join());
            drop(player.changes("focus", "wp:db", false));
            act(|player| player.changes("drive", "active", true))
        },
    },
    Case {
        name: "join",
        prepare: |player| {
            drop(
                player
                    .desk
                    .call(|service| service.leave_mission(&me(), &Player::here(), None)),
            );
            act(Player::join)
        },
    },
    Case {
        name: "waiter's turn",
        prepare: |player| {
            let pid = player.fresh();
            let waiting = Waiting {
                process: player.desk.world.process(pid),
                ticket: None,
            };
            let request = asks(["wp:a"], Pick::Any);
            act(move |player| {
                let turn = player
                    .desk
                    .call(|service| service.claim_turn(&me(), &request, &waiting));
                player.desk.world.exit(pid);
                turn.map(|_| ())
            })
        },
    },
    Case {
        name: "queue take",
        prepare: |player| {
            let job = player.job();
            let runner = player.fresh();
            let request = TakeJob {
                job,
                runner: player.desk.world.process(runner),
                limits: Limits { concurrency: 4 },
            };
            act(move |player| {
                let taken = player.desk.call(|service| service.take_job(&request));
                player.desk.world.exit(runner);
                taken.map(|_| ())
            })
        },
    },
    Case {
        name: "conversation set",
        prepare: |player| {
            let number = player.fresh();
            let request = SetRequest {
                agent: worker(),
                item: key(PR),
                native_id: native(&format!("c{number}")),
                home: player.home(),
                revision: None,
            };
            act(move |player| {
                let set = player
                    .desk
                    .call(|service| service.set_conversation(&me(), &request));
                set.map(|_| ())
            })
        },
    },
    Case {
        name: "conversation drop",
        prepare: |_| {
            let request = DropRequest {
                item: key(ITEM),
                agent: None,
                stop: true,
            };
            act(move |player| {
                let dropped = player
                    .desk
                    .call(|service| service.drop_conversations(&me(), &request));
                dropped.map(|_| ())
            })
        },
    },
    Case {
        name: "conversation link",
        prepare: |player| {
            let (item, target) = if player.number == 0 {
                (ITEM, PR)
            } else {
                (PR, ITEM)
            };
            for item in [ITEM, PR] {
                let item = key(item);
                drop(
                    player
                        .desk
                        .call(|service| service.unlink_item(&me(), &item)),
                );
            }
            let request = LinkRequest {
                item: key(item),
                target: key(target),
            };
            act(move |player| {
                let linked = player
                    .desk
                    .call(|service| service.link_item(&me(), &request));
                linked.map(|_| ())
            })
        },
    },
    Case {
        name: "run --exclusive",
        prepare: |player| match player.run() {
            Ok(request) => act(move |player| {
                let pids = request.chain.iter().map(|one| one.process.pid);
                let pids: Vec<u32> = pids.collect();
                let runner = pids[1];
                let started = player
                    .desk
                    .at(&[runner])
                    .call(|service| service.start_run(&request, None));
                for pid in pids {
                    player.desk.world.exit(pid);
                }
                player.desk.at(&[player.pid]);
                started.map(|_| ())
            }),
            Err(error) => act(move |_| Err(error)),
        },
    },
    Case {
        name: "beat",
        prepare: |player| {
            let event = heartbeat(player);
            act(move |player| {
                let heard = player.desk.call(|service| service.handle_event(&event));
                heard.map(|_| ())
            })
        },
    },
    Case {
        name: "sweep",
        prepare: |player| {
            player.job();
            act(|player| {
                player.desk.call(|service| service.sweep_jobs())?;
                player.desk.call(|service| service.sweep_conversations())?;
                let until = Timestamp(i64::MAX);
                let forgotten = player
                    .desk
                    .call(|service| service.forget_deliveries(until, 0));
                forgotten.map(|_| ())
            })
        },
    },
];

/// Everything that the players may have to lock.
fn all_locks(store: &mut dyn Store) -> Vec<Lock> {
    let mut locks = vec![
        Lock::Paths("acme/web".into()),
        Lock::Mission(MISSION.into()),
    ];
    let keys = KEYS.iter().chain(&PATHS).chain([&ITEM]);
    locks.extend(keys.map(|text| Lock::Key(key(text))));
    locks.extend([ITEM, PR].map(|text| Lock::Conversation(key(text))));
    locks.extend(["p0", "p1"].map(|name| Lock::Native(worker(), native(name))));
    let mut tx = store.begin(Mode::Read).unwrap();
    let open = tx.list_sessions(&SessionFilter::default()).unwrap();
    locks.extend(open.iter().map(|session| Lock::Session(session.id)));
    locks.sort();
    locks
}

struct Arena {
    asker: Asker,
    gate: Desk,
    schema: String,
}

impl Arena {
    /// Lets two players act at the same moment; their answers.
    fn meet(&mut self, players: &mut [Player; 2], acts: [Act; 2]) -> [Result<(), Error>; 2] {
        let locks = all_locks(&mut self.gate.store);
        let mut gate = self.gate.store.begin(Mode::Write).unwrap();
        for lock in &locks {
            gate.lock(lock).unwrap();
        }
        gate.now().unwrap();
        let done = AtomicUsize::new(0);
        let [one, other] = players;
        let [first, second] = acts;
        let play = |player: &mut Player, act: Act| {
            let answer = act(player);
            done.fetch_add(1, Ordering::SeqCst);
            answer
        };
        let play = &play;
        std::thread::scope(|scope| {
            let first = scope.spawn(move || play(one, first));
            let second = scope.spawn(move || play(other, second));
            let end = Instant::now() + ARRIVE;
            let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
            while done.load(Ordering::SeqCst) < 2 && Instant::now() < end {
                let waiting: usize = self.asker.ask(waiting)[0].parse().unwrap();
                if waiting + done.load(Ordering::SeqCst) >= 2 {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(gate);
            [first.join().unwrap(), second.join().unwrap()]
        })
    }

    /// What no pair of use cases may leave behind.
    #[track_caller]
    fn check(&mut self, pair: &str) {
        let schema = &self.schema;
        for (what, sql) in [
            (
                "a closed session holds something",
                "SELECT h.key FROM {s}.holds h JOIN {s}.sessions s ON s.id = h.session \
                 WHERE h.ended_at IS NULL AND (s.closed_at IS NOT NULL OR s.life <> h.life)",
            ),
            (
                "a key's epoch is not that of its newest grant",
                "SELECT c.key FROM {s}.claims c WHERE c.epoch <> \
                 coalesce((SELECT max(epoch) FROM {s}.holds h WHERE h.key = c.key), 0)",
            ),
            (
                "a key was granted fewer times than its epoch",
                "SELECT c.key FROM {s}.claims c WHERE c.epoch <> \
                 (SELECT count(*) FROM {s}.holds h WHERE h.key = c.key)",
            ),
            (
                "two sessions hold overlapping paths",
                "SELECT a.key FROM {s}.holds a JOIN {s}.holds b ON a.key < b.key AND a.session <> b.session \
                 WHERE a.ended_at IS NULL AND b.ended_at IS NULL AND a.key LIKE 'path:%' AND b.key LIKE 'path:%'",
            ),
        ] {
            let found = self.asker.ask(&sql.replace("{s}", schema));
            assert!(found.is_empty(), "{pair}: {what}: {found:?}");
        }
    }

    fn deadlocks(&mut self) -> u64 {
        // A backend reports what it counted when it is idle, or ends.
        let sql = "SELECT sum(deadlocks)::bigint FROM pg_stat_database";
        self.asker.ask(sql)[0].parse().unwrap()
    }
}

/// An answer that a caller may get, whatever another does at the same time. That the store is busy is not one: nothing
/// is kept locked for long.
fn is_legal(error: &Error) -> bool {
    !error.kind().starts_with("store") && !matches!(error.kind(), "malformed" | "usage" | "invalid")
}

/// One part of the pairs.
fn no_two_wait_in_a_circle(part: usize) {
    let rounds = std::env::var(ROUNDS).map_or(1, |rounds| rounds.parse().unwrap());
    let server = Server::own(&["deadlock_timeout = 50ms"]);
    let url = made(&server);
    let world = FakeWorld::new();
    let mut players = [0, 1].map(|number| Player::new(&url, &world, number));
    let handles = [1, 0].map(|number: usize| players[number].handle.clone());
    for (player, other) in players.iter_mut().zip(handles) {
        player.other = other;
    }
    let mut arena = Arena {
        asker: server.asker(),
        gate: Desk::new(&url, &world, &[1]),
        schema: server.ask("SELECT nspname FROM pg_namespace WHERE nspname LIKE 't\\_%'")[0]
            .clone(),
    };
    let mut wrong = Vec::new();
    let mut answers = std::collections::BTreeMap::<(&str, String), usize>::new();
    let pairs = CASES.iter().enumerate();
    let pairs =
        pairs.flat_map(|(place, first)| CASES[place..].iter().map(move |other| (first, other)));
    for (place, (first, second)) in pairs.enumerate() {
        if place % PARTS == part {
            let pair = format!("{} beside {}", first.name, second.name);
            for _ in 0..rounds {
                let mut acts = Vec::new();
                for (player, case) in players.iter_mut().zip([first, second]) {
                    player.is_there();
                    acts.push((case.prepare)(player));
                }
                for player in &mut players {
                    player.is_there();
                }
                let (before, of_clients) = (arena.deadlocks(), deadlocks_seen(&players));
                let acts = <[Act; 2]>::try_from(acts).ok().unwrap();
                let said = arena.meet(&mut players, acts);
                for (case, said) in [first, second].into_iter().zip(said) {
                    let kind = said.as_ref().err().map_or("yes", Error::kind).to_owned();
                    *answers.entry((case.name, kind)).or_default() += 1;
                    if let Err(error) = said
                        && !is_legal(&error)
                    {
                        wrong.push(format!("{pair}: {} was told: {error}", case.name));
                    }
                }
                if arena.deadlocks() > before || deadlocks_seen(&players) > of_clients {
                    wrong.push(format!("{pair}: a deadlock"));
                }
                arena.check(&pair);
            }
        }
    }
    for ((case, answer), times) in &answers {
        println!("{case:<28} {answer:<16} {times}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Each use case came to its end at least once.
    for case in &CASES {
        let name = (case.name, "yes".to_owned());
        assert!(answers.contains_key(&name), "{} never succeeded", case.name);
    }
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s11_no_two_use_cases_wait_for_each_other_in_a_circle_first_part() {
    no_two_wait_in_a_circle(0);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s11_no_two_use_cases_wait_for_each_other_in_a_circle_second_part() {
    no_two_wait_in_a_circle(1);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s11_no_two_use_cases_wait_for_each_other_in_a_circle_third_part() {
    no_two_wait_in_a_circle(2);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s11_no_two_use_cases_wait_for_each_other_in_a_circle_fourth_part() {
    no_two_wait_in_a_circle(3);
}

/// How often the players were told of a deadlock.
fn deadlocks_seen(players: &[Player; 2]) -> u64 {
    let seen = players
        .iter()
        .map(|player| player.desk.store.traffic().deadlocks);
    seen.sum()
}
