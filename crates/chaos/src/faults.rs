//! A disk that fails, and what it has after a power cut.
//!
//! Workers run with `preload/faults.c`, which lets some of SQLite's writes and syncs fail and notes everything that they do
//! to the files of the store. From these notes [`Disk`] makes the files as a power cut at any moment may leave them. What was
//! written before a sync that ended well is there. Everything else may be there or not, in any order, whole or with some of
//! its sectors. Names are there at once: what a directory loses is not covered, nor is shared memory, which is gone.
//!
//! *Not covered*: Linux forgets what a failed sync was to save, and says yes to the next sync. SQLite does not write it again
//! before the log is copied; a power cut until then can cost what was committed since.
//!
//! [`cut`] makes a whole run until such a moment: its logs end there, every process is dead, and the store has those files. The
//! judge that reads a run reads it unchanged: what was acknowledged by then must be there, and what was refused must not.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::dice::Dice;
use super::history::DEEDS;
use super::record::{Deed, FAULTS_VARIABLE, JOURNAL, Log, read};
use super::worker::{DATABASE, STATE};

/// The compiled library; one that is there is used.
pub const LIBRARY: &str = "faults.so";
const SOURCE: &str = include_str!("../preload/faults.c");
/// A file that says that the store is another file than the one that was used.
pub const MOVED: &str = "moved";
/// What a disk writes as a whole.
const SECTOR: usize = 512;

/// How many failures the notes of a disk tell.
pub fn failed(journal: &Path) -> io::Result<usize> {
    let notes = notes(&std::fs::read(journal)?)?;
    Ok(notes
        .iter()
        .filter(|note| note.deed == DiskDeed::Failed)
        .count())
}

/// What was done to the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Failures {
    /// Writes and syncs that were made to fail.
    pub failed: u64,
    pub writes: u64,
    pub syncs: u64,
    /// Moments at which the power was cut, and the store was judged.
    pub cuts: u64,
    /// Changes that were on their way to the disk at these moments.
    pub unsaved: u64,
}

/// Which calls fail.
#[derive(Debug, Clone, Copy)]
pub enum Failing {
    /// One of so many; none if it is 0.
    OneIn(u64),
    /// The one of this number, in each process.
    At(u64),
}

/// Compiles the library, and returns what a worker's environment needs.
pub fn environment(
    dir: &Path,
    failing: Failing,
    seed: u64,
) -> io::Result<Vec<(&'static str, String)>> {
    let library = dir.join(LIBRARY);
    if !library.exists() {
        compile(dir, &library)?;
    }
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    Ok(vec![
        ("LD_PRELOAD", text(library)),
        (FAULTS_VARIABLE, text(dir.join(STATE).join(DATABASE))),
        ("TENURE_FAULTS_LOG", text(dir.join(JOURNAL))),
        match failing {
            Failing::OneIn(count) => ("TENURE_FAULTS_ONE_IN", count.to_string()),
            Failing::At(number) => ("TENURE_FAULTS_AT", number.to_string()),
        },
        ("TENURE_FAULTS_SEED", seed.to_string()),
    ])
}

fn compile(dir: &Path, library: &Path) -> io::Result<()> {
    let source = dir.join("faults.c");
    std::fs::write(&source, SOURCE)?;
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let built = Command::new(compiler)
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .args([library, &source])
        .arg("-ldl")
        .output()?;
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr).into_owned();
        return Err(io::Error::other(format!("cannot compile faults.c: {said}")));
    }
    Ok(())
}

/// A note of `preload/faults.c`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Note {
    pid: u32,
    at: u64,
    file: u64,
    deed: DiskDeed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum DiskDeed {
    Opened(PathBuf),
    Written { offset: usize, bytes: Vec<u8> },
    Cut(usize),
    SyncBegins,
    Synced,
    Removed(PathBuf),
    Renamed(PathBuf),
    Failed,
}

/// The bytes of a note before its text: four numbers of 32 bits, three of 64.
const HEAD: usize = 4 * 4 + 3 * 8;
/// The last of the four numbers, and what follows the text.
const MARKS: (u32, u32) = (0xf417_b361, 0xf417_e9d5);

/// The notes of a journal, without those whose writers were killed while they wrote them.
fn notes(journal: &[u8]) -> io::Result<Vec<Note>> {
    let mut rest = journal;
    let mut notes = Vec::new();
    while !rest.is_empty() {
        match whole(rest) {
            Some(length) => {
                notes.push(note(&rest[..HEAD + length], length)?);
                rest = &rest[HEAD + length + size_of::<u32>()..];
            }
            None => rest = &rest[1..],
        }
    }
    Ok(notes)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + size_of::<u32>())?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// How long the text of the whole note at the beginning is, if there is one.
fn whole(rest: &[u8]) -> Option<usize> {
    let begins = number(rest, 12)? == MARKS.0;
    let length = usize::try_from(number(rest, 8)?).ok()?;
    (begins && number(rest, HEAD.checked_add(length)?)? == MARKS.1).then_some(length)
}

fn note(all: &[u8], length: usize) -> io::Result<Note> {
    let (head, text) = all.split_at(HEAD);
    let bytes = text[..length].to_vec();
    let small = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let big = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    let size = |number: u64| usize::try_from(number).map_err(io::Error::other);
    let path = |bytes: Vec<u8>| PathBuf::from(String::from_utf8_lossy(&bytes).into_owned());
    let offset = size(big(32))?;
    Ok(Note {
        pid: small(4),
        at: big(16),
        file: big(24),
        deed: match small(0) {
            1 => DiskDeed::Opened(path(bytes)),
            2 => DiskDeed::Written { offset, bytes },
            3 => DiskDeed::Cut(offset),
            4 => DiskDeed::SyncBegins,
            5 => DiskDeed::Synced,
            6 => DiskDeed::Removed(path(bytes)),
            7 => DiskDeed::Renamed(path(bytes)),
            8 => DiskDeed::Failed,
            other => return Err(io::Error::other(format!("note {other} is of no kind"))),
        },
    })
}

/// A change of a file.
#[derive(Debug, Clone)]
struct DiskChange {
    /// Its place among all notes.
    place: usize,
    deed: DiskDeed,
}

#[derive(Debug, Clone, Default)]
struct Contents {
    /// What is certainly there.
    saved: Vec<u8>,
    /// Changes since, in order.
    changes: Vec<DiskChange>,
}

/// The files of the store, as far as the notes were read.
#[derive(Debug, Default)]
pub struct Disk {
    files: HashMap<u64, Contents>,
    names: BTreeMap<PathBuf, u64>,
    /// The first note that a sync under way does not save, for each process and file.
    syncs: HashMap<(u32, u64), usize>,
    pub failures: Failures,
}

impl Disk {
    fn learn(&mut self, place: usize, note: &Note) {
        let contents = self.files.entry(note.file).or_default();
        match &note.deed {
            DiskDeed::Opened(path) | DiskDeed::Renamed(path) => {
                self.names.retain(|_, file| *file != note.file);
                self.names.insert(path.clone(), note.file);
            }
            DiskDeed::Removed(path) => drop(self.names.remove(path)),
            DiskDeed::Written { .. } | DiskDeed::Cut(_) => {
                self.failures.writes += 1;
                contents.changes.push(DiskChange {
                    place,
                    deed: note.deed.clone(),
                });
            }
            DiskDeed::SyncBegins => drop(self.syncs.insert((note.pid, note.file), place)),
            DiskDeed::Synced => {
                self.failures.syncs += 1;
                if let Some(until) = self.syncs.remove(&(note.pid, note.file)) {
                    contents.save(until);
                }
            }
            DiskDeed::Failed => {
                self.failures.failed += 1;
                self.syncs.remove(&(note.pid, note.file));
            }
        }
    }

    /// Writes the files as a power cut leaves them.
    fn leave(&mut self, dir: &Path, dice: &mut Dice) -> io::Result<()> {
        for (path, file) in &self.names {
            let Some(contents) = self.files.get(file) else {
                continue;
            };
            let name = path.file_name().unwrap_or_default();
            self.failures.unsaved += contents.changes.len() as u64;
            std::fs::write(dir.join(name), contents.left(dice))?;
        }
        self.failures.cuts += 1;
        Ok(())
    }
}

impl Contents {
    fn save(&mut self, until: usize) {
        let first = self.changes.partition_point(|change| change.place < until);
        for change in self.changes.drain(..first) {
            apply(&change.deed, &mut self.saved, |_| true);
        }
    }

    fn left(&self, dice: &mut Dice) -> Vec<u8> {
        let mut bytes = self.saved.clone();
        for change in &self.changes {
            let (is_there, is_torn) = (dice.percent(50), dice.percent(20));
            if is_there {
                apply(&change.deed, &mut bytes, |_| !is_torn || dice.percent(50));
            }
        }
        bytes
    }
}

/// Makes a change; of a write, those sectors of which this is true.
fn apply(deed: &DiskDeed, file: &mut Vec<u8>, mut is_written: impl FnMut(usize) -> bool) {
    match deed {
        DiskDeed::Cut(length) => file.resize(*length, 0),
        DiskDeed::Written { offset, bytes } => {
            for (number, sector) in bytes.chunks(SECTOR).enumerate() {
                if is_written(number) {
                    let from = offset + number * SECTOR;
                    let end = from + sector.len();
                    file.resize(file.len().max(end), 0);
                    file[from..end].copy_from_slice(sector);
                }
            }
        }
        _ => {}
    }
}

/// Cuts the power at so many moments of a run, and hands each directory that is left to `judge`, which says whether to keep it.
pub fn cut(
    run: &Path,
    times: usize,
    seed: u64,
    mut judge: impl FnMut(&Path) -> io::Result<bool>,
) -> io::Result<Failures> {
    let notes = notes(&std::fs::read(run.join(JOURNAL))?)?;
    let mut dice = Dice::new(seed, 7);
    let moments = moments(&notes, times, &mut dice);
    let mut disk = Disk::default();
    let mut read = 0;
    for at in moments {
        while let Some(note) = notes.get(read).filter(|note| note.at <= at) {
            disk.learn(read, note);
            read += 1;
        }
        let left = TempDir::new_in(run)?;
        let state = left.path().join(STATE);
        std::fs::create_dir(&state)?;
        disk.leave(&state, &mut dice)?;
        if !state.join(DATABASE).exists() {
            continue;
        }
        cut_logs(run, left.path(), at)?;
        if judge(left.path())? {
            drop(left.keep());
        }
    }
    for (place, note) in notes.iter().enumerate().skip(read) {
        disk.learn(place, note);
    }
    Ok(disk.failures)
}

/// Most cuts come where something was just written, synced or refused.
fn moments(notes: &[Note], times: usize, dice: &mut Dice) -> Vec<u64> {
    let mut chosen: Vec<u64> = (0..times)
        .filter_map(|_| dice.pick(notes).map(|note| note.at))
        .collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// Copies the logs of a run as they were at a moment, in which every process died.
fn cut_logs(run: &Path, left: &Path, at: u64) -> io::Result<()> {
    for entry in std::fs::read_dir(run)? {
        let path = entry?.path();
        let ending = path.extension().unwrap_or_default();
        if ending != "log" && ending != "stay" {
            continue;
        }
        let mut log = Log::open(&left.join(path.file_name().unwrap_or_default()))?;
        for line in read::<Value>(&path)? {
            let when = line.get("at").or_else(|| line.get("from"));
            if when.and_then(Value::as_u64).is_none_or(|when| when <= at) {
                log.write(&line)?;
            }
        }
    }
    let deeds = left.join(DEEDS);
    let mut alive = HashSet::new();
    for deed in read::<Deed>(&deeds)? {
        match deed {
            Deed::Started { worker, .. } => drop(alive.insert(worker)),
            Deed::Gone { worker, .. } => drop(alive.remove(&worker)),
            Deed::Kills { .. } | Deed::Stopped { .. } => {}
        }
    }
    let mut log = Log::open(&deeds)?;
    for worker in alive {
        log.write(&Deed::Kills {
            at,
            worker: worker.clone(),
        })?;
        log.write(&Deed::Gone {
            at,
            worker,
            trouble: None,
        })?;
    }
    std::fs::write(left.join(MOVED), [])?;
    std::fs::write(left.join(JOURNAL), [])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As preload/faults.c appends it.
    fn appended(offset: u64, text: &[u8]) -> Vec<u8> {
        let length = u32::try_from(text.len()).unwrap();
        let small = [2, 1, length, MARKS.0].map(u32::to_ne_bytes).concat();
        let big = [9, 7, offset].map(u64::to_ne_bytes).concat();
        [&small, &big, text, &MARKS.1.to_ne_bytes()].concat()
    }

    #[test]
    fn half_a_note_hides_none_after_it() {
        let (first, last) = (appended(0, b"ab"), appended(2, b"cd"));
        for kept in 0..first.len() {
            let journal = [&last[..], &first[..kept], &last, &last].concat();
            let found = notes(&journal).unwrap();
            let deeds: Vec<DiskDeed> = found.into_iter().map(|note| note.deed).collect();
            assert_eq!(deeds, [(); 3].map(|()| written(2, b"cd")), "{kept}");
        }
    }

    fn learned(deeds: &[DiskDeed]) -> Disk {
        let mut disk = Disk::default();
        for (place, deed) in deeds.iter().enumerate() {
            let note = Note {
                pid: 1,
                at: 0,
                file: 7,
                deed: deed.clone(),
            };
            disk.learn(place, &note);
        }
        disk
    }

    fn written(offset: usize, bytes: &[u8]) -> DiskDeed {
        DiskDeed::Written {
            offset,
            bytes: bytes.to_vec(),
        }
    }

    /// What hundred cuts leave.
    fn left(deeds: &[DiskDeed]) -> HashSet<Vec<u8>> {
        let disk = learned(deeds);
        let left = |seed| disk.files[&7].left(&mut Dice::new(seed, 1));
        (0..100).map(left).collect()
    }

    #[test]
    fn what_was_synced_is_there_and_the_rest_may_be_in_any_order() {
        use DiskDeed::{SyncBegins, Synced};
        let one = |bytes: &[u8]| HashSet::from([bytes.to_vec()]);
        let synced = [written(0, b"ab"), SyncBegins, Synced];
        assert_eq!(left(&synced), one(b"ab"));
        let late = [SyncBegins, written(0, b"a"), Synced];
        assert_eq!(left(&late).len(), 2);
        let both = [written(0, b"a"), written(1, b"b")];
        let all: [&[u8]; 4] = [b"", b"a", b"\0b", b"ab"];
        assert_eq!(left(&both), all.map(<[u8]>::to_vec).into());
    }

    #[test]
    fn a_failed_sync_saves_nothing() {
        use DiskDeed::{Failed, SyncBegins, Synced};
        let failed = [written(0, b"a"), SyncBegins, Failed];
        assert_eq!(left(&failed).len(), 2);
        let again = [&failed[..], &[SyncBegins, Synced]].concat();
        assert_eq!(left(&again), [b"a".to_vec()].into());
    }

    #[test]
    fn a_write_may_be_torn_between_sectors() {
        let big = [1; SECTOR * 2];
        let torn = [&[0; SECTOR][..], &[1; SECTOR]].concat();
        let found = left(&[written(0, &big)]);
        assert!(found.contains(&torn) && found.contains(big.as_slice()));
        assert!(found.contains(&vec![1; SECTOR]) && found.contains(&Vec::new()));
    }

    #[test]
    fn a_name_belongs_to_the_file_that_was_opened_or_moved_there_last() {
        let (new, name) = (PathBuf::from("/s/t.new"), PathBuf::from("/s/t"));
        let disk = learned(&[DiskDeed::Opened(new), DiskDeed::Renamed(name.clone())]);
        assert_eq!(disk.names, [(name.clone(), 7)].into());
        let disk = learned(&[DiskDeed::Opened(name.clone()), DiskDeed::Removed(name)]);
        assert!(disk.names.is_empty());
    }
}
