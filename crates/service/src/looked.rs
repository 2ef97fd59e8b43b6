//! What a look finds out and the next one may need: the branch of a session's directory, that a person was at its
//! window, and that a person stopped it.
//!
//! The branch is read for every session on this machine, because no agent reports every `git checkout`. For the
//! others the last one that was seen counts, with its age. An agent may report the same end for a signal and for a
//! person who stops it, and only later write down which it was. What was found is stored after the answer; if that fails,
//! the next look finds it again.

use std::time::Duration;

use crate::context::{Ctx, Stop};
use crate::evidence::{BranchSeen, Observation, Want};
use crate::transact::{Reply, Service};
use tenure_core::activity::ShownActivity;
use tenure_core::event::EventKind;
use tenure_core::id::SessionToken;
use tenure_core::session::{EndKind, Session};
use tenure_core::store::{Lock, StoreError, TxMode};
use tenure_core::{end, liveness};

/// How old the time of a branch may become on a store that other machines read.
const SEEN_LATELY: Duration = Duration::from_secs(60);

/// Why a session ended that a person stopped.
const STOPPED: &str = "the user stopped it with the agent's own command";

impl Ctx<'_> {
    /// Makes sure that the branches of these sessions were read, in one pass, where this machine has them.
    pub fn look_at_branches(&self, sessions: &[Session]) -> Result<(), Stop> {
        let is_new = |dir: &&String| self.evidence.branch(dir).is_none();
        let here = sessions.iter().filter(|session| self.is_here(session));
        let dirs = here.map(|session| &session.workdir.dir).filter(is_new);
        let mut dirs: Vec<String> = dirs.cloned().collect();
        dirs.sort_unstable();
        dirs.dedup();
        if dirs.is_empty() {
            Ok(())
        } else {
            Err(Stop::Look(Want::Branches(dirs)))
        }
    }

    /// Whether a session's directory is one of this machine, and its branch still matters.
    fn is_here(&self, session: &Session) -> bool {
        let is_here = match &session.process {
            Some(process) => liveness::is_observable(process, self.observer),
            // One that could not be identified is of the machine that the store is on.
            None => !self.observer.shared_store,
        };
        session.is_open() && session.workdir.repo.is_some() && is_here
    }

    /// The branch of a session's directory now, as far as it was read.
    fn read_branch(&self, session: &Session) -> Option<Option<String>> {
        let read = self.evidence.branch(&session.workdir.dir);
        read.filter(|_| self.is_here(session)).cloned().flatten()
    }

    /// An open session with the branch that its directory has now, where this machine has it. The session that takes its
    /// work over finds it there, even if nobody looked since the checkout.
    pub fn with_branch(&self, session: &Session) -> Result<Session, Stop> {
        self.look_at_branches(std::slice::from_ref(session))?;
        let mut session = session.clone();
        if let Some(name) = self.read_branch(&session) {
            session.workdir.branch = name;
            session.branch_at = Some(self.now.wall);
        }
        Ok(session)
    }

    /// The branch of a session's directory, as far as it was read.
    pub fn branch_of(&mut self, session: &Session) -> BranchSeen {
        let stored = &session.workdir.branch;
        match self.read_branch(session) {
            Some(name) => {
                let age = session.branch_at.map(|at| at.age_at(self.now.wall));
                let is_old = age.is_none_or(|age| age > SEEN_LATELY);
                if name != *stored || (self.observer.shared_store && is_old) {
                    self.found(session, |looked| looked.branch = Some(name.clone()));
                }
                BranchSeen { name, at: None }
            }
            None => BranchSeen {
                name: stored.clone(),
                at: session.branch_at.filter(|_| stored.is_some()),
            },
        }
    }

    /// Remembers that a person is at the window of a session, if its turn ended unseen.
    pub fn note_attendance(&mut self, session: &Session, shown: Option<&ShownActivity>) {
        let at_pane = self.evidence.testimony(session.id);
        let at_pane = at_pane.and_then(|testimony| testimony.attended_at);
        let ended = shown.filter(|shown| shown.ended_by_itself);
        let unseen = ended.is_some_and(|shown| Some(shown.since) > session.attended_at);
        if unseen && at_pane > session.attended_at {
            self.found(session, |looked| looked.attended = true);
        }
    }

    /// These sessions that seem to be cut off, without those that a person stopped.
    pub fn without_stopped(&mut self, sessions: Vec<Session>) -> Result<Vec<Session>, Stop> {
        self.ask_about_all(&sessions)?;
        let ends = sessions.into_iter().map(|session| self.with_end(session));
        let mut ends: Vec<Session> = ends.collect();
        let is_stopped = |session: &Session| {
            let closed = session.closed.as_ref();
            closed.is_some_and(|closed| closed.kind == EndKind::Left)
        };
        ends.retain(|session| !is_stopped(session));
        Ok(ends)
    }

    /// A session with the end that its agent's files show.
    pub fn with_end(&mut self, mut session: Session) -> Session {
        let testimony = self.evidence.testimony(session.id);
        let stopped_at = testimony.and_then(|testimony| testimony.stopped_at);
        if end::was_stopped(&session, stopped_at) {
            stop(&mut session);
            self.found(&session, |looked| looked.stopped = true);
        }
        session
    }

    fn found(&mut self, session: &Session, note: impl FnOnce(&mut Observation)) {
        let known = self
            .effects
            .looked
            .iter()
            .position(|one| one.session.id == session.id);
        let at = known.unwrap_or(self.effects.looked.len());
        if known.is_none() {
            self.effects.looked.push(Observation {
                session: session.clone(),
                branch: None,
                attended: false,
                stopped: false,
            });
        }
        note(&mut self.effects.looked[at]);
    }
}

impl Service<'_> {
    /// Stores what a look found. The answer is valid without it.
    pub(crate) fn remember(&mut self, looked: &[Observation]) {
        if self.looks_only() {
            return;
        }
        for one in looked {
            if self.remember_one(one).is_err() {
                return;
            }
        }
    }

    fn remember_one(&mut self, looked: &Observation) -> Result<(), StoreError> {
        let session = &looked.session;
        if looked.stopped {
            drop(self.remember_stop(session.token()));
        }
        if !looked.attended && looked.branch.is_none() {
            return Ok(());
        }
        let mut tx = self.begin(TxMode::Beat)?;
        let now = tx.now()?.wall;
        if looked.attended {
            let (seen_at, lease) = (session.seen_at, &session.lease);
            tx.touch_session(session.token(), seen_at, lease, None, Some(now))?;
        }
        if let Some(branch) = &looked.branch {
            tx.note_branch(session.token(), branch.as_deref(), now)?;
        }
        tx.commit()
    }

    /// Stores that a person stopped a session, if nothing has changed since.
    fn remember_stop(&mut self, token: SessionToken) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| {
            ctx.lock([Lock::Session(token.id)])?;
            let mut session = ctx.session(token.id)?;
            let closed = session.closed.as_ref();
            let is_cut_off = closed.is_some_and(|closed| closed.kind == EndKind::CutOff);
            if session.token() != token || !is_cut_off {
                return Ok(());
            }
            stop(&mut session);
            ctx.tx.update_session(&session)?;
            let evidence = STOPPED.to_owned();
            ctx.log(&ctx.event(EventKind::Changed, Some(token.id), "look", evidence))
        })
    }
}

fn stop(session: &mut Session) {
    if let Some(closed) = &mut session.closed {
        closed.kind = EndKind::Left;
        closed.why = STOPPED.to_owned();
    }
}
