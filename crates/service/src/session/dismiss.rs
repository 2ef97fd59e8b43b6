//! Removing cut-off sessions from the list of what can be resumed. Nothing else changes: each can still be
//! resumed by name.
//!
//! It is a person's list, also for the person's scripts. An agent needs a reason, and may not clear all of it,
//! because models run what they read.

use std::time::Duration;

use crate::caller::{self, ActFor, behalf};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::session::view::SessionView;
use crate::transact::{Reply, Service};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::SessionId;
use tenure_core::reason::Reason;
use tenure_core::session::{EndKind, Session};
use tenure_core::store::{Lock, SessionFilter, TxMode};

impl Service<'_> {
    pub fn dismiss(&mut self, act_for: &ActFor) -> Reply<SessionView> {
        self.transact(TxMode::Write, |ctx| {
            let act = behalf::tidying(ctx, act_for)?;
            let session = ctx.record_death_if_proved(act.session)?;
            if let Some(state) = nothing_to_dismiss(&session) {
                let handle = session.handle.to_string();
                return Err(Error::NothingToDismiss { handle, state }.into());
            }
            dismiss(ctx, &session, act.actor, act.reason)
        })
    }

    /// Dismisses every session that was cut off within this time, newest first.
    pub fn dismiss_all(
        &mut self,
        within: Duration,
        reason: Option<&Reason>,
    ) -> Reply<Vec<SessionView>> {
        let unrecorded = self.record_all_deaths()?;
        self.transact(TxMode::Write, |ctx| {
            if caller::is_agents(ctx)? {
                let what = "dismiss every session";
                return Err(Error::PersonOnly { what }.into());
            }
            let actor = caller::identify(ctx)?.map(|caller| caller.session.id);
            ctx.effects.damage = unrecorded.values().cloned().collect();
            let filter = SessionFilter {
                cut_off_since: Some(ctx.now.wall.minus(within)),
                ..SessionFilter::default()
            };
            let sessions = ctx.tx.list_sessions(&filter)?;
            let sessions = ctx.without_runs(sessions)?;
            let sessions = ctx.without_stopped(sessions)?;
            ctx.lock(sessions.iter().map(|session| Lock::Session(session.id)))?;
            let said = reason.cloned().map(String::from);
            let mut dismissed = Vec::new();
            for session in &sessions {
                dismissed.push(dismiss(ctx, session, actor, said.clone())?);
            }
            Ok(dismissed)
        })
    }
}

/// Why a session cannot be dismissed, as a predicate.
fn nothing_to_dismiss(session: &Session) -> Option<String> {
    let state = match &session.closed {
        None => "has not ended, so there is nothing to dismiss",
        Some(end) if end.dismissed_at.is_some() => "is already dismissed",
        Some(end) => match end.kind {
            EndKind::CutOff => return None,
            EndKind::Left => "ended by itself, so there is nothing to dismiss",
            EndKind::Moved => "continued in another session, so there is nothing to dismiss",
        },
    };
    Some(state.to_owned())
}

fn dismiss(
    ctx: &mut Ctx<'_>,
    session: &Session,
    actor: Option<SessionId>,
    reason: Option<String>,
) -> Result<SessionView, Stop> {
    ctx.lock([Lock::Session(session.id)])?;
    let mut dismissed = session.clone();
    if let Some(end) = &mut dismissed.closed {
        end.dismissed_at = Some(ctx.now.wall);
    }
    ctx.tx.update_session(&dismissed)?;
    dismissed.revision += 1;
    let why = session.closed.as_ref().map(|end| end.why.clone());
    ctx.log(&NewEvent {
        actor: actor.filter(|actor| *actor != session.id),
        reason,
        ..ctx.event(
            EventKind::Dismissed,
            Some(session.id),
            "dismiss",
            why.unwrap_or_default(),
        )
    })?;
    ctx.view(&dismissed)
}
