//! The variables that a skill may use when an event starts it.

use tenure_core::forge::{ForgeEvent, Thread};
use tenure_core::key::Key;

use crate::template::Variables;

/// The variables of a prompt for these events, oldest first. Every name is always defined, possibly
/// as an empty text. `thread` is everything that people wrote about the item, if the forge told it; else what the events
/// tell.
///
/// `last` is how the previous run ended; the caller sets it.
pub fn variables(item: &Key, events: &[ForgeEvent], thread: Option<&Thread>) -> Variables {
    let newest = events.last();
    let text = |of: fn(&ForgeEvent) -> String| newest.map(of).unwrap_or_default();
    let news: Vec<String> = events.iter().map(|event| news(item, event)).collect();
    let pairs = [
        ("item", item.to_string()),
        ("repo", text(|event| event.repo.clone())),
        ("event", text(|event| event.kind.as_str().to_owned())),
        ("title", text(|event| event.title.clone())),
        ("body", text(|event| event.body.clone())),
        ("url", text(|event| event.url.clone().unwrap_or_default())),
        ("author", text(|event| event.actor.name())),
        ("labels", text(|event| event.labels.join(", "))),
        ("branch", text(branch)),
        (
            "base",
            text(|event| event.pull.clone().unwrap_or_default().base),
        ),
        ("thread", told(thread, newest, &news)),
        ("news", news.join("\n\n")),
        ("last", String::new()),
    ];
    let pairs = pairs.into_iter();
    pairs
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The longest thread in a prompt, in bytes.
const MAX_THREAD: usize = 100_000;

fn told(thread: Option<&Thread>, newest: Option<&ForgeEvent>, news: &[String]) -> String {
    match (thread, newest) {
        (Some(thread), _) => thread.told(MAX_THREAD),
        (None, Some(event)) => {
            let head = format!("{}\n{}", event.title, event.body);
            [head, news.join("\n\n")].join("\n\n")
        }
        (None, None) => String::new(),
    }
}

fn branch(event: &ForgeEvent) -> String {
    let pull = event.pull.as_ref().map(|pull| pull.branch.clone());
    pull.or_else(|| event.branch.clone()).unwrap_or_default()
}

/// One event in words, with its actor, and with its item if that is another one of the conversation.
fn news(item: &Key, event: &ForgeEvent) -> String {
    let mut told = format!("{} by {}", event.kind.as_str(), event.actor.name());
    if let Some(other) = event.item.as_ref().filter(|other| *other != item) {
        told.push_str(&format!(" in {other}"));
    }
    if let Some(state) = event.review {
        told.push_str(&format!(" ({})", state.as_str()));
    }
    if let Some(place) = &event.place {
        let line = place
            .line
            .map(|line| format!(":{line}"))
            .unwrap_or_default();
        told.push_str(&format!(" on {}{line}", place.path));
    }
    let text = event.comment.as_deref().unwrap_or_default();
    if !text.is_empty() {
        told.push_str(&format!(":\n{text}"));
    }
    if event.is_cut {
        told.push_str("\n(The text was too long and is cut here.)");
    }
    told
}

#[cfg(test)]
mod tests {
    use tenure_core::forge::{CodePlace, EventKind, Person, ReviewState, issue_item, pull_item};

    use super::*;

    #[test]
    fn a_prompt_has_what_every_event_told() {
        let item = issue_item("acme/web", 6).unwrap();
        let mut opened = ForgeEvent::new(EventKind::IssueOpened, "acme/web");
        opened.actor = Person::named("alice");
        opened.title = "Login fails".into();
        let mut review = opened.clone();
        review.kind = EventKind::PullReviewComment;
        review.comment = Some("Why?".into());
        review.review = Some(ReviewState::Commented);
        review.place = Some(CodePlace {
            path: "a.rs".into(),
            line: Some(3),
            hunk: None,
        });
        let all = variables(&item, &[opened, review], None);
        assert_eq!(all["title"], "Login fails");
        assert_eq!(
            all["news"],
            "issue.opened by alice\n\npr.review_comment by alice (commented) on a.rs:3:\nWhy?"
        );
        let mut pull = ForgeEvent::new(EventKind::PullOpened, "acme/web");
        pull.actor = Person::named("bob");
        pull.item = pull_item("acme/web", 9).ok();
        let other = variables(&item, &[pull], None);
        assert_eq!(other["news"], "pr.opened by bob in pr:acme/web#9");
        let none = variables(&item, &[], None);
        assert_eq!(none.len(), all.len(), "every name is always there");
    }
}
