//! Requests to a forge: one small interface, one file per forge.
//!
//! Every call is one request, or a few if a list has pages. A call never waits for a limit of the
//! forge to end. It fails with [`ApiError::Limited`] and the time, and until then all later calls
//! fail the same way without a request. No redirect is followed, because it would receive the
//! token. *Crash*: a comment may have been written although its caller never received its id; it
//! carries our marker, so it starts nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tenure_core::forge::{Permission, Person, Pull, Thread as Told};
use tenure_core::key::Key;
use tenure_core::time::Timestamp;

use crate::proof::Secret;

/// Why a forge did not answer as expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    #[error("{host} cannot be reached: {why}")]
    Unreachable { host: String, why: String },
    #[error("{host} limits requests until {until}")]
    Limited { host: String, until: Timestamp },
    #[error("{host} refused the token: status {status}")]
    Denied { host: String, status: u16 },
    #[error("{host} has no {what}")]
    NotFound { host: String, what: String },
    #[error("{host} answered with status {status}: {message}")]
    Failed {
        host: String,
        status: u16,
        message: String,
    },
    #[error("the answer of {host} cannot be read: {why}")]
    Unreadable { host: String, why: String },
    #[error("there is no token for {host}: {why}")]
    NoToken { host: String, why: String },
}

/// A pull request as the forge has it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullNow {
    pub pull: Pull,
    pub author: Person,
    pub is_open: bool,
}

/// A pull request to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewPull<'a> {
    /// The branch with the change, in the same repository.
    pub branch: &'a str,
    /// The branch that it would be merged into; the default branch if none is named.
    pub base: Option<&'a str>,
    pub title: &'a str,
    pub body: &'a str,
}

/// An open pull request for a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPull {
    pub number: u64,
    pub body: String,
    /// Its page.
    pub url: String,
}

/// The current state of an issue or a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemNow {
    Open,
    Closed,
    Merged,
    /// The repository exists, but the item does not: it was deleted or moved.
    Gone,
}

/// A comment that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentId(pub u64);

/// A delivery in the forge's own list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentDelivery {
    /// The forge's numbers for the webhook and for this attempt.
    pub hook: u64,
    pub attempt: u64,
    /// The id in the delivery's header.
    pub id: String,
    pub event: String,
    pub at: String,
    pub arrived: bool,
}

/// A connection to a forge's API.
pub trait ForgeApi: Send + Sync {
    /// The account of the token.
    fn own_account(&self) -> Result<Person, ApiError>;

    /// The account with this login; none if there is none.
    fn account(&self, login: &str) -> Result<Option<Person>, ApiError>;

    /// What a person may do in a repository.
    fn permission(&self, repo: &str, person: &Person) -> Result<Permission, ApiError>;

    fn pull(&self, repo: &str, number: u64) -> Result<PullNow, ApiError>;

    /// An issue or a pull request with its comments, oldest first.
    fn thread(&self, item: &Key) -> Result<Told, ApiError>;

    /// The open pull request for a branch of the repository itself.
    fn pull_of(&self, repo: &str, branch: &str) -> Result<Option<OpenPull>, ApiError>;

    fn open_pull(&self, repo: &str, pull: &NewPull<'_>) -> Result<OpenPull, ApiError>;

    /// Replaces the title and the body of a pull request.
    fn edit_pull(&self, repo: &str, number: u64, title: &str, body: &str) -> Result<(), ApiError>;

    /// Merges a pull request if this commit is its head. It fails if another one is.
    fn merge_pull(&self, repo: &str, number: u64, head: &str) -> Result<(), ApiError>;

    /// The current state of an issue or a pull request.
    fn state(&self, item: &Key) -> Result<ItemNow, ApiError>;

    /// The open issues and pull requests of a repository.
    fn open_items(&self, repo: &str) -> Result<Vec<Key>, ApiError>;

    fn has_branch(&self, repo: &str, branch: &str) -> Result<bool, ApiError>;

    fn comment(&self, item: &Key, text: &str) -> Result<CommentId, ApiError>;

    fn edit_comment(&self, item: &Key, comment: &CommentId, text: &str) -> Result<(), ApiError>;

    /// The first comment of this account on an item that contains this text as a line.
    fn find_comment(
        &self,
        item: &Key,
        own: &Person,
        line: &str,
    ) -> Result<Option<CommentId>, ApiError>;

    /// Adds an "eyes" reaction to an item, or to a comment on it. Adding it again has no effect.
    fn react(&self, item: &Key, comment: Option<&CommentId>) -> Result<(), ApiError>;

    /// Adds an "eyes" reaction to a comment on lines of a change; to the item if the forge has no
    /// reactions to such comments.
    fn react_to_review(&self, item: &Key, _: &CommentId) -> Result<(), ApiError> {
        self.react(item, None)
    }

    /// The deliveries to the endpoint with this path since a time (`2026-11-16T06:00:00Z`, or empty
    /// for all that the forge has); none if the forge does not list them.
    fn deliveries(
        &self,
        repo: &str,
        path: &str,
        since: &str,
    ) -> Result<Option<Vec<SentDelivery>>, ApiError>;

    /// Asks the forge to send a delivery again.
    fn redeliver(&self, repo: &str, delivery: &SentDelivery) -> Result<(), ApiError>;
}

/// Connects to a forge of this kind; `None` if there is no such kind. `roots` are the trusted certificates in PEM; without
/// any, the built-in ones are used. The arguments: kind, URL, token, roots, the clock.
pub type Connect =
    fn(&str, &str, &Secret, Option<&[u8]>, fn() -> Timestamp) -> Option<Box<dyn ForgeApi>>;

/// How many certificates a PEM text has; `None` if there are none, or if one of them cannot be read. Settings are
/// checked with this where nothing that speaks over a network is linked.
pub fn count_roots(pem: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(pem).ok()?;
    let mut count = 0;
    for rest in text.split("-----BEGIN CERTIFICATE-----").skip(1) {
        let (body, _) = rest.split_once("-----END CERTIFICATE-----")?;
        let packed: String = body.split_whitespace().collect();
        STANDARD.decode(packed).ok().filter(|der| !der.is_empty())?;
        count += 1;
    }
    (count > 0).then_some(count)
}
