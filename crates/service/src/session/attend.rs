//! A person and a session: where its window is, that the person visited it, and the title that the person gave
//! it.

use crate::answer::Reader;
use crate::caller::{self, ActFor, behalf};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::session::title::{beneath, keep_beneath, keep_present};
use crate::session::view::SessionView;
use crate::transact::{Reply, Service};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::{Malformed, SessionId};
use tenure_core::process::Process;
use tenure_core::session::{Session, Title, TitleBy};
use tenure_core::store::{Lock, TxMode};
use tenure_core::text::{check_length, quoted};
use tenure_core::title;
use tenure_core::witness::TerminalPlace;

/// A session whose window can be shown.
#[derive(Debug, Clone)]
pub struct Window {
    pub session: SessionView,
    pub process: Option<Process>,
    /// Where its window is, if known.
    pub place: Option<TerminalPlace>,
    /// Who asks.
    pub reader: Reader,
}

impl Service<'_> {
    /// Where a session's window is, unless it has ended.
    pub fn window(&mut self, name: &str) -> Reply<Window> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let session = caller::find(ctx, name)?;
            let session = ctx.record_death_if_proved(session)?;
            let starting = ctx.starting(&session)?;
            if let (Some(closed), None) = (&session.closed, &starting) {
                return Err(caller::not_live(&session, closed).into());
            }
            ctx.ask_about_all(std::slice::from_ref(&session))?;
            let testimony = ctx.evidence.testimony(session.id);
            Ok(Window {
                place: testimony.and_then(|testimony| testimony.place.clone()),
                session: ctx.view(&session)?,
                process: starting.or(session.process),
                reader: ctx.effects.reader,
            })
        })
    }

    /// Records that a person is with a session now, so it no longer counts as unseen. An end stays as it is,
    /// and an agent that looks at another session is not a person.
    pub fn attend(&mut self, name: &str) -> Reply<()> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let session = caller::find(ctx, name)?;
            if caller::is_agents(ctx)? {
                Ok(())
            } else {
                attend(ctx, &session)
            }
        })
    }

    /// Sets the title of the named session. An empty text restores the title that it had before a person named
    /// it. A person needs no reason for that.
    pub fn rename(&mut self, act_for: &ActFor, text: &str) -> Reply<SessionView> {
        let title = chosen(text).map_err(Error::from)?;
        self.transact(TxMode::Write, |ctx| {
            let act = behalf::tidying(ctx, act_for)?;
            let title = match &title {
                Some(title) => Some(title.clone()),
                None => given_back(ctx, &act.session)?,
            };
            set_title(ctx, act.session, title, act.actor, act.reason)
        })
    }
}

fn attend(ctx: &mut Ctx<'_>, session: &Session) -> Result<(), Stop> {
    if !session.is_open() || session.attended_at >= Some(ctx.now.wall) {
        return Ok(());
    }
    ctx.write_beat()?;
    // Not a heartbeat: looking at a session does not prove that it is alive.
    let now = Some(ctx.now.wall);
    let (seen_at, lease) = (session.seen_at, &session.lease);
    ctx.tx
        .touch_session(session.token(), seen_at, lease, None, now)?;
    Ok(())
}

/// The title of a session after a person removes theirs: the earlier one, unless the agent's own
/// files have one, which is read for display.
fn given_back(ctx: &mut Ctx<'_>, session: &Session) -> Result<Option<Title>, Stop> {
    ctx.ask_about_all(std::slice::from_ref(session))?;
    match &session.title {
        Some(present) if present.by != TitleBy::Person => Ok(Some(present.clone())),
        _ => beneath(ctx, session.id),
    }
}

fn set_title(
    ctx: &mut Ctx<'_>,
    session: Session,
    title: Option<Title>,
    actor: Option<SessionId>,
    reason: Option<String>,
) -> Result<SessionView, Stop> {
    if session.title == title {
        return ctx.view(&session);
    }
    let evidence = match &title {
        Some(title) if title.by == TitleBy::Person => format!("title {}", quoted(&title.text)),
        Some(_) | None => "title removed".to_owned(),
    };
    ctx.lock([Lock::Session(session.id)])?;
    match title.as_ref().map(|title| title.by) {
        Some(TitleBy::Person) => keep_present(ctx, &session)?,
        _ => keep_beneath(ctx, session.id, None)?,
    }
    let renamed = Session { title, ..session };
    ctx.tx.update_session(&renamed)?;
    ctx.log(&NewEvent {
        actor: actor.filter(|actor| *actor != renamed.id),
        reason,
        ..ctx.event(EventKind::Changed, Some(renamed.id), "rename", evidence)
    })?;
    let renamed = ctx.session(renamed.id)?;
    ctx.view(&renamed)
}

fn chosen(text: &str) -> Result<Option<Title>, Malformed> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    check_length("title", text, title::MAX_LENGTH)?;
    let title = title::titled(text, TitleBy::Person);
    match title {
        Some(title) => Ok(Some(title)),
        None => Err(Malformed::new(
            "title",
            text,
            "it has no visible characters",
        )),
    }
}
