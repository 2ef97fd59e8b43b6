//! The id of a commit.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The id of a commit: 40 hexadecimal digits, or 64 in a repository with SHA-256; lower case.
///
/// Text from outside becomes a command's argument only as one of these.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a commit")]
pub struct NotACommitId;

impl CommitId {
    pub fn parse(text: &str) -> Result<Self, NotACommitId> {
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if matches!(text.len(), 40 | 64) && is_hex {
            return Ok(Self(text.to_ascii_lowercase()));
        }
        Err(NotACommitId)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As much of it as people compare.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for CommitId {
    type Error = NotACommitId;

    fn try_from(text: String) -> Result<Self, NotACommitId> {
        Self::parse(&text)
    }
}

impl From<CommitId> for String {
    fn from(id: CommitId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_id_is_one() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(CommitId::parse(id).unwrap().as_str(), id);
        assert_eq!(
            CommitId::parse(&id.to_uppercase()).unwrap().as_str(),
            id,
            "one spelling"
        );
        assert!(CommitId::parse(&"a".repeat(64)).is_ok());
        for wrong in ["", "HEAD", "../x", "--all", &id[1..], &format!("{id}\n")] {
            assert_eq!(CommitId::parse(wrong), Err(NotACommitId), "{wrong:?}");
        }
        assert!(CommitId::parse(&"ü".repeat(20)).is_err());
    }
}
