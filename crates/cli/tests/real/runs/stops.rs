//! Stopping a run: by its timeout, at its window, by `runs stop`; and what is gone then.

use serde_json::{Value, json};
use tenure_testkit::real::Real;
use tenure_testkit::{Signal, poll};

use super::{Runs, carrying, text};
use crate::state::LONG;

of_every_agent! { [f_r13_f_r14_f_r18_stop] }
of_two_agents! { [timeout interrupt_at_the_window f_r14_what_goes_on_is_named] }

/// A tool that leaves a process in a session of its own.
const LEFT: &str = "setsid nohup sleep 1000 >/dev/null 2>&1 & echo began";

/// What its tools left running in sessions of their own is gone as well, and the conversation stays.
fn f_r13_f_r14_f_r18_stop(kind: Real) {
    let runs = unconfined(kind);
    let (window, run) = runs.start_using(LEFT, &[]);
    // Qwen Code ends what a tool leaves, if it finds it.
    if kind != Real::Qwen {
        assert_eq!(sleeps(&run), 1, "the tool left one running");
    }
    let stop = [
        "runs",
        "stop",
        text(&run, "id"),
        "--reason",
        "enough",
        "--json",
    ];
    let stopped = runs.world.tenure(&stop).ok().json();
    assert_eq!(stopped["run"]["outcome"], "stopped", "{stopped:#}");
    // What the tool left running is ended, and named after the reason.
    let why = text(&stopped["run"], "why");
    assert!(why.starts_with("enough"), "{stopped:#}");
    assert_eq!(stopped["survivors"], json!([]), "{stopped:#}");
    let said = window.wait();
    assert_ne!(said.code, 0, "{said}");
    assert_eq!(carrying(&run), Vec::<u32>::new());
    runs.world.mock().release("here");
    runs.run(&["--prompt", "MOCK:say again"]).ok();
    let next = runs.newest();
    assert_eq!(next["outcome"], "done", "{next:#}");
    assert_eq!(next["before"], run["native_id"], "{next:#}");
    assert_eq!(next["native_id"], run["native_id"], "{next:#}");
    runs.cell("stop", "stopped, nothing left running; resumes");
}

fn timeout(kind: Real) {
    let runs = Runs::begin(kind);
    let said = runs.run(&["--prompt", "MOCK:hold here", "--timeout", "4s"]);
    let run = runs.newest();
    assert_eq!(run["outcome"], "timeout", "{run:#}\n{said}");
    let why = text(&run, "why");
    assert!(why.starts_with("it did not end within 4s"), "{run:#}");
    assert_eq!(carrying(&run), Vec::<u32>::new());
}

fn interrupt_at_the_window(kind: Real) {
    let runs = Runs::begin(kind);
    let (window, run) = runs.start_held(&[]);
    poll(LONG, "the window shows it", || {
        window.stderr().contains("run r-").then_some(())
    });
    assert!(window.signal(Signal::INT));
    let said = window.wait();
    assert_ne!(said.code, 0, "{said}");
    let ended = runs.newest();
    assert_eq!(ended["outcome"], "stopped", "{ended:#}");
    assert_eq!(ended["why"], "stopped with Ctrl-C", "{ended:#}");
    assert_eq!(carrying(&run), Vec::<u32>::new());
}

/// Codex's sandbox would end what a tool leaves.
fn unconfined(kind: Real) -> Runs {
    let mut runs = Runs::begin(kind);
    if kind == Real::Codex {
        let flag = "--dangerously-bypass-approvals-and-sandbox";
        runs.arguments.push(flag);
    }
    runs
}

/// How many processes of a run sleep on.
fn sleeps(run: &Value) -> usize {
    let is_sleep = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"sleep\0")
    };
    carrying(run).iter().filter(|pid| is_sleep(pid)).count()
}

/// A run that ends by itself ends nothing that its tools left running, and says what that is.
fn f_r14_what_goes_on_is_named(kind: Real) {
    let runs = unconfined(kind);
    let prompt = format!("MOCK:bash {LEFT}");
    let said = runs.run(&["--prompt", &prompt, "--leave"]).ok();
    let run = runs.newest();
    assert_eq!(run["outcome"], "done", "{run:#}");
    assert_eq!(sleeps(&run), 1, "{said}");
    let pid = carrying(&run)[0];
    assert!(
        said.stderr.contains(&format!("still running: pid {pid}")),
        "{said}"
    );
}
