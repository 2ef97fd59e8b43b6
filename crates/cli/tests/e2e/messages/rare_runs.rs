//! Runs, sessions and terminals in states that are rare.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::Value;
use tenure_testkit::{Env, Output, Scripted, poll};

use super::page::Page;
use crate::env;
use crate::support::installed::put;
use crate::support::line::{SOON, handle, session, take, text};
use crate::support::run::{enqueue, fake_claude, is_gone, newest, outcome, start, until};
use crate::support::talking::talking;
use crate::support::tmux::{Tmux, with_tmux};
use crate::windowless::in_background;

/// What Claude Code writes when it asks its provider again.
const RETRY: &str = r#"say '{"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"retry_delay_ms":501,"error_status":529,"error":"overloaded"}'"#;

/// A program that does what these shell lines say.
fn program(env: &Env, name: &str, lines: &str) {
    let file = env.dir().join("bin").join(name);
    put(&file, &format!("#!/bin/sh\ncat >/dev/null\n{lines}\n"));
    fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("it is ours");
}

#[test]
fn runs() {
    let env = env();
    let mut page = Page::new("66-rare-runs", &env);
    let human = session(&env, "human");
    page.title("What a run used, and a conversation that its agent no longer has");
    let used = r#"say '{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"hi","usage":{"input_tokens":1200,"output_tokens":340}}'"#;
    fake_claude(&env, &format!("keeps; init; reply hi; {used}"));
    let shown = |page: &mut Page| {
        let id = text(&newest(&env)["id"]);
        page.run(&human, &format!("tenure runs show {id}"));
    };
    page.run_once(&human, "tenure run claude wp:1 --prompt 'fix it'", None);
    shown(&mut page);
    let kept = format!(
        ".claude/projects/work/{}.jsonl",
        text(&newest(&env)["native_id"])
    );
    fs::remove_file(env.home().join(kept)).expect("it was kept");
    page.run_once(&human, "tenure run claude wp:1 --prompt 'fix it'", None);
    shown(&mut page);
    page.title("A run that was stopped, and one that continues it");
    let dir = fake_claude(&env, "keeps; init; hold $dir/flag; ok hi");
    put(&dir.join("flag"), "");
    let window = start(&human, "claude wp:2");
    let is_known = |run: &Value| run["pid"].is_u64() && run["native_id"].is_string();
    let running = until(&env, "it runs", is_known);
    let id = text(&running["id"]);
    page.learn(&env);
    page.run(&human, &format!("tenure runs stop {id} --reason 'not now'"));
    assert_ne!(window.wait().code, 0);
    shown(&mut page);
    fake_claude(&env, "keeps; init; ok 'done now'");
    page.run_once(&human, &format!("tenure runs resume {id}"), None);
    shown(&mut page);
    page.title("Longer lists");
    page.run(&human, "tenure runs --limit 1");
    let _mine = Scripted::new(&env, "mine", "init; done_");
    for item in ["wp:3", "wp:4"] {
        enqueue(&human, item, "fix it");
    }
    page.learn(&env);
    page.run(&human, "tenure runs --queued --limit 1");
    page.title("Arguments for the agent");
    page.run(
        &human,
        "tenure run claude wp:1 --prompt 'fix it' -- -- more",
    );
    page.check(&env);
}

#[test]
fn other_agents() {
    let env = env();
    let mut page = Page::new("66-runs-of-agents", &env);
    let human = session(&env, "human");
    let run = "tenure run codex wp:1 --prompt 'fix it'";
    page.title("Codex must not trust the repository");
    program(&env, "codex", "exit 0");
    let (config, dir) = (env.home().join(".codex/config.toml"), env.work());
    let dir = dir.display();
    for text in [
        "projects = \"all\"\n".to_owned(),
        format!("[projects]\n\"{dir}\" = \"trusted\"\n"),
        format!("[projects.\"{dir}\"]\ntrust_level = 5\n"),
        format!("[projects.\"{dir}\"]\ntrust_level = \"trusted\"\n"),
    ] {
        put(&config, &text);
        page.run(&human, run);
    }
    fs::remove_file(&config).expect("it is ours");
    page.title("A turn that fails");
    let id = "019a8f00-0000-7000-8000-000000000abc";
    let begins = format!("echo '{{\"type\":\"thread.started\",\"thread_id\":\"{id}\"}}'");
    let fails = "echo '{\"type\":\"turn.failed\"}'";
    program(&env, "codex", &format!("{begins}\n{fails}\nexit 1"));
    page.run_once(&human, run, None);
    let folder = env.home().join(".codex/sessions/2026/11/16");
    let aborted = r#"{"timestamp":"2026-11-16T01:02:03.000Z","type":"event_msg","payload":{"type":"turn_aborted","reason":"interrupted"}}"#;
    put(
        &folder.join(format!("rollout-2026-11-16T01-02-03-{id}.jsonl")),
        &format!("{aborted}\n"),
    );
    program(&env, "codex", &format!("{begins}\nexit 1"));
    page.run_once(&human, "tenure run codex wp:2 --prompt 'fix it'", None);
    page.title("Qwen Code waits for its provider");
    let flag = env.dir().join("flag");
    put(&flag, "");
    let waits = r#"echo '{"type":"system","subtype":"init","session_id":"q-1"}'
echo '{"type":"system","subtype":"retry","data":{"reason":"retry","attempt":2,"maxRetries":10,"delayMs":120000}}'"#;
    let holds = format!("while [ -e {} ]; do sleep 0.02; done", flag.display());
    program(&env, "qwen", &format!("{waits}\n{holds}\nexit 1"));
    let window = start(&human, "qwen wp:3");
    let running = until(&env, "it waits", |run| run["waiting"].is_object());
    page.learn(&env);
    page.run(
        &human,
        &format!("tenure runs show {}", text(&running["id"])),
    );
    fs::remove_file(&flag).expect("it is ours");
    assert_ne!(window.wait().code, 0);
    page.check(&env);
}

#[test]
fn survivors() {
    let env = env();
    let mut page = Page::new("66-survivors", &env);
    let lines = "mkfifo $dir/end; setsid $dir/serve $dir >/dev/null 2>&1 & init; hold $dir/flag";
    let mine = Scripted::new(&env, "mine", lines);
    let serves = "#!/bin/sh\ntenure register --agent other --pid $$ >/dev/null\necho $$ >$1/other\nread -r line <$1/end\n";
    put(&mine.file("serve"), serves);
    fs::set_permissions(mine.file("serve"), PermissionsExt::from_mode(0o755)).expect("it is ours");
    mine.keep("flag");
    let human = session(&env, "human");
    let window = start(&human, "mine wp:1");
    let other = poll(SOON, "the other session runs", || mine.line("other"));
    let id = text(&newest(&env)["id"]);
    page.learn(&env);
    page.title("A process that belongs to another session");
    page.run(&human, &format!("tenure runs stop {id}"));
    fs::write(mine.file("end"), "end\n").expect("it is read");
    let other = other.trim().parse().expect("a pid");
    poll(SOON, "it ends", || is_gone(other).then_some(()));
    assert_ne!(window.wait().code, 0);
    page.check(&env);
}

#[test]
fn resume() {
    let env = env();
    let mut page = Page::new("19-rare-resumes", &env);
    let out = env.agent("outsider");
    page.title("A session that Claude Code's own service keeps");
    let (agent, name) = in_background(&env);
    page.learn(&env);
    page.run(&out, &format!("tenure resume {name}"));
    agent.kill9();
    page.run(&out, "tenure resume");
    page.run(&out, "tenure resume --all --print");
    let (_again, name) = in_background(&env);
    page.learn(&env);
    page.run(&out, &format!("tenure end {name} --kill --reason enough"));
    page.run(&out, &format!("tenure end {name} --reason enough"));
    page.title("An agent that cannot be started");
    let mut handles = Vec::new();
    for id in ["0000aaaa", "0000bbbb"] {
        let agent = talking(&env, "claude", "claude-2.1.325", &[], id);
        take(&agent, &format!("wp:{id}"));
        handles.push(handle(&agent));
        page.learn(&env);
        agent.kill9();
    }
    let program = env.dir().join("bin/claude");
    symlink(&program, &program).expect("it is ours");
    let name = handles.remove(0);
    page.run(&out, &format!("tenure resume {name}"));
    let tmux = env.dir().join("bin/tmux");
    put(&tmux, "#!/bin/sh\necho 'no server running' >&2\nexit 1\n");
    fs::set_permissions(&tmux, PermissionsExt::from_mode(0o755)).expect("it is ours");
    page.run(
        &out,
        "TMUX=/tmp/tmux-1000/default,4711,0 tenure resume --all",
    );
    page.check(&env);
}

/// The update that a window of a run shows while its agent waits for its provider.
fn window(env: &Env) -> Output {
    let dir = fake_claude(env, &format!("init; {RETRY}; hold $dir/flag; ok hi"));
    let flag = dir.join("flag");
    put(&flag, "");
    let shell = env.shell_at_terminal();
    // How much fits would depend on how long it waits.
    shell.line("stty cols 160 rows 40 </dev/tty").ok();
    let (mut said, shown) = std::thread::scope(|scope| {
        let line = "tenure run claude wp:1 --prompt 'fix it' 2>/dev/tty";
        let typed = scope.spawn(|| shell.line(line));
        let shown = poll(SOON, "it waits", || {
            let shown = shell.shown();
            let mut parts = shown.split(['\r', '\n', '\u{1b}']);
            let waits = parts.rfind(|part| {
                part.contains("waiting for its provider for") && part.ends_with("attempt 2")
            });
            waits.map(str::to_owned)
        });
        fs::remove_file(&flag).expect("it is ours");
        (typed.join().expect("it was typed"), shown)
    });
    assert_eq!(outcome(env), "done");
    let text = shown.trim_start_matches(|c: char| !c.is_ascii_digit());
    said.stderr = text.to_owned();
    said
}

#[test]
fn terminals() {
    let env = with_tmux();
    let mut page = Page::new("66-terminals", &env);
    let out = env.agent("outsider");
    page.title("The window of a run");
    let said = window(&env);
    page.show(
        out.pid(),
        "tenure run claude wp:1 --prompt 'fix it'",
        said,
        None,
    );
    page.title("A watch that is longer than the terminal");
    let agents: Vec<_> = (0..8).map(|_| session(&env, "ann")).collect();
    page.learn(&env);
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    tmux.run(&["resize-window", "-t", &pane, "-x", "100", "-y", "9"]);
    tmux.types(&pane, "tenure ps --watch");
    let screen = tmux.shows(&pane, " more");
    tmux.presses(&pane, "q");
    let time = screen.split("  ").next().expect("a time");
    page.replace(time.trim(), "08:00:00");
    let stdout = screen.trim().to_owned();
    let said = Output {
        code: 0,
        stdout,
        stderr: String::new(),
    };
    page.show(out.pid(), "tenure ps --watch", said, None);
    drop(agents);
    page.title("Go to a session");
    let other = tmux.window();
    tmux.types(
        &other,
        "tenure register --agent bob --pid $$ >/dev/null; echo registered",
    );
    tmux.shows(&other, "\nregistered");
    page.learn(&env);
    let outer = Tmux::start(&env, "o");
    let attach = format!("TMUX= tmux -S {} attach -t main", tmux.socket);
    outer.types("main:0", &attach);
    poll(SOON, "it is attached", || {
        (!tmux.run(&["list-clients"]).is_empty()).then_some(())
    });
    page.run(&out, "tenure goto bob");
    page.check(&env);
}
