//! The service on a store in memory, in a world that the test controls.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest_state_machine::StateMachineTest;
use tenure_chaos::queue::model::{Back, JobPhase, Wait};
use tenure_core::conversation::Home;
use tenure_core::conversation::fitness::{Existence, Left};
use tenure_core::event::EventFilter;
use tenure_core::id::{AgentName, JobId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::policy::Policy;
use tenure_core::process::Process;
use tenure_core::queue::delivery::{Delivery, Verdict};
use tenure_core::queue::identity::SeenRepository;
use tenure_core::queue::step::Retry;
use tenure_core::queue::{Caps, JobSpec, JobState, JobWorkdir, ParkedFor, Trust};
use tenure_core::run::{Outcome, Trigger, Usage};
use tenure_core::session::Workdir;
use tenure_core::store::{JobFilter, Store, TxMode};
use tenure_core::time::Timestamp;
use tenure_service::error::Error;
use tenure_service::{
    Accept, Accepted, ActFor, Arrival, Decided, EndRun, GiveBack, JobRef, LinkRequest, LookForJobs,
    NewJob, Person, PlanRequest, Reply, Service, StartRun, StartTurn, TakeJob, Undecided,
    WhichJobs,
};
use tenure_store::SqliteStore;
use tenure_testkit::conformance::sample;
use tenure_testkit::{FakeClock, FakeWorld, RecordingStore};

use crate::step::{Answer, Step, no};
use crate::world::{
    Attempt, BREAKER, DOCS, ITEMS, LIMIT, LIMITS, PER_REPO, RULES, Run, SHARING, TIMEOUT, World,
    job_id, newest, repo, run_id, timed,
};

/// The directory that several items share.
const SHARED: &str = "/work/shared";

/// The service on a store in memory.
pub struct Real {
    before: World,
    machine: FakeWorld,
    clock: FakeClock,
    store: RecordingStore<SqliteStore>,
    runners: Vec<Process>,
}

pub fn spec() -> JobSpec {
    JobSpec {
        caps: Caps {
            breaker: Some(BREAKER),
            per_repo: Some(PER_REPO),
            ..Caps::default()
        },
        ..sample::job_spec()
    }
}

/// What a command asks for, in the directory that several items share.
fn command_spec() -> JobSpec {
    JobSpec {
        workdir: JobWorkdir {
            dir: SHARED.to_owned(),
            worktree: false,
        },
        dispatched: false,
        ..spec()
    }
}

fn agent() -> AgentName {
    AgentName::known("worker")
}

fn key(item: &str) -> Key {
    Key::parse(item).unwrap()
}

fn retry(back: &Back) -> Retry {
    let reason = |name: &str| ParkedFor::parse(name).unwrap();
    match back {
        Back::Again => Retry::Again,
        Back::Later => Retry::Later,
        Back::InUse => Retry::InUse,
        Back::Away => Retry::Away,
        Back::Cancel => Retry::Cancel,
        Back::Parked(wait) => match (wait.parked, wait.until) {
            (Some(name), Some(until)) => Retry::At(reason(name), Timestamp(until)),
            (Some(name), None) => Retry::Never(reason(name)),
            (None, _) => panic!("{wait:?} is not parked"),
        },
    }
}

fn delivery(delivery_id: Option<String>) -> Delivery {
    Delivery {
        id: 0,
        endpoint: "home".to_owned(),
        delivery_id,
        content_key: None,
        body_hash: None,
        received_at: Timestamp(0),
        event: "issue.comment".to_owned(),
        repo: None,
        item: None,
        author: None,
        verdict: Verdict::Ignored,
        rule: None,
        why: String::new(),
        job: None,
    }
}

fn new_job(number: usize, item: usize, rule: Option<String>, spec: JobSpec) -> NewJob {
    NewJob {
        role: WorkerRole::default(),
        id: job_id(number),
        agent: agent(),
        item: key(ITEMS[item]),
        rule,
        trust: Trust::Trusted,
        repo: repo(ITEMS[item]).map(str::to_owned),
        spec,
        summary: number.to_string(),
        data: "{}".to_owned(),
        reply: None,
    }
}

/// The same delivery before it is decided.
pub fn arrival_of(request: &Accept) -> Arrival {
    Arrival::New(Box::new(Undecided {
        delivery: Delivery {
            verdict: Verdict::Waits,
            ..request.delivery.clone()
        },
        body: Vec::new(),
        headers: "[]".to_owned(),
        answers: Some("{}".to_owned()),
        replayed: false,
    }))
}

impl Real {
    fn call<T>(&mut self, act: impl FnOnce(&mut Service<'_>) -> Reply<T>) -> Result<T, Error> {
        let facts = self.machine.facts(&[10]);
        let policy = Policy::default();
        let mut service = Service::new(&mut self.store, &self.machine, &facts, policy);
        match act(&mut service) {
            Ok(answer) => Ok(answer.value),
            Err(failure) => Err(failure.error),
        }
    }

    fn runner_pid(attempt: &Attempt) -> u32 {
        1_000 + attempt.runner
    }

    fn agent_pid(which: usize) -> u32 {
        2_000 + which as u32
    }

    fn deliver(&mut self, number: usize, item: usize, rule: usize, person: bool) -> Answer {
        let rule = Some(RULES[rule].to_owned());
        let request = Accept {
            delivery: Delivery {
                item: Some(key(ITEMS[item])),
                verdict: Verdict::Queued,
                rule: rule.clone(),
                ..delivery(Some(format!("d-{number}")))
            },
            person: if person { Person::Yes } else { Person::No },
            repository: None,
            jobs: vec![new_job(number, item, rule, spec())],
        };
        let accepted = self.accept(request);
        Answer::Queued {
            job: accepted.jobs[0].job.id.clone(),
            joined: accepted.jobs[0].joined,
            duplicate: accepted.duplicate,
        }
    }

    fn enqueue(&mut self, number: usize, item: usize) -> Answer {
        let new = new_job(number, item, None, command_spec());
        answer(self.call(|service| service.enqueue(&new)), |queued| {
            Answer::Queued {
                job: queued.job.id,
                joined: queued.joined,
                duplicate: false,
            }
        })
    }

    /// An event that starts nothing tells something about the repository.
    fn see_repository(&mut self, id: u64, is_deleted: bool) -> Answer {
        let request = Accept {
            delivery: delivery(None),
            person: Person::No,
            repository: Some(SeenRepository {
                name: DOCS.to_owned(),
                id,
                is_deleted,
            }),
            jobs: Vec::new(),
        };
        assert!(self.accept(request).jobs.is_empty());
        Answer::Done
    }

    /// Stores a delivery and decides it.
    fn accept(&mut self, mut request: Accept) -> Accepted {
        let arrival = arrival_of(&request);
        let stored = self.call(|service| service.store_all(&[arrival]));
        let stored = stored.unwrap().remove(0);
        if stored.duplicate {
            return stored;
        }
        request.delivery.id = stored.delivery.id;
        let decided = self.call(|service| service.decide_all(&[Decided::Now(Box::new(request))]));
        decided.unwrap().remove(0).expect("it is undecided")
    }

    fn take(&mut self, place: usize, world: &World) -> Answer {
        let is_new = world.runners.len() > self.runners.len();
        if is_new {
            let pid = 1_000 + self.runners.len() as u32;
            let process = self.machine.process(pid);
            self.runners.push(process);
        }
        let runner = match &world.answer {
            Some(Answer::Taken { .. }) => world.attempts.last().map(|one| one.runner),
            _ => None,
        };
        // One that is refused is nobody in particular.
        let runner = match runner {
            Some(runner) => self.runners[runner as usize].clone(),
            None => self.machine.process(999),
        };
        let request = TakeJob {
            job: JobId::parse(&world.queue.jobs[place].id).unwrap(),
            runner,
            limits: LIMITS,
        };
        let taken = self.call(|service| service.take_job(&request));
        let may = !world.is_doubted(place);
        assert!(may || taken.is_err(), "its repository may be another one");
        answer(taken, |taken| Answer::Taken {
            attempt: taken.of.attempt,
            events: numbers(taken.events.iter().map(|event| event.summary.as_str())),
        })
    }

    fn start(&mut self, which: usize, world: &World) -> Answer {
        let attempt = &world.attempts[which];
        let item = world.queue.jobs[attempt.job].item.clone();
        let shares = world.shares_dir(attempt.job);
        let dir = if shares {
            SHARED.to_owned()
        } else {
            format!("/work/{item}")
        };
        let here = Home {
            host: self.machine.observer.host.clone(),
            user: "1000".to_owned(),
            agent_home: None,
            dir: dir.clone(),
            repo_host: None,
        };
        let plan = PlanRequest {
            role: WorkerRole::default(),
            agent: agent(),
            item: key(&item),
            here,
            fresh: false,
        };
        let planned = match self.call(|service| service.plan_run(&plan)) {
            Ok(planned) => planned,
            Err(error) => return no(error.kind()),
        };
        let pids = [Self::agent_pid(which), Self::runner_pid(attempt)];
        let request = StartRun {
            timeout: Some(Duration::from_millis(TIMEOUT.unsigned_abs())),
            id: run_id(which),
            begin: planned.begin(Existence::CannotTell).unwrap(),
            planned,
            intended: None,
            chain: self.machine.facts(&pids).chain,
            runner: self.runners[attempt.runner as usize].clone(),
            workdir: Workdir {
                dir,
                ..Workdir::default()
            },
            shares_dir: !shares,
            exclusive: false,
            trigger: Trigger::Queue,
            goes_on: None,
            skill: None,
            prompt_hash: "00".to_owned(),
            log: format!("/state/runs/{which}"),
            job: Some(JobRef {
                id: JobId::parse(&world.queue.jobs[attempt.job].id).unwrap(),
                attempt: attempt.number,
            }),
        };
        let turn = self.call(|service| service.start_run(&request, None));
        let said = answer(turn, |turn| match turn {
            StartTurn::Started(_) => Answer::Done,
            StartTurn::Held { error, .. } => no(error.kind()),
            StartTurn::Settle(_) => no("settle"),
            other => panic!("{other:?}"),
        });
        if said != Answer::Done {
            self.machine.exit(Self::agent_pid(which));
        }
        said
    }

    fn end(&mut self, which: usize, outcome: Outcome, world: &World, by_others: bool) -> Answer {
        let until = self.clock.now().wall.0 + LIMIT;
        let end = EndRun {
            id: run_id(which),
            outcome,
            why: "so".to_owned(),
            exit_code: None,
            left: Left::Sound,
            after: None,
            usage: Usage::default(),
            parked: (outcome == Outcome::Parked).then_some((Timestamp(until), true)),
        };
        let ended = if by_others {
            self.call(|service| service.end_dead_run(&end))
        } else {
            self.machine.exit(Self::agent_pid(which));
            self.call(|service| service.end_run(&end))
        };
        assert_eq!(world.attempts.len(), self.before.attempts.len());
        answer(ended, |_| Answer::Done)
    }

    /// Ends what is past its timeout and has no runner, as the dispatcher does.
    fn end_overdue(&mut self, world: &World) -> Answer {
        let mut ended = BTreeSet::new();
        for left in self.call(|service| service.left_runs()).unwrap() {
            if !left.run.past_timeout {
                continue;
            }
            let id = left.record.id;
            let asked = self.call(|service| service.run_timed_out(&id, "so"));
            let asked = asked.unwrap();
            assert!(asked.runner.is_none() && asked.agent.is_some());
            let which = (0..world.attempts.len()).find(|which| run_id(*which) == id);
            let is_over = self.end(which.unwrap(), Outcome::Timeout, world, false);
            assert_eq!(is_over, Answer::Done);
            ended.insert(id.to_string());
        }
        let left = self.call(|service| service.left_runs()).unwrap();
        assert!(left.iter().all(|left| !left.run.past_timeout));
        Answer::TimedOut(ended)
    }

    fn give_back(&mut self, which: usize, back: &Back, world: &World) -> Answer {
        let attempt = &world.attempts[which];
        let request = GiveBack {
            of: JobRef {
                id: JobId::parse(&world.queue.jobs[attempt.job].id).unwrap(),
                attempt: attempt.number,
            },
            runner: self.runners[attempt.runner as usize].clone(),
            why: "so".to_owned(),
            retry: retry(&timed(back, world.now)),
        };
        answer(self.call(|service| service.give_back_job(&request)), |_| {
            Answer::Done
        })
    }

    fn act(&mut self, step: &Step, world: &World) -> Answer {
        let attempt = |back: usize| newest(back, self.before.attempts.len());
        let job = |back: usize| newest(back, self.before.queue.jobs.len());
        match step {
            Step::Deliver { item, rule, person } => {
                let number = self.before.asked_by.len();
                self.deliver(number, *item, *rule, *person)
            }
            Step::Enqueue(which) => {
                let number = self.before.asked_by.len();
                self.enqueue(number, SHARING[*which])
            }
            Step::SeeRepository { id, deleted } => self.see_repository(*id, *deleted),
            Step::Redeliver(back) => {
                let deliveries = &self.before.deliveries;
                let event = deliveries[newest(*back, deliveries.len())].event;
                self.deliver(event as usize, 0, 0, true)
            }
            Step::Take { job: back, .. } => self.take(job(*back), world),
            Step::Start(back) => self.start(attempt(*back), world),
            Step::Begin(back) => {
                let run = run_id(attempt(*back));
                answer(self.call(|service| service.run_begins(&run)), |_| {
                    Answer::Done
                })
            }
            Step::GiveBack(back, how) => self.give_back(attempt(*back), how, world),
            Step::End(back, outcome) => self.end(attempt(*back), *outcome, world, false),
            Step::Settle(back) => self.end(attempt(*back), Outcome::Interrupted, world, true),
            Step::KillRunner(_) | Step::KillAgent(_) => {
                self.let_die(world);
                Answer::Done
            }
            Step::EndOverdue => self.end_overdue(world),
            Step::Sweep => answer(self.call(|service| service.sweep_jobs()), |swept| {
                Answer::Swept {
                    returned: swept.returned.iter().map(|job| job.id.clone()).collect(),
                    settle: swept.settle.iter().map(ToString::to_string).collect(),
                }
            }),
            Step::Look => answer(
                self.call(|service| service.waiting_jobs(&LookForJobs::within(LIMITS))),
                |seen| Answer::Looked {
                    jobs: seen.jobs.iter().map(ToString::to_string).collect(),
                    parked: seen.parked.iter().map(|job| job.id.clone()).collect(),
                },
            ),
            Step::Cancel(back) => {
                let id = world.queue.jobs[job(*back)].id.clone();
                answer(
                    self.call(|service| service.cancel_jobs(&WhichJobs::one(&id), "so")),
                    |_| Answer::Done,
                )
            }
            Step::Retry(back) => {
                let id = world.queue.jobs[job(*back)].id.clone();
                answer(
                    self.call(|service| service.retry_jobs(&WhichJobs::one(&id))),
                    |_| Answer::Done,
                )
            }
            Step::Close(item) => {
                let item = key(ITEMS[*item]);
                self.call(|service| service.close_item(&item)).unwrap();
                let cancelled = self.call(|service| service.cancel_jobs_of(&item, "closed"));
                answer(cancelled, |jobs| {
                    Answer::Cancelled(jobs.iter().map(|job| job.id.clone()).collect())
                })
            }
            Step::Reopen(item) => {
                let (item, grace) = (key(ITEMS[*item]), Duration::from_secs(600));
                let reopened = self.call(|service| service.reopen_item(&item, grace));
                answer(reopened, |_| Answer::Done)
            }
            Step::Reset(item) => {
                let item = key(ITEMS[*item]);
                answer(self.call(|service| service.reset_item(&item, None)), |_| {
                    Answer::Done
                })
            }
            Step::Advance(_) | Step::SetBack(_) => Answer::Done,
        }
    }

    fn let_die(&mut self, world: &World) {
        for (number, lives) in world.runners.iter().enumerate() {
            if !lives {
                self.machine.exit(1_000 + number as u32);
            }
        }
        for (which, attempt) in world.attempts.iter().enumerate() {
            if attempt.run != Run::None && !attempt.agent_lives {
                self.machine.exit(Self::agent_pid(which));
            }
        }
    }

    /// Every job is as the model says, and nothing else is in the queue.
    fn agrees(&mut self, world: &World) {
        let mut tx = self.store.begin(TxMode::Read).unwrap();
        let all = tx.list_jobs(&JobFilter::default()).unwrap();
        assert_eq!(all.len(), world.queue.jobs.len(), "the number of jobs");
        for (place, expected) in world.queue.jobs.iter().enumerate() {
            let id = JobId::parse(&expected.id).unwrap();
            let job = tx.job(&id).unwrap().unwrap();
            let state = match job.state {
                JobState::Queued => JobPhase::Waiting(Wait {
                    parked: None,
                    until: job.not_before.map(|at| at.0),
                }),
                JobState::Parked => {
                    let parked = job.parked.as_ref().unwrap();
                    JobPhase::Waiting(Wait {
                        parked: Some(parked.reason.as_str()),
                        until: parked.until.map(|at| at.0),
                    })
                }
                JobState::Starting => JobPhase::Starting,
                JobState::Begun => JobPhase::Begun,
                JobState::Ended => JobPhase::Ended(
                    job.end
                        .as_ref()
                        .unwrap()
                        .outcome
                        .unwrap()
                        .as_str()
                        .to_owned(),
                ),
                JobState::Cancelled => JobPhase::Cancelled,
            };
            assert_eq!(state, expected.state, "state of job {place}");
            assert_eq!(job.end.is_some(), !expected.is_open(), "end of job {place}");
            assert_eq!(job.created_at.0, world.created[place], "job {place}");
            let counts = (job.attempt, job.failures);
            assert_eq!(counts, (expected.attempt, expected.failures), "job {place}");
            let run = job.run.as_ref().map(ToString::to_string);
            assert_eq!(run, expected.run, "run of job {place}");
            let taker = world.holder(place).map(|which| &world.attempts[which]);
            let taker = taker.map(|attempt| &self.runners[attempt.runner as usize]);
            let taken = job.taken.as_ref().map(|taken| &taken.by);
            assert_eq!(taken, taker, "taker of job {place}");
            let events = tx.job_events(&id).unwrap();
            let events = numbers(events.iter().map(|event| event.summary.as_str()));
            assert_eq!(events, expected.events, "events of job {place}");
        }
    }

    /// What must hold whatever the model says.
    fn holds(&mut self, world: &World) {
        let mut tx = self.store.begin(TxMode::Read).unwrap();
        let taken = tx.taken_jobs().unwrap();
        for (place, job) in taken.iter().enumerate() {
            let same = taken[place + 1..]
                .iter()
                .filter(|other| other.root == job.root);
            assert_eq!(same.count(), 0, "two of {} are taken", job.root);
        }
        let there = taken.iter().filter(|job| !job.spec.dispatched);
        assert!(there.count() <= 1, "two are taken for one directory");
        let host = &self.machine.observer.host;
        let there = tx.open_runs_in(host, SHARED).unwrap();
        assert!(there.len() <= 1, "two runs are open in one directory");
        let known = tx.identity(DOCS).unwrap();
        assert_eq!(
            known.is_some_and(|known| known.doubt.is_some()),
            world.repository.doubt.is_some(),
            "whether the repository may be another one"
        );
        let mut heard: Vec<u64> = Vec::new();
        for job in tx.list_jobs(&JobFilter::default()).unwrap() {
            let events = tx.job_events(&job.id).unwrap();
            heard.extend(numbers(events.iter().map(|event| event.summary.as_str())));
        }
        heard.sort_unstable();
        let expected: Vec<u64> = (0..world.asked_by.len() as u64).collect();
        assert_eq!(heard, expected, "each event is in one job");
        let filter = EventFilter {
            limit: 10_000,
            ..EventFilter::default()
        };
        let log = tx.events(&filter).unwrap();
        let count = |kind: &str, id: &str| {
            let is_it = |event: &&tenure_core::event::Event| {
                event.kind == kind && event.evidence.starts_with(id)
            };
            log.iter().filter(is_it).count()
        };
        for job in &world.queue.jobs {
            let begun = count("job.begun", &job.id);
            assert_eq!(begun, job.begun_in.len(), "begins of {}", job.id);
            let ended = matches!(job.state, JobPhase::Ended(_));
            assert_eq!(count("job.ended", &job.id), usize::from(ended));
        }
        assert_eq!(count("job.late", ""), world.late, "late results are logged");
    }
}

fn numbers<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<u64> {
    texts.map(|text| text.parse().unwrap()).collect()
}

fn answer<T>(reply: Result<T, Error>, then: impl FnOnce(T) -> Answer) -> Answer {
    match reply {
        Ok(value) => then(value),
        Err(error) => no(error.kind()),
    }
}

impl StateMachineTest for Real {
    type SystemUnderTest = Real;
    type Reference = World;

    fn init_test(world: &World) -> Real {
        let clock = FakeClock::new();
        let mut real = Real {
            before: world.clone(),
            machine: FakeWorld::new(),
            store: RecordingStore::new(SqliteStore::in_memory(clock.source()).unwrap()),
            clock,
            runners: Vec::new(),
        };
        let link = LinkRequest {
            item: key(ITEMS[2]),
            target: key(ITEMS[0]),
        };
        real.call(|service| service.link_item(&ActFor::default(), &link))
            .unwrap();
        real
    }

    fn apply(mut real: Real, world: &World, step: Step) -> Real {
        match world.now - real.before.now {
            0 => {}
            passed if passed > 0 => real
                .clock
                .advance(Duration::from_millis(passed.unsigned_abs())),
            _ => real.clock.set_wall(Timestamp(world.now)),
        }
        let said = real.act(&step, world);
        assert_eq!(Some(said), world.answer, "the answer to {step:?}");
        real.let_die(world);
        real.agrees(world);
        real.holds(world);
        real.before = world.clone();
        real
    }
}
