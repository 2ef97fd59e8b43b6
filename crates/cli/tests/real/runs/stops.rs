//! Stopping a run: by its timeout, at its window, by `runs stop`; and what is gone then.

use tenure_testkit::Signal;
use tenure_testkit::poll;
use tenure_testkit::real::Real;

use super::{Runs, carrying, text};
use crate::state::LONG;

of_each_agent! { [f_r13_f_r14_f_r18_stop] }
of_two_agents! { [timeout interrupt_at_the_window] }

/// What its tools left running in sessions of their own is gone as well, and the conversation stays.
fn f_r13_f_r14_f_r18_stop(kind: Real) {
    let runs = Runs::begin(kind);
    let left = "setsid nohup sleep 1000 >/dev/null 2>&1 & echo began";
    let (window, run) = runs.start_using(left, &[]);
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
    assert_eq!(stopped["run"]["why"], "enough", "{stopped:#}");
    assert_eq!(stopped["survivors"], serde_json::json!([]), "{stopped:#}");
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
    assert_eq!(run["why"], "it did not end within 4s", "{run:#}");
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
    assert_eq!(ended["why"], "interrupted at its window", "{ended:#}");
    assert_eq!(carrying(&run), Vec::<u32>::new());
}
