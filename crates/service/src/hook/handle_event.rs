//! What an agent reports about itself, event by event.
//!
//! This is the hot path: it runs at every tool call of every agent. An event of a known session that brings
//! nothing new costs one indexed read of the session and two of what is pending for it. At most every ten
//! seconds, and when the activity changes, one row is written without waiting for the disk. Any event except an
//! end registers an unknown process, so a lost start heals itself. An end never registers, and ends only the
//! session whose current process sent it, because agents also report the end of conversations that are open
//! elsewhere. A subagent is not a session; its events are heartbeats of its session.
//!
//! *Crash*: an event that was not committed has no effect; the next one reports the same. *Clock jump*: the
//! heartbeat's age comes from the wall clock, in both directions; the lease comes from the monotonic clock.

use std::time::Duration;

use crate::caller;
use crate::caller::present::{is_among, open_at, speaking, speaking_through};
use crate::context::{Ctx, Stop};
use crate::hook::enrol::{daemon_of, enrol, window};
use crate::hook::event::{AgentEvent, HandledEvent};
use crate::hook::note::{
    note_activity, note_subagent, note_title, note_transcript, note_waking, tell, use_tool,
};
use crate::hook::worktree_changes::leave;
use crate::session::new_session::move_to_window;
use crate::transact::{Answer, Reply, Service};
use tenure_core::agent_event::Happening;
use tenure_core::end::{self, Ending};
use tenure_core::event::EventKind;
use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::liveness::{self, Liveness};
use tenure_core::notice::NoticeKind;
use tenure_core::present::{Present, in_conversation};
use tenure_core::process::Ancestor;
use tenure_core::program::{Program, ProgramProcess};
use tenure_core::session::{Activity, ClosedBy, Doing, EndKind, Session};
use tenure_core::store::TxMode;

impl Service<'_> {
    pub fn handle_event(&mut self, event: &AgentEvent) -> Reply<HandledEvent> {
        let (Some(address), Some(agent), Some(native_id)) =
            (&event.address, &event.agent, &event.native_id)
        else {
            return self.transact(TxMode::Read, |ctx| handle(ctx, event));
        };
        let found = self.foreign_owner(agent, native_id, &address.item)?;
        if let Some(owner) = found.value {
            return Ok(Answer {
                value: HandledEvent {
                    foreign_to: Some(owner),
                    ..HandledEvent::default()
                },
                notices: found.notices,
                damaged: found.damaged,
            });
        }
        let handled = self.transact(TxMode::Read, |ctx| handle(ctx, event))?;
        if let Some(session) = handled.value.id {
            self.own_native(agent, native_id, address, &event.dir, session)?;
        }
        Ok(handled)
    }

    /// Leaves warnings for a session whose agent did not wait for the answer to its event.
    pub fn warn_later(&mut self, session: SessionId, warnings: &[String]) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| {
            for warning in warnings {
                let text = format!("about an earlier tool call: {warning}");
                ctx.notify(session, NoticeKind::Warned, text, None, None)?;
            }
            Ok(())
        })
    }
}

pub(crate) fn handle(ctx: &mut Ctx<'_>, event: &AgentEvent) -> Result<HandledEvent, Stop> {
    match &event.program {
        Some(program) => handle_program_event(ctx, program, event),
        None if outlived_its_agent(ctx, event)? => Ok(HandledEvent::default()),
        None => record(ctx, event),
    }
}

/// Whether a hook reports about an agent that is gone. A hook that is still running when its agent is killed has
/// no agent above it any more. Registering it would put a session without a process into the conversation, and
/// the session that was killed could not be resumed while that one may be alive.
fn outlived_its_agent(ctx: &mut Ctx<'_>, event: &AgentEvent) -> Result<bool, Stop> {
    let (None, Some(agent), Some(native_id)) = (&event.process, &event.agent, &event.native_id)
    else {
        return Ok(false);
    };
    if matches!(event.what, Happening::Start | Happening::Fork) {
        return Ok(false);
    }
    let Some(owner) = ctx.tx.native_owner(agent, native_id)? else {
        return Ok(false);
    };
    let owner = ctx.session(owner)?;
    Ok(owner
        .process
        .is_some_and(|process| liveness::is_observable(&process, ctx.observer)))
}

/// An event of a program that tenure cannot recognise. Without a process, only its conversation identifies the
/// session; an event with neither belongs to none.
fn handle_program_event(
    ctx: &mut Ctx<'_>,
    program: &Program,
    event: &AgentEvent,
) -> Result<HandledEvent, Stop> {
    let open = match program.pid {
        Some(_) => Vec::new(),
        None => open_at(ctx, program.above.iter().map(|above| &above.process))?,
    };
    let (process, unclear) = match program.find(|above| is_among(&open, &above.process)) {
        ProgramProcess::Process(found) => (Some(found.clone()), None),
        ProgramProcess::Unclear(why) => (None, Some(why)),
    };
    if process.is_none() && event.native_id.is_none() {
        return Ok(HandledEvent {
            unclear,
            ..HandledEvent::default()
        });
    }
    let agent = match &process {
        Some(_) => event.agent.clone(),
        None => event
            .agent
            .clone()
            .or_else(|| Some(AgentName::known("program"))),
    };
    let placed = AgentEvent {
        process,
        program: None,
        agent,
        ..event.clone()
    };
    Ok(HandledEvent {
        unclear,
        ..record(ctx, &placed)?
    })
}

fn record(ctx: &mut Ctx<'_>, event: &AgentEvent) -> Result<HandledEvent, Stop> {
    let process = event.process.as_ref().map(|found| &found.process);
    let (agent, native_id) = (event.agent.as_ref(), event.native_id.as_ref());
    let mut is_shared = false;
    let here = match (daemon_of(event), process) {
        (Some(_), Some(daemon)) => match speaking_through(ctx, daemon, native_id)? {
            Present::Several(sessions) => match event.what {
                Happening::End { .. } => return end_all(ctx, sessions, event),
                _ => {
                    is_shared = true;
                    speaking_in(ctx, sessions, event)?
                }
            },
            here => here.one(),
        },
        _ => speaking(ctx, agent, process, native_id)?,
    };
    // A start that a daemon reports may belong to another window.
    let starts = matches!(event.what, Happening::Start | Happening::Fork);
    if let Some(session) = &here
        && event.process.is_some()
        && !(starts && session.daemon.is_some())
    {
        ctx.own = Some(session.id);
    }
    let handled = match (&event.what, here) {
        (Happening::End { .. } | Happening::Leaves, None) => return Ok(HandledEvent::default()),
        (Happening::Leaves, Some(session)) => {
            leaves(ctx, &session, event)?;
            return Ok(of(&session));
        }
        (
            Happening::End {
                ends_worker,
                reason,
            },
            Some(session),
        ) => {
            return ends(ctx, &session, event, *ends_worker, reason);
        }
        (_, Some(session)) if !says_more(event, &session) => beat(ctx, session, event)?,
        _ => enrol(ctx, event)?,
    };
    if is_shared {
        // The same event may belong to another window of the conversation, whose heartbeat is due at another time.
        return Ok(HandledEvent {
            quiet_for: Duration::ZERO,
            ..handled
        });
    }
    Ok(handled)
}

/// Whether a session whose agent reports its end left or was cut off.
fn end_kind(
    ctx: &mut Ctx<'_>,
    session: &Session,
    event: &AgentEvent,
    reason: &str,
) -> Result<EndKind, Stop> {
    let ending = match &session.daemon {
        // A daemon reports the same long after the window is gone, whatever the cause.
        Some(_) if ctx.is_gone(session)? => return ctx.death_kind(session),
        // Nothing is known about its window.
        Some(_) if session.daemon == session.process => Ending::Died { in_order: false },
        _ => Ending::Said {
            reason,
            terminal: event.terminal,
        },
    };
    let doing = event.doing.or(session.doing());
    Ok(end::kind(session, doing, ending))
}

/// Which of several sessions in one conversation of a daemon an event belongs to.
fn speaking_in(
    ctx: &mut Ctx<'_>,
    sessions: Vec<Session>,
    event: &AgentEvent,
) -> Result<Option<Session>, Stop> {
    let window = window(ctx, event)?.map(|found| found.process);
    let owner = match (&event.agent, &event.native_id) {
        (Some(agent), Some(native_id)) => ctx.tx.native_owner(agent, native_id)?,
        _ => None,
    };
    Ok(in_conversation(sessions, window.as_ref(), owner))
}

/// A daemon released a conversation, so every session in it there has ended.
fn end_all(
    ctx: &mut Ctx<'_>,
    sessions: Vec<Session>,
    event: &AgentEvent,
) -> Result<HandledEvent, Stop> {
    let mut handled = HandledEvent::default();
    if let Happening::End {
        ends_worker,
        reason,
    } = &event.what
    {
        for session in sessions {
            handled = ends(ctx, &session, event, *ends_worker, reason)?;
        }
    }
    Ok(handled)
}

/// An agent reports that a session has ended, or only that it released its conversation.
fn ends(
    ctx: &mut Ctx<'_>,
    session: &Session,
    event: &AgentEvent,
    ends_worker: bool,
    reason: &str,
) -> Result<HandledEvent, Stop> {
    note_transcript(ctx, session, event)?;
    if ends_worker && event.subagent.is_none() {
        let mut named = session.clone();
        note_title(ctx, &mut named, event)?;
        let session = &named;
        let why = match reason {
            "" => "the agent ended".to_owned(),
            reason => format!("the agent ended: {reason}"),
        };
        if ctx.is_in_run(session)? {
            // The runner knows how it ended.
            ctx.write()?;
            ctx.log(&ctx.event(EventKind::Leaving, Some(session.id), "hook", why))?;
            return Ok(of(session));
        }
        leave(ctx, session)?;
        let kind = end_kind(ctx, session, event, reason)?;
        let why = match (kind, reason) {
            (EndKind::CutOff, "other") => "closed from outside (signal or window)".to_owned(),
            (EndKind::Left, "prompt_input_exit" | "exit" | "quit") => "the user exited".to_owned(),
            _ => why,
        };
        ctx.close_as(session, ClosedBy::End, kind, &why, None, None)?;
    }
    Ok(HandledEvent {
        changed: ends_worker,
        ..of(session)
    })
}

/// A session is about to exit. It is still alive, and its claims stay held until its process is gone.
fn leaves(ctx: &mut Ctx<'_>, session: &Session, event: &AgentEvent) -> Result<(), Stop> {
    if !event.terminal.lets_leave(&session.agent) || event.subagent.is_some() {
        return Ok(());
    }
    ctx.write()?;
    let mut session = session.clone();
    let activity = event.doing.map(|doing| Activity::new(doing, ctx.now.wall));
    caller::renew_doing(ctx, &mut session, activity, None)?;
    let evidence = "the agent is about to exit".to_owned();
    ctx.log(&ctx.event(EventKind::Leaving, Some(session.id), "hook", evidence))
}

fn of(session: &Session) -> HandledEvent {
    HandledEvent {
        session: Some(session.handle.to_string()),
        id: Some(session.id),
        ..HandledEvent::default()
    }
}

/// Whether an event carries identity data that is not stored yet.
fn says_more(event: &AgentEvent, session: &Session) -> bool {
    if matches!(event.what, Happening::Start | Happening::Fork) {
        return true;
    }
    if event.wants_brief && event.briefs_late {
        return true;
    }
    let known = |named: &NativeId| {
        session.native_id.as_ref() == Some(named) || session.fork_of.as_ref() == Some(named)
    };
    event.subagent.is_none() && event.native_id.as_ref().is_some_and(|named| !known(named))
}

fn beat(ctx: &mut Ctx<'_>, mut session: Session, event: &AgentEvent) -> Result<HandledEvent, Stop> {
    if event.asks_model {
        if event.subagent.is_none() {
            ctx.write_beat()?;
            ctx.tx.note_request(session.token(), ctx.now.wall)?;
        }
        return Ok(of(&session));
    }
    note_subagent(ctx, &session, event)?;
    note_transcript(ctx, &session, event)?;
    note_waking(ctx, &session, event)?;
    tell(ctx, &session, event)?;
    caller::resolve_doubts(ctx, session.id)?;
    let advice = use_tool(ctx, &session, event)?;
    note_title(ctx, &mut session, event)?;
    note_activity(ctx, &mut session, event)?;
    follow_window(ctx, &mut session, event)?;
    Ok(HandledEvent {
        advice,
        quiet_for: caller::quiet_for(ctx, &session),
        ..of(&session)
    })
}

/// Finds the current window of a conversation: at a prompt if none was known, and at the end of a turn if the
/// window is gone. Without a window the session ends with the turn, so waiters need not look.
fn follow_window(ctx: &mut Ctx<'_>, session: &mut Session, event: &AgentEvent) -> Result<(), Stop> {
    let Some(daemon) = &session.daemon else {
        return Ok(());
    };
    let unknown = event.attended && session.process.as_ref() == Some(daemon);
    let over = event.doing.is_some_and(Doing::rests)
        && matches!(ctx.seen_to_live_by(session)?, (Liveness::Dead(_), _));
    if !unknown && !over {
        return Ok(());
    }
    let found = window(ctx, event)?.filter(|found| !found.process.same_as(daemon));
    let elsewhere = |found: &Ancestor| {
        let its = session.process.as_ref();
        its.is_none_or(|its| !its.same_as(&found.process))
    };
    match found.filter(elsewhere) {
        Some(found) => move_to_window(ctx, session, &found.process, &found.looks)?,
        None if over => ctx.effects.dead.push(session.id),
        None => {}
    }
    Ok(())
}
