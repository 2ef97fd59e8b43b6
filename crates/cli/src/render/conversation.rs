//! The conversation of a session as people read it.

use tenure_service::view::ConversationView;

use crate::lines::Lines;

/// The conversation of an item that a session is in.
pub fn conversation(one: &ConversationView) -> Lines {
    let run = one.run.as_ref();
    let run = run.map_or_else(String::new, |run| format!(", run {run}"));
    let item = &one.item;
    format!(
        "  {:<13} {item} (revision {}{run})",
        "conversation", one.revision
    )
    .into()
}
