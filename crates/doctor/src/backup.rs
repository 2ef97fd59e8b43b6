//! Backups of a store and what is restored from them; exports and imports of all its rows.
//!
//! A backup is an SQLite file, of whatever store it is. Restoring is one transaction: who uses the store meanwhile finds
//! the old one or the new one. An export is text, and fills a store that is empty.

use std::io::Write;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use tenure_core::ignore::Ignore;
use tenure_core::store::StoreError;
use tenure_core::text;
use tenure_core::time::Now;
use tenure_core::world::World;
use tenure_host::machine::Machine;
use tenure_host::{clock, digest};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::{ImportView, ImportedView};
use tenure_store::copy::{self, Copied, CopyEndpoint, Filled};
use tenure_store::export::{self, ExportFile};
use tenure_store::sqlite::{SqliteEnd, backup};

use tenure_app::location::{
    StorePlace, is_absent, machine_of, make_dir_of, peeked_state_dir_of, settings_and_store,
};
use tenure_app::server_store;

/// A file that has all rows of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackupView {
    pub file: String,
    /// The store that it is of.
    pub store: String,
    pub rows: u64,
    pub bytes: u64,
}

/// What became of a store that was restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RestoredView {
    pub store: String,
    /// The backup.
    pub file: String,
    pub rows: u64,
    /// Where the store as it was before is; null if there was none.
    pub kept: Option<String>,
    /// Whether the store before was damaged; its files are then kept as they were.
    pub was_damaged: bool,
}

fn problem(class: Class, kind: &str, message: String, hint: &str) -> Problem {
    Problem::new(class, kind, message, Hint::step(hint))
}

fn now_of(machine: &Machine) -> Box<dyn Fn() -> Now> {
    let boot = machine.observer().boot.clone();
    Box::new(move || clock::now(&boot))
}

/// Has `write` write all rows of a store to a file that appears under its name when it is whole, and replaces none.
fn new_file(
    file: &Path,
    place: &StorePlace,
    machine: &Machine,
    write: impl FnOnce(&Path) -> Result<u64, Problem>,
) -> Result<BackupView, Problem> {
    let unwritable = |error: std::io::Error| {
        let message = format!("cannot write {}: {error}", file.display());
        problem(
            Class::Store,
            "unwritable",
            message,
            "name a file that you can write",
        )
    };
    let is_taken = fs_err::symlink_metadata(file).is_ok();
    let Some(name) = file.file_name().filter(|_| !is_taken) else {
        let message = format!("{} exists already; nothing was written", file.display());
        return Err(problem(
            Class::Refused,
            "exists",
            message,
            "name another file",
        ));
    };
    let dir = std::path::absolute(file).map_err(unwritable)?;
    if !dir.parent().is_some_and(Path::is_dir) {
        let message = format!("there is no directory for {}", file.display());
        return Err(problem(
            Class::NotFound,
            "not_found",
            message,
            "make the directory first",
        ));
    }
    let random = server_store::random_name(machine);
    let unfinished = file.with_file_name(format!(".{}.{random}.tmp", name.to_string_lossy()));
    let written = write(&unfinished).and_then(|rows| {
        let bytes = fs_err::metadata(&unfinished).map_err(unwritable)?.len();
        tenure_host::file::rename_new(&unfinished, file).map_err(unwritable)?;
        Ok(BackupView {
            file: absolute(file),
            store: place.shown(),
            rows,
            bytes,
        })
    });
    if written.is_err() {
        for suffix in ["", "-journal", "-wal", "-shm"] {
            let name = format!("{}{suffix}", unfinished.display());
            fs_err::remove_file(name).ignore("it may not be there");
        }
    }
    written
}

/// The store of the settings, and this machine; an error if nothing is stored yet.
fn existing() -> Result<(StorePlace, Machine), Problem> {
    let (_, place) = settings_and_store()?;
    if is_absent(&place) {
        let message = format!(
            "nothing is stored yet: there is no store at {}; no file was written",
            place.shown()
        );
        let hint = Hint::step(
            "set TENURE_HOME if your store is in another directory; otherwise there is no store to save yet",
        );
        return Err(Problem::new(Class::NotFound, "no_store", message, hint));
    }
    let machine = machine_of(&peeked_state_dir_of(&place)?)?;
    Ok((place, machine))
}

/// Writes a backup of the store to a new file.
pub fn back_up(file: &Path) -> Result<BackupView, Problem> {
    let (place, machine) = existing()?;
    back_up_of(&place, &machine, file)
}

/// The same of this store.
pub fn back_up_of(
    place: &StorePlace,
    machine: &Machine,
    file: &Path,
) -> Result<BackupView, Problem> {
    new_file(file, place, machine, |unfinished| {
        Ok(match place {
            StorePlace::File(store) => backup::back_up(store, now_of(machine), unfinished)?,
            StorePlace::Server { .. } => {
                let mut from = server_store::end(place, machine, false)?;
                backup::back_up_rows(from.as_mut(), now_of(machine), unfinished)?
            }
        })
    })
}

fn absolute(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.display().to_string()
}

/// How many copies of a store from before a restore are kept, and how many from before a repair.
pub const KEPT_COPIES: usize = 3;

/// The beginning of the names of a store's copies, and their numbers, the newest last.
fn kept_copies(place: &StorePlace, before: &str) -> (PathBuf, Vec<u64>) {
    let file = match place {
        StorePlace::File(file) => file.clone(),
        // All stores on servers have their copies in one directory.
        StorePlace::Server { dir, .. } => {
            let name = digest::sha256(place.shown().as_bytes());
            dir.join(format!("server-{}.db", &name[..12.min(name.len())]))
        }
    };
    let mut start = file.into_os_string();
    start.push(format!(".before-{before}-"));
    let start = PathBuf::from(start);
    let name = start.file_name().unwrap_or_default().to_string_lossy();
    let dir = start.parent().map(fs_err::read_dir);
    let found = dir.into_iter().flatten().flatten().flatten();
    let number = |one: fs_err::DirEntry| {
        let found = one.file_name();
        found.to_string_lossy().strip_prefix(&*name)?.parse().ok()
    };
    let mut numbers: Vec<u64> = found.filter_map(number).collect();
    numbers.sort_unstable();
    (start, numbers)
}

fn numbered(start: &Path, number: u64) -> PathBuf {
    let mut name = start.as_os_str().to_owned();
    name.push(number.to_string());
    PathBuf::from(name)
}

/// A new file for a store as it is before something is done to it. If another process takes the name first, making the
/// file fails.
pub fn kept_beside(place: &StorePlace, before: &str) -> PathBuf {
    let (start, numbers) = kept_copies(place, before);
    let newest = numbers.last().copied().unwrap_or_default();
    numbered(&start, newest.saturating_add(1))
}

/// Removes a store's copies from before something was done to it, all but the newest and one that is in use.
pub fn remove_old_copies(place: &StorePlace, before: &str, used: &Path) {
    let (start, numbers) = kept_copies(place, before);
    for number in numbers.into_iter().rev().skip(KEPT_COPIES) {
        let copy = numbered(&start, number);
        if !is_same(&copy, used) {
            backup::remove(&copy);
        }
    }
}

/// Puts a backup in the place of the store, which is kept.
pub fn restore(file: &Path) -> Result<RestoredView, Problem> {
    let (settings, place) = settings_and_store()?;
    let machine = machine_of(&make_dir_of(&place)?.0)?;
    if let StorePlace::File(store) = &place
        && is_same(store, file)
    {
        let message = format!(
            "{} is the store itself; nothing was changed",
            file.display()
        );
        return Err(problem(
            Class::Usage,
            "usage",
            message,
            "name a backup of it",
        ));
    }
    let mut backup = backup::open(file, now_of(&machine)).map_err(unfit)?;
    let name = server_store::random_name(&machine);
    let kept = kept_beside(&place, "restore");
    let lease = settings.policy.lease;
    let mut fill = |to: &mut dyn CopyEndpoint,
                    set_aside: &mut dyn FnMut(&mut dyn CopyEndpoint) -> _| {
        copy::fill(&mut backup, to, Filled::ByRestore, &name, lease, set_aside)
    };
    let (done, kept, was_damaged) = match &place {
        StorePlace::File(store) if is_absent(&place) => {
            let mut to = SqliteEnd::open(store, now_of(&machine))?;
            (fill(&mut to, &mut |_| Ok(()))?, None, false)
        }
        StorePlace::File(store) if backup::is_whole(store, now_of(&machine))? => {
            let mut to = SqliteEnd::open(store, now_of(&machine))?;
            let mut keep = |_: &mut dyn CopyEndpoint| {
                // Nobody writes: the store is locked.
                backup::back_up(store, now_of(&machine), &kept).map(|_| ())
            };
            (fill(&mut to, &mut keep)?, Some(kept), false)
        }
        StorePlace::File(store) => {
            let mut whole = |to: &mut dyn CopyEndpoint| fill(to, &mut |_| Ok(()));
            let done: Copied = backup::replace(store, &kept, now_of(&machine), &mut whole)?;
            (done, Some(kept), true)
        }
        StorePlace::Server { .. } => {
            let mut to = server_store::end(&place, &machine, false)?;
            let mut keep = |to: &mut dyn CopyEndpoint| {
                backup::back_up_rows(to, now_of(&machine), &kept).map(|_| ())
            };
            (fill(to.as_mut(), &mut keep)?, Some(kept), false)
        }
    };
    remove_old_copies(&place, "restore", file);
    Ok(RestoredView {
        store: place.shown(),
        file: absolute(file),
        rows: done.rows,
        kept: kept.map(|kept| kept.display().to_string()),
        was_damaged,
    })
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs_err::canonicalize(path).ok();
    real(one).is_some_and(|one| Some(one) == real(other))
}

/// A file that nothing is taken from.
fn unfit(error: StoreError) -> Problem {
    let message = match error {
        StoreError::Damaged { store, why } | StoreError::Unavailable { store, why } => {
            format!("{store} cannot be used: {why}; nothing was changed")
        }
        other => return Problem::from(other),
    };
    problem(
        Class::Invalid,
        "invalid",
        message,
        "name a file that is whole",
    )
}

/// What is wrong with the content of a store in a file; nothing of one on a server is checked.
pub fn faults(place: &StorePlace) -> Result<Vec<String>, Problem> {
    let StorePlace::File(file) = place else {
        return Ok(Vec::new());
    };
    let machine = machine_of(&peeked_state_dir_of(place)?)?;
    Ok(backup::faults(file, now_of(&machine))?)
}

/// How many bytes of a store in a file are in its log only.
pub fn log_bytes(place: &StorePlace) -> u64 {
    match place {
        StorePlace::File(file) => backup::log_bytes(file),
        StorePlace::Server { .. } => 0,
    }
}

/// Writes all rows of the store to a new file, as text.
pub fn export(file: &Path) -> Result<BackupView, Problem> {
    let (place, machine) = existing()?;
    let name = server_store::random_name(&machine);
    let mut from = server_store::end(&place, &machine, false)?;
    new_file(file, &place, &machine, |unfinished| {
        let failed = |error: std::io::Error| StoreError::Unavailable {
            store: file.display().to_string(),
            why: error.to_string(),
        };
        let new = tenure_host::file::create_private(unfinished).map_err(failed)?;
        let mut out = std::io::BufWriter::new(new);
        let rows = export::write(from.as_mut(), &name, &mut out, &file.display().to_string())?;
        out.flush()
            .and_then(|()| out.get_ref().sync_all())
            .map_err(failed)?;
        Ok(rows)
    })
}

/// Fills the store, which is empty, with the rows of an export; without `apply` it says what they are.
pub fn import(file: &Path, apply: bool) -> Result<ImportView, Problem> {
    let mut export = ExportFile::open(file).map_err(unfit)?;
    let tables = export.tables_with_rows().iter();
    let mut entries: Vec<ImportedView> = tables
        .filter(|one| one.rows > 0)
        .map(|one| ImportedView {
            name: one.table.name.clone(),
            source: file.display().to_string(),
            verdict: "taken",
            became: Some(match one.rows {
                1 => "1 row".to_owned(),
                rows => format!("{rows} rows"),
            }),
            why: None,
        })
        .collect();
    let was_resumed = fill_empty(&mut export, file, apply)?;
    if was_resumed {
        for entry in &mut entries {
            entry.verdict = "left";
            entry.became = None;
            entry.why = Some("it was imported before".to_owned());
        }
    }
    let read = entries.len();
    Ok(ImportView {
        format: "tenure",
        source: absolute(file),
        applied: apply,
        read,
        taken: if was_resumed { 0 } else { read },
        refused: 0,
        left: if was_resumed { read } else { 0 },
        entries,
    })
}

/// Fills the store of the settings, which must be empty, or only looks whether it is. Returns whether an earlier command
/// filled it with the same export.
fn fill_empty(export: &mut ExportFile, file: &Path, apply: bool) -> Result<bool, Problem> {
    let (settings, place) = settings_and_store()?;
    if !apply {
        let StorePlace::File(_) = &place else {
            return Ok(false);
        };
        if is_absent(&place) {
            return Ok(false);
        }
        let machine = machine_of(&peeked_state_dir_of(&place)?)?;
        let mut to = server_store::end(&place, &machine, false)?;
        let standing = to.snapshot()?;
        let was_filled = standing.copy.as_ref() == Some(&export.name);
        let is_free = was_filled || copy::table_with_rows(to.as_mut())?.is_none();
        return is_free
            .then_some(was_filled)
            .ok_or_else(|| not_empty(&place, file));
    }
    let machine = machine_of(&make_dir_of(&place)?.0)?;
    let name = export.name.clone();
    let mut to = server_store::end(&place, &machine, true)?;
    let mut is_taken = false;
    let mut ready = |to: &mut dyn CopyEndpoint| {
        // If it is, filling it fails.
        is_taken = copy::table_with_rows(to)?.is_some();
        Ok(())
    };
    let lease = settings.policy.lease;
    let done = copy::fill(
        export,
        to.as_mut(),
        Filled::ByImport,
        &name,
        lease,
        &mut ready,
    );
    match done {
        Err(_) if is_taken => Err(not_empty(&place, file)),
        other => Ok(other?.was_resumed),
    }
}

fn not_empty(place: &StorePlace, file: &Path) -> Problem {
    let message = format!(
        "{} holds something already, and an export fills an empty store; nothing was changed",
        place.shown()
    );
    let import = format!(
        "run `TENURE_HOME=DIR tenure import tenure {} --apply` with another directory, to import it there",
        text::shell(&file.to_string_lossy())
    );
    let restore = Hint::run(
        "store",
        ["restore", "BACKUP"],
        "with a file of `tenure store backup`, to replace what the store holds",
    );
    let mut problem = Problem::new(Class::Refused, "not_empty", message, restore);
    problem.hints.push(Hint::step(&import));
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A person is also told of `store restore`, which agents are not shown.
    #[test]
    fn who_imports_into_a_store_in_use_is_told_both_ways() {
        let place = StorePlace::File("/srv/tenure.db".into());
        let problem = not_empty(&place, Path::new("all.jsonl"));
        let hints = serde_json::to_string(&problem.hints).unwrap();
        assert!(
            hints.contains(r#""verb":"store","args":["restore""#),
            "{hints}"
        );
        assert!(hints.contains("TENURE_HOME=DIR tenure import"), "{hints}");
    }
}
