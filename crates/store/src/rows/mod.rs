//! The rows of each noun, for every engine.

pub(crate) mod claim;
mod conversation;
mod delivery;
pub(crate) mod doubt;
mod event;
mod job;
pub(crate) mod keeper;
mod line;
mod metadata;
mod mirror;
mod mission;
mod native;
pub mod notice;
mod process;
mod reply;
mod retention;
mod run;
pub(crate) mod session;
mod spend;
mod token;
mod transcript;
mod undecided;
mod write;
