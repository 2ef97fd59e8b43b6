//! What programs reach tenure by: the Model Context Protocol, over the standard streams of `tenure mcp`.
//!
//! A surface like the verbs: it parses a request, makes one call, and renders the answer. It has no rule, no query and
//! no shape of its own.

pub mod mcp;
