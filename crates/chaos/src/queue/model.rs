//! The model of the queue: jobs, their takers, and which change is allowed when.
//!
//! It shares nothing with the product's own state machine. Jobs are kept in the order in which they
//! were accepted. Of a conversation only the oldest open job may be taken, and only while no other
//! one is taken.

use std::fmt;

/// How many times in a row a job may be taken without its agent starting.
pub const MAX_FAILURES: u32 = 6;

/// Why a change is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// The job does not exist.
    Unknown,
    /// Another attempt has the job, or it is over.
    Late,
    /// The state does not allow it.
    State(JobPhase),
    /// Another job of the conversation is running.
    Taken(String),
    /// Another job of the conversation is older.
    Older(String),
    /// It waits for a time that has not come.
    Early,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Unknown => write!(f, "there is no such job"),
            Wrong::Late => write!(f, "another attempt has it, or it is over"),
            Wrong::State(state) => write!(f, "it is {state:?}"),
            Wrong::Taken(other) => write!(f, "{other} of the same conversation is taken"),
            Wrong::Older(other) => write!(f, "{other} of the same conversation is older"),
            Wrong::Early => write!(f, "it waits for a time that has not come"),
        }
    }
}

/// Until when a job waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wait {
    /// Why it is parked; none for a queued job.
    pub parked: Option<&'static str>,
    /// In milliseconds; a parked job without a time waits for a person.
    pub until: Option<i64>,
}

impl Wait {
    pub fn until(at: i64) -> Self {
        Self {
            parked: None,
            until: Some(at),
        }
    }

    pub fn parked(reason: &'static str, until: Option<i64>) -> Self {
        Self {
            parked: Some(reason),
            until,
        }
    }

    /// Whether the time has come.
    pub fn is_over(&self, now: i64) -> bool {
        match (self.parked, self.until) {
            (None, None) => true,
            (Some(_), None) => false,
            (_, Some(until)) => until <= now,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobPhase {
    Waiting(Wait),
    Starting,
    Begun,
    /// With the outcome of its run.
    Ended(String),
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelJob {
    pub id: String,
    pub conversation: String,
    pub item: String,
    pub rule: String,
    /// The events that asked for it.
    pub events: Vec<u64>,
    pub state: JobPhase,
    pub attempt: u32,
    pub failures: u32,
    /// The run of this attempt, or of an earlier one.
    pub run: Option<String>,
    /// The attempts in which its agent was let go.
    pub begun_in: Vec<u32>,
}

impl ModelJob {
    pub fn is_open(&self) -> bool {
        !matches!(self.state, JobPhase::Ended(_) | JobPhase::Cancelled)
    }

    pub fn is_taken(&self) -> bool {
        matches!(self.state, JobPhase::Starting | JobPhase::Begun)
    }

    pub fn wait(&self) -> Option<&Wait> {
        match &self.state {
            JobPhase::Waiting(wait) => Some(wait),
            _ => None,
        }
    }
}

/// What happens to a job whose agent did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Back {
    /// Tried again at once.
    Again,
    /// Tried again later, up to a number of failures.
    Later,
    /// Tried again later, without a limit.
    InUse,
    /// The same, because something is away.
    Away,
    Parked(Wait),
    /// Cancelled, because its request is no longer permitted.
    Cancel,
}

/// All jobs, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    pub jobs: Vec<ModelJob>,
}

impl Queue {
    pub fn place(&self, id: &str) -> Result<usize, Wrong> {
        let place = self.jobs.iter().position(|job| job.id == id);
        place.ok_or(Wrong::Unknown)
    }

    pub fn taken(&self) -> impl Iterator<Item = &ModelJob> {
        self.jobs.iter().filter(|job| job.is_taken())
    }

    fn open_of<'q>(&'q self, conversation: &'q str) -> impl Iterator<Item = &'q ModelJob> {
        let is_of = move |job: &&ModelJob| job.is_open() && job.conversation == conversation;
        self.jobs.iter().filter(is_of)
    }

    /// The job that an event of this conversation and rule joins, whichever of its items it is about.
    pub fn joins(&self, conversation: &str, rule: &str) -> Option<usize> {
        self.jobs.iter().rposition(|job| {
            let waits = job.wait().is_some() && job.conversation == conversation;
            waits && job.rule == rule
        })
    }

    /// Adds a job after all others.
    pub fn add(&mut self, id: &str, conversation: &str, item: &str, rule: &str, event: u64) {
        self.jobs.push(ModelJob {
            id: id.to_owned(),
            conversation: conversation.to_owned(),
            item: item.to_owned(),
            rule: rule.to_owned(),
            events: vec![event],
            state: JobPhase::Waiting(Wait::default()),
            attempt: 0,
            failures: 0,
            run: None,
            begun_in: Vec::new(),
        });
    }

    /// Checks that no other job of its conversation comes before a job.
    pub fn is_next(&self, place: usize) -> Result<(), Wrong> {
        let job = &self.jobs[place];
        let mut of = self.open_of(&job.conversation);
        if let Some(taken) = of.find(|other| other.is_taken()) {
            return Err(Wrong::Taken(taken.id.clone()));
        }
        match self.open_of(&job.conversation).next() {
            Some(first) if first.id != job.id => Err(Wrong::Older(first.id.clone())),
            _ => Ok(()),
        }
    }

    /// A runner takes a job; returns the attempt.
    pub fn take(&mut self, place: usize) -> Result<u32, Wrong> {
        self.is_next(place)?;
        let job = &mut self.jobs[place];
        if job.wait().is_none() {
            return Err(Wrong::State(job.state.clone()));
        }
        job.state = JobPhase::Starting;
        job.attempt += 1;
        Ok(job.attempt)
    }

    fn taken_in(&mut self, place: usize, attempt: u32) -> Result<&mut ModelJob, Wrong> {
        let job = &mut self.jobs[place];
        if job.attempt == attempt && job.is_taken() {
            Ok(job)
        } else {
            Err(Wrong::Late)
        }
    }

    fn starting_in(&mut self, place: usize, attempt: u32) -> Result<&mut ModelJob, Wrong> {
        let job = self.taken_in(place, attempt)?;
        if job.state == JobPhase::Starting {
            Ok(job)
        } else {
            Err(Wrong::Late)
        }
    }

    /// Records the run of an attempt.
    pub fn start(&mut self, place: usize, attempt: u32, run: &str) -> Result<(), Wrong> {
        self.starting_in(place, attempt)?.run = Some(run.to_owned());
        Ok(())
    }

    /// Records that its agent was let go.
    pub fn begin(&mut self, place: usize, attempt: u32) -> Result<(), Wrong> {
        let job = self.starting_in(place, attempt)?;
        job.state = JobPhase::Begun;
        job.failures = 0;
        job.begun_in.push(attempt);
        Ok(())
    }

    /// Ends an attempt before its agent was let go.
    pub fn give_back(
        &mut self,
        place: usize,
        attempt: u32,
        back: &Back,
        now: i64,
    ) -> Result<(), Wrong> {
        let job = self.starting_in(place, attempt)?;
        let wait = match back {
            Back::Again => Wait::default(),
            Back::Parked(wait) => wait.clone(),
            Back::Cancel => {
                job.state = JobPhase::Cancelled;
                return Ok(());
            }
            Back::Later | Back::InUse | Back::Away => {
                job.failures += 1;
                let (first, most) = if *back == Back::InUse {
                    (1, 30)
                } else {
                    (10, 300)
                };
                let seconds = (1..job.failures).fold(first, |all: i64, _| (all * 2).min(most));
                if *back == Back::Later && job.failures >= MAX_FAILURES {
                    Wait::parked("attempts", None)
                } else {
                    Wait::until(now + seconds * 1000)
                }
            }
        };
        job.state = JobPhase::Waiting(wait);
        Ok(())
    }

    /// Ends the run of an attempt; with a time, the job only waits until then.
    pub fn end(
        &mut self,
        place: usize,
        attempt: u32,
        outcome: &str,
        limit: Option<i64>,
    ) -> Result<(), Wrong> {
        let job = self.taken_in(place, attempt)?;
        job.state = match limit {
            Some(until) => JobPhase::Waiting(Wait::parked("limit", Some(until))),
            None => JobPhase::Ended(outcome.to_owned()),
        };
        Ok(())
    }

    fn waiting(&mut self, place: usize) -> Result<&mut ModelJob, Wrong> {
        let job = &mut self.jobs[place];
        if job.wait().is_some() {
            Ok(job)
        } else {
            Err(Wrong::State(job.state.clone()))
        }
    }

    /// A new event came: what was put off in its conversation is tried again at once, unless it is parked.
    pub fn wake(&mut self, conversation: &str) {
        let own = self.jobs.iter_mut();
        for job in own.filter(|job| job.conversation == conversation) {
            if matches!(&job.state, JobPhase::Waiting(wait) if wait.parked.is_none()) {
                job.state = JobPhase::Waiting(Wait::default());
            }
        }
    }

    pub fn park(&mut self, place: usize, wait: Wait) -> Result<(), Wrong> {
        self.waiting(place)?.state = JobPhase::Waiting(wait);
        Ok(())
    }

    pub fn cancel(&mut self, place: usize) -> Result<(), Wrong> {
        self.waiting(place)?.state = JobPhase::Cancelled;
        Ok(())
    }

    /// Ends the wait of a job.
    pub fn retry(&mut self, place: usize) -> Result<(), Wrong> {
        let job = self.waiting(place)?;
        if job.wait() == Some(&Wait::default()) {
            return Err(Wrong::State(job.state.clone()));
        }
        job.state = JobPhase::Waiting(Wait::default());
        job.failures = 0;
        Ok(())
    }
}
