//! The world beside the model: processes, runs, the count of an item, the agent's usage limit, what is known of a
//! repository, and a directory that several items share.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;
use tenure_chaos::queue::model::{Back, JobPhase, ModelJob, Queue, Wait};
use tenure_core::id::{JobId, RunId};
use tenure_core::queue::choose::Limits;
use tenure_core::run::Outcome;
use tenure_testkit::FakeClock;

use crate::repository::Repository;
use crate::step::{Answer, Step, any_step, any_step_while_hanging, no};

/// The third one continues the conversation of the first.
pub const ITEMS: [&str; 6] = [
    "issue:acme/web#1",
    "issue:acme/web#2",
    "pr:acme/web#3",
    "issue:acme/web#4",
    "issue:acme/web#5",
    "issue:acme/web#6",
];
pub const RULES: [&str; 2] = ["fix", "look"];
/// The items that commands ask for, in one directory.
pub const SHARING: [usize; 2] = [1, 5];
/// The rule of what a command asks for: none.
const COMMAND: &str = "";
/// The repository of two items.
pub const DOCS: &str = "acme/docs";
pub const LIMITS: Limits = Limits { concurrency: 2 };
/// How many jobs of one repository run at once.
pub const PER_REPO: u32 = 1;
/// Runs of an item without a person.
pub const BREAKER: u32 = 2;
/// How long an agent may run, in milliseconds.
pub const TIMEOUT: i64 = 60_000;
/// How long a usage limit lasts, in milliseconds.
pub const LIMIT: i64 = 300_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    None,
    Starting,
    Begun,
    Over,
}

/// A job in the hands of a runner.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub job: usize,
    pub number: u32,
    /// Its runner, by number.
    pub runner: u32,
    pub run: Run,
    pub agent_lives: bool,
    pub begun_at: i64,
    /// Whether the runner returned the job.
    pub returned: bool,
}

/// A delivery that led to a job.
#[derive(Debug, Clone)]
pub struct Delivered {
    pub event: u64,
    pub job: String,
    pub joined: bool,
}

#[derive(Debug, Clone, Default)]
pub struct World {
    pub now: i64,
    pub queue: Queue,
    pub attempts: Vec<Attempt>,
    /// When each job counts as created: never before those of its conversation that are open.
    pub created: Vec<i64>,
    /// Whether each runner lives.
    pub runners: Vec<bool>,
    /// Runs of an item since a person asked.
    pub runs: BTreeMap<String, u32>,
    /// Until when the agent is parked.
    pub parked: i64,
    pub deliveries: Vec<Delivered>,
    /// The item of each event.
    pub asked_by: Vec<usize>,
    pub repository: Repository,
    /// The items that are closed.
    pub closed: BTreeSet<usize>,
    pub late: usize,
    pub answer: Option<Answer>,
}

fn conversation(item: usize) -> &'static str {
    ITEMS[if item == 2 { 0 } else { item }]
}

/// The repository whose cap an item's jobs count for. Three of the four conversations can run without it, so that the
/// cap of all is reached as well.
pub fn repo(item: &str) -> Option<&'static str> {
    let has_one = item == ITEMS[3] || item == ITEMS[4];
    has_one.then_some(DOCS)
}

/// Ids in no order.
fn scattered(number: usize) -> [u8; 16] {
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&mixed.to_be_bytes());
    bytes[8..].copy_from_slice(&mixed.wrapping_mul(0x94d0_49bb_1331_11eb).to_be_bytes());
    bytes
}

pub fn job_id(number: usize) -> JobId {
    JobId::mint(scattered(number))
}

pub fn run_id(attempt: usize) -> RunId {
    RunId::mint(scattered(attempt))
}

/// One of several, counted from the newest.
pub fn newest(back: usize, count: usize) -> usize {
    count - 1 - back % count
}

impl World {
    pub fn empty() -> World {
        World {
            now: FakeClock::new().now().wall.0,
            ..World::default()
        }
    }

    pub fn lives(&self, attempt: &Attempt) -> bool {
        self.runners[attempt.runner as usize]
    }

    /// The place of an attempt whose job is taken in it.
    pub fn holder(&self, place: usize) -> Option<usize> {
        let job = &self.queue.jobs[place];
        self.attempts.iter().position(|attempt| {
            attempt.job == place && attempt.number == job.attempt && job.is_taken()
        })
    }

    fn deliver(&mut self, item: usize, rule: usize, person: bool) -> Answer {
        let (name, rule) = (ITEMS[item], RULES[rule]);
        if person {
            self.person_asks(name);
        }
        let joins = self.queue.joins(conversation(item), rule);
        if let Some(place) = joins.filter(|_| person) {
            self.person_asks(&self.queue.jobs[place].item.clone());
        }
        let event = self.asked_by.len() as u64;
        let (job, joined) = self.ask(item, rule);
        self.deliveries.push(Delivered {
            event,
            job: job.clone(),
            joined,
        });
        queued(job, joined, false)
    }

    fn enqueue(&mut self, item: usize) -> Answer {
        let (job, joined) = self.ask(item, COMMAND);
        queued(job, joined, false)
    }

    /// An event joins a job of its kind that waits, or makes one; returns that, and whether it joined.
    fn ask(&mut self, item: usize, rule: &str) -> (String, bool) {
        let (name, of) = (ITEMS[item], conversation(item));
        let event = self.asked_by.len();
        self.asked_by.push(item);
        let joins = self.queue.joins(of, rule);
        let job = match joins {
            Some(place) => {
                self.queue.jobs[place].events.push(event as u64);
                self.queue.jobs[place].id.clone()
            }
            None => {
                let id = job_id(event).to_string();
                let jobs = self.queue.jobs.iter().zip(&self.created);
                let newest = jobs
                    .filter(|(job, _)| job.is_open() && job.conversation == of)
                    .map(|(_, created)| created + 1)
                    .max();
                self.created
                    .push(newest.map_or(self.now, |at| at.max(self.now)));
                self.queue.add(&id, of, name, rule, event as u64);
                id
            }
        };
        self.queue.wake(of);
        (job, joins.is_some())
    }

    /// The runs of an item are counted anew, and its jobs that wait for that are tried again.
    fn person_asks(&mut self, item: &str) {
        self.runs.insert(item.to_owned(), 0);
        for place in 0..self.queue.jobs.len() {
            let job = &self.queue.jobs[place];
            let waits = job
                .wait()
                .is_some_and(|wait| wait.parked == Some("breaker"));
            if job.item == item && waits {
                self.queue.retry(place).unwrap();
            }
        }
    }

    fn redeliver(&self, number: usize) -> Answer {
        let Delivered { job, joined, .. } = self.deliveries[number].clone();
        queued(job, joined, true)
    }

    /// A person retries a job. One that waits for a person's word gets it, with all others that wait for the same.
    fn retry(&mut self, place: usize) -> Answer {
        let parked = |job: &ModelJob| job.wait().and_then(|wait| wait.parked);
        let job = &self.queue.jobs[place];
        match parked(job) {
            Some("breaker") => {
                self.person_asks(&job.item.clone());
                return Answer::Done;
            }
            Some("repository") => {
                self.repository.believe();
                for place in 0..self.queue.jobs.len() {
                    if parked(&self.queue.jobs[place]) == Some("repository") {
                        self.queue.retry(place).unwrap();
                    }
                }
                return Answer::Done;
            }
            _ => {}
        }
        let before = self.queue.clone();
        if self.queue.retry(place).is_err() {
            return no("wrong_state");
        }
        if self.parks(place).is_some() {
            self.queue = before;
            return no("not_yet");
        }
        Answer::Done
    }

    /// Why a job is parked before anything is started for it.
    fn parks(&self, place: usize) -> Option<&'static str> {
        let job = &self.queue.jobs[place];
        if self.is_doubted(place) {
            Some("repository")
        } else if self.runs.get(&job.item).copied().unwrap_or(0) >= BREAKER {
            Some("breaker")
        } else {
            None
        }
    }

    /// Whether the repository of a job may be another one.
    pub fn is_doubted(&self, place: usize) -> bool {
        self.repository.doubt.is_some() && repo(&self.queue.jobs[place].item).is_some()
    }

    /// Whether a job works in the directory that others work in, too.
    pub fn shares_dir(&self, place: usize) -> bool {
        self.queue.jobs[place].rule == COMMAND
    }

    /// The attempt whose run is open in the shared directory.
    fn open_there(&self) -> Option<&Attempt> {
        let is_open = |one: &&Attempt| matches!(one.run, Run::Starting | Run::Begun);
        let mut open = self.attempts.iter().filter(is_open);
        open.find(|one| self.shares_dir(one.job))
    }

    /// Whether runner and agent are dead.
    fn is_over(&self, attempt: &Attempt) -> bool {
        !self.lives(attempt) && !attempt.agent_lives
    }

    /// Whether a job that is next in its conversation may be taken; one that waits for a person is parked.
    /// `chosen` are those that the same look has already found.
    fn may_be_taken(&mut self, place: usize, chosen: &[usize]) -> Result<(), bool> {
        let job = &self.queue.jobs[place];
        let is_taken = |other: &usize| self.queue.jobs[*other].is_taken();
        let running: Vec<usize> = (0..self.queue.jobs.len())
            .filter(is_taken)
            .chain(chosen.iter().copied())
            .collect();
        let item = |place: usize| self.queue.jobs[place].item.as_str();
        let is_of_repo = |other: &&usize| {
            repo(item(**other)).is_some() && repo(item(**other)) == repo(&job.item)
        };
        let in_repo = running.iter().filter(is_of_repo).count();
        let is_dir_used = self.shares_dir(place)
            && (running.iter().any(|other| self.shares_dir(*other))
                || self.open_there().is_some_and(|open| !self.is_over(open)));
        if !job.wait().is_some_and(|wait| wait.is_over(self.now)) {
            return Err(false);
        }
        if let Some(why) = self.parks(place) {
            self.queue.park(place, Wait::parked(why, None)).unwrap();
            return Err(true);
        }
        let is_full = running.len() >= LIMITS.concurrency || in_repo >= PER_REPO as usize;
        if is_full || is_dir_used {
            return Err(false);
        }
        Ok(())
    }

    fn take(&mut self, place: usize, again: bool) -> Answer {
        if self.queue.is_next(place).is_err() || self.may_be_taken(place, &[]).is_err() {
            return no("not_yet");
        }
        let number = self.queue.take(place).unwrap();
        let before = self.attempts.iter().rfind(|attempt| attempt.job == place);
        let runner = match before.filter(|one| again && one.run == Run::None && self.lives(one)) {
            Some(before) => before.runner,
            None => {
                self.runners.push(true);
                self.runners.len() as u32 - 1
            }
        };
        self.attempts.push(Attempt {
            job: place,
            number,
            runner,
            run: Run::None,
            agent_lives: false,
            begun_at: 0,
            returned: false,
        });
        Answer::Taken {
            attempt: number,
            events: self.queue.jobs[place].events.clone(),
        }
    }

    fn start(&mut self, which: usize) -> Answer {
        let Attempt { job, number, .. } = self.attempts[which];
        if self.parked > self.now {
            return no("parked");
        }
        if self.holder(job) != Some(which) || self.queue.jobs[job].state != JobPhase::Starting {
            return no("late");
        }
        // A run that was left open has the conversation, and the directory.
        let of = &self.queue.jobs[job].conversation;
        let open = self.attempts.iter().find(|other| {
            let is_open = matches!(other.run, Run::Starting | Run::Begun);
            is_open && self.queue.jobs[other.job].conversation == *of
        });
        let in_dir = self.open_there().filter(|_| self.shares_dir(job));
        if let Some(open) = open.or(in_dir) {
            return no(if self.is_over(open) { "settle" } else { "held" });
        }
        let run = run_id(which).to_string();
        self.queue.start(job, number, &run).unwrap();
        let attempt = &mut self.attempts[which];
        (attempt.run, attempt.agent_lives) = (Run::Starting, true);
        Answer::Done
    }

    fn begin(&mut self, which: usize) -> Answer {
        let Attempt { job, number, .. } = self.attempts[which];
        match self.attempts[which].run {
            Run::Over => return no("not_running"),
            Run::Begun => return Answer::Done,
            Run::None | Run::Starting => {}
        }
        if self.queue.begin(job, number).is_err() {
            self.late += 1;
            return no("late");
        }
        self.attempts[which].run = Run::Begun;
        self.attempts[which].begun_at = self.now;
        *self
            .runs
            .entry(self.queue.jobs[job].item.clone())
            .or_default() += 1;
        Answer::Done
    }

    fn give_back(&mut self, which: usize, back: &Back) -> Answer {
        let Attempt { job, number, .. } = self.attempts[which];
        self.attempts[which].returned = true;
        let back = timed(back, self.now);
        match self.queue.give_back(job, number, &back, self.now) {
            Ok(()) => Answer::Done,
            Err(_) => {
                self.late += 1;
                no("late")
            }
        }
    }

    /// The end of a run, and of what it is for.
    fn end(&mut self, which: usize, outcome: Outcome) -> Answer {
        let Attempt { job, number, .. } = self.attempts[which];
        self.attempts[which].agent_lives = false;
        if self.attempts[which].run == Run::Over {
            return Answer::Done;
        }
        let limit = (outcome == Outcome::Parked).then_some(self.now + LIMIT);
        match (limit, outcome) {
            (Some(until), _) => self.parked = until,
            (None, Outcome::Done) => self.parked = 0,
            _ => {}
        }
        let never_began = self.attempts[which].run == Run::Starting && outcome != Outcome::Stopped;
        let ended = if never_began {
            self.queue.give_back(job, number, &Back::Later, self.now)
        } else {
            self.queue.end(job, number, outcome.as_str(), limit)
        };
        let was_open = matches!(
            self.queue.jobs[job].state,
            JobPhase::Starting | JobPhase::Begun
        );
        let is_newest = self.queue.jobs[job].run == Some(run_id(which).to_string());
        if ended.is_err() && was_open && is_newest {
            self.late += 1;
        }
        self.attempts[which].run = Run::Over;
        Answer::Done
    }

    fn settle(&mut self, which: usize) -> Answer {
        let attempt = &self.attempts[which];
        if attempt.run == Run::Over {
            return Answer::Done;
        }
        if !self.is_over(attempt) {
            return no("not_running");
        }
        self.end(which, Outcome::Interrupted)
    }

    /// Whether an agent works without its runner.
    fn hangs(&self, attempt: &Attempt) -> bool {
        attempt.run == Run::Begun && !self.lives(attempt) && attempt.agent_lives
    }

    fn end_overdue(&mut self) -> Answer {
        let is_overdue = |which: &usize| {
            let one = &self.attempts[*which];
            self.hangs(one) && self.now - one.begun_at >= TIMEOUT
        };
        let overdue: Vec<usize> = (0..self.attempts.len()).filter(is_overdue).collect();
        for which in &overdue {
            self.end(*which, Outcome::Timeout);
        }
        let ids = overdue.iter().map(|which| run_id(*which).to_string());
        Answer::TimedOut(ids.collect())
    }

    fn sweep(&mut self) -> Answer {
        let (mut returned, mut settle) = (Vec::new(), Vec::new());
        let mut taken: Vec<usize> = (0..self.queue.jobs.len())
            .filter(|place| self.queue.jobs[*place].is_taken())
            .collect();
        taken.sort_by_key(|place| self.queue.jobs[*place].conversation.clone());
        for place in taken {
            let which = self.holder(place).unwrap();
            if self.lives(&self.attempts[which]) {
                continue;
            }
            // The run that it has, be it of an earlier attempt.
            let run = self.queue.jobs[place].run.clone();
            let is_run = |which: &usize| run == Some(run_id(*which).to_string());
            let of = (0..self.attempts.len()).find(is_run);
            let is_open = of.is_some_and(|of| self.attempts[of].run != Run::Over);
            if is_open {
                settle.extend(run);
            } else if self.queue.jobs[place].state == JobPhase::Starting {
                let number = self.attempts[which].number;
                let back = self.queue.give_back(place, number, &Back::Later, self.now);
                back.unwrap();
                returned.push(self.queue.jobs[place].id.clone());
            }
        }
        Answer::Swept { returned, settle }
    }

    fn look(&mut self) -> Answer {
        let (mut chosen, mut parked) = (Vec::new(), Vec::new());
        let mut places: Vec<usize> = (0..self.queue.jobs.len()).collect();
        places.sort_by_key(|place| (self.created[*place], &self.queue.jobs[*place].id));
        for place in places {
            let is_open = self.queue.jobs[place].is_open();
            if !is_open || self.queue.is_next(place).is_err() {
                continue;
            }
            let id = self.queue.jobs[place].id.clone();
            match self.may_be_taken(place, &chosen) {
                Ok(()) => chosen.push(place),
                Err(true) => parked.push(id),
                Err(false) => {}
            }
        }
        let id = |place: &usize| self.queue.jobs[*place].id.clone();
        Answer::Looked {
            jobs: chosen.iter().map(id).collect(),
            parked,
        }
    }

    /// Only jobs that wait because their conversation cannot be resumed are touched.
    fn reset(&mut self, item: usize) -> Answer {
        for place in 0..self.queue.jobs.len() {
            let job = &self.queue.jobs[place];
            let parked = job.wait().and_then(|wait| wait.parked);
            if job.conversation == conversation(item) && parked == Some("unusable") {
                self.queue.retry(place).unwrap();
            }
        }
        Answer::Done
    }

    fn close(&mut self, item: usize) -> Answer {
        self.closed.insert(item);
        let mut cancelled = Vec::new();
        for place in 0..self.queue.jobs.len() {
            let job = &self.queue.jobs[place];
            let mut asked_by = job
                .events
                .iter()
                .map(|event| self.asked_by[*event as usize]);
            // An open item that asked for the job as well still wants it.
            if job.item != ITEMS[item] || asked_by.any(|other| !self.closed.contains(&other)) {
                continue;
            }
            if self.queue.cancel(place).is_ok() {
                cancelled.push(self.queue.jobs[place].id.clone());
            }
        }
        Answer::Cancelled(cancelled)
    }
}

fn queued(job: String, joined: bool, duplicate: bool) -> Answer {
    Answer::Queued {
        job,
        joined,
        duplicate,
    }
}

/// With a time that begins now.
pub fn timed(back: &Back, now: i64) -> Back {
    match back {
        Back::Parked(Wait {
            parked,
            until: Some(length),
        }) => Back::Parked(Wait {
            parked: *parked,
            until: Some(now + length),
        }),
        other => other.clone(),
    }
}

impl ReferenceStateMachine for World {
    type State = World;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<World> {
        Just(World::empty()).boxed()
    }

    fn transitions(world: &World) -> BoxedStrategy<Step> {
        if world.attempts.iter().any(|one| world.hangs(one)) {
            any_step_while_hanging()
        } else {
            any_step()
        }
    }

    fn preconditions(world: &World, step: &Step) -> bool {
        let attempt = |back: &usize| match world.attempts.len() {
            0 => None,
            count => Some(&world.attempts[newest(*back, count)]),
        };
        match step {
            Step::Redeliver(_) => !world.deliveries.is_empty(),
            Step::Take { .. } | Step::Cancel(_) | Step::Retry(_) => !world.queue.jobs.is_empty(),
            Step::Start(which) => {
                attempt(which).is_some_and(|one| one.run == Run::None && world.lives(one))
            }
            // A process that returned its job does not go on with its run.
            Step::Begin(which) => attempt(which)
                .is_some_and(|one| one.run != Run::None && world.lives(one) && !one.returned),
            Step::GiveBack(which, _) => attempt(which).is_some_and(|one| world.lives(one)),
            Step::End(which, _) | Step::Settle(which) => {
                attempt(which).is_some_and(|one| one.run != Run::None)
            }
            Step::KillRunner(which) => attempt(which).is_some_and(|one| world.lives(one)),
            Step::KillAgent(which) => attempt(which).is_some_and(|one| one.agent_lives),
            _ => true,
        }
    }

    fn apply(mut world: World, step: &Step) -> World {
        let attempt = |world: &World, back: usize| newest(back, world.attempts.len());
        let job = |world: &World, back: usize| newest(back, world.queue.jobs.len());
        let acted = |result: Result<(), _>| match result {
            Ok(()) => Answer::Done,
            Err(_) => no("wrong_state"),
        };
        let answer = match step {
            Step::Deliver { item, rule, person } => world.deliver(*item, *rule, *person),
            Step::Enqueue(which) => world.enqueue(SHARING[*which]),
            Step::SeeRepository { id, deleted } => {
                world.repository.see(*id, *deleted);
                Answer::Done
            }
            Step::Redeliver(back) => world.redeliver(newest(*back, world.deliveries.len())),
            Step::Take { job: back, again } => {
                let place = job(&world, *back);
                world.take(place, *again)
            }
            Step::Start(back) => {
                let which = attempt(&world, *back);
                world.start(which)
            }
            Step::Begin(back) => {
                let which = attempt(&world, *back);
                world.begin(which)
            }
            Step::GiveBack(back, how) => {
                let which = attempt(&world, *back);
                world.give_back(which, how)
            }
            Step::End(back, outcome) => {
                let which = attempt(&world, *back);
                world.end(which, *outcome)
            }
            Step::Settle(back) => {
                let which = attempt(&world, *back);
                world.settle(which)
            }
            Step::KillRunner(back) => {
                let which = attempt(&world, *back);
                let runner = world.attempts[which].runner as usize;
                world.runners[runner] = false;
                // An agent that waits for its runner to let it go dies with it.
                for one in &mut world.attempts {
                    if one.runner as usize == runner && one.run == Run::Starting {
                        one.agent_lives = false;
                    }
                }
                Answer::Done
            }
            Step::KillAgent(back) => {
                let which = attempt(&world, *back);
                world.attempts[which].agent_lives = false;
                Answer::Done
            }
            Step::EndOverdue => world.end_overdue(),
            Step::Sweep => world.sweep(),
            Step::Look => world.look(),
            Step::Cancel(back) => {
                let place = job(&world, *back);
                acted(world.queue.cancel(place))
            }
            Step::Retry(back) => {
                let place = job(&world, *back);
                world.retry(place)
            }
            Step::Close(item) => world.close(*item),
            Step::Reopen(item) => {
                world.closed.remove(item);
                Answer::Done
            }
            Step::Reset(item) => world.reset(*item),
            Step::Advance(millis) => {
                world.now += millis;
                Answer::Done
            }
            Step::SetBack(millis) => {
                world.now -= millis;
                Answer::Done
            }
        };
        world.answer = Some(answer);
        world
    }
}
