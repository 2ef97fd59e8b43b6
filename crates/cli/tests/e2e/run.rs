//! `run`: one execution of an agent for an item, from a recorded start to a recorded end.

use serde_json::Value;
use tenure_testkit::{Scripted, poll};

use crate::env;
use crate::support::line::{SOON, crew, events, refused, text};
use crate::support::run::{all, lines, newest, outcome, run, start, until};

#[test]
fn an_agent_is_run_and_its_conversation_continues_with_the_next_run() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo $mode $id >>$dir/calls; cat >$dir/prompt-$mode; init; work; done_ 'all good'",
    );
    let ann = env.agent("ann");
    let said = run(&ann, "mine wp:1").ok();
    assert_eq!(said.stdout, "all good\n");
    let first = newest(&env);
    assert_eq!(first["outcome"], "done");
    assert_eq!(first["native_id"], "c-1");
    assert_eq!(first["before"], Value::Null);
    assert_eq!(first["exit_code"], 0);
    let prompt = mine.wrote("prompt-fresh").unwrap();
    assert!(prompt.ends_with("\n\ndo it"), "{prompt}");
    let session = text(&first["session"]);
    let shown = ann.tenure(&["show", &session, "--json"]).ok().json();
    assert_eq!(shown["session"]["state"], "ended");
    assert_eq!(shown["session"]["end_kind"], "left");
    run(&ann, "mine wp:1").ok();
    let second = newest(&env);
    assert_eq!(second["before"], "c-1");
    assert_eq!(
        second["session"],
        session.as_str(),
        "the next life of the same session"
    );
    assert_eq!(mine.wrote("calls").unwrap(), "fresh c-1\nresume c-1\n");
    let got = ann
        .tenure(&["conversation", "get", "mine", "wp:1", "--json"])
        .ok()
        .json();
    assert_eq!(got["conversation"]["native_id"], "c-1");
    assert_eq!(got["conversation"]["set_by_run"], first["id"]);
}

#[test]
fn the_agent_is_the_session_of_its_run_before_it_executes_anything() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "tenure whoami --json >$dir/me; echo $$ $TENURE_RUN >$dir/own; ps -o pgid= -p $$ >$dir/group; init; done_",
    );
    let ann = crate::support::line::session(&env, "ann");
    run(&ann, "mine wp:1").ok();
    let me: Value = serde_json::from_str(&mine.wrote("me").unwrap()).unwrap();
    let run = newest(&env);
    assert_eq!(me["session"]["handle"], run["session"]);
    assert_eq!(me["resolved"]["by"], "ancestry");
    assert_eq!(me["resolved"]["disagreements"], Value::Array(vec![]));
    let parent = ann.tenure(&["whoami", "--json"]).ok().json();
    assert_eq!(me["session"]["parent"], parent["session"]["id"]);
    let own = mine.wrote("own").unwrap();
    let (pid, id) = own.trim().split_once(' ').unwrap();
    assert_eq!(me["session"]["process"]["pid"].to_string(), pid);
    assert_eq!(run["id"], id);
    assert_eq!(
        mine.wrote("group").unwrap().trim(),
        pid,
        "a process group of its own"
    );
}

#[test]
fn programs_get_a_line_for_each_event() {
    let env = env();
    Scripted::new(
        &env,
        "mine",
        "init; echo no json; work half; done_ 'the end'",
    );
    let ann = env.agent("ann");
    let said = run(&ann, "mine wp:1 --json").ok();
    let all = lines(&said);
    let events: Vec<&str> = all
        .iter()
        .filter_map(|line| line["event"].as_str())
        .collect();
    assert_eq!(
        events,
        [
            "run.started",
            "agent",
            "agent",
            "agent",
            "agent",
            "run.ended"
        ]
    );
    assert_eq!(all[0]["run"]["state"], "running");
    assert_eq!(all[1]["data"]["session_id"], "c-1");
    assert_eq!(all[2]["data"], "no json");
    let last = all.last().unwrap();
    assert_eq!(last["run"]["outcome"], "done");
    assert_eq!(last["answer"], "the end");
    let held = run_refused(&ann, "nobody wp:1 --json", 125);
    assert_eq!(held["error"]["kind"], "unknown_agent");
}

fn run_refused(agent: &tenure_testkit::Agent, line: &str, code: i32) -> Value {
    let said = run(agent, line).fails(code);
    lines(&said).pop().expect("an object")
}

#[test]
fn only_done_is_exit_0_and_otherwise_the_code_is_the_agents() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "");
    let ann = env.agent("ann");
    let cases = [
        ("init; done_", 0, "done"),
        ("init; work; exit 7", 7, "failed"),
        ("init; work; exit 0", 1, "interrupted"),
        ("exit 0", 1, "failed"),
        ("init; say '{\"type\":\"resu'; exit 0", 1, "interrupted"),
        ("init; printf '{\"result\":'; exit 0", 1, "interrupted"),
        ("init; kill -9 $$", 137, "interrupted"),
        ("say '{\"error\":\"it broke\"}'; exit 3", 3, "failed"),
        ("echo 'it broke' >&2; exit 4", 4, "failed"),
    ];
    for (lines, code, expected) in cases {
        mine.does(lines);
        let said = run(&ann, "mine wp:1 --fresh");
        assert_eq!(said.code, code, "{lines}\n{said}");
        assert_eq!(newest(&env)["outcome"], expected, "{lines}");
    }
    let why = newest(&env)["why"].clone();
    assert_eq!(why, "it broke");
}

#[test]
fn a_program_that_is_missing_or_cannot_be_executed_is_told_before_anything_is_recorded() {
    let env = env();
    let settings = env.home().join(".config/tenure");
    std::fs::create_dir_all(&settings).unwrap();
    let plain = env.dir().join("plain");
    std::fs::create_dir(&plain).unwrap();
    let text = format!(
        "[agents.gone]\ncommand = [\"no-such-agent-anywhere\"]\ndone = \"/result\"\n\
         [agents.plain]\ncommand = [{:?}]\ndone = \"/result\"\n",
        plain.to_str().unwrap()
    );
    std::fs::write(settings.join("config.toml"), text).unwrap();
    let ann = env.agent("ann");
    let said = run(&ann, "gone wp:1").fails(127);
    assert!(
        said.stderr.contains("no-such-agent-anywhere was not found"),
        "{said}"
    );
    run(&ann, "plain wp:1").fails(126);
    assert_eq!(all(&env), Vec::<Value>::new());
    assert!(
        std::fs::read_dir(env.state().join("runs"))
            .unwrap()
            .next()
            .is_none()
    );
}

#[test]
fn a_directory_that_is_gone_an_empty_prompt_and_a_key_that_is_none_are_refused() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let ann = env.agent("ann");
    run(&ann, "mine wp:1 --dir /no/such/dir").fails(125);
    run(&ann, "mine nokey").fails(125);
    let none = ann
        .tenure(&["run", "mine", "wp:1", "--prompt", " "])
        .fails(125);
    assert!(none.stderr.contains("the prompt is empty"), "{none}");
    ann.tenure(&["run", "mine", "wp:1"]).fails(2);
    let dir = env.dir().join("there");
    std::fs::create_dir(&dir).unwrap();
    run(&ann, &format!("mine wp:1 --dir {}", dir.display())).ok();
    std::fs::remove_dir(&dir).unwrap();
    let gone = run(&ann, "mine wp:1").fails(125);
    assert!(gone.stderr.contains("directory"), "{gone}");
    run(&ann, "mine wp:1 --fresh").ok();
    assert_eq!(all(&env).len(), 2);
}

#[test]
fn an_id_that_changes_in_the_middle_is_the_conversations_new_one() {
    let env = env();
    Scripted::new(
        &env,
        "mine",
        "init c-1; work; sleep 0.3; init c-2; work; done_",
    );
    let ann = env.agent("ann");
    run(&ann, "mine wp:1").ok();
    assert_eq!(newest(&env)["native_id"], "c-2");
    let history = ann
        .tenure(&["conversation", "history", "mine", "wp:1", "--json"])
        .ok()
        .json();
    let text = history.to_string();
    assert!(text.contains("c-1") && text.contains("replaced"), "{text}");
}

#[test]
fn an_exclusive_run_holds_its_item_exactly_while_it_lasts() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let mine = Scripted::new(&env, "mine", "init; ready $dir/on; hold $dir/flag; done_");
    mine.keep("flag");
    let window = start(&ann, "mine wp:1 --exclusive");
    poll(SOON, "the agent works", || mine.wrote("on"));
    let held = refused(&bob, 3, "held", "claim wp:1");
    assert_eq!(held["holder"]["handle"], newest(&env)["session"]);
    let taken = run(&bob, "mine wp:1 --exclusive --json").fails(125);
    assert_eq!(lines(&taken)[0]["error"]["kind"], "held");
    std::fs::remove_file(mine.file("flag")).unwrap();
    window.wait().ok();
    assert_eq!(crate::support::line::take(&bob, "wp:1"), 2);
    let held = run(&ann, "mine wp:1 --exclusive --json").fails(125);
    assert_eq!(lines(&held)[0]["error"]["kind"], "held");
    assert!(
        events(&ann, "wp:1")
            .iter()
            .any(|one| one["kind"] == "run.ended")
    );
}

#[test]
fn f_r23_a_second_run_of_a_conversation_or_a_directory_is_refused_before_its_agent_starts() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo $$ >>$dir/calls; init c-$$; ready $dir/on; hold $dir/flag; done_",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "the agent works", || mine.wrote("on"));
    let first = newest(&env);
    for (line, code) in [
        ("mine wp:1 --json", 125),
        ("mine wp:1 --share-dir --json", 125),
        ("mine wp:2 --json", 125),
        ("mine wp:2 --conflict-exit 75 --json", 75),
    ] {
        let refused = run_refused(&ann, line, code);
        assert_eq!(refused["error"]["kind"], "held", "{line}");
        assert_eq!(refused["error"]["run"]["id"], first["id"], "{line}");
    }
    let soon = run_refused(&ann, "mine wp:1 --wait 50ms --json", 125);
    assert_eq!(soon["error"]["kind"], "timed_out");
    let other = start(&ann, "mine wp:2 --share-dir");
    until(&env, "both work", |run| {
        run["item"] == "wp:2" && run["state"] == "running"
    });
    let waits = start(&ann, "mine wp:1 --wait 5m --share-dir");
    std::fs::remove_file(mine.file("flag")).unwrap();
    window.wait().ok();
    other.wait().ok();
    waits.wait().ok();
    assert_eq!(mine.wrote("calls").unwrap().lines().count(), 3);
    assert_eq!(outcome(&env), "done");
}

#[test]
fn of_many_that_start_at_once_one_runs() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo $$ >>$dir/calls; init; hold $dir/flag; done_",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let windows: Vec<_> = (0..8).map(|_| start(&ann, "mine wp:1")).collect();
    let refused = poll(SOON, "seven are refused", || {
        let ended: Vec<_> = windows.iter().filter(|one| !one.is_alive()).collect();
        (ended.len() == 7).then_some(ended.len())
    });
    assert_eq!(refused, 7);
    std::fs::remove_file(mine.file("flag")).unwrap();
    let codes: Vec<i32> = windows.into_iter().map(|one| one.wait().code).collect();
    assert_eq!(
        codes.iter().filter(|code| **code == 0).count(),
        1,
        "{codes:?}"
    );
    assert_eq!(
        codes.iter().filter(|code| **code == 125).count(),
        7,
        "{codes:?}"
    );
    assert_eq!(mine.wrote("calls").unwrap().lines().count(), 1);
    assert_eq!(all(&env).len(), 1);
}

#[test]
fn f_r23_a_person_who_is_in_the_conversation_keeps_it() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init; echo $mode >>$dir/calls; done_");
    let ann = env.agent("ann");
    run(&ann, "mine wp:1").ok();
    let person = env.agent("mine");
    let pid = person.pid();
    person
        .tenure(&[
            "register",
            "--agent",
            "mine",
            "--pid",
            &pid.to_string(),
            "--native-id",
            "c-1",
        ])
        .ok();
    let refused = run_refused(&ann, "mine wp:1 --json", 125);
    assert_eq!(refused["error"]["kind"], "held");
    assert_eq!(refused["error"]["pid"], pid);
    person.kill9();
    run(&ann, "mine wp:1").ok();
    assert_eq!(mine.wrote("calls").unwrap(), "fresh\nresume\n");
}
