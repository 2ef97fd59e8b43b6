//! What the deliveries of each forge mean, and which of them are genuine.
//!
//! The payloads in `tests/fixtures` were written from the forges' documentation; they are not captures.

#![allow(clippy::unwrap_used)]

mod again;
mod forgejo;
mod genuine;
mod github;
mod gitlab;
mod nothing_panics;
mod support;
