//! The lines of an agent's output, read from a file that may have a gap.

use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The longest line that can be an event.
const MAX_LINE: usize = 4 << 20;

/// A line of the output, without its line end.
#[derive(Debug, PartialEq, Eq)]
pub enum OutputLine<'a> {
    Whole(&'a [u8]),
    /// It was too long, or its beginning was dropped.
    Unread,
}

/// Splits the input into lines.
#[derive(Debug, Default)]
pub struct Splitter {
    begun: Vec<u8>,
    /// Whether the rest of the current line is skipped.
    skips: bool,
}

impl Splitter {
    pub fn feed(&mut self, mut bytes: &[u8], each: &mut dyn FnMut(OutputLine<'_>)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if std::mem::take(&mut self.skips) {
                each(OutputLine::Unread);
            } else if self.begun.is_empty() {
                each(whole(line));
            } else {
                self.begun.extend_from_slice(line);
                each(whole(&self.begun));
                self.begun.clear();
            }
        }
        if self.skips {
            return;
        }
        self.begun.extend_from_slice(bytes);
        if self.begun.len() > MAX_LINE {
            self.begun = Vec::new();
            self.skips = true;
        }
    }

    /// Marks a gap: the current line has no end, and the next one no beginning.
    pub(super) fn skip(&mut self, each: &mut dyn FnMut(OutputLine<'_>)) {
        if !self.begun.is_empty() {
            each(OutputLine::Unread);
        }
        self.begun.clear();
        self.skips = true;
    }

    /// Passes on an unterminated last line.
    pub fn end(&mut self, each: &mut dyn FnMut(OutputLine<'_>)) {
        if std::mem::take(&mut self.skips) {
            each(OutputLine::Unread);
        } else if !self.begun.is_empty() {
            each(whole(&self.begun));
            self.begun.clear();
        }
    }
}

/// A gap in a file reads as zeros, which no agent writes.
fn whole(line: &[u8]) -> OutputLine<'_> {
    let zeros = line.iter().take_while(|byte| **byte == 0).count();
    match (zeros, &line[zeros..]) {
        (0, line) if line.len() > MAX_LINE => OutputLine::Unread,
        (0, line) => OutputLine::Whole(line),
        _ => OutputLine::Unread,
    }
}

/// The last lines of an output that no runner follows any more.
pub fn last_lines(path: &Path, most: u64, each: &mut dyn FnMut(OutputLine<'_>)) -> io::Result<()> {
    let mut file = tenure_host::read::open(path)?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(most);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    let mut splitter = Splitter {
        skips: from > 0,
        ..Splitter::default()
    };
    splitter.feed(&bytes, each);
    splitter.end(each);
    Ok(())
}

/// Follows the output of an agent for people, independently of its runner.
#[derive(Debug)]
pub struct Follower {
    file: fs_err::File,
    at: u64,
    splitter: Splitter,
}

impl Follower {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: tenure_host::read::open(path)?,
            at: 0,
            splitter: Splitter::default(),
        })
    }

    /// Passes on every line completed since the last call; reads at most `most` bytes.
    pub fn follow(
        &mut self,
        most: usize,
        each: &mut dyn FnMut(OutputLine<'_>),
    ) -> io::Result<bool> {
        let mut chunk = vec![0; most];
        let file = self.file.file();
        let count = file.read_at(&mut chunk, self.at)?;
        if count == 0 {
            return Ok(false);
        }
        let chunk = &chunk[..count];
        if chunk.first() == Some(&0) {
            // A gap: it ends where the next data is.
            let next = rustix::fs::seek(file, rustix::fs::SeekFrom::Data(self.at));
            let zeros = chunk.iter().take_while(|byte| **byte == 0).count() as u64;
            self.at = next.unwrap_or(self.at).max(self.at + zeros);
            self.splitter.skip(each);
            return Ok(true);
        }
        self.at += count as u64;
        self.splitter.feed(chunk, each);
        Ok(true)
    }

    /// Passes on an unterminated last line.
    pub fn end(&mut self, each: &mut dyn FnMut(OutputLine<'_>)) {
        self.splitter.end(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_is_not_kept_in_memory() {
        let mut splitter = Splitter::default();
        let block = vec![b'z'; 1 << 20];
        let mut read = Vec::new();
        let mut each = |line: OutputLine<'_>| match line {
            OutputLine::Whole(line) => read.push(line.to_vec()),
            OutputLine::Unread => read.push(b"?".to_vec()),
        };
        for _ in 0..8 {
            splitter.feed(&block, &mut each);
            assert!(splitter.begun.capacity() <= 2 * MAX_LINE + (2 << 20));
        }
        splitter.feed(b"\nnext\n", &mut each);
        assert_eq!(read, [&b"?"[..], b"next"]);
    }
}
