//! One event of a forge.

use serde::{Deserialize, Serialize};

use super::item::issue_item;
use super::kind::{Association, EventKind, ReviewState};
use super::text;
use crate::key::Key;
use crate::spelling;

/// An account of a forge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Person {
    /// Empty if the forge names it by its id alone.
    pub login: String,
    /// Survives a change of the login.
    pub id: Option<u64>,
    /// Whether the forge calls it a bot.
    pub is_bot: bool,
}

impl Person {
    pub fn named(login: &str) -> Self {
        Self {
            login: login.to_owned(),
            ..Self::default()
        }
    }

    /// Whether both are surely the same account: by id where both have one, else by login.
    pub fn is(&self, other: &Self) -> bool {
        match (self.id, other.id) {
            (Some(one), Some(two)) => one == two,
            _ => !self.login.is_empty() && self.login.eq_ignore_ascii_case(&other.login),
        }
    }

    /// How it is shown.
    pub fn name(&self) -> String {
        match self.id {
            Some(id) if self.login.is_empty() => format!("account {id}"),
            None if self.login.is_empty() => "an unknown account".to_owned(),
            _ => self.login.clone(),
        }
    }
}

/// What a pull request would merge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pull {
    /// The branch with the change.
    pub branch: String,
    /// The branch that it would be merged into.
    pub base: String,
    /// The newest commit of the change.
    pub head: Option<String>,
    /// The repository that has the branch, if it still exists.
    pub head_repo: Option<String>,
    /// Whether someone without write access can have made it: another repository, or none that is known.
    pub is_fork: bool,
    pub is_draft: bool,
}

/// An object and when it was last changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub id: String,
    pub updated_at: String,
}

/// The lines that a review comment is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CodePlace {
    pub path: String,
    pub line: Option<u64>,
    pub hunk: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgeEvent {
    pub kind: EventKind,
    /// The canonical name of the repository.
    pub repo: String,
    /// Survives a change of the name.
    #[serde(default)]
    pub repo_id: Option<u64>,
    /// What the repository was called before.
    #[serde(default)]
    pub previous_repo: Option<String>,
    /// None if the whole repository is meant.
    #[serde(default)]
    pub item: Option<Key>,
    /// Who did it.
    #[serde(default)]
    pub actor: Person,
    /// What the actor is to the repository, if the forge reports it.
    #[serde(default)]
    pub association: Option<Association>,
    /// Who opened the issue or pull request.
    #[serde(default)]
    pub subject_author: Option<Person>,
    #[serde(default)]
    pub subject_association: Option<Association>,
    /// Who wrote the text that the event is about, which may have been edited by another.
    #[serde(default)]
    pub text_author: Option<Person>,
    /// Whether it changed a text that was there before.
    #[serde(default)]
    pub is_edit: bool,
    #[serde(default)]
    pub labels: Vec<String>,
    #[serde(default)]
    pub assignees: Vec<String>,
    #[serde(default)]
    pub reviewers: Vec<String>,
    /// The labels, assignees or reviewers that this event added; empty if the forge does not tell.
    #[serde(default)]
    pub added: Vec<String>,
    /// The assignees that this event removed; empty if the forge does not tell.
    #[serde(default)]
    pub removed: Vec<String>,
    /// None for a comment on a pull request that the forge describes no further.
    #[serde(default)]
    pub pull: Option<Pull>,
    /// The commit that a push left on its branch.
    #[serde(default)]
    pub pushed: Option<String>,
    /// The branch of a push or a deletion.
    #[serde(default)]
    pub branch: Option<String>,
    #[serde(default)]
    pub title: String,
    /// The text of the issue or pull request itself.
    #[serde(default)]
    pub body: String,
    /// The text of a comment or review.
    #[serde(default)]
    pub comment: Option<String>,
    /// Whether a text was longer than what is kept.
    #[serde(default)]
    pub is_cut: bool,
    #[serde(default)]
    pub review: Option<ReviewState>,
    #[serde(default)]
    pub place: Option<CodePlace>,
    /// None unless the object has both an id and a time of change.
    #[serde(default)]
    pub version: Option<Version>,
    #[serde(default)]
    pub url: Option<String>,
}

impl ForgeEvent {
    pub fn new(kind: EventKind, repo: &str) -> Self {
        Self {
            kind,
            repo: spelling::repository_name(repo),
            repo_id: None,
            previous_repo: None,
            item: None,
            actor: Person::default(),
            association: None,
            subject_author: None,
            subject_association: None,
            text_author: None,
            is_edit: false,
            labels: Vec::new(),
            assignees: Vec::new(),
            reviewers: Vec::new(),
            added: Vec::new(),
            removed: Vec::new(),
            pull: None,
            pushed: None,
            branch: None,
            title: String::new(),
            body: String::new(),
            comment: None,
            is_cut: false,
            review: None,
            place: None,
            version: None,
            url: None,
        }
    }

    /// Whether a rule for these events is for this one. An edited review is only a review: its state is not new.
    pub fn is_one_of(&self, kinds: &[EventKind]) -> bool {
        let state = self.review.filter(|_| !self.is_edit);
        let state = match (self.kind, state) {
            (EventKind::PullReview, Some(ReviewState::Approved)) => Some(EventKind::PullApproved),
            (EventKind::PullReview, Some(ReviewState::ChangesRequested)) => {
                Some(EventKind::PullChangesRequested)
            }
            _ => None,
        };
        let is_this = |kind: &EventKind| *kind == self.kind || Some(*kind) == state;
        kinds.iter().any(is_this)
    }

    /// The text that the event is about.
    pub fn text(&self) -> &str {
        self.comment.as_deref().unwrap_or(&self.body)
    }

    /// The text in which a mention counts: with the title, if that was written too.
    pub fn spoken(&self) -> String {
        match &self.comment {
            Some(comment) => comment.clone(),
            None => format!("{}\n{}", self.title, self.body),
        }
    }

    /// Whether a text was changed by someone who is not known to have written it.
    pub fn is_edit_by_other(&self) -> bool {
        let is_author = |author: &Person| author.is(&self.actor);
        self.is_edit && !self.text_author.as_ref().is_some_and(is_author)
    }

    /// Whether a merge ended the pull request.
    pub fn is_merged(&self) -> bool {
        self.kind == EventKind::PullMerged
    }

    /// The issues of its own repository that a pull request says it closes.
    pub fn closes(&self) -> Vec<Key> {
        if !self.kind.is_of_pull() {
            return Vec::new();
        }
        let told = format!("{}\n{}", self.title, self.body);
        let mut found: Vec<Key> = Vec::new();
        for number in text::closed_issues(&told, &self.repo) {
            if let Ok(key) = issue_item(&self.repo, number)
                && !found.contains(&key)
            {
                found.push(key);
            }
        }
        found
    }

    /// What two reports of one change have in common, whatever their delivery ids are.
    ///
    /// None if the object has no id or no time of change: equal content could then be two events.
    pub fn content_key(&self) -> Option<String> {
        if self.kind.is_closing() || self.kind.is_reopening() {
            // It may happen twice within the second that the version names.
            return None;
        }
        let version = self.version.as_ref()?;
        let repo = match self.repo_id {
            Some(id) => id.to_string(),
            None => self.repo.clone(),
        };
        let parts = [
            self.kind.as_str(),
            &repo,
            self.item.as_ref().map_or("", Key::as_str),
            &version.id,
            &version.updated_at,
            &self.added.join(","),
            self.pull
                .as_ref()
                .and_then(|pull| pull.head.as_deref())
                .unwrap_or_default(),
        ];
        Some(parts.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_known_by_its_id_before_its_login() {
        let person = |login: &str, id| Person {
            login: login.to_owned(),
            id,
            is_bot: false,
        };
        assert!(person("alice", None).is(&person("Alice", Some(1))));
        assert!(person("alice", Some(1)).is(&person("renamed", Some(1))));
        assert!(!person("alice", Some(1)).is(&person("alice", Some(2))));
        assert!(!person("", None).is(&person("", None)), "two unknown ones");
    }

    #[test]
    fn content_identifies_an_event_only_with_an_id_and_a_time() {
        let mut event = ForgeEvent::new(EventKind::IssueComment, "Acme/Web.git");
        assert_eq!(
            (event.repo.as_str(), event.content_key()),
            ("acme/web", None)
        );
        event.version = Some(Version {
            id: "7".into(),
            updated_at: "2026-11-16T06:00:00Z".into(),
        });
        let key = event.content_key().unwrap();
        let mut other = event.clone();
        other.kind = EventKind::IssueLabeled;
        assert_ne!(other.content_key().unwrap(), key);
        other.kind = event.kind;
        other.added = vec!["agent".into()];
        assert_ne!(other.content_key().unwrap(), key);
    }

    #[test]
    fn an_event_of_an_older_version_is_read() {
        let event: ForgeEvent =
            serde_json::from_str(r#"{"kind":"push","repo":"acme/web","from_the_future":1}"#)
                .unwrap();
        assert_eq!(event, ForgeEvent::new(EventKind::Push, "acme/web"));
    }

    #[test]
    fn an_edit_counts_as_its_authors_only_when_both_are_known() {
        let mut event = ForgeEvent::new(EventKind::IssueEdited, "acme/web");
        event.actor = Person::named("alice");
        assert!(!event.is_edit_by_other());
        event.is_edit = true;
        assert!(
            event.is_edit_by_other(),
            "nobody is known to have written it"
        );
        event.text_author = Some(Person::named("mallory"));
        assert!(event.is_edit_by_other());
        event.text_author = Some(Person::named("Alice"));
        assert!(!event.is_edit_by_other());
    }
}
