//! Where answers are written, and what became of the write.
//!
//! A failed write is a failure of the verb, so that a caller never takes a partial answer for a whole one. A reader
//! that leaves early (`tenure log | head`) is not a failure.
//!
//! Text for people has no hidden characters left. In JSON they are escaped here, so that an object that is shown on
//! a terminal, or read by a model, cannot reorder or hide anything.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use tenure_core::ignore::Ignore;
use tenure_core::notice::Channel;
use tenure_core::text;

/// Why something was not written.
#[derive(Debug)]
pub enum Unwritten {
    ReaderLeft,
    /// It could not be written.
    Failed(io::Error),
}

/// What became of a write.
pub type WriteResult = Result<(), Unwritten>;

/// Writes a line, or several, to stdout.
pub fn out(text: &str) -> WriteResult {
    write(&mut io::stdout().lock(), text)
}

/// Writes part of a line, or more, to stdout.
pub fn part(text: &str) -> WriteResult {
    write_all(&mut io::stdout().lock(), text)
}

/// Writes a line, or several, to stderr.
pub fn err(text: &str) -> WriteResult {
    write(&mut io::stderr().lock(), text)
}

/// Writes to stderr; a failure is ignored.
pub fn mention(text: &str) {
    err(text).ignore("there is nowhere else to report it");
}

/// Writes the last line of a terminal again, in place of what it said before.
pub fn status(text: &str) {
    let line = format!("\r\u{1b}[K{text}");
    let mut out = io::stderr().lock();
    let written = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    written.ignore("there is nowhere else to report it");
}

fn write(out: &mut dyn Write, text: &str) -> WriteResult {
    write_all(out, &format!("{text}\n"))
}

fn write_all(out: &mut dyn Write, text: &str) -> WriteResult {
    let whole = text::json(text);
    let written = out.write_all(whole.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Unwritten::ReaderLeft,
        _ => Unwritten::Failed(error),
    })
}

/// What text, or a JSON object, reaches that was written to this stream.
pub fn channel(stream: &(impl AsFd + IsTerminal), json: bool, quiet: bool) -> Channel {
    if stream.is_terminal() {
        Channel::Terminal
    } else if is_null(stream) {
        Channel::Nowhere
    } else if json {
        Channel::Json
    } else if quiet {
        Channel::Quiet
    } else {
        Channel::Text
    }
}

/// Whether what is written there is thrown away. A stream that was closed is `/dev/null` as well: the
/// runtime opens it in its place.
pub fn is_null(stream: &impl AsFd) -> bool {
    let Ok(own) = stream.as_fd().try_clone_to_owned() else {
        return false;
    };
    let Ok(found) = File::from(own).metadata() else {
        return false;
    };
    let null = fs_err::metadata("/dev/null").map(|null| null.rdev());
    found.file_type().is_char_device() && null.is_ok_and(|null| null == found.rdev())
}
