//! How a use case came out, as every surface tells it.

/// Classes of failure; a surface has one code for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Refused, or no, for a reason of its own.
    Refused,
    /// The request is malformed.
    Usage,
    /// Another holds it.
    Held,
    /// There is no such thing, or nobody.
    NotFound,
    /// The claim is another's now.
    Lost,
    /// A check failed, or identity is ambiguous or contradictory.
    Invalid,
    /// Waiting took too long.
    TimedOut,
    /// The store is unavailable, damaged or too new.
    Store,
    /// Liveness is unknown, and an answer was asked for.
    CannotTell,
    /// A fault of tenure itself.
    Internal,
}
