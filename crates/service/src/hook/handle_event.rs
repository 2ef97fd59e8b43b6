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

use crate::caller::present::{is_among, open_at, speaking, speaking_through};
use crate::context::{Ctx, Stop};
use crate::evidence::{Surroundings, Want};
use crate::hook::tools::{Advice, ToolUse, advise, recap};
use crate::hook::worktree_changes::{changes_since, leave};
use crate::session::look::{ListRequest, filter_of, list};
use crate::session::new_session::move_to_window;
use crate::session::register::{Enrolled, RegisterRequest, Subject, register};
use crate::session::title::note as keep_title;
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
use tenure_core::store::Mode;
use tenure_core::title;
use tenure_core::worktree_changes::WorktreeChanges;

/// How many other sessions a brief lists.
const MOST_OTHERS: usize = 50;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEvent {
    pub agent: Option<AgentName>,
    /// The agent's own process; none if it could not be identified.
    pub process: Option<Ancestor>,
    /// Where to look for it, for a program that tenure cannot recognise.
    pub program: Option<Program>,
    pub native_id: Option<NativeId>,
    pub what: Happening,
    /// The subagent in which it happened.
    pub subagent: Option<Subagent>,
    /// What the session is doing now.
    pub doing: Option<Doing>,
    /// What it waits for a person to answer.
    pub asks: Option<Asked>,
    /// Whether it shows that a person is present.
    pub attended: bool,
    /// What the agent's terminal shows; checked only for an end.
    pub terminal: Terminal,
    pub dir: String,
    /// The agent's file for the conversation.
    pub transcript: Option<String>,
    /// The tool that is about to run, or ran.
    pub tool: Option<ToolUse>,
    /// What a person asked it to do; none if that must not be stored.
    pub prompt: Option<String>,
    /// What the agent calls its work.
    pub title: Option<String>,
    /// Whether the model reads the answer. If not, nothing is delivered with it.
    pub reaches_model: bool,
    /// Whether answers to this agent's events can reach the model at all.
    pub speaks: bool,
    /// Whether the session's first event is answered with a brief.
    pub wants_brief: bool,
    /// Whether the answer shows the person the turn's findings, because no other answer reaches the person.
    pub wants_recap: bool,
}

#[derive(Debug, Clone, Default)]
pub struct HandledEvent {
    pub session: Option<String>,
    pub id: Option<SessionId>,
    /// Whether anything besides its activity changed.
    pub changed: bool,
    /// How it was registered, if it was.
    pub registered: Option<&'static str>,
    /// The value for TENURE_SESSION, at a start.
    pub token: Option<String>,
    /// What the model reads at a start.
    pub brief: Option<Brief>,
    /// What to report about a tool call.
    pub advice: Advice,
    /// Why the program's process is unknown, if it is.
    pub unclear: Option<String>,
}

/// What a model should know when it starts.
#[derive(Debug, Clone)]
pub struct Brief {
    pub me: SessionView,
    pub regranted: Vec<HeldView>,
    /// What changed in its worktree while it was away.
    pub worktree_changes: WorktreeChanges,
    /// The other sessions in the same repository, or in the same directory if there is none.
    pub others: Vec<SessionView>,
    pub more_others: usize,
}

impl Service<'_> {
    pub fn handle_event(&mut self, event: &AgentEvent) -> Reply<HandledEvent> {
        self.transact(Mode::Read, |ctx| match &event.program {
            Some(program) => handle_program_event(ctx, program, event),
            None => hear(ctx, event),
        })
    }
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
        Found::Process(found) => (Some(found.clone()), None),
        Found::Unclear(why) => (None, Some(why)),
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
        ..hear(ctx, &placed)?
    })
}

fn hear(ctx: &mut Ctx<'_>, event: &AgentEvent) -> Result<HandledEvent, Stop> {
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
    // A start that a daemon reports may belong to another window.
    let starts = matches!(event.what, Happening::Start | Happening::Fork);
    if let Some(session) = &here
        && event.process.is_some()
        && !(starts && session.daemon.is_some())
    {
        ctx.own = Some(session.id);
    }
    let heard = match (&event.what, here) {
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
    Ok(heard)
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
    let mut heard = HandledEvent::default();
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
    let activity = event.doing.map(|doing| Activity {
        doing,
        since: ctx.now.wall,
        asks: None,
    });
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
    let known = |named: &NativeId| {
        session.native_id.as_ref() == Some(named) || session.fork_of.as_ref() == Some(named)
    };
    event.subagent.is_none() && event.native_id.as_ref().is_some_and(|named| !known(named))
}

fn beat(ctx: &mut Ctx<'_>, mut session: Session, event: &AgentEvent) -> Result<HandledEvent, Stop> {
    note_subagent(ctx, &session, event)?;
    note_transcript(ctx, &session, event)?;
    tell(ctx, &session, event)?;
    caller::resolve_doubts(ctx, session.id)?;
    let advice = use_tool(ctx, &session, event)?;
    note_title(ctx, &mut session, event)?;
    note_activity(ctx, &mut session, event)?;
    follow_window(ctx, &mut session, event)?;
    Ok(HandledEvent {
        advice,
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

/// Checks a tool call before it runs, and stores its traces. What a turn's commands did is stored at the end of
/// the turn.
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

/// What the session does after an event, if that is new.
fn activity_after(ctx: &Ctx<'_>, session: &Session, event: &AgentEvent) -> Option<Activity> {
    let doing = event.doing?;
    let before = session.activity.as_ref();
    let same = before.filter(|before| before.doing == doing);
    let asked_before = same.and_then(|before| before.asks.as_deref());
    let asks = event.asks.as_ref().map(|asks| asks.after(asked_before));
    // An unattended session ends with its turn, whose start may not have been reported.
    let ends_first_turn = doing == Doing::Idle && end::awaits_its_first_turn(session);
    let is_new = event.attended || ends_first_turn;
    match same {
        // A prompt by a person starts a new turn, whatever happened to the last one.
        Some(_) if is_new => {}
        Some(before) if asks.is_none() || asks == before.asks => return None,
        Some(_) | None => {}
    }
    let since = match same {
        Some(before) if !is_new => before.since,
        _ => ctx.now.wall,
    };
    Some(Activity { doing, since, asks })
}

/// Stores a new title: at the first prompt, and when the agent names its work.
fn note_title(ctx: &mut Ctx<'_>, session: &mut Session, event: &AgentEvent) -> Result<(), Stop> {
    if event.subagent.is_some() {
        return Ok(());
    }
    let named = event.title.as_deref();
    let named = named.and_then(|text| title::titled(text, TitleBy::Agent));
    let title = named.or_else(|| event.prompt.as_deref().and_then(title::of_prompt));
    match title {
        Some(title) => keep_title(ctx, session, title),
        None => Ok(()),
    }
}

/// Logs the start and the end of a subagent, which shares its session's identity.
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

/// Stores a new transcript path. A path that belongs to another session is refused and logged, but the event
/// still counts.
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

/// Delivers pending notices if the model will read them.
fn tell(ctx: &mut Ctx<'_>, session: &Session, event: &AgentEvent) -> Result<(), Stop> {
    if event.reaches_model {
        ctx.tell(session.id)
    } else {
        Ok(())
    }
}

/// Registers the sender of an event: at its start, or for any event of an unknown process.
fn enrol(ctx: &mut Ctx<'_>, event: &AgentEvent) -> Result<HandledEvent, Stop> {
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
    Ok(HandledEvent {
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

/// The daemon that sent an event, if one did.
fn daemon_of(event: &AgentEvent) -> Option<&'static DaemonSpec> {
    let spec = agent::daemon_of(&event.process.as_ref()?.looks)?;
    spec.daemon.as_ref()
}

/// The window of the conversation, if a daemon runs it and reports the window.
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

/// The ancestors of the process, or of its window, and its directory; observed before anything is locked.
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
    // The process as it was found, then its ancestors.
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
        worktree_changes: match done.word {
            "resumed" => changes_since(ctx, session)?,
            _ => WorktreeChanges::default(),
        },
        others,
        more_others,
    })
}
