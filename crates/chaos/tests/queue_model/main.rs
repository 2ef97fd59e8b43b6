//! The model of the queue against the service in process: events arrive and join, runners take jobs, start, begin,
//! end, return what they took, die and report late, people cancel and retry, items close, a repository gets another id
//! or is deleted, commands ask for work in a directory that they share, agents without a runner hang past their timeout,
//! the clock goes on and back. After every step every job must be as the model says.
//!
//! Runs are recorded as a runner records them. What the model does not know is kept here: which processes live, which
//! runs are open and where, how many runs an item had since a person asked, whether a repository is in doubt, and until
//! when the agent is parked.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod races;
mod real;
mod repository;
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
        cases: 200,
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

#[test]
fn another_id_of_a_repository_or_its_deletion_parks_its_jobs_until_a_person_believes_it() {
    let see = |id, deleted| Step::SeeRepository { id, deleted };
    let of = |item| Step::Deliver {
        item,
        rule: 0,
        person: true,
    };
    let both = [see(1, false), of(3), of(4)];
    for doubt in [see(2, false), see(1, true)] {
        // A late event of the first id changes nothing, nor does a person who asks for more.
        let parks = [doubt, Step::Look, see(1, false), of(3), TAKE];
        // One that runs is not touched, and its other job waits.
        let retry = [Step::Retry(0), TAKE, Step::Start(0), Step::Begin(0)];
        let runs = [see(3, false), Step::End(0, Outcome::Done), Step::Look, TAKE];
        replay(&[&both[..], &parks[..], &retry[..], &runs[..]].concat());
    }
}

/// The second one's turn comes when the first one's agent is dead, whatever became of its runner.
#[test]
fn of_commands_that_share_a_directory_one_runs_at_a_time() {
    let take = |job| Step::Take { job, again: false };
    let one = [Step::Enqueue(0), Step::Enqueue(1), Step::Look];
    let runs = [take(1), Step::Start(0), Step::Begin(0), take(0), Step::Look];
    let dies = [Step::KillRunner(0), Step::Sweep, take(0)];
    let ends = [Step::KillAgent(0), Step::Settle(0), Step::Look, take(0)];
    let next = [Step::Start(0), Step::Begin(0)];
    replay(&[&one[..], &runs, &dies, &ends, &next].concat());
}

#[test]
fn an_agent_that_hangs_without_its_runner_ends_at_its_timeout_and_not_before() {
    let runs = [DELIVER, TAKE, Step::Start(0), Step::Begin(0)];
    let late = Step::Advance(80_000);
    let listens = [late.clone(), Step::EndOverdue];
    replay(&[&runs[..], &listens].concat());
    let early = [Step::KillRunner(0), Step::EndOverdue, Step::Sweep];
    let next = [DELIVER, late, Step::EndOverdue, Step::Look, TAKE];
    replay(&[&runs[..], &early, &next].concat());
}
