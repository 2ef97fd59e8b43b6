//! How a session is created, and how it moves to another process. Only this module creates sessions.

use crate::caller::present::sessions_of;
use crate::context::{Ctx, Stop};
use tenure_core::agent;
use tenure_core::event::EventKind;
use tenure_core::id::{AgentName, NativeId, SessionId, SessionToken};
use tenure_core::process::{Process, ProcessAppearance};
use tenure_core::session::{ClosedBy, EndKind, Session, Start, Title, Workdir};
use tenure_core::store::Lock;

/// The initial data of a session.
pub struct NewSession {
    pub agent: AgentName,
    pub native_id: Option<NativeId>,
    pub fork_of: Option<NativeId>,
    pub parent: Option<SessionToken>,
    pub twin_of: Option<SessionId>,
    pub title: Option<Title>,
    pub workdir: Workdir,
    pub hosted: bool,
    pub process: Option<Process>,
    pub start: Option<Start>,
    pub daemon: Option<Process>,
}

/// Creates a session in its first life.
pub fn create_session(ctx: &mut Ctx<'_>, new: NewSession) -> Result<Session, Stop> {
    let (id, handle) = ctx.mint(&new.agent)?;
    let lease = ctx.now.after(ctx.policy.lease);
    let session = Session {
        native_id: new.native_id,
        fork_of: new.fork_of,
        parent: new.parent,
        twin_of: new.twin_of,
        title: new.title,
        workdir: new.workdir,
        branch_at: Some(ctx.now.wall),
        hosted: new.hosted,
        process: new.process,
        start: new.start,
        daemon: new.daemon,
        ..Session::new(id, handle, new.agent, ctx.now.wall, lease)
    };
    ctx.tx.insert_session(&session)?;
    ctx.created.push(session.id);
    begin_life(ctx, &session)?;
    Ok(session)
}

/// Records the process of a session's current life.
pub fn begin_life(ctx: &mut Ctx<'_>, session: &Session) -> Result<(), Stop> {
    if let Some(process) = &session.process {
        ctx.tx.insert_life(session.token(), process, ctx.now.wall)?;
    }
    Ok(())
}

/// A window shows one conversation at a time: what it showed before is over there.
fn leave_window(ctx: &mut Ctx<'_>, next: &Session, window: &Process) -> Result<(), Stop> {
    for before in sessions_of(ctx, window)? {
        if before.id != next.id && before.daemon.is_some() {
            let why = format!("its window went on to {}", next.handle);
            ctx.close_as(&before, ClosedBy::End, EndKind::Left, &why, None, None)?;
        }
    }
    Ok(())
}

/// A daemon's conversation continues in this window, which is the session's next life. It keeps its claims,
/// because the conversation never stopped.
pub fn move_to_window(
    ctx: &mut Ctx<'_>,
    session: &mut Session,
    window: &Process,
    looks: &ProcessAppearance,
) -> Result<(), Stop> {
    leave_window(ctx, session, window)?;
    ctx.lock([Lock::Session(session.id)])?;
    session.life = session.life.next();
    session.process = Some(window.clone());
    session.start = agent::started(&session.agent, looks);
    ctx.tx.update_session(session)?;
    session.revision += 1;
    begin_life(ctx, session)?;
    ctx.tx.carry_holds(session.token())?;
    let (pid, life) = (window.pid, session.life);
    let evidence = format!("the daemon reports pid {pid} as its window (life {life})");
    ctx.log(&ctx.event(EventKind::Changed, Some(session.id), "window", evidence))
}
