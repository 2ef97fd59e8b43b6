//! A verb as a whole process, beside an empty program and beside bare SQLite.
//!
//! No other process has the store open meanwhile, as in life: each run finds the log anew.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tenure_core::process::Process;

use super::Bench;
use crate::Failed;
use crate::bare::Who;
use crate::counts::{Counts, peak_kib};
use crate::floor;
use crate::place::{BenchStore, answered};
use crate::program::{ProgramCall, Surroundings};
use crate::report::{Budget, Measurement, Unit, divide};
use crate::sample::Sample;
use crate::seeded::{SMALL, Seeded, fill_log, fill_log_to, keep_log_filled};
use crate::worker::request;

const OURS: &str = "issue:bench/ours#1";
const THEIRS: &str = "issue:bench/bare#1";

/// A verb of ours and the same in bare SQLite, with what undoes each.
struct Verb {
    name: &'static str,
    ours: ProgramCall,
    bare: ProgramCall,
    undo: Option<(ProgramCall, ProgramCall)>,
    /// What it may cost, in empty programs and in bare ones.
    most: [Budget; 2],
}

const FREE: [Budget; 2] = [Budget::None; 2];
const GUARD: [Budget; 2] = [Budget::AtMost(3.0), Budget::None];
const CLAIM: [Budget; 2] = [Budget::None, Budget::AtMost(1.3)];

/// This process as a session in a place, for the baseline.
pub(super) fn register(place: &BenchStore) -> Result<Who, Failed> {
    let mut store = place.store()?;
    let session = place.register(&mut store)?;
    let own: Process = tenure_host::process::identify(std::process::id(), place.observer())?;
    Ok(Who {
        token: tenure_core::id::SessionToken::parse(session.token.as_deref().unwrap_or_default())?,
        process: own,
    })
}

/// Arguments of the baseline's program for a child of this process.
pub(super) fn bare_args(place: &BenchStore, who: &Who, verb: &[&str]) -> Vec<String> {
    let mut args = vec![
        place.database().to_string_lossy().into_owned(),
        "same".to_owned(),
        "2".to_owned(),
    ];
    args.extend(who.args());
    args.extend(verb.iter().map(|word| (*word).to_owned()));
    args
}

/// The least that a hook can be, and the file of its store.
pub(super) fn floor(
    bench: &Bench,
    around: &Surroundings,
    dir: &Path,
) -> Result<(ProgramCall, PathBuf), Failed> {
    let file = dir.join("floor.db");
    floor::make(&file)?;
    floor::fill_log(&file)?;
    let call = around.call(&bench.programs.floor, [file.to_string_lossy()]);
    Ok((call, file))
}

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let dir = bench.dir("process")?;
    let seeded = Seeded::fresh(&dir.join("state"), SMALL)?;
    let place = &seeded.place;
    let who = register(place)?;
    let around = Surroundings::make(&dir, place.dir())?;
    let held = "issue:bench/held#1";
    {
        let mut store = place.store()?;
        let wanted = request(tenure_core::key::Key::parse(held)?);
        answered(
            place
                .service(&mut store)
                .claim(&Default::default(), &wanted),
        )?;
    }
    let tenure = |args: &[&str]| around.call(&bench.programs.tenure, args.iter().copied());
    let bare = |args: &[&str]| {
        let args = bare_args(place, &who, args);
        around.call(&bench.programs.bare, args)
    };
    let empty = around.call(&bench.programs.empty, [""; 0]);
    let verbs = [
        Verb {
            name: "guard",
            ours: tenure(&["guard", held]),
            bare: bare(&["guard", held]),
            undo: None,
            most: GUARD,
        },
        Verb {
            name: "whoami",
            ours: tenure(&["whoami"]),
            bare: bare(&["whoami"]),
            undo: None,
            most: FREE,
        },
        Verb {
            name: "renew",
            ours: tenure(&["renew"]),
            bare: bare(&["renew"]),
            undo: None,
            most: FREE,
        },
        Verb {
            name: "claim",
            ours: tenure(&["claim", OURS]),
            bare: bare(&["claim", THEIRS]),
            undo: Some((tenure(&["release", OURS]), bare(&["release", THEIRS]))),
            most: CLAIM,
        },
    ];
    let (beat, floor_db) = floor(bench, &around, &dir)?;
    let mut rows = timed(bench, place, &verbs, &empty, &beat)?;
    rows.push(long_log(bench)?);
    bench.say("process: counting instructions and system calls");
    let floor = Counts::of(&beat, &dir, || floor::fill_log(&floor_db))?;
    let nothing = Counts::of(&empty, &dir, || Ok(()))?;
    let what = "bare SQLite heartbeat : empty program, counts";
    rows.push(counts_row("process", what, floor, nothing, Budget::None));
    let (counted, peak) = counted(&verbs, nothing, place, &dir)?;
    rows.extend(counted);
    rows.push(memory(
        ("process", "memory of a verb's process, the most of all"),
        peak,
        peak_kib(&empty)?,
        Budget::None,
    ));
    Ok(rows)
}

fn timed(
    bench: &Bench,
    place: &BenchStore,
    verbs: &[Verb],
    empty: &ProgramCall,
    beat: &ProgramCall,
) -> Result<Vec<Measurement>, Failed> {
    #[derive(Default)]
    struct Times {
        ours: Vec<Duration>,
        bare: Vec<Duration>,
        ours_undo: Vec<Duration>,
        bare_undo: Vec<Duration>,
    }
    let (mut nothing, mut beats) = (Vec::new(), Vec::new());
    let mut times: Vec<Times> = verbs.iter().map(|_| Times::default()).collect();
    for _ in 0..bench.times(300) {
        beats.push(beat.timed()?);
        for (verb, times) in verbs.iter().zip(&mut times) {
            keep_log_filled(place)?;
            nothing.push(empty.timed()?);
            times.bare.push(verb.bare.timed()?);
            times.ours.push(verb.ours.timed()?);
            if let Some((ours, bare)) = &verb.undo {
                times.bare_undo.push(bare.timed()?);
                times.ours_undo.push(ours.timed()?);
            }
        }
    }
    let nothing = Sample::of(nothing);
    let what = "bare SQLite heartbeat, the least that a hook can be : empty program";
    let floor = Measurement::ratio("process", what, &Sample::of(beats), &nothing, Budget::None);
    let mut rows = vec![floor];
    let mut add = |name: &str, most: [Budget; 2], ours: Vec<Duration>, bare: Vec<Duration>| {
        let (ours, bare) = (Sample::of(ours), Sample::of(bare));
        let what = format!("tenure {name} : empty program");
        rows.push(Measurement::ratio(
            "process", what, &ours, &nothing, most[0],
        ));
        let what = format!("tenure {name} : bare SQLite, same statements");
        rows.push(Measurement::ratio("process", what, &ours, &bare, most[1]));
    };
    for (verb, times) in verbs.iter().zip(times) {
        add(verb.name, verb.most, times.ours, times.bare);
        if verb.undo.is_some() {
            add("release", FREE, times.ours_undo, times.bare_undo);
        }
    }
    Ok(rows)
}

/// What it costs that each process finds the log anew: the longest that there is while nobody waits, beside none.
fn long_log(bench: &Bench) -> Result<Measurement, Failed> {
    let side = |name: &str, pages: u64| -> Result<ProgramCall, Failed> {
        let dir = bench.dir(name)?;
        let place = Seeded::fresh(&dir.join("state"), SMALL)?.place;
        register(&place)?;
        fill_log_to(&place, pages)?;
        let around = Surroundings::make(&dir, place.dir())?;
        Ok(around.call(&bench.programs.tenure, ["whoami"]))
    };
    let (long, short) = (side("long-log", 10)?, side("no-log", 0)?);
    let (mut ours, mut baseline) = (Vec::new(), Vec::new());
    for _ in 0..bench.times(300) {
        ours.push(long.timed()?);
        baseline.push(short.timed()?);
    }
    let (ours, baseline) = (Sample::of(ours), Sample::of(baseline));
    let what = "tenure whoami, a log of 10 pages : no log";
    Ok(Measurement::ratio(
        "process",
        what,
        &ours,
        &baseline,
        Budget::None,
    ))
}

fn counted(
    verbs: &[Verb],
    nothing: Counts,
    place: &BenchStore,
    scratch: &Path,
) -> Result<(Vec<Measurement>, u64), Failed> {
    let mut rows = Vec::new();
    let mut peak = 0;
    for verb in verbs {
        let undo = |which: fn(&(ProgramCall, ProgramCall)) -> &ProgramCall| {
            move || {
                if let Some(both) = &verb.undo {
                    // The first time there is nothing to undo.
                    drop(which(both).run());
                }
                // It renews, too: or else some runs would find a heartbeat due, and others not.
                fill_log(place)
            }
        };
        let bare = Counts::of(&verb.bare, scratch, undo(|both| &both.1))?;
        undo(|both| &both.1)()?;
        let ours = Counts::of(&verb.ours, scratch, undo(|both| &both.0))?;
        undo(|both| &both.0)()?;
        let kib = peak_kib(&verb.ours)?;
        undo(|both| &both.0)()?;
        peak = peak.max(kib);
        rows.push(compared(
            &format!("tenure {}: counts", verb.name),
            ours,
            bare,
            nothing,
        ));
    }
    Ok((rows, peak))
}

/// A row for the memory of a process, in KiB.
pub(super) fn memory(
    (group, what): (&'static str, &str),
    kib: u64,
    empty: u64,
    budget: Budget,
) -> Measurement {
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let mebibytes = kib as f64 / 1024.0;
    let mut row = Measurement {
        group,
        what: what.to_owned(),
        ours: format!("{kib} KiB"),
        baseline: format!("{empty} KiB (empty)"),
        number: mebibytes,
        unit: Unit::Mebibytes,
        budget,
        more: Default::default(),
    };
    row.add("peak_kib", kib);
    row
}

/// Instructions of ours over those of the baseline.
fn compared(what: &str, ours: Counts, bare: Counts, empty: Counts) -> Measurement {
    let mut row = counts_row("process", what, ours, bare, Budget::None);
    row.add("empty", empty.json());
    row
}

/// A row that compares counts, judged by the instructions.
pub(super) fn counts_row(
    group: &'static str,
    what: &str,
    ours: Counts,
    baseline: Counts,
    budget: Budget,
) -> Measurement {
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    let number = |counts: Counts| counts.instructions as f64;
    let mut row = Measurement {
        group,
        what: what.to_owned(),
        ours: ours.shown(),
        baseline: baseline.shown(),
        number: divide(number(ours), number(baseline)),
        unit: Unit::Times,
        budget,
        more: Default::default(),
    };
    row.add("ours", ours.json());
    row.add("baseline", baseline.json());
    row.add("judged_by", Value::from("instructions"));
    row
}
