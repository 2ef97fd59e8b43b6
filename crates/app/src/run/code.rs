//! The code of a dispatched job: cloned, fetched, compared with the permitted commit, checked out.
//!
//! Everything happens before the agent's process exists. A head other than the permitted one ends
//! the job; a forge or a remote that does not answer delays it.

use std::path::Path;

use tenure_core::key::Key;
use tenure_core::queue::code::{Credential, JobForge};
use tenure_core::queue::{Job, Trust};
use tenure_forges::api::{ApiError, Connect};
use tenure_host::{clock, git, git_command};
use tenure_service::answer::{Class, Hint, Problem};

use super::clone::clone;
use super::permission::refused;
use super::worktree::{self, Fetch};
use crate::credential;
use crate::location::locks;
use crate::open::Context;
use crate::private_file;
use crate::roots;

/// A transfer that stalls for this long has failed, in seconds.
const STANDS_STILL: &str = "60";

/// Gets the code of a job. Returns a problem that does not stop the run, if there was one.
pub(super) fn bring(
    context: &Context,
    connect: Option<Connect>,
    job: &Job,
) -> Result<Option<Problem>, Problem> {
    let (spec, code) = (&job.spec, &job.spec.code);
    if job.trust == Trust::Outside && spec.wrap.is_empty() {
        let why = "someone who is not one of the authors wrote its code, and its rule has no wrap";
        return Err(refused(&job.item, &why));
    }
    let locks = locks()?;
    let dir = Path::new(&spec.workdir.dir);
    let settings = settings(code.forge.as_ref(), code.clone.as_deref())?;
    let repo = job.repo.as_deref().unwrap_or_default();
    let of = match &code.clone {
        Some(url) => Some(clone(dir, url, repo, &settings, &locks)?),
        None => git::worktree(dir),
    };
    let Some(of) = of else {
        // Whether a run can use its directory is checked when it starts.
        return Ok(None);
    };
    let told = match (&code.forge, &code.head) {
        (Some(forge), Some(_)) => head_told(connect, forge, repo, &job.item)?,
        _ => None,
    };
    let fetch = Fetch {
        item: &job.item,
        of: &of,
        settings: &settings,
        permitted: code.head.as_deref(),
        told: told.as_deref(),
        checks_out: spec.workdir.worktree,
    };
    match worktree::fetch(&fetch, context.dir(), &locks) {
        Ok(_) => Ok(None),
        // The agent works in a directory that a fetch does not change.
        Err(problem) if problem.kind == "fetch" && !is_needed(job) => Ok(Some(problem)),
        Err(problem) => Err(problem),
    }
}

/// Whether the agent needs what is fetched.
fn is_needed(job: &Job) -> bool {
    job.spec.workdir.worktree || job.spec.code.head.is_some()
}

/// Git settings for everything that goes to the forge.
fn settings(forge: Option<&JobForge>, clone: Option<&str>) -> Result<Vec<String>, Problem> {
    let mut settings = vec![
        "http.lowSpeedLimit=1".to_owned(),
        format!("http.lowSpeedTime={STANDS_STILL}"),
    ];
    let Some(forge) = forge else {
        return Ok(settings);
    };
    let server = credential::server(clone.unwrap_or(git_url(forge)));
    if let Some(server) = server {
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

/// The head of a pull request as the forge has it now.
fn head_told(
    connect: Option<Connect>,
    forge: &JobForge,
    repo: &str,
    item: &Key,
) -> Result<Option<String>, Problem> {
    let number = item.rest().rsplit_once('#').map(|(_, number)| number);
    let number = number.filter(|_| item.scheme() == "pr");
    let Some(number) = number.and_then(|number| number.parse().ok()) else {
        return Ok(None);
    };
    let Credential { file, .. } = &forge.credential;
    let token = private_file::secret(Path::new(file)).map_err(|why| away(&why))?;
    let connect = connect.ok_or_else(|| away(&"only tenure-server can ask the forge"))?;
    let roots = roots::for_forge(&forge.url, forge.ca_file.as_deref().map(Path::new));
    let Some(api) = connect(
        &forge.kind,
        &forge.url,
        &token,
        roots.as_deref(),
        clock::wall,
    ) else {
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
        let settings = settings(Some(&own), None).unwrap();
        let has = |start: &str| settings.iter().any(|setting| setting.starts_with(start));
        assert!(
            has("http.https://git.example.org.sslCAInfo=/ca.pem"),
            "{settings:?}"
        );
        assert!(
            has("credential.https://git.example.org.helper=!"),
            "{settings:?}"
        );
        let other = forge("forgejo", "https://git.example.org", None);
        let settings = super::settings(Some(&other), None).unwrap();
        assert!(!settings.iter().any(|setting| setting.contains("sslCAInfo")));
    }

    #[test]
    fn a_directory_of_github_is_fetched_with_its_token() {
        let own = forge("github", "https://api.github.com", None);
        let settings = settings(Some(&own), None).unwrap();
        let has = |start: &str| settings.iter().any(|setting| setting.starts_with(start));
        assert!(
            has("credential.https://github.com.helper=!"),
            "{settings:?}"
        );
    }
}
