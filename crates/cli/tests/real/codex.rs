//! Codex with tenure's hooks. Its session is the Rust program, never the node wrapper around it; nor does
//! the sandbox of its shell tool hide who it is.

use tenure_testkit::real::Real;
use tenure_testkit::{poll, real::RealWorld};

use crate::state::{
    LONG, Left, assert_process, holder, hooked, in_conversation, kill9, of_process, only, other,
    sessions, times_told,
};

const KIND: Real = Real::Codex;
const KEY: &str = "wp:041/WP03";

#[test]
#[ignore = "runs a real agent"]
fn a_name_that_codex_does_not_know_is_a_new_conversation_and_so_a_session_of_its_own() {
    let world = hooked(KIND);
    let agent = world.agent(KIND);
    let running = agent.fresh("MOCK:hold here").start();
    let session = of_process(&world, running.agent_pid());
    let named = agent.resume("nobody", "hello").run().ok();
    let new = in_conversation(&world, &named.id());
    assert_ne!(new["id"], session["id"]);
    world.mock().release("here");
    let id = running.wait().ok().id();
    assert_eq!(in_conversation(&world, &id)["id"], session["id"]);
    assert_eq!(sessions(&world).len(), 2);
}

#[test]
#[ignore = "runs a real agent"]
fn a_second_writer_that_codex_refuses_is_no_twin() {
    let world = hooked(KIND);
    let agent = world.agent(KIND);
    let first = agent.fresh("MOCK:hold here").start();
    let id = first.await_id();
    let session = of_process(&world, first.agent_pid());
    let second = agent.resume(&id, "hello").run().fails(1);
    let refusal = "already has an active writer";
    assert!(second.output.stderr.contains(refusal), "{second}");
    let after = only(&world);
    assert_process(&after, first.agent_pid());
    assert_eq!(after["id"], session["id"]);
    assert_eq!(after["state"], "live");
    assert_eq!(after["process"]["life"], 1);
    world.mock().release("here");
    first.wait().ok();
    assert!(!world.mock().was_told("tenure notice"));
    assert_eq!(only(&world)["state"], "ended");
}

#[test]
#[ignore = "runs a real agent"]
fn kill_9_of_the_wrapper_leaves_the_session_alive() {
    let world = hooked(KIND);
    let claimed = Left::new(&world, "claimed");
    let prompt = format!(
        "MOCK:bash {}\nMOCK:hold here\nMOCK:bash tenure guard {KEY}",
        claimed.by(&format!("tenure claim {KEY}"))
    );
    let running = world.agent(KIND).fresh(&prompt).start();
    claimed.text();
    let pid = running.agent_pid();
    running.kill9();
    let session = only(&world);
    assert_process(&session, pid);
    assert_eq!(session["state"], "live");
    assert_eq!(holder(&world, KEY), session["handle"]);
    world.mock().release("here");
    let ended = poll(LONG, "the program comes to its end", || {
        Some(only(&world)).filter(|now| now["state"] != "live")
    });
    assert_eq!(ended["state"], "ended", "{ended:#}");
    assert_eq!(times_told(&world, "yes: this session holds wp:041/WP03"), 1);
}

#[test]
#[ignore = "runs a real agent"]
fn f_h14_after_kill_9_of_the_program_the_next_takes_over_at_once() {
    let world = hooked(KIND);
    let agent = world.agent(KIND);
    let claimed = Left::new(&world, "claimed");
    let prompt = format!(
        "MOCK:bash {}\nMOCK:hold here",
        claimed.by(&format!("tenure claim {KEY}"))
    );
    let running = agent.fresh(&prompt).start();
    claimed.text();
    let pid = running.agent_pid();
    let dead = of_process(&world, pid);
    kill9(pid);
    let taken = Left::new(&world, "taken");
    let prompt = format!(
        "MOCK:bash {}",
        taken.by(&format!("tenure claim {KEY} --json"))
    );
    agent.fresh(&prompt).run().ok();
    let grant = taken.json();
    assert_eq!(grant["claim"]["epoch"], 2, "{grant:#}");
    assert_eq!(grant["claim"]["taken_from"]["handle"], dead["handle"]);
    let all = sessions(&world);
    let buried = all.iter().find(|one| one["id"] == dead["id"]).unwrap();
    assert_eq!(buried["state"], "dead");
    let _wrapper = running.wait();
}

/// What a command said in the sandbox, with its exit code behind it.
fn sandboxed(world: &RealWorld, name: &str, command: &str) -> (Left, String) {
    let left = Left::in_project(world, name);
    let line = format!("MOCK:bash {}", left.by(&format!("{command}; echo code $?")));
    (left, line)
}

#[test]
#[ignore = "runs a real agent"]
fn f_i19_the_default_sandbox_hides_nobody_from_himself() {
    let world = hooked(KIND);
    let me = Left::in_project(&world, "me");
    let (claim, claims) = sandboxed(&world, "claim", &format!("tenure claim {KEY}"));
    let (guard, guards) = sandboxed(&world, "guard", &format!("tenure guard {KEY}"));
    let prompt = format!(
        "MOCK:bash {}\n{claims}\n{guards}\nMOCK:hold here",
        me.by("tenure whoami --json")
    );
    let turn = world.agent(KIND).fresh(&prompt).sandboxed().start();
    let whoami = me.json();
    assert_eq!(whoami["resolved"]["by"], "namespace", "{whoami:#}");
    let evidence = whoami["resolved"]["evidence"].as_str().unwrap();
    assert!(evidence.contains("CODEX_THREAD_ID"), "{evidence}");
    assert_eq!(whoami["session"]["state"], "live");
    let session = of_process(&world, turn.agent_pid());
    assert_eq!(whoami["session"]["id"], session["id"]);
    assert_process(&session, turn.agent_pid());
    assert!(claim.text().contains("code 0"), "{}", claim.text());
    assert!(guard.text().contains("code 0"), "{}", guard.text());
    assert_eq!(holder(&world, KEY), session["handle"]);
    world.mock().release("here");
    let turn = turn.wait().ok();
    assert_eq!(only(&world)["native_id"], turn.id());
    assert_eq!(only(&world)["state"], "ended");
}

#[test]
#[ignore = "runs a real agent"]
fn f_i19_whom_the_sandbox_hides_is_neither_alive_nor_dead_until_a_hook_can_tell() {
    let world = hooked(KIND);
    let holding = other(&world);
    let _claimed = holding.tenure(&["claim", KEY]).ok();
    let command = format!("tenure claim {KEY}");
    let (first, tries) = sandboxed(&world, "first", &command);
    let (second, tries_again) = sandboxed(&world, "second", &command);
    let prompt = format!("{tries}\nMOCK:hold here\n{tries_again}");
    let turn = world.agent(KIND).fresh(&prompt).sandboxed().start();
    assert!(first.text().contains("code 9"), "{}", first.text());
    holding.kill9();
    world.mock().release("here");
    turn.wait().ok();
    assert!(second.text().contains("code 0"), "{}", second.text());
}
