//! The model of the queue against the service in process: events arrive and join, runners take jobs, start, begin,
//! end, return what they took, die and report late, people cancel and retry, items close, the clock goes on and
//! back. After every step every job must be as the model says.
//!
//! Runs are recorded as a runner records them. What the model does not know is kept here: which processes live, which
//! runs are open, how many runs an item had since a person asked, and until when the agent is parked.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod races;
mod real;
mod step;
mod world;

use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use tenure_chaos::queue::model::Back;
use tenure_core::run::Outcome;

use crate::real::Real;
use crate::step::Step;
use crate::world::World;

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

prop_state_machine! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_the_rules_of_the_queue_hold(sequential 1..70 => Real);
}

/// Does these steps with the model and the service.
fn replay(steps: &[Step]) {
    let mut world = World::empty();
    let mut real = Real::init_test(&world);
    for step in steps {
        assert!(World::preconditions(&world, step), "{step:?}");
        world = <World as ReferenceStateMachine>::apply(world, step);
        real = <Real as StateMachineTest>::apply(real, &world, step.clone());
    }
}

const DELIVER: Step = Step::Deliver {
    item: 0,
    rule: 0,
    person: false,
};
const TAKE: Step = Step::Take {
    job: 0,
    again: false,
};

/// Three conversations, of which two may run at once.
#[test]
fn a_third_job_waits_while_as_many_run_as_may() {
    let of = |item| Step::Deliver {
        item,
        rule: 0,
        person: false,
    };
    let (second, third) = (of(1), of(3));
    let done = Step::End(1, Outcome::Done);
    let before = [DELIVER, TAKE, second, TAKE, third, TAKE, Step::Look];
    let runs = [Step::Start(1), Step::Begin(1), done, Step::Look, TAKE];
    replay(&[&before[..], &runs[..]].concat());
}

/// A runner that could not let its agent go returned the job, but could not record the end of its run.
#[test]
fn f_r01_the_end_of_a_run_whose_job_another_has_is_recorded_and_changes_nothing_of_the_job() {
    let again = Step::GiveBack(0, Back::Again);
    let late = Step::End(1, Outcome::Interrupted);
    replay(&[DELIVER, TAKE, Step::Start(0), again, TAKE, late]);
}

/// The same process takes the job again: only the number of the attempt tells its calls apart.
#[test]
fn f_r01_an_old_attempt_of_the_same_process_changes_nothing() {
    let again = || Step::GiveBack(0, Back::Again);
    let take_again = Step::Take {
        job: 0,
        again: true,
    };
    let late = Step::GiveBack(1, Back::Later);
    replay(&[DELIVER, TAKE, again(), take_again, Step::Start(1), late]);
}
