//! Why a genuine delivery cannot be read.

use tenure_core::id::Malformed;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("the body is not JSON ({0})")]
    NotJson(String),
    #[error("the body is not a JSON object")]
    NotAnObject,
    #[error("the delivery has no header {0}")]
    NoHeader(&'static str),
    #[error("the body has no {0}")]
    Missing(&'static str),
    #[error("what it is about has no valid key ({})", .0.why)]
    Item(Malformed),
}

impl From<Malformed> for Unreadable {
    fn from(error: Malformed) -> Self {
        Unreadable::Item(error)
    }
}
