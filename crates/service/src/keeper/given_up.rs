//! What sessions gave up while the store was away, brought to it afterwards.
//!
//! It counts only if the session is still in the same life, and for a claim only at the same epoch. Whatever moved on
//! since is left alone, so bringing it twice, or late, changes nothing.

use serde::{Deserialize, Serialize};
use tenure_core::claim::{EndedBy, HoldEnd};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::{Epoch, SessionToken};
use tenure_core::key::Key;
use tenure_core::session::ClosedBy;
use tenure_core::store::{Lock, TxMode};

use crate::context::{Ctx, Stop};
use crate::hook::{AgentEvent, handle};
use crate::transact::{Reply, Service};

/// Why it is recorded, for the log.
const EVIDENCE: &str = "given up while the store was away";

/// What was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenUp {
    Claim {
        session: SessionToken,
        key: Key,
        epoch: Epoch,
        done: bool,
    },
    Session(SessionToken),
    /// An agent reported its end.
    Ended {
        /// The session, if it was known where the event was kept.
        session: Option<SessionToken>,
        event: Box<AgentEvent>,
    },
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Brought {
    Recorded,
    /// The claim or the session had moved on.
    TooLate,
}

impl Service<'_> {
    /// Records what was given up, if it is still the same.
    pub fn record_given_up(&mut self, given_up: &GivenUp) -> Reply<Brought> {
        self.transact(TxMode::Write, |ctx| match given_up {
            GivenUp::Claim {
                session,
                key,
                epoch,
                done,
            } => release(ctx, *session, key, *epoch, *done),
            GivenUp::Session(token) => end(ctx, *token),
            GivenUp::Ended { session, event } => ended(ctx, *session, event),
        })
    }
}

fn release(
    ctx: &mut Ctx<'_>,
    token: SessionToken,
    key: &Key,
    epoch: Epoch,
    done: bool,
) -> Result<Brought, Stop> {
    ctx.lock([Lock::Key(key.clone()), Lock::Session(token.id)])?;
    let record = ctx.claim_record(key)?;
    let hold = record
        .current()
        .filter(|hold| hold.session == token.id && hold.life == token.life && hold.epoch == epoch);
    let Some(hold) = hold.cloned() else {
        return Ok(Brought::TooLate);
    };
    let (by, kind, mechanism) = if done {
        (EndedBy::Done, EventKind::Done, "done")
    } else {
        (EndedBy::Release, EventKind::Released, "release")
    };
    let at = ctx.now.wall;
    ctx.tx.end_hold(key, epoch, HoldEnd { at, by })?;
    ctx.log(&NewEvent {
        key: Some(hold.key),
        epoch: Some(epoch),
        ..ctx.event(kind, Some(token.id), mechanism, EVIDENCE.to_owned())
    })?;
    Ok(Brought::Recorded)
}

fn end(ctx: &mut Ctx<'_>, token: SessionToken) -> Result<Brought, Stop> {
    let session = ctx.tx.session(token.id)?;
    // A store that was restored or replaced may never have had it.
    let Some(session) = session.filter(|one| one.life == token.life && one.is_open()) else {
        return Ok(Brought::TooLate);
    };
    ctx.close(&session, ClosedBy::End, EVIDENCE, None, None)?;
    Ok(Brought::Recorded)
}

/// The event names the process that sent it, which is in no later life of its session.
fn ended(
    ctx: &mut Ctx<'_>,
    known: Option<SessionToken>,
    event: &AgentEvent,
) -> Result<Brought, Stop> {
    if let Some(token) = known {
        let session = ctx.tx.session(token.id)?;
        if !session.is_some_and(|one| one.life == token.life && one.is_open()) {
            return Ok(Brought::TooLate);
        }
    }
    let handled = handle(ctx, event)?;
    Ok(if handled.session.is_some() {
        Brought::Recorded
    } else {
        Brought::TooLate
    })
}
