//! Messages that start a turn: who may, what the process that waits beside an agent does, and what becomes of it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_testkit::{Agent, Background, Cmd, Env, Output, Shell, Signal, poll};

use crate::env;
use crate::support::hook::{captured, claude, send, sleeps, told};
use crate::support::line::{SOON, handle, refused, run, session, take};

/// How an agent's own hook names what woke it.
const WRAPPED: &str =
    "<system-reminder>\nStop hook blocking error from command \"Stop\": TEXT\n</system-reminder>";

/// An environment whose user switched it on.
fn waking() -> Env {
    let mut env = env();
    env.set("TENURE_WAKE_AGENTS", "claude, codex, opencode");
    env
}

/// A session of Claude Code that a person started.
fn started(env: &Env, id: &str) -> Agent {
    let agent = env.agent("claude");
    claude(env, &agent, "SessionStart.startup", id);
    agent
}

/// The same after a turn.
fn idle(env: &Env, id: &str) -> Agent {
    let agent = started(env, id);
    prompt(env, &agent, id, "go");
    claude(env, &agent, "Stop", id);
    agent
}

/// A person at a terminal, and an idle session with its handle.
fn person_and_ann(env: &Env) -> (Shell, Agent, String) {
    let person = env.shell_at_terminal();
    let ann = idle(env, "a1");
    let to = handle(&ann);
    (person, ann, to)
}

/// The same in the middle of a turn, with its waiter.
fn person_and_busy_ann(env: &Env) -> (Shell, Agent, String, Background) {
    let (person, ann, to) = person_and_ann(env);
    prompt(env, &ann, "a1", "go on");
    let waits = waiter(env, &ann, "a1");
    (person, ann, to, waits)
}

fn prompt(env: &Env, agent: &Agent, id: &str, text: &str) -> Output {
    let mut event = captured(env, "claude-2.1.325/UserPromptSubmit", id);
    event["prompt"] = json!(text);
    send(agent, "claude", &event)
}

/// What the agent does when its hook woke it.
fn woken(env: &Env, agent: &Agent, id: &str, said: &Output) -> Output {
    prompt(env, agent, id, &WRAPPED.replace("TEXT", &said.stderr))
}

/// Starts the process that waits beside an agent.
fn wait_with(env: &Env, agent: &Agent, id: &str, line: &str) -> Background {
    let event = captured(env, "claude-2.1.325/Stop", id).to_string();
    agent.start(Cmd::shell(line).stdin(event))
}

/// The same, when it waits.
fn waiter(env: &Env, agent: &Agent, id: &str) -> Background {
    let job = wait_with(env, agent, id, "exec tenure hook claude --wait");
    poll(SOON, "it waits", || {
        assert!(job.is_alive(), "it ended: {}{}", job.stdout(), job.stderr());
        sleeps(job.pid).then_some(())
    });
    job
}

/// How often a process has gone to sleep.
fn naps(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let naps = (status.lines()).find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    naps.map_or(0, |naps| naps.trim().parse().expect("it is there"))
}

/// Does something that wakes a waiter up, and waits until it has looked and waits again.
#[track_caller]
fn and_it_stays<T>(job: &Background, act: impl FnOnce() -> T) -> T {
    let before = naps(job.pid);
    let done = act();
    poll(SOON, "it has looked and waits again", || {
        assert!(job.is_alive(), "it ended: {}", job.stderr());
        (naps(job.pid) > before && sleeps(job.pid)).then_some(())
    });
    done
}

/// What a person types at a terminal.
fn tells(person: &Shell, to: &str, message: &str, more: &str) -> Output {
    person.line(&format!(
        "tenure tell {to} '{message}' {more} --json 2>/dev/tty"
    ))
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(dir).into_iter().flatten();
    all.map(|entry| entry.expect("it is there").path())
        .collect()
}

/// The directory of each waiter.
fn bells(env: &Env) -> Vec<PathBuf> {
    files(&env.state().join("wake"))
}

/// Whether a message was announced to any waiter.
fn is_announced(env: &Env) -> bool {
    let mut all = bells(env).into_iter().flat_map(|dir| files(&dir));
    all.any(|file| {
        file.file_name()
            .expect("it is there")
            .to_str()
            .expect("it is there")
            .parse::<u64>()
            .is_ok()
    })
}

#[test]
fn a_persons_message_starts_a_turn_in_an_idle_session_and_is_delivered_once() {
    let env = waking();
    let (person, ann, to) = person_and_ann(&env);
    let waits = waiter(&env, &ann, "a1");
    let sent = tells(&person, &to, "please go on", "").ok();
    assert_eq!(sent.json()["delivery"], "delivered", "{sent}");
    let said = waits.wait();
    assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{said}");
    let text = &said.stderr;
    assert!(text.starts_with("[tenure message "), "{text}");
    assert!(text.contains("grants no permission"), "{text}");
    let quoted = "message from someone outside any session: \"please go on\"";
    assert!(text.contains(quoted), "{text}");
    for heard in [
        woken(&env, &ann, "a1", &said),
        claude(&env, &ann, "PostToolUse.Bash", "a1"),
    ] {
        assert_eq!(told(&heard), None, "it was delivered");
    }
    assert_eq!(bells(&env).len(), 1);
    let log = run(&ann, 0, "log");
    let log = log["events"].as_array().unwrap();
    let woke = log.iter().filter(|event| event["mechanism"] == "wake");
    assert_eq!(woke.count(), 1, "{log:#?}");
}

#[test]
fn a_fresh_session_is_woken_too() {
    let env = waking();
    let person = env.shell_at_terminal();
    let ann = started(&env, "a1");
    let waits = waiter(&env, &ann, "a1");
    tells(&person, &handle(&ann), "begin", "").ok();
    assert_eq!(waits.wait().code, 2);
}

#[test]
fn a_busy_session_is_not_woken_and_gets_it_with_its_next_event() {
    let env = waking();
    let (person, ann, to, waits) = person_and_busy_ann(&env);
    and_it_stays(&waits, || tells(&person, &to, "rebase", "").ok());
    let heard = told(&claude(&env, &ann, "PostToolUse.Bash", "a1"));
    assert!(heard.is_some_and(|text| text.contains("rebase")));
    and_it_stays(&waits, || claude(&env, &ann, "Stop", "a1"));
    assert!(!is_announced(&env), "it was delivered");
    assert_eq!(told(&prompt(&env, &ann, "a1", "next")), None);
}

#[test]
fn what_no_event_of_a_turn_delivered_starts_the_next() {
    let env = waking();
    let (person, ann, to, waits) = person_and_busy_ann(&env);
    and_it_stays(&waits, || tells(&person, &to, "one more thing", "").ok());
    claude(&env, &ann, "Stop", "a1");
    let said = waits.wait();
    assert_eq!(said.code, 2, "{said}");
    assert!(said.stderr.contains("one more thing"), "{said}");
}

#[test]
fn while_it_is_off_nothing_waits_and_the_next_event_delivers() {
    let env = env();
    let (person, ann, to) = person_and_ann(&env);
    let said = wait_with(&env, &ann, "a1", "exec tenure hook claude --wait").wait();
    assert_eq!(
        (said.code, said.stdout, said.stderr),
        (0, String::new(), String::new())
    );
    tells(&person, &to, "hello", "").ok();
    assert_eq!(bells(&env), [] as [PathBuf; 0]);
    let heard = told(&prompt(&env, &ann, "a1", "next"));
    assert!(heard.is_some_and(|text| text.contains("hello")));
}

#[test]
fn an_agents_message_and_that_of_a_program_wake_nobody() {
    let env = waking();
    let (ann, bob) = (idle(&env, "a1"), idle(&env, "b2"));
    let waits = waiter(&env, &ann, "a1");
    let to = handle(&ann);
    and_it_stays(&waits, || run(&bob, 0, &format!("tell {to} agents")));
    for bell in bells(&env) {
        files(&bell)
            .iter()
            .filter(|file| !file.ends_with("waiter"))
            .for_each(|file| std::fs::remove_file(file).unwrap());
    }
    let detached = bob.orphan(Cmd::shell(&format!(
        "env -u TENURE_SESSION setsid tenure tell {to} detached; touch told"
    )));
    assert_ne!(detached, 0);
    poll(SOON, "the detached child has told", || {
        env.work().join("told").exists().then_some(())
    });
    let _told = env.tenure(&["tell", &to, "programs"]).ok();
    assert!(!is_announced(&env));
    let heard = told(&prompt(&env, &ann, "a1", "next")).unwrap();
    for text in ["agents", "detached", "programs"] {
        assert!(heard.contains(&format!("\"{text}\"")), "{heard}");
    }
    assert!(waits.is_alive());
}

#[test]
fn two_agents_that_tell_each_other_do_not_go_round_in_circles() {
    let mut env = waking();
    env.set("TENURE_WAKE_FROM_AGENTS", "true");
    let (ann, bob) = (idle(&env, "a1"), idle(&env, "b2"));
    let (to_ann, to_bob) = (handle(&ann), handle(&bob));
    let (at_ann, at_bob) = (waiter(&env, &ann, "a1"), waiter(&env, &bob, "b2"));
    run(&ann, 0, &format!("tell {to_bob} ping"));
    let said = at_bob.wait();
    assert_eq!(
        said.code, 2,
        "an agent may, and a person started its turn: {said}"
    );
    assert!(
        said.stderr.contains(&format!("message from {to_ann}")),
        "{said}"
    );
    woken(&env, &bob, "b2", &said);
    run(&bob, 0, &format!("tell {to_ann} pong"));
    // Nor what its turn left running, nor the end of a command in the background.
    claude(&env, &bob, "Stop", "b2");
    prompt(
        &env,
        &bob,
        "b2",
        "<task-notification>\n<summary>done</summary>\n</task-notification>",
    );
    run(&bob, 0, &format!("tell {to_ann} again"));
    // A person only looks.
    let person = env.shell_at_terminal();
    person.tenure(&["show", &to_bob]).ok();
    run(&bob, 0, &format!("tell {to_ann} and-again"));
    assert!(!is_announced(&env));
    assert!(at_ann.is_alive());
    prompt(&env, &bob, "b2", "tell ann");
    run(&bob, 0, &format!("tell {to_ann} from-a-person"));
    assert_eq!(at_ann.wait().code, 2, "a person's prompt ends it");
}

#[test]
fn an_agent_that_a_woken_one_starts_wakes_nobody_either() {
    let mut env = waking();
    env.set("TENURE_WAKE_FROM_AGENTS", "true");
    let (person, ann, to_ann) = person_and_ann(&env);
    let at_ann = waiter(&env, &ann, "a1");
    let bob = idle(&env, "b2");
    let at_bob = waiter(&env, &bob, "b2");
    tells(&person, &handle(&bob), "ask ann", "").ok();
    woken(&env, &bob, "b2", &at_bob.wait());
    let child = bob.nest("claude");
    claude(&env, &child, "SessionStart.startup", "c3");
    prompt(&env, &child, "c3", "tell ann");
    run(&child, 0, &format!("tell {to_ann} round"));
    assert!(!is_announced(&env));
    prompt(&env, &bob, "b2", "a person again");
    run(&child, 0, &format!("tell {to_ann} straight"));
    assert_eq!(at_ann.wait().code, 2, "a person's prompt ends it");
}

#[test]
fn only_a_person_in_the_foreground_of_a_terminal_wakes() {
    let env = waking();
    let (person, ann, to) = person_and_ann(&env);
    let waits = waiter(&env, &ann, "a1");
    person
        .line(&format!("tenure tell {to} behind 2>/dev/tty & wait $!"))
        .ok();
    let stranger = env.agent_at_terminal("codex");
    let line = format!("tenure tell {to} strange </dev/tty 2>/dev/tty");
    stranger.run(Cmd::shell(&line)).ok();
    tells(&person, &to, "awake", "").ok();
    let said = waits.wait();
    assert_eq!(said.code, 2, "{said}");
    assert!(said.stderr.contains("\"awake\""), "{said}");
    // They are pending, but no sender announced them.
    let heard = told(&woken(&env, &ann, "a1", &said)).unwrap_or_default();
    for text in ["\"behind\"", "\"strange\""] {
        assert!(!said.stderr.contains(text), "{said}");
        assert!(heard.contains(text), "{heard}");
    }
}

#[test]
fn messages_start_at_most_six_turns_an_hour() {
    let env = waking();
    let (person, ann, to) = person_and_ann(&env);
    for turn in 0..6 {
        let waits = waiter(&env, &ann, "a1");
        tells(&person, &to, &format!("turn {turn}"), "").ok();
        let said = waits.wait();
        assert_eq!(said.code, 2, "{turn}: {said}");
        woken(&env, &ann, "a1", &said);
        claude(&env, &ann, "Stop", "a1");
    }
    let waits = waiter(&env, &ann, "a1");
    and_it_stays(&waits, || tells(&person, &to, "turn 6", "").ok());
    let heard = told(&prompt(&env, &ann, "a1", "next"));
    assert!(heard.is_some_and(|text| text.contains("turn 6")));
    assert!(waits.is_alive());
}

#[test]
fn a_newer_waiter_replaces_an_older_one() {
    let env = waking();
    let (person, ann, to) = person_and_ann(&env);
    let older = waiter(&env, &ann, "a1");
    let newer = waiter(&env, &ann, "a1");
    let said = older.wait();
    assert_eq!(
        (said.code, said.stdout, said.stderr),
        (0, String::new(), String::new())
    );
    tells(&person, &to, "hello", "").ok();
    assert_eq!(newer.wait().code, 2);
    assert_eq!(bells(&env).len(), 1);
}

#[test]
fn a_waiter_ends_with_its_agent_and_is_no_survivor() {
    let env = waking();
    let (ann, bob) = (idle(&env, "a1"), session(&env, "bob"));
    take(&ann, "wp:1");
    // As Claude Code starts it: with its id variable, by which what a session left is found.
    let line = "CLAUDE_CODE_SESSION_ID=a1 exec tenure hook claude --wait";
    let waits = wait_with(&env, &ann, "a1", line);
    poll(SOON, "it waits", || sleeps(waits.pid).then_some(()));
    // It cannot end yet when it is looked for.
    assert!(waits.signal(Signal::STOP));
    ann.kill9();
    take(&bob, "wp:1");
    assert!(waits.is_alive());
    assert!(waits.signal(Signal::CONT));
    poll(SOON, "the waiter ends", || {
        (!waits.is_alive()).then_some(())
    });
    assert_eq!(bells(&env), [] as [PathBuf; 0]);
}

#[test]
fn a_waiter_ends_with_the_conversation_and_at_a_signal() {
    let env = waking();
    let ann = idle(&env, "a1");
    let waits = waiter(&env, &ann, "a1");
    claude(&env, &ann, "SessionEnd.clear", "a1");
    assert_eq!(waits.wait().code, 0);
    assert_eq!(bells(&env), [] as [PathBuf; 0]);
    claude(&env, &ann, "SessionStart.clear", "a2");
    let waits = waiter(&env, &ann, "a2");
    assert!(waits.signal(Signal::TERM));
    poll(SOON, "it ends", || (!waits.is_alive()).then_some(()));
}

#[test]
fn what_a_killed_waiter_took_comes_with_the_next_event() {
    let env = waking();
    let (person, ann, to) = person_and_ann(&env);
    let pipe = env.dir().join("pipe");
    let line = format!(
        "mkfifo {0} && exec 3<>{0} && head -c 65536 /dev/zero >&3 && exec tenure hook claude --wait 2>&3",
        pipe.display()
    );
    let waits = wait_with(&env, &ann, "a1", &line);
    poll(SOON, "it waits", || sleeps(waits.pid).then_some(()));
    tells(&person, &to, "do not lose me", "").ok();
    poll(SOON, "it has taken the message and cannot print it", || {
        let called = std::fs::read_to_string(format!("/proc/{}/syscall", waits.pid));
        called
            .is_ok_and(|called| called.starts_with("1 0x2 "))
            .then_some(())
    });
    waits.kill9();
    let heard = told(&prompt(&env, &ann, "a1", "next"));
    assert!(heard.is_some_and(|text| text.contains("do not lose me")));
    assert_eq!(told(&claude(&env, &ann, "PostToolUse.Bash", "a1")), None);
}

#[test]
fn two_senders_at_once_are_both_heard_once() {
    let env = waking();
    let (person, ann, to) = person_and_ann(&env);
    let waits = waiter(&env, &ann, "a1");
    let other = env.shell_at_terminal();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| tells(&person, &to, "first", "").ok());
        tells(&other, &to, "second", "").ok();
        first.join().unwrap();
    });
    let said = waits.wait();
    assert_eq!(said.code, 2, "{said}");
    let later = told(&woken(&env, &ann, "a1", &said)).unwrap_or_default();
    let heard = format!("{}{later}", said.stderr);
    for text in ["\"first\"", "\"second\""] {
        assert_eq!(heard.matches(text).count(), 1, "{heard}");
    }
}

#[test]
fn tell_waits_for_the_receipt() {
    let env = waking();
    let (ann, bob) = (idle(&env, "a1"), session(&env, "bob"));
    let to = handle(&ann);
    let still = run(&bob, 0, &format!("tell {to} one --wait 50ms"));
    assert_eq!(still["delivery"], "waiting", "{still:#}");
    let waits = bob.start(Cmd::shell(&format!(
        "tenure tell {to} two --wait 60s --json"
    )));
    poll(SOON, "it is sent", || {
        let log = run(&bob, 0, "log");
        log.to_string().contains("two").then_some(())
    });
    prompt(&env, &ann, "a1", "next");
    let done = waits.wait().ok();
    assert_eq!(done.json()["delivery"], "delivered", "{done}");
}

#[test]
fn tell_waits_for_a_receiver_that_dies() {
    let env = waking();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let to = handle(&ann);
    let waits = bob.start(Cmd::shell(&format!(
        "tenure tell {to} hello --wait 60s --json"
    )));
    poll(SOON, "it is sent", || {
        let log = run(&bob, 0, "log");
        log.to_string().contains("hello").then_some(())
    });
    ann.kill9();
    let done = waits.wait().fails(1);
    assert_eq!(done.json()["error"]["kind"], "dead", "{done}");
}

#[test]
fn a_sender_has_at_most_twenty_messages_waiting() {
    let env = waking();
    let (ann, bob) = (idle(&env, "a1"), session(&env, "bob"));
    let to = handle(&ann);
    for number in 0..20 {
        run(&bob, 0, &format!("tell {to} {number}"));
    }
    let error = refused(&bob, 1, "unread", &format!("tell {to} more"));
    assert!(error["hints"].to_string().contains("show"), "{error:#}");
    let _told = env.tenure(&["tell", &to, "another sender may"]).ok();
    prompt(&env, &ann, "a1", "next");
    run(&bob, 0, &format!("tell {to} more"));
}

/// What the script that stands for Codex was asked to do.
fn queued(env: &Env) -> String {
    std::fs::read_to_string(env.dir().join("queued")).unwrap_or_default()
}

/// A script for the agent's program, and an idle session of it.
fn codex(env: &Env, script: &str) -> Agent {
    use std::os::unix::fs::PermissionsExt;
    let file = env.dir().join("bin").join("codex");
    let text = format!("#!/bin/sh\ndir={}\n{script}\n", env.dir().display());
    std::fs::write(&file, text).expect("it is there");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("it is there");
    // As its own package names it: so the command is found on PATH.
    let agent = env.agent("codex-x86_64-unknown-linux-musl");
    for event in ["SessionStart.startup", "UserPromptSubmit", "Stop"] {
        let event = captured(env, &format!("codex-0.166.0/{event}"), CODEX);
        send(&agent, "codex", &event);
    }
    agent
}

const CODEX: &str = "01a1ebb1-fba2-7632-afe2-238a1297e97a";

#[test]
fn codex_gets_it_by_its_own_command_from_the_sender() {
    let env = waking();
    let person = env.shell_at_terminal();
    let ann = codex(
        &env,
        "printf '%s|' \"$@\" >>$dir/queued; echo \"$HOME\" >>$dir/queued",
    );
    tells(&person, &handle(&ann), "please go on", "").ok();
    let asked = queued(&env);
    let begins = format!("queue|--thread|{CODEX}|--message|[tenure message ");
    assert!(asked.starts_with(&begins), "{asked}");
    assert!(asked.contains("\"please go on\""), "{asked}");
    assert!(asked.contains(&env.home().display().to_string()), "{asked}");
    let text = asked.split('|').nth(4).unwrap();
    let mut event = captured(&env, "codex-0.166.0/UserPromptSubmit", CODEX);
    event["prompt"] = json!(text);
    assert_eq!(told(&send(&ann, "codex", &event)), None, "it was delivered");
    // Busy: it waits.
    tells(&person, &handle(&ann), "later", "").ok();
    assert_eq!(queued(&env), asked);
    let event = captured(&env, "codex-0.166.0/PostToolUse.Bash", CODEX);
    let heard = told(&send(&ann, "codex", &event));
    assert!(heard.is_some_and(|text| text.contains("later")));
}

#[test]
fn a_short_wait_does_not_end_codexs_command() {
    let env = waking();
    let person = env.shell_at_terminal();
    let ann = codex(&env, "sleep 1; echo done >>$dir/queued");
    let sent = tells(&person, &handle(&ann), "go on", "--wait 50ms").ok();
    assert_eq!(sent.json()["delivery"], "waiting", "{sent}");
    assert_eq!(queued(&env), "done\n");
}

#[test]
fn a_codex_command_that_hangs_is_ended_and_a_closed_window_gets_none() {
    let env = waking();
    let person = env.shell_at_terminal();
    let ann = codex(&env, "sleep 600 & echo $! >>$dir/queued; wait");
    let to = handle(&ann);
    let sent = tells(&person, &to, "please go on", "").ok();
    assert_eq!(sent.json()["delivery"], "delivered");
    let pid = queued(&env).trim().to_owned();
    poll(SOON, "what it started is ended", || {
        (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
    let event = captured(&env, "codex-0.166.0/UserPromptSubmit", CODEX);
    let heard = told(&send(&ann, "codex", &event));
    assert!(
        heard.is_some_and(|text| text.contains("please go on")),
        "it was not lost"
    );
    let event = captured(&env, "codex-0.166.0/Stop", CODEX);
    send(&ann, "codex", &event);
    ann.kill9();
    let asked = queued(&env);
    let _told = tells(&person, &to, "nobody is there", "");
    assert_eq!(queued(&env), asked);
}

/// An event as our plugin for opencode sends it.
fn opencode(agent: &Agent, name: &str, prompt: Option<&str>) -> Value {
    let said = send(agent, "opencode", &opencode_event(name, prompt));
    if said.stdout.is_empty() {
        Value::Null
    } else {
        said.json()
    }
}

fn opencode_event(name: &str, prompt: Option<&str>) -> Value {
    json!({"hook_event_name": name, "session_id": "ses_1", "cwd": "/", "prompt": prompt})
}

#[test]
fn opencodes_plugin_starts_a_waiter_that_prints_the_message() {
    let env = waking();
    let person = env.shell_at_terminal();
    let ann = env.agent("opencode");
    opencode(&ann, "SessionStart", None);
    assert_eq!(
        opencode(&ann, "UserPromptSubmit", Some("go"))["wait"],
        Value::Null
    );
    assert_eq!(opencode(&ann, "Stop", None)["wait"], true);
    let event = opencode_event("Stop", None).to_string();
    let waits = ann.start(Cmd::shell("exec tenure hook opencode --wait").stdin(event));
    poll(SOON, "it waits", || sleeps(waits.pid).then_some(()));
    tells(&person, &handle(&ann), "please go on", "").ok();
    let said = waits.wait();
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said}");
    assert!(said.stdout.contains("\"please go on\""), "{said}");
    let woken = opencode(&ann, "UserPromptSubmit", Some(&said.stdout));
    assert_eq!(woken["context"], Value::Null, "it was delivered");
}

#[test]
fn a_project_cannot_switch_it_on_and_only_agents_that_can_are_taken() {
    let env = waking();
    std::fs::write(
        env.work().join(".tenure.toml"),
        "[wake]\nagents = [\"claude\"]\n",
    )
    .unwrap();
    let listed = env.tenure(&["config", "--json"]).ok();
    assert!(listed.stdout.contains("\"wake.agents\""), "{listed}");
    let mut wrong = crate::env();
    wrong.set("TENURE_WAKE_AGENTS", "gemini");
    let said = wrong.tenure(&["config"]);
    assert_ne!(said.code, 0, "{said}");
    assert!(said.stderr.contains("claude, codex, opencode"), "{said}");
}

#[test]
fn install_adds_the_hooks_that_wait_and_removes_them() {
    let env = env();
    let file = env.home().join(".claude/settings.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let before = "{\n  \"model\": \"opus\"\n}\n";
    std::fs::write(&file, before).unwrap();
    let read = || std::fs::read_to_string(&file).unwrap();
    let install = |more: &[&str]| {
        let words = [&["install", "claude", "--json"], more].concat();
        env.tenure(&words).ok().json()["agents"][0].clone()
    };
    assert_eq!(install(&[])["wake"], false);
    let plain = read();
    assert_eq!(install(&["--wake"])["wake"], true);
    let with = read();
    assert_eq!(with.matches("hook claude --wait\"").count(), 2, "{with}");
    assert_eq!(with.matches("\"asyncRewake\": true").count(), 2, "{with}");
    // To look is not to want them gone.
    let checked = env.tenure(&["install", "claude", "--check", "--json"]).ok();
    assert_eq!(checked.json()["agents"][0]["wake"], true, "{checked}");
    assert_eq!(install(&["--wake"])["changed"], false);
    install(&[]);
    assert_eq!(read(), plain);
    install(&["--wake"]);
    let _gone = env.tenure(&["uninstall", "claude"]).ok();
    assert_eq!(read(), before);
}
