//! What an agent's own registry of live processes says that a session does.

use tenure_core::witness::{OwnWord, Subject};

/// What the agent itself says of this process, where it keeps a registry.
pub(super) fn own_word(_subject: &Subject) -> Option<OwnWord> {
    None
}
