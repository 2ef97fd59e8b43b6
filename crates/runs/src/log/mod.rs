//! An agent's standard output or standard error: a file that is kept within bounds.
//!
//! The agent writes to the file itself and the runner follows it. So if a runner is killed nothing
//! is lost: the agent keeps writing, and its last event can be read later. The beginning and the
//! end of the file are kept. The part between them is given back to the disk while the file grows,
//! and the file is rewritten without the gap when the run is over. A line in place of the gap tells
//! how much is missing.
//!
//! Space is reserved ahead of the agent, because an agent that cannot write its output exits. When
//! the disk is full, older output makes room for newer. If no space can be reserved at all (the
//! disk is already full, or the file system cannot reserve), the agent writes to memory within the
//! same bounds, and as much as possible is written to the file.
//!
//! *Crash* of the runner: the file stays as it is, perhaps with a gap that reads as zeros; readers
//! skip it. *Crash* of the machine: the last lines may be missing.

mod lines;

use std::io::{self, Write};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tenure_core::ignore::Ignore;

use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::io::Errno;
use serde_json::json;
use tenure_host::system;

pub use lines::{Follower, OutputLine, Splitter, last_lines};

/// How many bytes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// At the beginning.
    pub head: u64,
    /// At the end.
    pub tail: u64,
}

impl Bounds {
    /// 64 MiB in total, including what is reserved and what is not given back yet.
    pub const OUTPUT: Bounds = Bounds {
        head: 16 * MIB,
        tail: 46 * MIB,
    };
    pub const ERRORS: Bounds = Bounds {
        head: MIB,
        tail: 2 * MIB,
    };
}

const MIB: u64 = 1 << 20;
/// How much space is reserved at a time.
const RESERVE: u64 = MIB;
/// How much of the beginning is kept when the disk is full.
const SHORT_HEAD: u64 = 64 << 10;
/// How much is read at a time.
const CHUNK: usize = 256 << 10;
/// File systems give back only whole blocks.
const BLOCK: u64 = 4096;
/// How much of an output in memory is kept on a full disk: the largest that fits.
const SHRINKING: [u64; 5] = [4 * MIB, MIB, 128 << 10, 16 << 10, 2 * BLOCK];

/// One stream of an agent.
#[derive(Debug)]
pub struct Output {
    file: std::fs::File,
    path: PathBuf,
    bounds: Bounds,
    /// The file that gets a copy if the agent writes to memory.
    copy: Option<Copy>,
    reserved: u64,
    read: u64,
    gap: Option<Range<u64>>,
    /// Why there is a gap, if not because of the bounds.
    because: Option<&'static str>,
    splitter: Splitter,
}

/// The file next to an output in memory.
#[derive(Debug)]
struct Copy {
    file: Option<std::fs::File>,
    written: u64,
}

/// The final size of an output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputSize {
    pub bytes: u64,
    pub dropped: u64,
}

impl Output {
    /// Creates the file for an agent that is about to start.
    pub fn create(path: &Path, bounds: Bounds) -> io::Result<Self> {
        let made = fs_err::OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        let file = match made {
            Ok(file) => Some(std::fs::File::from(file)),
            Err(error) if is_no_room(&error) => None,
            Err(error) => return Err(error),
        };
        let mut output = Self {
            file: in_memory()?,
            path: path.to_owned(),
            bounds,
            copy: Some(Copy {
                file: None,
                written: 0,
            }),
            reserved: 0,
            read: 0,
            gap: None,
            because: None,
            splitter: Splitter::default(),
        };
        let Some(file) = file else {
            output.because = Some(FULL);
            return Ok(output);
        };
        match reserve(&file, 0, RESERVE) {
            Ok(()) => {
                (output.file, output.copy, output.reserved) = (file, None, RESERVE);
            }
            Err(error) => {
                output.because = (error == Errno::NOSPC).then_some(FULL);
                output.copy = Some(Copy {
                    file: Some(file),
                    written: 0,
                });
            }
        }
        Ok(output)
    }

    /// Another, append-only descriptor of it for the agent.
    pub fn writer(&self) -> io::Result<OwnedFd> {
        let path = system::path_through(self.file.as_fd())?;
        let file = fs_err::OpenOptions::new().append(true).open(path)?;
        Ok(std::fs::File::from(file).into())
    }

    /// Whether watching its directory shows its growth.
    pub fn is_in_file(&self) -> bool {
        self.copy.is_none()
    }

    /// Passes on every line completed since the last call, and keeps the file within its bounds.
    pub fn follow(&mut self, each: &mut dyn FnMut(OutputLine<'_>)) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        loop {
            self.keep_within_bounds(each)?;
            let count = match self.file.read_at(&mut chunk, self.read) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if count == 0 {
                return Ok(());
            }
            self.read += count as u64;
            if let Some(copy) = &mut self.copy {
                copy.add(&chunk[..count], self.bounds.head);
            }
            self.splitter.feed(&chunk[..count], each);
        }
    }

    /// Passes on an unterminated last line, because the process that wrote it is gone.
    pub fn end_line(&mut self, each: &mut dyn FnMut(OutputLine<'_>)) {
        self.splitter.end(each);
    }

    /// Reads to the end, including an unterminated last line, and leaves a file without a gap. If
    /// other processes may still write to the agent's file, the log becomes a copy that they do not
    /// have open.
    pub fn finish(
        mut self,
        others_write: bool,
        each: &mut dyn FnMut(OutputLine<'_>),
    ) -> io::Result<OutputSize> {
        self.follow(each)?;
        self.splitter.end(each);
        let bytes = self.file.metadata()?.len();
        if self.copy.is_some() {
            let dropped = self.leave_file(bytes)?;
            return Ok(OutputSize { bytes, dropped });
        }
        // Gives back reserved space that was not used.
        rustix::fs::ftruncate(&self.file, bytes)?;
        if self.gap.is_some() || others_write {
            let has_room = rewrite(&self.file, &self.path, bytes, self.gap.as_ref(), self.why())?;
            if let (false, Some(gap)) = (has_room, &self.gap) {
                mark(&self.file, gap, self.why())?;
            }
        }
        let dropped = self.gap.as_ref().map_or(0, length);
        Ok(OutputSize { bytes, dropped })
    }

    /// Writes the contents of memory to the file: all of it, or as much of its beginning and end as
    /// there is space for. Returns how much is missing.
    fn leave_file(&mut self, bytes: u64) -> io::Result<u64> {
        let mut gap = self.gap.clone();
        for most in SHRINKING {
            if rewrite(&self.file, &self.path, bytes, gap.as_ref(), self.why())? {
                return Ok(gap.as_ref().map_or(0, length));
            }
            self.because = Some(FULL);
            give_up(&self.path);
            let whole = gap.unwrap_or(bytes..bytes);
            let head = whole.start.min(most / 2);
            let tail = (bytes - whole.end).min(most / 2);
            gap = Some(head..bytes.saturating_sub(tail).max(head));
        }
        Ok(bytes)
    }

    fn why(&self) -> &'static str {
        self.because.unwrap_or("the log is limited in size")
    }

    fn keep_within_bounds(&mut self, each: &mut dyn FnMut(OutputLine<'_>)) -> io::Result<()> {
        let size = self.file.metadata()?.len();
        let most = self.bounds.head + self.bounds.tail;
        let from = self.gap.as_ref().map_or(self.bounds.head, |gap| gap.end);
        let until = (size.saturating_sub(self.bounds.tail) / BLOCK) * BLOCK;
        if size > most && until >= from + RESERVE {
            self.drop_until(until, each)?;
        }
        if self.copy.is_some() || size + RESERVE / 2 <= self.reserved {
            return Ok(());
        }
        let start = size.max(self.reserved);
        match reserve(&self.file, start, RESERVE) {
            Ok(()) => self.reserved = start + RESERVE,
            Err(Errno::NOSPC) => {
                self.make_room(size, each)?;
                if reserve(&self.file, start, RESERVE).is_ok() {
                    self.reserved = start + RESERVE;
                }
            }
            // It worked when the file was created.
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Drops older output to make room for newer.
    fn make_room(&mut self, size: u64, each: &mut dyn FnMut(OutputLine<'_>)) -> io::Result<()> {
        self.because = Some(FULL);
        if self.gap.is_none() {
            self.bounds.head = SHORT_HEAD.min(self.bounds.head);
        }
        let from = self.gap.as_ref().map_or(self.bounds.head, |gap| gap.end);
        let kept = SHORT_HEAD.max(size.saturating_sub(from) / 2);
        let until = (size.saturating_sub(kept).min(self.read) / BLOCK) * BLOCK;
        if until > from {
            self.drop_until(until, each)?;
        }
        Ok(())
    }

    /// Gives the part after the beginning back to the disk.
    fn drop_until(&mut self, until: u64, each: &mut dyn FnMut(OutputLine<'_>)) -> io::Result<()> {
        let start = self.gap.as_ref().map_or(self.bounds.head, |gap| gap.start);
        let from = self.gap.as_ref().map_or(start, |gap| gap.end);
        system::give_back(self.file.as_fd(), from, until - from)?;
        self.gap = Some(start..until);
        if self.read < until {
            self.read = until;
            self.splitter.skip(each);
        }
        Ok(())
    }
}

const FULL: &str = "the disk is full";

fn reserve(file: &std::fs::File, from: u64, length: u64) -> Result<(), Errno> {
    system::reserve(file.as_fd(), from, length)
}

fn in_memory() -> io::Result<std::fs::File> {
    system::unnamed_file("output")
}

fn is_no_room(error: &io::Error) -> bool {
    let raw = error.raw_os_error();
    let full = [Errno::NOSPC, Errno::DQUOT].map(|errno| Some(errno.raw_os_error()));
    error.kind() == io::ErrorKind::StorageFull || full.contains(&raw)
}

impl Copy {
    /// Stops copying when the limit or the disk is reached; the final rewrite may still fit.
    fn add(&mut self, bytes: &[u8], most: u64) {
        let Some(file) = &mut self.file else { return };
        if self.written + bytes.len() as u64 > most || file.write_all(bytes).is_err() {
            self.file = None;
            return;
        }
        self.written += bytes.len() as u64;
    }
}

fn length(gap: &Range<u64>) -> u64 {
    gap.end - gap.start
}

/// The line that reports what is missing.
fn dropped_line(gap: &Range<u64>, why: &str) -> String {
    let said = json!({"type": "tenure.dropped", "bytes": length(gap), "why": why});
    format!("\n{said}\n")
}

/// Makes room on a full disk: truncates a file, which others may have open, and removes it.
fn give_up(path: &Path) {
    let emptied = fs_err::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path);
    emptied
        .and_then(|_| fs_err::remove_file(path))
        .ignore("it could not be created either");
}

/// Writes into a remaining gap what is missing there.
fn mark(output: &std::fs::File, gap: &Range<u64>, why: &str) -> io::Result<()> {
    // An append-only descriptor would not write at this position.
    let path = system::path_through(output.as_fd())?;
    let file = fs_err::OpenOptions::new().write(true).open(path)?;
    let line = dropped_line(gap, why);
    match file.file().write_all_at(line.as_bytes(), gap.start) {
        Err(error) if !is_no_room(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Writes the kept parts of an output to a new file, which replaces the log. False if there is no
/// space for it; the log then stays as it is.
fn rewrite(
    output: &std::fs::File,
    path: &Path,
    bytes: u64,
    gap: Option<&Range<u64>>,
    why: &str,
) -> io::Result<bool> {
    let beside = path.with_extension("part");
    let written = write_kept(output, &beside, bytes, gap, why);
    match written.and_then(|()| fs_err::rename(&beside, path)) {
        Ok(()) => Ok(true),
        Err(error) => {
            fs_err::remove_file(&beside).ignore("it was not created, or the disk has other errors");
            if is_no_room(&error) {
                Ok(false)
            } else {
                Err(error)
            }
        }
    }
}

fn write_kept(
    output: &std::fs::File,
    path: &Path,
    bytes: u64,
    gap: Option<&Range<u64>>,
    why: &str,
) -> io::Result<()> {
    let mut file = fs_err::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    let Some(gap) = gap else {
        return copy_range(output, &mut file, 0..bytes);
    };
    copy_range(output, &mut file, 0..gap.start)?;
    file.write_all(dropped_line(gap, why).as_bytes())?;
    copy_range(output, &mut file, gap.end..bytes)
}

fn copy_range(from: &std::fs::File, to: &mut impl Write, range: Range<u64>) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut at = range.start;
    while at < range.end {
        let most = usize::try_from(range.end - at).map_or(CHUNK, |left| left.min(CHUNK));
        let count = from.read_at(&mut chunk[..most], at)?;
        if count == 0 {
            break;
        }
        to.write_all(&chunk[..count])?;
        at += count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::type_complexity)] // a reader that hands its lines on
    fn lines_of(read: &mut dyn FnMut(&mut dyn FnMut(OutputLine<'_>))) -> Vec<String> {
        let mut found = Vec::new();
        read(&mut |line| {
            found.push(match line {
                OutputLine::Whole(line) => String::from_utf8_lossy(line).into_owned(),
                OutputLine::Unread => "?".to_owned(),
            });
        });
        found
    }

    fn small() -> Bounds {
        Bounds {
            head: 2 * BLOCK,
            tail: 4 * BLOCK,
        }
    }

    #[test]
    fn lines_arrive_whole_however_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut output = Output::create(&path, Bounds::OUTPUT).unwrap();
        let mut agent: std::fs::File = output.writer().unwrap().into();
        agent.write_all(b"{\"a\":1}\n{\"b\":").unwrap();
        let read = lines_of(&mut |each| output.follow(each).unwrap());
        assert_eq!(read, ["{\"a\":1}"]);
        agent.write_all(b"2}\n\nhalf").unwrap();
        let read = lines_of(&mut |each| output.follow(each).unwrap());
        assert_eq!(read, ["{\"b\":2}", ""]);
        let mut kept = OutputSize::default();
        let mut output = Some(output);
        let read = lines_of(&mut |each| {
            if let Some(output) = output.take() {
                kept = output.finish(false, each).unwrap();
            }
        });
        assert_eq!(read, ["half"]);
        assert_eq!((kept.bytes, kept.dropped), (21, 0));
        let mode = rustix::fs::stat(&path).unwrap().st_mode & 0o777;
        assert_eq!(mode, 0o600);
    }

    #[test]
    fn beginning_and_end_are_kept_and_the_log_says_what_it_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut output = Output::create(&path, small()).unwrap();
        let mut agent: std::fs::File = output.writer().unwrap().into();
        agent.write_all(b"first\n").unwrap();
        let flood = "x".repeat(99) + "\n";
        for _ in 0..40 {
            agent.write_all(flood.repeat(1000).as_bytes()).unwrap();
            output.follow(&mut |_| {}).unwrap();
            let blocks = rustix::fs::fstat(&output.file).unwrap().st_blocks;
            // The bounds, the reserved space, and what is given back later.
            assert!(blocks * 512 < 4 << 20, "{blocks} blocks are in use");
        }
        agent.write_all(b"last\n").unwrap();
        let mut read = Vec::new();
        let kept = output
            .finish(false, &mut |line| {
                if let OutputLine::Whole(line) = line {
                    read.push(line.to_vec());
                }
            })
            .unwrap();
        assert_eq!(read.last().unwrap(), b"last");
        assert!(kept.dropped > 3_000_000, "{kept:?}");
        let text = tenure_host::read::text(&path, 4 << 20).unwrap();
        assert!(text.len() < 2 << 20, "{} bytes", text.len());
        assert!(text.starts_with("first\n") && text.ends_with("last\n"));
        let marker = text.lines().find(|line| line.contains("tenure.dropped"));
        let marker: serde_json::Value = serde_json::from_str(marker.unwrap()).unwrap();
        assert_eq!(marker["bytes"], kept.dropped);
        assert!(!text.contains('\0'));
    }

    #[test]
    fn the_last_lines_are_read_past_a_gap() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut output = Output::create(&path, small()).unwrap();
        let mut agent: std::fs::File = output.writer().unwrap().into();
        let flood = "y".repeat(99) + "\n";
        agent.write_all(flood.repeat(30_000).as_bytes()).unwrap();
        output.follow(&mut |_| {}).unwrap();
        agent.write_all(b"{\"final\":1}\n").unwrap();
        // The runner has ended without rewriting it.
        drop(output);
        let read = lines_of(&mut |each| last_lines(&path, 1 << 20, each).unwrap());
        assert_eq!(read.last().unwrap(), "{\"final\":1}");
        assert!(read.iter().all(|line| !line.contains('\0')));
        let mut follower = Follower::open(&path).unwrap();
        let mut all = lines_of(&mut |each| while follower.follow(CHUNK, each).unwrap() {});
        assert_eq!(all.pop().unwrap(), "{\"final\":1}");
        assert!(all.iter().all(|line| line == "?" || line.starts_with('y')));
    }

    #[test]
    fn an_output_in_memory_has_the_same_bounds_and_leaves_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut output = Output::create(&path, small()).unwrap();
        // As on a file system that cannot reserve.
        let file = std::mem::replace(&mut output.file, in_memory().unwrap());
        output.copy = Some(Copy {
            file: Some(file),
            written: 0,
        });
        let mut agent: std::fs::File = output.writer().unwrap().into();
        let flood = "m".repeat(99) + "\n";
        agent.write_all(flood.repeat(30_000).as_bytes()).unwrap();
        agent.write_all(b"last\n").unwrap();
        let mut last = Vec::new();
        let kept = output
            .finish(false, &mut |line| {
                if let OutputLine::Whole(line) = line {
                    last = line.to_vec();
                }
            })
            .unwrap();
        assert_eq!(last, b"last");
        assert!(kept.dropped > 0);
        let text = tenure_host::read::text(&path, 2 << 20).unwrap();
        assert!(text.ends_with("last\n") && text.contains("tenure.dropped"));
    }
}
