//! Tokens of the HTTP API: who may use it, and for what.
//!
//! A token is `tenure.NAME.SECRET`. The store keeps a digest of the whole text, so nobody who reads the store can use it.
//! It counts only for the user and the machine that it was made for: what the server does is done as that user.

use std::collections::BTreeSet;
use std::fmt;

use crate::id::Malformed;
use crate::reason::Reason;
use crate::time::Timestamp;

/// What a token allows. None of them includes another.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Every list, without prompts, questions and what runs print.
    Read,
    /// Prompts, questions and what runs print.
    Logs,
    /// Acts on sessions, claims and runs.
    Act,
    /// Dropping conversations.
    Admin,
}

impl Scope {
    pub const ALL: [Self; 4] = [Self::Read, Self::Logs, Self::Act, Self::Admin];

    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|scope| scope.as_str() == text);
        found.ok_or_else(|| Malformed::new("scope", text, "expected read, logs, act or admin"))
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Logs => "logs",
            Self::Act => "act",
            Self::Admin => "admin",
        }
    }
}

/// The name of a token, which stands in the log beside what it did.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenName(String);

impl TokenName {
    pub const MAX_LENGTH: usize = 40;

    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let bad = |why: &str| Err(Malformed::new("token", text, why));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if text.is_empty() || !text.bytes().all(is_plain) {
            return bad("expected letters, digits, - and _");
        }
        if text.len() > Self::MAX_LENGTH {
            return bad("it is longer than 40 characters");
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text of a token of this name.
    pub fn with_secret(&self, secret: &str) -> String {
        format!("{MARK}.{self}.{secret}")
    }

    /// The name in the text of a token.
    pub fn of_text(text: &str) -> Option<Self> {
        let (name, secret) = text
            .strip_prefix(MARK)?
            .strip_prefix('.')?
            .split_once('.')?;
        Self::parse(name).ok().filter(|_| !secret.is_empty())
    }
}

/// The name in which a browser acts that logged in.
pub const BROWSER: &str = "browser";

/// How the text of every token begins, so that it is found where it should not be.
const MARK: &str = "tenure";

impl fmt::Display for TokenName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A token as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiToken {
    /// The machine and the user that it is for.
    pub owner: String,
    pub name: TokenName,
    /// SHA-256 of its text.
    pub hash: String,
    pub scopes: BTreeSet<Scope>,
    pub created_at: Timestamp,
}

/// An act in the name of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByToken {
    pub name: TokenName,
    pub reason: Option<Reason>,
}

impl ByToken {
    /// The reason of an event that it led to, as the log has it.
    pub fn on_record(&self, reason: Option<String>) -> String {
        match reason.or_else(|| self.reason.clone().map(String::from)) {
            Some(reason) => format!("{reason} (token {})", self.name),
            None => format!("token {}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_its_name() {
        let name = TokenName::parse("ci-1").expect("a name");
        let text = name.with_secret("00ff");
        assert_eq!(text, "tenure.ci-1.00ff");
        assert_eq!(TokenName::of_text(&text), Some(name));
        for text in [
            "",
            "tenure",
            "tenure.",
            "tenure..x",
            "tenure.a b.x",
            "tenure.a.",
            "a.b.c",
        ] {
            assert_eq!(TokenName::of_text(text), None, "{text}");
        }
    }

    #[test]
    fn names_that_would_not_be_plain_in_a_log_are_refused() {
        for text in ["", "a b", "a.b", "a\u{1b}", "ü", &"a".repeat(41)] {
            assert!(TokenName::parse(text).is_err(), "{text:?}");
        }
    }
}
