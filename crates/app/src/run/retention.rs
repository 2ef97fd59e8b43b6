//! Removing the files of old runs: log, prompt, order and spooled end.
//!
//! A runner does it while its agent starts to work, at most once in an hour, for a fraction of a second; what is left
//! then is removed by the next one. Only directories of runs whose end is recorded in the store are removed, so a
//! run that is live, that has only a spooled end, or that another store knows, keeps its files.
//!
//! *Crash*: a directory is renamed first, so that nobody finds half of one; what has such a name is removed next time.
//! *Clock jump*: files of runs that ended seem older or younger than they are; the settings bound what is lost.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tenure_core::id::RunId;
use tenure_core::run::retention::{Retention, may_go};
use tenure_host::clock;

use super::environment;
use crate::open::Context;

const EVERY: Duration = Duration::from_secs(3600);
/// How long removing may take.
const MOST_TIME: Duration = Duration::from_millis(300);
/// How many directories are looked at.
const MOST: usize = 20_000;
/// Its time is when the last one was complete.
const MARKER: &str = ".swept";
/// What is being removed has this before its name.
const GONE: &str = ".gone-";

/// Removes what need not be kept any more.
pub(super) fn sweep(context: &mut Context) {
    let runs = context.dir().join("runs");
    let marker = runs.join(MARKER);
    let swept = fs_err::metadata(&marker).and_then(|found| found.modified());
    let is_new = |at: SystemTime| at.elapsed().is_ok_and(|age| age < EVERY);
    if swept.is_ok_and(is_new) {
        return;
    }
    let keep = context.settings.retention;
    let done = remove_old(context, &runs, &keep);
    if done.is_ok_and(|is_complete| is_complete) && fs_err::write(&marker, "").is_err() {
        // The next run looks again.
    }
}

/// Answers whether there was time for all.
fn remove_old(context: &mut Context, runs: &Path, keep: &Retention) -> io::Result<bool> {
    let until = clock::instant() + MOST_TIME;
    let mut found: Vec<(SystemTime, RunId, PathBuf)> = Vec::new();
    for entry in fs_err::read_dir(runs)?.take(MOST) {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.starts_with(GONE) {
            remove(&entry.path());
        } else if let Ok(run) = RunId::parse(name) {
            let changed = entry.metadata().and_then(|found| found.modified());
            found.extend(changed.ok().map(|at| (at, run, entry.path())));
        }
        if clock::instant() >= until {
            return Ok(false);
        }
    }
    found.sort_by_key(|(changed, _, _)| std::cmp::Reverse(*changed));
    for (newer, (changed, run, dir)) in found.into_iter().enumerate().rev() {
        let age = changed.elapsed().unwrap_or_default();
        if newer < keep.count && age <= keep.age {
            // The others are younger still.
            break;
        }
        if clock::instant() >= until {
            return Ok(false);
        }
        let record = context.service().run_record(run.as_str());
        let Ok(record) = record else { continue };
        if may_go(record.value.end.as_ref(), newer, clock::wall(), keep) {
            let gone = runs.join(format!("{GONE}{run}"));
            fs_err::rename(&dir, &gone)?;
            remove(&gone);
            if environment::remove_temporary(context.dir(), run.as_str()).is_err() {
                // It is for the owner alone and named by nothing.
            }
        }
    }
    Ok(true)
}

fn remove(dir: &Path) {
    if fs_err::remove_dir_all(dir).is_err() {
        // The next one tries again.
    }
}
