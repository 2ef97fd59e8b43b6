//! Links between items: one item continues the conversations of another.

use tenure_core::conversation::link::{LinkFault, root_of};
use tenure_core::conversation::{ItemLink, ItemState};
use tenure_core::event::EventKind;
use tenure_core::hint::Hint;
use tenure_core::key::Key;
use tenure_core::queue::Job;
use tenure_core::store::{Lock, TxMode};

use super::look::{LookDepth, shown};
use super::request::{self, log, state_of};
use super::run::refuse_live;
use super::view::{ConversationView, LinkView};
use crate::caller::{ActFor, Caller};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Reply, Service};

/// A request that one item continue the conversations of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRequest {
    pub item: Key,
    pub target: Key,
}

/// The outcome of linking or unlinking.
#[derive(Debug, Clone)]
pub struct Linked {
    pub link: LinkView,
    /// Whether nothing had to be changed.
    pub unchanged: bool,
}

impl Service<'_> {
    /// Links an item to another one, or to that one's root, so that it continues the root's
    /// conversations.
    pub fn link_item(&mut self, act_for: &ActFor, request: &LinkRequest) -> Reply<Linked> {
        self.transact(TxMode::Write, |ctx| {
            let by = request::writer(ctx, act_for)?;
            link(ctx, by.as_ref(), request)
        })
    }

    /// Unlinks an item, which then has its own conversations again.
    pub fn unlink_item(&mut self, act_for: &ActFor, item: &Key) -> Reply<Linked> {
        self.transact(TxMode::Write, |ctx| {
            let by = request::writer(ctx, act_for)?;
            unlink(ctx, by.as_ref(), item)
        })
    }
}

fn link(ctx: &mut Ctx<'_>, by: Option<&Caller>, request: &LinkRequest) -> Result<Linked, Stop> {
    let LinkRequest { item, target } = request;
    let target_state = state_of(ctx, target)?;
    let before = state_of(ctx, item)?;
    let followers = ctx.tx.items_linked_to(item)?;
    let all = [item, target, target_state.root(), before.root()];
    let all = all.into_iter().chain(followers.iter().map(|one| &one.item));
    ctx.lock(all.cloned().map(Lock::Conversation).collect::<Vec<_>>())?;
    let root = root_of(item, &target_state).map_err(|fault| refused(fault, request))?;
    for one in [item, before.root(), &root] {
        refuse_live(ctx, one)?;
    }
    let unchanged = *before.root() == root;
    if !unchanged {
        let at = ctx.now.wall;
        let session = by.map(|caller| caller.session.id);
        let to_root = |state: &ItemState| ItemState {
            link: Some(ItemLink {
                root: root.clone(),
                at,
                by: session,
            }),
            ..state.clone()
        };
        for state in followers.iter().chain([&before]) {
            ctx.tx.set_item_state(&to_root(state))?;
            move_jobs(ctx, &state.item, &root)?;
            let evidence = format!("{} continues the conversations of {root}", state.item);
            log(
                ctx,
                by,
                EventKind::ConversationLinked,
                &state.item,
                evidence,
            )?;
        }
    }
    Ok(Linked {
        link: LinkView {
            item: item.to_string(),
            root: Some(root.to_string()),
            before: before.link.map(|link| link.root.to_string()),
            moved: followers.iter().map(|one| one.item.to_string()).collect(),
            own: own(ctx, item)?,
        },
        unchanged,
    })
}

fn refused(fault: LinkFault, request: &LinkRequest) -> Error {
    let LinkRequest { item, target } = request;
    match fault {
        LinkFault::Itself => Error::Invalid {
            what: format!("{item} cannot be linked to itself"),
            hint: Hint::run("help", ["conversation", "link"], "to see how it is used"),
        },
        LinkFault::Circle => Error::Invalid {
            what: format!("{target} continues {item}, so {item} cannot continue {target}"),
            hint: Hint::run("conversation", ["unlink", target.as_str()], "first"),
        },
    }
}

fn unlink(ctx: &mut Ctx<'_>, by: Option<&Caller>, item: &Key) -> Result<Linked, Stop> {
    let state = state_of(ctx, item)?;
    ctx.lock([
        Lock::Conversation(item.clone()),
        Lock::Conversation(state.root().clone()),
    ])?;
    let Some(link) = &state.link else {
        return Err(Error::NotFound {
            what: format!("{item} is not linked"),
            hint: Hint::run("conversation", ["list"], "to see links"),
        }
        .into());
    };
    refuse_live(ctx, &link.root)?;
    let root = link.root.to_string();
    ctx.tx.set_item_state(&ItemState {
        link: None,
        ..state.clone()
    })?;
    move_jobs(ctx, item, item)?;
    let evidence = format!("{item} no longer continues the conversations of {root}");
    log(ctx, by, EventKind::ConversationUnlinked, item, evidence)?;
    Ok(Linked {
        link: LinkView {
            item: item.to_string(),
            root: None,
            before: Some(root),
            moved: Vec::new(),
            own: own(ctx, item)?,
        },
        unchanged: false,
    })
}

/// Moves the waiting jobs of an item to the conversation that it now has.
fn move_jobs(ctx: &mut Ctx<'_>, item: &Key, root: &Key) -> Result<(), Stop> {
    let jobs = ctx.tx.open_jobs_for(item)?;
    for job in jobs.iter().filter(|job| job.takes_events()) {
        ctx.tx.update_job(&Job {
            root: root.clone(),
            ..job.clone()
        })?;
    }
    Ok(())
}

/// The conversations that belong to the item itself.
fn own(ctx: &mut Ctx<'_>, item: &Key) -> Result<Vec<ConversationView>, Stop> {
    let mut views = Vec::new();
    for record in ctx.tx.conversations_of(item)? {
        if record.current.is_some() {
            views.push(shown(ctx, &record, item, LookDepth::Record)?);
        }
    }
    Ok(views)
}
