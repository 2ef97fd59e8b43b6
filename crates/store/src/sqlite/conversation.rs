//! Conversations of agents and items in rows, their history, and links between items.
//!
//! A record changes by comparing its revision. One native id is in one record: an index is the last word on it.
//! *Crash*: a record and its history change in one transaction.

use rusqlite::types::Value;
use rusqlite::{params, params_from_iter};
use tenure_core::conversation::{
    Author, Conversation, Current, Home, IdEnd, ItemLink, ItemState, PastId, WhyEnded,
};
use tenure_core::id::{AgentName, HostId, NativeId, RunId, SessionId};
use tenure_core::key::Key;
use tenure_core::store::{ConversationFilter, ConversationRows, StoreError};

use super::handle::{SqliteTx, limit_or_all};
use super::row::Cells;

macro_rules! select {
    ($($rest:literal)?) => {
        concat!(
            "SELECT item, agent, native_id, host_id, user_name, agent_home, dir, set_by, set_by_run, set_at, \
             closed_at, revision, repo_host FROM conversations "
            $(, $rest)?
        )
    };
}

pub(super) const ONE: &str = select!("WHERE item = ?1 AND agent = ?2");
pub(super) const WITH_ID: &str =
    select!("INDEXED BY conversations_native WHERE agent = ?1 AND native_id = ?2");
pub(super) const OF_ITEM: &str = select!("WHERE item = ?1 ORDER BY agent");
pub(super) const UPDATE: &str = "UPDATE conversations SET native_id = ?3, host_id = ?4, user_name = ?5, \
     agent_home = ?6, dir = ?7, set_by = ?8, set_by_run = ?9, set_at = ?10, closed_at = ?11, \
     revision = revision + 1, repo_host = ?13 WHERE item = ?1 AND agent = ?2 AND revision = ?12";
const INSERT: &str = "INSERT INTO conversations (item, agent, native_id, host_id, user_name, agent_home, dir, \
     set_by, set_by_run, set_at, closed_at, revision, repo_host) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
pub(super) const PAST: &str = "SELECT native_id, from_at, set_by, set_by_run, ended_at, ended_why, ended_by, \
     ended_by_run FROM past_ids WHERE item = ?1 AND agent = ?2 ORDER BY id";
pub(super) const END_PAST: &str = "UPDATE past_ids INDEXED BY past_ids_open SET ended_at = ?3, ended_why = ?4, \
     ended_by = ?5, ended_by_run = ?6 WHERE item = ?1 AND agent = ?2 AND ended_at IS NULL";
pub(super) const ITEM: &str =
    "SELECT item, root, linked_at, linked_by, closed_at FROM items WHERE item = ?1";
pub(super) const LINKED: &str = "SELECT item, root, linked_at, linked_by, closed_at FROM items \
     INDEXED BY items_root WHERE root = ?1 ORDER BY item";

/// The statement for a filter, with its parameters.
pub(super) fn list_statement(filter: &ConversationFilter) -> (String, Vec<Value>) {
    let mut sql = select!().to_owned();
    let mut values: Vec<Value> = Vec::new();
    sql.push_str(match filter {
        filter if filter.item.is_some() || filter.closed_too => "",
        filter if filter.agent.is_some() => "INDEXED BY conversations_open_agent",
        _ => "INDEXED BY conversations_open",
    });
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
    (sql, values)
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

fn write(tx: &SqliteTx<'_>, sql: &str, record: &Conversation) -> Result<usize, StoreError> {
    let current = record.current.as_ref();
    let home = current.map(|current| &current.home);
    let by = current.map(|current| &current.by);
    tx.run(
        sql,
        params![
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
        ],
    )
}

fn session_text(by: &Author) -> Option<String> {
    by.session.map(|session| session.to_string())
}

fn run_text(by: &Author) -> Option<&str> {
    by.run.as_ref().map(RunId::as_str)
}

impl ConversationRows for SqliteTx<'_> {
    fn conversation(
        &mut self,
        agent: &AgentName,
        item: &Key,
    ) -> Result<Option<Conversation>, StoreError> {
        self.first("conversations", ONE, [item.as_str(), agent.as_str()], read)
    }

    fn conversation_with(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<Conversation>, StoreError> {
        let key = [agent.as_str(), native_id.as_str()];
        self.first("conversations", WITH_ID, key, read)
    }

    fn conversations_of(&mut self, item: &Key) -> Result<Vec<Conversation>, StoreError> {
        self.all("conversations", OF_ITEM, [item.as_str()], read)
    }

    fn list_conversations(
        &mut self,
        filter: &ConversationFilter,
    ) -> Result<Vec<Conversation>, StoreError> {
        let (sql, values) = list_statement(filter);
        let values = params_from_iter(values);
        if filter.readable_only {
            self.all_readable("conversations", &sql, values, read)
        } else {
            self.all("conversations", &sql, values, read)
        }
    }

    fn count_conversations(&mut self, filter: &ConversationFilter) -> Result<usize, StoreError> {
        let all = ConversationFilter {
            limit: 0,
            after: None,
            ..filter.clone()
        };
        let (sql, values) = list_statement(&all);
        self.rows("conversations", &sql, params_from_iter(values))
    }

    fn insert_conversation(&mut self, conversation: &Conversation) -> Result<(), StoreError> {
        write(self, INSERT, conversation).map(|_| ())
    }

    fn update_conversation(&mut self, conversation: &Conversation) -> Result<(), StoreError> {
        match write(self, UPDATE, conversation)? {
            0 => Err(StoreError::Conflict),
            _ => Ok(()),
        }
    }

    fn past_ids(&mut self, agent: &AgentName, item: &Key) -> Result<Vec<PastId>, StoreError> {
        let key = [item.as_str(), agent.as_str()];
        self.all("past_ids", PAST, key, read_past)
    }

    fn add_past_id(
        &mut self,
        agent: &AgentName,
        item: &Key,
        id: &PastId,
    ) -> Result<(), StoreError> {
        let sql = "INSERT INTO past_ids (item, agent, native_id, from_at, set_by, set_by_run, ended_at, \
             ended_why, ended_by, ended_by_run) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let end = id.ended.as_ref();
        self.run(
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
        )?;
        Ok(())
    }

    fn end_past_id(
        &mut self,
        agent: &AgentName,
        item: &Key,
        end: &IdEnd,
    ) -> Result<(), StoreError> {
        let ended = self.run(
            END_PAST,
            params![
                item.as_str(),
                agent.as_str(),
                end.at.0,
                end.why.as_str(),
                session_text(&end.by),
                run_text(&end.by),
            ],
        )?;
        match ended {
            0 => Err(StoreError::Conflict),
            _ => Ok(()),
        }
    }

    fn item_state(&mut self, item: &Key) -> Result<Option<ItemState>, StoreError> {
        self.first("items", ITEM, [item.as_str()], read_item)
    }

    fn set_item_state(&mut self, state: &ItemState) -> Result<(), StoreError> {
        let sql = "INSERT INTO items (item, root, linked_at, linked_by, closed_at) \
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (item) DO UPDATE SET root = excluded.root, \
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
        self.all("items", LINKED, [root.as_str()], read_item)
    }
}
