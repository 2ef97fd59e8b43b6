//! Notifications: who is notified of what, once, and what a channel that hangs or fails costs.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process};
use serde_json::{Value, json};
use tenure_core::time::Timestamp;
use tenure_testkit::{Agent, Cmd, Env, Signal, poll};

use crate::env;
use crate::support::hook::{can_trace, event};
use crate::support::line::{crew, handle, session, take};
use crate::support::tmux::{Tmux, with_tmux};
use crate::support::waiter::ends;

/// A question is reported after ten seconds.
const LATER: Duration = Duration::from_secs(60);

/// Writes the user's config.toml.
fn configure(env: &Env, text: &str) {
    let dir = env.home().join(".config/tenure");
    fs::create_dir_all(&dir).expect("a private home");
    fs::write(dir.join("config.toml"), text).expect("a private home");
}

/// A channel that appends each event to a file; the file.
fn to_file(env: &Env, more: &str) -> PathBuf {
    let file = env.dir().join("notified");
    let command = format!("cat >>{}", file.display());
    configure(
        env,
        &format!("[[notify]]\nchannel = \"command\"\ncommand = \"{command}\"\n{more}\n"),
    );
    file
}

fn written(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let object = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?}"));
    whole.lines().map(object).collect()
}

#[track_caller]
fn notified(file: &Path, count: usize) -> Vec<Value> {
    poll(LATER, "the notification", || {
        let found = written(file);
        (found.len() >= count).then_some(found)
    })
}

fn starts(env: &Env) -> Agent {
    let claude = env.agent("claude");
    let start = json!({"source": "startup", "cwd": env.work()});
    event(&claude, "SessionStart", &start);
    claude
}

fn fails(agent: &Agent) {
    event(agent, "UserPromptSubmit", &json!({"prompt": "go on"}));
    event(agent, "StopFailure", &json!({"error": "server_error"}));
}

/// A program of this name and text, and a PATH where it is found first.
fn fake(env: &Env, name: &str, text: &str) -> String {
    let dir = env.dir().join("fakes");
    fs::create_dir_all(&dir).expect("the directory is ours");
    let file = dir.join(name);
    fs::write(&file, format!("#!/bin/sh\n{text}\n")).expect("the directory is ours");
    fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("the directory is ours");
    let path = std::env::var("PATH").expect("a path");
    format!("{}:{path}", dir.display())
}

#[test]
fn who_waits_for_longer_than_ten_seconds_is_reported_once_and_without_its_words() {
    let env = env();
    let file = to_file(&env, "on = [\"asks\"]");
    let asked = json!({"tool_name": "Bash", "tool_input": {"command": "rm -rf build"}});
    let answered = starts(&env);
    event(&answered, "PermissionRequest", &asked);
    event(&answered, "PostToolUse", &asked);
    let waits = starts(&env);
    let began = Instant::now();
    event(&waits, "PermissionRequest", &asked);
    // The same wait, reported by the agent again.
    event(&waits, "PermissionRequest", &asked);
    let found = notified(&file, 1);
    assert!(began.elapsed() >= Duration::from_secs(10));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["event"], "asks");
    assert_eq!(found[0]["session"]["handle"], handle(&waits));
    assert!(!found[0].to_string().contains("rm -rf"), "{found:?}");
}

#[test]
fn f_v15_twenty_turns_that_fail_are_one_notification_and_the_end_of_a_subagent_none() {
    let env = env();
    let file = to_file(&env, "titles = true");
    let claude = starts(&env);
    event(&claude, "SubagentStop", &json!({"agent_id": "a1"}));
    event(&claude, "Stop", &json!({}));
    for _ in 0..20 {
        fails(&claude);
    }
    let found = notified(&file, 1);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["event"], "failed");
    end_senders(&env);
}

/// Ends the senders of this test, of which one would wait for up to a minute.
fn end_senders(env: &Env) {
    end_all(env, "__notify");
}

/// Ends the processes of this test with this word in their command line.
fn end_all(env: &Env, word: &str) {
    let home = format!("HOME={}", env.home().display());
    let is_one = |dir: &Path| {
        let has = |name: &str, part: &str| {
            let bytes = fs::read(dir.join(name)).unwrap_or_default();
            bytes
                .split(|byte| *byte == 0)
                .any(|one| one == part.as_bytes())
        };
        has("cmdline", word) && has("environ", &home)
    };
    poll(LATER, "none of them is left", || {
        let all = fs::read_dir("/proc").expect("it is mounted").flatten();
        let found: Vec<PathBuf> = all
            .map(|one| one.path())
            .filter(|dir| is_one(dir))
            .collect();
        for dir in &found {
            let pid = dir.file_name().and_then(|name| name.to_str()?.parse().ok());
            if let Some(pid) = pid.and_then(Pid::from_raw)
                && kill_process(pid, Signal::KILL).is_err()
            {
                // It has ended by itself.
            }
        }
        found.is_empty().then_some(())
    });
}

#[test]
fn a_hook_waits_for_no_channel_and_one_that_fails_is_reported_until_it_works() {
    let env = env();
    let dir = env.dir().join("gate");
    let command = format!("test -e {}", dir.display());
    configure(
        &env,
        &format!("[[notify]]\nchannel = \"command\"\ncommand = \"{command}\"\n"),
    );
    let claude = starts(&env);
    fails(&claude);
    let warned = |agent: &Agent| agent.tenure(&["status"]).stdout;
    poll(LATER, "the failure is shown", || {
        let shown = warned(&claude);
        shown
            .contains("the notification channel command failed")
            .then_some(())
    });
    fs::create_dir(dir).expect("the directory is ours");
    let other = starts(&env);
    fails(&other);
    poll(LATER, "it works again", || {
        let shown = warned(&other);
        (!shown.contains("the notification channel")).then_some(())
    });
}

/// A program that is missing, or finds no desktop, disturbs no agent.
#[test]
fn f_v19_a_desktop_that_is_not_there_is_said_once_and_by_status() {
    let mut env = env();
    configure(&env, "[[notify]]\nchannel = \"desktop\"\n");
    let path = fake(&env, "notify-send", "echo no D-Bus >&2; exit 1");
    env.set("PATH", path);
    let agents = [starts(&env), starts(&env)];
    agents.iter().for_each(fails);
    let shown = poll(LATER, "the failure is shown", || {
        let shown = agents[0].tenure(&["status"]).stdout;
        shown.contains("no D-Bus").then_some(shown)
    });
    assert_eq!(shown.matches("notification channel").count(), 1, "{shown}");
}

#[test]
fn a_channel_that_hangs_holds_up_no_other_and_no_hook() {
    let env = env();
    let (file, pid) = (env.dir().join("notified"), env.dir().join("pid"));
    let hangs = format!("echo $$ >{}; exec sleep 600", pid.display());
    let tells = format!("cat >>{}", file.display());
    let channel = |name: &str, command: &str| {
        format!("[[notify]]\nchannel = \"command\"\nname = \"{name}\"\ncommand = \"{command}\"\n")
    };
    configure(
        &env,
        &(channel("hangs", &hangs) + &channel("tells", &tells)),
    );
    let agents = [starts(&env), starts(&env)];
    for (at, agent) in agents.iter().enumerate() {
        fails(agent);
        notified(&file, at + 1);
        let pid = poll(LATER, "the other channel hangs", || {
            fs::read_to_string(&pid)
                .ok()
                .filter(|pid| pid.ends_with('\n'))
        });
        assert!(
            Path::new("/proc").join(pid.trim()).exists(),
            "it was waited for"
        );
    }
    end_all(&env, "sleep");
    end_senders(&env);
}

/// Whatever the machine does meanwhile, no more than five come one by one within ten seconds.
#[test]
fn more_than_five_within_ten_seconds_are_counted_in_a_digest() {
    let env = env();
    let file = to_file(&env, "on = [\"failed\"]");
    let agents: Vec<Agent> = (0..12).map(|_| starts(&env)).collect();
    agents.iter().for_each(fails);
    let counted = |one: &Value| one["counts"]["failed"].as_u64().unwrap_or(1);
    let found = poll(LATER, "all of them are reported", || {
        let found = written(&file);
        (found.iter().map(counted).sum::<u64>() == 12).then_some(found)
    });
    let singles = found.iter().filter(|one| one["event"] == "failed");
    let at = |one: &Value| one["at"].as_str().expect("a time").parse::<Timestamp>();
    let mut times: Vec<Timestamp> = singles.map(|one| at(one).expect("a time")).collect();
    times.sort_unstable();
    for six in times.windows(6) {
        let apart = six[0].age_at(six[5]);
        // It is decided a moment after it was seen.
        assert!(apart >= Duration::from_secs(9), "{found:#?}");
    }
}

/// The hook's own calls, not those of the process that it starts.
#[test]
fn a_hook_with_a_channel_starts_one_process_for_what_is_wanted_and_waits_for_none() {
    let env = env();
    let agent = starts(&env);
    if !can_trace(&agent) {
        return;
    }
    let log = env.dir().join("calls");
    let calls = |name: &str, more: Value| {
        let conversation = format!("c-{}", agent.pid());
        let mut event = json!({"hook_event_name": name, "session_id": conversation});
        let more = more.as_object().expect("an object").clone();
        event.as_object_mut().expect("an object").extend(more);
        let traced = Cmd::new("strace")
            .args(["-qq", "-o"])
            .args([log.display().to_string()]);
        let traced = traced.args(["tenure", "hook", "claude"]);
        agent.run(traced.stdin(event.to_string())).ok();
        let text = fs::read_to_string(&log).expect("it was written");
        let is = |line: &&str, name: &str| line.starts_with(&format!("{name}("));
        let count = |names: &[&str]| {
            let named = |line: &&str| names.iter().any(|name| is(line, name));
            text.lines().filter(named).count()
        };
        let starts = count(&["clone", "clone3", "fork", "vfork"]);
        (text.lines().count(), starts, count(&["wait4", "waitid"]))
    };
    let tool = || {
        calls(
            "PostToolUse",
            json!({"tool_name": "Write", "tool_input": {"file_path": "/x"}}),
        )
    };
    // What the machine adds is not the same each time.
    let least = |of: &dyn Fn() -> (usize, usize, usize)| (0..4).map(|_| of()).min().expect("runs");
    let failure = || {
        event(&agent, "UserPromptSubmit", &json!({"prompt": "go on"}));
        calls("StopFailure", json!({"error": "server_error"}))
    };
    configure(&env, "agent.brief = true\n");
    let (plain, plain_failure) = (least(&tool), least(&failure));
    to_file(&env, "on = [\"failed\"]");
    let (with, with_failure) = (least(&tool), least(&failure));
    assert_eq!(with.1, plain.1, "an event that nobody wants starts nothing");
    assert_eq!(with_failure.1, plain_failure.1 + 1, "one process");
    assert_eq!(
        (plain_failure.2, with_failure.2),
        (0, 0),
        "it is not waited for"
    );
    assert!(with.0 <= plain.0 + 10, "{with:?} {plain:?}");
    assert!(
        with_failure.0 <= plain_failure.0 + 60,
        "{with_failure:?} {plain_failure:?}"
    );
    end_senders(&env);
}

#[test]
fn a_death_that_a_hook_proves_is_reported() {
    let (env, [ann]) = crew(["ann"]);
    let file = to_file(&env, "on = [\"died\"]");
    take(&ann, "wp:1");
    ann.kill9();
    let _next = starts(&env);
    assert_eq!(notified(&file, 1)[0]["held"][0]["key"], "wp:1");
}

/// They share what was sent.
#[test]
fn top_and_a_watch_together_report_each_death_once() {
    let env = with_tmux();
    let file = to_file(&env, "on = [\"died\"]");
    let [ann, bob, me] = ["ann", "bob", "me"].map(|name| session(&env, name));
    take(&ann, "wp:1");
    take(&bob, "wp:2");
    let tmux = Tmux::start(&env, "s");
    tmux.types("main:0", "tenure top");
    tmux.shows("main:0", &handle(&bob));
    let watcher = me.start(Cmd::new("tenure").args(["watch", "--notify"]));
    poll(LATER, "it watches", || {
        watcher.stderr().contains("watching for died").then_some(())
    });
    ann.kill9();
    notified(&file, 1);
    watcher.signal(Signal::INT);
    assert_eq!(ends(watcher).code, 0);
    // Only top is left.
    bob.kill9();
    let found = notified(&file, 2);
    let held: Vec<&Value> = found.iter().map(|one| &one["held"][0]["key"]).collect();
    assert_eq!(held, ["wp:1", "wp:2"]);
    tmux.types("main:0", "q");
}

#[test]
fn a_watch_notifies_of_a_proved_death_with_what_was_held() {
    let (env, [ann, me]) = crew(["ann", "me"]);
    let file = to_file(&env, "on = [\"died\"]");
    let name = handle(&ann);
    take(&ann, "wp:1");
    let watcher = me.start(Cmd::new("tenure").args(["watch", "--notify"]));
    poll(LATER, "it watches", || {
        assert!(watcher.is_alive(), "{}", watcher.stderr());
        watcher.stderr().contains("watching for died").then_some(())
    });
    ann.kill9();
    let found = notified(&file, 1);
    assert_eq!(found[0]["session"]["handle"], name);
    assert_eq!(found[0]["held"], json!([{"key": "wp:1", "epoch": 1}]));
    watcher.signal(Signal::INT);
    assert_eq!(ends(watcher).code, 0);
}

#[test]
fn a_death_is_reported_once_by_the_first_to_prove_it() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let file = to_file(&env, "");
    take(&ann, "wp:1");
    take(&bob, "wp:2");
    ann.kill9();
    env.tenure(&["ps"]).ok();
    env.tenure(&["ps"]).ok();
    notified(&file, 1);
    bob.kill9();
    env.tenure(&["ps"]).ok();
    let held: Vec<Value> = notified(&file, 2)
        .iter()
        .map(|one| one["held"][0]["key"].clone())
        .collect();
    assert_eq!(held, ["wp:1", "wp:2"]);
}

#[test]
fn f_v19_notify_send_is_given_three_seconds() {
    let mut env = env();
    configure(&env, "[[notify]]\nchannel = \"desktop\"\n");
    let pid = env.dir().join("pid");
    let path = fake(
        &env,
        "notify-send",
        &format!("echo $$ >{}; exec sleep 600", pid.display()),
    );
    env.set("PATH", path);
    let me = env.agent("me");
    let began = Instant::now();
    let said = me
        .run(Cmd::new(env.tenure_path().display().to_string()).args(["notify", "test", "desktop"]));
    assert_eq!(said.code, 1, "{said}");
    assert!(said.stderr.contains("took longer than 3 s"), "{said}");
    assert!(began.elapsed() >= Duration::from_secs(3));
    let pid = fs::read_to_string(pid).expect("it ran");
    assert!(
        !Path::new("/proc").join(pid.trim()).exists(),
        "it was left behind"
    );
}

#[test]
fn notify_send_gets_plain_words() {
    let mut env = env();
    configure(&env, "[[notify]]\nchannel = \"desktop\"\n");
    let told = env.dir().join("told");
    let path = fake(
        &env,
        "notify-send",
        &format!("printf '%s\\n' \"$@\" >{}", told.display()),
    );
    env.set("PATH", path);
    let me = env.agent("me");
    let tenure = env.tenure_path().display().to_string();
    me.run(Cmd::new(tenure).args(["notify", "test", "desktop"]))
        .ok();
    let told = fs::read_to_string(told).expect("it ran");
    assert_eq!(
        told,
        "--app-name=tenure\n--\na test notification of tenure\n\n"
    );
}

#[test]
fn a_channel_that_is_not_there_is_named_with_those_that_are() {
    let env = env();
    let none = env.tenure(&["notify", "test", "desktop"]);
    assert_eq!(none.code, 4, "{none}");
    let file = to_file(&env, "");
    let wrong = env.tenure(&["notify", "test", "desktop"]);
    assert_eq!(wrong.code, 4, "{wrong}");
    assert!(wrong.stderr.contains("there are command"), "{wrong}");
    let sent = env
        .tenure(&["notify", "test", "command", "--json"])
        .ok()
        .json();
    assert_eq!(sent["notified"]["channel"], "command");
    assert_eq!(written(&file)[0]["event"], "test");
    let listed = env.tenure(&["notify", "list", "--json"]).ok().json();
    assert_eq!(listed["channels"][0]["name"], "command");
    configure(&env, "[[notify]]\nchannel = \"terminal\"\n");
    let no_terminal = env.tenure(&["notify", "test", "terminal"]);
    assert_eq!(no_terminal.code, 1, "{no_terminal}");
}

#[test]
fn f_v17_a_pane_of_tmux_is_marked_by_its_bell() {
    let env = with_tmux();
    configure(
        &env,
        "[[notify]]\nchannel = \"terminal\"\nform = \"osc9\"\n",
    );
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    tmux.types(&pane, "tenure notify test terminal");
    tmux.shows(&pane, "sent a test notification");
    poll(LATER, "the bell", || {
        (tmux.ask(&pane, "#{window_bell_flag}") == "1").then_some(())
    });
}

/// A watch in the terminal of an agent must not write there.
#[test]
fn the_terminal_of_an_agent_is_not_written_to() {
    let env = with_tmux();
    configure(
        &env,
        "[[notify]]\nchannel = \"terminal\"\nform = \"bell\"\non = [\"claimed\"]\n",
    );
    let tmux = Tmux::start(&env, "s");
    let (own, agents) = (tmux.window(), tmux.window());
    for pane in [&own, &agents] {
        tmux.types(pane, "tenure watch --notify");
        tmux.shows(pane, "watching for claimed");
    }
    let tty = tmux.ask(&agents, "#{pane_tty}");
    // An agent on the same terminal, outside the process tree of the watch.
    let ann = env.agent("ann");
    let line = format!(
        "exec <{tty}; tenure register --agent ann --pid $$ && tenure claim wp:1; exec sleep 600"
    );
    let agent = ann.start(Cmd::shell(&line));
    poll(LATER, "the other terminal rings", || {
        (tmux.ask(&own, "#{window_bell_flag}") == "1").then_some(())
    });
    assert_eq!(tmux.ask(&agents, "#{window_bell_flag}"), "0");
    drop(agent);
}

#[test]
fn a_webhook_is_posted_and_signed_by_the_program_that_speaks_over_a_network() {
    let env = env();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let secret = env.dir().join("secret");
    fs::write(&secret, "s3cret").expect("the directory is ours");
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).expect("it is ours");
    configure(
        &env,
        &format!(
            "[[notify]]\nchannel = \"webhook\"\nurl = \"http://127.0.0.1:{port}/t\"\nsecret_file = \"{}\"\n",
            secret.display()
        ),
    );
    let server = std::thread::spawn(move || {
        // The first attempt is refused for now, the second is accepted.
        let answers = ["503 Service Unavailable", "200 OK"];
        answers.map(|answer| {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut text = Vec::new();
            let mut piece = [0; 4096];
            while !String::from_utf8_lossy(&text).contains("\"event\":\"test\"") {
                let count = stream.read(&mut piece).expect("a request");
                assert!(count > 0, "{}", String::from_utf8_lossy(&text));
                text.extend_from_slice(&piece[..count]);
            }
            let answer =
                format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).expect("a reader");
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    env.tenure(&["notify", "test", "webhook"]).ok();
    for request in server.join().expect("both were answered") {
        let request = request.to_lowercase();
        assert!(request.starts_with("post /t http/1.1\r\n"), "{request}");
        assert!(request.contains("x-tenure-signature: sha256="), "{request}");
    }
}

#[test]
fn f_v16_a_pane_that_somebody_looks_at_is_not_reported() {
    let env = with_tmux();
    let file = to_file(&env, "on = [\"claimed\"]");
    let tmux = Tmux::start(&env, "s");
    let (seen, hidden) = (tmux.window(), tmux.window());
    let types = |pane: &str, line: &str| {
        tmux.types(pane, &format!("{line} && echo do''ne"));
        tmux.shows(pane, "done");
        tmux.types(pane, "clear");
    };
    for pane in [&seen, &hidden] {
        types(pane, "tenure register --agent claude --pid $$ >/dev/null");
    }
    tmux.run(&["select-window", "-t", &seen]);
    let outer = Tmux::start(&env, "o");
    let attach = format!("TMUX= tmux -S {} attach -t main", tmux.socket);
    outer.types("main:0", &attach);
    poll(LATER, "it is attached", || {
        (!tmux.run(&["list-clients"]).is_empty()).then_some(())
    });
    let me = env.agent("me");
    let watcher = me.start(Cmd::new("tenure").args(["watch", "--notify"]));
    poll(LATER, "it watches", || {
        watcher.stderr().contains("watching for").then_some(())
    });
    types(&seen, "tenure claim wp:1 >/dev/null");
    for (count, key) in [(1, "wp:2"), (2, "wp:3")] {
        types(&hidden, &format!("tenure claim {key} >/dev/null"));
        let found = notified(&file, count);
        assert_eq!(found[count - 1]["key"], key, "{found:?}");
    }
    watcher.signal(Signal::INT);
    assert_eq!(ends(watcher).code, 0);
}
