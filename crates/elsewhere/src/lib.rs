//! What reaches a session from elsewhere: a person's answer to what its agent asks, and messages that start a turn.
//!
//! Both wait in a hook beside the agent, and both are files that only processes of the same user on the same machine can
//! make.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod answers;
pub mod wake;
