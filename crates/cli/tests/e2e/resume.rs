//! What died is resumed: by the agent's own command, in its directory, and never twice at once.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{Agent, Env, poll};

use crate::env;
use crate::support::forge::{forge, forge_process};
use crate::support::line::{SOON, register, run, session, text};
use crate::support::tmux::{Tmux, with_tmux};

/// An agent in a conversation, and its session's handle.
fn talking(env: &Env, name: &str, conversation: &str, more: &str) -> (Agent, String) {
    let agent = env.agent(name);
    let born = register(&agent, name, &format!("--native-id {conversation} {more}"));
    (agent, text(&born["session"]["handle"]))
}

/// The sessions that `resume --all --print` names.
#[track_caller]
fn handles(env: &Env, more: &[&str]) -> Vec<String> {
    let words = [&["resume", "--all", "--print", "--json"], more].concat();
    let answer = env.tenure(&words).ok().json();
    let views = answer["resume"].as_array().expect("a list").iter();
    views.map(|view| text(&view["session"]["handle"])).collect()
}

/// How one session is resumed.
#[track_caller]
fn one(env: &Env, handle: &str) -> Value {
    let answer = env.tenure(&["resume", handle, "--print", "--json"]).ok();
    answer.json()["resume"][0].clone()
}

#[track_caller]
fn refused(env: &Env, code: i32, kind: &str, words: &[&str]) -> String {
    let words = [words, &["--json"]].concat();
    let error = env.tenure(&words).fails(code).json()["error"].clone();
    assert_eq!(error["kind"], kind, "{error}");
    text(&error["message"])
}

#[test]
fn a_living_conversation_is_not_resumed() {
    let env = env();
    let (claude, handle) = talking(&env, "claude", "c-1", "");
    for more in [&["--print"][..], &[]] {
        let said = refused(&env, 3, "live", &[&["resume", &handle], more].concat());
        assert!(said.contains(&handle), "{said}");
        assert!(said.contains(&claude.pid().to_string()), "{said}");
    }
    assert_eq!(handles(&env, &[]), Vec::<String>::new());
    let said = env.tenure(&["resume", "--all", "--print"]).ok();
    assert_eq!(
        said.stdout.trim_end(),
        "no session was cut off in the last day"
    );
}

#[test]
fn each_agent_is_resumed_by_its_own_command_in_its_directory() {
    let env = env();
    let dir = env.dir().join("it's here");
    std::fs::create_dir(&dir).unwrap();
    for (name, argv) in [
        ("claude", json!(["claude", "--resume", "c-1"])),
        ("codex", json!(["codex", "resume", "c-1"])),
        ("gemini", json!(["gemini", "--resume", "c-1"])),
        ("opencode", json!(["opencode", "--session", "c-1"])),
    ] {
        let agent = env.agent(name);
        let pid = agent.pid().to_string();
        let place = dir.to_str().unwrap();
        let words = [
            "register",
            "--pid",
            &pid,
            "--native-id",
            "c-1",
            "--dir",
            place,
        ];
        agent.tenure(&words).ok();
        let handle = crate::support::line::handle(&agent);
        agent.kill9();
        let view = one(&env, &handle);
        assert_eq!(view["argv"], argv);
        assert_eq!(view["dir"], place);
        assert_eq!(view["problem"], Value::Null);
        let said = env.tenure(&["resume", &handle, "--print"]).ok().stdout;
        let quoted = place.replace('\'', "'\\''");
        assert!(
            said.starts_with(&format!("cd '{quoted}' && {name} ")),
            "{said}"
        );
        assert!(said.trim_end().ends_with(&format!("# {handle}")), "{said}");
    }
}

#[test]
fn an_agent_without_a_resume_command_is_named_and_not_run() {
    let env = env();
    let (nightly, handle) = talking(&env, "nightly", "n-1", "");
    nightly.kill9();
    for more in [&["--print"][..], &[]] {
        let said = refused(&env, 4, "not_found", &[&["resume", &handle], more].concat());
        assert!(
            said.contains("tenure cannot resume nightly conversations"),
            "{said}"
        );
    }
    let said = env.tenure(&["resume", "--all", "--print"]).ok().stdout;
    assert!(
        said.starts_with(&format!("# {handle}: tenure cannot resume nightly")),
        "{said}"
    );
    // Without a conversation there is nothing to go on with.
    let mute = session(&env, "claude");
    let handle = crate::support::line::handle(&mute);
    mute.kill9();
    let said = refused(&env, 4, "not_found", &["resume", &handle, "--print"]);
    assert!(said.contains("no conversation"), "{said}");
}

#[test]
fn what_is_not_there_any_more_is_said() {
    let env = env();
    let place = env.dir().join("gone");
    std::fs::create_dir(&place).unwrap();
    let file = env.dir().join("c-1.jsonl");
    std::fs::write(&file, "").unwrap();
    let (claude, handle) = talking(
        &env,
        "claude",
        "c-1",
        &format!("--dir {} --transcript {}", place.display(), file.display()),
    );
    claude.kill9();
    assert_eq!(one(&env, &handle)["problem"], Value::Null);
    for (path, words) in [(&place, "its directory"), (&file, "its transcript")] {
        if path.is_dir() {
            std::fs::remove_dir(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
        for more in [&["--print"][..], &[]] {
            let said = refused(&env, 4, "not_found", &[&["resume", &handle], more].concat());
            assert!(
                said.contains(words) && said.contains(path.to_str().unwrap()),
                "{said}"
            );
        }
    }
    let listed = env
        .tenure(&["resume", "--all", "--print", "--json"])
        .ok()
        .json();
    assert!(listed["resume"][0]["problem"].is_string(), "{listed}");
}

#[test]
fn lately_is_what_the_caller_says() {
    let env = env();
    let (claude, handle) = talking(&env, "claude", "c-1", "");
    claude.kill9();
    assert_eq!(handles(&env, &[]), std::slice::from_ref(&handle));
    forge(&env, "UPDATE sessions SET closed_at = closed_at - 7200000");
    assert_eq!(handles(&env, &["--since", "1h"]), Vec::<String>::new());
    assert_eq!(handles(&env, &["--since", "3h"]), [handle]);
    let words = ["resume", "--all", "--since", "soon", "--print"];
    refused(&env, 2, "usage", &words);
    let said = env.tenure(&words).fails(2).stderr;
    assert!(said.contains("tenure resume --help"), "{said}");
}

#[test]
fn after_a_reboot_whatever_was_open_is_named() {
    let env = env();
    let (claude, handle) = talking(&env, "claude", "c-1", "");
    let (ended, _) = talking(&env, "codex", "c-2", "");
    run(&ended, 0, "end");
    let id = text(&run(&claude, 0, "whoami")["session"]["id"]);
    // As if the machine had gone down and the pid were another's now.
    forge_process(&env, &id, "boot_id = 'another'");
    assert_eq!(handles(&env, &[]), [handle]);
}

/// A program that writes down how it was started.
fn recorder(env: &Env, name: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = env.dir().join("bin").join(name);
    let to = env.dir().join("started");
    let script = format!(
        "#!/bin/sh\n{{ pwd; for word in \"$@\"; do echo \"$word\"; done; echo \"ses=$TENURE_SESSION\"; echo $$; }} >'{}'\nexit 7\n",
        to.display()
    );
    std::fs::write(&path, script).expect("the directory is ours");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("it is ours");
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("it was written");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn resuming_becomes_the_agent_in_its_directory() {
    let env = env();
    let place = env.dir().join("there");
    std::fs::create_dir(&place).unwrap();
    let (claude, handle) = talking(&env, "claude", "c-1", &format!("--dir {}", place.display()));
    claude.kill9();
    let me = env.agent("me");
    let missing = me.tenure_env(&[("PATH", Some("/nowhere"))], &["resume", &handle]);
    assert_eq!(missing.code, 127, "{missing}");
    recorder(&env, "claude");
    let started = me.tenure_env(&[("TENURE_SESSION", Some("x.1"))], &["resume", &handle]);
    // The agent's exit code is the command's own: tenure became the agent.
    assert_eq!(started.code, 7, "{started}");
    let said = lines(&env.dir().join("started"));
    let place = place.to_str().unwrap();
    assert_eq!(said[..4], [place, "--resume", "c-1", "ses="], "{said:?}");
}

#[test]
fn several_need_a_terminal_each() {
    let env = env();
    for id in ["c-1", "c-2"] {
        talking(&env, "claude", id, "").0.kill9();
    }
    let said = refused(&env, 2, "usage", &["resume", "--all"]);
    assert_eq!(
        said,
        "`tenure resume --all` must run inside tmux: each agent needs its own window"
    );
}

#[test]
fn several_are_started_in_windows_and_each_is_named_with_its_own() {
    let mut env = env();
    let started: Vec<String> = ["c-1", "c-2"]
        .map(|id| {
            let (agent, handle) = talking(&env, "claude", id, "");
            agent.kill9();
            handle
        })
        .to_vec();
    let tmux = env.dir().join("bin/tmux");
    std::fs::write(&tmux, "#!/bin/sh\necho 4194304 work:3\n").expect("the directory is ours");
    std::fs::set_permissions(&tmux, PermissionsExt::from_mode(0o755)).expect("it is ours");
    env.set("TMUX", "/nowhere,1,0");
    let said = env.tenure(&["resume", "--all"]).ok().stdout;
    for handle in &started {
        let line = format!("started {handle} in tmux window work:3");
        assert!(said.contains(&line), "{said}");
    }
    assert!(!said.contains("cd "), "no command is left to run: {said}");
}

/// A person's windows have an order and names. What tmux made up is no name, and a name is never a command.
#[test]
fn windows_come_back_in_their_order_and_with_their_names() {
    let env = with_tmux();
    let tmux = Tmux::start(&env, "s");
    let panes = [tmux.window(), tmux.window(), tmux.window()];
    tmux.run(&["rename-window", "-t", &panes[0], "web"]);
    tmux.run(&["rename-window", "-t", &panes[1], "api ##(touch run)|:"]);
    for at in [1, 2, 0] {
        let id = format!("c-{at}");
        let line = format!("tenure register --agent claude --native-id {id} --pid $$ >/dev/null");
        tmux.types(&panes[at], &format!("{line} && echo do''ne"));
        tmux.shows(&panes[at], "done");
    }
    env.tenure(&["ps"]).ok();
    drop(tmux);
    let offers = poll(SOON, "all of them were cut off", || {
        let offers = env.tenure(&["resume", "--json"]).ok().json()["resume"].clone();
        let is_whole = offers.as_array().is_some_and(|all| all.len() == 3);
        is_whole.then_some(offers)
    });
    let of_last = |one: &&Value| one["argv"][2] == "c-2";
    let last = offers.as_array().unwrap().iter().find(of_last).unwrap();
    let program = env.dir().join("bin/claude");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 600\n").expect("the directory is ours");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let tmux = Tmux::start(&env, "t");
    tmux.types("main:0", "tenure resume --all && echo do''ne");
    tmux.shows("main:0", "done");
    let windows = tmux.run(&["list-windows", "-F", "#{window_index} #{window_name}"]);
    let handle = last["session"]["handle"].as_str().unwrap();
    let expected = ["1 web", "2 api #(touch run)|:", &format!("3 {handle}")];
    assert_eq!(windows.lines().skip(1).collect::<Vec<_>>(), expected);
    assert!(!env.work().join("run").exists(), "a name was run");
}

#[test]
fn a_single_one_is_started_where_the_person_is() {
    let env = env();
    let (claude, _) = talking(&env, "claude", "c-1", "");
    claude.kill9();
    recorder(&env, "claude");
    let started = env.tenure(&["resume", "--all"]);
    assert_eq!(started.code, 7, "{started}");
    let said = lines(&env.dir().join("started"));
    assert_eq!(said[1..3], ["--resume", "c-1"], "{said:?}");
}

#[test]
fn an_agent_may_see_what_was_cut_off_and_not_start_it_all() {
    let env = env();
    let (dead, _) = talking(&env, "claude", "c-1", "");
    dead.kill9();
    recorder(&env, "claude");
    let model = session(&env, "claude");
    let error = run(&model, 1, "resume --all")["error"].clone();
    assert_eq!(error["kind"], "person_only", "{error}");
    assert!(!env.dir().join("started").exists());
    let listed = run(&model, 0, "resume --all --print");
    assert_eq!(listed["resume"][0]["argv"][2], "c-1");
}

#[test]
fn the_schema_says_what_these_answers_have() {
    let env = crate::support::person::seeing();
    let (claude, _) = talking(&env, "claude", "c-1", "");
    claude.kill9();
    let stranger = env.agent("gemini");
    let schema = env.tenure(&["schema"]).ok().json();
    let resumed = env
        .tenure(&["resume", "--all", "--print", "--json"])
        .ok()
        .json();
    let listed = run(&stranger, 0, "ps");
    for (name, answer) in [
        ("resume", &resumed["resume"][0]),
        ("unmanaged", &listed["unmanaged"][0]),
    ] {
        let known: Vec<&String> = schema["$defs"][name]["properties"]
            .as_object()
            .expect(name)
            .keys()
            .collect();
        let parts: Vec<&String> = answer.as_object().expect(name).keys().collect();
        assert_eq!(parts, known, "{name}");
    }
}
