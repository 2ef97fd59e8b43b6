//! The dashboard in a real Chromium, on a real `tenure serve` with real processes.
//!
//! These tests need Chromium, node and playwright-core (`scripts/tools`), so they are ignored unless asked for;
//! `scripts/test` asks for them.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

mod acts;
#[path = "../shared/fill.rs"]
mod fill;
mod filters;
mod fleet;
mod hosts;
mod looks;
mod questions;
mod runs;
mod strangers;
mod stream;
mod support;
mod timeline;
mod views;
