//! Several dispatchers on one queue.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tenure_core::id::{JobId, WorkerRole};
use tenure_core::queue::Trust;
use tenure_core::queue::choose::Limits;
use tenure_core::queue::step::{MAX_FAILURES, Retry};
use tenure_core::store::{Lock, Store, TxMode};
use tenure_service::error::Error;
use tenure_service::{GiveBack, LookForJobs, NewJob, TakeJob, TakenJob};
use tenure_testkit::conformance::sample;
use tenure_testkit::postgres::PostgresServer;
use tenure_testkit::{FakeWorld, poll};

use super::{Desk, bytes, key, made, worker};

const LIMITS: Limits = Limits { concurrency: 64 };
const DISPATCHERS: u32 = 8;
const ITEMS: u32 = 40;

fn job(number: u32, item: &str) -> NewJob {
    NewJob {
        role: WorkerRole::default(),
        id: JobId::mint(bytes(number)),
        agent: worker(),
        item: key(item),
        // Jobs of different rules are never joined.
        rule: Some(format!("rule-{number}")),
        trust: Trust::Trusted,
        repo: None,
        spec: sample::job_spec(),
        summary: "an event".into(),
        data: "{}".into(),
        reply: None,
    }
}

impl Desk {
    fn takes(&mut self, job: &JobId, pid: u32) -> Result<TakenJob, Error> {
        self.takes_within(LIMITS, job, pid)
    }

    fn takes_within(&mut self, limits: Limits, job: &JobId, pid: u32) -> Result<TakenJob, Error> {
        let request = TakeJob {
            job: job.clone(),
            runner: self.world.process(pid),
            limits,
        };
        self.call(|service| service.take_job(&request))
    }

    fn gives_back(&mut self, taken: &TakenJob, pid: u32, retry: Retry) -> Result<(), Error> {
        let request = GiveBack {
            of: taken.of.clone(),
            runner: self.world.process(pid),
            why: "the directory is in use".into(),
            retry,
        };
        self.call(|service| service.give_back_job(&request))
            .map(|_| ())
    }
}

/// Two jobs of each of 40 items, and 8 dispatchers that take whatever they see: each job is taken once, and never two
/// of one item at the same time.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn of_several_dispatchers_one_takes_each_job() {
    let server = PostgresServer::shared();
    let url = made(&server);
    let world = FakeWorld::new();
    let mut desk = Desk::new(&url, &world, &[10]);
    for number in 0..2 * ITEMS {
        let item = format!("issue:acme/web#{}", number % ITEMS + 1);
        desk.call(|service| service.enqueue(&job(number, &item)))
            .unwrap();
    }
    let running = Mutex::new(BTreeMap::<String, JobId>::new());
    let taken = Mutex::new(Vec::<JobId>::new());
    let began = Instant::now();
    let asked = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..DISPATCHERS)
            .map(|number| {
                let (url, world, running, taken) = (&url, &world, &running, &taken);
                scope.spawn(move || {
                    let pid = 100 + number;
                    let mut desk = Desk::new(url, world, &[pid]);
                    let mut asked = 0_u32;
                    while taken.lock().unwrap().len() < 2 * ITEMS as usize {
                        let seen = desk
                            .call(|service| service.waiting_jobs(&LookForJobs::within(LIMITS)))
                            .unwrap();
                        for job in seen.jobs {
                            asked += 1;
                            let got = match desk.takes(&job, pid) {
                                Ok(got) => got,
                                Err(error) => {
                                    let is_late = matches!(
                                        error.kind(),
                                        "not_yet" | "late" | "not_found" | "not_queued"
                                    );
                                    assert!(is_late, "{}: {error}", error.kind());
                                    continue;
                                }
                            };
                            let item = got.job.item.to_string();
                            let other = running.lock().unwrap().insert(item.clone(), job.clone());
                            assert_eq!(other, None, "{item} runs twice");
                            taken.lock().unwrap().push(job);
                            running.lock().unwrap().remove(&item);
                            desk.gives_back(&got, pid, Retry::Cancel).unwrap();
                        }
                    }
                    asked
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|one| one.join().unwrap())
            .sum::<u32>()
    });
    let took = began.elapsed();
    let mut taken = taken.into_inner().unwrap();
    let count = taken.len();
    println!("{DISPATCHERS} dispatchers took {count} jobs in {took:.2?}, after {asked} attempts");
    taken.sort();
    taken.dedup();
    assert_eq!(taken.len(), count, "a job was taken twice");
}

/// A dispatcher whose connection is killed while it holds the lock of a conversation, in a job's last attempt: the
/// conversation is free for the next job.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_r08_a_connection_that_breaks_in_the_last_attempt_leaves_no_conversation_locked() {
    let server = PostgresServer::own(&[]);
    let url = made(&server);
    let world = FakeWorld::new();
    let item = "issue:acme/web#6";
    let mut desk = Desk::new(&url, &world, &[10]);
    let mut queue = |number| {
        let queued = desk
            .call(|service| service.enqueue(&job(number, item)))
            .unwrap();
        JobId::parse(&queued.job.id).unwrap()
    };
    let (first, second) = (queue(1), queue(2));
    for attempt in 1..MAX_FAILURES {
        let taken = desk.takes(&first, 100).unwrap();
        assert_eq!(taken.of.attempt, attempt);
        desk.gives_back(&taken, 100, Retry::Again).unwrap();
    }
    let last = desk.takes(&first, 100).unwrap();
    assert_eq!(last.of.attempt, MAX_FAILURES);
    let mut broken = Desk::new(&url, &world, &[20]);
    let mut tx = broken.store.begin(TxMode::Write).unwrap();
    tx.lock(&Lock::Conversation(key(item))).unwrap();
    tx.now().unwrap();
    let killed = server.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()",
    );
    assert_eq!(killed, ["t"]);
    assert!(tx.session_by_handle("nobody").is_err());
    drop(tx);
    world.exit(100);
    let swept = desk.call(|service| service.sweep_jobs()).unwrap();
    assert_eq!(swept.returned.len(), 1, "its taker is dead");
    let taken = desk.takes(&second, 101);
    let state = swept.returned[0].state.as_str();
    match state {
        "queued" => assert_eq!(
            taken.unwrap_err().kind(),
            "not_yet",
            "the older one is first"
        ),
        _ => assert_eq!(taken.unwrap().of.id, second),
    }
    println!("after its last attempt the first job is {state}");
}

/// Two events of one item and one rule at the same moment, the first held up between its look at the waiting jobs and its
/// own job: the second joins that job, instead of a second run of the same conversation. That no two jobs of a
/// conversation are taken at once is the work of a unique index, and that no event joins a job that was taken the work of
/// its revision; this is what only the lock of the conversation does.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_r08_of_two_events_at_once_the_second_joins_the_job_of_the_first() {
    let server = PostgresServer::own(&[]);
    let url = made(&server);
    let schema = url.rsplit_once("schema=").unwrap().1;
    let world = FakeWorld::new();
    let first = job(1, "issue:acme/web#6");
    let second = NewJob {
        id: JobId::mint(bytes(2)),
        ..first.clone()
    };
    let connect = |pid| {
        let mut desk = Desk::new(&url, &world, &[pid]);
        // Everybody is connected before anybody waits: a lock is waited for only so long.
        desk.call(|service| service.waiting_jobs(&LookForJobs::within(LIMITS)))
            .unwrap();
        desk
    };
    let (mut one, mut other, mut taker) = (connect(11), connect(12), connect(100));
    let pattern = job(3, "issue:acme/web#7");
    taker.call(|service| service.enqueue(&pattern)).unwrap();
    let (mut asker, mut gate) = (server.asker(), server.asker());
    gate.ask("BEGIN");
    // Who inserts this id waits until it is taken back.
    gate.ask(&format!(
        "INSERT INTO {schema}.jobs SELECT (jsonb_populate_record(j, jsonb_build_object('id', '{}'))).* \
         FROM {schema}.jobs j",
        first.id
    ));
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let mut until_waiting = |count: usize, is_so: &dyn Fn() -> bool| {
        poll(Duration::from_secs(20), "they wait for a lock", || {
            let found: usize = asker.ask(waiting)[0].parse().unwrap();
            (is_so() || found >= count).then_some(())
        });
    };
    std::thread::scope(|scope| {
        let one = scope.spawn(|| one.call(|service| service.enqueue(&first)));
        until_waiting(1, &|| false);
        let other = scope.spawn(|| other.call(|service| service.enqueue(&second)));
        until_waiting(2, &|| other.is_finished());
        gate.ask("ROLLBACK");
        one.join().unwrap().unwrap();
        other.join().unwrap().unwrap();
    });
    let seen = taker
        .call(|service| service.waiting_jobs(&LookForJobs::within(LIMITS)))
        .unwrap();
    let of_item: Vec<&JobId> = seen.jobs.iter().filter(|id| **id != pattern.id).collect();
    let taken = taker.takes(of_item[0], 100).unwrap();
    assert_eq!(taken.events.len(), 2, "one job has both events");
}

/// Four dispatchers take jobs of different conversations at the same moment, and all of them have counted those that run
/// before any of them has committed: no more run than may.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn of_jobs_that_are_taken_at_once_no_more_run_than_may() {
    let server = PostgresServer::own(&[]);
    let url = made(&server);
    let schema = url.rsplit_once("schema=").unwrap().1;
    let world = FakeWorld::new();
    let limits = Limits { concurrency: 1 };
    let mut desk = Desk::new(&url, &world, &[10]);
    for number in 1..=4 {
        let job = job(number, &format!("issue:acme/web#{number}"));
        desk.call(|service| service.enqueue(&job)).unwrap();
    }
    let look = LookForJobs::within(LIMITS);
    let seen = desk.call(|service| service.waiting_jobs(&look)).unwrap();
    let desks = [101, 102, 103, 104].map(|pid| {
        let mut desk = Desk::new(&url, &world, &[pid]);
        desk.call(|service| service.waiting_jobs(&look)).unwrap();
        (desk, pid)
    });
    let (mut asker, mut gate) = (server.asker(), server.asker());
    gate.ask("BEGIN");
    // Events get their numbers last thing in a transaction.
    gate.ask(&format!("SELECT 1 FROM {schema}.counter FOR UPDATE"));
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let taken = std::thread::scope(|scope| {
        let takers: Vec<_> = desks
            .into_iter()
            .zip(&seen.jobs)
            .map(|((mut desk, pid), job)| {
                scope.spawn(move || desk.takes_within(limits, job, pid).map(|_| ()))
            })
            .collect();
        poll(Duration::from_secs(20), "all of them wait", || {
            let found: usize = asker.ask(waiting)[0].parse().unwrap();
            (found == 4).then_some(())
        });
        gate.ask("ROLLBACK");
        let all = takers.into_iter().map(|one| one.join().unwrap());
        all.collect::<Vec<_>>()
    });
    let (took, refused): (Vec<_>, Vec<_>) = taken.into_iter().partition(Result::is_ok);
    assert_eq!(took.len(), 1, "{refused:?}");
    for one in refused {
        assert_eq!(one.unwrap_err().kind(), "not_yet");
    }
}
