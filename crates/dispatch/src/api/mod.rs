//! Requests to a forge over HTTPS, one file per forge: what [`ForgeApi`] promises.

mod client;
mod forgejo;
mod github;
mod gitlab;

use tenure_core::forge::Person;
use tenure_core::key::Key;
use tenure_core::time::Timestamp;
use tenure_forges::Secret;
use tenure_forges::api::{ApiError, ForgeApi};

use self::client::Client;

/// Connects to a forge of this kind; `None` if there is no such kind. `roots` are the trusted
/// certificates in PEM; without any, the built-in ones are used.
pub fn connect(
    kind: &str,
    url: &str,
    token: &Secret,
    roots: Option<&[u8]>,
    now: fn() -> Timestamp,
) -> Option<Box<dyn ForgeApi>> {
    let access = Access { token, roots, now };
    Some(match kind {
        "forgejo" | "gitea" => Box::new(forgejo::ForgejoApi::new(url, &access)),
        "github" => Box::new(github::GitHubApi::new(url, &access)),
        "gitlab" => Box::new(gitlab::GitLabApi::new(url, &access)),
        _ => return None,
    })
}

/// What a connection needs besides its address.
struct Access<'a> {
    token: &'a Secret,
    roots: Option<&'a [u8]>,
    now: fn() -> Timestamp,
}

/// Whether a comment was written by this account and has this line.
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
    /// What cannot be an issue or a pull request, the forge does not have.
    fn of(client: &Client, item: &'k Key) -> Result<Self, ApiError> {
        let is_pull = item.scheme() == "pr";
        let parts = item.rest().rsplit_once('#');
        let number = parts.and_then(|(_, number)| number.parse().ok());
        match (parts, number) {
            (Some((repo, _)), Some(number)) if is_pull || item.scheme() == "issue" => Ok(Self {
                repo,
                number,
                is_pull,
            }),
            _ => Err(client.missing(item.as_str())),
        }
    }
}
