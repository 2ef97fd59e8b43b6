//! Whether a wrap does what a place needs, and keeps from an agent what it must.
//!
//! The whole round is done under it, with a repository of one empty commit: make, commit, take, ask for a
//! conversation that does not exist, remove. Between, the wrap tries to write the state directory and to read files
//! with secrets. What it says about the first is not believed: a file that appears there is looked for outside.

use std::io;
use std::path::{Path, PathBuf};

use tenure_core::agent::AGENTS;
use tenure_core::id::{AgentName, NativeId, RunId};
use tenure_core::text;
use tenure_host::file;
use tenure_host::git_command::GitError;
use tenure_host::kernel_lock::LockDir;

use super::reach::Unreached;
use super::{
    NotMade, NotTaken, Place, PlaceAnswer, PlaceContent, Repositories, RepositoryError, Start,
};
use crate::{existence, wrap};

/// A wrap to check.
#[derive(Debug, Clone, Copy)]
pub struct WrapCheck<'a> {
    pub state: &'a Path,
    pub locks: &'a LockDir,
    pub wrap: &'a [String],
    /// The directory of another user for its places.
    pub places: Option<&'a Path>,
    /// Files that no agent may read.
    pub secrets: &'a [PathBuf],
    /// A name that nobody else uses.
    pub run: &'a RunId,
}

/// What is wrong with a wrap.
#[derive(Debug, thiserror::Error)]
pub enum WrapFault {
    #[error("no place can be made under it: {0}")]
    Make(#[from] NotMade),
    #[error("nothing can be committed under it: {0}")]
    Commit(String),
    #[error("nothing can be taken from a place under it: {0}")]
    Take(#[from] NotTaken),
    #[error("what was committed under it was not found")]
    NothingTaken,
    #[error("it does not tell whether a conversation exists: {0}")]
    Ask(String),
    #[error("a conversation that does not exist is found under it")]
    Found,
    #[error("an agent under it can read {}", text::name(.0))]
    Reads(String),
    #[error("it does not tell whether an agent can read {}: {}", text::name(.0), .1)]
    CannotTell(String, String),
    #[error("an agent under it can write the state directory")]
    Writes,
    #[error("a place cannot be removed under it: {0}")]
    Remove(Unreached),
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

const COMMIT: &str = r#"enter "$1" && echo check >check && g add check &&
g -c user.name=tenure -c user.email=tenure@localhost -c commit.gpgSign=false commit -q -m Check >&2 && echo yes"#;
const READ: &str = r#"if head -c 1 -- "$2" >/dev/null 2>&1; then echo yes; else echo no; fi"#;
const WRITE: &str = r#"{ mkdir -p "${2%/*}"; : >"$2"; } 2>/dev/null; echo yes"#;

impl WrapCheck<'_> {
    /// Does the whole round.
    pub fn run(&self) -> Result<(), WrapFault> {
        let of = Repositories::open(self.state, "check", self.locks)?;
        let place = self.place()?;
        let done = self.round(&of, &place);
        let removed = place.remove_with_home().map_err(WrapFault::Remove);
        of.forget(self.run)?;
        done.and(removed)
    }

    fn place(&self) -> io::Result<Place> {
        let name = format!("check-{}", self.run);
        let dir = match self.places {
            Some(places) => places.join(name),
            None => {
                let places = self.state.join("places");
                file::make_dirs(&places)?;
                fs_err::canonicalize(places)?.join(name)
            }
        };
        let shown = wrap::WrapWords {
            dir: &dir,
            socket: &self.state.join("no-socket"),
            run: self.run.as_str(),
        };
        Ok(Place {
            wrap: wrap::words(self.wrap, &shown),
            home: Some(wrap::home(&dir)),
            is_theirs: self.places.is_some(),
            dir,
        })
    }

    fn round(&self, of: &Repositories, place: &Place) -> Result<(), WrapFault> {
        let commit = of.results().empty_commit()?;
        let start = Start {
            commit: &commit,
            branch: "check",
            url: "https://localhost/check.git",
            base: None,
            last: None,
        };
        place.make(of, &start)?;
        match place.ask(COMMIT, &[]) {
            PlaceAnswer::Yes => {}
            PlaceAnswer::No => return Err(WrapFault::Commit("it said no".to_owned())),
            PlaceAnswer::CannotTell(why) => return Err(WrapFault::Commit(why)),
        }
        if place.take(of, self.run, &commit)? == PlaceContent::Nothing {
            return Err(WrapFault::NothingTaken);
        }
        let id = NativeId::random([7; 16]);
        match existence::ask(place, &AgentName::known(AGENTS[0].name), &id) {
            PlaceAnswer::No => {}
            PlaceAnswer::Yes => return Err(WrapFault::Found),
            PlaceAnswer::CannotTell(why) => return Err(WrapFault::Ask(why)),
        }
        for secret in self.secrets {
            let name = secret.to_string_lossy().into_owned();
            match place.ask(READ, &[&name]) {
                PlaceAnswer::No => {}
                PlaceAnswer::Yes => return Err(WrapFault::Reads(name)),
                PlaceAnswer::CannotTell(why) => return Err(WrapFault::CannotTell(name, why)),
            }
        }
        let trace = self.state.join(format!("trace-{}", self.run));
        place.ask(WRITE, &[&trace.to_string_lossy()]);
        if fs_err::symlink_metadata(&trace).is_ok() {
            file::remove(&trace)?;
            return Err(WrapFault::Writes);
        }
        Ok(())
    }
}
