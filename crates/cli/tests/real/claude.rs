//! Claude Code with tenure's hooks: whatever happens to it, tenure's state is what /proc and its files say.
//!
//! Each scenario runs with both versions that are in the field.

use tenure_testkit::real::Real;
use tenure_testkit::{Signal, poll};

use crate::state::{
    LONG, Left, assert_process, handle, holder, hooked, of_process, only, sessions,
};

const KEY: &str = "wp:041/WP03";

both! {
    a_continue_is_the_same_session_again
    a_fork_is_a_session_of_its_own
    f_i06_f_h11_clear_and_compact_keep_the_session_and_its_claims
    f_i08_two_resumes_at_once_are_twins_and_both_are_told
    f_i07_a_nested_claude_is_a_session_of_its_own
    f_i16_an_agent_without_hooks_inside_another_is_nobody
    f_h14_after_kill_9_the_next_takes_over_at_once_and_is_told_of_survivors
    after_kill_9_a_resume_gets_its_claims_back
    sigterm_ends_the_session
}

fn a_continue_is_the_same_session_again(kind: Real) {
    let world = hooked(kind);
    let agent = world.agent(kind);
    let first = agent.fresh("hello").run().ok();
    let session = only(&world);
    let me = Left::new(&world, "me");
    let prompt = format!("MOCK:bash {}", me.by("tenure whoami --json"));
    let second = agent.fresh(&prompt).args(&["--continue"]).run().ok();
    assert_eq!(second.id(), first.id());
    assert_eq!(only(&world)["process"]["life"], 2);
    assert_eq!(me.json()["session"]["id"], session["id"]);
}

fn a_fork_is_a_session_of_its_own(kind: Real) {
    let world = hooked(kind);
    let agent = world.agent(kind);
    let first = agent.fresh("hello").run().ok();
    let parent = only(&world);
    let me = Left::new(&world, "me");
    let prompt = format!("MOCK:bash {}", me.by("tenure whoami --json"));
    let fork = agent
        .resume(&first.id(), &prompt)
        .args(&["--fork-session"])
        .run()
        .ok();
    assert_ne!(fork.id(), first.id());
    let own = me.json()["session"].clone();
    assert_ne!(own["id"], parent["id"], "never the parent's session");
    let all = sessions(&world);
    assert_eq!(all.len(), 2, "{all:#?}");
    let kept = all
        .iter()
        .find(|session| session["id"] == parent["id"])
        .unwrap();
    assert_eq!(kept["native_id"], first.id());
    assert_eq!(kept["process"]["life"], 1);
    let forked = all
        .iter()
        .find(|session| session["id"] == own["id"])
        .unwrap();
    assert_eq!(forked["state"], "ended", "{forked:#}");
}

fn f_i06_f_h11_clear_and_compact_keep_the_session_and_its_claims(kind: Real) {
    let world = hooked(kind);
    let screen =
        world
            .agent(kind)
            .at_terminal(&["--permission-mode", "default", "--allowedTools", "Bash"]);
    let session = of_process(&world, screen.pid());
    assert_process(&session, screen.pid());
    assert_eq!(session["activity"], "idle");
    screen.type_line(&format!("MOCK:bash tenure claim {KEY}"));
    screen.await_text("MOCK-TOOL-DONE");
    screen.type_line("/compact");
    screen.await_text("ompacted");
    screen.type_line("/clear");
    let first = session["native_id"].clone();
    let rotated = poll(LONG, "the conversation is another", || {
        let now = of_process(&world, screen.pid());
        (now["native_id"] != first).then_some(now)
    });
    assert_eq!(rotated["id"], session["id"]);
    assert_eq!(rotated["process"]["life"], 1);
    assert_eq!(rotated["native_ids"].as_array().unwrap().len(), 2);
    assert_eq!(rotated["claims"][0]["key"], KEY, "{rotated:#}");
    assert_eq!(sessions(&world).len(), 1);
    screen.type_line("/exit");
    screen.await_end();
    assert_eq!(only(&world)["state"], "ended");
}

fn f_i08_two_resumes_at_once_are_twins_and_both_are_told(kind: Real) {
    let world = hooked(kind);
    let agent = world.agent(kind);
    let id = agent.fresh("hello").run().ok().id();
    let first = agent.resume(&id, "MOCK:hold one\nMOCK:bash true").start();
    let owner = of_process(&world, first.agent_pid());
    let second = agent.resume(&id, "MOCK:hold two\nMOCK:bash true").start();
    let twin = of_process(&world, second.agent_pid());
    assert_ne!(owner["id"], twin["id"]);
    assert_process(&owner, first.agent_pid());
    assert_process(&twin, second.agent_pid());
    assert_eq!(twin["twin_of"], owner["id"]);
    world.mock().release("one");
    world.mock().release("two");
    let (first, second) = (first.wait(), second.wait());
    let told = |pid: &str| world.mock().was_told(pid);
    assert!(told(&format!("{} (pid", handle(&twin))), "{first}");
    assert!(told(&format!("{} (pid", handle(&owner))), "{second}");
}

fn f_i07_a_nested_claude_is_a_session_of_its_own(kind: Real) {
    let world = hooked(kind);
    let (outer, inner) = (Left::new(&world, "outer"), Left::new(&world, "inner"));
    let nested = format!(
        "claude -p --allowedTools Bash -- 'MOCK:bash {}'",
        inner.by("tenure whoami --json")
    );
    let prompt = format!(
        "MOCK:bash {}\nMOCK:bash {nested}",
        outer.by("tenure whoami --json")
    );
    world.agent(kind).fresh(&prompt).run().ok();
    let (outer, inner) = (outer.json(), inner.json());
    assert_ne!(outer["session"]["id"], inner["session"]["id"]);
    assert_ne!(
        outer["session"]["process"]["pid"],
        inner["session"]["process"]["pid"]
    );
    assert_eq!(
        inner["session"]["parent"], outer["session"]["id"],
        "{inner:#}"
    );
    let all = sessions(&world);
    assert_eq!(all.len(), 2, "{all:#?}");
    assert!(
        all.iter().all(|session| session["state"] == "ended"),
        "{all:#?}"
    );
}

fn f_i16_an_agent_without_hooks_inside_another_is_nobody(kind: Real) {
    let world = hooked(kind);
    let inner = Left::new(&world, "inner");
    let nested = format!(
        "claude --settings '{{\"disableAllHooks\":true}}' -p --allowedTools Bash -- 'MOCK:bash {}'",
        inner.by("tenure claim x:1; echo code $?")
    );
    let prompt = format!("MOCK:bash {nested}");
    world.agent(kind).fresh(&prompt).run().ok();
    assert!(inner.text().contains("code 4"), "{}", inner.text());
    assert_eq!(sessions(&world).len(), 1);
}

fn f_h14_after_kill_9_the_next_takes_over_at_once_and_is_told_of_survivors(kind: Real) {
    let world = hooked(kind);
    let agent = world.agent(kind);
    let tool = Left::new(&world, "tool");
    let prompt = format!(
        "MOCK:bash tenure claim {KEY} && {} && exec sleep 1000",
        tool.by("echo $$")
    );
    let running = agent.fresh(&prompt).start();
    let pid: u32 = tool.text().trim().parse().unwrap();
    let dead = of_process(&world, running.agent_pid());
    running.kill9();
    let taken = Left::new(&world, "taken");
    let prompt = format!(
        "MOCK:bash {}",
        taken.by(&format!("tenure claim {KEY} --json"))
    );
    agent.fresh(&prompt).run().ok();
    let grant = taken.json();
    let from = &grant["claim"]["taken_from"];
    assert_eq!(grant["claim"]["epoch"], 2, "{grant:#}");
    assert_eq!(from["handle"], dead["handle"], "{grant:#}");
    let survivors = from["survivors"].as_array().unwrap();
    let named = survivors.iter().any(|survivor| survivor["pid"] == pid);
    assert!(named, "pid {pid} in {grant:#}");
    let buried = sessions(&world);
    let buried = buried
        .iter()
        .find(|session| session["id"] == dead["id"])
        .unwrap();
    assert_eq!(buried["state"], "dead");
}

fn after_kill_9_a_resume_gets_its_claims_back(kind: Real) {
    let world = hooked(kind);
    let agent = world.agent(kind);
    let claimed = Left::new(&world, "claimed");
    let prompt = format!(
        "MOCK:bash {}\nMOCK:hold here",
        claimed.by(&format!("tenure claim {KEY} --json"))
    );
    let running = agent.fresh(&prompt).start();
    assert_eq!(claimed.json()["claim"]["epoch"], 1);
    let id = running.await_id();
    let session = of_process(&world, running.agent_pid());
    running.kill9();
    let me = Left::new(&world, "me");
    let prompt = format!("MOCK:bash {}", me.by("tenure whoami --json"));
    agent.resume(&id, &prompt).run().ok();
    let again = me.json();
    assert_eq!(again["session"]["id"], session["id"]);
    assert_eq!(again["session"]["process"]["life"], 2);
    assert_eq!(again["session"]["claims"][0]["key"], KEY, "{again:#}");
    assert_eq!(again["session"]["claims"][0]["epoch"], 2);
    assert!(
        world
            .mock()
            .was_told(&format!("Claims given back to you: {KEY}"))
    );
}

fn sigterm_ends_the_session(kind: Real) {
    let world = hooked(kind);
    let claimed = Left::new(&world, "claimed");
    let prompt = format!(
        "MOCK:bash {}\nMOCK:hold here",
        claimed.by(&format!("tenure claim {KEY}"))
    );
    let running = world.agent(kind).fresh(&prompt).start();
    claimed.text();
    let session = of_process(&world, running.agent_pid());
    assert_eq!(holder(&world, KEY), session["handle"]);
    assert!(running.signal(Signal::TERM));
    running.wait().fails(143);
    let ended = only(&world);
    assert_eq!(ended["state"], "ended", "{ended:#}");
    assert!(holder(&world, KEY).is_null());
}
