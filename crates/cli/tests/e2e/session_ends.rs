//! Who left and who was cut off: captured events, sent by real processes with an agent's name and command line, and
//! real deaths.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env, poll, terminal_pair};

use crate::env;
use crate::support::answer::{PATIENCE, ask, asked_by_nobody, events, text};
use crate::support::hook::{captured, only, send};
use crate::support::talking::{bash, said, shown, talking};

/// An event of opencode's plugin.
fn opencode(worker: &Agent, name: &str, id: &str) {
    let event = json!({"hook_event_name": name, "session_id": id, "cwd": "/", "reason": "exit"});
    send(worker, "opencode", &event);
}

fn kind(env: &Env) -> String {
    let one = only(env);
    text(&one, "/end_kind").to_owned()
}

#[test]
fn an_end_that_the_agent_reports_is_left_or_cut_off() {
    for (agent, version, args, turn, end, expected) in [
        (
            "claude",
            "claude-2.1.325",
            &[][..],
            None,
            "SessionEnd.prompt_input_exit",
            "left",
        ),
        (
            "claude",
            "claude-2.1.325",
            &[],
            None,
            "SessionEnd.other",
            "cut_off",
        ),
        (
            "claude",
            "claude-2.1.197",
            &[],
            None,
            "SessionEnd.other",
            "cut_off",
        ),
        (
            "claude",
            "claude-2.1.325",
            &["-p", "hi"],
            Some("Stop"),
            "SessionEnd.other",
            "left",
        ),
        // A signal in the middle of a turn gives the same reason.
        (
            "claude",
            "claude-2.1.325",
            &["-p", "hi"],
            Some("PreToolUse.Bash"),
            "SessionEnd.other",
            "cut_off",
        ),
        (
            "codex",
            "codex-0.166.0",
            &["exec", "hi"],
            Some("Stop"),
            "SessionEnd.other",
            "left",
        ),
        (
            "codex",
            "codex-0.166.0",
            &["exec", "hi"],
            Some("PreToolUse.Bash"),
            "SessionEnd.other",
            "cut_off",
        ),
        (
            "gemini",
            "gemini-0.61.0",
            &[],
            None,
            "SessionEnd.exit",
            "left",
        ),
        (
            "gemini",
            "gemini-0.61.0",
            &["-p", "hi"],
            Some("AfterAgent"),
            "SessionEnd.exit",
            "left",
        ),
        (
            "gemini",
            "gemini-0.61.0",
            &["-p", "hi"],
            Some("BeforeAgent"),
            "SessionEnd.exit",
            "cut_off",
        ),
        (
            "qwen",
            "qwen-0.24.4",
            &[],
            None,
            "SessionEnd.prompt_input_exit",
            "left",
        ),
    ] {
        let env = env();
        let worker = talking(&env, agent, version, args, "0000aaaa");
        if let Some(event) = turn {
            said(
                &env,
                &worker,
                agent,
                &format!("{version}/{event}"),
                "0000aaaa",
            );
        }
        said(
            &env,
            &worker,
            agent,
            &format!("{version}/{end}"),
            "0000aaaa",
        );
        assert_eq!(kind(&env), expected, "{version} {args:?} {turn:?} {end}");
        assert_eq!(shown(&env).len(), usize::from(expected == "cut_off"));
    }
}

#[test]
fn a_process_that_vanished_was_cut_off_unless_its_only_turn_was_over() {
    for (agent, version, args, turn, expected, state) in [
        (
            "claude",
            "claude-2.1.325",
            &[][..],
            "Stop",
            "cut_off",
            "dead",
        ),
        (
            "claude",
            "claude-2.1.325",
            &["-p", "hi"],
            "UserPromptSubmit",
            "cut_off",
            "dead",
        ),
        (
            "codex",
            "codex-0.166.0",
            &["exec", "hi"],
            "Stop",
            "left",
            "ended",
        ),
        ("qwen", "qwen-0.24.4", &["hi"], "Stop", "left", "ended"),
        (
            "qwen",
            "qwen-0.24.4",
            &["-i", "hi"],
            "Stop",
            "cut_off",
            "dead",
        ),
    ] {
        let env = env();
        let worker = talking(&env, agent, version, args, "0000aaaa");
        said(
            &env,
            &worker,
            agent,
            &format!("{version}/{turn}"),
            "0000aaaa",
        );
        worker.kill9();
        let one = only(&env);
        assert_eq!(one["end_kind"], expected, "{agent} {args:?} {turn}");
        assert_eq!(one["state"], state, "{agent} {args:?} {turn}");
        // The log calls only what was cut off a death.
        let died = events(&env, "session.died").len();
        assert_eq!(died, usize::from(state == "dead"), "{agent} {args:?}");
    }
}

#[test]
fn an_agent_that_announced_its_exit_left_and_one_that_went_on_did_not() {
    for (goes_on, expected) in [(false, "left"), (true, "cut_off")] {
        let env = env();
        let worker = env.agent("opencode");
        opencode(&worker, "SessionStart", "ses_1");
        let key = "wp:1";
        ask(&worker, &["claim", key]);
        opencode(&worker, "SessionEnd", "ses_1");
        // It lives, so it keeps what it holds.
        let holder = asked_by_nobody(&env, &["why", key]);
        assert_eq!(holder["claim"]["state"], "held");
        if goes_on {
            opencode(&worker, "UserPromptSubmit", "ses_1");
        }
        worker.kill9();
        assert_eq!(only(&env)["end_kind"], expected);
        assert_eq!(shown(&env).len(), usize::from(goes_on));
    }
}

/// A Gemini in a terminal that reports its start and, once this was done to the terminal, its end.
#[track_caller]
fn gemini_ends(in_between: impl FnOnce(OwnedFd, &Path)) -> Value {
    let env = env();
    let bin = env.dir().join("own");
    fs::create_dir(&bin).expect("it is ours");
    fs::copy(bash(), bin.join("gemini")).expect("it is ours");
    for event in ["SessionStart.startup", "SessionEnd.exit"] {
        let event_json = captured(&env, &format!("gemini-0.61.0/{event}"), "0000aaaa");
        fs::write(bin.join(event), event_json.to_string()).expect("it is ours");
    }
    let (terminal, path) = terminal_pair();
    let program = "trap '' HUP; tenure hook gemini <SessionStart.startup >/dev/null; >ready
        while [ ! -e go ]; do sleep 0.02; done; tenure hook gemini <SessionEnd.exit >/dev/null 2>&1; >ended
        while [ ! -e over ]; do sleep 0.02; done";
    fs::write(bin.join("program"), program).expect("it is ours");
    let pts = path.display();
    let line = format!(
        "trap '' HUP; cd '{}' && exec ./gemini program <{pts} >{pts} 2>&1",
        bin.display()
    );
    let driver = env.agent("driver");
    let running = driver.start(Cmd::shell(&line));
    let is_there = |name: &str| bin.join(name).exists().then_some(());
    poll(PATIENCE, "it is registered", || is_there("ready"));
    in_between(terminal, &path);
    fs::write(bin.join("go"), "").expect("it is ours");
    poll(PATIENCE, "it reported its end", || is_there("ended"));
    fs::write(bin.join("over"), "").expect("it is ours");
    let _code = running.wait();
    let one = only(&env);
    assert_eq!(one["state"], "ended", "{one:#}");
    one
}

/// Gemini gives one reason for leaving and for a hang-up; whose terminal is gone did not leave.
#[test]
fn an_end_after_the_terminal_closed_is_cut_off() {
    let one = gemini_ends(|terminal, _| drop(terminal));
    assert_eq!(one["end_kind"], "cut_off", "{one:#}");
}

/// It gives that reason for a signal too; who leaves has just typed something.
#[test]
fn an_end_in_a_terminal_in_which_nobody_typed_is_cut_off() {
    for (ago, expected) in [(0, "left"), (60, "cut_off")] {
        let mut kept = None;
        let one = gemini_ends(|terminal, path| {
            kept = Some(terminal);
            let last_key = SystemTime::now() - Duration::from_secs(ago);
            let times = fs::FileTimes::new().set_accessed(last_key);
            let device = fs::OpenOptions::new().write(true).open(path).unwrap();
            device.set_times(times).unwrap();
        });
        assert_eq!(one["end_kind"], expected, "{ago}: {one:#}");
        drop(kept);
    }
}

/// It rested, but not because it had done what it was started for.
#[test]
fn who_was_killed_before_its_first_turn_was_cut_off() {
    for end in [None, Some("SessionEnd.other")] {
        let env = env();
        let (version, args) = ("claude-2.1.325", ["-p", "hi"]);
        let worker = talking(&env, "claude", version, &args, "0000aaaa");
        match end {
            Some(end) => said(
                &env,
                &worker,
                "claude",
                &format!("{version}/{end}"),
                "0000aaaa",
            ),
            None => worker.kill9(),
        }
        assert_eq!(kind(&env), "cut_off", "{end:?}");
        assert_eq!(shown(&env).len(), 1, "{end:?}");
    }
}

/// `claude stop` ends a background session like a signal does, and says which it was only afterwards, in its own file.
#[test]
fn what_a_person_stopped_with_the_agents_own_command_is_not_cut_off() {
    let id = "50bd11c8-cf0e-40b4-8371-91813069d60f";
    for (stopped_at, expected) in [
        ("2999-01-01T00:00:00.000Z", "left"),
        // That was an earlier process of it.
        ("2020-01-01T00:00:00.000Z", "cut_off"),
    ] {
        let env = env();
        let agent = crate::support::transcript::claude(&env, id);
        let end = json!({"hook_event_name": "SessionEnd", "session_id": id, "cwd": env.work(), "reason": "other",
            "transcript_path": crate::support::transcript::file_of(&env, id)});
        send(&agent, "claude", &end);
        assert_eq!(kind(&env), "cut_off", "nothing says more yet");
        let job = env.home().join(".claude/jobs/50bd11c8");
        fs::create_dir_all(&job).unwrap();
        let state = json!({"state": "stopped", "sessionId": id, "updatedAt": stopped_at});
        fs::write(job.join("state.json"), state.to_string()).unwrap();
        let offered = env.tenure(&["resume", "--json"]).ok().json();
        let offered = offered["resume"].as_array().unwrap().len();
        assert_eq!(offered, usize::from(expected == "cut_off"), "{stopped_at}");
        // What was found stays, also without the file.
        fs::remove_dir_all(&job).unwrap();
        assert_eq!(kind(&env), expected, "{stopped_at}");
        let log = env.tenure(&["log"]).ok().stdout;
        assert_eq!(
            log.contains("the user stopped it"),
            expected == "left",
            "{log}"
        );
    }
}
