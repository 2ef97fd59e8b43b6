//! Mirrors: files that tenure keeps up to date for tools that can only read files.
//!
//! A mirror is never the truth. What stands in it is rendered here, from state that was read after its
//! path was locked, and carries its writer, so that [`compare`] can tell a stale or a foreign file from
//! one's own. Where a file is, and how it is written, is the surface's to know.

pub mod compare;
pub mod content;
