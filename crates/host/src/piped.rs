//! Processes that are fed and read through pipes, with a limit for everything that they can use up.
//!
//! The other end may be hostile: it may write without end, not at all, or leave a process behind that holds its
//! pipes open. So nothing here waits longer than the deadline, keeps more than a fixed number of bytes, or waits
//! for the end of a stream after the process exited. A process has a process group of its own, which is killed
//! when its handle is dropped. *Limit*: a process that became another user cannot always be killed; it is then
//! no longer waited for, and its pipes are closed.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tenure_core::ignore::Ignore;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::system;

/// How much of an answer, or of what a process printed as an error, is kept.
const KEPT: usize = 4096;
/// The longest wait for a process whose exit cannot be watched.
const UNWATCHED: Duration = Duration::from_millis(20);
/// How long a killed process may take to exit.
const DYING: Duration = Duration::from_secs(1);

/// What a process of our own may use.
#[derive(Debug, Clone, Copy)]
pub struct ProcessLimits {
    /// Address space in bytes.
    pub memory: u64,
    /// Processor time in seconds.
    pub seconds: u64,
    /// Bytes of each file that it writes.
    pub file: u64,
}

/// Where a process reads from.
pub enum Input {
    Nothing,
    /// [`Piped::write_all`].
    Ours,
    /// The output of another process.
    From(OwnedFd),
}

/// A process, with its pipes.
#[derive(Debug)]
pub struct Piped {
    child: Child,
    exit: Option<ExitStatus>,
    pidfd: Option<OwnedFd>,
    input: Option<OwnedFd>,
    output: Option<OwnedFd>,
    errors: Option<OwnedFd>,
    said: Vec<u8>,
}

/// How a process ended.
#[derive(Debug)]
pub struct ProcessOutput {
    pub status: ExitStatus,
    /// The beginning of its output, as far as it was not read before.
    pub output: Vec<u8>,
    /// The beginning of what it printed as errors.
    pub errors: Vec<u8>,
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PipeEvent {
    Output,
    Room,
    Exit,
}

impl Piped {
    pub fn start(command: &mut Command, input: Input) -> io::Result<Self> {
        let (stdin, feeds) = match input {
            Input::Nothing => (Stdio::null(), false),
            Input::Ours => (Stdio::piped(), true),
            Input::From(other) => (Stdio::from(other), false),
        };
        let mut child = command
            .process_group(0)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().filter(|_| feeds).map(OwnedFd::from);
        let output = child.stdout.take().map(OwnedFd::from);
        let errors = child.stderr.take().map(OwnedFd::from);
        let piped = Self {
            pidfd: system::open_pidfd(child.id()),
            exit: None,
            child,
            input,
            output,
            errors,
            said: Vec::new(),
        };
        for pipe in [&piped.input, &piped.output, &piped.errors]
            .into_iter()
            .flatten()
        {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(piped)
    }

    /// Limits a process that waits for its input and has not begun to work.
    pub fn limit(&self, limits: ProcessLimits) -> io::Result<()> {
        system::limit(self.child.id(), limits)
    }

    /// Its output, for another process to read.
    pub fn take_output(&mut self) -> io::Result<OwnedFd> {
        let output = self.output.take();
        let output = output.ok_or_else(|| io::Error::other("its output was taken before"))?;
        rustix::io::ioctl_fionbio(&output, false)?;
        Ok(output)
    }

    /// Reads some of its output; 0 bytes at the end.
    pub fn read(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        loop {
            self.notice_exit()?;
            let Some(output) = &self.output else {
                return Ok(0);
            };
            match rustix::io::read(output, &mut *buffer) {
                Ok(0) => {
                    self.output = None;
                    return Ok(0);
                }
                Ok(read) => return Ok(read),
                // What it left running may hold the pipe.
                Err(Errno::AGAIN) if self.exit.is_some() => return Ok(0),
                Err(Errno::AGAIN) => self.wait_for(PipeEvent::Output, deadline)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes to its input. A process that closed its input or exited is an error of the kind `BrokenPipe`.
    pub fn write_all(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            let Some(input) = &self.input else {
                return Err(io::ErrorKind::BrokenPipe.into());
            };
            match rustix::io::write(input, bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::AGAIN) => {
                    self.notice_exit()?;
                    if self.exit.is_some() {
                        return Err(io::ErrorKind::BrokenPipe.into());
                    }
                    self.wait_for(PipeEvent::Room, deadline)?;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Tells it that nothing more comes.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes its input and waits for its exit.
    pub fn finish(mut self, deadline: Instant) -> io::Result<ProcessOutput> {
        self.close_input();
        let mut output = Vec::new();
        let mut buffer = [0; KEPT];
        let mut is_open = true;
        loop {
            if is_open {
                let read = self.read(&mut buffer, deadline)?;
                is_open = read > 0;
                keep(&mut output, &buffer[..read]);
            }
            self.notice_exit()?;
            if let Some(status) = self.exit.filter(|_| !is_open) {
                self.read_errors();
                return Ok(ProcessOutput {
                    status,
                    output,
                    errors: std::mem::take(&mut self.said),
                });
            }
            if !is_open {
                self.wait_for(PipeEvent::Exit, deadline)?;
            }
        }
    }

    fn notice_exit(&mut self) -> io::Result<()> {
        if self.exit.is_none() {
            self.exit = self.child.try_wait()?;
        }
        Ok(())
    }

    /// Waits until something happened. Its errors are read meanwhile, so that it never waits for us.
    fn wait_for(&mut self, wanted: PipeEvent, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let left = if self.pidfd.is_some() {
            left
        } else {
            left.min(UNWATCHED)
        };
        let span = Timespec::try_from(left).ok();
        let mut fds = Vec::new();
        fds.extend(self.pidfd.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let errors = self.errors.as_ref();
        fds.extend(errors.map(|fd| PollFd::new(fd, PollFlags::IN)));
        let other = match wanted {
            PipeEvent::Output => self.output.as_ref().map(|fd| (fd, PollFlags::IN)),
            PipeEvent::Room => self.input.as_ref().map(|fd| (fd, PollFlags::OUT)),
            PipeEvent::Exit => None,
        };
        fds.extend(other.map(|(fd, flags)| PollFd::new(fd, flags)));
        match poll(&mut fds, span.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.read_errors();
        Ok(())
    }

    fn read_errors(&mut self) {
        let mut buffer = [0; KEPT];
        while let Some(errors) = &self.errors {
            match rustix::io::read(errors, &mut buffer) {
                Ok(0) => self.errors = None,
                Ok(read) => keep(&mut self.said, &buffer[..read]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.errors = None,
            }
        }
    }
}

fn keep(kept: &mut Vec<u8>, more: &[u8]) {
    let room = KEPT.saturating_sub(kept.len());
    kept.extend_from_slice(&more[..more.len().min(room)]);
}

impl Drop for Piped {
    fn drop(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group.filter(|_| self.exit.is_none()) {
            // Not reaped, so the number is still this process's.
            kill_process_group(group, Signal::KILL).ignore("it is another user's by now");
            let until = Instant::now() + DYING;
            while matches!(self.child.try_wait(), Ok(None)) {
                if self.wait_for(PipeEvent::Exit, until).is_err() {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, input: Input) -> Piped {
        Piped::start(Command::new("sh").args(["-c", script]), input).unwrap()
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn what_a_process_reads_and_writes_goes_through() {
        let mut cat = shell("cat; echo done >&2; exit 3", Input::Ours);
        cat.write_all(b"hello", soon()).unwrap();
        let ended = cat.finish(soon()).unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert_eq!(
            (&ended.output[..], &ended.errors[..]),
            (&b"hello"[..], &b"done\n"[..])
        );
    }

    #[test]
    fn a_process_left_behind_is_not_waited_for() {
        // It holds both pipes for longer than the test may take.
        let leaves = shell("sleep 60 & echo $!", Input::Nothing);
        let ended = leaves.finish(soon()).unwrap();
        let pid: i32 = String::from_utf8(ended.output)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }

    #[test]
    fn a_process_that_says_nothing_is_ended_at_the_deadline() {
        let mut silent = shell("exec sleep 60", Input::Nothing);
        let began = Instant::now();
        let error = silent
            .read(&mut [0; 10], began + Duration::from_millis(50))
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(silent);
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn errors_without_end_block_nothing_and_are_cut() {
        let loud = shell(
            "i=0; while [ $i -lt 4000 ]; do echo 0123456789012345678901234567890123456789 >&2; i=$((i+1)); done; echo ok",
            Input::Nothing,
        );
        let ended = loud.finish(soon()).unwrap();
        assert_eq!(ended.output, b"ok\n");
        assert_eq!(ended.errors.len(), KEPT);
    }

    #[test]
    fn a_limited_process_cannot_exceed_its_limits() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let script = format!("read x; exec head -c 100000 /dev/zero > {}", file.display());
        let mut writer = shell(&script, Input::Ours);
        let limits = ProcessLimits {
            memory: 1 << 30,
            seconds: 10,
            file: 4096,
        };
        writer.limit(limits).unwrap();
        writer.write_all(b"go\n", soon()).unwrap();
        let ended = writer.finish(soon()).unwrap();
        assert!(!ended.status.success());
        assert_eq!(fs_err::metadata(&file).unwrap().len(), 4096);
    }
}
