//! Conversations of agents and items in rows, their history, and links between items.
//!
//! A change to a record compares its revision. A unique index guarantees that a native id is in one
//! record only. *Crash*: a record and its history change in one transaction.

use tenure_core::conversation::{
    Author, Conversation, Current, Home, IdEnd, ItemLink, ItemState, PastId, WhyEnded,
};
use tenure_core::id::{AgentName, HostId, NativeId, RunId, SessionId};
use tenure_core::key::Key;
use tenure_core::store::{ConversationFilter, ConversationRows, StoreError};

use super::handle::{PostgresTx, limit_or_all};
use super::row::Cells;
use super::value::{Value, numbered, params};

macro_rules! select {
    ($($rest:literal)?) => {
        concat!(
            "SELECT item, agent, native_id, host_id, user_name, agent_home, dir, set_by, set_by_run, set_at, \
             closed_at, revision, repo_host FROM conversations "
            $(, $rest)?
        )
    };
}

const ONE: &str = select!("WHERE item = $1 AND agent = $2");
const WITH_ID: &str = select!("WHERE agent = $1 AND native_id = $2");
const OF_ITEM: &str = select!("WHERE item = $1 ORDER BY agent");
const UPDATE: &str = "UPDATE conversations SET native_id = $3, host_id = $4, user_name = $5, \
     agent_home = $6, dir = $7, set_by = $8, set_by_run = $9, set_at = $10, closed_at = $11, \
     revision = revision + 1, repo_host = $13 WHERE item = $1 AND agent = $2 AND revision = $12";
const INSERT: &str = "INSERT INTO conversations (item, agent, native_id, host_id, user_name, agent_home, dir, \
     set_by, set_by_run, set_at, closed_at, revision, repo_host) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
const PAST: &str = "SELECT native_id, from_at, set_by, set_by_run, ended_at, ended_why, ended_by, \
     ended_by_run FROM past_ids WHERE item = $1 AND agent = $2 ORDER BY id";
const END_PAST: &str = "UPDATE past_ids SET ended_at = $3, ended_why = $4, \
     ended_by = $5, ended_by_run = $6 WHERE item = $1 AND agent = $2 AND ended_at IS NULL";
const ITEM: &str = "SELECT item, root, linked_at, linked_by, closed_at FROM items WHERE item = $1";
const LINKED: &str = "SELECT item, root, linked_at, linked_by, closed_at FROM items \
     WHERE root = $1 ORDER BY item";

/// The statement for a filter, with its parameters.
fn list_statement(filter: &ConversationFilter) -> (String, Vec<Value>) {
    let mut sql = select!().to_owned();
    let mut values: Vec<Value> = Vec::new();
    sql.push_str(" WHERE native_id IS NOT NULL");
    if !filter.closed_too {
        sql.push_str(" AND closed_at IS NULL");
    }
    if let Some(item) = &filter.item {
        sql.push_str(" AND item = ?");
        values.push(item.to_string().into());
    }
    if let Some(agent) = &filter.agent {
        sql.push_str(" AND agent = ?");
        values.push(agent.to_string().into());
    }
    if let Some((item, agent)) = &filter.after {
        sql.push_str(" AND (item, agent) > (?, ?)");
        values.push(item.to_string().into());
        values.push(agent.to_string().into());
    }
    sql.push_str(" ORDER BY item, agent LIMIT ?");
    values.push(limit_or_all(filter.limit).into());
    (numbered(&sql), values)
}

fn read(cells: &mut Cells<'_>) -> Result<Conversation, StoreError> {
    let item = cells.parsed(Key::stored)?;
    let agent = cells.parsed(AgentName::parse)?;
    let native_id = cells.maybe_parsed(NativeId::parse)?;
    let host = cells.maybe_text()?;
    let user = cells.maybe_text()?;
    let agent_home = cells.maybe_text()?;
    let dir = cells.maybe_text()?;
    let by = read_author(cells)?;
    let at = cells.maybe_time()?;
    let closed_at = cells.maybe_time()?;
    let revision = cells.number()?;
    let repo_host = cells.maybe_text()?;
    let current = match (native_id, host, user, dir, at) {
        (None, ..) => None,
        (Some(native_id), Some(host), Some(user), Some(dir), Some(at)) => Some(Current {
            native_id,
            home: Home {
                host: HostId::new(host),
                user,
                agent_home,
                dir,
                repo_host,
            },
            by,
            at,
        }),
        _ => return Err(cells.broken("its native id has no home")),
    };
    Ok(Conversation {
        agent,
        item,
        current,
        closed_at,
        revision,
    })
}

fn read_author(cells: &mut Cells<'_>) -> Result<Author, StoreError> {
    Ok(Author {
        session: cells.maybe_parsed(SessionId::parse)?,
        run: cells.maybe_parsed(RunId::parse)?,
    })
}

fn read_past(cells: &mut Cells<'_>) -> Result<PastId, StoreError> {
    let native_id = cells.parsed(NativeId::parse)?;
    let from = cells.time()?;
    let by = read_author(cells)?;
    let at = cells.maybe_time()?;
    let why = cells.maybe_parsed(WhyEnded::parse)?;
    let ended_by = read_author(cells)?;
    let ended = match (at, why) {
        (None, None) => None,
        (Some(at), Some(why)) => Some(IdEnd {
            at,
            why,
            by: ended_by,
        }),
        _ => return Err(cells.broken("its end is incomplete")),
    };
    Ok(PastId {
        native_id,
        from,
        by,
        ended,
    })
}

fn read_item(cells: &mut Cells<'_>) -> Result<ItemState, StoreError> {
    let item = cells.parsed(Key::stored)?;
    let root = cells.maybe_parsed(Key::stored)?;
    let at = cells.maybe_time()?;
    let by = cells.maybe_parsed(SessionId::parse)?;
    let link = match (root, at) {
        (None, _) => None,
        (Some(root), Some(at)) => Some(ItemLink { root, at, by }),
        (Some(_), None) => return Err(cells.broken("its link has no time")),
    };
    Ok(ItemState {
        item,
        link,
        closed_at: cells.maybe_time()?,
    })
}

/// A record's values, in the order of [`INSERT`].
fn cells_of(tx: &PostgresTx<'_>, record: &Conversation) -> Result<Vec<Value>, StoreError> {
    let current = record.current.as_ref();
    let home = current.map(|current| &current.home);
    let by = current.map(|current| &current.by);
    Ok(params![
        record.item.as_str(),
        record.agent.as_str(),
        current.map(|current| current.native_id.as_str()),
        home.map(|home| home.host.as_str()),
        home.map(|home| home.user.as_str()),
        home.and_then(|home| home.agent_home.as_deref()),
        home.map(|home| home.dir.as_str()),
        by.and_then(session_text),
        by.and_then(run_text),
        current.map(|current| current.at.0),
        record.closed_at.map(|at| at.0),
        tx.count("revision", record.revision)?,
        home.and_then(|home| home.repo_host.as_deref()),
    ])
}

fn session_text(by: &Author) -> Option<String> {
    by.session.map(|session| session.to_string())
}

fn run_text(by: &Author) -> Option<&str> {
    by.run.as_ref().map(RunId::as_str)
}

impl ConversationRows for PostgresTx<'_> {
    fn conversation(
        &mut self,
        agent: &AgentName,
        item: &Key,
    ) -> Result<Option<Conversation>, StoreError> {
        self.first(
            "conversations",
            ONE,
            params![item.as_str(), agent.as_str()],
            read,
        )
    }

    fn conversation_with(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<Conversation>, StoreError> {
        let key = params![agent.as_str(), native_id.as_str()];
        self.first("conversations", WITH_ID, key, read)
    }

    fn conversations_of(&mut self, item: &Key) -> Result<Vec<Conversation>, StoreError> {
        self.all("conversations", OF_ITEM, params![item.as_str()], read)
    }

    fn list_conversations(
        &mut self,
        filter: &ConversationFilter,
    ) -> Result<Vec<Conversation>, StoreError> {
        let statement = list_statement(filter);
        self.listed(filter.readable_only, "conversations", statement, read)
    }

    fn count_conversations(&mut self, filter: &ConversationFilter) -> Result<usize, StoreError> {
        let all = ConversationFilter {
            limit: 0,
            after: None,
            ..filter.clone()
        };
        self.rows("conversations", list_statement(&all))
    }

    fn insert_conversation(&mut self, conversation: &Conversation) -> Result<(), StoreError> {
        let cells = cells_of(self, conversation)?;
        self.insert(INSERT, cells)
    }

    fn update_conversation(&mut self, conversation: &Conversation) -> Result<(), StoreError> {
        let cells = cells_of(self, conversation)?;
        self.compare_and_set(UPDATE, cells)
    }

    fn past_ids(&mut self, agent: &AgentName, item: &Key) -> Result<Vec<PastId>, StoreError> {
        let key = params![item.as_str(), agent.as_str()];
        self.all("past_ids", PAST, key, read_past)
    }

    fn add_past_id(
        &mut self,
        agent: &AgentName,
        item: &Key,
        id: &PastId,
    ) -> Result<(), StoreError> {
        let sql = "INSERT INTO past_ids (item, agent, native_id, from_at, set_by, set_by_run, ended_at, \
             ended_why, ended_by, ended_by_run) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        let end = id.ended.as_ref();
        self.insert(
            sql,
            params![
                item.as_str(),
                agent.as_str(),
                id.native_id.as_str(),
                id.from.0,
                session_text(&id.by),
                run_text(&id.by),
                end.map(|end| end.at.0),
                end.map(|end| end.why.as_str()),
                end.and_then(|end| session_text(&end.by)),
                end.and_then(|end| run_text(&end.by)),
            ],
        )
    }

    fn end_past_id(
        &mut self,
        agent: &AgentName,
        item: &Key,
        end: &IdEnd,
    ) -> Result<(), StoreError> {
        self.compare_and_set(
            END_PAST,
            params![
                item.as_str(),
                agent.as_str(),
                end.at.0,
                end.why.as_str(),
                session_text(&end.by),
                run_text(&end.by),
            ],
        )
    }

    fn item_state(&mut self, item: &Key) -> Result<Option<ItemState>, StoreError> {
        self.first("items", ITEM, params![item.as_str()], read_item)
    }

    fn set_item_state(&mut self, state: &ItemState) -> Result<(), StoreError> {
        let sql = "INSERT INTO items (item, root, linked_at, linked_by, closed_at) \
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (item) DO UPDATE SET root = excluded.root, \
             linked_at = excluded.linked_at, linked_by = excluded.linked_by, closed_at = excluded.closed_at";
        let link = state.link.as_ref();
        self.run(
            sql,
            params![
                state.item.as_str(),
                link.map(|link| link.root.as_str()),
                link.map(|link| link.at.0),
                link.and_then(|link| link.by).map(|by| by.to_string()),
                state.closed_at.map(|at| at.0),
            ],
        )?;
        Ok(())
    }

    fn items_linked_to(&mut self, root: &Key) -> Result<Vec<ItemState>, StoreError> {
        self.all("items", LINKED, params![root.as_str()], read_item)
    }
}
