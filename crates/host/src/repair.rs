//! Cutting an incomplete last line off a file of lines, into a file beside it.
//!
//! Under the lock of the path, which every append takes. A program that appends without it is recognised by its open
//! descriptor, and then nothing is done: it may be about to write the rest of the line. *Crash*: the line is beside the
//! file before it is cut off, so nothing is lost; the next repair finds a complete line or cuts it off again.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tenure_core::time::Timestamp;

use crate::append::{self, AppendError, open_target};
use crate::file;
use crate::kernel_lock::{LockDir, LockName, Patience, Sharing};
use crate::system;

/// How much of a file is searched for the end of its last complete line at once.
const BLOCK: u64 = 64 * 1024;

/// An incomplete line that was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutOff {
    /// Where the line was.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// The file that has it now.
    pub quarantine: PathBuf,
}

/// Why nothing was repaired.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// Live processes may be writing the line.
    #[error("{} is open for writing", path.display())]
    Writers { path: PathBuf, pids: Vec<u32> },
    #[error("{} does not exist", path.display())]
    Missing { path: PathBuf },
    #[error("{} changed in the meantime", path.display())]
    Changed { path: PathBuf },
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Cuts off the last line of a file if it is incomplete; none if it is complete.
pub fn cut_off_torn_line(
    locks: &LockDir,
    path: &Path,
    patience: Patience,
    now: Timestamp,
) -> Result<Option<CutOff>, RepairError> {
    if fs_err::symlink_metadata(path).is_err() {
        let path = path.to_owned();
        return Err(RepairError::Missing { path });
    }
    let name = LockName::of_path(path).map_err(AppendError::from)?;
    let held = locks
        .lock(&name, Sharing::Exclusive, patience)
        .map_err(AppendError::from)?;
    // An append that was interrupted is completed, which may be all that is missing.
    append::recover_at(locks, &name)?;
    let pids = system::writers(path);
    if !pids.is_empty() {
        let path = path.to_owned();
        return Err(RepairError::Writers { path, pids });
    }
    let mut target = open_target(path)?;
    let length = target.metadata()?.len();
    let offset = end_of_lines(&mut target, length)?;
    if offset == length {
        return Ok(None);
    }
    let mut line = Vec::new();
    target.seek(SeekFrom::Start(offset))?;
    target.read_to_end(&mut line)?;
    let quarantine = beside(path, now);
    file::write_atomic(&quarantine, &line)?;
    let is_same = target.metadata()?.len() == offset + line.len() as u64;
    if !is_same || !system::writers(path).is_empty() {
        file::remove(&quarantine)?;
        let path = path.to_owned();
        return Err(RepairError::Changed { path });
    }
    target.set_len(offset)?;
    target.sync_all()?;
    held.unlock();
    Ok(Some(CutOff {
        offset,
        bytes: line.len() as u64,
        quarantine,
    }))
}

/// Where the last complete line ends.
fn end_of_lines(target: &mut std::fs::File, length: u64) -> io::Result<u64> {
    let mut end = length;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        let mut block = Vec::new();
        target.seek(SeekFrom::Start(start))?;
        target.by_ref().take(end - start).read_to_end(&mut block)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// A file beside the transcript that no agent takes for one.
fn beside(path: &Path, now: Timestamp) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".torn-{}", now.0));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repair(dir: &Path, file: &Path) -> Result<Option<CutOff>, RepairError> {
        let locks = LockDir::open(&dir.join("locks")).unwrap();
        cut_off_torn_line(&locks, file, Patience::None, Timestamp(7))
    }

    #[test]
    fn a_torn_line_is_beside_the_file_and_the_rest_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("t.jsonl");
        let long = format!("{}\n", "x".repeat(200_000));
        for (text, kept) in [
            ("a\nb\nto", "a\nb\n"),
            ("torn", ""),
            (&format!("{long}{}", "y".repeat(100_000)), long.as_str()),
        ] {
            fs_err::write(&file, text).unwrap();
            let cut = repair(dir.path(), &file).unwrap().expect("it is torn");
            assert_eq!(fs_err::read_to_string(&file).unwrap(), kept);
            let aside = fs_err::read_to_string(&cut.quarantine).unwrap();
            assert_eq!(format!("{kept}{aside}"), text);
            assert_eq!(
                (cut.offset, cut.bytes),
                (kept.len() as u64, aside.len() as u64)
            );
            assert_eq!(repair(dir.path(), &file).unwrap(), None, "once is enough");
        }
        fs_err::write(&file, "").unwrap();
        assert_eq!(repair(dir.path(), &file).unwrap(), None);
        fs_err::remove_file(&file).unwrap();
        let missing = repair(dir.path(), &file);
        assert!(matches!(missing, Err(RepairError::Missing { .. })));
        assert!(!file.exists(), "nothing is created");
    }

    #[test]
    fn a_file_that_another_process_writes_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("t.jsonl");
        fs_err::write(&file, "a\nto").unwrap();
        let open = fs_err::OpenOptions::new().append(true).open(&file).unwrap();
        let mut writer = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(open.into_file())
            .spawn()
            .unwrap();
        let said = repair(dir.path(), &file);
        let pids = match said {
            Err(RepairError::Writers { pids, .. }) => pids,
            other => panic!("{other:?}"),
        };
        assert_eq!(pids, [writer.id()]);
        assert_eq!(fs_err::read_to_string(&file).unwrap(), "a\nto");
        drop(writer.stdin.take());
        writer.wait().unwrap();
        assert!(repair(dir.path(), &file).unwrap().is_some());
    }
}
