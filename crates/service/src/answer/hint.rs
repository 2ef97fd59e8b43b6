//! What to do next: a command with its reason, as data.

use serde::Serialize;

/// Who may be shown a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum For {
    Anyone,
    /// A person only: it takes something from somebody, or cannot be undone. Models run what they read.
    Person,
}

/// Who reads an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    Person,
    /// A model, or a program that may pass on what it reads to one.
    Program,
}

/// A command to run and its reason, or a plain step where no verb of ours helps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Hint {
    /// The verb to run; none for a step outside tenure.
    pub verb: Option<&'static str>,
    /// Its arguments, each as one word; a word in capitals is to be filled in.
    pub args: Vec<String>,
    /// What running it is for, after the command ("to wait for it"); without a verb, the whole step.
    pub why: String,
    #[serde(rename = "for")]
    pub audience: For,
}

impl Hint {
    /// A command of ours; `why` goes on after it: "to see who holds it", "for details".
    pub fn run<A: Into<String>>(
        verb: &'static str,
        args: impl IntoIterator<Item = A>,
        why: impl Into<String>,
    ) -> Self {
        Self {
            verb: Some(verb),
            args: args.into_iter().map(Into::into).collect(),
            why: why.into(),
            audience: For::Anyone,
        }
    }

    /// A step that is no command of ours.
    pub fn step(what: impl Into<String>) -> Self {
        Self {
            verb: None,
            args: Vec::new(),
            why: what.into(),
            audience: For::Anyone,
        }
    }

    /// The same for a person only.
    #[must_use]
    pub fn for_person(mut self) -> Self {
        self.audience = For::Person;
        self
    }

    pub fn is_for(&self, reader: Reader) -> bool {
        self.audience == For::Anyone || reader == Reader::Person
    }
}

impl From<&str> for Hint {
    fn from(step: &str) -> Self {
        Self::step(step)
    }
}

impl From<String> for Hint {
    fn from(step: String) -> Self {
        Self::step(step)
    }
}
