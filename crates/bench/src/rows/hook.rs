//! The hook, as every agent pays for it at every tool call: a whole process for one event.
//!
//! This process is the agent: the agent's own pid variable names it. A repeat is a tool's use of a session that is known
//! and was heard of just now, which is what most events are: the store is not opened. A prompt is written. The log is as
//! long as in the middle of a working day: each hook that opens the store reads all of it.

use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Bench;
use super::process::{floor, memory};
use crate::Failed;
use crate::counts::{Counts, peak_kib};
use crate::place::BenchStore;
use crate::program::{ProgramCall, Surroundings};
use crate::report::{Budget, Measurement, Unit, divide};
use crate::sample::Sample;
use crate::seeded::{SMALL, Seeded, fill_log, keep_log_filled};

/// What one of many at once may cost, in bare writers.
const CROWD_BUDGET: Budget = Budget::AtMost(4.0);
/// How many agents beat at once.
const CROWD: usize = 64;
/// How many loops a busy machine runs beside hooks.
const LOOPS: usize = 4;

/// What hooks may cost, in empty programs as `cargo build` links them, and in counts.
struct Budgets {
    repeat: Budget,
    written: Budget,
    /// Beside busy loops.
    busy: [Budget; 2],
    repeat_counts: [Budget; 2],
    written_counts: [Budget; 2],
    /// In mebibytes.
    memory: [Budget; 2],
}

const NONE: [Budget; 2] = [Budget::None; 2];
/// What an agent's status line may cost, in empty programs.
const STATUS_LINE: Budget = Budget::AtMost(3.0);

const DYNAMIC: Budgets = Budgets {
    repeat: Budget::AtMost(1.8),
    written: Budget::None,
    busy: [Budget::AtMost(2.5), Budget::None],
    repeat_counts: [Budget::AtMost(0.8), Budget::AtMost(160.0)],
    written_counts: NONE,
    memory: [Budget::AtMost(8.0); 2],
};

const STATIC: Budgets = Budgets {
    repeat: Budget::AtMost(1.3),
    written: Budget::AtMost(2.5),
    busy: [Budget::AtMost(2.5); 2],
    repeat_counts: [Budget::AtMost(0.5), Budget::AtMost(120.0)],
    written_counts: [Budget::AtMost(2.7), Budget::AtMost(200.0)],
    memory: [Budget::AtMost(7.0), Budget::AtMost(8.0)],
};

pub(crate) const START: &str = r#"{"session_id":"6f6d0d2e-1111-4222-8333-444455556666","transcript_path":"/nowhere/6f6d0d2e-1111-4222-8333-444455556666.jsonl","cwd":"/","hook_event_name":"SessionStart","source":"startup"}"#;
pub(crate) const TOOL: &str = r#"{"session_id":"6f6d0d2e-1111-4222-8333-444455556666","transcript_path":"/nowhere/6f6d0d2e-1111-4222-8333-444455556666.jsonl","cwd":"/","permission_mode":"default","effort":{"level":"medium"},"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"cargo test --workspace","description":"Runs the tests"},"tool_use_id":"toolu_01"}"#;

/// An agent's calls, and the empty program.
struct Calls {
    place: BenchStore,
    /// A tool's use; a repeat if it ran just before.
    tool: ProgramCall,
    /// The end of a turn, and a prompt: each changes what is stored.
    stop: ProgramCall,
    prompt: ProgramCall,
    line: ProgramCall,
    empty: ProgramCall,
}

/// How long they took.
#[derive(Default)]
struct Times {
    repeat: Vec<Duration>,
    written: Vec<Duration>,
    line: Vec<Duration>,
    empty: Vec<Duration>,
}

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let dir = bench.dir("hook")?;
    let seeded = Seeded::fresh(&dir.join("state"), SMALL)?;
    let around = Surroundings::make(&dir, seeded.place.dir())?;
    let agent = |args: [&str; 2], event: &str, text: &str| -> Result<ProgramCall, Failed> {
        let event = written(&dir, &format!("{event}.json"), text)?;
        let call = around.call(&bench.programs.tenure, args);
        let own = std::process::id().to_string();
        Ok(call.env("CLAUDE_PID", own).stdin(&event))
    };
    let hook = |event: &str, text: &str| agent(["hook", "claude"], event, text);
    let calls = Calls {
        place: seeded.place,
        tool: hook("tool", TOOL)?,
        stop: hook("stop", &TOOL.replace("PreToolUse", "Stop"))?,
        prompt: hook("prompt", &TOOL.replace("PreToolUse", "UserPromptSubmit"))?,
        line: agent(["statusline", "claude"], "line", TOOL)?,
        empty: around.call(&bench.programs.empty, [""; 0]),
    };
    hook("start", START)?.run()?;
    let most = if bench.is_static { &STATIC } else { &DYNAMIC };
    let mut rows = timed(bench, &calls, most)?;
    rows.extend(for_scale(bench, &calls, &around)?);
    around.check_outages()?;
    bench.say("hook: counting instructions and system calls");
    rows.extend(counted(&calls, &dir, most)?);
    rows.push(crowd(bench)?);
    Ok(rows)
}

pub(crate) fn written(dir: &Path, name: &str, text: &str) -> Result<PathBuf, Failed> {
    let path = dir.join(name);
    fs_err::write(&path, text)?;
    Ok(path)
}

impl Calls {
    fn times(&self, count: usize) -> Result<Times, Failed> {
        let mut times = Times::default();
        for _ in 0..count {
            self.stop.run()?;
            keep_log_filled(&self.place)?;
            times.empty.push(self.empty.timed()?);
            times.written.push(self.prompt.timed()?);
            times.line.push(self.line.timed()?);
            // So that the next one is a repeat.
            self.tool.run()?;
            times.empty.push(self.empty.timed()?);
            times.repeat.push(self.tool.timed()?);
        }
        Ok(times)
    }
}

fn timed(bench: &Bench, calls: &Calls, most: &Budgets) -> Result<Vec<Measurement>, Failed> {
    let row = |what: &str, ours: Vec<Duration>, empty: &Sample, budget| {
        let what = format!("{what} : empty program");
        Measurement::ratio("hook", what, &Sample::of(ours), empty, budget)
    };
    let times = calls.times(bench.times(600))?;
    let empty = Sample::of(times.empty);
    let mut rows = vec![
        row(
            "tenure hook claude, a repeat",
            times.repeat,
            &empty,
            most.repeat,
        ),
        row(
            "tenure hook claude, a prompt",
            times.written,
            &empty,
            most.written,
        ),
        row("tenure statusline claude", times.line, &empty, STATUS_LINE),
    ];
    bench.say("hook: beside busy loops");
    let times = beside_loops(|| calls.times(bench.times(200)))?;
    let empty = Sample::of(times.empty);
    let [repeat, written] = most.busy;
    rows.push(row(
        "a repeat beside four busy loops",
        times.repeat,
        &empty,
        repeat,
    ));
    rows.push(row(
        "a prompt beside four busy loops",
        times.written,
        &empty,
        written,
    ));
    Ok(rows)
}

/// Runs something while all processors are busy.
fn beside_loops<T>(run: impl FnOnce() -> T) -> T {
    /// Ends the loops, also if what runs beside them fails.
    struct Ends<'a>(&'a AtomicBool);
    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Ends(&over);
        for _ in 0..LOOPS {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        run()
    })
}

/// What other programs cost that do nothing.
fn for_scale(
    bench: &Bench,
    calls: &Calls,
    around: &Surroundings,
) -> Result<Vec<Measurement>, Failed> {
    let others = [
        (
            "python3 -c pass",
            around.call(Path::new("python3"), ["-c", "pass"]),
        ),
        ("node -e 0", around.call(Path::new("node"), ["-e", "0"])),
    ];
    let mut rows = Vec::new();
    for (name, call) in others {
        let (mut theirs, mut empty) = (Vec::new(), Vec::new());
        for _ in 0..bench.times(60) {
            empty.push(calls.empty.timed()?);
            theirs.push(call.timed()?);
        }
        let what = format!("{name} : empty program, for scale");
        let (theirs, empty) = (Sample::of(theirs), Sample::of(empty));
        rows.push(Measurement::ratio(
            "hook",
            what,
            &theirs,
            &empty,
            Budget::None,
        ));
    }
    Ok(rows)
}

fn counted(calls: &Calls, dir: &Path, most: &Budgets) -> Result<Vec<Measurement>, Failed> {
    let settled = || {
        fill_log(&calls.place)?;
        calls.tool.run()
    };
    let stopped = || {
        calls.stop.run()?;
        fill_log(&calls.place)
    };
    let repeat = Counts::of(&calls.tool, dir, settled)?;
    let written = Counts::of(&calls.prompt, dir, stopped)?;
    let empty = Counts::of(&calls.empty, dir, || Ok(()))?;
    let mut rows = Vec::new();
    rows.extend(counts("a repeat", repeat, empty, most.repeat_counts));
    rows.extend(counts("a prompt", written, empty, most.written_counts));
    let nothing = peak_kib(&calls.empty)?;
    let [repeat, written] = most.memory;
    settled()?;
    let of = ("hook", "memory of a hook's process, a repeat");
    rows.push(memory(of, peak_kib(&calls.tool)?, nothing, repeat));
    stopped()?;
    let of = ("hook", "memory of a hook's process, a prompt");
    rows.push(memory(of, peak_kib(&calls.prompt)?, nothing, written));
    Ok(rows)
}

/// Instructions in millions, and system calls.
fn counts(what: &str, ours: Counts, empty: Counts, most: [Budget; 2]) -> [Measurement; 2] {
    let row = |unit: Unit, name: &str, count: u64, beside: u64, budget| {
        let per = if unit == Unit::Millions { 1e6 } else { 1.0 };
        #[expect(clippy::cast_precision_loss, reason = "a few million")]
        let number = count as f64 / per;
        Measurement {
            group: "hook",
            what: format!("tenure hook claude, {what}: {name}"),
            ours: count.to_string(),
            baseline: format!("{beside} (empty)"),
            number,
            unit,
            budget,
            more: Default::default(),
        }
    };
    let [instructions, calls] = most;
    [
        row(
            Unit::Millions,
            "instructions",
            ours.instructions,
            empty.instructions,
            instructions,
        ),
        row(
            Unit::Calls,
            "system calls",
            ours.system_calls,
            empty.system_calls,
            calls,
        ),
    ]
}

/// Sixty-four hooks at once, each of an agent that is due to beat, beside as many bare writers.
fn crowd(bench: &Bench) -> Result<Measurement, Failed> {
    let dir = bench.dir("hook-crowd")?;
    let seeded = Seeded::fresh(&dir.join("state"), SMALL)?;
    let place = &seeded.place;
    let around = Surroundings::make(&dir, place.dir())?;
    // Two events in turn: what the session does changes with each, so that each is written.
    let busy = written(
        &dir,
        "busy.json",
        &TOOL.replace("PreToolUse", "UserPromptSubmit"),
    )?;
    let idle = written(&dir, "idle.json", &TOOL.replace("PreToolUse", "Stop"))?;
    let hook = |event: &Path| {
        around
            .call(&bench.programs.tenure, ["hook", "claude"])
            .env("CLAUDE_PID", std::process::id().to_string())
            .stdin(event)
    };
    hook(&written(&dir, "start.json", START)?).run()?;
    fill_log(place)?;
    let ours = [hook(&busy), hook(&idle)];
    let (bare, _) = floor(bench, &around, &dir)?;
    let bares = [bare.clone(), bare];
    let (mut our_times, mut bare_times) = (Vec::new(), Vec::new());
    let rounds = (bench.times(200) / 10).max(2);
    for round in 1..=rounds {
        bench.say(&format!("hook: crowd, round {round} of {rounds}"));
        bare_times.extend(at_once(&bares)?);
        our_times.extend(at_once(&ours)?);
    }
    around.check_outages()?;
    let (ours, bare) = (Sample::of(our_times), Sample::of(bare_times));
    let what = "64 hooks at once that each change the activity, p99 : 64 bare heartbeats, p99";
    let mut row = Measurement::ratio("hook", what, &ours, &bare, CROWD_BUDGET);
    row.number = divide(ours.p99(), bare.p99());
    row.add("judged_by", "p99");
    Ok(row)
}

fn at_once(calls: &[ProgramCall; 2]) -> Result<Vec<Duration>, Failed> {
    let start = Barrier::new(CROWD);
    let start = &start;
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..CROWD)
            .map(|number| {
                scope.spawn(move || {
                    start.wait();
                    calls[number % 2].timed()
                })
            })
            .collect();
        runs.into_iter()
            .map(|run| run.join().map_err(|_| "a thread panicked")?)
            .collect()
    })
}
