//! What a use case works with: the transaction, the time, what was observed, and small steps that several use
//! cases share.

use std::collections::{BTreeMap, BTreeSet};

use crate::answer;
use crate::batch::SessionBatch;
use crate::error::Error;
use crate::evidence::{Evidence, Observation, Want};
use tenure_core::agent;
use tenure_core::claim::{ClaimRecord, EndedBy};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::{Handle, RunId, SessionId};
use tenure_core::keeper::Keeper;
use tenure_core::key::Key;
use tenure_core::line::Fitness;
use tenure_core::liveness::{self, Liveness};
use tenure_core::notice::{MAX_AT_ONCE, Notice, NoticeKind, NoticeReader, Pending};
use tenure_core::process::{CallerFacts, Observer, Process, RunState, Sighting};
use tenure_core::session::{Closed, ClosedBy, EndKind, Session, Standing};
use tenure_core::store::{Lock, StoreError, Tx, TxMode};
use tenure_core::time::Now;
use tenure_core::tree_lock::TreeChange;
use tenure_core::world::World;

use tenure_core::policy::Policy;

/// Why a run of a use case stopped before its answer.
#[derive(Debug)]
pub enum Stop {
    /// This must be observed first.
    Look(Want),
    /// It must run again in this mode.
    Write(TxMode),
    /// It must run again with these locked as well, before it reads the clock.
    Lock(Vec<Lock>),
    /// The same with these instead of what was locked before, because it chose something else.
    LockInstead(Vec<Lock>),
    /// It must run again on one state of the store, with nothing locked: what it read may be of several moments. What
    /// was written so far is kept, such as the renewal of a lease.
    OneState,
    /// The deaths of these sessions must be recorded first, in a transaction of their own.
    RecordDeaths(Vec<SessionId>),
    /// Refused. What was written so far is kept.
    Refuse(Box<Error>),
    /// The store failed. Nothing is kept.
    Store(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Stop::Store(error)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Refuse(Box::new(error))
    }
}

/// What a run leaves beside its answer, for after the commit.
#[derive(Debug, Default)]
pub struct Effects {
    pub notices: Pending,
    /// Who reads the answer.
    pub reader: answer::Reader,
    /// Changes to worktree locks.
    pub trees: Vec<TreeChange>,
    /// Sessions whose deaths are to be recorded.
    pub dead: Vec<SessionId>,
    /// What was found out about the sessions of the answer.
    pub looked: Vec<Observation>,
    /// What is missing in the answer because it could not be read.
    pub damage: Vec<String>,
}

/// One run of a use case.
pub struct Ctx<'a> {
    pub tx: &'a mut dyn Tx,
    pub mode: TxMode,
    /// What was locked before the clock was read.
    pub locked: &'a BTreeSet<Lock>,
    /// Whether the store excludes only writers that lock the same rows.
    pub locks_rows: bool,
    /// Sessions created in this run, which no other process can see yet.
    pub created: Vec<SessionId>,
    pub now: Now,
    pub policy: &'a Policy,
    pub facts: &'a CallerFacts,
    pub world: &'a dyn World,
    /// Who observes, and what it can see.
    pub observer: &'a Observer,
    pub location: String,
    pub evidence: &'a Evidence,
    pub effects: Effects,
    /// Keys that the use case reads once the caller is known.
    pub wanted: Vec<Key>,
    /// The session whose process tree the caller runs in. The call itself proves that it is alive.
    pub own: Option<SessionId>,
    /// Who watches the sessions that were judged in this run.
    pub watchers: BTreeMap<SessionId, Option<Keeper>>,
    /// How many deaths were recorded for this use case before this run.
    pub deaths_recorded: usize,
    /// What was read ahead for a list.
    pub batch: SessionBatch,
    /// Deaths that could not be recorded for this use case, each with the unreadable row.
    pub unrecorded: &'a BTreeMap<SessionId, String>,
    /// Whether nothing of this run is kept. Then no death is recorded and no notice is delivered.
    pub looks_only: bool,
}

impl Ctx<'_> {
    /// Makes sure that this run may change state.
    pub fn write(&mut self) -> Result<(), Stop> {
        match self.mode {
            TxMode::Write => Ok(()),
            TxMode::Read | TxMode::Beat => Err(Stop::Write(TxMode::Write)),
        }
    }

    /// Makes sure that this run may at least record a heartbeat.
    pub fn write_beat(&mut self) -> Result<(), Stop> {
        match self.mode {
            TxMode::Write | TxMode::Beat => Ok(()),
            TxMode::Read => Err(Stop::Write(TxMode::Beat)),
        }
    }

    /// Makes sure that these are locked. If they are not, the use case runs again from the start with all locks
    /// taken in order, so everything it read is read again under the locks.
    pub fn lock(&mut self, wanted: impl IntoIterator<Item = Lock>) -> Result<(), Stop> {
        self.lock_with(|_| Ok(wanted.into_iter().collect()))
    }

    /// The same if finding the locks takes work; skipped if the store does not lock rows.
    pub fn lock_with(
        &mut self,
        wanted: impl FnOnce(&mut Self) -> Result<Vec<Lock>, Stop>,
    ) -> Result<(), Stop> {
        if !self.locks_rows {
            return self.write();
        }
        let mut missing = wanted(self)?;
        missing.extend(self.keepers_of(&missing));
        missing.retain(|lock| self.lacks(lock));
        if missing.is_empty() {
            self.write()
        } else {
            Err(Stop::Lock(missing))
        }
    }

    /// The same for what was chosen among others, whose locks are given up.
    pub fn lock_chosen_with(
        &mut self,
        wanted: impl FnOnce(&mut Self) -> Result<Vec<Lock>, Stop>,
    ) -> Result<(), Stop> {
        if !self.locks_rows {
            return self.write();
        }
        let mut wanted = wanted(self)?;
        wanted.extend(self.keepers_of(&wanted));
        if wanted.iter().any(|lock| self.lacks(lock)) {
            Err(Stop::LockInstead(wanted))
        } else {
            self.write()
        }
    }

    /// Makes sure that all this run read is of one moment.
    pub fn in_one_state(&self) -> Result<(), Stop> {
        match self.mode {
            TxMode::Write | TxMode::Beat if self.locks_rows => Err(Stop::OneState),
            _ => Ok(()),
        }
    }

    /// Whether this is to be locked; nobody else can see a session that this run created.
    fn lacks(&self, lock: &Lock) -> bool {
        let is_own = matches!(lock, Lock::Session(id) if self.created.contains(id));
        !self.locked.contains(lock) && !is_own
    }

    /// Makes sure that the existence of all these paths is known, in one pass.
    pub fn look_at_paths(&self, paths: &[String]) -> Result<(), Stop> {
        let is_new = |path: &&String| self.evidence.is_there(path).is_none();
        let unseen: Vec<String> = paths.iter().filter(is_new).cloned().collect();
        if unseen.is_empty() {
            Ok(())
        } else {
            Err(Stop::Look(Want::Paths(unseen)))
        }
    }

    pub fn is_there(&self, path: &str) -> Result<bool, Stop> {
        let unseen = || Stop::Look(Want::Paths(vec![path.to_owned()]));
        self.evidence.is_there(path).ok_or_else(unseen)
    }

    pub fn liveness(&mut self, session: &Session) -> Result<Liveness, Stop> {
        Ok(self.lives_by(session)?.0)
    }

    /// The process whose exit is the next thing that can happen to a session's life.
    pub fn watched(&mut self, session: &Session) -> Result<Option<Process>, Stop> {
        Ok(self.lives_by(session)?.1)
    }

    /// Whether a session lives, and the process that decides that.
    pub(super) fn lives_by(
        &mut self,
        session: &Session,
    ) -> Result<(Liveness, Option<Process>), Stop> {
        if session.is_open() && self.own == Some(session.id) {
            return Ok((Liveness::Alive, session.process.clone()));
        }
        self.seen_to_live_by(session)
    }

    /// The same, without counting the caller's own call as proof.
    pub fn seen_to_live_by(
        &mut self,
        session: &Session,
    ) -> Result<(Liveness, Option<Process>), Stop> {
        let unseen = |process: Process| Stop::Look(Want::Processes(vec![process]));
        let (mut seen, process) = session.lives_by(
            |process| self.judged(process).map_err(unseen),
            |daemon| self.has_turn(session, daemon),
        )?;
        let process = process.cloned();
        if session.is_open() && self.observer.shared_store && !matches!(seen, Liveness::Alive) {
            seen = self.reported(session, seen)?;
            if !matches!(seen, Liveness::Dead(_)) {
                return Ok((seen, process));
            }
        }
        if session.is_open()
            && matches!(seen, Liveness::Dead(_))
            && let Some(runner) = self.runner_of(session)?
        {
            let runs = self.judged(&runner).map_err(unseen)?;
            if !matches!(runs, Liveness::Dead(_)) {
                return Ok((runs, Some(runner)));
            }
        }
        Ok((seen, process))
    }

    /// Whether a session is in a run that has no recorded end.
    pub fn is_in_run(&mut self, session: &Session) -> Result<bool, Stop> {
        Ok(self.open_run_in(session)?.is_some())
    }

    /// The run without a recorded end that a session is in, in its present life.
    pub fn open_run_in(&mut self, session: &Session) -> Result<Option<RunId>, Stop> {
        let run = self.open_run(session.id)?;
        let run = run.filter(|run| run.session == Some(session.token()));
        Ok(run.map(|run| run.id))
    }

    /// The runner of the run that a session is in. While it lives, it alone ends the session: it may give it
    /// another process.
    fn runner_of(&mut self, session: &Session) -> Result<Option<Process>, Stop> {
        let run = self.open_run(session.id)?;
        let run = run.filter(|run| run.session == Some(session.token()));
        Ok(run.and_then(|run| run.runner))
    }

    /// Whether a daemon is in a turn of a session, if it can be asked; hooks never ask.
    fn has_turn(&self, session: &Session, daemon: &Process) -> Result<Option<bool>, Stop> {
        let spec = agent::spec_of(&session.agent).and_then(|spec| spec.daemon);
        let (true, Some(spec), Some(native_id)) =
            (self.evidence.has_witness(), spec, &session.native_id)
        else {
            return Ok(None);
        };
        match self.evidence.turn(daemon, native_id) {
            Some(said) => Ok(said),
            None => {
                let want = vec![(spec, daemon.clone(), native_id.clone())];
                Err(Stop::Look(Want::Turns(want)))
            }
        }
    }

    /// Whether the process of a session is gone, regardless of the caller and of what a daemon still does for
    /// it.
    pub fn is_gone(&self, session: &Session) -> Result<bool, Stop> {
        let Some(process) = &session.process else {
            return Ok(false);
        };
        let judged = self.judged(process);
        let seen = judged.map_err(|process| Stop::Look(Want::Processes(vec![process])))?;
        Ok(matches!(seen, Liveness::Dead(_)))
    }

    /// Whether a process is alive, whatever it is.
    pub fn process_liveness(&self, process: &Process) -> Result<Liveness, Stop> {
        let unseen = |process: Process| Stop::Look(Want::Processes(vec![process]));
        self.judged(process).map_err(unseen)
    }

    pub(super) fn judged(&self, process: &Process) -> Result<Liveness, Process> {
        let observer = self.observer;
        if let Some(settled) = liveness::settled_unseen(process, observer) {
            return Ok(settled);
        }
        match self.evidence.sighting(process) {
            Some(sighting) => Ok(liveness::judge(process, observer, sighting)),
            None => Err(process.clone()),
        }
    }

    /// How a session stands: its liveness weighed against its lease.
    pub fn standing(&mut self, session: &Session) -> Result<Standing, Stop> {
        let liveness = self.liveness(session)?;
        self.standing_as(session, &liveness)
    }

    pub fn fitness(&self, process: &Process) -> Result<Fitness, Stop> {
        let observer = self.observer;
        if let Some(settled) = liveness::settled_unseen(process, observer) {
            return Ok(match settled {
                Liveness::Dead(_) => Fitness::Dead,
                Liveness::Alive | Liveness::Unknown(_) => Fitness::Ready,
            });
        }
        let Some(sighting) = self.evidence.sighting(process) else {
            return Err(Stop::Look(Want::Processes(vec![process.clone()])));
        };
        Ok(match liveness::judge(process, observer, sighting) {
            Liveness::Dead(_) => Fitness::Dead,
            Liveness::Unknown(_) => Fitness::Ready,
            Liveness::Alive => match sighting {
                Sighting::Present {
                    state: RunState::Stopped,
                    ..
                } => Fitness::Stopped,
                _ => Fitness::Ready,
            },
        })
    }

    /// A key's row; locked for a grant if this run holds the key's lock.
    pub fn claim_record(&mut self, key: &Key) -> Result<ClaimRecord, Stop> {
        if self.may_grant(key) {
            return Ok(self.tx.lock_claim(key)?);
        }
        let record = self.tx.claim(key)?;
        Ok(record.unwrap_or_else(|| ClaimRecord::unknown(key.clone())))
    }

    /// The same for several keys, in their order.
    pub fn claim_records(&mut self, keys: &[Key]) -> Result<Vec<ClaimRecord>, Stop> {
        let (locked, others): (Vec<Key>, Vec<Key>) =
            keys.iter().cloned().partition(|key| self.may_grant(key));
        let mut found = self.tx.lock_claims(&locked)?;
        found.extend(self.tx.claims(&others)?);
        let found = found.into_iter();
        let mut found: BTreeMap<Key, ClaimRecord> =
            found.map(|record| (record.key.clone(), record)).collect();
        let mut of = |key: &Key| {
            let known = found.remove(key);
            known.unwrap_or_else(|| ClaimRecord::unknown(key.clone()))
        };
        Ok(keys.iter().map(&mut of).collect())
    }

    fn may_grant(&self, key: &Key) -> bool {
        let is_locked = || !self.locks_rows || self.locked.contains(&Lock::Key(key.clone()));
        self.mode == TxMode::Write && is_locked()
    }

    /// A session that a row refers to. If it is missing, the store is damaged.
    pub fn session(&mut self, id: SessionId) -> Result<Session, Stop> {
        match self.tx.session(id)? {
            Some(session) => Ok(session),
            None => Err(Stop::Store(StoreError::Damaged {
                store: self.location.clone(),
                why: format!("a row refers to session {id}, which does not exist"),
            })),
        }
    }

    /// Closes a session and ends its holds, in this transaction.
    pub fn close(
        &mut self,
        session: &Session,
        by: ClosedBy,
        why: &str,
        actor: Option<SessionId>,
        reason: Option<String>,
    ) -> Result<Session, Stop> {
        let kind = match by {
            ClosedBy::Death => self.death_kind(session)?,
            ClosedBy::End | ClosedBy::Moved => by.usual_kind(),
        };
        self.close_as(session, by, kind, why, actor, reason)
    }

    /// The same for an end whose kind is known.
    pub fn close_as(
        &mut self,
        session: &Session,
        by: ClosedBy,
        kind: EndKind,
        why: &str,
        actor: Option<SessionId>,
        reason: Option<String>,
    ) -> Result<Session, Stop> {
        let mut closed = self.with_branch(session)?;
        self.lock_with(|ctx| ctx.locks_to_close(session.id))?;
        let (what, ends) = match (by, kind) {
            (ClosedBy::End, _) => (EventKind::Ended, EndedBy::End),
            // It exited in order; only its process shows it.
            (ClosedBy::Death, EndKind::Left) => (EventKind::Ended, EndedBy::Death),
            (ClosedBy::Death, _) => (EventKind::Died, EndedBy::Death),
            (ClosedBy::Moved, _) => (EventKind::Moved, EndedBy::End),
        };
        let mechanism = match what {
            EventKind::Ended if by == ClosedBy::Death => "exit",
            _ => by.as_str(),
        };
        closed.closed = Some(Closed {
            at: self.now.wall,
            by,
            why: why.to_owned(),
            kind,
            dismissed_at: None,
        });
        self.tx.update_session(&closed)?;
        closed.revision += 1;
        self.log(&NewEvent {
            actor: actor.filter(|id| *id != session.id),
            reason,
            ..self.event(what, Some(session.id), mechanism, why.to_owned())
        })?;
        self.end_open_holds(session.id, ends, why)?;
        self.drop_twin_notices(session)?;
        self.move_tree(session, false);
        Ok(closed)
    }

    /// Drops what others in its conversation were not told yet: that it is there too.
    fn drop_twin_notices(&mut self, gone: &Session) -> Result<(), Stop> {
        let Some(native_id) = &gone.native_id else {
            return Ok(());
        };
        let others = self.in_conversation(&gone.agent, native_id)?;
        for other in others.iter().filter(|other| other.id != gone.id) {
            let pending = self.tx.pending_notices(other.id, 0)?;
            let is_about =
                |one: &&Notice| one.kind == NoticeKind::Twin && one.from == Some(gone.id);
            let about = pending.iter().filter(is_about).filter_map(|one| one.id);
            let about: Vec<_> = about.collect();
            if !about.is_empty() {
                self.tx.mark_delivered(other.id, &about, self.now.wall)?;
            }
        }
        Ok(())
    }

    /// A session starts or stops working in its directory.
    pub fn move_tree(&mut self, session: &Session, begins: bool) {
        if session.workdir.repo.is_some() {
            self.effects.trees.push(TreeChange {
                dir: session.workdir.dir.clone(),
                handle: session.handle.to_string(),
                begins,
            });
        }
    }

    /// Ends everything that a session holds; all of it is locked.
    pub fn end_open_holds(
        &mut self,
        session: SessionId,
        by: EndedBy,
        why: &str,
    ) -> Result<(), Stop> {
        let end = tenure_core::claim::HoldEnd {
            at: self.now.wall,
            by,
        };
        for (key, epoch) in self.tx.end_holds_of(session, end)? {
            self.log(&NewEvent {
                key: Some(key),
                epoch: Some(epoch),
                ..self.event(EventKind::Freed, Some(session), by.as_str(), why.to_owned())
            })?;
        }
        Ok(())
    }

    /// The locks needed to end a session or its holds: its keys, then the session itself, so that it is granted
    /// nothing in between.
    pub fn locks_to_close(&mut self, session: SessionId) -> Result<Vec<Lock>, Stop> {
        let held = self.tx.open_holds(session)?.into_iter();
        let keys = held.map(|hold| Lock::Key(hold.key));
        Ok(keys.chain([Lock::Session(session)]).collect())
    }

    /// An event with only its kind, subject, means and evidence.
    pub fn event(
        &self,
        kind: EventKind,
        session: Option<SessionId>,
        mechanism: &'static str,
        evidence: String,
    ) -> NewEvent {
        NewEvent {
            kind,
            session,
            actor: None,
            key: None,
            epoch: None,
            mechanism,
            evidence,
            reason: None,
        }
    }

    pub fn log(&mut self, event: &NewEvent) -> Result<(), Stop> {
        let at = self.now.wall;
        match &self.facts.token {
            // A death that it found is not its act.
            Some(token) if !matches!(event.mechanism, "death" | "exit" | "lease") => {
                let reason = Some(token.on_record(event.reason.clone()));
                let event = NewEvent {
                    reason,
                    ..event.clone()
                };
                self.tx.append_event(&event, at)?;
            }
            _ => self.tx.append_event(event, at)?,
        };
        Ok(())
    }

    pub fn notify(
        &mut self,
        to: SessionId,
        kind: NoticeKind,
        message: String,
        from: Option<SessionId>,
        about: Option<(&Key, tenure_core::id::Epoch)>,
    ) -> Result<(), Stop> {
        self.tx.add_notice(&Notice {
            id: None,
            to,
            kind,
            message,
            key: about.map(|(key, _)| key.to_string()),
            epoch: about.map(|(_, epoch)| epoch),
            from,
            at: self.now.wall,
            wakes: None,
            woke_at: None,
        })?;
        Ok(())
    }

    /// Adds a session's pending notices to the answer. They stay pending until they have been written out.
    pub fn tell(&mut self, session: SessionId) -> Result<(), Stop> {
        if self.tx.has_notices(session)? {
            self.effects.notices = self.tx.pending_notices(session, MAX_AT_ONCE)?;
        }
        Ok(())
    }

    /// Who reads a session's notices.
    pub fn notice_reader(&mut self, id: SessionId) -> Result<NoticeReader, Stop> {
        let session = self.session(id)?;
        if session.agent.as_str() == tenure_core::agent::HUMAN {
            return Ok(NoticeReader::Person);
        }
        Ok(if self.tx.has_model_channel(session.token())? {
            NoticeReader::Model
        } else {
            NoticeReader::Program
        })
    }

    /// Generates an unused id and handle.
    pub fn mint(
        &mut self,
        agent: &tenure_core::id::AgentName,
    ) -> Result<(SessionId, Handle), Stop> {
        let random = self.world.random();
        let mut id_bytes = [0; 10];
        id_bytes.copy_from_slice(&random[..10]);
        let id = SessionId::mint(self.now.wall.0, id_bytes);
        for length in 4..=12 {
            let code = self.world.random();
            let handle = Handle::mint(agent, length, &code);
            if self.tx.session_by_handle(handle.as_str())?.is_none() {
                return Ok((id, handle));
            }
        }
        Err(Stop::Store(StoreError::Conflict))
    }
}
