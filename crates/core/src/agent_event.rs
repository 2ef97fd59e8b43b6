//! The meaning of an agent's event, independent of the agent's own name for it.

use serde::{Deserialize, Serialize};

use crate::text;

/// What an event means for the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Happening {
    /// A conversation starts, or starts again.
    Start,
    /// A conversation starts as a copy of another.
    Fork,
    SubagentStart,
    SubagentStop,
    /// The worker is about to exit. If it continues, this has no effect.
    Leaves,
    End {
        /// Whether the worker ends with it.
        ends_worker: bool,
        /// The agent's reason.
        reason: String,
    },
    Other,
}

/// A worker inside a session, without a process of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subagent {
    /// The agent's id for it.
    pub id: String,
    pub kind: Option<String>,
}

/// What a session asks a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum QuestionText {
    /// The command, the file or the question itself.
    Exactly(String),
    /// Only that it asks, in words for people; it does not replace the question itself.
    Roughly(String),
}

/// How much of a question is stored, in characters.
const MAX_QUESTION: usize = 120;

impl QuestionText {
    /// The question on one line, safe to show.
    pub fn line(&self) -> String {
        let (QuestionText::Exactly(words) | QuestionText::Roughly(words)) = self;
        text::clipped(&text::line(words.trim()), MAX_QUESTION)
    }

    /// What it asks now, if it asked for `before` and is still waiting.
    pub fn after(&self, before: Option<&str>) -> String {
        match (self, before) {
            (QuestionText::Roughly(_), Some(before)) => before.to_owned(),
            _ => self.line(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_one_short_line() {
        let asked =
            QuestionText::Exactly(format!("permission for `a\nb\u{202e}{}`", "x".repeat(500)));
        let line = asked.line();
        assert!(
            line.starts_with("permission for `a\\nb\\u{202e}xx"),
            "{line}"
        );
        assert_eq!(line.chars().count(), 120);
    }

    #[test]
    fn a_rough_word_does_not_replace_the_question() {
        let rough = QuestionText::Roughly("Claude needs your permission".into());
        assert_eq!(
            rough.after(Some("permission for `ls`")),
            "permission for `ls`"
        );
        assert_eq!(rough.after(None), "Claude needs your permission");
        let exact = QuestionText::Exactly("permission for `rm`".into());
        assert_eq!(
            exact.after(Some("permission for `ls`")),
            "permission for `rm`"
        );
    }
}
