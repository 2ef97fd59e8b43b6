//! Bringing back what was cut off: with the flags of its start, once, and only what is not being started.

use std::fs;

use serde_json::{Value, json};
use tenure_testkit::Cmd;

use crate::env;
use crate::support::answer::{ask, asked_by_nobody, text};
use crate::support::hook::only;
use crate::support::talking::{bash, shown, talking};

#[test]
fn a_resume_repeats_the_flags_of_the_start() {
    let env = env();
    let args = [
        "--permission-mode",
        "plan",
        "--allowedTools",
        "Bash(git log:*)",
        "Edit",
        "fix it",
    ];
    // What follows a list of tools up to the next flag is a tool to the agent as well.
    let args = [&args[..5], &["--model", "opus", "fix it"]].concat();
    let worker = talking(&env, "claude", "claude-2.1.325", &args, "0000aaaa");
    let handle = text(&only(&env), "/handle").to_owned();
    worker.kill9();
    let words = ["resume", &handle, "--print"];
    let view = asked_by_nobody(&env, &words)["resume"][0].clone();
    let argv = json!([
        "claude",
        "--permission-mode",
        "plan",
        "--allowedTools",
        "Bash(git log:*)",
        "Edit",
        "--model",
        "opus",
        "--resume",
        "0000aaaa"
    ]);
    assert_eq!(view["argv"], argv);
    let said = env.tenure(&words).ok().stdout;
    let expected = "claude --permission-mode plan --allowedTools 'Bash(git log:*)' Edit --model opus --resume 0000aaaa";
    assert!(said.contains(expected), "{said}");
    assert!(!said.contains("fix it"), "{said}");
}

#[test]
fn the_list_alone_starts_nothing_and_needs_no_terminal() {
    let env = env();
    let worker = talking(&env, "claude", "claude-2.1.325", &[], "0000aaaa");
    ask(&worker, &["claim", "wp:1"]);
    let handle = text(&only(&env), "/handle").to_owned();
    worker.kill9();
    let said = env.tenure(&["resume"]).ok().stdout;
    for part in [
        handle.as_str(),
        "wp:1",
        "--resume 0000aaaa",
        "tenure dismiss",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let view = asked_by_nobody(&env, &["resume"])["resume"][0].clone();
    assert_eq!(view["session"]["end_kind"], "cut_off");
    assert_eq!(view["held"][0]["key"], "wp:1");
    talking(&env, "claude", "claude-2.1.325", &[], "0000bbbb").kill9();
    assert!(
        env.tenure(&["resume", "--all"])
            .fails(2)
            .stderr
            .contains("tmux")
    );
}

/// Between its start and its first event an agent is not a session yet, and its command line says what it resumes.
#[test]
fn a_conversation_that_is_being_started_is_not_started_again() {
    let env = env();
    let worker = talking(&env, "claude", "claude-2.1.325", &[], "0000aaaa");
    let handle = text(&only(&env), "/handle").to_owned();
    worker.kill9();
    let starting = env.agent_with("claude", &["--resume", "0000aaaa"]);
    let words = ["resume", &handle, "--json"];
    let error = env.tenure(&words).fails(3).json()["error"].clone();
    assert_eq!(error["kind"], "live", "{error}");
    assert!(text(&error, "/message").contains(&starting.pid().to_string()));
    let all = asked_by_nobody(&env, &["resume", "--all", "--print"]);
    assert_eq!(all["resume"], json!([]));
    // Every list says the same of it.
    let pid = starting.pid();
    assert_eq!(
        asked_by_nobody(&env, &["resume"])["resume"],
        json!([]),
        "alone"
    );
    let listed = shown(&env);
    assert_eq!(listed[0]["activity"], "starting", "{listed:#?}");
    assert_eq!(listed[0]["process"]["pid"], pid);
    assert_eq!(listed[0]["resume"], Value::Null);
    let _alive = env.tenure(&["alive", &handle]).ok();
    let said = env.tenure(&["show", &handle]).ok().stdout;
    assert!(
        said.contains(&format!("pid {pid} was started on its conversation")),
        "{said}"
    );
    assert!(!said.contains("is gone"), "{said}");
    for verb in ["ps", "status", "resume"] {
        let said = env.tenure(&[verb]).ok().stdout;
        assert!(said.contains("starting"), "{verb}: {said}");
        assert!(said.contains(&format!("(pid {pid})")), "{verb}: {said}");
        for other in ["dead", "tenure resume", "cut off"] {
            assert!(!said.contains(other), "{verb} {other}: {said}");
        }
    }
    starting.kill9();
    let _free = env.tenure(&["resume", &handle, "--print"]).ok();
}

/// Two that bring everything back at once open one window for each.
#[test]
fn bringing_all_back_twice_at_once_starts_each_once() {
    use std::os::unix::fs::PermissionsExt;
    let mut env = env();
    env.set("TMUX", "yes");
    for id in ["0000aaaa", "0000bbbb"] {
        talking(&env, "claude", "claude-2.1.325", &[], id).kill9();
    }
    let (dir, agents) = (env.dir().to_owned(), env.dir().join("own"));
    fs::create_dir(&agents).unwrap();
    fs::copy(bash(), agents.join("claude")).unwrap();
    fs::write(agents.join("keep"), "").unwrap();
    // A window that takes a while to become the agent, and an agent that never registers.
    let tmux = format!(
        "#!/bin/sh\nwhile [ \"$1\" != -c ]; do shift; done; cd \"$2\"; shift 3\necho \"$@\" >>'{0}/windows'\n\
         (sleep 0.2; exec '{0}/own/claude' -c 'while [ -e {0}/own/keep ]; do sleep 0.05; done' \"$@\") \\\n\
         >/dev/null 2>&1 &\necho $! work:1\n",
        dir.display()
    );
    let path = dir.join("bin").join("tmux");
    fs::write(&path, tmux).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let driver = env.agent("driver");
    let resume = || driver.start(Cmd::shell("tenure resume --all"));
    let both = [resume(), resume()];
    for one in both {
        let said = one.wait();
        assert_eq!(said.code, 0, "{said}");
    }
    let _third = driver.tenure(&["resume", "--all"]).ok();
    let windows = fs::read_to_string(dir.join("windows")).unwrap();
    let mut lines: Vec<&str> = windows.lines().collect();
    lines.sort_unstable();
    fs::remove_file(agents.join("keep")).unwrap();
    assert_eq!(
        lines,
        ["claude --resume 0000aaaa", "claude --resume 0000bbbb"]
    );
}
