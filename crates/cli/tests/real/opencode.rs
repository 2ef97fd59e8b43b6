//! opencode with tenure's plugin, which is loaded into its one process.

use tenure_testkit::poll;
use tenure_testkit::real::Real;

use crate::state::{LONG, Left, handle, hooked, of_process, only, times_told};

const KIND: Real = Real::Opencode;

#[test]
#[ignore = "runs a real agent"]
fn a_turn_that_is_killed_was_cut_off_and_can_be_resumed() {
    let world = hooked(KIND);
    let turn = world.agent(KIND).fresh("MOCK:hold here").start();
    let session = of_process(&world, turn.agent_pid());
    poll(LONG, "its turn began", || {
        (only(&world)["activity"] == "busy").then_some(())
    });
    turn.kill9();
    let after = only(&world);
    assert_eq!(after["end_kind"], "cut_off", "{after:#}");
    let command = format!("tenure resume {}", handle(&session));
    assert_eq!(after["resume"]["command"], command.as_str(), "{after:#}");
}

#[test]
#[ignore = "runs a real agent"]
fn in_each_life_its_tools_and_its_model_are_told_which_session_it_is() {
    let world = hooked(KIND);
    let agent = world.agent(KIND);
    let (first, second) = (
        Left::in_project(&world, "first"),
        Left::in_project(&world, "second"),
    );
    let prompt = |left: &Left| format!("MOCK:bash {}", left.by("printenv TENURE_SESSION"));
    let turn = agent.fresh(&prompt(&first)).run().ok();
    agent.resume(&turn.id(), &prompt(&second)).run().ok();
    let session = only(&world);
    let token = first.text();
    let id = session["id"].as_str().unwrap();
    assert!(token.starts_with(id), "{token} of {id}");
    assert!(second.text().trim().ends_with('2'), "{}", second.text());
    let told = format!("tenure knows this session as {}", handle(&session));
    assert_eq!(times_told(&world, &told), 2);
}
