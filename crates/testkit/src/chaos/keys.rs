//! The few keys that everybody wants, in the spaces in which they are judged.
//!
//! Keys of one space are judged together, so what one call does to several of them is one instant. Calls
//! also name keys of several spaces: those are judged by their part in each.

/// The spaces: single keys, keys that are claimed together, and paths that overlap.
pub const SPACES: &[&[&str]] = &[
    &["wp:chaos/1"],
    &["issue:acme/web#7"],
    &["wp:set/1", "wp:set/2", "wp:set/3"],
    &[
        "path:acme/web:docs/**",
        "path:acme/web:src/**",
        "path:acme/web:src/*/x.rs",
        "path:acme/web:src/db/**",
        "path:acme/web:src/db/x.rs",
    ],
];
