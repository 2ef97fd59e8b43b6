//! What people see on a terminal: sessions as rows, in full and live.
//!
//! The leaves come first: colours, lines that cannot be forged, columns that fit, the words of a state. Above them stand
//! a list of sessions and one session in full, which the verbs print too, and [`top`], which shows both live. None of
//! it has a rule or a query of its own: it renders what the service answers.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod build;
pub mod colour;
pub mod columns;
pub mod details;
pub mod lines;
pub mod notify;
pub mod screen;
pub mod session_list;
pub mod sessions;
pub mod standing;
pub mod survivors;
pub mod timeline;
pub mod top;
pub mod tree;
