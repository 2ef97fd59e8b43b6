//! What can be taken up again: sessions that are gone and whose conversation nobody is in.
//!
//! Naming one that lives is refused: two processes in one conversation mix what they write. All of them
//! are those that *died*, lately, with a conversation to go on with; whoever said goodbye is not woken, and
//! a conversation in which two died is named once.

use std::time::Duration;

use crate::caller;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::session::view::SessionView;
use crate::transact::{Reply, Service};
use tenure_core::hint::Hint;
use tenure_core::id::NativeId;
use tenure_core::session::{ClosedBy, Session, Standing};
use tenure_core::store::{Mode, SessionFilter};

/// A session that can be taken up again.
#[derive(Debug, Clone)]
pub struct Resumable {
    pub session: SessionView,
    pub native_id: NativeId,
    /// The file that the conversation is in, where it is known.
    pub transcript: Option<String>,
}

impl Service<'_> {
    pub fn resumable(&mut self, name: &str) -> Reply<Resumable> {
        self.transact(Mode::Read, |ctx| {
            caller::anybody(ctx)?;
            let session = caller::find(ctx, name)?;
            let session = ctx.bury_if_dead(session)?;
            resumable(ctx, &session)
        })
    }

    /// Every session that died within this time, the newest first.
    pub fn all_resumable(&mut self, within: Duration) -> Reply<Vec<Resumable>> {
        // After a reboot nobody has looked yet.
        let unrecorded = self.bury_the_dead()?;
        self.transact(Mode::Read, |ctx| {
            caller::anybody(ctx)?;
            let filter = SessionFilter {
                died_since: Some(ctx.now.wall.minus(within)),
                ..SessionFilter::default()
            };
            ctx.damage = unrecorded.values().cloned().collect();
            let mut found = Vec::new();
            for session in ctx.tx.list_sessions(&filter)? {
                match resumable(ctx, &session) {
                    Ok(one) => add(&mut found, one),
                    Err(Stop::Refuse(_)) => {}
                    Err(other) => return Err(other),
                }
            }
            Ok(found)
        })
    }
}

/// A conversation is taken up once, however many died in it: as the session whose own it is, not as a twin.
fn add(found: &mut Vec<Resumable>, one: Resumable) {
    let same = |other: &&mut Resumable| {
        other.native_id == one.native_id && other.session.agent == one.session.agent
    };
    match found.iter_mut().find(same) {
        Some(other) if other.session.twin_of.is_some() => *other = one,
        Some(_) => {}
        None => found.push(one),
    }
}

fn resumable(ctx: &mut Ctx<'_>, session: &Session) -> Result<Resumable, Stop> {
    let handle = session.handle.to_string();
    let Some(native_id) = session.native_id.clone() else {
        return Err(Error::NotFound {
            what: format!("{handle} has no conversation to go on with"),
            hint: Hint::run("show", [&handle], "for details"),
        }
        .into());
    };
    if session
        .closed
        .as_ref()
        .is_some_and(|closed| closed.by == ClosedBy::Moved)
    {
        return Err(Error::NotLive {
            handle,
            state: "went on in another session".into(),
        }
        .into());
    }
    let mut others = ctx.tx.native_visitors(&session.agent, &native_id)?;
    others.extend(ctx.tx.native_owner(&session.agent, &native_id)?);
    others.push(session.id);
    for id in others {
        let other = ctx.session(id)?;
        let is_in_it = other.is_open() && other.native_id.as_ref() == Some(&native_id);
        if is_in_it {
            refuse_living(ctx, &other)?;
        }
    }
    let transcript = ctx.tx.transcript_of(session.id, &native_id)?;
    Ok(Resumable {
        session: ctx.view(session)?,
        transcript: transcript.map(|known| known.path),
        native_id,
    })
}

fn refuse_living(ctx: &mut Ctx<'_>, session: &Session) -> Result<(), Stop> {
    let handle = session.handle.to_string();
    match ctx.standing(session)? {
        Standing::Live => {
            let pid = session.process.as_ref().map_or(0, |process| process.pid);
            Err(Error::Lives { handle, pid }.into())
        }
        Standing::Trusted { doubt, .. } | Standing::Suspect { doubt, .. } => {
            Err(Error::CannotTell {
                handle,
                doubt,
                key: None,
            }
            .into())
        }
        Standing::Gone(_) | Standing::Expired(_) => Ok(()),
    }
}
