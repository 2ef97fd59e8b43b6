//! Agents run unattended: their streams, as they were captured from the real programs, and their command lines.

#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

mod captured;
mod commands;
mod imitation;
mod properties;
mod table;
