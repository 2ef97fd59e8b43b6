//! Stopping a run: by a person, by its timeout, from its window; and what must be gone then.

use serde_json::Value;
use tenure_testkit::{Cmd, Scripted, Signal, poll};

use crate::env;
use crate::support::line::SOON;
use crate::support::run::{is_gone, newest, outcome, pid_of, run, runner_of, start, until};

fn stops(agent: &tenure_testkit::Agent, run: &Value) -> Value {
    let id = run["id"].as_str().expect("an id");
    agent
        .tenure(&["runs", "stop", id, "--reason", "enough", "--json"])
        .ok()
        .json()
}

#[test]
fn f_r18_a_run_that_is_stopped_keeps_its_conversation() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo $mode >>$dir/calls; init; work; ready $dir/on; hold $dir/flag",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "the agent works", || mine.wrote("on"));
    let agent = pid_of(&until(&env, "it runs", |run| run["native_id"] == "c-1"));
    let stopped = stops(&ann, &newest(&env));
    assert_eq!(stopped["run"]["outcome"], "stopped");
    assert_eq!(stopped["run"]["why"], "enough");
    assert!(is_gone(agent));
    assert_eq!(window.wait().code, 143);
    assert_eq!(newest(&env)["stop_asked"]["why"], "enough");
    mine.does("echo $mode $id >>$dir/calls; cat >$dir/prompt; init; done_");
    run(&ann, "mine wp:1").ok();
    assert_eq!(mine.wrote("calls").unwrap(), "fresh\nresume c-1\n");
}

#[test]
fn an_agent_that_ignores_its_signal_is_killed() {
    let mut env = env();
    env.set("TENURE_RUN_STOP_GRACE", "200ms");
    let mine = Scripted::new(
        &env,
        "mine",
        "trap '' TERM INT HUP; init; ready $dir/on; hold $dir/flag",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "the agent works", || mine.wrote("on"));
    let stopped = stops(&ann, &newest(&env));
    assert_eq!(stopped["run"]["outcome"], "stopped");
    assert_eq!(stopped["run"]["exit_code"], 137);
    assert_eq!(window.wait().code, 137);
}

#[test]
fn an_agent_that_hangs_before_its_first_line_is_ended_by_the_timeout() {
    let mut env = env();
    env.set("TENURE_RUN_STOP_GRACE", "200ms");
    let mine = Scripted::new(&env, "mine", "hold $dir/flag");
    mine.keep("flag");
    let ann = env.agent("ann");
    run(&ann, "mine wp:1 --timeout 300ms").fails(143);
    let ended = newest(&env);
    assert_eq!(ended["outcome"], "timeout");
    assert_eq!(ended["why"], "it did not end within 300ms");
    assert_eq!(ended["stop_asked"]["why"], "it did not end within 300ms");
}

#[test]
fn a_success_that_was_reported_first_is_done() {
    let mut env = env();
    env.set("TENURE_RUN_STOP_GRACE", "200ms");
    let mine = Scripted::new(
        &env,
        "mine",
        "init; done_ 'made it'; ready $dir/on; hold $dir/flag",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "the agent is done", || mine.wrote("on"));
    let stopped = stops(&ann, &newest(&env));
    assert_eq!(stopped["run"]["outcome"], "done");
    assert_eq!(window.wait().ok().stdout, "made it\n");
}

#[test]
fn an_interrupt_at_the_window_stops_the_run() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init; ready $dir/on; hold $dir/flag");
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "the agent works", || mine.wrote("on"));
    poll(SOON, "the window shows it", || {
        window.stderr().contains("run r-").then_some(())
    });
    assert!(window.signal(Signal::INT));
    let said = window.wait();
    assert_eq!(said.code, 130, "{said}");
    assert!(said.stderr.contains(" stopped with Ctrl-C\n"), "{said}");
    let ended = newest(&env);
    assert_eq!(ended["outcome"], "stopped");
    assert_eq!(ended["why"], "stopped with Ctrl-C");
    let id = ended["id"].as_str().unwrap();
    let shown = ann.tenure(&["runs", "show", id]).ok().stdout;
    assert!(shown.contains("wp:1  stopped with Ctrl-C\n"), "{shown}");
}

#[test]
fn a_tail_shows_readable_lines_until_the_run_ends() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "init; say oops; ready $dir/on; hold $dir/flag; done_ 'made it'",
    );
    let flag = mine.keep("flag");
    let ann = env.agent("ann");
    let _window = start(&ann, "mine wp:1");
    poll(SOON, "the agent works", || mine.wrote("on"));
    let id = newest(&env)["id"].as_str().unwrap().to_owned();
    let tail = ann.start(Cmd::new("tenure").args(["runs", "tail", &id]));
    poll(SOON, "its lines are shown", || {
        tail.stdout().contains("oops").then_some(())
    });
    assert!(tail.is_alive(), "it follows");
    std::fs::remove_file(flag).unwrap();
    let said = tail.wait().ok();
    assert_eq!(said.stdout, "oops\nmade it\n");
    assert!(said.stderr.contains("is done"), "{said}");
    let raw = ann.tenure(&["runs", "tail", &id, "--raw"]).ok().stdout;
    assert!(raw.starts_with("{\"type\":\"init\""), "{raw}");
}

#[test]
fn f_r13_f_r14_nothing_that_the_run_started_is_left_when_it_was_stopped() {
    let env = env();
    let child = "echo $$ >>$dir/children; while [ -e $dir/flag ]; do sleep 0.02; done";
    let mine = Scripted::new(
        &env,
        "mine",
        &format!(
            "export dir; for n in 1 2; do setsid nohup sh -c '{child}' >/dev/null 2>&1 & done; (sh -c '{child}' &) ; \
             init; ready $dir/on; hold $dir/flag"
        ),
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    let children = poll(SOON, "its children run", || {
        let children = mine.wrote("children").unwrap_or_default();
        (children.lines().count() == 3 && mine.file("on").exists()).then_some(children)
    });
    let stopped = stops(&ann, &newest(&env));
    assert_eq!(stopped["survivors"], Value::Array(vec![]));
    for pid in children.lines() {
        assert!(is_gone(pid.parse().unwrap()), "{pid} is left");
    }
    assert_eq!(window.wait().code, 143);
}

/// It has neither the variable of the run nor its process session: only where it works shows it.
#[test]
fn f_r14_what_hid_its_environment_is_named_by_its_directory_and_left_alone() {
    let env = env();
    let child = "echo $$ >$0/child; while [ -e $0/flag ]; do sleep 0.02; done";
    let mine = Scripted::new(
        &env,
        "mine",
        &format!(
            "env -i PATH=\"$PATH\" setsid sh -c '{child}' $dir >/dev/null 2>&1 & \
             while [ ! -s $dir/child ]; do sleep 0.02; done; init; ready $dir/on; hold $dir/hold"
        ),
    );
    mine.keep("flag");
    mine.keep("hold");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "the agent works", || mine.wrote("on"));
    let child: u32 = mine.wrote("child").unwrap().trim().parse().unwrap();
    let stopped = stops(&ann, &newest(&env));
    assert_eq!(stopped["run"]["outcome"], "stopped");
    assert!(!is_gone(child));
    let said = window.wait().fails(143);
    let named = format!("note: pid {child} (sh -c ");
    assert!(said.stderr.contains(&named), "{said}");
    // It blocks nothing.
    mine.does("init; done_");
    let said = run(&ann, "mine wp:1").ok();
    assert!(!said.stderr.contains(&named), "it is older: {said}");
    std::fs::remove_file(mine.file("flag")).unwrap();
    poll(SOON, "it is gone", || is_gone(child).then_some(()));
}

#[test]
fn a_process_of_another_session_is_named_and_left_alone() {
    let env = env();
    let child = "tenure register --agent other --pid $$ >/dev/null; echo $$ >$dir/other; while [ -e $dir/flag ]; do sleep 0.02; done";
    let mine = Scripted::new(
        &env,
        "mine",
        &format!("export dir; setsid sh -c '{child}' >/dev/null 2>&1 & init; hold $dir/flag"),
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    let other = poll(SOON, "the other session runs", || mine.line("other"));
    let other: u32 = other.trim().parse().unwrap();
    let stopped = stops(&ann, &newest(&env));
    assert_eq!(stopped["run"]["outcome"], "stopped");
    assert_eq!(stopped["survivors"][0]["pid"], other, "{stopped}");
    assert!(!is_gone(other));
    std::fs::remove_file(mine.file("flag")).unwrap();
    window.wait().fails(143);
}

#[test]
fn an_agent_that_forks_and_exits_has_not_finished_and_its_children_are_named() {
    let env = env();
    let child = "echo $$ >$dir/child; while [ -e $dir/flag ]; do sleep 0.02; done";
    let mine = Scripted::new(
        &env,
        "mine",
        &format!(
            "export dir; init; setsid sh -c '{child}' >/dev/null 2>&1 & while [ ! -s $dir/child ]; do sleep 0.02; done; exit 0"
        ),
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let said = run(&ann, "mine wp:1 --leave").fails(1);
    let child = mine.wrote("child").unwrap();
    assert!(
        said.stderr
            .contains(&format!("still running: pid {}", child.trim())),
        "{said}"
    );
    assert_eq!(outcome(&env), "interrupted");
    // It was cut off, and something of it may still write.
    let refused = run(&ann, "mine wp:1 --json").fails(125);
    let refused: Value = serde_json::from_str(refused.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(refused["error"]["kind"], "survivors");
    assert_eq!(
        refused["error"]["survivors"][0]["pid"].to_string(),
        child.trim()
    );
    std::fs::remove_file(mine.file("flag")).unwrap();
    poll(SOON, "it is gone", || {
        is_gone(child.trim().parse().unwrap()).then_some(())
    });
    mine.does("init; done_");
    run(&ann, "mine wp:1").ok();
}

#[test]
fn a_run_whose_runner_died_can_be_stopped() {
    let mut env = env();
    env.set("TENURE_RUN_STOP_GRACE", "5s");
    let mine = Scripted::new(&env, "mine", "init; work; ready $dir/on; hold $dir/flag");
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "the agent works", || mine.wrote("on"));
    window.kill9();
    let run = newest(&env);
    let agent = pid_of(&run);
    crate::support::run::kill9(&ann, runner_of(&run));
    let run = newest(&env);
    assert_eq!(run["runner"], "dead");
    assert_eq!(run["state"], "running");
    let people = ann.tenure(&["runs"]).ok();
    assert!(people.stdout.contains("running, no runner"), "{people}");
    let stopped = stops(&ann, &run);
    assert_eq!(stopped["run"]["outcome"], "stopped");
    assert!(is_gone(agent));
}
