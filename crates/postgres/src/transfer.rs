//! A PostgreSQL schema in a copy of a store: see [`tenure_store::copy`].
//!
//! It is locked by the table that every transaction reads first, so what was begun is over and nothing new begins. A
//! client that stops in the middle is ended by the server after [`IDLE`].

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tenure_core::event::EventKind;
use tenure_core::id::{Epoch, SessionId};
use tenure_core::notice::Notice;
use tenure_core::store::StoreError;
use tenure_core::time::Timestamp;
use tokio_postgres::Row as Answer;
use tokio_postgres::types::Type;

use super::connection::{CONNECT, ConnectionLoss, Link, Statement, StatementResult, Wait};
use super::history::LOCK;
use super::migrations::{self, DURABLE, NEWEST, migrate, unmigrated};
use super::{clock, error, handle};
use tenure_store::copy::{
    CopiedCell, CopiedRow, CopyEndpoint, CopySource, CopyState, Filled, Rest, Table,
};
use tenure_store::params;
use tenure_store::rows::notice;
use tenure_store::server::Access;
use tenure_store::value::Value;

/// How long others may take to end what they began.
const LOCK_WAIT: &str = "10s";
/// How long one statement may run, and how long the server waits for the next.
const STATEMENT: &str = "60s";
const IDLE: &str = "30s";
const ANSWER: Duration = Duration::from_secs(70);
/// Tables that describe the store itself, and the machines that use it.
const OWN: &[&str] = &[
    "store", "clock", "counter", "commits", "keepers", "watched", "untold",
];
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// Rows that are read at once, and values that are written at once.
const BATCH: usize = 200;
const VALUES: usize = 5000;

const STANDING: &str = "SELECT id, schema, min_writer, needs, epoch_base, moved_to, copied_from, copy, \
     pg_is_in_recovery() FROM store";
const COLUMNS: &str = "SELECT c.relname::text, a.attname::text, a.atttypid::regtype::text FROM pg_class c \
     JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid \
     WHERE n.nspname = $1 AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum";
/// Tables whose rows are numbered, with the column and the sequence.
const NUMBERED: &str = "SELECT c.relname::text, a.attname::text, \
     pg_get_serial_sequence(quote_ident(n.nspname) || '.' || quote_ident(c.relname), a.attname) FROM pg_class c \
     JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid \
     WHERE n.nspname = $1 AND c.relkind = 'r' AND a.attidentity <> '' ORDER BY c.relname";
/// The line's sequence, under the name that the other backend has for it.
const TICKETS: &str = "tickets";
/// The positions of events, which the counter gives out.
const EVENTS: &str = "events";

/// A schema on a server, for a copy.
pub struct PostgresEnd {
    access: Access,
    location: String,
    link: Link,
    is_open: bool,
    /// The type of each column.
    types: BTreeMap<(String, String), String>,
}

impl PostgresEnd {
    /// Connects to it; `creates` makes a store where there is none.
    pub fn open(access: Access, creates: bool) -> Result<Self, StoreError> {
        if creates {
            migrate(&access)?;
        }
        let location = access.url.location();
        let link = Link::open(&access, Instant::now() + CONNECT)
            .map_err(|lost| error::lost(&location, &lost, true))?;
        Ok(Self {
            access,
            location,
            link,
            is_open: false,
            types: BTreeMap::new(),
        })
    }

    fn run(&self, statements: &[Statement]) -> Result<Vec<StatementResult>, StoreError> {
        let lost = |lost: ConnectionLoss| error::lost(&self.location, &lost, false);
        let replies = self
            .link
            .exchange(statements, Wait::until(Instant::now() + ANSWER));
        let replies = replies.map_err(lost)?;
        let sound = |reply: Result<StatementResult, _>| {
            reply.map_err(|fault| migrations::first_fault(&self.location, &fault))
        };
        replies.into_iter().map(sound).collect()
    }

    fn ask(
        &self,
        sql: impl Into<String>,
        params: Vec<Value<'static>>,
    ) -> Result<Vec<Answer>, StoreError> {
        let mut replies = self.run(&[Statement::query(sql.into(), params)])?;
        Ok(replies.pop().map(StatementResult::rows).unwrap_or_default())
    }

    fn begin(&mut self, what: &str, lock: &'static str) -> Result<(), StoreError> {
        if self.is_open {
            return Ok(());
        }
        let begin = format!(
            "{what}; SET LOCAL search_path = {}; SET LOCAL lock_timeout = '{LOCK_WAIT}'; \
             SET LOCAL statement_timeout = '{STATEMENT}'; \
             SET LOCAL idle_in_transaction_session_timeout = '{IDLE}'; SET LOCAL tenure.copying = 'on'",
            self.access.url.schema
        );
        self.run(&[
            Statement::batch(begin),
            Statement::query(format!("SELECT {DURABLE}"), Vec::new()),
            Statement::batch(lock),
        ])?;
        self.is_open = true;
        Ok(())
    }

    /// Sends the last statements with COMMIT.
    fn commit(&mut self, mut last: Vec<Statement>, copy: &str) -> Result<(), StoreError> {
        self.is_open = false;
        last.push(Statement::batch("COMMIT"));
        let sent = self
            .link
            .exchange(&last, Wait::until(Instant::now() + ANSWER));
        // The same command finds out by the name of the copy.
        let unknown = || StoreError::OutcomeUnknown {
            store: self.location.clone(),
            request: Some(copy.to_owned()),
        };
        for reply in sent.map_err(|_| unknown())? {
            reply.map_err(|fault| error::classify(&self.location, &fault))?;
        }
        if self.link.take_warnings().is_empty() {
            Ok(())
        } else {
            Err(unknown())
        }
    }

    fn numbered(&self) -> Result<Vec<(String, String, String)>, StoreError> {
        let schema = params![self.access.url.schema.clone()].to_vec();
        let rows = self.ask(NUMBERED, schema)?;
        let text = |row: &Answer, index: usize| row.try_get::<_, String>(index).unwrap_or_default();
        let mut all: Vec<_> = rows
            .iter()
            .map(|row| (text(row, 0), text(row, 1), text(row, 2)))
            .collect();
        let tickets = format!("{}.{TICKETS}", self.access.url.schema);
        all.push((TICKETS.to_owned(), String::new(), tickets));
        Ok(all)
    }

    fn value(&self, table: &str, column: &str, cell: CopiedCell) -> Value<'static> {
        let kind = self.types.get(&(table.to_owned(), column.to_owned()));
        match cell {
            CopiedCell::Number(number) => number.into(),
            CopiedCell::Real(number) => Some(number).into(),
            CopiedCell::Text(text) => text.into(),
            CopiedCell::Bytes(bytes) => Value::Bytes(Some(bytes.into())),
            CopiedCell::Null => match kind.map(String::as_str) {
                Some("bigint") => Value::Number(None),
                Some("double precision") => Value::Real(None),
                Some("bytea") => Value::Bytes(None),
                _ => Value::Text(None),
            },
        }
    }

    /// What sessions and waiters get anew, and what is recorded about the copy.
    fn rest(&self, rest: &Rest) -> Result<Vec<Statement>, StoreError> {
        let now = self.ask(clock::NOW, params![clock::JUMP].to_vec())?;
        let number = |row: &Answer, index: usize| row.try_get::<_, i64>(index).unwrap_or_default();
        let (wall, steady) = now
            .first()
            .map_or((0, 0), |row| (number(row, 0), number(row, 1)));
        let base = rest.base;
        let unfinished = (rest.filled == Filled::ByCopy).then(|| rest.from.clone());
        let why_raised = rest.filled.why_raised();
        let lease = i64::try_from(rest.lease.as_millis()).unwrap_or(i64::MAX);
        let era = clock::era();
        let mut last = vec![
            Statement::execute(
                "UPDATE sessions SET lease_era = $1, lease_era_private = $2, lease_at = $3 WHERE closed_at IS NULL",
                params![era.id, era.private, steady.saturating_add(lease)].to_vec(),
            ),
            Statement::execute(
                "UPDATE waiters SET turn_epoch = NULL, turn_era = NULL, turn_era_private = NULL, turn_at = NULL",
                Vec::new(),
            ),
            Statement::execute(
                "INSERT INTO events (at, kind, mechanism, evidence) VALUES ($1, $2, $3, $4)",
                params![
                    wall,
                    EventKind::StoreMoved.as_str(),
                    rest.filled.mechanism(),
                    rest.filled.recorded(&rest.from)
                ]
                .to_vec(),
            ),
            Statement::execute(
                "UPDATE store SET epoch_base = $1, copied_from = $2, copy = $3, moved_to = NULL",
                params![base, unfinished, rest.copy.clone()].to_vec(),
            ),
        ];
        let held = self.ask(
            "SELECT session, key, epoch FROM holds WHERE ended_at IS NULL",
            Vec::new(),
        )?;
        for row in &held {
            let text = |index: usize| row.try_get::<_, String>(index).unwrap_or_default();
            let epoch = number(row, 2).saturating_add(base);
            if let Ok(to) = SessionId::parse(&text(0)) {
                let shown = Epoch(epoch.unsigned_abs());
                let told =
                    Notice::of_raised_epoch(to, &text(1), shown, &why_raised, Timestamp(wall));
                last.push(handle::execute(
                    notice::ADD,
                    &notice::values(&told, Some(epoch)),
                ));
            }
        }
        Ok(last)
    }

    fn number_on(&self, rest: &Rest) -> Result<(), StoreError> {
        for (table, column, sequence) in self.numbered()? {
            let is_events = table == EVENTS;
            let last = rest.sequences.get(&table).copied().filter(|_| !is_events);
            let highest = match column.as_str() {
                "" => "0".to_owned(),
                column => format!("(SELECT coalesce(max({column}), 0) FROM {table})"),
            };
            let sql = format!(
                "SELECT setval('{sequence}'::regclass, greatest({highest}, $1, 1), greatest({highest}, $1) > 0)"
            );
            self.ask(sql, params![last.unwrap_or(0)].to_vec())?;
        }
        let events = rest.sequences.get(EVENTS).copied().unwrap_or(0);
        let sql = "UPDATE counter SET number = greatest(number, $1, (SELECT coalesce(max(id), 0) FROM events))";
        self.run(&[Statement::execute(sql, params![events].to_vec())])?;
        Ok(())
    }
}

fn cell(row: &Answer, index: usize) -> Result<CopiedCell, tokio_postgres::Error> {
    let kind = row.columns().get(index).map(tokio_postgres::Column::type_);
    Ok(match kind {
        Some(&Type::INT8) => row
            .try_get::<_, Option<i64>>(index)?
            .map(CopiedCell::Number),
        Some(&Type::FLOAT8) => row.try_get::<_, Option<f64>>(index)?.map(CopiedCell::Real),
        Some(&Type::BYTEA) => row
            .try_get::<_, Option<Vec<u8>>>(index)?
            .map(CopiedCell::Bytes),
        _ => row
            .try_get::<_, Option<String>>(index)?
            .map(CopiedCell::Text),
    }
    .unwrap_or(CopiedCell::Null))
}

impl PostgresEnd {
    fn standing(&self) -> Result<CopyState, StoreError> {
        let rows = self.ask(STANDING, Vec::new())?;
        let Some(row) = rows.first() else {
            return Err(unmigrated(&self.location, 0));
        };
        let text = |index: usize| row.try_get::<_, Option<String>>(index).ok().flatten();
        let number = |index: usize| row.try_get::<_, i64>(index).unwrap_or_default();
        let found = u32::try_from(number(1)).unwrap_or_default();
        if found < NEWEST {
            return Err(unmigrated(&self.location, found));
        }
        if found > NEWEST {
            return Err(StoreError::TooNew {
                store: self.location.clone(),
                found,
                known: NEWEST,
                needs: text(3).unwrap_or_default(),
            });
        }
        Ok(CopyState {
            id: text(0).unwrap_or_default(),
            moved_to: text(5),
            copied_from: text(6),
            copy: text(7),
            base: number(4),
        })
    }
}

impl CopySource for PostgresEnd {
    fn location(&self) -> String {
        self.location.clone()
    }

    fn snapshot(&mut self) -> Result<CopyState, StoreError> {
        self.begin(SNAPSHOT, "")?;
        self.standing()
    }

    fn tables(&mut self) -> Result<Vec<Table>, StoreError> {
        let rows = self.ask(COLUMNS, params![self.access.url.schema.clone()].to_vec())?;
        let mut tables: Vec<Table> = Vec::new();
        for row in &rows {
            let text = |index: usize| row.try_get::<_, String>(index).unwrap_or_default();
            let (name, column, kind) = (text(0), text(1), text(2));
            if OWN.contains(&name.as_str()) {
                continue;
            }
            self.types.insert((name.clone(), column.clone()), kind);
            match tables.last_mut() {
                Some(table) if table.name == name => table.columns.push(column),
                _ => tables.push(Table {
                    name,
                    columns: vec![column],
                }),
            }
        }
        Ok(tables)
    }

    fn read(
        &mut self,
        table: &Table,
        each: &mut dyn FnMut(Vec<CopiedRow>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let is_large = |column: &String| {
            let kind = self.types.get(&(table.name.clone(), column.clone()));
            kind.is_some_and(|kind| kind == "bytea")
        };
        let batch = if table.columns.iter().any(is_large) {
            1
        } else {
            BATCH
        };
        let columns = table.columns.join(", ");
        self.run(&[Statement::batch(format!(
            "DECLARE copied NO SCROLL CURSOR FOR SELECT {columns} FROM {} ORDER BY 1",
            table.name
        ))])?;
        loop {
            let answers = self.ask(format!("FETCH {batch} FROM copied"), Vec::new())?;
            if answers.is_empty() {
                break;
            }
            let mut rows = Vec::with_capacity(answers.len());
            for answer in &answers {
                let cells = (0..table.columns.len()).map(|index| cell(answer, index));
                let row: Result<CopiedRow, _> = cells.collect();
                rows.push(row.map_err(|error| StoreError::Damaged {
                    store: self.location.clone(),
                    why: format!("table {}: {error}", table.name),
                })?);
            }
            each(rows)?;
        }
        self.run(&[Statement::batch("CLOSE copied")])?;
        Ok(())
    }

    fn sequences(&mut self) -> Result<BTreeMap<String, i64>, StoreError> {
        let mut all = BTreeMap::new();
        for (table, _, sequence) in self.numbered()? {
            let sql =
                format!("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}");
            let rows = self.ask(sql, Vec::new())?;
            let last = rows.first().and_then(|row| row.try_get::<_, i64>(0).ok());
            all.insert(table, last.unwrap_or(0));
        }
        let rows = self.ask("SELECT number FROM counter", Vec::new())?;
        let last = rows.first().and_then(|row| row.try_get::<_, i64>(0).ok());
        all.insert(EVENTS.to_owned(), last.unwrap_or(0));
        Ok(all)
    }
}

impl CopyEndpoint for PostgresEnd {
    fn lock(&mut self) -> Result<CopyState, StoreError> {
        self.begin("BEGIN", LOCK)?;
        self.standing()
    }

    fn is_empty(&mut self, table: &Table) -> Result<bool, StoreError> {
        let sql = format!("SELECT 1::bigint FROM {} LIMIT 1", table.name);
        Ok(self.ask(sql, Vec::new())?.is_empty())
    }

    fn clear(&mut self, table: &Table) -> Result<(), StoreError> {
        let sql = format!("DELETE FROM {}", table.name);
        self.run(&[Statement::execute(sql, Vec::new())]).map(|_| ())
    }

    fn write(&mut self, table: &Table, rows: Vec<CopiedRow>) -> Result<(), StoreError> {
        let width = table.columns.len();
        let columns = table.columns.join(", ");
        for chunk in rows.chunks((VALUES / width.max(1)).max(1)) {
            let mut values = Vec::with_capacity(chunk.len() * width);
            let mut places = Vec::with_capacity(chunk.len());
            for row in chunk {
                let begin = values.len();
                let numbers: Vec<String> =
                    (1..=width).map(|at| format!("${}", begin + at)).collect();
                places.push(format!("({})", numbers.join(", ")));
                for (column, cell) in table.columns.iter().zip(row) {
                    values.push(self.value(&table.name, column, cell.clone()));
                }
            }
            let sql = format!(
                "INSERT INTO {} ({columns}) VALUES {}",
                table.name,
                places.join(", ")
            );
            self.run(&[Statement::execute(sql, values)])?;
        }
        Ok(())
    }

    fn commit_unfinished(&mut self, rest: &Rest) -> Result<(), StoreError> {
        self.number_on(rest)?;
        let last = self.rest(rest)?;
        self.commit(last, &rest.copy)
    }

    fn commit_filled(&mut self, rest: &Rest) -> Result<(), StoreError> {
        // What keepers watch that is not there any more; they report anew what they see.
        let gone = "DELETE FROM watched WHERE session NOT IN (SELECT id FROM sessions)";
        self.run(&[Statement::execute(gone, Vec::new())])?;
        self.commit_unfinished(rest)
    }

    fn commit_moved(&mut self, to: &str, copy: &str) -> Result<(), StoreError> {
        let last = vec![
            Statement::execute(
                "UPDATE store SET moved_to = $1, copy = $2",
                params![to.to_owned(), copy.to_owned()].to_vec(),
            ),
            // Who waits looks again, and is told.
            Statement::execute("UPDATE counter SET number = number + 1", Vec::new()),
        ];
        self.commit(last, copy)
    }

    fn commit_finished(&mut self, copy: &str) -> Result<(), StoreError> {
        self.begin("BEGIN", LOCK)?;
        let sql = "UPDATE store SET copied_from = NULL WHERE copy = $1";
        let last = vec![Statement::execute(sql, params![copy.to_owned()].to_vec())];
        self.commit(last, copy)
    }
}
