//! Making a place from a pack.

use std::io;
use std::time::Duration;

use tenure_core::commit::CommitId;
use tenure_host::piped::Input;

use super::reach::{Unreached, outside, within};
use super::{Place, Repositories};

/// How long it may take, files included.
const PATIENCE: Duration = Duration::from_secs(900);

/// Reads the pack from its input. The last arguments may be empty.
const MAKE: &str = r#"commit=$2 branch=$3 url=$4 base_name=$5 base=$6 last=$7
mkdir -p "$HOME" "$1" && cd "$1" && [ -z "$(ls -A)" ] || { echo "its directory is not empty" >&2; exit 1; }
git init -q --template= -b "$branch" . && g index-pack --stdin >/dev/null &&
g config remote.origin.url "$url" && g config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*' &&
{ [ -z "$base" ] || g update-ref "refs/remotes/origin/$base_name" "$base"; } &&
{ [ -z "$last" ] || g update-ref refs/remotes/tenure/last "$last"; } &&
g -c checkout.workers=2 reset -q --hard "$commit" && g rev-parse HEAD"#;

/// What a place starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start<'a> {
    /// The commit that is checked out.
    pub commit: &'a CommitId,
    /// The branch that the agent works on.
    pub branch: &'a str,
    /// The address of the repository, without credentials; nothing in the place can use it.
    pub url: &'a str,
    /// The branch that others build on, with its name.
    pub base: Option<(&'a str, &'a CommitId)>,
    /// What the conversation made before, if it is of the same trust.
    pub last: Option<&'a CommitId>,
}

/// Why a place was not made.
#[derive(Debug, thiserror::Error)]
pub enum NotMade {
    #[error("the pack cannot be written: {0}")]
    Pack(io::Error),
    #[error("the pack cannot be written: {0}")]
    PackFailed(String),
    #[error("its directory cannot be made: {0}")]
    Directory(io::Error),
    #[error(transparent)]
    Unreached(#[from] Unreached),
    #[error("it is at another commit")]
    Elsewhere,
}

impl Place {
    /// Makes the place, which must not exist: a repository with these commits and what they need, and no other object.
    pub fn make(&self, from: &Repositories, start: &Start<'_>) -> Result<(), NotMade> {
        let deadline = within(PATIENCE);
        self.prepare().map_err(NotMade::Directory)?;
        let base = start.base.map(|(_, commit)| commit);
        let commits: Vec<&CommitId> = [Some(start.commit), base, start.last]
            .into_iter()
            .flatten()
            .collect();
        let give = from.results().give(&commits, deadline);
        let mut pack = give.map_err(NotMade::Pack)?;
        let output = pack.take_output().map_err(NotMade::Pack)?;
        let (base_name, base) = start
            .base
            .map_or(("", ""), |(name, id)| (name, id.as_str()));
        let arguments = [
            start.commit.as_str(),
            start.branch,
            start.url,
            base_name,
            base,
            start.last.map_or("", CommitId::as_str),
        ];
        let making = self.start(MAKE, &arguments, Input::From(output))?;
        let made = making.finish(deadline).map_err(Unreached::of)?;
        let packed = pack.finish(deadline).map_err(NotMade::Pack)?;
        if made.status.success() && !packed.status.success() {
            return Err(NotMade::PackFailed(outside(&packed.errors)));
        }
        if !made.status.success() {
            // A place that ends early breaks the pipe, so its own reason comes first.
            return Err(Unreached::failed(&made).into());
        }
        let said = String::from_utf8_lossy(&made.output);
        if said.trim_end() != start.commit.as_str() {
            return Err(NotMade::Elsewhere);
        }
        Ok(())
    }
}
