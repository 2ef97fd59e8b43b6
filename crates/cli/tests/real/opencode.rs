//! opencode with tenure's plugin, which is loaded into its one process.

use tenure_testkit::poll;
use tenure_testkit::real::Real;

use crate::state::{
    LONG, Left, assert_process, handle, hooked, of_process, only, other, sessions, times_told,
};

const KIND: Real = Real::Opencode;
const KEY: &str = "wp:041/WP03";

#[test]
#[ignore = "runs a real agent"]
fn a_fresh_turn_is_a_session_of_its_process() {
    let world = hooked(KIND);
    let (me, variable) = (
        Left::in_project(&world, "me"),
        Left::in_project(&world, "variable"),
    );
    let prompt = format!(
        "MOCK:bash {}\nMOCK:bash {}\nMOCK:hold here",
        me.by("tenure whoami --json"),
        variable.by("printenv TENURE_SESSION")
    );
    let turn = world.agent(KIND).fresh(&prompt).start();
    let whoami = me.json();
    let session = &whoami["session"];
    assert_process(session, turn.agent_pid());
    assert_eq!(session["state"], "live");
    assert_eq!(session["activity"], "busy");
    assert_eq!(whoami["resolved"]["by"], "ancestry");
    let token = variable.text();
    let id = session["id"].as_str().unwrap();
    assert!(token.starts_with(id), "{token} of {id}");
    world.mock().release("here");
    let turn = turn.wait().ok();
    let told = format!("tenure knows this session as {}", handle(session));
    assert_eq!(times_told(&world, &told), 1);
    let after = only(&world);
    assert_eq!(after["id"], session["id"]);
    assert_eq!(after["native_id"], turn.id());
    assert_ne!(after["state"], "live", "{after:#}");
    // Its only turn was over: it left, and is not offered for a resume.
    assert_eq!(after["end_kind"], "left", "{after:#}");
}

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
fn a_resume_is_the_same_session_again_and_is_told_who_it_is() {
    let world = hooked(KIND);
    let agent = world.agent(KIND);
    let first = agent.fresh("hello").run().ok();
    let session = only(&world);
    let (me, variable) = (
        Left::in_project(&world, "me"),
        Left::in_project(&world, "variable"),
    );
    let prompt = format!(
        "MOCK:bash {}\nMOCK:bash {}\nMOCK:hold here",
        me.by("tenure whoami --json"),
        variable.by("printenv TENURE_SESSION")
    );
    let again = agent.resume(&first.id(), &prompt).start();
    let resumed = me.json()["session"].clone();
    assert_process(&resumed, again.agent_pid());
    assert_eq!(resumed["id"], session["id"]);
    assert_eq!(resumed["process"]["life"], 2);
    assert!(variable.text().trim().ends_with('2'), "{}", variable.text());
    world.mock().release("here");
    assert_eq!(again.wait().ok().id(), first.id());
    assert_eq!(sessions(&world).len(), 1);
    // Once in each life.
    let told = format!("tenure knows this session as {}", handle(&session));
    assert_eq!(times_told(&world, &told), 2);
}

#[test]
#[ignore = "runs a real agent"]
fn f_h10_resuming_what_nobody_knows_changes_nothing() {
    let world = hooked(KIND);
    let agent = world.agent(KIND);
    let running = agent.fresh("MOCK:hold here").start();
    let session = of_process(&world, running.agent_pid());
    agent.resume(KIND.nobody(), "hello").run().fails(1);
    let after = only(&world);
    assert_eq!(after["id"], session["id"]);
    assert_eq!(after["state"], "live");
    world.mock().release("here");
    running.wait().ok();
    assert_eq!(sessions(&world).len(), 1);
}

#[test]
#[ignore = "runs a real agent"]
fn a_loser_is_told_once() {
    let world = hooked(KIND);
    let claimed = Left::in_project(&world, "claimed");
    let prompt = format!(
        "MOCK:bash {}\nMOCK:hold here\nMOCK:bash true\nMOCK:bash true",
        claimed.by(&format!("tenure claim {KEY}"))
    );
    let running = world.agent(KIND).fresh(&prompt).start();
    claimed.text();
    let taker = other(&world);
    let _taken = taker
        .tenure(&["takeover", KEY, "--reason", "it is urgent"])
        .ok();
    world.mock().release("here");
    running.wait().ok();
    assert_eq!(times_told(&world, "tenure notice (lost)"), 1);
}
