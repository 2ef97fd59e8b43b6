//! A lock of ours in process, beside bare `flock` calls: alone, contended, and among many other names.
//!
//! A lock is named, so its file is opened each time; the fair baseline opens one as well. What `flock`
//! costs on a descriptor that is open already is shown beside it.

use std::time::{Duration, Instant};

use fs_err::File;
use tenure_host::kernel_lock::{LockDir, LockName};

use super::{Bench, Dice};
use crate::Failed;
use crate::crew::{Round, Summary};
use crate::flock::{bare, ours};
use crate::program::Surroundings;
use crate::report::{Budget, Measurement, Unit, divide};
use crate::sample::{Sample, micros};

/// How many names lie beside the one that is used.
const FEW: u32 = 1_000;
const MANY: u32 = 1_000_000;

const ALONE: Budget = Budget::AtMost(1.5);
const AMONG_MANY: Budget = Budget::AtMost(1.3);

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let mut rows = alone(bench)?;
    for processes in [8, 32] {
        rows.extend(contended(bench, processes)?);
    }
    rows.extend(among_many(bench)?);
    Ok(rows)
}

fn alone(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let dir = bench.dir("lock")?;
    let path = dir.join("bare");
    let file = File::create(&path)?;
    let locks = LockDir::open(&dir.join("locks"))?;
    let name = LockName::plain("bench")?;
    let (mut our_times, mut opened, mut only) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.times(20_000) {
        our_times.push(timed(|| ours(&locks, &name))?);
        opened.push(timed(|| bare(&path))?);
        only.push(timed(|| {
            file.file().lock()?;
            file.file().unlock()?;
            Ok(())
        })?);
    }
    let our_times = Sample::of(our_times);
    let what = "lock+unlock, in process : open, flock, unlock, close";
    let fair = Measurement::ratio("lock", what, &our_times, &Sample::of(opened), ALONE);
    let what = "lock+unlock, in process : flock, unlock on an open descriptor";
    let held_open = Measurement::ratio("lock", what, &our_times, &Sample::of(only), Budget::None);
    Ok(vec![fair, held_open])
}

/// So many processes on one lock: how much they do together, and how long one of them waits.
fn contended(bench: &Bench, processes: usize) -> Result<Vec<Measurement>, Failed> {
    let dir = bench.dir(&format!("lock-{processes}"))?;
    let around = Surroundings::make(&dir, &dir.join("state"))?;
    let locks = LockDir::open(&dir.join("locks"))?;
    let until = if bench.quick { "0.5s" } else { "2s" };
    let home = locks.path().to_string_lossy().into_owned();
    let round = |side: &str| {
        let args = ["locker".to_owned(), side.into(), home.clone(), until.into()];
        let call = around.call(&bench.programs.own, args);
        Round::of(std::iter::repeat_n(call, processes))
    };
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    let rounds = (bench.times(100) / 10).max(2);
    for number in 1..=rounds {
        bench.say(&format!(
            "lock: {processes} processes, round {number} of {rounds}"
        ));
        bare.push(round("bare")?);
        ours.push(round("ours")?);
    }
    let (ours, bare) = (Summary::of(ours), Summary::of(bare));
    let what = format!("lock+unlock, {processes} processes, one lock : open, flock, unlock, close");
    let done = ours.beside(&bare, "lock", what, Budget::None);
    let longest = Measurement {
        group: "lock",
        what: format!("lock+unlock, {processes} processes, one lock, the longest wait : the same"),
        ours: micros(ours.longest_us),
        baseline: micros(bare.longest_us),
        number: divide(ours.longest_us, bare.longest_us),
        unit: Unit::Times,
        budget: Budget::None,
        more: Default::default(),
    };
    Ok(vec![done, longest])
}

/// One use of a lock in a directory of a million, beside one in a directory of a thousand.
fn among_many(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let few = filled(bench, FEW)?;
    let many = filled(bench, MANY)?;
    let own = LockName::plain("bench")?;
    let mut dice = Dice::new();
    let mut any = |count: u32| LockName::plain(&known(dice.below(count)));
    let [mut same_few, mut same_many, mut any_few, mut any_many] = [const { Vec::new() }; 4];
    for _ in 0..bench.times(20_000) {
        same_few.push(timed(|| ours(&few, &own))?);
        same_many.push(timed(|| ours(&many, &own))?);
        let (one, other) = (any(FEW)?, any(MANY)?);
        any_few.push(timed(|| ours(&few, &one))?);
        any_many.push(timed(|| ours(&many, &other))?);
    }
    let what = "lock+unlock of one name, 1,000,000 others : 1,000 others";
    let same = Measurement::ratio(
        "lock",
        what,
        &Sample::of(same_many),
        &Sample::of(same_few),
        AMONG_MANY,
    );
    let what = "lock+unlock of any of 1,000,000 names : of any of 1,000";
    let any = Measurement::ratio(
        "lock",
        what,
        &Sample::of(any_many),
        &Sample::of(any_few),
        Budget::None,
    );
    Ok(vec![same, any])
}

/// A lock directory with so many names in it, kept for the next run.
fn filled(bench: &Bench, count: u32) -> Result<LockDir, Failed> {
    let done = bench.kept.join(format!("locks-{count}"));
    if done.is_dir() {
        return Ok(LockDir::open(&done)?);
    }
    bench.say(&format!("lock: making {count} names"));
    let part = bench.kept.join(format!("locks-{count}.part"));
    if part.exists() {
        fs_err::remove_dir_all(&part)?;
    }
    let locks = LockDir::open(&part)?;
    for number in 0..count {
        File::create(locks.file_of(&LockName::plain(&known(number))?))?;
    }
    fs_err::rename(&part, &done)?;
    Ok(LockDir::open(&done)?)
}

fn known(number: u32) -> String {
    format!("known/{number}")
}

fn timed(run: impl FnOnce() -> Result<(), Failed>) -> Result<Duration, Failed> {
    let began = Instant::now();
    run()?;
    Ok(began.elapsed())
}
