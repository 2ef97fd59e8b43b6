//! Taking what an agent committed.
//!
//! The place names a commit and writes a pack; neither is believed. The pack goes into a quarantine, where git checks
//! it, and the commit counts only if it is one and everything that it needs is there.

use std::io;
use std::time::{Duration, Instant};

use tenure_core::commit::CommitId;
use tenure_core::id::RunId;
use tenure_host::git_command::GitError;
use tenure_host::own_repository::{PackLimits, Quarantine};
use tenure_host::piped::{Input, Piped};

use super::reach::{Unreached, outside, within};
use super::repositories::run_ref;
use super::{Place, Repositories};

/// How long both ends together may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The longest line with an id: 64 digits and the newline.
const MAX_LINE: usize = 65;

/// Names the commit, then writes a pack of what is new since another one.
const GIVE: &str = r#"enter "$1" && h=$(g rev-parse --verify 'HEAD^{commit}') && echo "$h" &&
{ echo "$h"; if g cat-file -e "$2^{commit}" 2>/dev/null; then echo "^$2"; fi; } |
g pack-objects --revs --thin --stdout -q"#;

/// What was found in a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceContent {
    /// It is still at the commit that is known.
    Nothing,
    Commit(CommitId),
}

/// Why nothing was taken from a place. The place still has it.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    #[error("the place names no commit: {0}")]
    NoCommit(Unreached),
    #[error("the place does not name a commit")]
    NotAnId,
    #[error("the place did not give its commits in time")]
    Late,
    #[error("its commits take more than {} MiB", .limit >> 20)]
    TooLarge { limit: u64 },
    #[error("git refused its commits: {0}")]
    Refused(String),
    #[error("what it names is not a commit")]
    NotACommit,
    #[error("its commits are not complete: {0}")]
    NotWhole(String),
    #[error("{0}")]
    Git(#[from] GitError),
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for NotTaken {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Late,
            _ => Self::Io(error),
        }
    }
}

impl Place {
    /// Takes the commit of the place into the results, as the result of a run. `known` is what it had when it was
    /// made, or when something was last taken.
    pub fn take(
        &self,
        into: &Repositories,
        run: &RunId,
        known: &CommitId,
    ) -> Result<PlaceContent, NotTaken> {
        self.take_within(into, run, known, PackLimits::default(), PATIENCE)
    }

    pub(super) fn take_within(
        &self,
        into: &Repositories,
        run: &RunId,
        known: &CommitId,
        limits: PackLimits,
        patience: Duration,
    ) -> Result<PlaceContent, NotTaken> {
        let deadline = within(patience);
        let mut giving = self
            .start(GIVE, &[known.as_str()], Input::Nothing)
            .map_err(NotTaken::NoCommit)?;
        let (line, rest) = first_line(&mut giving, deadline)?;
        let Some(line) = line else {
            let ended = giving.finish(deadline)?;
            return Err(NotTaken::NoCommit(Unreached::failed(&ended)));
        };
        let commit = CommitId::parse(&line).map_err(|_| NotTaken::NotAnId)?;
        if commit == *known {
            return Ok(PlaceContent::Nothing);
        }
        let results = into.results();
        let quarantine = results.quarantine(run.as_str(), limits)?;
        let transfer = transfer(&mut giving, &rest, &quarantine, limits.bytes, deadline);
        drop(giving);
        transfer?;
        check(&quarantine, &commit, known, deadline)?;
        quarantine.release()?;
        results.set_ref(&run_ref(run), &commit)?;
        Ok(PlaceContent::Commit(commit))
    }
}

/// The first line, if there is one, and what was read after it.
fn first_line(
    giving: &mut Piped,
    deadline: Instant,
) -> Result<(Option<String>, Vec<u8>), NotTaken> {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = read.iter().position(|byte| *byte == b'\n') {
            let rest = read.split_off(end + 1);
            read.pop();
            let line = String::from_utf8(read).map_err(|_| NotTaken::NotAnId)?;
            return Ok((Some(line), rest));
        }
        if read.len() >= MAX_LINE {
            return Err(NotTaken::NotAnId);
        }
        match giving.read(&mut buffer, deadline)? {
            0 if read.is_empty() => return Ok((None, read)),
            0 => return Err(NotTaken::NotAnId),
            count => read.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Moves the pack from the place to git.
fn transfer(
    giving: &mut Piped,
    first: &[u8],
    into: &Quarantine,
    limit: u64,
    deadline: Instant,
) -> Result<(), NotTaken> {
    let mut git = into.index()?;
    let mut buffer = vec![0; 64 << 10];
    let mut total = first.len() as u64;
    let mut sent = git.write_all(first, deadline);
    while sent.is_ok() {
        let count = giving.read(&mut buffer, deadline)?;
        if count == 0 {
            break;
        }
        total += count as u64;
        if total > limit {
            return Err(NotTaken::TooLarge { limit });
        }
        sent = git.write_all(&buffer[..count], deadline);
    }
    match sent {
        // Git says why it stopped reading.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    let ended = git.finish(deadline)?;
    if ended.status.success() {
        return Ok(());
    }
    let said = outside(&ended.errors);
    if said.is_empty() {
        let why = "it used more memory, processor time or space than a result may";
        return Err(NotTaken::Refused(why.to_owned()));
    }
    Err(NotTaken::Refused(said))
}

fn check(
    quarantine: &Quarantine,
    commit: &CommitId,
    known: &CommitId,
    deadline: Instant,
) -> Result<(), NotTaken> {
    if !quarantine.has_commit(commit, deadline)? {
        return Err(NotTaken::NotACommit);
    }
    let whole = quarantine.check_whole(commit, known, deadline)?;
    if whole.status.success() {
        return Ok(());
    }
    Err(NotTaken::NotWhole(outside(&whole.errors)))
}
