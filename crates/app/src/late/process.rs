//! The second process of a hook, and what both say to each other.
//!
//! The hook starts the program that opens stores on servers, with the event and the agent's process in its standard input
//! and one end of a socket pair as its standard output. It holds nothing else of the hook's: no descriptor of the agent, and a
//! session of its own, so a signal to the agent's group does not reach it. It is started and not forked, because the hook
//! has a thread that watches it, and because another program opens the store anyway.
//!
//! 1. The second process says that it asks the store now; `hook_wait` counts from here.
//! 2. It sends its answer as one line.
//! 3. The hook takes it with a byte, prints it, and says with a second byte what it reached. The end of the connection
//!    instead of the first byte means that the hook is gone or has waited long enough: then the answer is kept.
//! 4. The second process ends, and the hook with it, so that the next event finds all that this one did. From the second
//!    byte on it does not outlive the hook: an agent that kills its hook does not read what that printed, so its notices
//!    are told again.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use tenure_core::notice::Channel;
use tenure_host::{clock, descriptors, memfd};

use super::kept::Line;
use crate::own_process::Whose;

/// The argument that makes a hook the second process of another.
pub const ARGUMENT: &str = "--late";

const ASKS: u8 = b'\n';
const TAKEN: u8 = b't';
/// It was printed for the model, or for a person; any other byte means that nobody reads it.
const FOR_MODEL: u8 = b'm';
const FOR_PERSON: u8 = b'p';

/// What the hook would have said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reply {
    /// For the model.
    pub lines: Vec<Line>,
    /// For the person.
    pub message: Option<String>,
    /// Why the tool must not run.
    pub block: Option<String>,
    /// The value for TENURE_SESSION.
    pub token: Option<String>,
    /// For stderr.
    pub notes: Vec<String>,
}

/// The second process, seen from the hook.
#[derive(Debug)]
pub struct Asked {
    /// Its answer, if that came in time.
    pub reply: Option<Reply>,
    stream: Option<UnixStream>,
    until: Instant,
}

impl Asked {
    /// Lets another process ask the store, and waits for its answer; none if there is no such process.
    pub fn start(
        program: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        whose: &Whose,
        event: &[u8],
        (until, wait): (Instant, Duration),
    ) -> Option<Self> {
        let stream = begin(program, arguments, whose, event).ok()?;
        let mut line = Lines::new(&stream);
        match line.next(until) {
            Ok(_) => {}
            Err(error) if is_late(&error) => return Some(Self::late(until)),
            // It ended.
            Err(_) => return None,
        }
        let until = until.min(clock::instant() + wait);
        let reply = line.next(until).ok();
        let reply = reply.and_then(|line| serde_json::from_slice(&line).ok());
        let taken = reply.is_some() && (&stream).write_all(&[TAKEN]).is_ok();
        if !taken {
            return Some(Self::late(until));
        }
        Some(Self {
            reply,
            stream: Some(stream),
            until,
        })
    }

    fn late(until: Instant) -> Self {
        Self {
            reply: None,
            stream: None,
            until,
        }
    }

    /// Says what the answer reached, and waits until the other process has recorded that.
    pub fn printed(self, channel: Channel) {
        let Some(stream) = &self.stream else {
            return;
        };
        let byte = match channel {
            Channel::Hook => FOR_MODEL,
            Channel::Terminal => FOR_PERSON,
            _ => 0,
        };
        if (&*stream).write_all(&[byte]).is_err() {
            return;
        }
        if Lines::new(stream).next(self.until).is_ok() {
            // It says nothing more: it ends, or is left alone.
        }
    }
}

fn begin(
    program: &Path,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    whose: &Whose,
    event: &[u8],
) -> io::Result<UnixStream> {
    let mut input = serde_json::to_vec(whose)?;
    input.push(b'\n');
    input.extend_from_slice(event);
    let (own, its) = UnixStream::pair()?;
    descriptors::pass_on_none()?;
    let input = memfd::whole(Path::new("/tmp"), &input)?;
    let mut command = Command::new(program);
    command.args(arguments).arg(ARGUMENT);
    command.stdin(Stdio::from(input)).stderr(Stdio::null());
    command.stdout(Stdio::from(OwnedFd::from(its)));
    // It is left to init: this process ends first, or soon after it.
    drop(command.spawn()?);
    Ok(own)
}

fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
    )
}

/// Lines from a connection, each until a moment.
struct Lines<'a> {
    stream: &'a UnixStream,
    bytes: Vec<u8>,
}

impl<'a> Lines<'a> {
    fn new(stream: &'a UnixStream) -> Self {
        Self {
            stream,
            bytes: Vec::new(),
        }
    }

    fn next(&mut self, until: Instant) -> io::Result<Vec<u8>> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let rest = self.bytes.split_off(end + 1);
                return Ok(std::mem::replace(&mut self.bytes, rest));
            }
            match read_until(self.stream, &mut buffer, until)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.bytes.extend_from_slice(&buffer[..count]),
            }
        }
    }
}

fn read_until(mut stream: &UnixStream, buffer: &mut [u8], until: Instant) -> io::Result<usize> {
    loop {
        let left = until.saturating_duration_since(clock::instant());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// The hook, seen from its second process.
#[derive(Debug)]
pub struct Asker {
    stream: UnixStream,
    hook: Option<Pid>,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The hook printed it, or tried to.
    Reached(Channel),
    /// The hook is gone, or has waited long enough.
    Late,
}

impl Asker {
    /// Leaves the agent's process session and takes the connection, so that nothing else is written to it.
    pub fn find() -> io::Result<Self> {
        let own = rustix::stdio::stdout().try_clone_to_owned()?;
        let null = fs_err::OpenOptions::new().write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(null.file())?;
        rustix::process::setsid()?;
        Ok(Self {
            stream: UnixStream::from(own),
            hook: rustix::process::getppid(),
        })
    }

    /// Lets the kernel end this process with the hook; returns whether the hook still lives.
    fn ends_with_hook(&self) -> bool {
        if rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).is_err() {
            // Then a notice that an agent did not read may count as told.
        }
        rustix::process::getppid() == self.hook
    }

    /// The agent's process and the event, in what was read.
    pub fn unpack(input: &[u8]) -> (Option<Whose>, &[u8]) {
        let end = input.iter().position(|byte| *byte == b'\n');
        let (first, event) = input.split_at(end.map_or(0, |end| end + 1));
        (serde_json::from_slice(first).ok(), event)
    }

    /// Says that the store is asked now.
    pub fn asks(&self) {
        if (&self.stream).write_all(&[ASKS]).is_err() {
            // The hook is gone; the answer will be kept.
        }
    }

    /// Offers the answer to the hook.
    pub fn answer(&self, reply: &Reply, until: Instant) -> Fate {
        let mut byte = [0; 1];
        let mut receive = || match read_until(&self.stream, &mut byte, until) {
            Ok(1) => Some(byte[0]),
            _ => None,
        };
        let sent = serde_json::to_vec(reply).map_err(io::Error::from);
        let sent = sent.and_then(|mut line| {
            line.push(b'\n');
            (&self.stream).write_all(&line)
        });
        if sent.is_err() || receive() != Some(TAKEN) {
            return Fate::Late;
        }
        let channel = match receive() {
            Some(FOR_MODEL) => Channel::Hook,
            Some(FOR_PERSON) => Channel::Terminal,
            _ => Channel::Nowhere,
        };
        // An agent that kills its hook does not read what that printed.
        Fate::Reached(if self.ends_with_hook() {
            channel
        } else {
            Channel::Nowhere
        })
    }
}
