//! Reading an event within bounds: an agent may leave the pipe open, send nothing, or send far too much.
//!
//! What arrives in time counts, up to one MiB. The rest is read and discarded, so that an agent that is still
//! writing does not hit a closed pipe. A complete event ends the reading even if the pipe stays open.

use std::io::{self, BufRead};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::system;

/// How much of an event is kept.
const MAX_LENGTH: usize = 1 << 20;
/// After this much silence, the event is checked for completeness.
const SILENCE: Duration = Duration::from_millis(50);

/// Reads stdin to its end, or up to the bounds.
pub fn read(until: Instant) -> io::Result<Vec<u8>> {
    read_from(&io::stdin(), until)
}

fn read_from(stdin: &impl AsFd, until: Instant) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    // Events are small; larger ones are read in more pieces.
    let mut buffer = [0; 8 << 10];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(kept);
        }
        let wait = Timespec::try_from(left.min(SILENCE)).unwrap_or_default();
        let mut watched = [PollFd::new(stdin, PollFlags::IN)];
        match poll(&mut watched, Some(&wait)) {
            Ok(0) if is_whole(&kept) => return Ok(kept),
            Ok(0) => continue,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        match rustix::io::read(stdin, &mut buffer) {
            Ok(0) => return Ok(kept),
            Ok(count) => {
                let room = MAX_LENGTH - kept.len();
                kept.extend_from_slice(&buffer[..count.min(room)]);
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Events that arrive line by line, until the agent closes the pipe.
#[derive(Debug)]
pub struct EventLines<R> {
    from: R,
}

impl EventLines<io::StdinLock<'static>> {
    /// The lines of stdin.
    pub fn stdin() -> Self {
        Self::of(io::stdin().lock())
    }
}

impl<R: BufRead> EventLines<R> {
    fn of(from: R) -> Self {
        Self { from }
    }

    /// Waits for the next event; none at the end of the input. Of a line that is too long, only the beginning is kept.
    pub fn next_event(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut kept = Vec::new();
        let mut is_any = false;
        loop {
            let read = match self.from.fill_buf() {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if read.is_empty() {
                return Ok(is_any.then_some(kept));
            }
            is_any = true;
            let end = read.iter().position(|byte| *byte == b'\n');
            let line = &read[..end.unwrap_or(read.len())];
            let room = MAX_LENGTH - kept.len();
            kept.extend_from_slice(&line[..line.len().min(room)]);
            let used = end.map_or(read.len(), |end| end + 1);
            self.from.consume(used);
            if end.is_some() {
                return Ok(Some(kept));
            }
        }
    }
}

/// Puts an event back, so that a program that this process executes reads it from stdin.
pub fn put_back(event: &[u8]) -> io::Result<()> {
    use std::io::{Seek, Write};
    let mut memory = system::unnamed_file("event")?;
    memory.write_all(event)?;
    memory.rewind()?;
    rustix::stdio::dup2_stdin(&memory)?;
    Ok(())
}

fn is_whole(event: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(event).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(300)
    }

    #[test]
    fn a_pipe_that_stays_open_gives_what_came() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&writer, b"{\"a\":1}").unwrap();
        assert_eq!(read_from(&reader, soon()).unwrap(), b"{\"a\":1}");
        drop(writer);
    }

    #[test]
    fn a_stream_is_one_event_per_line() {
        let long = "x".repeat(MAX_LENGTH + 9);
        let text = format!("{{\"a\":1}}\n\n{long}\nlast");
        let mut lines = EventLines::of(text.as_bytes());
        assert_eq!(lines.next_event().unwrap().unwrap(), b"{\"a\":1}");
        assert_eq!(lines.next_event().unwrap().unwrap(), b"");
        assert_eq!(lines.next_event().unwrap().unwrap().len(), MAX_LENGTH);
        assert_eq!(lines.next_event().unwrap().unwrap(), b"last");
        assert_eq!(lines.next_event().unwrap(), None);
    }

    #[test]
    fn more_than_fits_is_read_and_thrown_away() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let writes = std::thread::spawn(move || {
            let piece = [b'x'; 64 << 10];
            let mut left = 5 << 20;
            while left > 0 {
                left -= rustix::io::write(&writer, &piece[..piece.len().min(left)]).unwrap();
            }
        });
        let until = Instant::now() + Duration::from_secs(60);
        assert_eq!(read_from(&reader, until).unwrap().len(), MAX_LENGTH);
        writes.join().unwrap();
    }
}
