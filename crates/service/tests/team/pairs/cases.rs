//! The use cases of the lock order's table, each with what it needs first.

use tenure_core::agent_event::Happening;
use tenure_core::conversation::Home;
use tenure_core::conversation::fitness::Existence;
use tenure_core::id::{JobId, RunId, WorkerRole};
use tenure_core::mission::change::MissionChange;
use tenure_core::mission::{MissionId, Role};
use tenure_core::queue::Trust;
use tenure_core::queue::choose::Limits;
use tenure_core::reason::Reason;
use tenure_core::run::Trigger;
use tenure_core::session::{Doing, Workdir};
use tenure_core::time::Timestamp;
use tenure_service::error::Error;
use tenure_service::{
    AgentEvent, ChangeRequest, DropRequest, HandoffRequest, JoinRequest, LinkRequest, ListRequest,
    MissionPlace, NewJob, Pick, PlanRequest, ReleaseRequest, SetRequest, StartRun, TakeJob,
    TakeoverRequest, WaitingCaller,
};
use tenure_testkit::FakeWorld;
use tenure_testkit::conformance::sample;

use super::super::{Desk, asks, because, bytes, key, me, native, worker};

pub(super) const KEYS: [&str; 2] = ["wp:a", "wp:b"];
pub(super) const PATHS: [&str; 2] = ["path:acme/web:src/**", "path:acme/web:src/x/**"];
pub(super) const ITEM: &str = "issue:acme/web#6";
pub(super) const PR: &str = "pr:acme/web#9";
pub(super) const MISSION: &str = "launch";

/// What a player does once everything is locked by another.
pub(super) type Act = Box<dyn FnOnce(&mut Player) -> Result<(), Error> + Send>;

pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) prepare: fn(&mut Player) -> Act,
}

pub(super) struct Player {
    pub(super) desk: Desk,
    pub(super) number: usize,
    pub(super) pid: u32,
    /// How many processes and names it used.
    pub(super) used: u32,
    /// The handle of the other player.
    pub(super) other: String,
    pub(super) handle: String,
}

pub(super) fn act(case: impl FnOnce(&mut Player) -> Result<(), Error> + Send + 'static) -> Act {
    Box::new(case)
}

impl Player {
    pub(super) fn new(url: &str, world: &FakeWorld, number: usize) -> Player {
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

    pub(super) fn fresh(&mut self) -> u32 {
        self.used += 1;
        self.pid + self.used
    }

    pub(super) fn name(&self) -> String {
        format!("p{}", self.number)
    }

    /// It is a live session, whatever the last round did to it.
    pub(super) fn is_there(&mut self) {
        let name = self.name();
        let there = self.desk.at(&[self.pid]).register(&name);
        self.handle = there.unwrap().session.handle;
    }

    /// Takes a key, from its holder.
    pub(super) fn obtain(&mut self, text: &str) {
        if self.desk.claim(text).is_err() {
            // What is free now, or overlaps, stays as it is.
            drop(self.take(text));
        }
    }

    pub(super) fn take(&mut self, text: &str) -> Result<(), Error> {
        let request = TakeoverRequest {
            key: key(text),
            from: None,
            epoch: None,
            note: None,
            reason: Reason::parse("a test").expect("a reason"),
        };
        let why = because("a test");
        let taken = self.desk.call(|service| service.takeover(&why, &request));
        taken.map(|_| ())
    }

    /// A session that held what it could get and is dead now; its conversation.
    pub(super) fn ghost(&mut self) -> String {
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

    pub(super) fn home(&self) -> Home {
        Home {
            host: self.desk.world.observer.host.clone(),
            user: "1000".into(),
            agent_home: None,
            repo_host: None,
            dir: "/srv/web".into(),
        }
    }

    pub(super) fn here() -> MissionPlace {
        MissionPlace {
            repo: None,
            user: "user".into(),
            roles: Vec::new(),
        }
    }

    pub(super) fn join(&mut self) -> Result<(), Error> {
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

    pub(super) fn changes(&mut self, field: &str, value: &str, strict: bool) -> Result<(), Error> {
        let request = ChangeRequest {
            mission: None,
            change: MissionChange::named(field, value).unwrap(),
            strict,
        };
        let changed = self
            .desk
            .call(|service| service.change_participant(&me(), &Player::here(), &request));
        changed.map(|_| ())
    }

    pub(super) fn claims(keys: &[&str], pick: Pick) -> Act {
        let request = asks(keys.iter().copied(), pick);
        act(move |player| {
            let claimed = player.desk.call(|service| service.claim(&me(), &request));
            claimed.map(|_| ())
        })
    }

    pub(super) fn releases(text: &'static str, done: bool) -> Act {
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
    pub(super) fn job(&mut self) -> JobId {
        let number = self.fresh();
        let new = NewJob {
            role: WorkerRole::default(),
            id: JobId::mint(bytes(number)),
            agent: worker(),
            item: key(ITEM),
            rule: Some("fix".into()),
            trust: Trust::Trusted,
            repo: None,
            spec: sample::job_spec(),
            summary: "an event".into(),
            data: "{}".into(),
            reply: None,
        };
        let queued = self.desk.call(|service| service.enqueue(&new)).unwrap();
        JobId::parse(&queued.job.id).unwrap()
    }

    /// What starts a run that holds its item while it runs.
    pub(super) fn run(&mut self) -> Result<StartRun, Error> {
        let (agent, runner) = (self.fresh(), self.fresh());
        let plan = PlanRequest {
            role: WorkerRole::default(),
            agent: worker(),
            item: key(ITEM),
            here: self.home(),
            fresh: false,
        };
        let planned = self.desk.call(|service| service.plan_run(&plan))?;
        let world = &self.desk.world;
        Ok(StartRun {
            timeout: None,
            id: RunId::mint(bytes(runner)),
            begin: planned.begin(Existence::CannotTell)?,
            planned,
            intended: None,
            chain: world.facts(&[agent, runner]).chain,
            runner: world.process(runner),
            workdir: Workdir {
                dir: "/srv/web".into(),
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

pub(super) fn heartbeat(player: &Player) -> AgentEvent {
    AgentEvent {
        agent: Some(worker()),
        process: player.desk.chain().into_iter().next(),
        program: None,
        native_id: Some(native(&player.name())),
        what: Happening::Other,
        subagent: None,
        terminal: tenure_core::end::Terminal::Open,
        doing: Some(Doing::Busy),
        woken_by: Vec::new(),
        asks: None,
        why: None,
        until: None,
        asks_model: false,
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
        address: None,
    }
}

/// The use cases of the table of locks.
pub(super) const CASES: [Case; 21] = [
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
        prepare: |player| {
            // One of them is free, unless the other player takes it first.
            player.obtain("wp:a");
            drop(Player::releases("wp:a", false)(player));
            Player::claims(&["wp:b", "wp:a"], Pick::Any)
        },
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
        name: "record a death",
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
            let waiting = WaitingCaller {
                process: player.desk.world.process(pid),
                ticket: None,
                unconfirmed: false,
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
                role: WorkerRole::default(),
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
                role: None,
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
                forgotten?;
                player
                    .desk
                    .call(|service| service.forget_events())
                    .map(|_| ())
            })
        },
    },
];
