//! Notices: messages that a session gets at its next call or hook, at least once.
//!
//! A notice is pending in the store until it was written where its reader looks. Only then is it marked as
//! delivered ([`counts`] is the rule). *Crash* between the write and the mark: it is delivered twice, never
//! lost. *Older version*: one that marks before it writes may lose it.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::id::{Epoch, SessionId, stored_enum};
use crate::time::Timestamp;
use crate::woken::WakeSender;

/// How many notices one answer has at most; the rest is counted and comes with the next.
pub const MAX_AT_ONCE: usize = 50;

/// How many messages of one sender wait for a session at most.
pub const MAX_WAITING: usize = 20;

/// A notice's position in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NoticeId(pub u64);

stored_enum! {
    #[derive(Serialize, Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "snake_case")]
    NoticeKind, "notice" {
        /// A claim was taken from the session.
        Lost = "lost",
        /// A claim was handed to the session.
        Handed = "handed",
        /// Another process is in the session's conversation.
        Twin = "twin",
        /// Someone sent it a message.
        Told = "told",
        /// A tool that it used conflicted with another session.
        Warned = "warned",
    }
}

/// A message for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Its position in the store; none before it is stored.
    pub id: Option<NoticeId>,
    pub to: SessionId,
    pub kind: NoticeKind,
    pub message: String,
    /// The claim key that it is about.
    pub key: Option<String>,
    /// The key's current epoch.
    pub epoch: Option<Epoch>,
    pub from: Option<SessionId>,
    pub at: Timestamp,
    /// Who sent it, if it may start a turn.
    pub wakes: Option<WakeSender>,
    /// When it was taken to start one.
    pub woke_at: Option<Timestamp>,
}

impl Notice {
    /// A claim that its holder keeps under a higher epoch.
    pub fn of_raised_epoch(
        to: SessionId,
        key: &str,
        epoch: Epoch,
        why: &str,
        at: Timestamp,
    ) -> Self {
        let message = format!("you still hold {key}, now with epoch {}: {why}", epoch.0);
        Self::about_claim(NoticeKind::Told, to, key, epoch, at, message)
    }

    /// A grant whose commit was not confirmed when it was asked for.
    pub fn of_late_grant(to: SessionId, key: &str, epoch: Epoch, at: Timestamp) -> Self {
        let message = format!(
            "{key} was granted to you with epoch {} by a command that could not confirm it",
            epoch.0
        );
        Self::about_claim(NoticeKind::Handed, to, key, epoch, at, message)
    }

    fn about_claim(
        kind: NoticeKind,
        to: SessionId,
        key: &str,
        epoch: Epoch,
        at: Timestamp,
        message: String,
    ) -> Self {
        Self {
            id: None,
            to,
            kind,
            message,
            key: Some(key.to_owned()),
            epoch: Some(epoch),
            from: None,
            at,
            wakes: None,
            woke_at: None,
        }
    }
}

/// Pending notices: losses first, then oldest first.
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

/// The kind of a session's reader, as far as delivery depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeReader {
    /// A model that reads the answers of its agent's hooks.
    Model,
    Person,
    /// A program, or an agent without hooks.
    Program,
}

/// Where a notice was written, after the write succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// What an agent gives its model: a hook's answer, in the part that the model reads, or the result of a tool.
    Hook,
    Terminal,
    /// The JSON object, to a pipe or a file.
    Json,
    /// Text, to a pipe or a file.
    Text,
    /// Text of a quiet call, whose caller does not read it.
    Quiet,
    /// Nothing: `/dev/null`, a full disk, a reader that left.
    Nowhere,
}

/// Whether a notice of this kind counts as delivered once it was written there.
///
/// A loss is repeated until its reader cannot have missed it: a model's tools and helpers run tenure too, and
/// what they print may never reach the model.
pub fn counts(kind: NoticeKind, reader: NoticeReader, channel: Channel) -> bool {
    match (channel, kind, reader) {
        (Channel::Quiet | Channel::Nowhere, _, _) => false,
        (Channel::Hook, _, _) => true,
        (_, NoticeKind::Lost, NoticeReader::Model) => false,
        (Channel::Terminal, NoticeKind::Lost, NoticeReader::Person) => true,
        (_, NoticeKind::Lost, NoticeReader::Person) => false,
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
        use NoticeReader as R;
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
