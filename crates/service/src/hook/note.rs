//! What an event leaves with its session: activity, title, subagents, transcript, and the traces of a tool.

use crate::context::{Ctx, Stop};
use crate::hook::event::AgentEvent;
use crate::hook::tools::{Advice, advise, recap};
use crate::hook::worktree_changes::leave;
use crate::session::title::note as keep_title;
use crate::{caller, transcript};
use tenure_core::activity::{self, ActivityReport};
use tenure_core::agent_event::Happening;
use tenure_core::end;
use tenure_core::event::EventKind;
use tenure_core::notice::{Notice, NoticeId};
use tenure_core::session::{Activity, Doing, Session, TitleBy};
use tenure_core::store::{Lock, TxMode};
use tenure_core::title;
use tenure_core::woken::Woken;

/// Checks a tool call before it runs, and stores its traces. What a turn's commands did is stored at the end of
/// the turn.
pub(super) fn use_tool(
    ctx: &mut Ctx<'_>,
    session: &Session,
    event: &AgentEvent,
) -> Result<Advice, Stop> {
    let ends_turn = event.what == Happening::Other && event.doing.is_some_and(Doing::rests);
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

pub(super) fn note_activity(
    ctx: &mut Ctx<'_>,
    session: &mut Session,
    event: &AgentEvent,
) -> Result<(), Stop> {
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
    // An unattended session ends with its turn, whose start may not have been reported.
    let ends_first_turn = doing.rests() && end::awaits_its_first_turn(session);
    let heard = ActivityReport {
        doing,
        asks: event.asks.as_ref(),
        why: event.why.as_deref(),
        until: event.until,
        // A prompt by a person starts a new turn, whatever happened to the last one.
        is_new: event.attended || ends_first_turn || !event.woken_by.is_empty(),
    };
    activity::after(session.activity.as_ref(), &heard, ctx.now.wall)
}

/// Stores a new title: at the first prompt, and when the agent names its work.
pub(super) fn note_title(
    ctx: &mut Ctx<'_>,
    session: &mut Session,
    event: &AgentEvent,
) -> Result<(), Stop> {
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
pub(super) fn note_subagent(
    ctx: &mut Ctx<'_>,
    session: &Session,
    event: &AgentEvent,
) -> Result<(), Stop> {
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
pub(super) fn note_transcript(
    ctx: &mut Ctx<'_>,
    session: &Session,
    event: &AgentEvent,
) -> Result<(), Stop> {
    let (Some(path), Some(native_id)) = (&event.transcript, &session.native_id) else {
        return Ok(());
    };
    if event.native_id.as_ref() != Some(native_id) {
        return Ok(());
    }
    let kept = ctx.tx.transcript_of(session.id, native_id)?;
    if kept.is_some_and(|kept| kept.path == ctx.path_here(path)) {
        return Ok(());
    }
    ctx.write()?;
    match transcript::set(ctx, session, native_id, path) {
        Err(Stop::Refuse(_)) => Ok(()),
        other => other,
    }
}

/// Delivers pending notices if the model will read them.
pub(super) fn tell(ctx: &mut Ctx<'_>, session: &Session, event: &AgentEvent) -> Result<(), Stop> {
    if event.reaches_model {
        ctx.tell(session.id)
    } else {
        Ok(())
    }
}

/// What an event says about messages that started turns: the prompt that begins with their mark is the receipt, and a
/// person's prompt ends the turn.
pub(super) fn note_waking(
    ctx: &mut Ctx<'_>,
    session: &Session,
    event: &AgentEvent,
) -> Result<(), Stop> {
    if !event.woken_by.is_empty() {
        let pending = ctx.tx.pending_notices(session.id, 0)?;
        let began = |one: &&Notice| {
            one.woke_at.is_some() && one.id.is_some_and(|id| event.woken_by.contains(&id))
        };
        let began: Vec<NoticeId> = pending
            .iter()
            .filter(began)
            .filter_map(|one| one.id)
            .collect();
        if !began.is_empty() {
            ctx.write()?;
            ctx.tx.mark_delivered(session.id, &began, ctx.now.wall)?;
        }
        return Ok(());
    }
    let starts = matches!(event.what, Happening::Start | Happening::Fork);
    let is_persons = event.attended && (starts || event.doing == Some(Doing::Busy));
    if session.woken.is_turn && is_persons {
        ctx.write_beat()?;
        if ctx.mode == TxMode::Write {
            ctx.lock([Lock::Session(session.id)])?;
        }
        let woken = Woken {
            is_turn: false,
            ..session.woken.clone()
        };
        ctx.tx.note_woken(session.token(), &woken)?;
    }
    Ok(())
}
