//! Notices: what a session must be told at its next call or hook, at least once.
//!
//! A notice waits in the store until it was written where its reader looks; only then is it marked as
//! told ([`counts`] is the rule). *Crash*: between the write and the mark, it is told twice; never not at
//! all. *Older version*: one that marks before it writes may lose it.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::id::{Epoch, SessionId, stored_enum};
use crate::time::Timestamp;

/// How many notices one answer carries at most; the rest is counted and comes with the next.
pub const MOST_AT_ONCE: usize = 50;

/// A notice's place in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NoticeId(pub u64);

stored_enum! {
    /// What a notice is about.
    #[derive(Serialize, Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "snake_case")]
    NoticeKind, "notice" {
        /// A claim was taken from the session.
        Lost = "lost",
        /// A claim was handed to the session.
        Handed = "handed",
        /// Another process is in the session's conversation.
        Twin = "twin",
        /// Somebody told it something.
        Told = "told",
        /// A tool that it used was under another session's feet.
        Warned = "warned",
    }
}

/// Something that a session must be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Its place in the store; none before it is kept.
    pub id: Option<NoticeId>,
    pub to: SessionId,
    pub kind: NoticeKind,
    pub message: String,
    /// The claim key that it is about.
    pub key: Option<String>,
    /// The epoch that the key has now.
    pub epoch: Option<Epoch>,
    pub from: Option<SessionId>,
    pub at: Timestamp,
}

/// Notices that wait to be told, those of losses first, then the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pending {
    pub first: Vec<Notice>,
    pub more: usize,
}

impl Deref for Pending {
    type Target = [Notice];

    fn deref(&self) -> &[Notice] {
        &self.first
    }
}

/// Who a session is, as far as it matters for what reaches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// A model whose agent's hooks speak to it.
    Model,
    Person,
    /// A program, or an agent without hooks.
    Program,
}

/// What a notice was written to, after the write succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// The answer of a hook, in the part that the model reads.
    Hook,
    Terminal,
    /// The JSON object, to a pipe or a file.
    Json,
    /// Text, to a pipe or a file.
    Text,
    /// Text beside a call that was asked to be quiet: its caller does not read what it says.
    Quiet,
    /// Nothing: `/dev/null`, a full disk, a reader that left.
    Nowhere,
}

/// Whether a notice of this kind counts as told once it was written there.
///
/// A loss is told until its reader could not miss it: a model's tools and helpers run tenure as well, and
/// what they print may never get to the model.
pub fn counts(kind: NoticeKind, reader: Reader, channel: Channel) -> bool {
    match (channel, kind, reader) {
        (Channel::Quiet | Channel::Nowhere, _, _) => false,
        (Channel::Hook, _, _) => true,
        (_, NoticeKind::Lost, Reader::Model) => false,
        (Channel::Terminal, NoticeKind::Lost, Reader::Person) => true,
        (_, NoticeKind::Lost, Reader::Person) => false,
        (Channel::Terminal | Channel::Json | Channel::Text, _, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_as_told() {
        use Channel as C;
        use NoticeKind as N;
        use Reader as R;
        let all = [C::Hook, C::Terminal, C::Json, C::Text, C::Quiet, C::Nowhere];
        let rows = [
            (N::Lost, R::Model, [true, false, false, false, false, false]),
            (N::Lost, R::Person, [true, true, false, false, false, false]),
            (N::Lost, R::Program, [true, true, true, true, false, false]),
            (N::Told, R::Model, [true, true, true, true, false, false]),
            (N::Told, R::Person, [true, true, true, true, false, false]),
            (N::Told, R::Program, [true, true, true, true, false, false]),
            (N::Twin, R::Model, [true, true, true, true, false, false]),
            (N::Handed, R::Model, [true, true, true, true, false, false]),
            (N::Warned, R::Model, [true, true, true, true, false, false]),
        ];
        for (kind, reader, expected) in rows {
            let got = all.map(|channel| counts(kind, reader, channel));
            assert_eq!(got, expected, "{kind:?} for {reader:?} in {all:?}");
        }
    }
}
