//! The hook, as every agent pays for it at every tool call: a whole process for one event.
//!
//! This process is the agent: the agent's own pid variable names it. The event is a tool's use of a
//! session that is known and was heard of just now, which is what nearly all events are. The log is as long as in the
//! middle of a working day: each hook reads all of it.

use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::Duration;

use super::Bench;
use super::process::{counts_row, floor, memory};
use crate::Failed;
use crate::counts::{Counts, peak_kib};
use crate::place::Place;
use crate::program::{Call, Surroundings};
use crate::report::{Budget, Row, divide};
use crate::sample::Sample;
use crate::seeded::{SMALL, Seeded, fill_log, keep_log_filled};

/// What a hook may cost, in empty programs.
const BUDGET: Budget = Budget::AtMost(3.0);
/// What one of many at once may cost, in bare writers.
const CROWD_BUDGET: Budget = Budget::AtMost(4.0);
/// How many agents beat at once.
const CROWD: usize = 64;
/// What a hook process may have, in mebibytes.
const MOST_MEMORY: Budget = Budget::AtMost(10.0);

pub(crate) const START: &str = r#"{"session_id":"6f6d0d2e-1111-4222-8333-444455556666","transcript_path":"/nowhere/6f6d0d2e-1111-4222-8333-444455556666.jsonl","cwd":"/","hook_event_name":"SessionStart","source":"startup"}"#;
pub(crate) const TOOL: &str = r#"{"session_id":"6f6d0d2e-1111-4222-8333-444455556666","transcript_path":"/nowhere/6f6d0d2e-1111-4222-8333-444455556666.jsonl","cwd":"/","permission_mode":"default","effort":{"level":"medium"},"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"cargo test --workspace","description":"Runs the tests"},"tool_use_id":"toolu_01"}"#;

pub(super) fn rows(bench: &Bench) -> Result<Vec<Row>, Failed> {
    let dir = bench.dir("hook")?;
    let seeded = Seeded::fresh(&dir.join("state"), SMALL)?;
    let around = Surroundings::make(&dir, seeded.place.dir())?;
    let hook = |event: &Path| {
        around
            .call(&bench.programs.tenure, ["hook", "claude"])
            .env("CLAUDE_PID", std::process::id().to_string())
            .stdin(event)
    };
    let start = hook(&written(&dir, "start.json", START)?);
    let tool = hook(&written(&dir, "tool.json", TOOL)?);
    start.run()?;
    tool.run()?;
    let empty = around.call(&bench.programs.empty, [""; 0]);
    let mut rows = timed(bench, &seeded.place, &tool, &empty, &around)?;
    around.check_outages()?;
    bench.say("hook: counting instructions and system calls");
    let place = &seeded.place;
    let ours = Counts::of(&tool, &dir, || fill_log(place))?;
    let nothing = Counts::of(&empty, &dir, || Ok(()))?;
    let what = "tenure hook claude, a tool's use : empty program, counts";
    rows.push(counts_row("hook", what, ours, nothing, Budget::None));
    let of = ("hook", "memory of a hook's process");
    let kib = peak_kib(&tool)?;
    rows.push(memory(of, kib, peak_kib(&empty)?, MOST_MEMORY));
    rows.push(crowd(bench)?);
    Ok(rows)
}

pub(crate) fn written(dir: &Path, name: &str, text: &str) -> Result<PathBuf, Failed> {
    let path = dir.join(name);
    fs_err::write(&path, text)?;
    Ok(path)
}

fn timed(
    bench: &Bench,
    place: &Place,
    tool: &Call,
    empty: &Call,
    around: &Surroundings,
) -> Result<Vec<Row>, Failed> {
    let others = [
        (
            "python3 -c pass",
            around.call(Path::new("python3"), ["-c", "pass"]),
        ),
        ("node -e 0", around.call(Path::new("node"), ["-e", "0"])),
    ];
    let (mut ours, mut nothing) = (Vec::new(), Vec::new());
    let mut scale: Vec<Vec<Duration>> = vec![Vec::new(); others.len()];
    for round in 0..bench.times(600) {
        keep_log_filled(place)?;
        nothing.push(empty.timed()?);
        ours.push(tool.timed()?);
        for ((_, call), times) in others.iter().zip(&mut scale) {
            // They are there for scale only, and slow.
            if round % 10 == 0 {
                times.push(call.timed()?);
            }
        }
    }
    let nothing = Sample::of(nothing);
    let what = "tenure hook claude, a tool's use : empty program";
    let mut rows = vec![Row::ratio(
        "hook",
        what,
        &Sample::of(ours),
        &nothing,
        BUDGET,
    )];
    for ((name, _), times) in others.iter().zip(scale) {
        let what = format!("{name} : empty program, for scale");
        let theirs = Sample::of(times);
        rows.push(Row::ratio("hook", what, &theirs, &nothing, Budget::None));
    }
    Ok(rows)
}

/// Sixty-four hooks at once, each of an agent that is due to beat, beside as many bare writers.
fn crowd(bench: &Bench) -> Result<Row, Failed> {
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
    let mut row = Row::ratio("hook", what, &ours, &bare, CROWD_BUDGET);
    row.number = divide(ours.p99(), bare.p99());
    row.add("judged_by", "p99");
    Ok(row)
}

fn at_once(calls: &[Call; 2]) -> Result<Vec<Duration>, Failed> {
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
