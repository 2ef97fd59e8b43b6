//! The coding agents: what each sends to its hooks and understands in return, how it is started and
//! resumed, and which settings make it call us.
//!
//! Pure: text comes in and goes out, nothing here opens a file or looks at a process. What an agent looks
//! like in the process table is core's, because identity is decided there.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod install;
