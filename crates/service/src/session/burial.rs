//! Recording deaths: in transactions of their own, beside the use case that came across them.
//!
//! Recording a death writes several rows, and whoever writes keeps every hook out. So one transaction
//! records a few deaths only. A look has those recorded that it comes across first and shows the others as
//! what they are: a death that is not recorded yet is derived anew by everybody who asks, and blocks nobody.
//! Where all of them must be recorded, it is done batch by batch, with a pause after each.
//!
//! A use case never records a death among its own writes: it would have to lock all that the dead session
//! holds, beside what it locks for itself. Where its answer depends on the record, it stops, the death is
//! recorded, and it runs again; else the death is recorded after it.
//!
//! *Crash*: what was recorded stays; the next look goes on. *Clock jump*: no clock is compared.

use std::collections::BTreeSet;

use crate::context::{Ctx, Stop};
use crate::transact::{Failure, Service};
use tenure_core::id::SessionId;
use tenure_core::liveness::Liveness;
use tenure_core::session::{Closed, ClosedBy, Session};
use tenure_core::store::{Mode, SessionFilter};

/// How many deaths one transaction records.
pub const MOST_BURIALS: usize = 100;

impl Ctx<'_> {
    /// A session, once its death is recorded if it is dead.
    pub fn bury_if_dead(&mut self, session: Session) -> Result<Session, Stop> {
        if session.is_open()
            && let Liveness::Dead(_) = self.liveness(&session)?
        {
            return Err(Stop::Bury(vec![session.id]));
        }
        Ok(session)
    }

    /// The same for many at once, as far as one transaction records them.
    pub fn bury_the_dead_of(&mut self, sessions: &[Session]) -> Result<(), Stop> {
        let mut dead = Vec::new();
        for session in sessions.iter().filter(|session| session.is_open()) {
            if let Liveness::Dead(_) = self.liveness(session)? {
                dead.push(session.id);
            }
        }
        dead.truncate(MOST_BURIALS.saturating_sub(self.buried));
        match dead.is_empty() {
            true => Ok(()),
            false => Err(Stop::Bury(dead)),
        }
    }

    /// Has the deaths recorded that a look came across so far, for who goes on with what is recorded.
    pub fn bury_those_met(&mut self) -> Result<(), Stop> {
        match self.dead.is_empty() {
            true => Ok(()),
            false => Err(Stop::Bury(std::mem::take(&mut self.dead))),
        }
    }

    /// One of many sessions that a look came across, as it is once its death is recorded. That is done after
    /// the look, unless enough are recorded already.
    pub fn bury_in_passing(&mut self, mut session: Session) -> Result<Session, Stop> {
        if self.buried + self.dead.len() < MOST_BURIALS
            && session.is_open()
            && let Liveness::Dead(proof) = self.liveness(&session)?
        {
            self.dead.push(session.id);
            session.closed = Some(Closed {
                at: self.now.wall,
                by: ClosedBy::Death,
                why: proof.to_string(),
            });
        }
        Ok(session)
    }
}

impl Service<'_> {
    /// Records the deaths of these sessions, as far as they are still open and dead.
    pub(crate) fn bury(&mut self, dead: &[SessionId]) -> Result<(), Failure> {
        self.transact(Mode::Write, |ctx| {
            let mut open = Vec::new();
            for id in dead.iter().collect::<BTreeSet<_>>() {
                open.push(ctx.session(*id)?);
            }
            open.retain(Session::is_open);
            ctx.look_at_all(&open)?;
            ctx.lock_with(|ctx| {
                let mut locks = Vec::new();
                for session in &open {
                    locks.append(&mut ctx.locks_to_close(session.id)?);
                }
                Ok(locks)
            })?;
            for session in &open {
                if let Liveness::Dead(proof) = ctx.liveness(session)? {
                    ctx.close(session, ClosedBy::Death, &proof.to_string(), None, None)?;
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Records every death that can be proved now.
    pub(crate) fn bury_the_dead(&mut self) -> Result<(), Failure> {
        let found = self.transact(Mode::Read, |ctx| {
            let open = ctx.tx.list_sessions(&SessionFilter::default())?;
            ctx.look_at_all(&open)?;
            let mut dead = Vec::new();
            for session in &open {
                if let Liveness::Dead(_) = ctx.liveness(session)? {
                    dead.push(session.id);
                }
            }
            Ok(dead)
        })?;
        for (batch, few) in found.value.chunks(MOST_BURIALS).enumerate() {
            if batch > 0 {
                self.give_way();
            }
            self.bury(few)?;
        }
        Ok(())
    }
}
