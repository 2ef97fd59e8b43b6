//! Sixty-four agents that beat at once, beside as many bare SQLite writers.
//!
//! The beat is `tenure renew` until there is a hook; both sides write one row that survives a power cut.

use std::sync::Barrier;
use std::time::Duration;

use super::Bench;
use super::process::{bare_args, register};
use crate::Failed;
use crate::program::{ProgramCall, Surroundings};
use crate::report::{Budget, Measurement, divide};
use crate::sample::Sample;
use crate::seeded::{SMALL, Seeded};

const CROWD: usize = 64;

const BUDGET: Budget = Budget::AtMost(4.0);

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let dir = bench.dir("crowd")?;
    let seeded = Seeded::fresh(&dir.join("state"), SMALL)?;
    let place = &seeded.place;
    let who = register(place)?;
    let around = Surroundings::make(&dir, place.dir())?;
    let ours = around.call(&bench.programs.tenure, ["renew"]);
    let bare = around.call(&bench.programs.bare, bare_args(place, &who, &["renew"]));
    let (mut our_times, mut bare_times) = (Vec::new(), Vec::new());
    let rounds = bench.times(200) / 10;
    for round in 1..=rounds.max(2) {
        bench.say(&format!("crowd: round {round} of {}", rounds.max(2)));
        bare_times.extend(at_once(&bare)?);
        our_times.extend(at_once(&ours)?);
    }
    let (ours, bare) = (Sample::of(our_times), Sample::of(bare_times));
    let what = "64 x tenure renew at once, p99 : 64 bare SQLite writers, p99";
    let mut row = Measurement::ratio("crowd", what, &ours, &bare, BUDGET);
    row.number = divide(ours.p99(), bare.p99());
    row.add("judged_by", "p99");
    Ok(vec![row])
}

/// Runs a program so many times at once, and says how long each run took.
fn at_once(call: &ProgramCall) -> Result<Vec<Duration>, Failed> {
    let start = Barrier::new(CROWD);
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..CROWD)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    call.timed()
                })
            })
            .collect();
        runs.into_iter()
            .map(|run| run.join().map_err(|_| "a thread panicked")?)
            .collect()
    })
}
