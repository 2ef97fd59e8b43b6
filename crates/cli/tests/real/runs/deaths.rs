//! What is killed with -9 during a run, and what is recorded then.

use tenure_testkit::poll;
use tenure_testkit::real::Real;

use super::{Runs, agent_of, runner_of, text};
use crate::state::{LONG, kill9};

of_each_agent! { [agent_is_killed] }
of_two_agents! { [runner_is_killed both_are_killed window_is_killed] }

fn agent_is_killed(kind: Real) {
    let runs = Runs::begin(kind);
    let (window, run) = runs.start_held(&[]);
    kill9(agent_of(&run));
    let said = window.wait();
    assert_eq!(said.code, 137, "{said}");
    goes_on(&runs);
    runs.cell("kill", "interrupted; goes on in its conversation");
}

/// The newest run was cut off; the next one goes on where it was.
#[track_caller]
fn goes_on(runs: &Runs) {
    let cut = runs.until("it is over", |run| run["state"] == "ended");
    assert_eq!(cut["outcome"], "interrupted", "{cut:#}");
    runs.world.mock().release("here");
    let resume = ["runs", "resume", text(&cut, "id")];
    let said = runs.world.tenure(&resume).ok();
    let next = runs.newest();
    assert_eq!(next["outcome"], "done", "{next:#}\n{said}");
    assert_eq!(next["before"], cut["native_id"], "{next:#}");
    assert_eq!(next["native_id"], cut["native_id"], "{next:#}");
    let last = runs.last_step();
    assert!(last.says("Your last turn was cut off"), "{:#}", last.body);
    assert!(last.says("MOCK:hold here"), "{:#}", last.body);
}

/// The agent goes on, and its end is recorded as its log shows it.
fn runner_is_killed(kind: Real) {
    let runs = Runs::begin(kind);
    let (window, run) = runs.start_held(&[]);
    kill9(runner_of(&run));
    let left = runs.newest();
    assert_eq!(
        (&left["state"], &left["runner"]),
        (&"running".into(), &"dead".into()),
        "{left:#}"
    );
    runs.world.mock().release("here");
    let said = window.wait().ok();
    assert!(said.stdout.starts_with("MOCK-TOOL-DONE"), "{said}");
    let run = runs.until("it is over", |run| run["state"] == "ended");
    assert_eq!(run["outcome"], "done", "{run:#}");
}

fn both_are_killed(kind: Real) {
    let runs = Runs::begin(kind);
    let (window, run) = runs.start_held(&[]);
    let (agent, runner) = (agent_of(&run), runner_of(&run));
    window.kill9();
    kill9(runner);
    kill9(agent);
    goes_on(&runs);
}

fn window_is_killed(kind: Real) {
    let runs = Runs::begin(kind);
    let (window, run) = runs.start_held(&[]);
    window.kill9();
    assert_eq!(runs.newest()["runner"], "live", "{run:#}");
    runs.world.mock().release("here");
    let ended = poll(LONG, "it is over", || {
        Some(runs.newest()).filter(|run| run["state"] == "ended")
    });
    assert_eq!(ended["outcome"], "done", "{ended:#}");
}
