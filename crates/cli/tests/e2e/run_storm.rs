//! A runner is killed with -9 at random moments, alone or with its agent; what is recorded is right each time, and
//! the next run works.
//!
//! `TENURE_STORM_MOMENTS` is how often (the long tier asks for a hundred), `TENURE_STORM_SEED` repeats the choices of
//! a run: it is printed, and named by every failure.

use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_testkit::pinned::{Pinned, Stat};
use tenure_testkit::protocol::Started;
use tenure_testkit::{Agent, Background, Env, Scripted, Signal, poll};

use crate::env;
use crate::support::line::SOON;
use crate::support::run::{all, lines, run, start};
use crate::support::storm::{Dice, number, seed, tell};

/// What the agent does: it notes its beginning and its end, so that both can be counted.
const SCRIPT: &str = r#"
echo "begin $TENURE_RUN $mode $id" >>$dir/work
init ${2:-c-$TENURE_RUN}
work
if [ -e $dir/child ]; then setsid sh -c ": >$dir/lives; while [ -e $dir/child ]; do sleep 0.02; done" & fi
sleep 0.05
hold $dir/flag
done_ $TENURE_RUN
echo "end $TENURE_RUN" >>$dir/work
"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Killed {
    Runner,
    RunnerAndWindow,
    RunnerThenAgent,
    AgentThenRunner,
}

impl Killed {
    fn with_agent(self) -> bool {
        matches!(self, Killed::RunnerThenAgent | Killed::AgentThenRunner)
    }
}

/// One moment, as the seed decides it.
#[derive(Debug)]
struct Moment {
    item: String,
    killed: Killed,
    after: Duration,
    /// Whether the agent waits, so that it is seen without a runner.
    holds: bool,
    /// Whether it leaves a process that outlives it.
    leaves: bool,
}

fn moment_of(dice: &mut Dice, number: u64, whole: Duration) -> Moment {
    let whole = u64::try_from(whole.as_micros()).expect("a run is short");
    let killed = [
        Killed::Runner,
        Killed::RunnerAndWindow,
        Killed::RunnerThenAgent,
        Killed::AgentThenRunner,
    ];
    Moment {
        item: format!("wp:{number}"),
        killed: killed[usize::try_from(dice.below(4)).expect("small")],
        after: Duration::from_micros(dice.below(whole * 12 / 10)),
        holds: dice.below(2) == 0,
        leaves: dice.below(4) == 0,
    }
}

#[test]
fn a_runner_that_is_killed_at_any_moment_leaves_a_right_record() {
    let moments = number("TENURE_STORM_MOMENTS").unwrap_or(6);
    let seed = seed();
    tell(format_args!(
        "TENURE_STORM_SEED={seed} TENURE_STORM_MOMENTS={moments}"
    ));
    let mut dice = Dice(seed);
    let storm = Storm::new();
    let whole = storm.time_of_a_run();
    for number in 1..=moments {
        let moment = moment_of(&mut dice, number, whole);
        tell(format_args!("{moment:?}"));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| storm.strike(&moment)));
        if let Err(failed) = done {
            tell(format_args!("with TENURE_STORM_SEED={seed}, at {moment:?}"));
            std::panic::resume_unwind(failed);
        }
    }
}

struct Storm {
    env: Env,
    mine: Scripted,
    ann: Agent,
}

impl Storm {
    fn new() -> Self {
        let env = env();
        let mine = Scripted::new(&env, "mine", SCRIPT);
        let ann = env.agent("ann");
        Self { env, mine, ann }
    }

    /// From the start of the runner to its end, when nothing is killed.
    fn time_of_a_run(&self) -> Duration {
        run(&self.ann, "mine wp:0").ok();
        let window = start(&self.ann, "mine wp:0");
        let runner = self.runner_below(&window);
        let began = Instant::now();
        assert!(runner.wait_gone(SOON), "the runner ends");
        let whole = began.elapsed();
        window.wait().ok();
        whole
    }

    fn strike(&self, moment: &Moment) {
        let before = all(&self.env).len();
        self.set("flag", moment.holds);
        self.set("child", moment.leaves);
        self.set("lives", false);
        let window = start(&self.ann, &format!("mine {} --json", moment.item));
        let runner = self.runner_below(&window);
        let began = Instant::now();
        let wait = moment.after.saturating_sub(began.elapsed());
        if runner.wait_gone(wait) {
            tell(format_args!("  it had ended"));
        }
        let agent = kill(moment.killed, &runner, &window);
        assert!(runner.wait_gone(SOON), "the runner is gone");
        self.is_shown_without_runner(moment, agent.as_ref());
        self.set("flag", false);
        if let Some(agent) = &agent {
            assert!(agent.wait_gone(SOON), "the agent ends");
        }
        let said = window.wait();
        let now = all(&self.env);
        let record = (now.len() > before).then(|| now[0].clone());
        if let Some(record) = &record {
            assert_eq!(record["item"], moment.item.as_str());
            self.is_right(moment, record);
        }
        if moment.killed == Killed::Runner {
            self.window_told(moment, &said, record.as_ref());
        }
        let named = record.as_ref().and_then(|record| log_of(record).named);
        self.next_run_works(moment, record.as_ref(), named.as_deref());
    }

    fn set(&self, name: &str, is_there: bool) {
        if is_there {
            self.mine.keep(name);
        } else {
            std::fs::remove_file(self.mine.file(name)).ok();
        }
    }

    fn runner_below(&self, window: &Background) -> Pinned {
        let found = std::cell::RefCell::new(None);
        poll(SOON, "a runner is started", || {
            let runner = children(window.pid).into_iter().find_map(pinned);
            if runner.is_none() && !window.is_alive() {
                return Some(());
            }
            *found.borrow_mut() = runner;
            found.borrow().is_some().then_some(())
        });
        found
            .into_inner()
            .unwrap_or_else(|| panic!("no runner: {}", window.stderr()))
    }

    fn work(&self, run: &str) -> (usize, usize) {
        let text = self.mine.wrote("work").unwrap_or_default();
        let count = |what: &str| text.lines().filter(|line| line.starts_with(what)).count();
        (
            count(&format!("begin {run} ")),
            count(&format!("end {run}")),
        )
    }

    /// While the agent works on: it is shown as that, and its conversation and its directory are taken.
    fn is_shown_without_runner(&self, moment: &Moment, agent: Option<&Pinned>) {
        let lives = |agent: &Pinned| !agent.is_gone();
        if !moment.holds || moment.killed.with_agent() || !agent.is_some_and(lives) {
            return;
        }
        let shown = poll(SOON, "the agent works, or ends at its gate", || {
            let newest = all(&self.env).into_iter().next()?;
            let is_it = newest["item"] == moment.item.as_str();
            let works = is_it && self.work(newest["id"].as_str()?).0 == 1;
            let ended = agent.is_some_and(Pinned::is_gone);
            (works || ended).then_some(works.then_some(newest))
        });
        let Some(shown) = shown else { return };
        assert_eq!(
            (shown["state"].as_str(), shown["runner"].as_str()),
            (Some("running"), Some("dead")),
            "{shown}"
        );
        for line in [
            format!("mine {} --json", moment.item),
            "mine wp:other --json".to_owned(),
        ] {
            let refused = lines(&run(&self.ann, &line).fails(125)).pop().expect("one");
            assert_eq!(refused["error"]["kind"], "held", "{line}: {refused}");
            assert_eq!(refused["error"]["run"]["id"], shown["id"], "{line}");
        }
    }

    /// The record says what happened, and the agent's work was done at most once.
    fn is_right(&self, moment: &Moment, record: &Value) {
        let id = record["id"].as_str().expect("an id");
        let (begins, ends) = self.work(id);
        let log = log_of(record);
        assert!(begins <= 1 && ends <= begins, "{begins} {ends}: {record}");
        if record["begun_at"].is_null() {
            assert_eq!(begins, 0, "it never began: {record}");
        }
        if begins == 1 && !moment.killed.with_agent() {
            assert_eq!(ends, 1, "the agent went on to its end: {record}");
        }
        assert_eq!(record["state"], "ended", "{record}");
        let expected = if log.done { "done" } else { "interrupted" };
        assert_eq!(record["outcome"], expected, "{record}");
        assert!(!log.done || begins == 1, "{record}");
        let events = self.ann.tenure(&["log", &moment.item, "--json"]).ok();
        let events = events.json();
        let events = events["events"].as_array().expect("events").iter();
        let ended = events.filter(|one| one["kind"] == "run.ended");
        assert_eq!(ended.count(), 1, "{record}");
    }

    /// The window that stayed says what the record says.
    fn window_told(&self, moment: &Moment, said: &tenure_testkit::Output, record: Option<&Value>) {
        let last = lines(said).pop().unwrap_or_else(|| panic!("{said}"));
        // A record that was being written can come to light when the store is opened again.
        let never_began = record.is_none_or(|record| record["begun_at"].is_null());
        match record {
            _ if never_began && said.code == 125 => {
                assert_eq!(last["error"]["kind"], "internal", "{said}");
            }
            Some(record) => {
                assert_eq!(last["event"], "run.ended", "{moment:?}\n{said}");
                assert_eq!(last["run"]["outcome"], record["outcome"], "{said}");
                let code = i32::from(record["outcome"] != "done");
                assert_eq!(said.code, code, "{said}");
            }
            None => panic!("no record: {said}"),
        }
    }

    /// The next run goes on in the conversation that the agent named, once nothing of the killed one is left.
    fn next_run_works(&self, moment: &Moment, record: Option<&Value>, named: Option<&str>) {
        let line = format!("mine {} --json", moment.item);
        let id = |record: &Value| record["id"].as_str().expect("an id").to_owned();
        let cut_off = record.filter(|record| record["outcome"] == "interrupted");
        // A runner that saw its agent's death may have ended the rest before it was killed.
        let lives = |record: &Value| !carriers(&id(record)).is_empty();
        if cut_off.is_some_and(lives) && self.mine.file("lives").exists() {
            for line in [&line, "mine wp:other --json"] {
                let refused = lines(&run(&self.ann, line).fails(125)).pop().expect("one");
                assert_eq!(refused["error"]["kind"], "survivors", "{refused}");
            }
        }
        self.set("child", false);
        if let Some(record) = record {
            poll(SOON, "nothing of it runs", || {
                carriers(&id(record)).is_empty().then_some(())
            });
        }
        let next = run(&self.ann, &line).ok();
        let next = lines(&next).pop().expect("an end");
        assert_eq!(next["run"]["outcome"], "done");
        let before = next["run"]["before"].as_str();
        assert_eq!(before, named, "after {record:?}");
        assert_eq!(
            self.work(next["run"]["id"].as_str().expect("an id")),
            (1, 1)
        );
    }
}

fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let text = text.unwrap_or_default();
    let pids = text.split_whitespace();
    pids.filter_map(|pid| pid.parse().ok()).collect()
}

fn pinned(pid: u32) -> Option<Pinned> {
    let start = Stat::read(pid)?.start;
    Pinned::open(Started { pid, start }).ok()
}

/// Kills what a moment says; the agent, or what waits to become it, if there was one.
fn kill(killed: Killed, runner: &Pinned, window: &Background) -> Option<Pinned> {
    let below = children(runner.started().pid);
    let agent = below.into_iter().find_map(pinned);
    if killed == Killed::AgentThenRunner
        && let Some(agent) = &agent
    {
        agent.signal(Signal::KILL);
    }
    runner.signal(Signal::KILL);
    if killed == Killed::RunnerThenAgent
        && let Some(agent) = &agent
    {
        agent.signal(Signal::KILL);
    }
    if killed == Killed::RunnerAndWindow {
        window.kill9();
    }
    agent
}

/// What the agent wrote.
struct Log {
    named: Option<String>,
    done: bool,
}

fn log_of(record: &Value) -> Log {
    let dir = std::path::Path::new(record["log"].as_str().expect("a log"));
    let text = std::fs::read_to_string(dir.join("output.jsonl")).unwrap_or_default();
    let all: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let named = all.iter().find_map(|line| line["session_id"].as_str());
    Log {
        named: named.map(str::to_owned),
        done: all.iter().any(|line| !line["result"].is_null()),
    }
}

/// The processes that carry a run's variable.
fn carriers(run: &str) -> Vec<u32> {
    let wanted = format!("TENURE_RUN={run}");
    let all = std::fs::read_dir("/proc").expect("it is there").flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|one| one == wanted.as_bytes())
    })
    .collect()
}
