//! What is asked about claims.

use crate::id::{Epoch, RequestId};
use crate::key::Key;
use crate::view::ClaimView;

/// A request for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The item.
    pub key: Key,
    /// The caller's own name for the request.
    pub request: Option<RequestId>,
    /// Refuse what the session already holds.
    pub once: bool,
    /// Take up a finished item again.
    pub reopen: bool,
    /// What it is for.
    pub note: Option<String>,
}

/// A return of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseRequest {
    /// The item.
    pub key: Key,
    /// The epoch that the caller believes it holds.
    pub epoch: Option<Epoch>,
    /// Whether the item is finished.
    pub done: bool,
}

/// A handover to another session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffRequest {
    /// The item.
    pub key: Key,
    /// The session that gets it.
    pub to: String,
    /// The epoch that the caller believes it holds.
    pub epoch: Option<Epoch>,
    /// What it is for.
    pub note: Option<String>,
}

/// A taking from whoever holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeoverRequest {
    /// The item.
    pub key: Key,
    /// Only if this session holds it.
    pub from: Option<String>,
    /// Only if this is its epoch.
    pub epoch: Option<Epoch>,
    /// What it is for.
    pub note: Option<String>,
}

/// A claim that was granted.
pub type Grant = ClaimView;

/// A question whether the caller may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardRequest {
    /// The item.
    pub key: Key,
    /// The epoch that the caller believes it holds.
    pub epoch: Option<Epoch>,
}
