//! Messages that start a turn in an idle session: who waits beside an agent, and what a sender does.
//!
//! A message is a row in the store, and the rules about it are core's ([`tenure_core::wake`]). What is here brings it to an
//! agent that sends no event because it is idle. Beside Claude Code and opencode a process of tenure waits (`waiter`)
//! for a file in a private directory (`bell`), which the sender makes (`sender`). Codex has a command of its own, which
//! the sender runs.
//!
//! Only a process of the same user on the same machine can make that file, and only what has one is taken. So a row that
//! somebody else wrote into a shared store starts no turn.

mod bell;
mod program;
mod receipt;
mod sender;
mod waiter;

pub use receipt::await_receipt;
pub use sender::{WakeCommand, check_person, start_turn};
pub use waiter::{after_event, wait, waits_after};
