//! How a command uses the keeper of this machine: asks it, starts it, and does without it.
//!
//! The keeper itself is the crate `tenure-keeper`, which says what it is. Here is what every program needs: the files that
//! both read ([`files`], [`memory`], [`spool`]), the lines that they exchange ([`wire`]), the way to the store through
//! the keeper's connection ([`mod@through`]), and what a command does while the store is away.
//!
//! *Crash* and *older version*: each of the files says so for itself.

mod ask;
mod away;
pub mod copied;
pub mod drain;
pub mod ended;
pub mod files;
pub mod generation;
mod hook;
pub mod memory;
pub mod order;
mod report;
pub mod spool;
pub mod start;
pub mod through;
pub mod wire;

pub use ask::KeeperStop;
pub use away::{Away, end, end_child, end_killed, handoff, is_away, release};
pub use copied::settle_host;
pub use drain::{drain, told_first};
pub use hook::{EventLine, SentEvent, whose_event};
pub use memory::{Permitted, RememberedSession};
pub use report::{KeeperReport, report, say_since, status_at, stop_at, stop_here};
pub use start::{KeeperHandle, Stage, Tells, Turns, ensure};
pub use through::through;
pub use wire::{EventReply, EventRequest, KeeperStatus};
