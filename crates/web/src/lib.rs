//! What programs and browsers reach tenure by: the Model Context Protocol, over the standard streams of `tenure mcp`; the
//! HTTP API and the dashboard of `tenure serve`.
//!
//! Surfaces like the verbs: they parse a request, make one call, and render the answer. They have no rule, no query and
//! no shape of their own.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

mod api;
pub mod mcp;
mod page;
pub mod serve;
