//! What a kernel lock costs by itself: the baseline for `tenure lock`, which comes with its own issue.

use std::time::Instant;

use fs_err::File;

use super::Bench;
use crate::Failed;
use crate::report::{Budget, Row};
use crate::sample::Sample;

pub(super) fn rows(bench: &Bench) -> Result<Vec<Row>, Failed> {
    let path = bench.dir("flock")?.join("lock");
    let file = File::create(&path)?;
    let (mut lock, mut open) = (Vec::new(), Vec::new());
    for _ in 0..bench.times(20_000) {
        let began = Instant::now();
        file.file().lock()?;
        file.file().unlock()?;
        lock.push(began.elapsed());
        let began = Instant::now();
        let other = File::open(&path)?;
        other.file().lock()?;
        drop(other);
        open.push(began.elapsed());
    }
    let (lock, open) = (Sample::of(lock), Sample::of(open));
    let what = "bare flock: open, lock, close : lock, unlock (no lock of ours yet)";
    Ok(vec![Row::ratio("flock", what, &open, &lock, Budget::None)])
}
