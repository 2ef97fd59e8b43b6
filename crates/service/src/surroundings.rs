//! Where a use case runs and where sessions work: files, repositories, machines.

use tenure_core::repository::{self, Repository};
use tenure_core::session::Session;
use tenure_core::spelling;
use tenure_core::write_conflict::RepoFile;

use crate::context::{Ctx, Stop};
use crate::evidence::Want;

impl Ctx<'_> {
    /// A file's position in its repository, if it is in one.
    pub fn file(&self, path: &str) -> Result<Option<RepoFile>, Stop> {
        match self.evidence.file(path) {
            Some(found) => Ok(found.clone().map(|file| RepoFile {
                repository: self.here(file.repository),
                ..file
            })),
            None => Err(Stop::Look(Want::Files(vec![path.to_owned()]))),
        }
    }

    /// The repository of the caller's directory, if it is in one.
    pub fn repository(&self) -> Option<Repository> {
        let found = self.facts.repository.clone();
        found.map(|found| self.here(found))
    }

    /// A repository of this machine, under its name in this store.
    fn here(&self, found: Repository) -> Repository {
        if self.observer.shared_store {
            found.on(&self.observer.host)
        } else {
            found
        }
    }

    /// A path of this machine, under its name in this store.
    pub fn path_here(&self, path: &str) -> String {
        if self.observer.shared_store && path.starts_with('/') {
            repository::on(&self.observer.host, path)
        } else {
            path.to_owned()
        }
    }

    /// Whether a session is known to work on another machine, where the same path is another place.
    pub fn is_elsewhere(&self, session: &Session) -> bool {
        let process = session.process.as_ref();
        self.observer.shared_store && process.is_some_and(|one| one.host != self.observer.host)
    }

    /// Whether what a session does in its directory can matter to a repository or directory of this machine: it is
    /// here too, or in a clone with a remote.
    pub fn is_beside(&self, session: &Session) -> bool {
        let is_clone = |repo: &String| !spelling::is_directory(repo);
        !self.is_elsewhere(session) || session.workdir.repo.as_ref().is_some_and(is_clone)
    }

    /// Makes sure that all these files have been observed, in one pass.
    pub fn look_at_files(&self, paths: &[String]) -> Result<(), Stop> {
        let is_unseen = |path: &&String| self.evidence.file(path).is_none();
        let unseen: Vec<String> = paths.iter().filter(is_unseen).cloned().collect();
        if unseen.is_empty() {
            Ok(())
        } else {
            Err(Stop::Look(Want::Files(unseen)))
        }
    }
}
