//! A lock of ours in process, beside bare `flock` calls.
//!
//! A lock is named, so its file is opened each time; the fair baseline opens one as well. What `flock`
//! costs on a descriptor that is open already is shown beside it.

use std::time::{Duration, Instant};

use fs_err::File;
use tenure_host::kernel_lock::{LockDir, LockName, Patience, Sharing};

use super::Bench;
use crate::Failed;
use crate::report::{Budget, Row};
use crate::sample::Sample;

const BUDGET: Budget = Budget::AtMost(3.0);

pub(super) fn rows(bench: &Bench) -> Result<Vec<Row>, Failed> {
    let dir = bench.dir("lock")?;
    let path = dir.join("bare");
    let file = File::create(&path)?;
    let locks = LockDir::open(&dir.join("locks"))?;
    let name = LockName::plain("bench")?;
    let (mut ours, mut opened, mut only) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.times(20_000) {
        ours.push(timed(|| {
            let held = locks.lock(&name, Sharing::Exclusive, Patience::None)?;
            held.unlock();
            Ok(())
        })?);
        opened.push(timed(|| {
            let file = File::open(&path)?;
            file.file().lock()?;
            drop(file);
            Ok(())
        })?);
        only.push(timed(|| {
            file.file().lock()?;
            file.file().unlock()?;
            Ok(())
        })?);
    }
    let (ours, opened, only) = (Sample::of(ours), Sample::of(opened), Sample::of(only));
    let what = "lock+unlock, in process : open, flock, close";
    let fair = Row::ratio("lock", what, &ours, &opened, BUDGET);
    let what = "lock+unlock, in process : flock, unlock on an open descriptor";
    let bare = Row::ratio("lock", what, &ours, &only, Budget::None);
    Ok(vec![fair, bare])
}

fn timed(run: impl FnOnce() -> Result<(), Failed>) -> Result<Duration, Failed> {
    let began = Instant::now();
    run()?;
    Ok(began.elapsed())
}
