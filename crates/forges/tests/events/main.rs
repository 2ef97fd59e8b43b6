//! What the deliveries of each forge mean, which of them are genuine, and what is asked of a forge.
//!
//! The payloads in `tests/fixtures` were written from the forges' documentation; they are not captures.

#![allow(clippy::unwrap_used)]

mod again;
mod api;
mod conformance;
mod forgejo;
mod genuine;
mod github;
mod gitlab;
mod nothing_panics;
mod server;
mod support;
mod tls;
