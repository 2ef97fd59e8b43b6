//! A dispatcher that cannot start, and what is left when one is stopped.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};
use tenure_testkit::{Agent, Background, Cmd, Env, Scripted, Signal, poll};

use super::dispatch::{port_of, with_port};
use super::page::Page;
use crate::dispatch_push::stopped;
use crate::env;
use crate::support::cloned::private;
use crate::support::dispatch::fill_in;
use crate::support::line::{SOON, session, text};
use crate::support::run::{all, kill9};
use crate::support::webhook::{Dispatcher, set_up};

#[test]
fn starts() {
    let env = env();
    let mut page = Page::new("76-dispatcher-starts", &env);
    let human = session(&env, "human");
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let dir = env.work();
    page.cd(&dir);
    page.title("An address that is in use");
    let other = TcpListener::bind("127.0.0.1:0").expect("the loopback is there");
    let port = port_of(&other.local_addr().expect("it is bound").to_string());
    let line = format!("tenure dispatch --listen 127.0.0.1:{port}");
    with_port(&mut page, &human, &dir, &port, &line, Some("cannot_listen"));
    page.title("A dispatcher that fails");
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().expect("it is called");
        let mut head = [0; 4096];
        assert!(stream.read(&mut head).expect("a request") > 0);
        let answer = b"HTTP/1.1 503 Busy\r\nContent-Length: 51\r\n\r\n{\"error\": \"the store is busy; deliver it again\"}   ";
        stream.write_all(answer).expect("it listens");
    });
    let line = format!("tenure dispatch ping --listen 127.0.0.1:{port}");
    with_port(&mut page, &human, &dir, &port, &line, Some("not_accepted"));
    answering.join().expect("it answered");
    page.title("Two secrets, while one replaces the other");
    private(&env.home().join(".config/tenure/new.secret"), "new");
    fill_in(
        &env,
        "[\"home.secret\"]",
        "[\"home.secret\", \"new.secret\"]",
    );
    let door = Dispatcher::start(&human);
    let port = port_of(&door.address);
    with_port(&mut page, &human, &dir, &port, "tenure dispatch ping", None);
    human.tenure(&["dispatch", "stop"]).ok();
    door.process.wait().ok();
    page.title("A state directory where nothing can be noted");
    let notes = env.state().join("dispatchers");
    std::fs::remove_dir_all(&notes).expect("it is ours");
    std::fs::write(&notes, "in the way").expect("it is ours");
    std::fs::remove_file(env.home().join(".config/tenure/dispatch.toml")).expect("it is ours");
    let mut output = human.tenure_in(&dir, &["dispatch"]);
    // The note is named after the process.
    let (before, name) = output
        .stderr
        .split_once("dispatchers/")
        .expect("it is named");
    let (_, after) = name.split_once('`').expect("it is quoted");
    output.stderr = format!("{before}dispatchers/20100-3750000`{after}");
    page.show(human.pid(), "tenure dispatch", output, Some("internal"));
    page.check(&env);
}

fn dispatch(human: &Agent) -> Background {
    let process = human.start(Cmd::new("tenure").args(["dispatch", "--json"]));
    poll(SOON, "it works", || {
        process.stdout().contains("working").then_some(())
    });
    process
}

/// Queues a run and waits until its agent works.
fn queued(env: &Env, human: &Agent, item: &str) {
    let words = ["run", "mine", item, "--prompt", "do it", "--queue"];
    human.tenure(&words).ok();
    poll(SOON, "the agent works", || {
        let jobs = env.tenure(&["queue", "--json"]).ok().json();
        let begun = jobs["jobs"][0]["state"] == "begun";
        (begun && all(env)[0]["native_id"].is_string()).then_some(())
    });
}

/// Whether a process waits for an interrupt, instead of being ended by it.
fn heeds_interrupt(pid: u32) -> Option<()> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut masks = status.lines().filter_map(|line| {
        let mask = ["SigBlk:", "SigCgt:"]
            .iter()
            .find_map(|name| line.strip_prefix(name))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    });
    let bit = 1 << (Signal::INT.as_raw() - 1);
    masks.any(|mask| mask & bit != 0).then_some(())
}

#[test]
fn stops() {
    let env = env();
    let mut page = Page::new("76-dispatcher-stops", &env);
    let human = session(&env, "human");
    let child =
        "tenure register --agent other --pid $$ >/dev/null; echo $$ >$dir/other; exec sleep 1000";
    let works = "init c-$TENURE_RUN; hold $dir/flag; done_";
    let mine = Scripted::new(&env, "mine", works);
    mine.keep("flag");
    page.title("Interrupted while it waits for runs");
    let first = dispatch(&human);
    queued(&env, &human, "wp:1");
    let line = "tenure dispatch stop --runs --drain 10m";
    let stop = human.start(Cmd::new("tenure").args(line.split(' ').skip(1)));
    first.wait().ok();
    poll(SOON, "it waits for the runs", || heeds_interrupt(stop.pid));
    assert!(stop.signal(Signal::INT));
    page.learn(&env);
    page.show(human.pid(), line, stop.wait(), None);
    page.title("With its runs");
    page.run_once(&human, "tenure dispatch stop --runs", None);
    let run = text(&all(&env)[0]["id"]);
    page.run(&human, &format!("tenure runs show {run}"));
    page.title("A process of another session");
    mine.does(&format!(
        "export dir; setsid sh -c '{child}' >/dev/null 2>&1 & {works}"
    ));
    let second = dispatch(&human);
    queued(&env, &human, "wp:2");
    let other = poll(SOON, "the other session runs", || mine.line("other"));
    let name = format!("/proc/{}/comm", other.trim());
    poll(SOON, "it is what the page shows", || {
        let name = std::fs::read_to_string(&name).unwrap_or_default();
        (name.trim() == "sleep").then_some(())
    });
    page.learn(&env);
    page.run_once(&human, "tenure dispatch stop --runs --reason reboot", None);
    second.wait().ok();
    kill9(&human, other.trim().parse().expect("a pid"));
    std::fs::remove_file(mine.file("flag")).expect("it was kept");
    page.title("A dispatcher in another container");
    let third = dispatch(&human);
    let notes = env.state().join("dispatchers");
    let note = std::fs::read_dir(&notes)
        .expect("it is there")
        .flatten()
        .next();
    let path = note.expect("it left a note").path();
    let note = std::fs::read_to_string(&path).expect("it can be read");
    let mut hidden: Value = serde_json::from_str(&note).expect("it is JSON");
    hidden["process"]["pid_ns"] = json!(7);
    std::fs::write(&path, hidden.to_string()).expect("it is ours");
    page.run(&human, "tenure dispatch stop");
    std::fs::write(&path, note).expect("it is ours");
    human.tenure(&["dispatch", "stop"]).ok();
    third.wait().ok();
    page.check(&env);
}

#[test]
fn pushes() {
    let env = env();
    let mut page = Page::new("76-push", &env);
    let (_mine, _host, run) = stopped(&env);
    let ann = env.agent("ann");
    let line = format!("tenure runs resume {run}");
    page.learn(&env);
    page.title("A run that goes on, if its rule may no longer push as before");
    private(&env.home().join(".config/tenure/other.token"), "t-2");
    fill_in(&env, "push = \"push.token\"", "push = \"other.token\"");
    page.run(&ann, &line);
    fill_in(&env, "push = \"other.token\"", "");
    page.run(&ann, &line);
    fill_in(&env, "name = \"fix\"", "name = \"other\"");
    page.run(&ann, &line);
    page.check(&env);
}
