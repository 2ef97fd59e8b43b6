//! The harness itself: hooks, what runs in the background, the terminal, and what is left behind.

use std::time::Duration;

use tenure_agents::Means;
use tenure_testkit::pinned::{Pinned, Stat};
use tenure_testkit::protocol::Started;
use tenure_testkit::real::Real;
use tenure_testkit::{Signal, poll};

use crate::world;

const LONG: Duration = Duration::from_secs(60);

#[test]
#[ignore = "runs a real agent"]
fn claude_in_the_background_is_held_and_killed_and_leaves_nothing() {
    let world = world();
    let claude = world.agent(Real::Claude);
    let pids = world.scratch().join("pids");
    let running = claude
        .fresh(&format!(
            "MOCK:bash echo $$ $PPID > {0}.new && mv {0}.new {0} && exec sleep 1000",
            pids.display()
        ))
        .start();
    let pids = poll(LONG, "the tool runs", || {
        std::fs::read_to_string(&pids).ok()
    });
    let pids: Vec<u32> = pids
        .split_whitespace()
        .map(|one| one.parse().unwrap())
        .collect();
    assert_eq!(pids[1], running.agent_pid());
    let (pid, start) = (pids[0], Stat::read(pids[0]).unwrap().start);
    let tool = Pinned::open(Started { pid, start }).unwrap();
    running.kill9();
    assert_eq!(running.wait().output.code, 137);
    assert!(!tool.is_gone(), "the tool outlives its agent");
    drop(world);
    assert!(tool.is_gone(), "nothing outlives the world");
}

#[test]
#[ignore = "runs a real agent"]
fn a_turn_that_the_model_holds_goes_on_when_it_is_released() {
    let world = world();
    let running = world
        .agent(Real::Claude)
        .fresh("MOCK:hold here\nand then")
        .start();
    let asked = |asked: &tenure_testkit::RecordedRequest| asked.offers_tools();
    world.mock().await_asked(LONG, "to hold", asked);
    assert!(running.is_alive());
    world.mock().release("here");
    assert_eq!(running.wait().ok().said(), "MOCK-SLEPT");

    let running = world
        .agent(Real::Claude)
        .fresh("MOCK:hold for ever")
        .start();
    let is_second =
        |asked: &tenure_testkit::RecordedRequest| asked.offers_tools() && asked.says("for ever");
    world.mock().await_asked(LONG, "to hold again", is_second);
    assert!(running.signal(Signal::TERM));
    assert!(running.wait().fails(143).of_type("result").next().is_none());
}

#[test]
#[ignore = "runs a real agent"]
fn claude_at_a_terminal_clears_and_compacts() {
    at_terminal(Real::Claude);
}

#[test]
#[ignore = "runs a real agent"]
fn claude_2_1_197_at_a_terminal_clears_and_compacts() {
    at_terminal(Real::ClaudeOld);
}

#[track_caller]
fn at_terminal(kind: Real) {
    let world = world();
    let claude = world.agent(kind);
    let hooked = claude.record_hooks();
    let screen = claude.at_terminal(&[]);
    let starts = |number: usize| {
        screen.until("a session starts", || {
            let starts = hooked.of("SessionStart");
            (starts.len() >= number).then(|| starts[number - 1].clone())
        })
    };
    let first = starts(1);
    assert_eq!(first["source"], "startup");
    // The older one refuses to compact a conversation that is too short.
    for number in 1..=3 {
        screen.type_line("hello");
        screen.await_text("MOCK-OK");
        screen.until("the turn is over", || {
            (hooked.of("Stop").len() >= number).then_some(())
        });
    }
    screen.type_line("/compact");
    let compacted = starts(2);
    assert_eq!(compacted["source"], "compact");
    assert_eq!(compacted["session_id"], first["session_id"]);
    screen.type_line("/clear");
    let cleared = starts(3);
    assert_eq!(cleared["source"], "clear");
    assert_ne!(cleared["session_id"], first["session_id"]);
    screen.type_line("/exit");
    screen.await_end();
    let ends = hooked.of("SessionEnd");
    assert_eq!(ends.last().unwrap()["reason"], "prompt_input_exit");
}

/// The events of a turn with a tool call that matter to everybody, each with the id of the conversation.
#[track_caller]
fn runs_hooks(kind: Real) {
    let heard = |means: Means| {
        let events = kind.adapter().events.iter();
        let asked = events.filter(move |event| event.limit.is_some() && event.means == means);
        asked.map(|event| event.name)
    };
    let wanted = [Means::Start, Means::BeforeTool, Means::AfterTool];
    let ends = kind.says_end().then_some(Means::End);
    let wanted = wanted.into_iter().chain(ends).flat_map(heard);
    events(kind, &wanted.collect::<Vec<_>>(), "/session_id");
}

with_hooks! { [runs_hooks tells_the_model_what_hooks_say] }

#[test]
#[ignore = "runs a real agent"]
fn opencode_runs_hooks() {
    let wanted = [
        "session.created",
        "chat.message",
        "tool.execute.before",
        "session.idle",
    ];
    events(Real::Opencode, &wanted, "/sessionID");
}

#[track_caller]
fn events(kind: Real, wanted: &[&str], id: &str) {
    let world = world();
    let agent = world.agent(kind);
    let hooked = agent.record_hooks();
    let turn = agent.fresh("MOCK:bash echo it").run().ok();
    for event in wanted {
        let payloads = hooked.of(event);
        let all = hooked.events();
        assert!(!payloads.is_empty(), "no {event} in {all:#?}\n{turn}");
        for payload in payloads {
            assert_eq!(
                payload.pointer(id).unwrap(),
                &turn.id(),
                "{event}: {payload}"
            );
        }
    }
}

/// What hooks say reaches the model, and the model's log shows it.
#[track_caller]
fn tells_the_model_what_hooks_say(kind: Real) {
    let world = world();
    let agent = world.agent(kind);
    let script = world.scratch().join("speak");
    let text = r#"#!/bin/sh
cat >/dev/null
case $1 in
SessionStart) echo '{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"the brief"}}' ;;
PreToolUse) echo 'the reason' >&2; exit 2 ;;
BeforeTool) echo '{"decision":"deny","reason":"the reason"}' ;;
esac
"#;
    std::fs::write(&script, text).unwrap();
    agent.hook(&format!("sh {} {{}}", script.display()));
    let mark = world.scratch().join("mark");
    let line = format!("MOCK:bash touch {}", mark.display());
    let turn = agent.fresh(&line).run().ok();
    assert!(!mark.exists(), "{turn}");
    assert!(world.mock().was_told("the brief"), "{turn}");
    assert!(world.mock().was_told("the reason"), "{turn}");
}

#[test]
#[ignore = "runs a real agent"]
fn codex_in_its_sandbox_writes_to_the_project_alone() {
    let world = world();
    let codex = world.agent(Real::Codex);
    let (inside, outside) = (world.project().join("in"), world.state().join("out"));
    std::fs::create_dir_all(world.state()).unwrap();
    let line = format!(
        "MOCK:bash touch {}; touch {}; echo pid $$ thread $CODEX_THREAD_ID",
        inside.display(),
        outside.display()
    );
    let turn = codex.fresh(&line).sandboxed().run().ok();
    assert!(turn.said().contains(&turn.id()), "{turn}");
    assert!(inside.exists(), "{turn}");
    assert!(!outside.exists(), "{turn}");
}

#[test]
#[ignore = "runs a real agent"]
fn the_process_that_is_codex_is_the_child_of_its_wrapper() {
    let world = world();
    let running = world.agent(Real::Codex).fresh("MOCK:hold here").start();
    let agent = running.agent_pid();
    assert_ne!(agent, running.pid());
    world.mock().await_asked(
        LONG,
        "to hold",
        tenure_testkit::RecordedRequest::offers_tools,
    );
    running.kill9();
    assert!(Stat::runs(agent));
    let start = Stat::read(agent).unwrap().start;
    let agent = Pinned::open(Started { pid: agent, start }).unwrap();
    drop(world);
    assert!(agent.is_gone(), "nothing outlives the world");
}
