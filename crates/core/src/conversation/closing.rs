//! When a conversation closes, and how long it can come back.
//!
//! A conversation closes with the last open of its items: the root and all that are linked to it.

use std::time::Duration;

use super::record::{Conversation, ItemState};
use crate::time::Timestamp;

/// Whether all items of a conversation are closed.
pub fn is_due(items: &[ItemState]) -> bool {
    items.iter().all(|item| item.closed_at.is_some())
}

/// Whether what a conversation had when it closed still belongs to it.
pub fn can_come_back(conversation: &Conversation, now: Timestamp, grace: Duration) -> bool {
    let closed_at = conversation.closed_at;
    closed_at.is_some_and(|at| at.age_at(now) <= grace)
}

/// Whether what was kept for a closed item can go.
pub fn is_over(item: &ItemState, now: Timestamp, grace: Duration) -> bool {
    item.closed_at.is_some_and(|at| at.age_at(now) > grace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AgentName, WorkerRole};
    use crate::key::Key;

    fn item(closed_at: Option<i64>) -> ItemState {
        let item = Key::parse("issue:acme/web#6").unwrap();
        ItemState {
            closed_at: closed_at.map(Timestamp),
            ..ItemState::plain(item)
        }
    }

    #[test]
    fn a_conversation_closes_with_the_last_of_its_items() {
        assert!(!is_due(&[item(Some(1)), item(None)]));
        assert!(is_due(&[item(Some(1)), item(Some(2))]));
    }

    #[test]
    fn what_was_kept_for_an_item_goes_when_it_can_no_longer_come_back() {
        let over = |closed_at: Option<i64>, now: i64| {
            is_over(&item(closed_at), Timestamp(now), Duration::from_millis(100))
        };
        assert!(!over(Some(50), 150));
        assert!(over(Some(50), 151));
        assert!(!over(None, i64::MAX), "it is open");
        assert!(!over(Some(50), 0), "the clock was set back");
    }

    #[test]
    fn a_closed_conversation_comes_back_within_the_grace() {
        let at = |closed_at: Option<i64>, now: i64| {
            let conversation = Conversation {
                closed_at: closed_at.map(Timestamp),
                ..Conversation::none(
                    AgentName::known("claude"),
                    WorkerRole::default(),
                    item(None).item,
                )
            };
            can_come_back(&conversation, Timestamp(now), Duration::from_millis(100))
        };
        assert!(at(Some(50), 150));
        assert!(!at(Some(50), 151));
        assert!(!at(None, 0));
        assert!(
            at(Some(50), 0),
            "a clock that was set back takes nothing away"
        );
    }
}
