//! Mirrors: files that show sessions to tools that can only read files.
//!
//! A mirror is written when its session changes. Each file is written under the lock of its path,
//! from state that is read after the lock was taken, so of two changes at once the newer one stays.
//! A file that is replaced is complete at every instant, private to its owner, and never a link. No
//! link redirects a write: links are followed only in the part of the setting above the mirror's
//! own directory ([`tenure_host::parent_dir`]). When the session ends, the file is removed or
//! marked, if it still belongs to that session.
//!
//! Every process that opens the store brings the files up to date with the log ([`catch_up`]),
//! no matter who made the changes, and rewrites files that were deleted or overwritten. `progress.rs` is how
//! far that got. A path that several sessions share shows the one that changed last; when that one
//! ends, the file passes to the live session that was seen last.
//!
//! *A failure* never fails the command that caused it: it is reported with the answer and stored
//! until the file is written again. *Crash*: the old file or the new one exists; temporary files of
//! a killed writer are removed by the next one, and the next process catches up with the log.

pub mod left;
mod progress;
pub mod setting;
mod template;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tenure_core::id::{Cursor, SessionId};
use tenure_core::mirror_failure::MirrorFailure;
use tenure_host::kernel_lock::{HeldLock, LockDir, LockError, LockName, Patience, Sharing};
use tenure_host::parent_dir::ParentDir;
use tenure_host::{clock, file};
use tenure_service::MissionPlace;
use tenure_service::mirror::content::{Document, SessionContext, writer_of};

use crate::mirror::progress::Progress;
use crate::mirror::setting::{AtEnd, Location, Mirror};
use crate::open::Context;
use tenure_host::env::var as env;

/// How long a verb waits for other writers of the same files, in total.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often catching up may find deaths that change more sessions.
const MAX_ROUNDS: u32 = 8;

/// Which files are checked although their sessions did not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Those of every live session.
    All,
    /// Those of the session that sent an event; the others' only from time to time.
    Own(Option<SessionId>),
}

/// Updates the mirrors of every session that changed, for a verb; returns what failed.
pub fn catch_up(context: &mut Context) -> Vec<String> {
    catch_up_until(context, Check::All, clock::instant() + PATIENCE)
}

/// The same for a caller with a deadline.
pub fn catch_up_until(context: &mut Context, check: Check, until: Instant) -> Vec<String> {
    if !context.has_mirrors() {
        return Vec::new();
    }
    let mut writer = Writer::new(context, until);
    let caught_up = writer.catch_up(check);
    let (failed, written) = (writer.failed, writer.written);
    let mut said: Vec<String> = failed
        .iter()
        .map(|failure| format!("cannot write the mirror {}; {}", failure.path, failure.why))
        .collect();
    if let Err(error) = caught_up {
        said.push(format!("cannot update the mirrors: {error}"));
    }
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
    mirrors: Vec<Mirror>,
    here: MissionPlace,
    home: Option<String>,
    until: Instant,
    failed: Vec<MirrorFailure>,
    written: Vec<String>,
}

/// Sessions as they were read while files were checked.
type SessionContexts = BTreeMap<SessionId, Option<SessionContext>>;

impl<'a> Writer<'a> {
    fn new(context: &'a mut Context, until: Instant) -> Self {
        Self {
            mirrors: context.settings.mirrors.clone(),
            here: context.here(),
            home: env("HOME").and_then(|home| home.into_string().ok()),
            context,
            until,
            failed: Vec::new(),
            written: Vec::new(),
        }
    }
}

impl Writer<'_> {
    /// Writes what changed since the last time, then checks what should still be there.
    fn catch_up(&mut self, check: Check) -> io::Result<()> {
        let place = self.context.dir().join("mirrored");
        let store = self.context.service().location();
        let mut reached = Progress::read(&place, &store);
        let mut ended = false;
        let mut checks = match check {
            Check::All => true,
            Check::Own(_) => reached.is_due(clock::wall()),
        };
        for _ in 0..MAX_ROUNDS {
            let newest = said(self.context.service().newest_event())?;
            let after = reached.events.filter(|events| *events <= newest);
            if after != Some(newest) {
                ended |= self.changes(after)?;
            }
            // A file that a dead session left may be another's now.
            if checks || ended {
                self.check_all()?;
                reached.checked = Some(clock::wall());
                (checks, ended) = (false, false);
            } else if let Check::Own(Some(own)) = check {
                self.check(own, &mut SessionContexts::new());
            }
            let is_reached = reached.events == Some(newest);
            reached.events = Some(newest);
            if is_reached {
                break;
            }
        }
        reached.write(&place, &store)
    }

    /// Writes the mirrors of the sessions that changed; returns whether one of them has ended.
    fn changes(&mut self, after: Option<Cursor>) -> io::Result<bool> {
        // Without a last time, no file can show a session that has ended since.
        let Some(after) = after else {
            return Ok(true);
        };
        let mut ended = false;
        for session in said(self.context.service().changed_sessions(after))? {
            if let Ok(context) = self.session_context(session) {
                ended |= context.session.ended_at.is_some();
                for mirror in self.mirrors.clone() {
                    self.mirror(&mirror, session, &context);
                }
            }
        }
        Ok(ended)
    }

    /// Checks the files of every live session of this machine.
    fn check_all(&mut self) -> io::Result<()> {
        let mut read = SessionContexts::new();
        for session in said(self.context.service().mirrored_sessions())? {
            if clock::instant() > self.until {
                break;
            }
            self.check(session, &mut read);
        }
        Ok(())
    }

    /// Writes the files of a session that are missing or wrong, unless they show another live session.
    fn check(&mut self, session: SessionId, read: &mut SessionContexts) {
        let Some(context) = self.read(session, read) else {
            return;
        };
        if context.session.ended_at.is_some() {
            return;
        }
        for mirror in self.mirrors.clone() {
            let Some(location) = self.place(&mirror, &context) else {
                continue;
            };
            for document in mirror.documents(&context, self.context.dir()) {
                let path = path_of(&location.path, &document);
                if self.is_right(&mirror, &path, &document, &context, read) {
                    continue;
                }
                let done = self.write(&mirror, session, &location, &path);
                self.note(&context, &path, done);
            }
        }
    }

    fn is_right(
        &mut self,
        mirror: &Mirror,
        path: &Path,
        document: &Document,
        context: &SessionContext,
        read: &mut SessionContexts,
    ) -> bool {
        let Ok(Some(present)) = file::read_plain(path) else {
            return false;
        };
        let owner = match writer_of(&present) {
            Some(owner) if owner == context.session.id => return document.is_in(&present),
            Some(owner) => SessionId::parse(&owner).ok(),
            None => None,
        };
        let Some(owner) = owner.and_then(|owner| self.read(owner, read)) else {
            return false;
        };
        let its = |one: &Document, at: &Location| path_of(&at.path, one) == path;
        owner.session.ended_at.is_none()
            && self.place(mirror, &owner).is_some_and(|at| {
                mirror
                    .documents(&owner, self.context.dir())
                    .iter()
                    .any(|one| its(one, &at))
            })
    }

    fn read(&mut self, session: SessionId, read: &mut SessionContexts) -> Option<SessionContext> {
        if let Entry::Vacant(place) = read.entry(session) {
            place.insert(self.session_context(session).ok());
        }
        read.get(&session).cloned().flatten()
    }

    fn session_context(&mut self, session: SessionId) -> io::Result<SessionContext> {
        said(self.context.service().context(session, &self.here))
    }

    /// Where a mirror is for a session, if the session has one there.
    fn place(&self, mirror: &Mirror, context: &SessionContext) -> Option<Location> {
        let state = self.context.dir();
        let location = mirror.place(context, self.home.as_deref(), state)?;
        mirror.is_for(&context.session.agent).then_some(location)
    }

    /// Writes every file of one mirror; one failure does not affect the others.
    fn mirror(&mut self, mirror: &Mirror, session: SessionId, context: &SessionContext) {
        let Some(location) = self.place(mirror, context) else {
            return;
        };
        let mut paths: Vec<PathBuf> = mirror
            .documents(context, self.context.dir())
            .iter()
            .map(|document| path_of(&location.path, document))
            .collect();
        if mirror.format.is_directory() {
            paths.extend(left_missions(&location.path, context));
        }
        for path in paths {
            let done = self.write(mirror, session, &location, &path);
            self.note(context, &path, done);
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
    fn write(
        &mut self,
        mirror: &Mirror,
        session: SessionId,
        location: &Location,
        path: &Path,
    ) -> io::Result<()> {
        let parent = ParentDir::open(path, &location.fixed)?;
        let _held = self.lock(path)?;
        let context = self.session_context(session)?;
        let document = mirror
            .documents(&context, self.context.dir())
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

    fn lock(&self, path: &Path) -> io::Result<Option<HeldLock>> {
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

/// The answer of the store, or why there is none.
fn said<T>(reply: tenure_service::Reply<T>) -> io::Result<T> {
    let failed = |failure: tenure_service::Failure| io::Error::other(failure.error.to_string());
    reply.map(|answer| answer.value).map_err(failed)
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
