//! The names of events, as rules and stored jobs use them.

use serde::{Deserialize, Serialize};

use crate::id::{Malformed, stored_enum};

/// The same name in JSON as in rules.
macro_rules! by_name {
    ($name:ident) => {
        impl From<$name> for &'static str {
            fn from(value: $name) -> Self {
                value.as_str()
            }
        }

        impl TryFrom<String> for $name {
            type Error = Malformed;

            fn try_from(text: String) -> Result<Self, Malformed> {
                Self::parse(&text)
            }
        }
    };
}

stored_enum! {
    /// What happened.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(try_from = "String", into = "&'static str")]
    EventKind, "event" {
        IssueOpened = "issue.opened",
        IssueEdited = "issue.edited",
        IssueClosed = "issue.closed",
        IssueReopened = "issue.reopened",
        IssueDeleted = "issue.deleted",
        IssueLabeled = "issue.labeled",
        IssueAssigned = "issue.assigned",
        IssueUnassigned = "issue.unassigned",
        IssueComment = "issue.comment",
        PullOpened = "pr.opened",
        /// New commits.
        PullPushed = "pr.pushed",
        PullEdited = "pr.edited",
        /// No longer a draft.
        PullReady = "pr.ready",
        PullClosed = "pr.closed",
        PullMerged = "pr.merged",
        PullReopened = "pr.reopened",
        PullLabeled = "pr.labeled",
        PullAssigned = "pr.assigned",
        PullUnassigned = "pr.unassigned",
        PullComment = "pr.comment",
        PullReview = "pr.review",
        /// A review that approves. Only rules name it: the event is `pr.review`.
        PullApproved = "pr.approved",
        /// A review that asks for changes. Only rules name it: the event is `pr.review`.
        PullChangesRequested = "pr.changes_requested",
        /// A comment on lines of the change.
        PullReviewComment = "pr.review_comment",
        PullReviewRequested = "pr.review_requested",
        BranchDeleted = "branch.deleted",
        Push = "push",
        RepoRenamed = "repo.renamed",
        RepoDeleted = "repo.deleted",
        Ping = "ping",
    }
}
by_name!(EventKind);

impl EventKind {
    pub fn is_of_issue(self) -> bool {
        self.as_str().starts_with("issue.")
    }

    pub fn is_of_pull(self) -> bool {
        self.as_str().starts_with("pr.")
    }

    /// Whether its actor wrote the text that comes with it.
    pub fn is_writing(self) -> bool {
        use EventKind as K;
        matches!(
            self,
            K::IssueOpened
                | K::IssueEdited
                | K::IssueComment
                | K::PullOpened
                | K::PullEdited
                | K::PullComment
                | K::PullReview
                | K::PullReviewComment
        )
    }

    pub fn is_comment(self) -> bool {
        use EventKind as K;
        matches!(
            self,
            K::IssueComment | K::PullComment | K::PullReview | K::PullReviewComment
        )
    }

    /// Whether its item is over now.
    pub fn is_closing(self) -> bool {
        use EventKind as K;
        matches!(
            self,
            K::IssueClosed | K::IssueDeleted | K::PullClosed | K::PullMerged | K::BranchDeleted
        )
    }

    pub fn is_reopening(self) -> bool {
        matches!(self, EventKind::IssueReopened | EventKind::PullReopened)
    }

    /// Whether one of two events, by their names, closes an item and the other opens it again.
    pub fn are_opposite(one: &str, other: &str) -> bool {
        let kinds = [one, other].map(Self::parse);
        let [Ok(one), Ok(other)] = kinds else {
            return false;
        };
        one.is_closing() && other.is_reopening() || one.is_reopening() && other.is_closing()
    }

    pub fn is_labeling(self) -> bool {
        matches!(self, EventKind::IssueLabeled | EventKind::PullLabeled)
    }

    pub fn is_assigning(self) -> bool {
        matches!(self, EventKind::IssueAssigned | EventKind::PullAssigned)
    }

    pub fn is_unassigning(self) -> bool {
        matches!(self, EventKind::IssueUnassigned | EventKind::PullUnassigned)
    }

    /// Whether a rule for this event also matches everything that a rule for the other does.
    pub fn includes(self, other: Self) -> bool {
        use EventKind as K;
        let is_state = matches!(other, K::PullApproved | K::PullChangesRequested);
        self == other || self == K::PullReview && is_state
    }

    /// Whether it is about an item that an agent can work on.
    pub fn has_item(self) -> bool {
        !matches!(
            self,
            EventKind::Ping | EventKind::RepoRenamed | EventKind::RepoDeleted
        )
    }

    /// Whether it is about a branch, or a pull request to one.
    pub fn has_branch(self) -> bool {
        self.is_of_pull() || matches!(self, EventKind::Push | EventKind::BranchDeleted)
    }
}

stored_enum! {
    /// What someone is to a repository, as GitHub reports it with each text.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(try_from = "String", into = "&'static str")]
    Association, "association" {
        Owner = "owner",
        Member = "member",
        Collaborator = "collaborator",
        Contributor = "contributor",
        FirstTimeContributor = "first_time_contributor",
        FirstTimer = "first_timer",
        Mannequin = "mannequin",
        Stranger = "none",
    }
}
by_name!(Association);

stored_enum! {
    /// What someone may do in a repository, as the forge answers when it is asked.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(try_from = "String", into = "&'static str")]
    Permission, "permission" {
        Nothing = "none",
        Read = "read",
        Write = "write",
        Admin = "admin",
    }
}
by_name!(Permission);

impl Permission {
    /// Whether someone with this permission is one of these.
    pub fn is_among(self, associations: &[Association]) -> bool {
        use Association as A;
        let counts_as: &[Association] = match self {
            Permission::Admin => &[A::Owner, A::Member, A::Collaborator],
            Permission::Write => &[A::Member, A::Collaborator],
            Permission::Read | Permission::Nothing => &[A::Stranger],
        };
        associations.iter().any(|one| counts_as.contains(one))
    }
}

stored_enum! {
    #[derive(Serialize, Deserialize)]
    #[serde(try_from = "String", into = "&'static str")]
    ReviewState, "review" {
        Approved = "approved",
        ChangesRequested = "changes_requested",
        Commented = "commented",
    }
}
by_name!(ReviewState);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_in_rules_and_in_json() {
        for name in [
            "issue.opened",
            "pr.review_comment",
            "branch.deleted",
            "push",
        ] {
            let kind = EventKind::parse(name).unwrap();
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<EventKind>(&json).unwrap(), kind);
        }
        let why = EventKind::parse("issue.open").unwrap_err().why;
        assert!(why.contains("issue.opened, issue.edited"), "{why}");
        assert!(serde_json::from_str::<EventKind>("\"issue.open\"").is_err());
    }

    #[test]
    fn a_permission_counts_as_what_has_it() {
        use Association as A;
        assert!(Permission::Admin.is_among(&[A::Owner]));
        assert!(Permission::Write.is_among(&[A::Member]));
        assert!(!Permission::Write.is_among(&[A::Owner]));
        assert!(!Permission::Read.is_among(&[A::Collaborator, A::Contributor]));
        assert!(!Permission::Nothing.is_among(&[]));
    }
}
