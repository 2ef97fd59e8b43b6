//! The few keys that everybody wants, in the spaces in which they are judged.
//!
//! Keys of one space are judged together, so what one call does to several of them is one instant. Calls
//! also name keys of several spaces: those are judged by their part in each.

/// Keys that a few workers play with alone: for the first there is a line, the second is held for long by
/// some while others want both, and the third is left by holders whose processes go on.
pub const LINE: &[&str] = &["wp:line/1", "wp:line/2", "wp:line/3"];

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
