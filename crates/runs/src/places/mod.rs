//! Where dispatched code is: what the forge has, what agents made, and the places that agents work in.
//!
//! A repository that an agent can write is hostile to every git of ours. Its settings name programs, proxies and
//! addresses, and its `.git`, alternates and links lead into other repositories of the user. So it is never
//! opened by us. Only bytes cross, through pipes, and git on the other end runs in the place's own wrap.
//!
//! *Owns*: two bare repositories for each repository of the dispatcher, below `repositories` in the state directory,
//! which no wrap may show to an agent ([`Repositories`]): **base** has what the forge has, **results** what agents
//! made, as `refs/runs/RUN`. And the places themselves, one for each conversation ([`Place`]): a repository with
//! objects of its own, made from a pack and read as a pack.
//!
//! *Invariants*: a place is touched only by commands under its wrap; without one, as the user. What comes out of a
//! place is a claim until git has checked all of it, in a quarantine and within limits of size, memory, processor
//! time and time. Whatever fails takes nothing, says so ([`NotTaken`]) and leaves the place as it is. What a place's
//! git prints is text from outside. No lock is held while a place is touched, and none is passed on to it.
//!
//! *Crash*: a fetch is repeated. A place that was not completed is not in its record, and is removed before it is
//! made again. A quarantine that a killed process left is removed by the next one of the same run. Objects
//! without a ref harm nobody. *Clock*: only the monotonic one, for deadlines. *Older version*: nothing is stored here
//! but git repositories, which any git from 2.32 on reads.

mod check;
mod make;
mod publish;
mod reach;
pub mod record;
mod repositories;
mod take;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;

pub use check::{WrapCheck, WrapFault};
pub use make::{NotMade, Start};
pub use publish::{NotPublished, Publication};
pub use reach::{PlaceAnswer, Unreached};
pub use repositories::{ExtraHead, Heads, RemoteSource, Repositories, RepositoryError};
pub use take::{NotTaken, PlaceContent};

/// A place that an agent works in, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its directory, which has the same name inside the wrap.
    pub dir: PathBuf,
    /// The command that everything in it runs under, complete; empty without a wrap.
    pub wrap: Vec<OsString>,
    /// The home directory of the agents in it, if they have one of their own.
    pub home: Option<PathBuf>,
    /// Whether the directory that it is in belongs to the wrap's user, so that only the wrap can make, move and
    /// remove it. Otherwise the place is shown to the wrap by the path, and must exist before.
    pub is_theirs: bool,
}
