//! One at a time: a person in the conversation, and a second run, keep a run out.

use tenure_testkit::real::Real;

use super::{Runs, agent_of, text};
use crate::state::of_process;

of! { f_r23_a_person_keeps_the_conversation claude Claude codex Codex gemini Gemini opencode Opencode }
of_two_agents! { [a_second_run_is_refused] }

fn f_r23_a_person_keeps_the_conversation(kind: Real) {
    let runs = Runs::begin(kind);
    runs.run(&["--prompt", "hello"]).ok();
    let run = runs.newest();
    let id = text(&run, "native_id");
    let person = runs.world.agent(kind).resume(id, "MOCK:hold here").start();
    let pid = person.agent_pid();
    let _session = of_process(&runs.world, pid);
    let refused = runs.refused(&[]);
    assert_eq!(refused["kind"], "held", "{refused:#}");
    assert_eq!(refused["pid"], pid, "{refused:#}");
    assert_eq!(runs.all().len(), 1);
    runs.world.mock().release("here");
    let _turn = person.wait().ok();
}

fn a_second_run_is_refused(kind: Real) {
    let runs = Runs::begin(kind);
    let (window, run) = runs.start_held(&[]);
    let refused = runs.refused(&[]);
    assert_eq!(refused["kind"], "held", "{refused:#}");
    assert_eq!(refused["run"]["id"], run["id"], "{refused:#}");
    assert_eq!(agent_of(&runs.newest()), agent_of(&run));
    runs.world.mock().release("here");
    let _said = window.wait().ok();
    assert_eq!(runs.all().len(), 1);
}
