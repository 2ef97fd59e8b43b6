//! Mirrors: files that show sessions to tools that can only read files.
//!
//! A mirror is written when its session changes. Each file is written under the lock of its path,
//! from state that is read after the lock was taken, so of two changes at once the newer one stays.
//! A file that is replaced is complete at every instant, private to its owner, and never a link. No
//! link redirects a write: links are followed only in the part of the setting above the mirror's
//! own directory ([`tenure_host::parent_dir`]). When the session ends, the file is removed or
//! marked, if it still belongs to that session.
//!
//! *A failure* never fails the command that caused it: it is reported with the answer and stored
//! until the file is written again. *Crash*: the old file or the new one exists; temporary files of
//! a killed writer are removed by the next one.

pub mod setting;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tenure_core::id::{Cursor, SessionId};
use tenure_core::mirror_failure::MirrorFailure;
use tenure_host::file;
use tenure_host::kernel_lock::{Held, LockDir, LockError, LockName, Patience, Sharing};
use tenure_host::parent_dir::ParentDir;
use tenure_service::Here;
use tenure_service::mirror::content::{Document, SessionContext, documents, writer_of};

use crate::mirror::setting::{AtEnd, Location, Mirror};
use crate::open::Context;
use tenure_host::env::var as env;

/// How long a verb waits for other writers of the same files, in total.
const PATIENCE: Duration = Duration::from_secs(10);

/// Updates the mirrors of every session that changed since `mark`; returns what failed.
pub fn catch_up(context: &mut Context, mark: Cursor) -> Vec<String> {
    let changed = match context.service().changed_sessions(mark) {
        Ok(answer) => answer.value,
        Err(failure) => return vec![format!("cannot update the mirrors: {}", failure.error)],
    };
    let until = tenure_host::clock::instant() + PATIENCE;
    let failed = changed
        .into_iter()
        .map(|session| refresh(context, session, until));
    failed.flatten().collect()
}

/// Updates the mirrors of one session; returns what failed. Waits for other writers of its files until `until`.
pub fn refresh(context: &mut Context, session: SessionId, until: Instant) -> Vec<String> {
    let mirrors = context.settings.mirrors.clone();
    if mirrors.is_empty() {
        return Vec::new();
    }
    let mut writer = Writer {
        here: context.here(),
        home: env("HOME").and_then(|home| home.into_string().ok()),
        context,
        session,
        until,
        failed: Vec::new(),
        written: Vec::new(),
    };
    for mirror in &mirrors {
        writer.mirror(mirror);
    }
    let (failed, written) = (writer.failed, writer.written);
    let mut said: Vec<String> = failed
        .iter()
        .map(|failure| format!("cannot write the mirror {}; {}", failure.path, failure.why))
        .collect();
    if let Err(failure) = context.service().record_mirrors(&failed, &written) {
        said.push(format!(
            "cannot record the state of the mirrors: {}",
            failure.error
        ));
    }
    said
}

struct Writer<'a> {
    context: &'a mut Context,
    here: Here,
    home: Option<String>,
    session: SessionId,
    until: Instant,
    failed: Vec<MirrorFailure>,
    written: Vec<String>,
}

impl Writer<'_> {
    fn session_context(&mut self) -> io::Result<SessionContext> {
        let answer = self.context.service().context(self.session, &self.here);
        answer
            .map(|answer| answer.value)
            .map_err(|failure| io::Error::other(failure.error.to_string()))
    }

    /// Writes every file of one mirror; one failure does not affect the others.
    fn mirror(&mut self, mirror: &Mirror) {
        let Ok(context) = self.session_context() else {
            // The next command that reads the store reports what is wrong with it.
            return;
        };
        let state = self.context.dir().to_owned();
        let Some(location) = mirror.place(&context, self.home.as_deref(), &state) else {
            return;
        };
        if !mirror.is_for(&context.session.agent) {
            return;
        }
        for document in documents(mirror.format, &context) {
            let path = path_of(&location.path, &document);
            let done = self.write(mirror, &location, &path);
            self.note(&context, &path, done);
        }
        if mirror.format.is_directory() {
            for path in left_missions(&location.path, &context) {
                let done = self.write(mirror, &location, &path);
                self.note(&context, &path, done);
            }
        }
    }

    fn note(&mut self, context: &SessionContext, path: &Path, done: io::Result<()>) {
        let path = path.display().to_string();
        match done {
            Ok(()) => self.written.push(path),
            Err(error) => self.failed.push(MirrorFailure {
                path,
                session: context.session.handle.clone(),
                why: error.to_string(),
                at: context.read_at,
            }),
        }
    }

    /// Writes or removes one file, from the store's state after the path was locked.
    fn write(&mut self, mirror: &Mirror, location: &Location, path: &Path) -> io::Result<()> {
        let parent = ParentDir::open(path, &location.fixed)?;
        let _held = self.lock(path)?;
        let context = self.session_context()?;
        let document = documents(mirror.format, &context)
            .into_iter()
            .find(|document| path_of(&location.path, document) == path);
        let ended = context.session.ended_at.is_some();
        let target = parent.path();
        let present = file::read_plain(target).unwrap_or(None);
        let ours =
            present.as_deref().and_then(writer_of).as_deref() == Some(context.session.id.as_str());
        let done = file::remove_leftovers(target).and_then(|()| match document {
            None if ours => file::remove(target),
            Some(_) if ended && mirror.end == AtEnd::Remove && ours => file::remove(target),
            Some(document) if !ended || (ours && mirror.end == AtEnd::Mark) => {
                file::write_atomic(target, document.text(present.as_deref()).as_bytes())
            }
            // The file belongs to another session, which an ended one must not touch.
            Some(_) | None => Ok(()),
        });
        done.map_err(|error| parent.named(&error, path))
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Held>> {
        let locks = LockDir::open(&self.context.dir().join("locks"))?;
        let name = LockName::of_path(path).map_err(io::Error::other)?;
        let left = self
            .until
            .saturating_duration_since(tenure_host::clock::instant());
        match locks.lock(&name, Sharing::Exclusive, Patience::AtMost(left)) {
            Ok(held) => Ok(Some(held)),
            // The command that runs this one holds the lock for us.
            Err(LockError::Nested { .. }) => Ok(None),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

fn path_of(root: &Path, document: &Document) -> PathBuf {
    match &document.below {
        Some(below) => root.join(below),
        None => root.to_owned(),
    }
}

/// Files of missions that a session has left and that still belong to it.
fn left_missions(root: &Path, context: &SessionContext) -> Vec<PathBuf> {
    let Ok(entries) = fs_err::read_dir(root.join("missions")) else {
        return Vec::new();
    };
    let joined = |name: &str| context.missions.iter().any(|one| one.mission == name);
    let mut left = Vec::new();
    for entry in entries.flatten() {
        let file = entry.path().join("session.json");
        let is_joined = entry.file_name().to_str().is_some_and(joined);
        let own = || {
            let text = file::read_plain(&file).ok().flatten()?;
            Some(writer_of(&text)? == context.session.id)
        };
        if !is_joined && own() == Some(true) {
            left.push(file);
        }
    }
    left
}
