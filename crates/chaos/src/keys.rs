//! The few keys that all workers want, in the spaces in which they are judged.
//!
//! Keys of one space are judged together, so a call that changes several of them is one instant. If
//! a call names keys of several spaces, its part in each is judged separately.

/// Keys that only a few workers use: there is a line for the first; the second is held for long by
/// some workers while others want both; and the third is left by holders whose processes continue.
pub const LINE: &[&str] = &["wp:line/1", "wp:line/2", "wp:line/3"];

/// Keys that workers on a server hold in silence, while workers of the other host want them; each is a space.
pub const SILENT: &[&str] = &["wp:silent/1", "wp:silent/2"];

/// The key that a crowd of both hosts waits for, on a server.
pub const CROWD: &[&str] = &["wp:crowd/1"];

/// The spaces: single keys, keys that are claimed together, and overlapping paths.
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
