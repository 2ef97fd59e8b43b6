//! Reading conversations: one, many, a history, and the conversation of a session.

use tenure_core::conversation::fitness::{Existence, fitness};
use tenure_core::conversation::{Author, Conversation, Current, Elsewhere, Home, IdEnd, PastId};
use tenure_core::id::{AgentName, SessionId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::session::Session;
use tenure_core::store::{ConversationFilter, TxMode};
use tenure_core::witness::StoredConversation;

use super::record::none;
use super::request::{root_of, state_of};
use super::run::is_live;
use super::view::{ConversationView, PastIdView};
use crate::caller;
use crate::context::{Ctx, Stop};
use crate::evidence::Want;
use crate::list::{Listed, unless_damaged};
use crate::session::view::NameView;
use crate::transact::{Reply, Service};
use crate::unseen::Unseen;

/// How much to check for a view.
#[derive(Debug, Clone, Copy)]
pub(super) enum LookDepth<'a> {
    /// The store only.
    Record,
    /// Also the agent's files, and whether it could be resumed from here.
    Files(Option<&'a Home>),
}

/// Which conversations to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListConversations {
    pub item: Option<Key>,
    pub agent: Option<AgentName>,
    pub role: Option<WorkerRole>,
    /// Include closed ones.
    pub all: bool,
    /// At most this many; zero means all.
    pub limit: usize,
}

/// Every native id that a conversation ever had.
#[derive(Debug, Clone)]
pub struct History {
    pub conversation: ConversationView,
    /// Oldest first.
    pub ids: Vec<PastIdView>,
}

impl Service<'_> {
    /// The conversation that a run of an agent on an item would continue, as seen from `here`.
    pub fn conversation(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        item: &Key,
        here: &Home,
    ) -> Reply<ConversationView> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let root = root_of(ctx, item)?;
            match ctx.tx.conversation(agent, role, &root)? {
                Some(record) if record.open().is_some() => {
                    shown(ctx, &record, item, LookDepth::Files(Some(here)))
                }
                _ => Err(none(item, Some(agent), Some(role)).into()),
            }
        })
    }

    /// Conversations, ordered by item. `here` is where a run of an agent on an item would keep its
    /// own; the agents' files are checked as for one conversation.
    pub fn conversations(
        &mut self,
        request: &ListConversations,
        here: &dyn Fn(&AgentName, &Key) -> Home,
    ) -> Reply<Listed<ConversationView>> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            list(ctx, request, here)
        })
    }

    /// The hosts that a repository of this name has, according to the conversations of its items.
    pub fn repository_hosts(&mut self, name: &str) -> Reply<Vec<String>> {
        self.transact(TxMode::Read, |ctx| {
            let mut hosts = Vec::new();
            // Each scheme with what follows the name, and what comes before every item.
            for (scheme, end, first) in
                [("issue", '#', '0'), ("pr", '#', '0'), ("branch", ':', '!')]
            {
                let start = format!("{scheme}:{name}{end}");
                let after = Key::stored(&format!("{start}{first}"));
                let after = after.map_err(crate::error::Error::from)?;
                hosts_of(ctx, &start, after, &mut hosts)?;
            }
            hosts.sort();
            hosts.dedup();
            Ok(hosts)
        })
    }

    /// Every native id that a conversation ever had.
    pub fn conversation_history(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        item: &Key,
    ) -> Reply<History> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let root = root_of(ctx, item)?;
            let Some(record) = ctx.tx.conversation(agent, role, &root)? else {
                return Err(none(item, Some(agent), Some(role)).into());
            };
            let mut ids = Vec::new();
            for past in ctx.tx.past_ids(agent, role, &root)? {
                ids.push(past_view(ctx, past)?);
            }
            Ok(History {
                conversation: shown(ctx, &record, item, LookDepth::Record)?,
                ids,
            })
        })
    }
}

/// Adds the hosts of all conversations whose item begins so.
fn hosts_of(
    ctx: &mut Ctx<'_>,
    start: &str,
    after: Key,
    hosts: &mut Vec<String>,
) -> Result<(), Stop> {
    let mut filter = ConversationFilter {
        closed_too: true,
        after: Some((after, AgentName::known("0"), WorkerRole::default())),
        readable_only: true,
        limit: 100,
        ..ConversationFilter::default()
    };
    loop {
        let records = ctx.tx.list_conversations(&filter)?;
        for record in &records {
            if !record.item.as_str().starts_with(start) {
                return Ok(());
            }
            let current = record.current.as_ref();
            hosts.extend(current.and_then(|current| current.home.repo_host.clone()));
        }
        let Some(last) = records.last().filter(|_| records.len() == filter.limit) else {
            return Ok(());
        };
        let Conversation {
            item, agent, role, ..
        } = last.clone();
        filter.after = Some((item, agent, role));
    }
}

fn list(
    ctx: &mut Ctx<'_>,
    request: &ListConversations,
    here: &dyn Fn(&AgentName, &Key) -> Home,
) -> Result<Listed<ConversationView>, Stop> {
    let asked = match &request.item {
        Some(item) => Some(root_of(ctx, item)?),
        None => None,
    };
    let filter = ConversationFilter {
        item: asked,
        agent: request.agent.clone(),
        role: request.role.clone(),
        closed_too: request.all,
        after: None,
        readable_only: true,
        limit: request.limit,
    };
    let records = ctx.tx.list_conversations(&filter)?;
    let damage = ctx.tx.take_damage();
    ctx.effects.damage.extend(damage);
    look_at_runs(ctx, &records)?;
    look_at_all(ctx, &records)?;
    let mut views = Vec::with_capacity(records.len());
    for record in &records {
        let item = request.item.as_ref().unwrap_or(&record.item);
        let here = here(&record.agent, item);
        let look = match record.open() {
            Some(_) => LookDepth::Files(Some(&here)),
            None => LookDepth::Record,
        };
        let view = shown(ctx, record, item, look);
        let name = format!("{} {}", record.agent, record.item);
        views.extend(unless_damaged(ctx, &name, view)?);
    }
    Listed::of(views, request.limit, || ctx.tx.count_conversations(&filter))
}

/// Makes sure that the runs in all these conversations have been observed, in one pass.
fn look_at_runs(ctx: &mut Ctx<'_>, records: &[Conversation]) -> Result<(), Stop> {
    let mut unseen = Unseen::default();
    for record in records {
        if let Some(run) = ctx
            .tx
            .open_run_of(&record.agent, &record.role, &record.item)?
        {
            let live = is_live(ctx, &run);
            unseen.gather(live)?;
        }
    }
    unseen.look()
}

/// The conversation of a session: its run's, or else the one with its native id.
pub fn of_session(ctx: &mut Ctx<'_>, session: &Session) -> Result<Option<ConversationView>, Stop> {
    if let Some(run) = ctx.tx.open_run_of_session(session.id)?
        && let Some(record) = ctx.tx.conversation(&run.agent, &run.role, &run.root)?
    {
        return shown(ctx, &record, &run.item, LookDepth::Record).map(Some);
    }
    let Some(native_id) = &session.native_id else {
        return Ok(None);
    };
    match ctx.tx.conversation_with(&session.agent, native_id)? {
        Some(record) => shown(ctx, &record, &record.item, LookDepth::Record).map(Some),
        None => Ok(None),
    }
}

/// The view of a record, for a question about an item.
pub(super) fn shown(
    ctx: &mut Ctx<'_>,
    record: &Conversation,
    item: &Key,
    look: LookDepth<'_>,
) -> Result<ConversationView, Stop> {
    let root = &record.item;
    let set_aside = state_of(ctx, root)?.link.is_some();
    let linked = ctx.tx.items_linked_to(root)?;
    let current = record.current.as_ref();
    let existence = match (current, look) {
        (Some(current), LookDepth::Files(_)) => Some(existence(ctx, &record.agent, current)?),
        _ => None,
    };
    let elsewhere = current.and_then(|current| match look {
        LookDepth::Files(Some(here)) => current.home.is_here(here).err(),
        _ => (current.home.host != ctx.observer.host).then_some(Elsewhere::Host),
    });
    let fitness = match current {
        Some(current) => {
            let left = ctx.tx.newest_left(&record.agent, &current.native_id)?;
            let left = left.map(|(_, left)| left);
            Some(fitness(left, existence.unwrap_or(Existence::CannotTell)))
        }
        None => None,
    };
    let run = match ctx.tx.open_run_of(&record.agent, &record.role, root)? {
        Some(run) if is_live(ctx, &run)? => Some(run.id.to_string()),
        _ => None,
    };
    let by = current
        .map(|current| current.by.clone())
        .unwrap_or_default();
    Ok(ConversationView {
        agent: record.agent.to_string(),
        role: record.role.label().map(str::to_owned),
        item: item.to_string(),
        root: root.to_string(),
        linked: linked.iter().map(|one| one.item.to_string()).collect(),
        set_aside,
        native_id: current.map(|current| current.native_id.to_string()),
        home: current.map(|current| (&current.home).into()),
        elsewhere: elsewhere.map(Elsewhere::as_str),
        set_at: current.map(|current| current.at),
        set_by: named(ctx, by.session)?,
        set_by_run: by.run.map(|run| run.to_string()),
        fitness: fitness.map(|fitness| fitness.as_str()),
        existence: existence.map(Existence::as_str),
        run,
        closed_at: record.closed_at,
        revision: record.revision,
    })
}

/// Whether the agent still has a conversation. Only conversations on this host can be checked.
pub(super) fn existence(
    ctx: &Ctx<'_>,
    agent: &AgentName,
    current: &Current,
) -> Result<Existence, Stop> {
    if current.home.host != ctx.observer.host || !ctx.evidence.has_witness() {
        return Ok(Existence::CannotTell);
    }
    let kept = kept(agent, current);
    match ctx.evidence.existence(&kept) {
        Some(existence) => Ok(existence),
        None => Err(Stop::Look(Want::Conversations(vec![kept]))),
    }
}

/// Makes sure that the agents' files of all these conversations have been checked, in one pass.
pub(super) fn look_at_all(ctx: &Ctx<'_>, records: &[Conversation]) -> Result<(), Stop> {
    let here = &ctx.observer.host;
    let open = records.iter().filter_map(|record| {
        let current = record.open().filter(|current| current.home.host == *here)?;
        Some(kept(&record.agent, current))
    });
    let unseen: Vec<_> = open
        .filter(|kept| ctx.evidence.has_witness() && ctx.evidence.existence(kept).is_none())
        .collect();
    if unseen.is_empty() {
        Ok(())
    } else {
        Err(Stop::Look(Want::Conversations(unseen)))
    }
}

fn kept(agent: &AgentName, current: &Current) -> StoredConversation {
    StoredConversation {
        agent: agent.clone(),
        native_id: current.native_id.clone(),
        home: current.home.clone(),
    }
}

fn past_view(ctx: &mut Ctx<'_>, past: PastId) -> Result<PastIdView, Stop> {
    let (at, why, by) = match past.ended {
        Some(IdEnd { at, why, by }) => (Some(at), Some(why.as_str()), by),
        None => (None, None, Author::default()),
    };
    Ok(PastIdView {
        native_id: past.native_id.to_string(),
        from: past.from,
        set_by: named(ctx, past.by.session)?,
        set_by_run: past.by.run.map(|run| run.to_string()),
        until: at,
        why,
        ended_by: named(ctx, by.session)?,
        ended_by_run: by.run.map(|run| run.to_string()),
    })
}

fn named(ctx: &mut Ctx<'_>, id: Option<SessionId>) -> Result<Option<NameView>, Stop> {
    let Some(id) = id else {
        return Ok(None);
    };
    let handle = ctx.session(id)?.handle.to_string();
    let id = id.to_string();
    Ok(Some(NameView { id, handle }))
}
