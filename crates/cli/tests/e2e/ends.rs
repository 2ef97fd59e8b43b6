//! Who left, who was cut off, and what is seen of that until somebody resumes or dismisses it: captured events, sent
//! by real processes with an agent's name and command line, and real deaths.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env, poll, terminal_pair};

use crate::env;
use crate::support::answer::{PATIENCE, ask, asked_by_nobody, events, text};
use crate::support::forge::forge;
use crate::support::hook::{captured, only, send, sessions};

/// An agent that started a conversation which is on disk, with this command line.
fn talking(env: &Env, agent: &str, version: &str, args: &[&str], id: &str) -> Agent {
    let worker = env.agent_with(agent, args);
    said(
        env,
        &worker,
        agent,
        &format!("{version}/SessionStart.startup"),
        id,
    );
    worker
}

/// Sends a captured event, and writes the transcript that it names.
fn said(env: &Env, worker: &Agent, agent: &str, fixture: &str, id: &str) {
    let event = captured(env, fixture, id);
    let path = event["transcript_path"].as_str().map(Path::new);
    if let Some((path, dir)) = path.and_then(|path| Some((path, path.parent()?))) {
        fs::create_dir_all(dir).expect("it is ours");
        fs::write(path, "{}\n").expect("it is ours");
    }
    send(worker, agent, &event);
}

/// An event of opencode's plugin.
fn opencode(worker: &Agent, name: &str, id: &str) {
    let event = json!({"hook_event_name": name, "session_id": id, "cwd": "/", "reason": "exit"});
    send(worker, "opencode", &event);
}

fn kind(env: &Env) -> String {
    let one = only(env);
    text(&one, "/end_kind").to_owned()
}

/// The sessions that `ps` shows without `-a`.
#[track_caller]
fn shown(env: &Env) -> Vec<Value> {
    let listed = asked_by_nobody(env, &["ps"]);
    listed["sessions"].as_array().expect("a list").clone()
}

#[track_caller]
fn offered(env: &Env) -> Vec<String> {
    let answer = asked_by_nobody(env, &["resume"]);
    let all = answer["resume"].as_array().expect("a list").iter();
    all.map(|view| text(view, "/session/handle").to_owned())
        .collect()
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

fn bash() -> &'static Path {
    let mut paths = ["/bin/bash", "/usr/bin/bash"].into_iter().map(Path::new);
    paths.find(|path| path.exists()).expect("there is a bash")
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

#[test]
fn a_death_stays_on_view_until_it_is_dismissed() {
    let env = env();
    let worker = talking(&env, "claude", "claude-2.1.325", &[], "0000aaaa");
    ask(&worker, &["claim", "wp:1"]);
    let handle = text(&only(&env), "/handle").to_owned();
    worker.kill9();
    let command = format!("tenure resume {handle}");
    for _ in 0..3 {
        let listed = shown(&env);
        assert_eq!(listed.len(), 1, "{listed:#?}");
        assert_eq!(listed[0]["state"], "dead");
        assert_eq!(listed[0]["end_kind"], "cut_off");
        assert_eq!(listed[0]["resume"]["command"], command.as_str());
        assert_eq!(listed[0]["resume"]["held"][0]["key"], "wp:1");
        let said = env.tenure(&["ps"]).ok().stdout;
        let row = said.lines().find(|line| line.contains(&handle)).unwrap();
        assert!(row.contains("cut off ") && row.contains("wp:1"), "{said}");
        let way = format!("cut off: run {command} (or tenure dismiss {handle})");
        assert_eq!(said.lines().last(), Some(way.as_str()));
    }
    let status = asked_by_nobody(&env, &["status"]);
    assert_eq!(status["status"]["cut_off"][0]["handle"], handle.as_str());
    let said = env.tenure(&["status"]).ok().stdout;
    assert!(said.contains(&command), "{said}");
    // Who else works here: nobody.
    assert_eq!(asked_by_nobody(&env, &["who"])["sessions"], json!([]));
    assert_eq!(offered(&env), [handle.as_str()]);

    let dismissed = asked_by_nobody(&env, &["dismiss", &handle, "--reason", "it is done"]);
    assert_eq!(dismissed["sessions"][0]["handle"], handle.as_str());
    assert_eq!(shown(&env), Vec::<Value>::new());
    assert_eq!(offered(&env), Vec::<String>::new());
    assert_eq!(events(&env, "session.dismissed").len(), 1);
    assert_eq!(sessions(&env)[0]["resume"], Value::Null);
    // It can still be resumed by its name.
    let _named = env.tenure(&["resume", &handle, "--print"]).ok();
}

#[test]
fn what_came_back_is_on_the_list_no_more() {
    let env = env();
    let worker = talking(&env, "claude", "claude-2.1.325", &[], "0000aaaa");
    worker.kill9();
    assert_eq!(offered(&env).len(), 1);
    let again = env.agent_with("claude", &["--resume", "0000aaaa"]);
    said(
        &env,
        &again,
        "claude",
        "claude-2.1.325/SessionStart.resume",
        "0000aaaa",
    );
    let listed = shown(&env);
    assert_eq!(listed[0]["state"], "live", "{listed:#?}");
    assert_eq!(listed[0]["end_kind"], Value::Null);
    assert_eq!(offered(&env), Vec::<String>::new());
    // Its next death is a new one, whatever became of the first.
    again.kill9();
    assert_eq!(shown(&env)[0]["end_kind"], "cut_off");
}

#[test]
fn a_day_later_it_is_no_longer_shown() {
    let env = env();
    let worker = talking(&env, "claude", "claude-2.1.325", &[], "0000aaaa");
    worker.kill9();
    assert_eq!(shown(&env).len(), 1);
    forge(&env, "UPDATE sessions SET closed_at = closed_at - 90000000");
    assert_eq!(shown(&env), Vec::<Value>::new());
    assert_eq!(offered(&env), Vec::<String>::new());
    let older = asked_by_nobody(&env, &["resume", "--since", "2d"]);
    assert_eq!(older["resume"].as_array().unwrap().len(), 1);
}

#[test]
fn a_death_with_nothing_left_is_not_shown() {
    let env = env();
    let empty = env.agent("claude");
    let silent = captured(&env, "claude-2.1.325/SessionStart.startup", "0000aaaa");
    // Killed before its first prompt: its transcript was never written.
    send(&empty, "claude", &silent);
    let script = env.agent("nightly");
    ask(
        &script,
        &[
            "register",
            "--agent",
            "nightly",
            "--pid",
            &script.pid().to_string(),
        ],
    );
    let holder = env.agent("holder");
    ask(
        &holder,
        &[
            "register",
            "--agent",
            "holder",
            "--pid",
            &holder.pid().to_string(),
        ],
    );
    ask(&holder, &["claim", "wp:1"]);
    for dead in [&empty, &script, &holder] {
        dead.kill9();
    }
    for _ in 0..2 {
        let listed = shown(&env);
        assert_eq!(listed.len(), 1, "{listed:#?}");
        assert_eq!(listed[0]["agent"], "holder");
        assert_eq!(listed[0]["resume"]["command"], Value::Null);
        assert!(listed[0]["resume"]["problem"].is_string());
    }
    // Once another has what it held, nothing is left.
    let heir = env.agent("heir");
    ask(
        &heir,
        &[
            "register",
            "--agent",
            "heir",
            "--pid",
            &heir.pid().to_string(),
        ],
    );
    ask(&heir, &["claim", "wp:1"]);
    assert_eq!(shown(&env).len(), 1);
    assert_eq!(shown(&env)[0]["agent"], "heir");
}

#[test]
fn dismissing_says_what_it_cannot_do() {
    let env = env();
    let refused = |words: &[&str], code: i32| {
        let words = [words, &["--reason", "tidy", "--json"]].concat();
        let error = env.tenure(&words).fails(code).json()["error"].clone();
        text(&error, "/message").to_owned()
    };
    assert!(refused(&["dismiss", "--all"], 1).contains("nothing to dismiss"));
    assert!(refused(&["dismiss", "claude-zzzz"], 4).contains("claude-zzzz"));
    let worker = talking(&env, "claude", "claude-2.1.325", &[], "0000aaaa");
    let handle = text(&only(&env), "/handle").to_owned();
    assert!(refused(&["dismiss", &handle], 1).contains("has not ended"));
    worker.kill9();
    let all = asked_by_nobody(&env, &["dismiss", "--all", "--reason", "tidy"]);
    assert_eq!(all["sessions"][0]["handle"], handle.as_str());
    assert!(refused(&["dismiss", &handle], 1).contains("already"));
    assert!(refused(&["dismiss", "--all"], 1).contains("nothing to dismiss"));
    let other = talking(&env, "claude", "claude-2.1.325", &[], "0000bbbb");
    said(
        &env,
        &other,
        "claude",
        "claude-2.1.325/SessionEnd.prompt_input_exit",
        "0000bbbb",
    );
    let left = sessions(&env);
    let left = left.iter().find(|one| one["end_kind"] == "left").unwrap();
    assert!(refused(&["dismiss", text(left, "/handle")], 1).contains("by itself"));
}

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

/// Between its start and its first event an agent is no session yet, and its command line says what it resumes.
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
    assert_eq!(listed[0]["resume"]["starting"], pid, "{listed:#?}");
    assert_eq!(listed[0]["resume"]["command"], Value::Null);
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
         >/dev/null 2>&1 &\necho $!\n",
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
