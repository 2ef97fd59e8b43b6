//! A conversation that an agent's daemon runs, and the window that the daemon reports for it.

use std::path::Path;

use serde_json::json;
use tenure_testkit::{Cmd, Env, Output, poll};

use super::page::Page;
use crate::env;
use crate::support::installed::put;
use crate::support::line::{SOON, session};
use crate::support::skip::skipped;

const PYTHON: &str = "/usr/bin/python3";

/// Answers on the socket of Codex's daemon: the window listens on the port in `port`. Runs the hook for each event that
/// it finds.
const DAEMON: &str = r#"
import json, os, socket, struct, subprocess, sys, threading, time

def frame(value):
    text = json.dumps(value).encode()
    return b"\x81" + (bytes([len(text)]) if len(text) < 126 else b"\x7e" + struct.pack(">H", len(text))) + text

def answer(client):
    with client, client.makefile("rb") as lines:
        while lines.readline() not in (b"\r\n", b""):
            pass
        client.sendall(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        while head := lines.read(2):
            length = head[1] & 0x7f
            if length == 126:
                length = struct.unpack(">H", lines.read(2))[0]
            lines.read(4)
            asked = json.loads(lines.read(length))
            servers = []
            if asked["method"] == "mcpServerStatus/list" and os.path.exists("port"):
                servers = [{"name": "codex_tui", "httpOrigin": "http://127.0.0.1:" + open("port").read()}]
            if "id" in asked:
                client.sendall(frame({"id": asked["id"], "result": {"data": servers}}))

def serve():
    folder = os.environ["HOME"] + "/.codex/app-server-control"
    os.makedirs(folder, exist_ok=True)
    server = socket.socket(socket.AF_UNIX)
    server.bind(folder + "/app-server-control.sock")
    server.listen()
    open("listens", "w").close()
    while True:
        threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

threading.Thread(target=serve, daemon=True).start()
while True:
    if os.path.exists("event"):
        with open("event") as event, open("said", "w") as said:
            subprocess.run(["tenure", "hook", "codex"], stdin=event, stdout=said)
        os.remove("event")
    time.sleep(0.01)
"#;

const WINDOW: &str = r#"
import os, socket, time
server = socket.create_server(("127.0.0.1", 0))
with open("port.new", "w") as port:
    port.write(str(server.getsockname()[1]))
os.rename("port.new", "port")
time.sleep(1000)
"#;

/// A Codex that follows a script.
fn codex(env: &Env, script: &str, flags: &[&str]) -> Cmd {
    let program = env.dir().join("python/codex");
    let file = env.dir().join(script);
    let words = [file.display().to_string()];
    let words = words
        .into_iter()
        .chain(flags.iter().map(|&flag| flag.to_owned()));
    Cmd::new(program.display().to_string()).args(words)
}

/// Gives an event to the daemon, and waits for its hook.
fn sent(dir: &Path, event: &str) -> Output {
    put(&dir.join("event.new"), event);
    std::fs::rename(dir.join("event.new"), dir.join("event")).expect("the environment is ours");
    poll(SOON, "the hook ran", || {
        (!dir.join("event").exists()).then_some(())
    });
    Output {
        code: 0,
        stdout: String::new(),
        stderr: String::new(),
    }
}

#[test]
fn daemons() {
    let env = env();
    let mut page = Page::new("19-windows-of-a-daemon", &env);
    let human = session(&env, "human");
    let program = env.dir().join("python/codex");
    std::fs::create_dir(program.parent().expect("a folder")).expect("the environment is ours");
    if std::fs::copy(PYTHON, &program).is_err() {
        return skipped("there is no python3");
    }
    put(&env.dir().join("daemon.py"), DAEMON);
    put(&env.dir().join("window.py"), WINDOW);
    let starter = env.agent("starter");
    let daemon = starter.start(codex(&env, "daemon.py", &["--managed-daemon"]));
    let work = env.work();
    poll(SOON, "it listens", || {
        assert!(daemon.is_alive(), "{}", daemon.stderr());
        work.join("listens").exists().then_some(())
    });
    let hook = |page: &mut Page, name: &str| {
        let event = json!({"hook_event_name": name, "session_id": "7f3c"}).to_string();
        let said = sent(&work, &event);
        page.show(
            daemon.pid,
            &format!("echo '{event}' | tenure hook codex >said"),
            said,
            None,
        );
    };
    page.title("Its window is not known yet");
    hook(&mut page, "SessionStart");
    page.run(&human, "tenure show codex");
    page.learn(&env);
    page.title("The daemon reports its window");
    let window = starter.start(codex(&env, "window.py", &[]));
    poll(SOON, "it listens", || {
        assert!(window.is_alive(), "{}", window.stderr());
        work.join("port").exists().then_some(())
    });
    // Both are processes of the session; the page tells them apart.
    page.replace(&format!("pid {}", window.pid), "pid 20999");
    hook(&mut page, "UserPromptSubmit");
    // The hook waits only a moment for the daemon's answer; the next one asks again.
    poll(SOON, "the window is recorded", || {
        let log = env.tenure(&["log", "codex", "--json"]).ok().stdout;
        if log.contains("as its window") {
            return Some(());
        }
        let event = json!({"hook_event_name": "UserPromptSubmit", "session_id": "7f3c"});
        sent(&work, &event.to_string());
        None
    });
    page.run(&human, "tenure show codex");
    page.run(&human, "tenure log codex");
    page.learn(&env);
    page.title("Its window is closed in the middle of a turn");
    window.kill9();
    page.run(&human, "tenure show codex");
    daemon.kill9();
    page.check(&env);
}
