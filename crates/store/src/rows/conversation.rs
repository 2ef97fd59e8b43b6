//! Conversations of agents and items in rows, their history, and links between items.
//!
//! A change to a record compares its revision. A unique index guarantees that a native id is in one record only. *Crash*:
//! a record and its history change in one transaction.

use tenure_core::conversation::{
    Author, Conversation, Current, Home, IdEnd, ItemLink, ItemState, PastId, WhyEnded,
};
use tenure_core::id::{AgentName, HostId, NativeId, RunId, SessionId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::store::{ConversationFilter, ConversationRows, StoreError};

use crate::cells::{Cells, RowCell};
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::{Value, limit_or_all, params};

columns! { $
    ConversationRow of "conversations" by select_conversations {
        key { item, agent, role }
        set {
            native_id, host_id, user_name, agent_home, dir, repo_host, set_by, set_by_run, set_at, closed_at,
        }
        same {}
    }
}

columns! { $
    PastIdRow of "past_ids" by select_past_ids {
        item, agent, role, native_id, from_at, set_by, set_by_run, ended_at, ended_why, ended_by, ended_by_run,
    }
}

columns! { $
    ItemRow of "items" by select_items { item, root, linked_at, linked_by, closed_at, reset_at }
}

const ONE: &str = select_conversations!("WHERE item = ?1 AND agent = ?2 AND role = ?3");
const WITH_ID: &str =
    select_conversations!("INDEXED BY conversations_native WHERE agent = ?1 AND native_id = ?2");
const OF_ITEM: &str = select_conversations!("WHERE item = ?1 ORDER BY agent, role");
const PAST: &str = select_past_ids!("WHERE item = ?1 AND agent = ?2 AND role = ?3 ORDER BY id");
const END_PAST: &str = "UPDATE past_ids INDEXED BY past_ids_open SET ended_at = ?4, ended_why = ?5, \
     ended_by = ?6, ended_by_run = ?7 WHERE item = ?1 AND agent = ?2 AND role = ?3 AND ended_at IS NULL";
const ITEM: &str = select_items!("WHERE item = ?1");
const LINKED: &str = select_items!("INDEXED BY items_root WHERE root = ?1 ORDER BY item");
const SET_ITEM: &str = "INSERT INTO items (item, root, linked_at, linked_by, closed_at, reset_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (item) DO UPDATE SET root = excluded.root, \
     linked_at = excluded.linked_at, linked_by = excluded.linked_by, closed_at = excluded.closed_at, \
     reset_at = excluded.reset_at";

/// The statement for a filter, with its parameters.
fn list_statement(filter: &ConversationFilter) -> (String, Vec<Value<'_>>) {
    let mut sql = select_conversations!(
        "/* may scan: one row per item, in the order of the list */ WHERE native_id IS NOT NULL"
    )
    .to_owned();
    let mut values = Vec::new();
    if !filter.closed_too {
        sql.push_str(" AND closed_at IS NULL");
    }
    if let Some(item) = &filter.item {
        sql.push_str(" AND item = ?");
        values.push(item.as_str().into());
    }
    if let Some(agent) = &filter.agent {
        sql.push_str(" AND agent = ?");
        values.push(agent.as_str().into());
    }
    if let Some(role) = &filter.role {
        sql.push_str(" AND role = ?");
        values.push(role.as_str().into());
    }
    if let Some((item, agent, role)) = &filter.after {
        sql.push_str(" AND (item, agent, role) > (?, ?, ?)");
        values.push(item.as_str().into());
        values.push(agent.as_str().into());
        values.push(role.as_str().into());
    }
    sql.push_str(" ORDER BY item, agent, role LIMIT ?");
    values.push(limit_or_all(filter.limit));
    (sql, values)
}

fn read(cells: &mut Cells<'_>) -> Result<Conversation, StoreError> {
    let row = ConversationRow::read(cells);
    let native_id = row.native_id.maybe_parsed(NativeId::parse)?;
    let host = row.host_id.maybe_text()?;
    let user = row.user_name.maybe_text()?;
    let dir = row.dir.maybe_text()?;
    let at = row.set_at.maybe_time()?;
    let current = match (native_id, host, user, dir, at) {
        (None, ..) => None,
        (Some(native_id), Some(host), Some(user), Some(dir), Some(at)) => Some(Current {
            native_id,
            home: Home {
                host: HostId::new(host),
                user,
                agent_home: row.agent_home.maybe_text()?,
                dir,
                repo_host: row.repo_host.maybe_text()?,
            },
            by: read_author(row.set_by, row.set_by_run)?,
            at,
        }),
        _ => return Err(row.native_id.broken("its native id has no home")),
    };
    Ok(Conversation {
        agent: row.agent.parsed(AgentName::parse)?,
        role: row.role.parsed(WorkerRole::parse)?,
        item: row.item.parsed(Key::stored)?,
        current,
        closed_at: row.closed_at.maybe_time()?,
        revision: row.revision.number()?,
    })
}

fn read_author(session: RowCell<'_>, run: RowCell<'_>) -> Result<Author, StoreError> {
    Ok(Author {
        session: session.maybe_parsed(SessionId::parse)?,
        run: run.maybe_parsed(RunId::parse)?,
    })
}

fn read_past(cells: &mut Cells<'_>) -> Result<PastId, StoreError> {
    let row = PastIdRow::read(cells);
    let at = row.ended_at.maybe_time()?;
    let why = row.ended_why.maybe_parsed(WhyEnded::parse)?;
    let ended = match (at, why) {
        (None, None) => None,
        (Some(at), Some(why)) => Some(IdEnd {
            at,
            why,
            by: read_author(row.ended_by, row.ended_by_run)?,
        }),
        _ => return Err(row.ended_at.broken("its end is incomplete")),
    };
    Ok(PastId {
        native_id: row.native_id.parsed(NativeId::parse)?,
        from: row.from_at.time()?,
        by: read_author(row.set_by, row.set_by_run)?,
        ended,
    })
}

fn read_item(cells: &mut Cells<'_>) -> Result<ItemState, StoreError> {
    let row = ItemRow::read(cells);
    let root = row.root.maybe_parsed(Key::stored)?;
    let at = row.linked_at.maybe_time()?;
    let link = match (root, at) {
        (None, _) => None,
        (Some(root), Some(at)) => Some(ItemLink {
            root,
            at,
            by: row.linked_by.maybe_parsed(SessionId::parse)?,
        }),
        (Some(_), None) => return Err(row.root.broken("its link has no time")),
    };
    Ok(ItemState {
        item: row.item.parsed(Key::stored)?,
        link,
        closed_at: row.closed_at.maybe_time()?,
        reset_at: row.reset_at.maybe_time()?,
    })
}

fn session_text(by: &Author) -> Option<String> {
    by.session.map(|session| session.to_string())
}

fn run_text(by: &Author) -> Option<&str> {
    by.run.as_ref().map(RunId::as_str)
}

impl<E: Engine> Rows<E> {
    fn conversation_row<'a>(&self, record: &'a Conversation) -> Result<Vec<Value<'a>>, StoreError> {
        let current = record.current.as_ref();
        let home = current.map(|current| &current.home);
        let by = current.map(|current| &current.by);
        let row = ConversationRow {
            native_id: current.map(|current| current.native_id.as_str()).into(),
            host_id: home.map(|home| home.host.as_str()).into(),
            user_name: home.map(|home| home.user.as_str()).into(),
            agent_home: home.and_then(|home| home.agent_home.as_deref()).into(),
            dir: home.map(|home| home.dir.as_str()).into(),
            repo_host: home.and_then(|home| home.repo_host.as_deref()).into(),
            set_by: by.and_then(session_text).into(),
            set_by_run: by.and_then(run_text).into(),
            set_at: current.map(|current| current.at.0).into(),
            closed_at: record.closed_at.map(|at| at.0).into(),
            item: record.item.as_str().into(),
            agent: record.agent.as_str().into(),
            role: record.role.as_str().into(),
            revision: self.count("revision", record.revision)?.into(),
        };
        Ok(row.values())
    }
}

impl<E: Engine> ConversationRows for Rows<E> {
    fn conversation(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        item: &Key,
    ) -> Result<Option<Conversation>, StoreError> {
        self.first(
            "conversations",
            ONE,
            &params![item.as_str(), agent.as_str(), role.as_str()],
            read,
        )
    }

    fn conversation_with(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<Conversation>, StoreError> {
        let key = &params![agent.as_str(), native_id.as_str()];
        self.first("conversations", WITH_ID, key, read)
    }

    fn conversations_of(&mut self, item: &Key) -> Result<Vec<Conversation>, StoreError> {
        self.all("conversations", OF_ITEM, &params![item.as_str()], read)
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
        self.count_rows("conversations", list_statement(&all))
    }

    fn insert_conversation(&mut self, conversation: &Conversation) -> Result<(), StoreError> {
        let row = self.conversation_row(conversation)?;
        self.compare_and_set(ConversationRow::INSERT, &row)
    }

    fn update_conversation(&mut self, conversation: &Conversation) -> Result<(), StoreError> {
        let row = self.conversation_row(conversation)?;
        self.compare_and_set(ConversationRow::UPDATE, &row)
    }

    fn past_ids(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        item: &Key,
    ) -> Result<Vec<PastId>, StoreError> {
        let key = &params![item.as_str(), agent.as_str(), role.as_str()];
        self.all("past_ids", PAST, key, read_past)
    }

    fn add_past_id(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        item: &Key,
        id: &PastId,
    ) -> Result<(), StoreError> {
        let end = id.ended.as_ref();
        let row = PastIdRow {
            item: item.as_str().into(),
            agent: agent.as_str().into(),
            role: role.as_str().into(),
            native_id: id.native_id.as_str().into(),
            from_at: id.from.0.into(),
            set_by: session_text(&id.by).into(),
            set_by_run: run_text(&id.by).into(),
            ended_at: end.map(|end| end.at.0).into(),
            ended_why: end.map(|end| end.why.as_str()).into(),
            ended_by: end.and_then(|end| session_text(&end.by)).into(),
            ended_by_run: end.and_then(|end| run_text(&end.by)).into(),
        };
        self.compare_and_set(PastIdRow::INSERT, &row.values())
    }

    fn end_past_id(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        item: &Key,
        end: &IdEnd,
    ) -> Result<(), StoreError> {
        self.compare_and_set(
            END_PAST,
            &params![
                item.as_str(),
                agent.as_str(),
                role.as_str(),
                end.at.0,
                end.why.as_str(),
                session_text(&end.by),
                run_text(&end.by),
            ],
        )
    }

    fn item_state(&mut self, item: &Key) -> Result<Option<ItemState>, StoreError> {
        self.first("items", ITEM, &params![item.as_str()], read_item)
    }

    fn set_item_state(&mut self, state: &ItemState) -> Result<(), StoreError> {
        let link = state.link.as_ref();
        self.run(
            SET_ITEM,
            &params![
                state.item.as_str(),
                link.map(|link| link.root.as_str()),
                link.map(|link| link.at.0),
                link.and_then(|link| link.by).map(|by| by.to_string()),
                state.closed_at.map(|at| at.0),
                state.reset_at.map(|at| at.0),
            ],
        )?;
        Ok(())
    }

    fn items_linked_to(&mut self, root: &Key) -> Result<Vec<ItemState>, StoreError> {
        self.all("items", LINKED, &params![root.as_str()], read_item)
    }
}
