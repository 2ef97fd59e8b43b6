//! What can happen, and what is answered.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tenure_chaos::queue::model::{Back, Wait};
use tenure_core::run::Outcome;

use crate::world::{ITEMS, RULES, SHARING};

#[derive(Debug, Clone)]
pub enum Step {
    Deliver {
        item: usize,
        rule: usize,
        person: bool,
    },
    /// A command asks for work in a directory that several items share.
    Enqueue(usize),
    /// An event tells which id the repository has, or that it was deleted.
    SeeRepository {
        id: u64,
        deleted: bool,
    },
    /// A delivery comes a second time.
    Redeliver(usize),
    /// Takes a job, with a new runner or the one that took it before and recorded no run.
    Take {
        job: usize,
        again: bool,
    },
    Start(usize),
    Begin(usize),
    GiveBack(usize, Back),
    End(usize, Outcome),
    /// Somebody else records the end of a run.
    Settle(usize),
    KillRunner(usize),
    KillAgent(usize),
    /// Agents whose runners died are ended when their time is over.
    EndOverdue,
    Sweep,
    Look,
    Cancel(usize),
    Retry(usize),
    Close(usize),
    Reopen(usize),
    /// The conversations of an item are dropped, those with a run when it ends; what waits stays.
    Reset(usize),
    Advance(i64),
    /// Somebody sets the wall clock back.
    SetBack(i64),
}

/// What a step is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Done,
    /// The kind of the error.
    No(String),
    Queued {
        job: String,
        joined: bool,
        duplicate: bool,
    },
    Taken {
        attempt: u32,
        events: Vec<u64>,
    },
    Looked {
        jobs: Vec<String>,
        parked: Vec<String>,
    },
    Swept {
        returned: Vec<String>,
        settle: Vec<String>,
    },
    Cancelled(Vec<String>),
    /// The runs, in any order.
    TimedOut(BTreeSet<String>),
}

pub fn no(kind: &str) -> Answer {
    Answer::No(kind.to_owned())
}

fn any_back() -> impl Strategy<Value = Back> {
    prop_oneof![
        2 => Just(Back::Again),
        4 => Just(Back::Later),
        1 => Just(Back::InUse),
        2 => Just(Back::Away),
        1 => Just(Back::Cancel),
        1 => Just(Back::Parked(Wait::parked("unusable", None))),
        1 => Just(Back::Parked(Wait::parked("limit", Some(60_000)))),
    ]
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => Just(Outcome::Done),
        2 => Just(Outcome::Failed),
        1 => Just(Outcome::Refused),
        1 => Just(Outcome::Timeout),
        2 => Just(Outcome::Stopped),
        2 => Just(Outcome::Interrupted),
        1 => Just(Outcome::Unusable),
        2 => Just(Outcome::Parked),
    ]
}

/// Anything that can happen.
pub fn any_step() -> BoxedStrategy<Step> {
    let item = || 0..ITEMS.len();
    let job = || 0..4_usize;
    let attempt = || prop_oneof![4 => Just(0_usize), 3 => Just(1), 1 => 2..5_usize];
    let person = prop::bool::weighted(0.3);
    prop_oneof![
        10 => (item(), 0..RULES.len(), person)
            .prop_map(|(item, rule, person)| Step::Deliver { item, rule, person }),
        4 => (0..SHARING.len()).prop_map(Step::Enqueue),
        2 => (1..3_u64, prop::bool::weighted(0.2))
            .prop_map(|(id, deleted)| Step::SeeRepository { id, deleted }),
        1 => (0..6_usize).prop_map(Step::Redeliver),
        12 => (job(), prop::bool::weighted(0.4)).prop_map(|(job, again)| Step::Take { job, again }),
        10 => attempt().prop_map(Step::Start),
        8 => attempt().prop_map(Step::Begin),
        6 => (attempt(), any_back()).prop_map(|(which, back)| Step::GiveBack(which, back)),
        7 => (attempt(), any_outcome()).prop_map(|(which, outcome)| Step::End(which, outcome)),
        3 => attempt().prop_map(Step::Settle),
        3 => attempt().prop_map(Step::KillRunner),
        2 => attempt().prop_map(Step::KillAgent),
        3 => Just(Step::EndOverdue),
        4 => Just(Step::Sweep),
        3 => Just(Step::Look),
        1 => job().prop_map(Step::Cancel),
        2 => job().prop_map(Step::Retry),
        1 => item().prop_map(Step::Close),
        1 => item().prop_map(Step::Reopen),
        2 => item().prop_map(Step::Reset),
        3 => prop::sample::select(vec![1, 999, 10_000, 80_000, 299_999, 300_001]).prop_map(Step::Advance),
        1 => prop::sample::select(vec![1, 5_000, 400_000]).prop_map(Step::SetBack),
    ]
    .boxed()
}

/// While an agent hangs without its runner: time passes, and what is overdue is looked for.
pub fn any_step_while_hanging() -> BoxedStrategy<Step> {
    let late = || Just(Step::Advance(80_000));
    prop_oneof![4 => any_step(), 1 => late(), 1 => Just(Step::EndOverdue)].boxed()
}
