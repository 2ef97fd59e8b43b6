//! The code of a dispatched job: fetched, compared with the permitted commit, and put into the place of its
//! conversation.
//!
//! Everything happens before the agent's process exists. A head other than the permitted one ends the job; a forge
//! or a remote that does not answer delays it. *Crash*: the next attempt finds the place as its record says, and
//! first takes what the last run left.

use std::path::{Path, PathBuf};

use tenure_core::commit::CommitId;
use tenure_core::dispatch::publish;
use tenure_core::forge::Thread;
use tenure_core::id::RunId;
use tenure_core::ignore::Ignore;
use tenure_core::key::Key;
use tenure_core::queue::code::{
    Credential, HeadNow, JobForge, KnownPlace, StartFrom, check_head, start_from,
};
use tenure_core::queue::{Job, Trust};
use tenure_core::text;
use tenure_forges::api::{ApiError, Connect, ForgeApi};
use tenure_host::git_command::GitError;
use tenure_host::own_repository::OwnRepository;
use tenure_host::{clock, git_command};
use tenure_service::answer::{Class, Hint, Problem};

use super::left_behind;
use super::permission::refused;
use super::result;
use crate::credential;
use crate::places::record::{self, PlaceOwner, PlaceRecord};
use crate::places::{
    ExtraHead, Heads, Place, PlaceAnswer, RemoteSource, Repositories, RepositoryError, Start,
};
use crate::roots;
use tenure_app::location::locks;
use tenure_app::open::Context;

/// A place with the code of a job.
pub(super) struct Brought {
    /// The name of its record.
    pub name: String,
    pub dir: PathBuf,
    /// What the forge has, for the skills of the repository.
    pub base: OwnRepository,
    /// What the agent and the reader of its answer must know.
    pub note: Option<String>,
}

/// Gets the code of a job.
pub(super) fn bring(
    context: &mut Context,
    connect: Option<Connect>,
    run: &RunId,
    job: &Job,
) -> Result<Brought, Problem> {
    let (spec, code) = (&job.spec, &job.spec.code);
    if job.trust == Trust::Outside && spec.wrap.is_empty() {
        let why = "someone who is not one of the authors wrote its code, and its rule has no wrap";
        return Err(refused(&job.item, &why));
    }
    let url = code.url.as_deref();
    let url = url.ok_or_else(|| cannot(job, &"its repository has no address"))?;
    let heads_of = |repositories: &Repositories| -> Result<Heads, Problem> {
        let settings = settings(code.forge.as_ref(), url)?;
        let source = RemoteSource {
            url,
            settings: &settings,
        };
        let fetched = repositories.fetch(source, wanted(&job.item).as_ref(), &locks()?);
        fetched.map_err(|error| match &error {
            RepositoryError::Git(GitError::Protocol { .. }) => cannot(job, &error),
            _ => unreached(job, &error),
        })
    };
    let state = context.dir().to_owned();
    let state = state.as_path();
    let repositories = Repositories::open(state, url, &locks()?);
    let repositories = repositories.map_err(|error| unreached(job, &error))?;
    let heads = heads_of(&repositories)?;
    let owner = PlaceOwner {
        agent: &job.agent,
        role: &job.role,
        item: &job.root,
        trust: job.trust,
        is_wrapped: !spec.wrap.is_empty(),
        places: code.places.as_deref(),
    };
    let name = owner.name();
    let known = record::load(state, &name).map_err(|error| unreached(job, &error))?;
    // Under another address it is another repository.
    let known = known.filter(|record| record.url == url || !record.is_made);
    if let Some(known) = &known {
        left_behind::refuse_doubt(context, known, owner.places)?;
    }
    let mut work = Work {
        job,
        run,
        state,
        repositories: &repositories,
        name: &name,
        known,
    };
    work.take_left();
    let head = work.head(connect, &heads)?;
    let base = heads.base.as_ref().map(|(_, commit)| commit);
    // A new conversation has no result to go on from.
    let was_dropped = context
        .service()
        .was_dropped(&job.agent, &job.role, &job.root);
    let was_dropped = was_dropped?.value;
    let place = work.known.as_ref();
    let place = place.filter(|record| record.is_made && !was_dropped);
    let place = place.map(|record| KnownPlace {
        at: record.at(),
        is_there: record.is_theirs || record.dir.is_dir(),
    });
    let (dir, note) = match start_from(head.as_ref(), place, base) {
        StartFrom::Place => (work.go_on()?, None),
        StartFrom::Fresh(commit) => work.begin_at(&owner, url, &commit, &heads)?,
        StartFrom::Nothing => return Err(cannot(job, &"the repository has no commit")),
    };
    Ok(Brought {
        dir,
        base: repositories.base().clone(),
        note,
        name,
    })
}

/// Getting a place ready for a run.
struct Work<'a> {
    job: &'a Job,
    run: &'a RunId,
    state: &'a Path,
    repositories: &'a Repositories,
    name: &'a str,
    known: Option<PlaceRecord>,
}

impl Work<'_> {
    fn place(&self, record: &PlaceRecord) -> Result<Place, Problem> {
        result::place_of(self.state, record, self.run.as_str())
            .map_err(|error| unreached(self.job, &error))
    }

    /// Takes what the last run committed, if its runner could not.
    fn take_left(&mut self) {
        let known = self.known.as_mut();
        if let Some(record) = known.filter(|record| record.is_made && !record.is_taken) {
            result::take(self.state, self.repositories, record, self.run)
                .ignore("it stays in the place; where that is made anew, it is moved aside");
        }
    }

    /// The head that the run is at, if the item has code of its own.
    fn head(&self, connect: Option<Connect>, heads: &Heads) -> Result<Option<CommitId>, Problem> {
        let (job, code) = (self.job, &self.job.spec.code);
        let has_own = wanted(&job.item).is_some();
        if !has_own && code.head.is_none() {
            return Ok(None);
        }
        let told = match (&code.forge, &code.head) {
            (Some(forge), Some(_)) => {
                let repo = job.repo.as_deref().unwrap_or_default();
                head_told(connect, forge, repo, &job.item)?
            }
            _ => None,
        };
        let Some(head) = heads.head.clone().filter(|_| has_own) else {
            return Err(match told {
                // Git may be behind what the forge tells.
                Some(_) => unreached(job, &"the remote does not have its head yet"),
                None => refused(&job.item, &"it is gone from the remote"),
            });
        };
        let own = self.known.as_ref().and_then(|known| known.taken.as_ref());
        for commit in told.into_iter().chain([head.to_string()]) {
            let now = HeadNow {
                is_own: own.is_some_and(|own| own.as_str() == commit),
                commit,
            };
            check_head(code.head.as_deref(), &now).map_err(|moved| refused(&job.item, &moved))?;
        }
        Ok(Some(head))
    }

    /// Uses the place as it is.
    fn go_on(&mut self) -> Result<PathBuf, Problem> {
        let Some(record) = self.known.as_mut() else {
            return Err(cannot(self.job, &"its place is not known"));
        };
        record.wrap.clone_from(&self.job.spec.wrap);
        record.run = Some(self.run.to_string());
        record.is_taken = false;
        let stored = record::store(self.state, self.name, record);
        stored.map_err(|error| unreached(self.job, &error))?;
        Ok(record.dir.clone())
    }

    /// Makes a place at a commit. What was there before is moved aside, unless all of it was taken.
    fn begin_at(
        &mut self,
        owner: &PlaceOwner<'_>,
        url: &str,
        commit: &CommitId,
        heads: &Heads,
    ) -> Result<(PathBuf, Option<String>), Problem> {
        let job = self.job;
        let failed = |error: &dyn std::fmt::Display| unreached(job, error);
        let before = self.known.take();
        let mut record = PlaceRecord {
            agent: job.agent.to_string(),
            item: job.root.to_string(),
            trust: job.trust.as_str().to_owned(),
            url: url.to_owned(),
            dir: owner.dir(self.state).map_err(|error| failed(&error))?,
            wrap: job.spec.wrap.clone(),
            is_theirs: owner.places.is_some(),
            is_made: false,
            start: commit.clone(),
            run: Some(self.run.to_string()),
            taken: None,
            last: None,
            is_taken: false,
            aside: Vec::new(),
            kept: Vec::new(),
        };
        let place = self.place(&record)?;
        let mut note = None;
        let mut last = None;
        if let Some(before) = before {
            record.aside.clone_from(&before.aside);
            last = before.taken.clone().or_else(|| before.last.clone());
            record.last.clone_from(&last);
            last = last.filter(|last| last != commit);
            let kept = self.clear(&place, &before, &mut record)?;
            let is_other = before.is_made && before.at() != commit;
            note = is_other.then(|| anew(&job.item, commit, last.is_some(), kept));
        } else {
            place.remove().map_err(|error| failed(&error))?;
        }
        let store = |record: &PlaceRecord| {
            record::store(self.state, self.name, record).map_err(|error| unreached(job, &error))
        };
        store(&record)?;
        let repo = job.repo.as_deref().unwrap_or_default();
        let start = Start {
            commit,
            branch: &publish::branch(&job.item, repo),
            url: job.spec.code.origin.as_deref().unwrap_or(url),
            base: heads
                .base
                .as_ref()
                .map(|(name, commit)| (name.as_str(), commit)),
            last: last.as_ref(),
        };
        let made = place.make(self.repositories, &start);
        made.map_err(|error| failed(&error))?;
        record.is_made = true;
        store(&record)?;
        Ok((record.dir, note))
    }

    /// Empties the directory of a place. Returns whether something was moved aside.
    fn clear(
        &self,
        place: &Place,
        before: &PlaceRecord,
        record: &mut PlaceRecord,
    ) -> Result<bool, Problem> {
        let failed = |error: &dyn std::fmt::Display| unreached(self.job, error);
        let is_there = before.is_theirs || before.dir.is_dir();
        let is_clean = !before.is_made
            || !is_there
            || (before.is_taken && self.place(before)?.has_more() == PlaceAnswer::No);
        if is_clean {
            place.remove().map_err(|error| failed(&error))?;
            return Ok(false);
        }
        let mut name = before.dir.as_os_str().to_owned();
        name.push(format!(".aside-{}", self.run));
        let aside = PathBuf::from(name);
        place.move_to(&aside).map_err(|error| failed(&error))?;
        record.aside.push(aside);
        Ok(true)
    }
}

/// What is said when a place was made anew.
fn anew(item: &Key, commit: &CommitId, has_last: bool, kept: bool) -> String {
    let mut note = format!(
        "The working copy was made anew at {}, where {item} is now.",
        commit.short()
    );
    if has_last {
        note.push_str(" What was committed here before is refs/remotes/tenure/last.");
    }
    if kept {
        note.push_str(" What was not committed was set aside and is not in it.");
    }
    note
}

/// What an item has of its own at the forge.
fn wanted(item: &Key) -> Option<ExtraHead> {
    let rest = item.rest();
    match item.scheme() {
        "pr" => {
            let (_, number) = rest.rsplit_once('#')?;
            number.parse().ok().map(ExtraHead::Pull)
        }
        "branch" => {
            let (_, name) = rest.split_once(':')?;
            Some(ExtraHead::Branch(name.to_owned()))
        }
        _ => None,
    }
}

/// Git settings for everything that goes to the forge.
pub(super) fn settings(forge: Option<&JobForge>, url: &str) -> Result<Vec<String>, Problem> {
    let mut settings = Vec::new();
    let (Some(forge), Some(server)) = (forge, credential::server(url)) else {
        return Ok(settings);
    };
    // The token is for its own forge alone.
    if credential::server(git_url(forge)).as_ref() == Some(&server) {
        let own = credential::settings(&server, &forge.credential);
        settings.extend(own.map_err(|error| super::runner::cannot("start a run", &error))?);
        let ca_file = forge.ca_file.as_deref();
        settings.extend(ca_file.map(|file| git_command::believed(&server, file)));
    }
    Ok(settings)
}

/// The address that git uses for a forge. GitHub has another one for its API.
fn git_url(forge: &JobForge) -> &str {
    match (forge.kind.as_str(), forge.url.as_str()) {
        ("github", "https://api.github.com") => "https://github.com",
        (_, url) => url,
    }
}

/// A connection to a forge; none if there is no such kind.
fn api(connect: Option<Connect>, forge: &JobForge) -> Result<Option<Box<dyn ForgeApi>>, Problem> {
    let Credential { file, .. } = &forge.credential;
    let token = credential::secret(Path::new(file)).map_err(|why| away(&why))?;
    let connect = connect.ok_or_else(|| away(&"only tenure-server can ask the forge"))?;
    let roots = roots::for_forge(&forge.url, forge.ca_file.as_deref().map(Path::new));
    let roots = roots.as_deref();
    Ok(connect(&forge.kind, &forge.url, &token, roots, clock::wall))
}

/// What people wrote about the item of a job; none if the forge cannot be asked, or does not answer. The run then has
/// the events alone.
pub(super) fn thread(connect: Option<Connect>, job: &Job) -> Option<Thread> {
    let forge = job.spec.code.forge.as_ref()?;
    if !matches!(job.item.scheme(), "issue" | "pr") {
        return None;
    }
    let api = api(connect, forge).ok().flatten()?;
    api.thread(&job.item).ok()
}

/// The head of a pull request as the forge has it now.
fn head_told(
    connect: Option<Connect>,
    forge: &JobForge,
    repo: &str,
    item: &Key,
) -> Result<Option<String>, Problem> {
    let Some(ExtraHead::Pull(number)) = wanted(item) else {
        return Ok(None);
    };
    let Some(api) = api(connect, forge)? else {
        return Ok(None);
    };
    match api.pull(repo, number) {
        Ok(found) => Ok(found.pull.head),
        Err(ApiError::NotFound { .. }) => Err(refused(item, &"it no longer exists on the forge")),
        Err(error) => Err(away(&error)),
    }
}

fn away(why: &dyn std::fmt::Display) -> Problem {
    let message = format!("the forge did not report the head: {why}");
    let hint = Hint::step("fix the cause; tenure then tries the job again");
    Problem::new(Class::Internal, "forge_away", message, hint)
}

/// A fault of the job itself: another attempt has the same end.
fn cannot(job: &Job, why: &dyn std::fmt::Display) -> Problem {
    no_code(job, why, Class::Invalid, "code")
}

/// The remote, the disk or the place does not answer, which can pass.
fn unreached(job: &Job, why: &dyn std::fmt::Display) -> Problem {
    no_code(job, why, Class::Internal, REMOTE_AWAY)
}

/// The kind of [`unreached`].
pub(super) const REMOTE_AWAY: &str = "remote_away";

fn no_code(job: &Job, why: &dyn std::fmt::Display, class: Class, kind: &str) -> Problem {
    let why = why.to_string();
    let why = text::line(&why);
    let repo = job.repo.as_deref().unwrap_or("the repository");
    let message = format!("cannot get the code of {repo} for {}: {why}", job.item);
    let hint = Hint::step("fix the cause; tenure then tries the job again");
    Problem::new(class, kind, message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forge(kind: &str, url: &str, ca_file: Option<&str>) -> JobForge {
        JobForge {
            kind: kind.to_owned(),
            url: url.to_owned(),
            credential: Credential {
                user: "bot".to_owned(),
                file: "/token".to_owned(),
            },
            ca_file: ca_file.map(str::to_owned),
        }
    }

    #[test]
    fn git_gets_the_certificates_and_the_token_for_the_server_of_its_forge_alone() {
        let own = forge("forgejo", "https://git.example.org", Some("/ca.pem"));
        let of = |url| settings(Some(&own), url).unwrap();
        let here = of("https://git.example.org/acme/web.git");
        let has = |start: &str| here.iter().any(|setting| setting.starts_with(start));
        assert!(
            has("http.https://git.example.org.sslCAInfo=/ca.pem"),
            "{here:?}"
        );
        assert!(
            has("credential.https://git.example.org.helper=!"),
            "{here:?}"
        );
        let elsewhere = of("https://mirror.example.org/acme/web.git");
        assert!(elsewhere.is_empty(), "{elsewhere:?}");
        assert!(of("git@git.example.org:acme/web").is_empty());
    }

    #[test]
    fn a_repository_of_github_is_fetched_with_its_token() {
        let own = forge("github", "https://api.github.com", None);
        let settings = settings(Some(&own), "https://github.com/acme/web.git").unwrap();
        let has = |start: &str| settings.iter().any(|setting| setting.starts_with(start));
        assert!(
            has("credential.https://github.com.helper=!"),
            "{settings:?}"
        );
    }

    #[test]
    fn a_pull_request_and_a_branch_have_code_of_their_own() {
        let of = |item| wanted(&Key::stored(item).unwrap());
        assert_eq!(of("pr:acme/web#9"), Some(ExtraHead::Pull(9)));
        assert_eq!(
            of("branch:acme/web:fix/a"),
            Some(ExtraHead::Branch("fix/a".to_owned()))
        );
        assert_eq!(of("issue:acme/web#6"), None);
    }
}
