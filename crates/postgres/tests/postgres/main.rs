//! The PostgreSQL backend, on a real server: `scripts/test --stage postgres`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

mod clock;
mod conformance;
mod copying;
mod durability;
mod encryption;
mod faults;
mod outcome;
mod queued;
mod races;
mod relayed;
mod support;
