//! Removing the files of old runs: log, prompt, order and spooled end.
//!
//! A runner does it while its agent starts to work, at most once an hour, for a fraction of a
//! second; the next one removes the rest. Only directories of runs whose end is recorded in the
//! store are removed. So a run that is live, has only a spooled end, or is in another store keeps
//! its files. A run that was never recorded had no agent: what its runner left is removed after a
//! day, unless the kernel reports that a process still uses it.
//!
//! *Crash*: a directory is renamed first, so that no reader finds half of one; directories with
//! such a name are removed next time. *Clock jump*: files of ended runs seem older or younger than
//! they are; the settings bound what is lost.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tenure_core::id::RunId;
use tenure_core::ignore::Ignore;
use tenure_core::run::retention::{Retention, may_go};
use tenure_host::clock;
use tenure_service::RunError;
use tenure_service::error::Error;

use super::environment;
use super::files::RunFiles;
use tenure_app::open::Context;

const EVERY: Duration = Duration::from_secs(3600);
/// How long removing may take.
const MAX_TIME: Duration = Duration::from_millis(300);
/// How many directories are checked.
const MAX_COUNT: usize = 20_000;
/// Its modification time is that of the last complete removal.
const MARKER: &str = ".swept";
/// When the remains of a run that was never recorded are removed.
const NEVER_RECORDED: Duration = Duration::from_secs(24 * 3600);
/// The prefix of a directory that is being removed.
const GONE: &str = ".gone-";

/// Removes files that need not be kept any more.
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
    if done.is_ok_and(|is_complete| is_complete) {
        fs_err::write(&marker, "").ignore("the next run tries again");
    }
}

/// Returns whether there was time for all of them.
fn remove_old(context: &mut Context, runs: &Path, keep: &Retention) -> io::Result<bool> {
    let until = clock::instant() + MAX_TIME;
    let mut found: Vec<(SystemTime, RunId, PathBuf)> = Vec::new();
    for entry in fs_err::read_dir(runs)?.take(MAX_COUNT) {
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
    found.retain(|(changed, run, dir)| {
        let is_old = changed.elapsed().is_ok_and(|age| age > NEVER_RECORDED);
        let is_left = is_old && clock::instant() < until && is_leftover(context, run, dir);
        !(is_left && take_away(context, runs, run, dir).is_ok())
    });
    found.sort_by_key(|(changed, _, _)| std::cmp::Reverse(*changed));
    for (newer, (changed, run, dir)) in found.into_iter().enumerate().rev() {
        let age = changed.elapsed().unwrap_or_default();
        if newer < keep.count && age <= keep.age {
            // The others are even younger.
            break;
        }
        if clock::instant() >= until {
            return Ok(false);
        }
        let record = context.service().run_record(run.as_str());
        let Ok(record) = record else { continue };
        if may_go(record.value.end.as_ref(), newer, clock::wall(), keep) {
            take_away(context, runs, &run, &dir)?;
        }
    }
    Ok(true)
}

/// Whether a directory belongs to a run that was never recorded and is not in use.
fn is_leftover(context: &mut Context, run: &RunId, dir: &Path) -> bool {
    let files = RunFiles::at(dir);
    if files.has_output() || files.is_in_use() {
        return false;
    }
    match context.service().run_record(run.as_str()) {
        Ok(_) => false,
        Err(failure) => match &failure.error {
            Error::Run(error) => matches!(**error, RunError::NoSuchRun { .. }),
            _ => false,
        },
    }
}

/// Removes the directory of a run, and its temporary files.
fn take_away(context: &Context, runs: &Path, run: &RunId, dir: &Path) -> io::Result<()> {
    let gone = runs.join(format!("{GONE}{run}"));
    fs_err::rename(dir, &gone)?;
    remove(&gone);
    environment::remove_temporary(context.dir(), run.as_str())
        .ignore("the directory is private, and nothing refers to it");
    Ok(())
}

fn remove(dir: &Path) {
    fs_err::remove_dir_all(dir).ignore("the next removal tries again");
}
