//! A gate between a parent and its child: the child waits until the parent lets it through.
//!
//! The parent keeps one end of a pipe, the child inherits the other. A line means go. End of file
//! without a line (the parent was killed, or changed its mind) means do not. The child closes its
//! end before it executes anything. [`Echo`] is the way back: a child that cannot execute its
//! command writes why, and the pipe closes silently when it can.

use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// The parent's end.
#[derive(Debug)]
pub struct Gate {
    writer: PipeWriter,
    reader: Option<PipeReader>,
}

impl Gate {
    /// Creates a gate whose other end the next child inherits.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        fcntl_setfd(&reader, FdFlags::empty())?;
        Ok(Self {
            writer,
            reader: Some(reader),
        })
    }

    /// The number of the descriptor that the child inherits.
    pub fn number(&self) -> RawFd {
        self.reader.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Closes our copy of the child's end, so that the child notices when we exit.
    pub fn child_started(&mut self) {
        self.reader = None;
    }

    /// Lets the child through, with a message.
    pub fn open(mut self, word: &str) -> io::Result<()> {
        self.writer.write_all(format!("{word}\n").as_bytes())
    }
}

/// The way back from the child, at the parent.
#[derive(Debug)]
pub struct Echo {
    reader: PipeReader,
    writer: Option<PipeWriter>,
}

impl Echo {
    /// Creates a pipe whose writing end the next child inherits.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        fcntl_setfd(&writer, FdFlags::empty())?;
        fcntl_setfl(&reader, OFlags::NONBLOCK)?;
        Ok(Self {
            reader,
            writer: Some(writer),
        })
    }

    /// The number of the descriptor that the child inherits.
    pub fn number(&self) -> RawFd {
        self.writer.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Closes our copy of the child's end.
    pub fn child_started(&mut self) {
        self.writer = None;
    }

    /// Why the child, which has ended, could not execute its command; `None` if it could, or did not try.
    pub fn error(&mut self) -> Option<io::Error> {
        let mut code = [0; 4];
        self.reader.read_exact(&mut code).ok()?;
        Some(io::Error::from_raw_os_error(i32::from_ne_bytes(code)))
    }
}

/// The child's end of the way back. Executing the command closes it.
#[derive(Debug)]
pub struct EchoWriter(PipeWriter);

impl EchoWriter {
    /// Takes over the end that the parent left open.
    pub fn inherited(number: RawFd) -> io::Result<Self> {
        Ok(Self(PipeWriter::from(inherited(number)?)))
    }

    /// Reports to the parent why nothing was executed. Returns whether a parent was still there to
    /// read it.
    pub fn tell(&mut self, error: &io::Error) -> bool {
        let code = error.raw_os_error().unwrap_or_default();
        code != 0 && self.0.write_all(&code.to_ne_bytes()).is_ok()
    }
}

/// The child's side: waits for the message; `None` means that it must not continue.
pub fn wait(number: RawFd) -> io::Result<Option<String>> {
    let fd = inherited(number)?;
    let mut line = String::new();
    let count = BufReader::new(PipeReader::from(fd)).read_line(&mut line)?;
    Ok((count > 0 && line.ends_with('\n')).then(|| line.trim_end().to_owned()))
}

/// Takes over a descriptor that the parent left open.
#[allow(unsafe_code)]
fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "that is a standard descriptor",
        ));
    }
    // SAFETY: the number comes from the command line that our own parent wrote, nothing in this
    // process has opened or taken a descriptor with that number, and the code below checks that it
    // is open.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    match fcntl_getfd(&fd) {
        Ok(_) => {
            fcntl_setfd(&fd, FdFlags::CLOEXEC)?;
            Ok(fd)
        }
        Err(error) => {
            // The descriptor is not open, so dropping the handle would close nothing and fail.
            std::mem::forget(fd);
            Err(error.into())
        }
    }
}
