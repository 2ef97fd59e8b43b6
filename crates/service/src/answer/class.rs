//! How a use case failed, in the classes that every surface reports.

/// Classes of failure; a surface has one code for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Refused, or the answer is no.
    Refused,
    /// The request is malformed.
    Usage,
    /// Another session holds it.
    Held,
    /// No such thing, or no session here.
    NotFound,
    /// Another session has the claim now.
    Lost,
    /// A check failed, or identity is ambiguous or contradictory.
    Invalid,
    /// Waiting took too long.
    TimedOut,
    /// The store is unavailable, damaged or too new.
    Store,
    /// The caller needs an answer, but liveness is unknown.
    CannotTell,
    /// A bug in tenure.
    Internal,
}
