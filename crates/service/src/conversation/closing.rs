//! Closing conversations when the last of their items is closed, and reopening them.
//!
//! An item is closed at its forge. A conversation closes when all of its items are closed; one with
//! a run in it stays open until the run ends ([`settle`] is a step of that).

use std::time::Duration;

use tenure_core::conversation::closing::{can_come_back, is_due, is_over};
use tenure_core::conversation::{Author, Conversation, ItemState, PastId, WhyEnded};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::RunId;
use tenure_core::key::Key;
use tenure_core::notice::NoticeKind;
use tenure_core::run::Run;
use tenure_core::store::{Lock, TxMode};

use super::look::{LookDepth, shown};
use super::record::{end_past, keep};
use super::request::{items, state_of};
use super::reset;
use super::run::live_runs;
use super::view::ConversationView;
use crate::context::{Ctx, Stop};
use crate::transact::{Reply, Service};

/// The effect of closing an item.
#[derive(Debug, Clone)]
pub struct Closing {
    /// The conversations that closed.
    pub closed: Vec<ConversationView>,
    /// Runs in conversations that close when the run ends.
    pub running: Vec<RunId>,
    /// Items that keep the conversations open.
    pub open_items: Vec<String>,
}

/// The effect of reopening an item.
#[derive(Debug, Clone)]
pub struct Reopened {
    /// The conversations that were reopened.
    pub back: Vec<ConversationView>,
    /// Conversations that closed too long ago to be reopened.
    pub too_late: Vec<ConversationView>,
}

impl Service<'_> {
    /// Records that an item was closed at its forge.
    pub fn close_item(&mut self, item: &Key) -> Reply<Closing> {
        self.transact(TxMode::Write, |ctx| close_item(ctx, item))
    }

    /// Sends a notice to the session of a run; does nothing if the run has no session.
    pub fn tell_run(&mut self, run: &RunId, message: &str) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| {
            let found = ctx.tx.run_by_id(run)?;
            let Some(session) = found.and_then(|run| run.session).map(|token| token.id) else {
                return Ok(());
            };
            let message = message.to_owned();
            ctx.notify(session, NoticeKind::Told, message.clone(), None, None)?;
            ctx.log(&ctx.event(EventKind::Told, Some(session), "dispatch", message))
        })
    }

    /// Records that an item was reopened. Conversations that closed at most `grace` ago are
    /// reopened.
    pub fn reopen_item(&mut self, item: &Key, grace: Duration) -> Reply<Reopened> {
        self.transact(TxMode::Write, |ctx| reopen_item(ctx, item, grace))
    }

    /// Which of these items were closed longer ago than the grace period, with all items of their conversation, and have
    /// neither a live run nor an open job.
    pub fn items_over(&mut self, wanted: &[Key]) -> Reply<Vec<Key>> {
        self.transact(TxMode::Read, |ctx| {
            let mut over = Vec::new();
            for item in wanted {
                if conversation_is_over(ctx, item)? {
                    over.push(item.clone());
                }
            }
            Ok(over)
        })
    }
}

fn conversation_is_over(ctx: &mut Ctx<'_>, item: &Key) -> Result<bool, Stop> {
    let root = state_of(ctx, item)?.root().clone();
    for state in items(ctx, &root)? {
        let is_over = is_over(&state, ctx.now.wall, ctx.policy.grace);
        if !is_over || !ctx.tx.open_jobs_for(&state.item)?.is_empty() {
            return Ok(false);
        }
    }
    Ok(live_runs(ctx, &root)?.is_empty())
}

fn close_item(ctx: &mut Ctx<'_>, item: &Key) -> Result<Closing, Stop> {
    let state = state_of(ctx, item)?;
    let root = state.root().clone();
    ctx.lock([
        Lock::Conversation(item.clone()),
        Lock::Conversation(root.clone()),
    ])?;
    if state.closed_at.is_none() {
        ctx.tx.set_item_state(&ItemState {
            closed_at: Some(ctx.now.wall),
            ..state
        })?;
    }
    let closed = close_all(ctx, &root)?;
    let running = live_runs(ctx, &root)?;
    let items = items(ctx, &root)?;
    let open = items.iter().filter(|one| one.closed_at.is_none());
    Ok(Closing {
        closed,
        running: running.into_iter().map(|run| run.id).collect(),
        open_items: open.map(|one| one.item.to_string()).collect(),
    })
}

/// Drops the conversation of a run that ended, if it was reset during the run; closes it, if its last
/// item was closed during the run. A step of other use cases. A run that was started for closed items keeps its conversation open.
pub fn settle(ctx: &mut Ctx<'_>, run: &Run) -> Result<(), Stop> {
    reset::settle(ctx, run)?;
    let items = items(ctx, &run.root)?;
    let closed = items.iter().map(|item| item.closed_at);
    let last = closed
        .collect::<Option<Vec<_>>>()
        .and_then(|all| all.into_iter().max());
    if last.is_none_or(|at| at < run.created_at) {
        return Ok(());
    }
    ctx.lock([Lock::Conversation(run.root.clone())])?;
    match ctx.tx.conversation(&run.agent, &run.role, &run.root)? {
        Some(record) if record.open().is_some() => close(ctx, record).map(drop),
        _ => Ok(()),
    }
}

fn close_all(ctx: &mut Ctx<'_>, root: &Key) -> Result<Vec<ConversationView>, Stop> {
    if !is_due(&items(ctx, root)?) {
        return Ok(Vec::new());
    }
    let running = live_runs(ctx, root)?;
    let mut closed = Vec::new();
    for record in ctx.tx.conversations_of(root)? {
        let mut running = running.iter();
        let in_use = running.any(|run| run.agent == record.agent && run.role == record.role);
        if in_use || record.open().is_none() {
            continue;
        }
        let after = close(ctx, record)?;
        closed.push(shown(ctx, &after, root, LookDepth::Record)?);
    }
    Ok(closed)
}

fn close(ctx: &mut Ctx<'_>, record: Conversation) -> Result<Conversation, Stop> {
    lock_native(ctx, &record)?;
    end_past(ctx, &record, WhyEnded::Closed, Author::default())?;
    let after = Conversation {
        closed_at: Some(ctx.now.wall),
        ..record
    };
    let after = keep(ctx, after)?;
    log(
        ctx,
        EventKind::ConversationClosed,
        &after,
        "the last of its items was closed",
    )?;
    Ok(after)
}

fn reopen_item(ctx: &mut Ctx<'_>, item: &Key, grace: Duration) -> Result<Reopened, Stop> {
    let state = state_of(ctx, item)?;
    let root = state.root().clone();
    ctx.lock([
        Lock::Conversation(item.clone()),
        Lock::Conversation(root.clone()),
    ])?;
    if state.closed_at.is_some() {
        ctx.tx.set_item_state(&ItemState {
            closed_at: None,
            ..state
        })?;
    }
    let mut reopened = Reopened {
        back: Vec::new(),
        too_late: Vec::new(),
    };
    for record in ctx.tx.conversations_of(&root)? {
        let Some(current) = record
            .current
            .clone()
            .filter(|_| record.closed_at.is_some())
        else {
            continue;
        };
        if !can_come_back(&record, ctx.now.wall, grace) {
            reopened
                .too_late
                .push(shown(ctx, &record, item, LookDepth::Record)?);
            continue;
        }
        lock_native(ctx, &record)?;
        let past = PastId {
            native_id: current.native_id,
            from: ctx.now.wall,
            by: Author::default(),
            ended: None,
        };
        ctx.tx
            .add_past_id(&record.agent, &record.role, &root, &past)?;
        let after = Conversation {
            closed_at: None,
            ..record
        };
        let after = keep(ctx, after)?;
        log(
            ctx,
            EventKind::ConversationReopened,
            &after,
            &format!("{item} was reopened"),
        )?;
        reopened
            .back
            .push(shown(ctx, &after, item, LookDepth::Record)?);
    }
    Ok(reopened)
}

fn lock_native(ctx: &mut Ctx<'_>, record: &Conversation) -> Result<(), Stop> {
    let native = record.current.as_ref();
    let native = native.map(|current| current.native_id.clone());
    let locks = native.map(|native_id| Lock::Native(record.agent.clone(), native_id));
    ctx.lock(locks)
}

fn log(ctx: &mut Ctx<'_>, kind: EventKind, record: &Conversation, why: &str) -> Result<(), Stop> {
    let native_id = record.current.as_ref().map(|current| &current.native_id);
    let native_id = native_id.map_or_else(String::new, |id| format!(" {id}"));
    let evidence = format!("{}:{native_id}: {why}", record.agent);
    ctx.log(&NewEvent {
        key: Some(record.item.clone()),
        ..ctx.event(kind, None, "closing", evidence)
    })
}
