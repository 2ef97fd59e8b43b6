//! `claim KEY -- CMD`: the command is a session that holds the item exactly while it lives.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;
use tenure_testkit::pinned::Stat;
use tenure_testkit::{Agent, Background, Cmd, Env, Output, Signal, poll};

use crate::support::line::{SOON, crew, handle, refused, register, run, take, text};
use crate::support::waiter::{ends, holder, in_line, waits, why};

/// A file whose removal ends the commands of [`while_there`]; the environment's end removes it too.
fn flag(env: &Env) -> PathBuf {
    let path = env.dir().join("flag");
    std::fs::write(&path, "").expect("the environment's directory is writable");
    path
}

/// A line that says that it runs, and runs as long as the file is there.
fn while_there(flag: &Path) -> String {
    let flag = flag.display();
    format!("echo ready; while [ -e {flag} ]; do sleep 0.02; done")
}

/// Starts `tenure claim wp:1 [more] -- sh -c line`.
fn start(agent: &Agent, more: &str, line: &str) -> Background {
    let words = ["claim", "wp:1"]
        .into_iter()
        .chain(more.split_whitespace())
        .chain(["--json", "--", "sh", "-c", line]);
    agent.start(Cmd::new("tenure").args(words))
}

/// The pid of the command, once it runs and holds the item.
fn runs(env: &Env, wrapper: &Background) -> u64 {
    poll(SOON, "the command runs", || {
        wrapper.stdout().contains("ready").then_some(())
    });
    let holder = why(env, "wp:1")["claim"]["holder"].clone();
    holder["process"]["pid"].as_u64().expect("it holds wp:1")
}

/// Kills it and waits until it is gone.
fn kill9(agent: &Agent, pid: u64) {
    let kill = ["-9".to_owned(), pid.to_string()];
    agent.run(Cmd::new("kill").args(kill)).ok();
    let pid = u32::try_from(pid).expect("a pid");
    poll(SOON, "it is gone", || is_gone(pid).then_some(()));
}

fn is_gone(pid: u32) -> bool {
    !Stat::runs(pid)
}

/// The object that the wrapper puts last on stderr.
#[track_caller]
fn report(said: &Output) -> Value {
    let last = said.stderr.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}\n{said}"))
}

#[track_caller]
fn runs_with(agent: &Agent, code: i32, args: &[&str]) -> Output {
    agent.tenure(args).fails(code)
}

#[test]
fn the_command_is_a_session_with_the_item_before_it_runs() {
    let (_env, [ann]) = crew(["ann"]);
    let line = "echo $$; tenure whoami --json; tenure guard wp:1 --epoch 1 --json";
    let said = ann.tenure(&["claim", "wp:1", "--", "sh", "-c", line]).ok();
    let lines: Vec<&str> = said.stdout.lines().collect();
    let [pid, me, guarded] = lines[..] else {
        panic!("three lines: {said}")
    };
    let me: Value = serde_json::from_str(me).unwrap();
    assert_eq!(me["session"]["process"]["pid"].to_string(), pid);
    assert_eq!(me["resolved"]["by"], "ancestry");
    assert_eq!(me["resolved"]["disagreements"], Value::Array(vec![]));
    assert_eq!(me["session"]["claims"][0]["key"], "wp:1");
    let parent = run(&ann, 0, "whoami")["session"]["id"].clone();
    assert_eq!(me["session"]["parent"], parent);
    let guarded: Value = serde_json::from_str(guarded).unwrap();
    assert_eq!(guarded["claim"]["via"], Value::Null);
    let after = text(&me["session"]["handle"]);
    let after = run(&ann, 0, &format!("show {after}"))["session"].clone();
    assert_eq!(after["state"], "ended");
}

#[test]
fn the_exit_code_is_the_commands() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let plain = env.dir().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let plain = plain.to_str().unwrap();
    let kill = ["sh", "-c", "kill -9 $$"];
    let cases: [(i32, &[&str]); 6] = [
        (0, &["true"]),
        (1, &["false"]),
        (42, &["sh", "-c", "exit 42"]),
        (127, &["no-such-program-anywhere"]),
        (126, &[plain]),
        (137, &kill),
    ];
    for (code, command) in cases {
        let args: Vec<&str> = ["claim", "wp:1", "--"]
            .into_iter()
            .chain(command.iter().copied())
            .collect();
        let said = runs_with(&ann, code, &args);
        assert_eq!(said.stdout, "", "{said}");
        assert_eq!(holder(&env, "wp:1").0, None, "{command:?}");
    }
    take(&bob, "wp:1");
    runs_with(&ann, 125, &["claim", "wp:1", "--", "true"]);
    let soon = ["claim", "wp:1", "--wait", "20ms", "--", "true"];
    runs_with(&ann, 125, &soon);
    let other = ["claim", "wp:1", "--conflict-exit", "75", "--", "true"];
    runs_with(&ann, 75, &other);
    runs_with(&ann, 125, &["claim", "no key", "--", "true"]);
    assert_eq!(in_line(&env, "wp:1"), [0; 0]);
}

#[test]
fn stdout_is_the_commands_and_our_object_is_the_last_line_of_stderr() {
    let (_env, [ann, bob]) = crew(["ann", "bob"]);
    let line = "echo out; echo err >&2; exit 3";
    let said = start(&ann, "", line).wait().fails(3);
    assert_eq!(said.stdout, "out\n");
    assert!(said.stderr.starts_with("err\n"), "{said}");
    let command = report(&said)["command"].clone();
    assert_eq!(command["exit"], 3);
    assert_eq!(command["lost"], false);
    let claim = serde_json::json!([{"key": "wp:1", "epoch": 1}]);
    assert_eq!(command["claims"], claim);
    take(&bob, "wp:1");
    let said = start(&ann, "", "echo never").wait().fails(125);
    assert_eq!(said.stdout, "");
    let error = report(&said)["error"].clone();
    assert_eq!(error["kind"], "held", "{error}");
    assert_eq!(error["holder"]["handle"], handle(&bob).as_str());
}

#[test]
fn the_item_is_held_until_the_command_ends_although_its_wrapper_was_killed() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let flag = flag(&env);
    let wrapper = start(&ann, "", &while_there(&flag));
    runs(&env, &wrapper);
    wrapper.kill9();
    refused(&bob, 3, "held", "claim wp:1");
    std::fs::remove_file(&flag).unwrap();
    let claim = poll(SOON, "it is free", || {
        let said = bob.tenure(&["claim", "wp:1", "--json"]);
        (said.code == 0).then(|| said.json()["claim"].clone())
    });
    assert_eq!(claim["epoch"], 2);
    assert_eq!(claim["taken_from"]["by"], "death");
}

#[test]
fn the_item_is_free_at_once_when_the_command_is_killed() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let flag = flag(&env);
    let wrapper = start(&ann, "", &while_there(&flag));
    let command = runs(&env, &wrapper);
    kill9(&bob, command);
    ends(wrapper).fails(137);
    assert_eq!(take(&bob, "wp:1"), 2);
}

#[test]
fn the_item_is_free_at_once_when_wrapper_and_command_are_killed() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let flag = flag(&env);
    let wrapper = start(&ann, "", &while_there(&flag));
    let command = runs(&env, &wrapper);
    wrapper.kill9();
    kill9(&bob, command);
    assert_eq!(take(&bob, "wp:1"), 2);
}

#[test]
fn a_daemon_that_the_command_leaves_behind_does_not_keep_the_item() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let flag = flag(&env);
    let daemon = format!("echo $$ >&3; {}", while_there(&flag));
    let line = format!("(setsid sh -c '{daemon}' 3>&1 >/dev/null 2>&1 &) & wait");
    let said = start(&ann, "", &line).wait().ok();
    let survivor = poll(SOON, "the daemon says its pid", || {
        said.stdout.trim().parse::<u64>().ok()
    });
    let claim = run(&bob, 0, "claim wp:1")["claim"].clone();
    assert_eq!(claim["epoch"], 2);
    let left = claim["taken_from"]["survivors"].clone();
    assert_eq!(left[0]["pid"], survivor, "{claim}");
}

/// The pid of a process's one child.
fn child_of(parent: u32) -> u32 {
    poll(SOON, "it has a child", || {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .find(|pid| Stat::read(*pid).is_some_and(|stat| stat.parent == parent))
    })
}

#[test]
fn a_wrapper_that_is_killed_while_it_waits_never_runs_its_command() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let ran = env.dir().join("ran");
    take(&ann, "wp:1");
    let line = format!("claim wp:1 --wait 5m -- touch {}", ran.display());
    // The command takes everything after the dashes, so it is started without --json.
    let wrapper = bob.start(Cmd::new("tenure").args(line.split_whitespace()));
    poll(SOON, "it waits", || {
        in_line(&env, "wp:1").contains(&wrapper.pid).then_some(())
    });
    let command = child_of(wrapper.pid);
    wrapper.kill9();
    run(&ann, 0, "release wp:1");
    poll(SOON, "the one that waited at the gate is gone", || {
        is_gone(command).then_some(())
    });
    assert!(!ran.exists());
    assert_eq!(holder(&env, "wp:1"), (None, 1));
}

#[test]
fn a_command_waits_its_turn_and_then_runs() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    let wrapper = start(&bob, "--wait 5m", "tenure guard wp:1");
    poll(SOON, "it waits", || {
        in_line(&env, "wp:1").contains(&wrapper.pid).then_some(())
    });
    ann.kill9();
    let said = ends(wrapper).ok();
    assert_eq!(report(&said)["command"]["claims"][0]["epoch"], 2);
}

#[test]
fn a_command_runs_under_the_hold_that_its_caller_or_an_ancestor_has() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let child = ann.nest("kid");
    register(&child, "kid", "");
    take(&ann, "wp:1");
    for who in [&ann, &child] {
        let said = start(who, "", "tenure guard wp:1 --json; exit 5");
        let said = said.wait().fails(5);
        let inside: Value = serde_json::from_str(said.stdout.trim()).unwrap();
        assert_eq!(inside["claim"]["epoch"], 1, "{said}");
        assert_eq!(report(&said)["command"]["claims"], Value::Array(vec![]));
        assert_eq!(holder(&env, "wp:1"), (Some(handle(&ann)), 1));
    }
    refused(&bob, 3, "held", "claim wp:1");
    let sessions = run(&bob, 0, "ps -a")["sessions"].clone();
    assert_eq!(sessions.as_array().map(Vec::len), Some(3), "{sessions}");
}

#[test]
fn nobody_can_run_a_command_under_a_claim() {
    let (env, [bob]) = crew(["bob"]);
    let line = "tenure whoami --json";
    let said = env.tenure(&["claim", "wp:1", "--", "sh", "-c", line]).ok();
    let me = said.json()["session"].clone();
    assert_eq!(me["parent"], Value::Null);
    assert_eq!(me["claims"][0]["key"], "wp:1");
    take(&bob, "wp:1");
    env.tenure(&["claim", "wp:1", "--", "true"]).fails(125);
    bob.kill9();
    env.tenure(&["claim", "wp:1", "--", "true"]).ok();
}

#[test]
fn f_c05_a_command_whose_item_is_taken_is_ended() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let flag = flag(&env);
    let wrapper = start(&ann, "", &while_there(&flag));
    runs(&env, &wrapper);
    run(&bob, 0, "takeover wp:1 --reason test");
    let said = ends(wrapper).fails(143);
    assert_eq!(report(&said)["command"]["lost"], true);
    assert!(said.stderr.contains("wp:1 was taken"), "{said}");
    assert_eq!(holder(&env, "wp:1"), (Some(handle(&bob)), 2));
}

#[test]
fn a_command_that_shall_only_be_warned_goes_on() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let flag = flag(&env);
    let line = format!("{}; exit 4", while_there(&flag));
    let wrapper = start(&ann, "--on-lost warn", &line);
    runs(&env, &wrapper);
    run(&bob, 0, "takeover wp:1 --reason test");
    poll(SOON, "it is told", || {
        wrapper.stderr().contains("wp:1 was taken").then_some(())
    });
    std::fs::remove_file(&flag).unwrap();
    let said = ends(wrapper).fails(4);
    assert_eq!(report(&said)["command"]["lost"], true);
    assert_eq!(holder(&env, "wp:1"), (Some(handle(&bob)), 2));
}

/// A command that says that it was told to end.
fn polite(env: &Env) -> String {
    format!("trap 'echo bye; exit 6' TERM; {}", while_there(&flag(env)))
}

#[test]
fn a_signal_to_the_wrapper_reaches_the_command() {
    let (env, [ann]) = crew(["ann"]);
    for covered in [false, true] {
        if covered {
            take(&ann, "wp:1");
        }
        let wrapper = start(&ann, "", &polite(&env));
        poll(SOON, "the command is ready", || {
            wrapper.stdout().contains("ready").then_some(())
        });
        wrapper.signal(Signal::TERM);
        let said = ends(wrapper).fails(6);
        assert!(said.stdout.ends_with("bye\n"), "covered {covered}: {said}");
    }
}

/// At whatever moment it comes, a signal to end is not swallowed.
#[test]
fn a_wrapper_that_is_told_to_end_at_any_moment_ends() {
    let (env, [ann]) = crew(["ann"]);
    let flag = flag(&env);
    let began = Instant::now();
    ann.tenure(&["claim", "wp:1", "--", "true"]).ok();
    let whole = began.elapsed();
    for step in 0..40_u32 {
        let wrapper = start(&ann, "", &while_there(&flag));
        let moment = Instant::now() + whole * step / 30;
        poll(SOON, "the moment", || {
            (Instant::now() >= moment).then_some(())
        });
        wrapper.signal(Signal::TERM);
        assert_eq!(ends(wrapper).code, 143, "at step {step}");
        poll(SOON, "the item is free", || {
            holder(&env, "wp:1").0.is_none().then_some(())
        });
    }
}

#[test]
fn f_c13_an_item_whose_next_step_failed_is_given_back() {
    let (_env, [ann, bob]) = crew(["ann", "bob"]);
    runs_with(&ann, 1, &["claim", "wp:1", "--", "false"]);
    assert_eq!(take(&bob, "wp:1"), 2);
    run(&bob, 0, "release wp:1");
    runs_with(&ann, 127, &["claim", "wp:1", "--", "no-such-program"]);
    assert_eq!(take(&bob, "wp:1"), 4);
    let log = run(&bob, 0, "log wp:1")["events"].clone();
    let freed = log.as_array().expect("a list").iter();
    let freed = freed.filter(|event| event["mechanism"] == "end");
    assert_eq!(freed.count(), 2, "{log}");
}

#[test]
fn what_the_caller_lost_is_told_although_its_next_call_runs_a_command() {
    let (_env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:2");
    run(&bob, 0, "takeover wp:2 --reason test");
    let said = start(&ann, "", "true").wait().ok();
    let told = report(&said)["notices"].clone();
    assert_eq!(told[0]["kind"], "lost", "{said}");
    let later = run(&ann, 0, "whoami")["notices"].clone();
    assert_eq!(later, Value::Array(vec![]), "told once");
}

#[test]
fn any_and_all_work_with_a_command() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&bob, "wp:1");
    let any = ["claim", "--any", "wp:1", "wp:2", "--", "tenure"];
    let said = ann.tenure(&[&any[..], &["guard", "wp:2"]].concat());
    assert_eq!(said.code, 0, "{said}");
    let all = ["claim", "--all", "wp:2", "wp:3", "--", "sh", "-c"];
    let line = "tenure guard wp:2 && tenure guard wp:3";
    ann.tenure(&[&all[..], &[line]].concat()).ok();
    let taken = ["claim", "--all", "wp:1", "wp:2", "--", "true"];
    runs_with(&ann, 125, &taken);
    assert_eq!(holder(&env, "wp:2"), (None, 2));
}

#[test]
fn the_shown_waiter_of_a_command_is_its_wrapper() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    let wrapper = waits(&env, &bob, "wp:1", "claim wp:1 --wait 5m --json -- true");
    let waiter = why(&env, "wp:1")["why"]["waiters"][0].clone();
    assert_eq!(waiter["session"], handle(&bob).as_str());
    wrapper.signal(Signal::INT);
    ends(wrapper).fails(130);
    assert_eq!(in_line(&env, "wp:1"), [0; 0]);
}
