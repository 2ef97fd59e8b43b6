//! Conversations: what continues for an agent and an item.
//!
//! A conversation belongs to (agent, role, item): exactly one record each, whose native id can change. Two roles on
//! one item never resume each other's. Every native id that it ever had stays in its history. An item can be linked to another one; it then continues that one's
//! conversations, one level deep, and its own records wait until it is unlinked.
//!
//! *Crash*: a record changes in one transaction with its history, or not at all. *Clock jump*: the wall clock
//! decides only how long a closed conversation can come back, and is shown. *Older version*: binaries without
//! this noun are not allowed to write a store that has it.

pub mod closing;
pub mod contamination;
pub mod fitness;
pub mod link;
mod record;

pub use record::{
    Author, Conversation, Current, Elsewhere, Home, IdEnd, ItemLink, ItemState, PastId, WhyEnded,
};
