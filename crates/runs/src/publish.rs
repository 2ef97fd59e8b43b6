//! Publishing the result of a run: at its end if its rule says so, or later by a person.
//!
//! A person approves the commit that the run ended with, and no other. *Crash* between the push and its record: the
//! result still waits, and publishing it again finds it pushed.

use std::fmt::Display;
use std::io;

use tenure_core::commit::CommitId;
use tenure_core::id::RunId;
use tenure_core::ignore::Ignore;
use tenure_core::key::Key;
use tenure_core::queue::code::JobCode;
use tenure_core::queue::{Job, Trust};
use tenure_core::text;
use tenure_host::file;
use tenure_host::git_command::GitError;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::JobView;

use super::files::RunFiles;
use super::spool::SpooledEnd;
use crate::credential;
use crate::places::{NotPublished, Publication, RemoteSource, Repositories};
use tenure_app::location::locks;
use tenure_app::open::Context;

/// The longest patch that is kept.
const MAX_PATCH: usize = 8 << 20;

/// A result, with what its rule says about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Publishable<'a> {
    pub item: &'a Key,
    /// The canonical name of its repository.
    pub repo: &'a str,
    pub code: &'a JobCode,
    /// Where its repository is fetched from.
    pub url: &'a str,
    pub commit: &'a CommitId,
    pub trust: Trust,
    /// Whether a person said yes.
    pub approved: bool,
}

impl Publishable<'_> {
    /// Pushes it, if that is permitted. Returns the branch.
    pub(super) fn publish(&self, of: &Repositories) -> Result<String, NotPublished> {
        self.with(of, |publication| {
            of.publish(self.code.publishing, publication)
        })?
    }

    /// Keeps what it changes as a file of its run.
    pub(super) fn write_patch(&self, of: &Repositories, files: &RunFiles) -> io::Result<()> {
        let patch = self
            .with(of, |publication| of.patch(publication, MAX_PATCH))
            .map_err(io::Error::other)??;
        let patch = patch.ok_or_else(|| io::Error::other("it would be too long"))?;
        if patch.is_empty() {
            return Ok(());
        }
        file::write_atomic(&files.patch(), &patch)
    }

    fn with<T>(
        &self,
        of: &Repositories,
        act: impl FnOnce(&Publication<'_>) -> T,
    ) -> Result<T, GitError> {
        let base = of.base();
        let branch = base.head_branch()?.unwrap_or_default();
        let commit = base.commit(&format!("refs/heads/{branch}"))?;
        let settings = credential::push_settings(self.code, self.url);
        let head = self.code.head.as_deref();
        let head = head.and_then(|head| CommitId::parse(head).ok());
        Ok(act(&Publication {
            item: self.item,
            repo: self.repo,
            commit: self.commit,
            trust: self.trust,
            base: commit.as_ref().map(|commit| (branch.as_str(), commit)),
            head: head.as_ref(),
            pull_branch: self.code.branch.as_deref(),
            approved: self.approved,
            to: RemoteSource {
                url: self.url,
                settings: &settings,
            },
        }))
    }
}

/// Why a result was not published, for everybody. What git says may name files of this machine.
pub(super) fn said(why: &NotPublished) -> String {
    match why {
        NotPublished::Rule(_) | NotPublished::Moved(_) => why.to_string(),
        NotPublished::Git(_) => "git failed".to_owned(),
    }
}

/// A result that a person published.
#[derive(Debug)]
pub struct PublishedResult {
    pub job: JobView,
    pub branch: String,
}

/// Publishes the results of jobs, which a person approved.
pub fn publish(context: &mut Context, names: &[String]) -> Result<Vec<PublishedResult>, Problem> {
    let jobs = context.service().jobs_to_publish(names)?.value;
    let mut published = Vec::new();
    for job in &jobs {
        published.push(publish_one(context, job)?);
    }
    Ok(published)
}

fn publish_one(context: &mut Context, job: &Job) -> Result<PublishedResult, Problem> {
    let (Some(run), Some(url)) = (&job.run, &job.spec.code.url) else {
        return Err(gone(job, &"it has no run"));
    };
    let record = context.service().run_record(run.as_str())?.value;
    if record.host != context.facts.observer.host {
        return Err(gone(job, &format!("it is on host {}", record.host)));
    }
    let of = Repositories::open(context.dir(), url, &locks()?);
    let of = of.map_err(|error| not_published(job, &error))?;
    let commit = of
        .result_of(run)
        .map_err(|error| not_published(job, &error))?;
    let Some(commit) = commit else {
        return Err(gone(job, &"it was removed with the log of its run"));
    };
    let publishable = Publishable {
        item: &job.item,
        repo: job.repo.as_deref().unwrap_or_default(),
        code: &job.spec.code,
        url,
        commit: &commit,
        trust: job.trust,
        approved: true,
    };
    let branch = publishable
        .publish(&of)
        .map_err(|why| not_published(job, &why))?;
    if let Some(log) = &record.log {
        note(&RunFiles::at(log), run, &branch);
    }
    let job = context.service().result_published(job, &branch)?.value;
    Ok(PublishedResult { job, branch })
}

/// The run's answer says it from now on.
fn note(files: &RunFiles, run: &RunId, branch: &str) {
    let Ok(Some(mut end)) = SpooledEnd::read(files) else {
        return;
    };
    if end.run != run.as_str() {
        return;
    }
    end.add_to_answer(&format!(
        "A person approved the result. It was pushed to the branch `{branch}`."
    ));
    if file::remove(&files.patch()).is_ok() {
        end.write(files).ignore("the record of the job has it");
    }
}

fn gone(job: &Job, why: &dyn Display) -> Problem {
    let message = format!("the result of job {} is not here: {why}", job.id);
    let hint = Hint::run("queue", ["show", job.id.as_str()], "for details");
    Problem::new(Class::NotFound, "result_gone", message, hint)
}

fn not_published(job: &Job, why: &dyn Display) -> Problem {
    let why = why.to_string();
    let why = text::line(&why);
    let message = format!("the result of job {} was not published: {why}", job.id);
    let hint = Hint::run(
        "queue",
        ["publish", job.id.as_str()],
        "again when the cause is fixed",
    );
    Problem::new(Class::Refused, "not_published", message, hint)
}
