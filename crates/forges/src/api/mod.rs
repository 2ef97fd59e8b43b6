//! What is asked of a forge, and written to it: one small interface, one file per forge.
//!
//! Every call is one request, or a few where a list has pages. A call never waits for a limit of the forge to be
//! over: it fails with [`ApiError::Limited`] and the time, and so do all later calls until then, without a request.
//! No redirect is followed, because the token would go along. *Crash*: a comment may have been written although
//! its caller never learnt its id; it carries our marker, so it starts nothing.

mod client;
mod forgejo;
mod github;
mod gitlab;

use tenure_core::forge::{Permission, Person, Pull};
use tenure_core::key::Key;
use tenure_core::time::Timestamp;

use crate::proof::Secret;

/// Why a forge did not answer, or not as asked.
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
    #[error("{0} is not an issue or a pull request")]
    NoThread(Key),
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

/// What became of an issue or a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemNow {
    Open,
    Closed,
    Merged,
    /// The repository is there and it is not: it was deleted or moved away.
    Gone,
}

/// A comment that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentId(pub u64);

/// A delivery as the forge remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentDelivery {
    /// The webhook, and the attempt, as the forge numbers them.
    pub hook: u64,
    pub attempt: u64,
    /// The id that the delivery came with.
    pub id: String,
    pub event: String,
    pub at: String,
    pub arrived: bool,
}

/// A forge that can be asked.
pub trait ForgeApi: Send + Sync {
    /// The account that the token belongs to.
    fn own_account(&self) -> Result<Person, ApiError>;

    /// What somebody may do in a repository.
    fn permission(&self, repo: &str, person: &Person) -> Result<Permission, ApiError>;

    fn pull(&self, repo: &str, number: u64) -> Result<PullNow, ApiError>;

    /// What became of an issue or a pull request.
    fn state(&self, item: &Key) -> Result<ItemNow, ApiError>;

    /// The open issues and pull requests of a repository.
    fn open_items(&self, repo: &str) -> Result<Vec<Key>, ApiError>;

    fn has_branch(&self, repo: &str, branch: &str) -> Result<bool, ApiError>;

    fn comment(&self, item: &Key, text: &str) -> Result<CommentId, ApiError>;

    fn edit_comment(&self, item: &Key, comment: &CommentId, text: &str) -> Result<(), ApiError>;

    /// The first comment of this account on an item that has this text as a line of its own.
    fn find_comment(
        &self,
        item: &Key,
        own: &Person,
        line: &str,
    ) -> Result<Option<CommentId>, ApiError>;

    /// Adds eyes to an item, or to a comment on it. Adding them again has no effect.
    fn react(&self, item: &Key, comment: Option<&CommentId>) -> Result<(), ApiError>;

    /// Adds eyes to a comment on lines of a change; to the item where the forge has none for such a comment.
    fn react_to_review(&self, item: &Key, _: &CommentId) -> Result<(), ApiError> {
        self.react(item, None)
    }

    /// What was sent to the endpoint with this path since a time (`2026-11-16T06:00:00Z`, or empty for all that the
    /// forge remembers); none where the forge does not tell.
    fn deliveries(
        &self,
        repo: &str,
        path: &str,
        since: &str,
    ) -> Result<Option<Vec<SentDelivery>>, ApiError>;

    /// Asks for a delivery to be sent again.
    fn redeliver(&self, repo: &str, delivery: &SentDelivery) -> Result<(), ApiError>;
}

/// [`connect`], for who must not link it.
pub type Connect =
    fn(&str, &str, &Secret, Option<&[u8]>, fn() -> Timestamp) -> Option<Box<dyn ForgeApi>>;

/// Connects to a forge of this kind; none if there is no such kind. `roots` are the certificates that it may prove
/// itself with, in PEM; without any, those that are built in.
pub fn connect(
    kind: &str,
    url: &str,
    token: &Secret,
    roots: Option<&[u8]>,
    now: fn() -> Timestamp,
) -> Option<Box<dyn ForgeApi>> {
    let access = Access { token, roots, now };
    Some(match kind {
        "forgejo" | "gitea" => Box::new(forgejo::Api::new(url, &access)),
        "github" => Box::new(github::Api::new(url, &access)),
        "gitlab" => Box::new(gitlab::Api::new(url, &access)),
        _ => return None,
    })
}

/// What a connection needs besides its address.
struct Access<'a> {
    token: &'a Secret,
    roots: Option<&'a [u8]>,
    now: fn() -> Timestamp,
}

/// How many certificates a text in PEM has, if all of them can be read.
pub fn count_roots(pem: &[u8]) -> Option<usize> {
    client::roots(pem).map(|found| found.len())
}

/// Whether a comment is of this account and has this line.
fn is_marked(author: &Person, own: &Person, body: &str, line: &str) -> bool {
    author.is(own) && body.lines().any(|one| one.trim_end() == line)
}

/// The repository and number of an issue or a pull request.
struct Thread<'k> {
    repo: &'k str,
    number: u64,
    is_pull: bool,
}

impl<'k> Thread<'k> {
    fn of(item: &'k Key) -> Result<Self, ApiError> {
        let is_pull = item.scheme() == "pr";
        let parts = item.rest().rsplit_once('#');
        let number = parts.and_then(|(_, number)| number.parse().ok());
        match (parts, number) {
            (Some((repo, _)), Some(number)) if is_pull || item.scheme() == "issue" => Ok(Self {
                repo,
                number,
                is_pull,
            }),
            _ => Err(ApiError::NoThread(item.clone())),
        }
    }
}
