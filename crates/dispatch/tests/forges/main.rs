//! What is asked of a forge, and what its answers mean.

#![allow(clippy::unwrap_used)]

mod api;
mod conformance;
mod server;
mod tls;
