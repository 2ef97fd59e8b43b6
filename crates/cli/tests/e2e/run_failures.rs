//! What went wrong in other projects' runs, and what a person sees of runs that went wrong here.

use serde_json::Value;
use tenure_testkit::{Cmd, Scripted, poll};

use crate::env;
use crate::support::line::{SOON, session, text};
use crate::support::run::{
    all, fake_claude, kill9, lines, newest, pid_of, run, runner_of, start, until,
};

#[test]
fn f_r02_runs_whose_processes_were_all_killed_have_an_end_after_one_look() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "init c-$$; echo $$ >>$dir/on; hold $dir/flag; done_",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let windows: Vec<_> = (0..6)
        .map(|n| start(&ann, &format!("mine wp:{n} --share-dir")))
        .collect();
    poll(SOON, "all of them work", || {
        let on = mine.wrote("on").unwrap_or_default();
        (on.lines().count() == 6).then_some(())
    });
    let runs = all(&env);
    let pids: Vec<(u32, u32)> = runs
        .iter()
        .map(|run| (runner_of(run), pid_of(run)))
        .collect();
    windows.iter().for_each(|window| window.kill9());
    for (runner, agent) in pids {
        kill9(&ann, runner);
        kill9(&ann, agent);
    }
    let ended = all(&env);
    assert_eq!(ended.len(), 6);
    for run in ended {
        assert_eq!(run["outcome"], "interrupted", "{run}");
    }
}

#[test]
fn f_r03_a_runner_that_is_stopped_keeps_its_run_however_long_it_is_silent() {
    let mut env = env();
    env.set("TENURE_LEASE", "1s");
    env.set("TENURE_LOCK_DELAY", "1s");
    let mine = Scripted::new(
        &env,
        "mine",
        "echo $$ >>$dir/calls; init; ready $dir/on; hold $dir/flag; done_",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1 --exclusive");
    poll(SOON, "the agent works", || mine.wrote("on"));
    let running = until(&env, "it is named", |run| run["native_id"] == "c-1");
    let (runner, agent) = (runner_of(&running), pid_of(&running));
    let signal = |name: &str, pid: u32| {
        let words = [format!("-{name}"), pid.to_string()];
        ann.run(Cmd::new("kill").args(words)).ok();
    };
    signal("STOP", runner);
    signal("STOP", agent);
    let began = std::time::Instant::now();
    // Longer than every timer that it has.
    poll(SOON, "its lease and the lock delay are over", || {
        (began.elapsed() > std::time::Duration::from_secs(3)).then_some(())
    });
    for line in [
        "mine wp:1 --json",
        "mine wp:1 --exclusive --share-dir --json",
    ] {
        let refused = run(&ann, line).fails(125);
        assert_eq!(lines(&refused)[0]["error"]["kind"], "held", "{line}");
    }
    ann.tenure(&["claim", "wp:1"]).fails(4);
    assert_eq!(newest(&env)["state"], "running");
    std::fs::remove_file(mine.file("flag")).unwrap();
    signal("CONT", agent);
    signal("CONT", runner);
    window.wait().ok();
    assert_eq!(mine.wrote("calls").unwrap().lines().count(), 1);
    assert_eq!(newest(&env)["outcome"], "done");
}

#[test]
fn f_r11_a_run_that_was_stopped_goes_on_in_its_conversation_and_is_told_why() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo $mode $id >>$dir/calls; init; work; ready $dir/on; hold $dir/flag",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "the agent works", || mine.wrote("on"));
    until(&env, "it is named", |run| run["native_id"] == "c-1");
    let id = text(&newest(&env)["id"]);
    ann.tenure(&["runs", "stop", &id]).ok();
    window.wait().fails(143);
    let listed = env.tenure(&["runs", "--json"]).ok().json();
    assert_eq!(listed["runs"][0]["outcome"], "stopped");
    mine.does("echo $mode $id >>$dir/calls; cat >$dir/prompt; init; done_");
    ann.tenure(&["runs", "resume", &id]).ok();
    assert_eq!(mine.wrote("calls").unwrap(), "fresh c-1\nresume c-1\n");
    let prompt = mine.wrote("prompt").unwrap();
    assert!(
        prompt.contains("Your last turn was cut off (it was stopped"),
        "{prompt}"
    );
    assert!(!prompt.trim_end().ends_with("do it"), "{prompt}");
}

#[test]
fn f_r17_an_id_that_a_refused_resume_prints_is_never_stored() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init; done_");
    let ann = env.agent("ann");
    run(&ann, "mine wp:1").ok();
    mine.does(r#"say '{"session_id":"c-2","error":"the server is away"}'; exit 1"#);
    run(&ann, "mine wp:1").fails(1);
    let failed = newest(&env);
    assert_eq!(failed["outcome"], "failed", "{failed:#}");
    assert_eq!(failed["native_id"], "c-1", "{failed:#}");
    let get = ["conversation", "get", "mine", "wp:1", "--json"];
    let got = env.tenure(&get).ok().json();
    assert_eq!(got["conversation"]["native_id"], "c-1", "{got:#}");
    let history = ["conversation", "history", "mine", "wp:1", "--json"];
    let history = env.tenure(&history).ok().json().to_string();
    assert!(!history.contains("c-2"), "{history}");
}

#[test]
fn f_r23_a_person_who_is_merely_in_the_directory_is_named_and_blocks_nothing() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let person = session(&env, "some-editor");
    let handle = text(&person.tenure(&["whoami", "--json"]).ok().json()["session"]["handle"]);
    let ann = env.agent("ann");
    let said = run(&ann, "mine wp:1").ok();
    let named = format!("{handle} also works in ");
    assert!(said.stderr.contains(&named), "{said}");
}

#[test]
fn an_agent_from_the_settings_that_does_not_know_its_conversation_is_not_run_again() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "echo $mode >>$dir/calls; init; done_");
    let ann = env.agent("ann");
    run(&ann, "mine wp:1").ok();
    mine.does("echo $mode >>$dir/calls; echo 'no such conversation' >&2; exit 1");
    run(&ann, "mine wp:1").fails(1);
    let failed = newest(&env);
    assert_eq!(
        (&failed["outcome"], &failed["fell_back"]),
        (&Value::from("failed"), &Value::from(false))
    );
    let refused = run(&ann, "mine wp:1 --json").fails(125);
    let error = lines(&refused)[0]["error"].clone();
    assert_eq!(error["kind"], "unknown_conversation", "{error}");
    assert_eq!(mine.wrote("calls").unwrap(), "fresh\nresume\n");
    mine.does("echo $mode >>$dir/calls; init c-2; done_");
    run(&ann, "mine wp:1 --fresh").ok();
    assert_eq!(mine.wrote("calls").unwrap(), "fresh\nresume\nfresh\n");
}

/// By a runner beside its agent, and by who works the queue.
#[test]
fn f_r16_once_a_day_the_log_gets_the_conversations_that_agents_deleted() {
    let env = env();
    fake_claude(&env, "keeps; init; ok hi");
    let ann = env.agent("ann");
    run(&ann, "claude wp:1").ok();
    let id = text(&newest(&env)["native_id"]);
    let file = env.home().join(format!(".claude/projects/work/{id}.jsonl"));
    std::fs::remove_file(file).unwrap();
    let lost = || {
        let log = env.tenure(&["log", "wp:1", "--json"]).ok().json();
        let events = log["events"].as_array().unwrap().clone();
        let lost = events
            .iter()
            .filter(|one| one["kind"] == "conversation.lost");
        lost.map(|one| text(&one["evidence"])).collect::<Vec<_>>()
    };
    run(&ann, "claude wp:2").ok();
    assert_eq!(lost(), Vec::<String>::new(), "it was looked a moment ago");
    let marker = env.state().join("conversations.looked-for");
    let yesterday = std::time::SystemTime::now() - std::time::Duration::from_secs(25 * 3600);
    let is_due = || {
        let marker = std::fs::File::options().write(true).open(&marker).unwrap();
        marker.set_modified(yesterday).unwrap();
    };
    is_due();
    run(&ann, "claude wp:2").ok();
    assert_eq!(lost(), [format!("claude no longer has {id}")]);
    is_due();
    let dispatch = ann.start(Cmd::new("tenure").args(["dispatch", "--json"]));
    poll(SOON, "it has looked", || {
        let changed = std::fs::metadata(&marker).unwrap().modified().unwrap();
        (changed > yesterday + std::time::Duration::from_secs(3600)).then_some(())
    });
    assert!(dispatch.signal(tenure_testkit::Signal::TERM));
    let _stopped = dispatch.wait();
    assert_eq!(lost().len(), 1, "once");
}

#[test]
fn f_r16_status_names_a_conversation_that_its_agent_deleted() {
    let env = env();
    fake_claude(&env, "keeps; init; ok hi");
    let ann = env.agent("ann");
    run(&ann, "claude wp:1").ok();
    let warned = || env.tenure(&["status", "--json"]).ok().json()["status"]["warnings"].to_string();
    let what = "claude no longer has its conversation of wp:1";
    assert!(!warned().contains(what), "{}", warned());
    let id = text(&newest(&env)["native_id"]);
    let file = env.home().join(format!(".claude/projects/work/{id}.jsonl"));
    std::fs::remove_file(file).unwrap();
    assert!(warned().contains(what), "{}", warned());
}
