//! Taking what was cut off from the list of what can be resumed. Nothing else changes: it can still be resumed
//! by its name.

use std::time::Duration;

use crate::caller;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::session::view::SessionView;
use crate::transact::{Reply, Service};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::SessionId;
use tenure_core::session::{EndKind, Session};
use tenure_core::store::{Lock, Mode, SessionFilter};

impl Service<'_> {
    /// Dismisses one session that was cut off.
    pub fn dismiss(&mut self, name: &str) -> Reply<SessionView> {
        self.transact(Mode::Write, |ctx| {
            let actor = caller::anybody(ctx)?.map(|caller| caller.session.id);
            let session = caller::find(ctx, name)?;
            let session = ctx.bury_if_dead(session)?;
            if let Some(state) = nothing_to_dismiss(&session) {
                let handle = session.handle.to_string();
                return Err(Error::NotLive { handle, state }.into());
            }
            dismiss(ctx, &session, actor)
        })
    }

    /// Dismisses every session that was cut off within this time, the last one first.
    pub fn dismiss_all(&mut self, within: Duration) -> Reply<Vec<SessionView>> {
        let unrecorded = self.bury_the_dead()?;
        self.transact(Mode::Write, |ctx| {
            let actor = caller::anybody(ctx)?.map(|caller| caller.session.id);
            ctx.damage = unrecorded.values().cloned().collect();
            let filter = SessionFilter {
                cut_off_since: Some(ctx.now.wall.minus(within)),
                ..SessionFilter::default()
            };
            let sessions = ctx.tx.list_sessions(&filter)?;
            ctx.lock(sessions.iter().map(|session| Lock::Session(session.id)))?;
            let mut dismissed = Vec::new();
            for session in &sessions {
                dismissed.push(dismiss(ctx, session, actor)?);
            }
            Ok(dismissed)
        })
    }
}

/// Why a session cannot be dismissed, as a verb.
fn nothing_to_dismiss(session: &Session) -> Option<String> {
    let state = match &session.closed {
        None => "has not ended: there is nothing to dismiss",
        Some(end) if end.dismissed_at.is_some() => "is dismissed already",
        Some(end) => match end.kind {
            EndKind::CutOff => return None,
            EndKind::Left => "ended by itself: there is nothing to dismiss",
            EndKind::Moved => "went on in another session: there is nothing to dismiss",
        },
    };
    Some(state.to_owned())
}

fn dismiss(
    ctx: &mut Ctx<'_>,
    session: &Session,
    actor: Option<SessionId>,
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
        ..ctx.event(
            EventKind::Dismissed,
            Some(session.id),
            "dismiss",
            why.unwrap_or_default(),
        )
    })?;
    ctx.view(&dismissed)
}
