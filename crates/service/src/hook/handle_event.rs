//! What an agent reports about itself, event by event.
//!
//! This is the hot path: it runs at every tool call of every agent. An event of a session that is known and
//! does nothing new costs one indexed read of the session and two of what waits for it; at most
//! every ten seconds, and when the activity changes, one row is written, without waiting for the disk. Any
//! event but an end registers a process that is nobody yet, so a lost start heals itself. An end
//! never registers, and ends only the session whose present process sent it: agents report the end of
//! conversations that live elsewhere. A subagent is no session; its events are its session's heartbeats.
//!
//! *Crash*: an event that was not committed never came; the next one says the same. *Clock jump*: the
//! heartbeat's age is taken from the wall clock in both directions, the lease from the steady one.

use crate::caller::present::{is_among, open_at, speaking, speaking_through};
use crate::context::{Ctx, Stop};
use crate::evidence::{Surroundings, Want};
use crate::hook::tools::{Advice, ToolUse, advise, recap};
use crate::hook::worktree_changes::{leave, meanwhile};
use crate::session::look::{ListRequest, filter_of, list};
use crate::session::new_session::move_to_window;
use crate::session::register::{Enrolled, RegisterRequest, Subject, register};
use crate::session::view::{HeldView, SessionView};
use crate::transact::{Reply, Service};
use crate::{caller, transcript};
use tenure_core::agent::{self, DaemonSpec};
use tenure_core::agent_event::{Asked, Happening, Subagent};
use tenure_core::end::{self, Ending, Terminal};
use tenure_core::event::EventKind;
use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::liveness::Liveness;
use tenure_core::present::{Present, in_conversation};
use tenure_core::process::Ancestor;
use tenure_core::program::{Found, Program};
use tenure_core::registration::Source;
use tenure_core::session::{Activity, ClosedBy, Doing, EndKind, Session, TitleBy};
use tenure_core::store::{Lock, Mode};
use tenure_core::title;
use tenure_core::worktree_changes::WorktreeChanges;

/// How many others a brief names at most.
const MOST_OTHERS: usize = 50;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEvent {
    pub agent: Option<AgentName>,
    /// The agent's own process; none where it could not be established.
    pub process: Option<Ancestor>,
    /// Where to look for it, for a program that has no looks of its own.
    pub program: Option<Program>,
    pub native_id: Option<NativeId>,
    pub what: Happening,
    /// The subagent that it happened in.
    pub subagent: Option<Subagent>,
    /// What the session does now.
    pub doing: Option<Doing>,
    /// What it waits for a person to answer.
    pub asks: Option<Asked>,
    /// Whether it shows that a person is there.
    pub attended: bool,
    /// What the agent's terminal shows; looked at for an end only.
    pub terminal: Terminal,
    pub dir: String,
    /// The file that it keeps the conversation in.
    pub transcript: Option<String>,
    /// The tool that is about to run, or ran.
    pub tool: Option<ToolUse>,
    /// What a person asked it to do; none where that is not to be kept.
    pub prompt: Option<String>,
    /// What the agent calls the work.
    pub title: Option<String>,
    /// Whether the model reads the answer: only then is it told anything.
    pub reaches_model: bool,
    /// Whether the answers to this agent's events speak to the model at all.
    pub speaks: bool,
    /// Whether the session's first event is answered with a brief.
    pub wants_brief: bool,
    /// Whether the answer tells the person what the turn met, because no other answer reaches the person.
    pub wants_recap: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Heard {
    pub session: Option<String>,
    pub id: Option<SessionId>,
    /// Whether anything about it changed but its activity.
    pub changed: bool,
    /// How it was registered, if it was.
    pub registered: Option<&'static str>,
    /// What TENURE_SESSION must be, at a start.
    pub token: Option<String>,
    /// What the model is told at a start.
    pub brief: Option<Brief>,
    /// What is to be said about a tool's use.
    pub advice: Advice,
    /// Why the program's process is not known, if it is not.
    pub unclear: Option<String>,
}

/// What a model should know when it starts.
#[derive(Debug, Clone)]
pub struct Brief {
    pub me: SessionView,
    pub regranted: Vec<HeldView>,
    /// What became of its worktree while it was away.
    pub meanwhile: WorktreeChanges,
    /// Who else works in the same repository, or in the same directory where there is none.
    pub others: Vec<SessionView>,
    pub more_others: usize,
}

impl Service<'_> {
    pub fn handle_event(&mut self, event: &AgentEvent) -> Reply<Heard> {
        self.transact(Mode::Read, |ctx| match &event.program {
            Some(program) => hear_program(ctx, program, event),
            None => hear(ctx, event),
        })
    }
}

/// An event of a program that has no looks of its own. Without a process only its conversation says which
/// session it is; one that names neither is nobody's.
fn hear_program(ctx: &mut Ctx<'_>, program: &Program, event: &AgentEvent) -> Result<Heard, Stop> {
    let open = match program.pid {
        Some(_) => Vec::new(),
        None => open_at(ctx, program.above.iter().map(|above| &above.process))?,
    };
    let (process, unclear) = match program.find(|above| is_among(&open, &above.process)) {
        Found::Process(found) => (Some(found.clone()), None),
        Found::Unclear(why) => (None, Some(why)),
    };
    if process.is_none() && event.native_id.is_none() {
        return Ok(Heard {
            unclear,
            ..Heard::default()
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
    Ok(Heard {
        unclear,
        ..hear(ctx, &placed)?
    })
}

fn hear(ctx: &mut Ctx<'_>, event: &AgentEvent) -> Result<Heard, Stop> {
    let process = event.process.as_ref().map(|found| &found.process);
    let (agent, native_id) = (event.agent.as_ref(), event.native_id.as_ref());
    let here = match (daemon_of(event), process) {
        (Some(_), Some(daemon)) => match speaking_through(ctx, daemon, native_id)? {
            Present::Several(sessions) => match event.what {
                Happening::End { .. } => return end_all(ctx, sessions, event),
                _ => speaking_in(ctx, sessions, event)?,
            },
            here => here.one(),
        },
        _ => speaking(ctx, agent, process, native_id)?,
    };
    // A start that a daemon sends may be that of another window.
    let starts = matches!(event.what, Happening::Start | Happening::Fork);
    if let Some(session) = &here
        && event.process.is_some()
        && !(starts && session.daemon.is_some())
    {
        ctx.own = Some(session.id);
    }
    let heard = match (&event.what, here) {
        (Happening::End { .. } | Happening::Leaves, None) => return Ok(Heard::default()),
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
    Ok(heard)
}

/// Whether a session whose agent reports its end had left, or was cut off.
fn end_kind(
    ctx: &mut Ctx<'_>,
    session: &Session,
    event: &AgentEvent,
    reason: &str,
) -> Result<EndKind, Stop> {
    let ending = match &session.daemon {
        // A daemon says the same long after the window is gone, however that went.
        Some(_) if ctx.is_gone(session)? => return ctx.death_kind(session),
        // There was a window that nothing is known of.
        Some(_) if session.daemon == session.process => Ending::Died { in_order: false },
        _ => Ending::Said {
            reason,
            terminal: event.terminal,
        },
    };
    let doing = event.doing.or(session.doing());
    Ok(end::kind(session, doing, ending))
}

/// Of several sessions in one conversation of a daemon, the one that an event of it is.
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

/// A daemon let go of a conversation: all that were in it there are over.
fn end_all(ctx: &mut Ctx<'_>, sessions: Vec<Session>, event: &AgentEvent) -> Result<Heard, Stop> {
    let mut heard = Heard::default();
    if let Happening::End {
        ends_worker,
        reason,
    } = &event.what
    {
        for session in sessions {
            heard = ends(ctx, &session, event, *ends_worker, reason)?;
        }
    }
    Ok(heard)
}

/// An agent says that a session is over, or only that it lets go of its conversation.
fn ends(
    ctx: &mut Ctx<'_>,
    session: &Session,
    event: &AgentEvent,
    ends_worker: bool,
    reason: &str,
) -> Result<Heard, Stop> {
    note_transcript(ctx, session, event)?;
    if ends_worker && event.subagent.is_none() {
        leave(ctx, session)?;
        let why = match reason {
            "" => "the agent ended".to_owned(),
            reason => format!("the agent ended: {reason}"),
        };
        let kind = end_kind(ctx, session, event, reason)?;
        ctx.close_as(session, ClosedBy::End, kind, &why, None, None)?;
    }
    Ok(Heard {
        changed: ends_worker,
        ..of(session)
    })
}

/// A session is about to leave. It still lives, and nothing of it is free before its process is gone.
fn leaves(ctx: &mut Ctx<'_>, session: &Session, event: &AgentEvent) -> Result<(), Stop> {
    if !event.terminal.lets_leave(&session.agent) || event.subagent.is_some() {
        return Ok(());
    }
    ctx.write()?;
    let mut session = session.clone();
    let activity = event.doing.map(|doing| Activity {
        doing,
        since: ctx.now.wall,
        asks: None,
    });
    caller::renew_doing(ctx, &mut session, activity, None)?;
    let evidence = "the agent is about to exit".to_owned();
    ctx.log(&ctx.event(EventKind::Leaving, Some(session.id), "hook", evidence))
}

fn of(session: &Session) -> Heard {
    Heard {
        session: Some(session.handle.to_string()),
        id: Some(session.id),
        ..Heard::default()
    }
}

/// Whether an event says anything about who the session is that is not known yet.
fn says_more(event: &AgentEvent, session: &Session) -> bool {
    if matches!(event.what, Happening::Start | Happening::Fork) {
        return true;
    }
    let known = |named: &NativeId| {
        session.native_id.as_ref() == Some(named) || session.fork_of.as_ref() == Some(named)
    };
    event.subagent.is_none() && event.native_id.as_ref().is_some_and(|named| !known(named))
}

/// An event of a session that is known.
fn beat(ctx: &mut Ctx<'_>, mut session: Session, event: &AgentEvent) -> Result<Heard, Stop> {
    note_subagent(ctx, &session, event)?;
    note_transcript(ctx, &session, event)?;
    tell(ctx, &session, event)?;
    caller::resolve_doubts(ctx, session.id)?;
    let advice = use_tool(ctx, &session, event)?;
    note_title(ctx, &mut session, event)?;
    note_activity(ctx, &mut session, event)?;
    follow_window(ctx, &mut session, event)?;
    Ok(Heard {
        advice,
        ..of(&session)
    })
}

/// Finds the window that a conversation is in now: at a prompt where none was known, and at a turn's end where
/// the window went away meanwhile. Without one it is over with the turn: who waits for it need not look.
fn follow_window(ctx: &mut Ctx<'_>, session: &mut Session, event: &AgentEvent) -> Result<(), Stop> {
    let Some(daemon) = &session.daemon else {
        return Ok(());
    };
    let unknown = event.attended && session.process.as_ref() == Some(daemon);
    let over = event.doing == Some(Doing::Idle)
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
        None if over => ctx.dead.push(session.id),
        None => {}
    }
    Ok(())
}

/// Looks at a tool's use before it runs, and keeps what it left behind. What a turn's commands did is
/// kept when it is over.
fn use_tool(ctx: &mut Ctx<'_>, session: &Session, event: &AgentEvent) -> Result<Advice, Stop> {
    let ends_turn = event.what == Happening::Other && event.doing == Some(Doing::Idle);
    match &event.tool {
        Some(tool) if !tool.ran => return advise(ctx, session, tool, &event.dir),
        Some(_) => leave(ctx, session)?,
        None if ends_turn => leave(ctx, session)?,
        None => {}
    }
    if event.wants_recap {
        return recap(ctx, session);
    }
    Ok(Advice::default())
}

fn note_activity(ctx: &mut Ctx<'_>, session: &mut Session, event: &AgentEvent) -> Result<(), Stop> {
    let activity = activity_after(ctx, session, event);
    if activity.is_none() && !event.attended && !caller::is_due(ctx, session) {
        return Ok(());
    }
    ctx.write_beat()?;
    let attended_at = event.attended.then_some(ctx.now.wall);
    caller::renew_doing(ctx, session, activity, attended_at)
}

/// What the session does after an event, where that is not what is known already.
fn activity_after(ctx: &Ctx<'_>, session: &Session, event: &AgentEvent) -> Option<Activity> {
    let doing = event.doing?;
    let before = session.activity.as_ref();
    let same = before.filter(|before| before.doing == doing);
    let asked_before = same.and_then(|before| before.asks.as_deref());
    let asks = event.asks.as_ref().map(|asks| asks.after(asked_before));
    match same {
        // A person who prompts starts another turn, whatever became of the one before.
        Some(_) if event.attended => {}
        Some(before) if asks.is_none() || asks == before.asks => return None,
        Some(_) | None => {}
    }
    let since = match same {
        Some(before) if !event.attended => before.since,
        _ => ctx.now.wall,
    };
    Some(Activity { doing, since, asks })
}

/// Keeps what the work is called, where that is new: at the first prompt, and when the agent names it.
fn note_title(ctx: &mut Ctx<'_>, session: &mut Session, event: &AgentEvent) -> Result<(), Stop> {
    if event.subagent.is_some() {
        return Ok(());
    }
    let named = event.title.as_deref();
    let named = named.and_then(|text| title::titled(text, TitleBy::Agent));
    let title = named.or_else(|| event.prompt.as_deref().and_then(title::of_prompt));
    let present = session.title.as_ref();
    let Some(title) = title.filter(|title| title::replaces(title, present)) else {
        return Ok(());
    };
    ctx.lock([Lock::Session(session.id)])?;
    session.title = Some(title);
    ctx.tx.update_session(session)?;
    session.revision += 1;
    Ok(())
}

/// A subagent's beginning and end are kept in the log: it shares its session's identity.
fn note_subagent(ctx: &mut Ctx<'_>, session: &Session, event: &AgentEvent) -> Result<(), Stop> {
    let (Some(subagent), Happening::SubagentStart | Happening::SubagentStop) =
        (&event.subagent, &event.what)
    else {
        return Ok(());
    };
    ctx.write()?;
    let mechanism = match event.what {
        Happening::SubagentStart => "started",
        _ => "stopped",
    };
    let evidence = match &subagent.kind {
        Some(kind) => format!("subagent {} ({kind})", subagent.id),
        None => format!("subagent {}", subagent.id),
    };
    ctx.log(&ctx.event(EventKind::Subagent, Some(session.id), mechanism, evidence))
}

/// Keeps the transcript's path where it is new. One that is another's is refused and recorded, and the
/// event counts all the same.
fn note_transcript(ctx: &mut Ctx<'_>, session: &Session, event: &AgentEvent) -> Result<(), Stop> {
    let (Some(path), Some(native_id)) = (&event.transcript, &session.native_id) else {
        return Ok(());
    };
    if event.native_id.as_ref() != Some(native_id) {
        return Ok(());
    }
    let kept = ctx.tx.transcript_of(session.id, native_id)?;
    if kept.is_some_and(|kept| kept.path == *path) {
        return Ok(());
    }
    ctx.write()?;
    match transcript::set(ctx, session, native_id, path) {
        Err(Stop::Refuse(_)) => Ok(()),
        other => other,
    }
}

/// Tells the session what waits for it, if the model will read it.
fn tell(ctx: &mut Ctx<'_>, session: &Session, event: &AgentEvent) -> Result<(), Stop> {
    if event.reaches_model {
        ctx.tell(session.id)
    } else {
        Ok(())
    }
}

/// An event that says who the session is: its start, or anything from a process that is nobody yet.
fn enrol(ctx: &mut Ctx<'_>, event: &AgentEvent) -> Result<Heard, Stop> {
    let window = window(ctx, event)?;
    let around = surroundings(ctx, event, window.as_ref())?;
    ctx.write()?;
    let request = request(event, window, around);
    let done = register(ctx, &request)?;
    let mut session = ctx.session(done.session.id)?;
    if event.speaks {
        ctx.tx.note_model_channel(session.token())?;
    }
    note_subagent(ctx, &session, event)?;
    note_transcript(ctx, &session, event)?;
    note_title(ctx, &mut session, event)?;
    note_activity(ctx, &mut session, event)?;
    tell(ctx, &session, event)?;
    caller::resolve_doubts(ctx, session.id)?;
    let advice = use_tool(ctx, &session, event)?;
    let brief = if event.wants_brief {
        Some(brief(ctx, &session, &done)?)
    } else {
        None
    };
    Ok(Heard {
        session: Some(session.handle.to_string()),
        id: Some(session.id),
        changed: true,
        registered: Some(done.word),
        token: done.token.map(|token| token.to_string()),
        brief,
        advice,
        unclear: None,
    })
}

/// The daemon that sent an event, where one did.
fn daemon_of(event: &AgentEvent) -> Option<&'static DaemonSpec> {
    let spec = agent::daemon_of(&event.process.as_ref()?.looks)?;
    spec.daemon.as_ref()
}

/// The window of the conversation, where a daemon runs it and says which that is.
fn window(ctx: &Ctx<'_>, event: &AgentEvent) -> Result<Option<Ancestor>, Stop> {
    let (Some(spec), Some(found), Some(native_id)) =
        (daemon_of(event), &event.process, &event.native_id)
    else {
        return Ok(None);
    };
    match ctx.evidence.window() {
        Some(found) => Ok(found.clone()),
        None => {
            let want = Want::Window(*spec, found.process.clone(), native_id.clone());
            Err(Stop::Look(want))
        }
    }
}

/// What is above the process, or above its window, and where it works, looked for before anything is locked.
fn surroundings(
    ctx: &Ctx<'_>,
    event: &AgentEvent,
    window: Option<&Ancestor>,
) -> Result<Surroundings, Stop> {
    match ctx.evidence.surroundings() {
        Some(found) => Ok(found.clone()),
        None => {
            let process = window.or(event.process.as_ref());
            let pid = process.map(|found| found.process.pid);
            Err(Stop::Look(Want::Surroundings(pid, event.dir.clone())))
        }
    }
}

fn request(event: &AgentEvent, window: Option<Ancestor>, around: Surroundings) -> RegisterRequest {
    // The process itself as it was found, then whatever was seen above it.
    let above = around.chain.into_iter().skip(1);
    let chain = |found: Ancestor| std::iter::once(found).chain(above).collect();
    let subject = match (&event.process, daemon_of(event)) {
        (None, _) => Subject::Unverified,
        (Some(found), None) => Subject::Given(chain(found.clone())),
        (Some(found), Some(_)) => {
            let seen = window.unwrap_or_else(|| found.clone());
            Subject::Below(found.process.clone(), chain(seen))
        }
    };
    RegisterRequest {
        subject,
        agent: event.agent.clone(),
        native_id: event.native_id.clone(),
        source: match event.what {
            Happening::Start => Source::Start,
            Happening::Fork => Source::Fork,
            _ => Source::Event,
        },
        hosted: false,
        workdir: around.workdir,
        place_named: matches!(event.what, Happening::Start | Happening::Fork),
        title: None,
        parent: None,
        reason: None,
        transcript: None,
        metadata: std::collections::BTreeMap::new(),
    }
}

fn brief(ctx: &mut Ctx<'_>, session: &Session, done: &Enrolled) -> Result<Brief, Stop> {
    let here = match &session.workdir.repo {
        Some(repo) => ListRequest {
            repo: Some(repo.clone()),
            worktree: Some(session.workdir.dir.clone()),
            limit: MOST_OTHERS,
            ..ListRequest::default()
        },
        None => ListRequest {
            under: Some(session.workdir.dir.clone()),
            limit: MOST_OTHERS,
            ..ListRequest::default()
        },
    };
    let listed = list(ctx, &here)?;
    let all = if listed.len() < MOST_OTHERS {
        listed.len()
    } else {
        ctx.tx.count_sessions(&filter_of(&here))?
    };
    let more_others = all.saturating_sub(listed.len());
    let others = listed
        .into_iter()
        .filter(|other| other.session.id != session.id && !other.is_over())
        .map(|other| other.view)
        .collect();
    Ok(Brief {
        me: ctx.view(session)?,
        regranted: done.regranted.clone(),
        meanwhile: match done.word {
            "resumed" => meanwhile(ctx, session)?,
            _ => WorktreeChanges::default(),
        },
        others,
        more_others,
    })
}
