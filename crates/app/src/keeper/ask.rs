//! What commands ask of a keeper that runs.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use tenure_core::time::Span;
use tenure_host::{clock, file, pause, peer};
use tenure_service::answer::{Class, Hint, Problem};

use super::files::KeeperFiles;
use super::wire::{KeeperCommand, KeeperStatus, Response, receive, send};

/// How long a keeper may take to answer. It never waits for the store to do so.
pub const ANSWERS_WITHIN: Duration = Duration::from_secs(1);
/// How long it may take to end: it removes its row first.
const ENDS_WITHIN: Duration = Duration::from_secs(15);
const LOOKS_EVERY: Duration = Duration::from_millis(20);

/// A connection to the keeper; an error if none answers at this socket.
pub fn connect(files: &KeeperFiles) -> io::Result<UnixStream> {
    let socket = files.socket();
    let found = fs_err::symlink_metadata(&socket)?;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let uid = rustix::process::geteuid().as_raw();
    // Both the socket and who answers there must be this user's.
    if !found.file_type().is_socket() || found.uid() != uid {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let stream = peer::connect_now(&socket)?;
    if peer::uid_of(&stream)? != uid {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(stream)
}

/// What the keeper says about itself; none if no keeper runs.
pub fn status(files: &KeeperFiles) -> Result<Option<KeeperStatus>, Problem> {
    match asked(files, &KeeperCommand::Status)? {
        AskOutcome::Said(Response::Status(status)) => Ok(Some(*status)),
        AskOutcome::Said(Response::Refused(why)) => Err(Silent::Refused(why).into()),
        AskOutcome::Said(_) => Err(Silent::Unexpected.into()),
        AskOutcome::Ended | AskOutcome::NotRunning => Ok(None),
    }
}

/// What came of asking a keeper.
enum AskOutcome {
    NotRunning,
    /// It ended before it answered.
    Ended,
    Said(Response),
}

/// Asks the keeper. If it ends before it answers, its parent may have started the next one, which is asked then.
fn asked(files: &KeeperFiles, ask: &KeeperCommand) -> Result<AskOutcome, Problem> {
    let until = clock::instant() + ENDS_WITHIN;
    let mut none = AskOutcome::NotRunning;
    loop {
        let Ok(stream) = connect(files) else {
            return Ok(none);
        };
        let answer = send(&stream, ask.clone(), ANSWERS_WITHIN)
            .and_then(|()| receive(&stream, ANSWERS_WITHIN));
        match answer {
            Ok(response) => return Ok(AskOutcome::Said(response)),
            Err(error) if hung_up(&error) && clock::instant() < until => {
                none = AskOutcome::Ended;
                pause::sleep(LOOKS_EVERY);
            }
            Err(error) => return Err(Silent::from(error).into()),
        }
    }
}

/// Whether the other side ended instead of answering.
fn hung_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof
    )
}

/// What a keeper did instead of answering or ending.
#[derive(Debug, thiserror::Error)]
pub enum Silent {
    #[error(
        "the keeper of this machine did not answer within {}",
        Span(ANSWERS_WITHIN)
    )]
    Late,
    #[error("the keeper of this machine gave no readable answer: {0}")]
    Unreadable(io::Error),
    #[error("the keeper of this machine refused to answer: {0}")]
    Refused(String),
    #[error("the keeper of this machine gave an unexpected answer")]
    Unexpected,
    #[error("the keeper of this machine cannot be told to stop: {0}")]
    Untold(io::Error),
    #[error(
        "the keeper of this machine is still starting, {} after it was told to stop",
        Span(ENDS_WITHIN)
    )]
    Starting,
    #[error(
        "the keeper of this machine is still running, {} after it was told to stop",
        Span(ENDS_WITHIN)
    )]
    Running,
}

impl From<io::Error> for Silent {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Silent::Late,
            _ => Silent::Unreadable(error),
        }
    }
}

impl From<Silent> for Problem {
    fn from(silent: Silent) -> Self {
        let reason = match silent {
            Silent::Untold(_) | Silent::Starting | Silent::Running => {
                "to see whether it still runs"
            }
            _ => "to try again",
        };
        let hint = Hint::run("keeper", ["status"], reason);
        Problem::new(Class::TimedOut, "keeper_silent", silent.to_string(), hint)
    }
}

/// What became of a keeper that was asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeeperStop {
    NotRunning,
    Ended,
}

/// A parent whose keeper does not start tries again and again; asks it not to.
fn stop_parent(files: &KeeperFiles) -> Result<KeeperStop, Problem> {
    if !files.exist() || !files.is_held() {
        return Ok(KeeperStop::NotRunning);
    }
    let mark = files.stop_mark();
    file::write_private(&mark, b"").map_err(Silent::Untold)?;
    let until = clock::instant() + ENDS_WITHIN;
    while files.is_held() && clock::instant() < until {
        pause::sleep(LOOKS_EVERY);
    }
    file::remove(&mark).map_err(Silent::Untold)?;
    if files.is_held() {
        return Err(Silent::Starting.into());
    }
    Ok(KeeperStop::Ended)
}

/// Asks the keeper to end, and waits until it has.
pub fn stop(files: &KeeperFiles) -> Result<KeeperStop, Problem> {
    match asked(files, &KeeperCommand::Stop)? {
        AskOutcome::NotRunning => return stop_parent(files),
        // It ended by itself in that moment.
        AskOutcome::Ended => return stop_parent(files).map(|_| KeeperStop::Ended),
        AskOutcome::Said(_) => {}
    }
    let until = clock::instant() + ENDS_WITHIN;
    while connect(files).is_ok() {
        if clock::instant() >= until {
            return Err(Silent::Running.into());
        }
        pause::sleep(LOOKS_EVERY);
    }
    Ok(KeeperStop::Ended)
}
