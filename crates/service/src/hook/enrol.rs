//! Registering the sender of an event: where it runs, what it is, and what its model is told first.

use crate::caller;
use crate::context::{Ctx, Stop};
use crate::evidence::{Surroundings, Want};
use crate::hook::event::{AgentEvent, Brief, HandledEvent};
use crate::hook::note::{
    note_activity, note_subagent, note_title, note_transcript, note_waking, tell, use_tool,
};
use crate::hook::worktree_changes::changes_since;
use crate::session::look::{ListRequest, filter_of, list};
use crate::session::register::{Enrolled, RegisterRequest, Subject, register};
use tenure_core::agent::{self, DaemonSpec};
use tenure_core::agent_event::Happening;
use tenure_core::process::Ancestor;
use tenure_core::registration::RegistrationSource;
use tenure_core::session::Session;
use tenure_core::worktree_changes::WorktreeChanges;

/// How many other sessions a brief lists.
const MAX_OTHERS: usize = 50;

/// Registers the sender of an event: at its start, or for any event of an unknown process.
pub(super) fn enrol(ctx: &mut Ctx<'_>, event: &AgentEvent) -> Result<HandledEvent, Stop> {
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
    note_waking(ctx, &session, event)?;
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
        ..HandledEvent::default()
    })
}

/// The daemon that sent an event, if one did.
pub(super) fn daemon_of(event: &AgentEvent) -> Option<&'static DaemonSpec> {
    let spec = agent::daemon_of(&event.process.as_ref()?.looks)?;
    spec.daemon.as_ref()
}

/// The window of the conversation, if a daemon runs it and reports the window.
pub(super) fn window(ctx: &Ctx<'_>, event: &AgentEvent) -> Result<Option<Ancestor>, Stop> {
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
            Happening::Start => RegistrationSource::Start,
            Happening::Fork => RegistrationSource::Fork,
            _ => RegistrationSource::Event,
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
            limit: MAX_OTHERS,
            ..ListRequest::default()
        },
        None => ListRequest {
            under: Some(session.workdir.dir.clone()),
            limit: MAX_OTHERS,
            ..ListRequest::default()
        },
    };
    let listed = list(ctx, &here)?;
    let all = if listed.len() < MAX_OTHERS {
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
