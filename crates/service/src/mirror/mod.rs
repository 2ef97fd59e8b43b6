//! Mirrors: files that tenure keeps up to date for tools that can only read files.
//!
//! A mirror is never the source of truth. Its content is rendered here, from state that was read after its path
//! was locked. It names its writer, so [`compare`] can recognise a stale or foreign file. The surface decides
//! where the file is and how it is written.

pub mod compare;
pub mod content;
