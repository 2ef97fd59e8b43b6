//! Changing the native id of a conversation, in one transaction with its history.

use tenure_core::conversation::{Author, Conversation, Current, Home, PastId, WhyEnded};
use tenure_core::event::EventKind;
use tenure_core::id::{NativeId, worker_name};
use tenure_core::run::Run;
use tenure_core::store::{Lock, TxMode};

use super::contamination;
use super::look::{LookDepth, shown};
use super::record::{end_past, keep, record};
use super::request::{self, NewNative, SetRequest, author, root_of};
use super::view::ConversationView;
use crate::caller::{ActFor, Caller};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Reply, Service};

impl Service<'_> {
    /// Sets the native id of a conversation. Changes nothing if the request names an outdated
    /// revision.
    pub fn set_conversation(
        &mut self,
        act_for: &ActFor,
        request: &SetRequest,
    ) -> Reply<ConversationView> {
        self.transact(TxMode::Write, |ctx| {
            let by = request::writer(ctx, act_for)?;
            set(ctx, by.as_ref(), request)
        })
    }
}

fn set(
    ctx: &mut Ctx<'_>,
    by: Option<&Caller>,
    request: &SetRequest,
) -> Result<ConversationView, Stop> {
    let SetRequest {
        agent, role, item, ..
    } = request;
    let root = root_of(ctx, item)?;
    ctx.lock([
        Lock::Conversation(item.clone()),
        Lock::Conversation(root.clone()),
    ])?;
    let before = record(ctx, agent, role, &root)?;
    if let Some(named) = request.revision.filter(|named| *named != before.revision) {
        let now = Box::new(shown(ctx, &before, item, LookDepth::Record)?);
        return Err(Error::Revised { named, now }.into());
    }
    let new = NewNative {
        agent,
        role,
        root: &root,
        native_id: &request.native_id,
        home: &request.home,
        author: author(by),
        writer: by.map(|caller| &caller.session),
    };
    let after = change(ctx, by, &new, before)?;
    shown(ctx, &after, item, LookDepth::Record)
}

/// Makes a native id the current one of a run's conversation. A step of other use cases.
pub fn set_by_run(
    ctx: &mut Ctx<'_>,
    run: &Run,
    native_id: &NativeId,
    home: &Home,
    author: Author,
) -> Result<Conversation, Stop> {
    let Run {
        agent, role, root, ..
    } = run;
    ctx.lock([Lock::Conversation(root.clone())])?;
    let before = record(ctx, agent, role, root)?;
    let new = NewNative {
        agent,
        role,
        root,
        native_id,
        home,
        author,
        writer: None,
    };
    change(ctx, None, &new, before)
}

fn change(
    ctx: &mut Ctx<'_>,
    by: Option<&Caller>,
    new: &NewNative<'_>,
    before: Conversation,
) -> Result<Conversation, Stop> {
    if is_there(&before, new) {
        return Ok(before);
    }
    ctx.lock([Lock::Native(new.agent.clone(), new.native_id.clone())])?;
    contamination::refuse(ctx, by, new)?;
    let was = match before.open() {
        Some(current) if current.native_id == *new.native_id => {
            format!(", until now in {}", current.home.dir)
        }
        Some(current) => format!(", replacing {}", current.native_id),
        None => String::new(),
    };
    let after = put(ctx, new, before)?;
    let evidence = format!(
        "{}: {} in {}{was} (revision {})",
        worker_name(new.agent.as_str(), new.role.label()),
        new.native_id,
        new.home.dir,
        after.revision
    );
    log_change(
        ctx,
        by,
        EventKind::ConversationSet,
        &after,
        &new.author,
        evidence,
    )?;
    Ok(after)
}

/// Whether a conversation already is in this native id and home.
pub(super) fn is_there(record: &Conversation, new: &NewNative<'_>) -> bool {
    record
        .open()
        .is_some_and(|current| current.native_id == *new.native_id && current.home == *new.home)
}

/// Writes a native id and its history.
pub(super) fn put(
    ctx: &mut Ctx<'_>,
    new: &NewNative<'_>,
    before: Conversation,
) -> Result<Conversation, Stop> {
    let moves = before
        .open()
        .is_some_and(|current| current.native_id == *new.native_id);
    if !moves {
        if let Some(current) = before.open() {
            let left = ctx.tx.newest_left(new.agent, &current.native_id)?;
            let why = WhyEnded::by_another(left.map(|(_, left)| left));
            end_past(ctx, &before, why, new.author.clone())?;
        }
        let past = PastId {
            native_id: new.native_id.clone(),
            from: ctx.now.wall,
            by: new.author.clone(),
            ended: None,
        };
        ctx.tx.add_past_id(new.agent, new.role, new.root, &past)?;
    }
    let after = Conversation {
        current: Some(Current {
            native_id: new.native_id.clone(),
            home: new.home.clone(),
            by: new.author.clone(),
            at: ctx.now.wall,
        }),
        closed_at: None,
        ..before
    };
    keep(ctx, after)
}

/// Ends a native id, if it is still the current one of a run's conversation. A step of other use
/// cases.
pub fn end_native(
    ctx: &mut Ctx<'_>,
    run: &Run,
    native_id: &NativeId,
    why: WhyEnded,
    author: Author,
) -> Result<(), Stop> {
    let Run {
        agent, role, root, ..
    } = run;
    ctx.lock([Lock::Conversation(root.clone())])?;
    let before = record(ctx, agent, role, root)?;
    if before
        .open()
        .is_some_and(|current| current.native_id == *native_id)
    {
        end(ctx, None, before, why, author)?;
    }
    Ok(())
}

/// Removes the native id from a record.
#[allow(clippy::needless_pass_by_value)] // the record before is of no use afterwards
pub(super) fn end(
    ctx: &mut Ctx<'_>,
    by: Option<&Caller>,
    before: Conversation,
    why: WhyEnded,
    author: Author,
) -> Result<Conversation, Stop> {
    // A closed conversation already has its end recorded.
    if before.open().is_some() {
        end_past(ctx, &before, why, author.clone())?;
    }
    let native_id = before
        .current
        .as_ref()
        .map(|current| current.native_id.clone());
    let after = Conversation {
        current: None,
        closed_at: None,
        ..before
    };
    let after = keep(ctx, after)?;
    if let Some(native_id) = native_id {
        let worker = worker_name(after.agent.as_str(), after.role.label());
        let evidence = format!("{worker}: {native_id}: {}", why.as_str());
        log_change(
            ctx,
            by,
            EventKind::ConversationDropped,
            &after,
            &author,
            evidence,
        )?;
    }
    Ok(after)
}

/// Logs a change by a caller, or by the run that made it.
fn log_change(
    ctx: &mut Ctx<'_>,
    by: Option<&Caller>,
    kind: EventKind,
    record: &Conversation,
    author: &Author,
    evidence: String,
) -> Result<(), Stop> {
    if by.is_some() {
        return request::log(ctx, by, kind, &record.item, evidence);
    }
    let evidence = match &author.run {
        Some(run) => format!("{evidence}, by run {run}"),
        None => evidence,
    };
    ctx.log(&tenure_core::event::NewEvent {
        key: Some(record.item.clone()),
        ..ctx.event(kind, author.session, "conversation", evidence)
    })
}
