//! Runs and their conversations: what is resumed, what is begun again, what is left alone, and for how long.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tenure_testkit::{Cmd, poll};

use crate::env;
use crate::support::line::{SOON, crew, text};
use crate::support::run::{all, fake_claude, lines, newest, run, start};
use crate::support::waiter::{holder, waits};

fn calls(dir: &std::path::Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(dir.join("calls")).unwrap_or_default();
    let pair = |line: &str| {
        let (mode, id) = line.split_once(' ').expect("two words");
        (mode.to_owned(), id.to_owned())
    };
    text.lines().map(pair).collect()
}

fn history(env: &tenure_testkit::Env) -> Value {
    let said = env.tenure(&["conversation", "history", "claude", "wp:1", "--json"]);
    said.ok().json()["history"].clone()
}

#[test]
fn the_id_of_a_fresh_conversation_is_chosen_and_its_hooks_find_the_same_session() {
    let env = env();
    let hook = "printf '{\"hook_event_name\":\"%s\",\"session_id\":\"%s\"}' $1 $id | tenure hook claude >/dev/null";
    let dir = fake_claude(
        &env,
        &format!(
            "hooked() {{ {hook}; }}; keeps; hooked SessionStart; init; ok hi; tenure whoami --json >$dir/me"
        ),
    );
    let ann = env.agent("ann");
    assert_eq!(run(&ann, "claude wp:1").ok().stdout, "hi\n");
    let ended = newest(&env);
    let [(mode, id)] = calls(&dir).try_into().unwrap();
    assert_eq!(
        (mode.as_str(), &ended["native_id"]),
        ("fresh", &Value::from(id))
    );
    let me = std::fs::read_to_string(dir.join("me")).unwrap();
    let me: Value = serde_json::from_str(&me).unwrap();
    assert_eq!(me["session"]["handle"], ended["session"]);
    assert_eq!(me["session"]["native_id"], ended["native_id"]);
    let sessions = ann.tenure(&["ps", "-a", "--json"]).ok().json();
    let claudes = sessions["sessions"].as_array().unwrap().iter();
    assert_eq!(claudes.filter(|one| one["agent"] == "claude").count(), 1);
}

#[test]
fn an_end_that_a_hook_reports_does_not_end_the_session_of_a_run() {
    let env = env();
    let dir = fake_claude(
        &env,
        "keeps; init; printf '{\"hook_event_name\":\"SessionEnd\",\"reason\":\"other\",\"session_id\":\"%s\"}' $id | tenure hook claude >/dev/null
         : >$dir/on; hold $dir/flag; ok hi",
    );
    std::fs::write(dir.join("flag"), "").unwrap();
    let ann = env.agent("ann");
    let window = start(&ann, "claude wp:1");
    poll(SOON, "its hook said that it ends", || {
        dir.join("on").exists().then_some(())
    });
    let session = text(&newest(&env)["session"]);
    let shown = ann.tenure(&["show", &session, "--json"]).ok().json();
    assert_eq!(shown["session"]["state"], "live");
    std::fs::remove_file(dir.join("flag")).unwrap();
    window.wait().ok();
    let shown = ann.tenure(&["show", &session, "--json"]).ok().json();
    assert_eq!(shown["session"]["state"], "ended");
    let why = text(&shown["session"]["end_reason"]);
    assert!(why.ends_with("ended: done"), "{why}");
}

#[test]
fn f_r16_a_conversation_whose_file_is_gone_is_begun_anew_once() {
    let env = env();
    let dir = fake_claude(&env, "keeps; init; ok hi");
    let ann = env.agent("ann");
    run(&ann, "claude wp:1").ok();
    let first = text(&newest(&env)["native_id"]);
    let file = env
        .home()
        .join(format!(".claude/projects/work/{first}.jsonl"));
    std::fs::remove_file(file).unwrap();
    let said = run(&ann, "claude wp:1").ok();
    assert!(
        said.stderr.contains("the agent has deleted the last one"),
        "{said}"
    );
    let second = newest(&env);
    assert_eq!(second["fell_back"], true);
    assert_eq!(second["before"], first.as_str());
    assert_ne!(second["native_id"], first.as_str());
    assert_eq!(history(&env)[0]["why"], "unknown", "{}", history(&env));
    run(&ann, "claude wp:1").ok();
    let modes: Vec<String> = calls(&dir).into_iter().map(|(mode, _)| mode).collect();
    assert_eq!(modes, ["fresh", "fresh", "resume"]);
}

#[test]
fn f_r17_a_refused_resume_falls_back_once_and_nothing_is_free_in_between() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let dir = fake_claude(&env, "keeps; init; ok hi");
    run(&ann, "claude wp:1 --exclusive").ok();
    let first = text(&newest(&env)["native_id"]);
    fake_claude(
        &env,
        "if [ $mode = resume ]; then hold $dir/first; rm $file; unknown; fi; printf '%s' \"$prompt\" >$dir/prompt
         keeps; init; : >$dir/on; hold $dir/second; ok again",
    );
    std::fs::write(dir.join("first"), "").unwrap();
    std::fs::write(dir.join("second"), "").unwrap();
    let window = start(&ann, "claude wp:1 --exclusive --json");
    poll(SOON, "it resumes", || {
        (calls(&dir).len() == 2).then_some(())
    });
    let session = text(&newest(&env)["session"]);
    let waiter = waits(&env, &bob, "wp:1", "claim wp:1 --wait 5m");
    std::fs::remove_file(dir.join("first")).unwrap();
    poll(SOON, "it went on in a fresh one", || {
        dir.join("on").exists().then_some(())
    });
    assert_eq!(holder(&env, "wp:1"), (Some(session.clone()), 2));
    std::fs::remove_file(dir.join("second")).unwrap();
    let said = window.wait().ok();
    let events: Vec<Value> = lines(&said)
        .into_iter()
        .filter(|line| line["event"] != "agent")
        .collect();
    let names: Vec<&str> = events
        .iter()
        .filter_map(|one| one["event"].as_str())
        .collect();
    assert_eq!(names, ["run.started", "run.fell_back", "run.ended"]);
    let ended = &events[2]["run"];
    assert_eq!(
        (ended["outcome"].as_str(), ended["fell_back"].as_bool()),
        (Some("done"), Some(true))
    );
    assert_eq!(ended["session"], session.as_str());
    assert_ne!(ended["native_id"], first.as_str());
    let granted = waiter.wait().ok().json();
    assert_eq!(granted["claim"]["epoch"], 3);
    let prompt = std::fs::read_to_string(dir.join("prompt")).unwrap();
    assert!(prompt.ends_with("do it"), "{prompt}");
    assert_eq!(all(&env).len(), 2);
}

#[test]
fn a_resume_that_is_refused_although_the_conversation_is_there_is_not_repeated() {
    let env = env();
    let dir = fake_claude(&env, "keeps; init; ok hi");
    let ann = env.agent("ann");
    run(&ann, "claude wp:1").ok();
    let id = newest(&env)["native_id"].clone();
    fake_claude(&env, "unknown");
    run(&ann, "claude wp:1").fails(1);
    let failed = newest(&env);
    assert_eq!(
        (failed["outcome"].as_str(), failed["fell_back"].as_bool()),
        (Some("failed"), Some(false))
    );
    fake_claude(&env, "keeps; init; ok hi");
    run(&ann, "claude wp:1").ok();
    assert_eq!(newest(&env)["native_id"], id);
    let modes: Vec<String> = calls(&dir).into_iter().map(|(mode, _)| mode).collect();
    assert_eq!(modes, ["fresh", "resume", "resume"]);
}

#[test]
fn f_r19_a_history_that_the_provider_refuses_is_not_resumed_again() {
    let env = env();
    let dir = fake_claude(
        &env,
        "keeps; init; if [ $mode = resume ]; then poisoned; fi; ok hi",
    );
    let ann = env.agent("ann");
    run(&ann, "claude wp:1").ok();
    run(&ann, "claude wp:1").fails(1);
    assert_eq!(newest(&env)["outcome"], "unusable");
    let refused = run(&ann, "claude wp:1 --json").fails(125);
    assert_eq!(lines(&refused)[0]["error"]["kind"], "unusable");
    assert_eq!(calls(&dir).len(), 2);
    run(&ann, "claude wp:1 --fresh").ok();
    assert_eq!(newest(&env)["before"], Value::Null);
}

#[test]
fn f_r21_f_r25_a_usage_limit_parks_the_agent_until_the_time_that_it_named() {
    let env = env();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let reset = now + 7200;
    let dir = fake_claude(&env, &format!("keeps; init; limited {reset}"));
    let ann = env.agent("ann");
    run(&ann, "claude wp:1").fails(1);
    let parked = newest(&env);
    assert_eq!(parked["outcome"], "parked");
    let until = text(&parked["parked_until"]);
    fake_claude(&env, "keeps; init; ok hi");
    for line in ["claude wp:1 --json", "claude wp:2 --json"] {
        let refused = run(&ann, line).fails(125);
        let error = lines(&refused)[0]["error"].clone();
        assert_eq!(error["kind"], "parked", "{line}");
        assert_eq!(error["until"], until.as_str());
    }
    let id = text(&parked["id"]);
    let refused = ann
        .run(Cmd::new("tenure").args(["runs", "resume", &id, "--json"]))
        .fails(125);
    assert_eq!(lines(&refused)[0]["error"]["until"], until.as_str());
    assert_eq!(calls(&dir).len(), 1);
    assert_eq!(all(&env).len(), 1);
}

#[test]
fn codex_is_told_before_it_starts_that_a_directory_is_not_trusted() {
    use std::os::unix::fs::PermissionsExt;
    let env = env();
    let program = env.dir().join("bin/codex");
    let script = r#"#!/bin/sh
cat >/dev/null
cp "$HOME/.codex/config.toml" "$HOME/seen.toml"
say() { printf '%s\n' "$1"; }
say '{"type":"thread.started","thread_id":"01a1dcbc-4a1e-7000-8000-000000000001"}'
say '{"type":"turn.started"}'
say '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"hi"}}'
say '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'
"#;
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::create_dir(env.home().join(".codex")).unwrap();
    let ann = env.agent("ann");
    assert_eq!(run(&ann, "codex wp:1").ok().stdout, "hi\n");
    let seen = std::fs::read_to_string(env.home().join("seen.toml")).unwrap();
    let work = env.work().display().to_string();
    assert!(seen.contains(&work) && seen.contains("untrusted"), "{seen}");
}

#[test]
fn a_role_continues_a_conversation_of_its_own() {
    let env = env();
    let dir = fake_claude(&env, "keeps; init; ok hi");
    let ann = env.agent("ann");
    for line in ["claude wp:1", "claude wp:1 --role reviewer", "claude wp:1"] {
        run(&ann, line).ok();
    }
    let [(_, first), second, third] = calls(&dir).try_into().unwrap();
    assert_eq!(
        second.0, "fresh",
        "a reviewer never resumes the implementer's"
    );
    assert_ne!(second.1, first);
    assert_eq!(third, ("resume".to_owned(), first.clone()));
    let get = |words: &[&str]| {
        let words = [&["conversation", "get", "claude", "wp:1", "--json"], words].concat();
        env.tenure(&words).ok().json()["conversation"].clone()
    };
    assert_eq!(get(&[])["native_id"], first);
    let review = get(&["--role", "reviewer"]);
    assert_eq!(
        (&review["role"], &review["native_id"]),
        (&"reviewer".into(), &second.1.into())
    );
    env.tenure(&["conversation", "get", "claude", "wp:1", "--role", "boss"])
        .fails(4);
    env.tenure(&["conversation", "drop", "wp:1", "--role", "reviewer"])
        .ok();
    let left = env.tenure(&["conversation", "list", "--json"]).ok().json();
    assert_eq!(
        left["conversations"].as_array().map(Vec::len),
        Some(1),
        "{left}"
    );
}
