//! Recording deaths, in transactions separate from the use case that found them.
//!
//! Recording a death writes several rows, and a writer blocks every hook. So one transaction records only a few
//! deaths. A list has the first ones that it finds recorded and shows the others as dead: a death that is not
//! recorded yet is derived again by every caller, and blocks no one. If all of them must be recorded, that
//! happens batch by batch, with a pause after each.
//!
//! A use case never records a death among its own writes, because it would have to lock everything that the
//! dead session holds besides its own locks. If its answer depends on the record, it stops, the death is
//! recorded, and it runs again; otherwise the death is recorded afterwards.
//!
//! A dead session with an unreadable row stays as it is and does not stop others from being recorded. A list
//! reports it and continues; a request for that session alone fails.
//!
//! *Crash*: what was recorded stays, and the next caller continues. *Clock jump*: no clock is compared.

use std::collections::{BTreeMap, BTreeSet};

use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::evidence::Want;
use crate::transact::{Failure, Reply, Service};
use crate::unseen::Unseen;
use tenure_core::agent::spec_of;
use tenure_core::end::{self, Ending};
use tenure_core::event::{Event, EventFilter, EventKind};
use tenure_core::id::SessionId;
use tenure_core::liveness::Liveness;
use tenure_core::run::Run;
use tenure_core::session::{Closed, ClosedBy, EndKind, Session};
use tenure_core::store::{SessionFilter, StoreError, TxMode};

/// How many deaths one transaction records.
pub const MAX_DEATHS_AT_ONCE: usize = 100;
/// How many events are searched for the last event of a session.
const MAX_RECENT: usize = 20;

/// Sessions whose deaths could not be recorded, each with its unreadable row.
pub type Unrecorded = BTreeMap<SessionId, String>;

/// An open session whose death is proved and not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadSession {
    pub id: SessionId,
    pub handle: String,
    pub why: String,
}

impl Ctx<'_> {
    /// Returns the session after recording its death, if it is dead.
    pub fn record_death_if_proved(&mut self, session: Session) -> Result<Session, Stop> {
        if !self.looks_only
            && session.is_open()
            && let Liveness::Dead(_) = self.liveness(&session)?
        {
            return Err(self.record_death_first(session.id));
        }
        Ok(session)
    }

    /// Requests that a death be recorded first. If that failed because of an unreadable row, this is the error.
    pub fn record_death_first(&self, dead: SessionId) -> Stop {
        match self.unrecorded.get(&dead) {
            None => Stop::RecordDeaths(vec![dead]),
            Some(why) => Stop::Store(StoreError::Damaged {
                store: self.location.clone(),
                why: why.clone(),
            }),
        }
    }

    /// The same for many sessions, up to what one transaction records, skipping unreadable ones.
    pub fn record_deaths_of(&mut self, sessions: &[Session]) -> Result<(), Stop> {
        let mut dead = Vec::new();
        for session in sessions.iter().filter(|session| session.is_open()) {
            if let Liveness::Dead(_) = self.liveness(session)? {
                dead.push(session.id);
            }
        }
        dead.truncate(MAX_DEATHS_AT_ONCE.saturating_sub(self.deaths_recorded));
        self.record_deaths_in_batches(dead)
    }

    fn record_deaths_in_batches(&self, mut dead: Vec<SessionId>) -> Result<(), Stop> {
        dead.retain(|id| !self.unrecorded.contains_key(id));
        if dead.is_empty() || self.looks_only {
            Ok(())
        } else {
            Err(Stop::RecordDeaths(dead))
        }
    }

    /// Records the deaths found so far, for a use case that continues with the recorded state.
    pub fn record_deaths_found(&mut self) -> Result<(), Stop> {
        let met = std::mem::take(&mut self.effects.dead);
        self.record_deaths_in_batches(met)
    }

    /// One of many sessions in a list, as it is once its death is recorded. The record is written afterwards,
    /// unless enough are queued already.
    pub fn record_death_later(&mut self, mut session: Session) -> Result<Session, Stop> {
        if self.deaths_recorded + self.effects.dead.len() < MAX_DEATHS_AT_ONCE
            && session.is_open()
            && let Liveness::Dead(proof) = self.liveness(&session)?
        {
            self.effects.dead.push(session.id);
            session.closed = Some(Closed {
                at: self.now.wall,
                by: ClosedBy::Death,
                why: proof.to_string(),
                kind: self.death_kind(&session)?,
                dismissed_at: None,
            });
        }
        Ok(session)
    }

    /// Whether a session whose process is gone left or was cut off.
    pub fn death_kind(&mut self, session: &Session) -> Result<EndKind, Stop> {
        if let Some(run) = self.run_of_session(session)? {
            return Ok(run
                .end
                .map_or(EndKind::CutOff, |end| end.outcome.end_kind()));
        }
        let announces = spec_of(&session.agent).is_some_and(|spec| spec.announces);
        let in_order = announces && self.was_leaving(session)? || self.was_orderly(session)?;
        let ending = Ending::Died { in_order };
        Ok(end::kind(session, session.doing(), ending))
    }

    /// The run of a session in its current life, if it has one.
    pub fn run_of_session(&mut self, session: &Session) -> Result<Option<Run>, Stop> {
        let run = self.newest_run(session.id)?;
        Ok(run.filter(|run| run.session == Some(session.token())))
    }

    /// Leaves out sessions of runs, because a run is resumed as a run.
    pub fn without_runs(&mut self, sessions: Vec<Session>) -> Result<Vec<Session>, Stop> {
        let mut others = Vec::new();
        self.read_open_runs()?;
        self.read_batch(&sessions.iter().collect::<Vec<_>>())?;
        for session in sessions {
            if self.run_of_session(&session)?.is_none() {
                others.push(session);
            }
        }
        Ok(others)
    }

    /// Whether the traces of its process show that it exited by itself.
    fn was_orderly(&mut self, session: &Session) -> Result<bool, Stop> {
        let spec = spec_of(&session.agent);
        let kept = spec.and_then(|spec| Some((spec.traces?, spec.transcripts?)));
        let known = session.process.as_ref().zip(session.native_id.as_ref());
        let (Some((traces, layout)), Some((process, native_id))) = (kept, known) else {
            return Ok(false);
        };
        if let Some(found) = self.evidence.was_orderly(process) {
            return Ok(found == Some(true));
        }
        let transcript = self.transcript_path(session.id, native_id)?;
        let Some(home) = transcript.and_then(|path| layout.home_of(&path)) else {
            return Ok(false);
        };
        let wanted = vec![(traces, home, process.clone())];
        Err(Stop::Look(Want::ExitTraces(wanted)))
    }

    /// Whether the last event of a session announced its exit.
    fn was_leaving(&mut self, session: &Session) -> Result<bool, Stop> {
        // The query has no time limit: with one, it would read everything that the session ever did.
        let lately = self.tx.events(&EventFilter {
            session: Some(session.id),
            limit: MAX_RECENT,
            ..EventFilter::default()
        })?;
        let says_so = |event: &Event| {
            event.at >= session.seen_at
                && event.kind == EventKind::Leaving.as_str()
                && event.session == Some(session.id)
        };
        Ok(lately.iter().any(says_so))
    }
}

impl Service<'_> {
    /// Records the deaths of these sessions, if they are still open and dead. Sessions with an unreadable row
    /// stay as they are and are returned with that row.
    pub(crate) fn record_deaths(&mut self, dead: &[SessionId]) -> Result<Unrecorded, Failure> {
        let dead: BTreeSet<SessionId> = dead.iter().copied().collect();
        let dead: Vec<SessionId> = dead.into_iter().collect();
        let mut unrecorded = Unrecorded::new();
        for (batch, few) in dead.chunks(MAX_DEATHS_AT_ONCE).enumerate() {
            if batch > 0 {
                self.give_way();
            }
            self.record_few_deaths(few, &mut unrecorded)?;
        }
        Ok(unrecorded)
    }

    /// Records a few deaths in one transaction; splits the batch in half if one of them is unreadable.
    fn record_few_deaths(
        &mut self,
        dead: &[SessionId],
        unrecorded: &mut Unrecorded,
    ) -> Result<(), Failure> {
        let Err(failure) = self.record_deaths_together(dead) else {
            self.buried.extend(dead);
            return Ok(());
        };
        match (&failure.error, dead) {
            (Error::Store(StoreError::Damaged { why, .. }), [one]) => {
                unrecorded.insert(*one, why.clone());
                Ok(())
            }
            (Error::Store(StoreError::Damaged { .. }), several) => {
                let (half, rest) = several.split_at(several.len() / 2);
                self.record_few_deaths(half, unrecorded)?;
                self.record_few_deaths(rest, unrecorded)
            }
            _ => Err(failure),
        }
    }

    fn record_deaths_together(&mut self, dead: &[SessionId]) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| {
            let mut open = Vec::new();
            for id in dead {
                open.push(ctx.session(*id)?);
            }
            open.retain(Session::is_open);
            ctx.look_at_all(&open)?;
            let mut unseen = Unseen::default();
            for session in &open {
                if let Liveness::Dead(_) = ctx.liveness(session)? {
                    unseen.gather(named(session, ctx.death_kind(session)))?;
                }
            }
            unseen.look()?;
            ctx.look_at_branches(&open)?;
            ctx.lock_with(|ctx| {
                let mut locks = Vec::new();
                for session in &open {
                    let its = ctx.locks_to_close(session.id);
                    locks.append(&mut named(session, its)?);
                }
                Ok(locks)
            })?;
            for session in &open {
                if let Liveness::Dead(proof) = ctx.liveness(session)? {
                    let why = proof.to_string();
                    let closed = ctx.close(session, ClosedBy::Death, &why, None, None);
                    named(session, closed)?;
                }
            }
            Ok(())
        })
    }

    /// Records every death that can be proved now, skipping unreadable sessions.
    pub(crate) fn record_all_deaths(&mut self) -> Result<Unrecorded, Failure> {
        let found = self.proved_dead(false)?.value;
        let dead: Vec<SessionId> = found.iter().map(|one| one.id).collect();
        self.record_deaths(&dead)
    }

    /// The open sessions that are proved dead now, without unreadable ones.
    pub fn dead_sessions(&mut self) -> Reply<Vec<DeadSession>> {
        self.proved_dead(true)
    }

    /// Records the deaths of these sessions, if they are still open and dead; an unreadable one stays as it is.
    pub fn record_dead_sessions(&mut self, dead: &[DeadSession]) -> Result<(), Failure> {
        let dead: Vec<SessionId> = dead.iter().map(|one| one.id).collect();
        self.record_deaths(&dead).map(drop)
    }

    fn proved_dead(&mut self, readable_only: bool) -> Reply<Vec<DeadSession>> {
        self.transact(TxMode::Read, |ctx| {
            let open = ctx.tx.list_sessions(&SessionFilter {
                readable_only,
                ..SessionFilter::default()
            })?;
            ctx.read_open_runs()?;
            ctx.look_at_all(&open)?;
            let mut dead = Vec::new();
            for session in &open {
                if let Liveness::Dead(proof) = ctx.liveness(session)? {
                    dead.push(DeadSession {
                        id: session.id,
                        handle: session.handle.to_string(),
                        why: proof.to_string(),
                    });
                }
            }
            Ok(dead)
        })
    }
}

/// Adds the session's handle to a damage report.
fn named<T>(session: &Session, read: Result<T, Stop>) -> Result<T, Stop> {
    read.map_err(|stop| match stop {
        Stop::Store(StoreError::Damaged { store, why }) => Stop::Store(StoreError::Damaged {
            store,
            why: format!("{}, {why}", session.handle),
        }),
        other => other,
    })
}
