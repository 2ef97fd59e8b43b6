//! Copying a store into another one, of the same backend or not, so that the other one takes its place.
//!
//! Never are both in use. The store is locked against everybody; all its rows are written into the other one, which is
//! committed as an *unfinished copy* that nobody can use; then the store is marked as moved; then the other one is put
//! into use. Each of the three is one transaction, and a copy has a random name that both stores keep.
//!
//! *Crash*: before the store is marked, it is in use as before, and the unfinished copy is overwritten by the next
//! attempt. After that, the same command finishes it: both have the name of the same copy. *Broken connection*: the
//! same. *Clock jump*: sessions get new leases on the other store's clock. *Older version*: one that does not know
//! these marks finds a schema that is too new.
//!
//! Epochs are raised by 2^32, so that a copy of the store from before, if one is ever used again, grants none of
//! the numbers that the other one grants.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::store::StoreError;

/// How much epochs are raised: more than anyone ever grants of one key.
pub const RAISE: i64 = 1 << 32;

/// A cell of a row, in either backend.
#[derive(Debug, Clone, PartialEq)]
pub enum CopiedCell {
    Null,
    Number(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

pub type CopiedRow = Vec<CopiedCell>;

/// A table with the columns that are copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub name: String,
    pub columns: Vec<String>,
}

/// What a store says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyState {
    pub id: String,
    pub moved_to: Option<String>,
    /// The store that it is an unfinished copy of.
    pub copied_from: Option<String>,
    /// The name of the last copy that it was part of.
    pub copy: Option<String>,
    /// What is added to every epoch.
    pub base: i64,
}

/// Why a store gets the rows of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// It takes the place of the other one.
    ByCopy,
    /// The other one is a backup of it.
    ByRestore,
    /// The other one was exported.
    ByImport,
}

impl Filled {
    pub fn mechanism(self) -> &'static str {
        match self {
            Self::ByCopy => "copy",
            Self::ByRestore => "restore",
            Self::ByImport => "import",
        }
    }

    fn said(self) -> &'static str {
        match self {
            Self::ByCopy => "copied",
            Self::ByRestore => "restored",
            Self::ByImport => "imported",
        }
    }

    /// The text of the event that records it.
    pub fn recorded(self, from: &str) -> String {
        format!(
            "the store was {} from {from}; every epoch was raised to keep old ones from being granted again",
            self.said()
        )
    }

    /// Why a claim has another epoch, for its holder.
    pub fn why_raised(self) -> String {
        match self {
            Self::ByCopy => {
                "the store was copied to another place and every epoch was raised".to_owned()
            }
            _ => format!("the store was {} and every epoch was raised", self.said()),
        }
    }
}

/// What the other store gets besides the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest {
    pub filled: Filled,
    /// The name of the copy.
    pub copy: String,
    pub from: String,
    /// What is added to every epoch from now on.
    pub base: i64,
    /// The last number that each table, and the line of waiters, gave out.
    pub sequences: BTreeMap<String, i64>,
    /// How long open sessions count as living from now on.
    pub lease: Duration,
}

/// What rows are read from: a store, or a file that has the rows of one.
pub trait CopySource {
    fn location(&self) -> String;

    /// Has the next calls read one state, while others go on writing.
    fn snapshot(&mut self) -> Result<CopyState, StoreError>;

    fn tables(&mut self) -> Result<Vec<Table>, StoreError>;

    /// Reads a table in batches.
    fn read(
        &mut self,
        table: &Table,
        each: &mut dyn FnMut(Vec<CopiedRow>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    /// The last number that each table, and the line of waiters, gave out.
    fn sequences(&mut self) -> Result<BTreeMap<String, i64>, StoreError>;
}

/// A store that takes part in a copy. Nothing is changed before a call that says so.
pub trait CopyEndpoint: CopySource {
    /// Locks it against everybody until the next commit, or until it is dropped.
    fn lock(&mut self) -> Result<CopyState, StoreError>;

    fn is_empty(&mut self, table: &Table) -> Result<bool, StoreError>;

    fn clear(&mut self, table: &Table) -> Result<(), StoreError>;

    fn write(&mut self, table: &Table, rows: Vec<CopiedRow>) -> Result<(), StoreError>;

    /// Adds the rest, marks it as an unfinished copy, and commits.
    fn commit_unfinished(&mut self, rest: &Rest) -> Result<(), StoreError>;

    /// Adds the rest, and commits: it is in use with its new rows.
    fn commit_filled(&mut self, rest: &Rest) -> Result<(), StoreError>;

    /// Marks it as moved, and commits.
    fn commit_moved(&mut self, to: &str, copy: &str) -> Result<(), StoreError>;

    /// Puts an unfinished copy into use.
    fn commit_finished(&mut self, copy: &str) -> Result<(), StoreError>;
}

/// What a copy did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    pub rows: u64,
    /// Whether an earlier command had copied the rows.
    pub was_resumed: bool,
}

fn refused(store: String, why: impl Into<String>) -> StoreError {
    let why = why.into();
    StoreError::Unavailable { store, why }
}

/// Copies `from` into `to`, which is empty; `name` is random.
pub fn copy(
    from: &mut dyn CopyEndpoint,
    to: &mut dyn CopyEndpoint,
    name: &str,
    lease: Duration,
) -> Result<Copied, StoreError> {
    const ITSELF: &str = "it cannot be copied into itself";
    if from.location() == to.location() {
        return Err(refused(from.location(), ITSELF));
    }
    let source = from.lock()?;
    let target = to.lock()?;
    if source.id == target.id {
        return Err(refused(from.location(), ITSELF));
    }
    if let Some(moved_to) = source.moved_to {
        return finish(from, to, moved_to, source.copy, &target);
    }
    check_in_use(&source, from.location())?;
    if let Some(moved_to) = &target.moved_to {
        return Err(StoreError::Moved {
            store: to.location(),
            to: moved_to.clone(),
        });
    }
    let (taken, given) = (from.tables()?, to.tables()?);
    let tables = common(&taken, &given, &from.location())?;
    match &target.copied_from {
        Some(of) if *of != from.location() => {
            return Err(StoreError::Unfinished {
                store: to.location(),
                from: of.clone(),
            });
        }
        // The store is not marked as moved, so nobody ever used this copy.
        Some(_) => given.iter().try_for_each(|table| to.clear(table))?,
        None => check_empty(to, "copied")?,
    }
    let rows = write_rows(from, to, &tables)?;
    to.commit_unfinished(&Rest {
        filled: Filled::ByCopy,
        copy: name.to_owned(),
        from: from.location(),
        base: source.base.saturating_add(RAISE),
        sequences: from.sequences()?,
        lease,
    })?;
    from.commit_moved(&to.location(), name)?;
    to.commit_finished(name)?;
    Ok(Copied {
        rows,
        was_resumed: false,
    })
}

/// Fails for a store that was moved, or that is an unfinished copy.
pub fn check_in_use(standing: &CopyState, store: String) -> Result<(), StoreError> {
    if let Some(to) = standing.moved_to.clone() {
        return Err(StoreError::Moved { store, to });
    }
    match standing.copied_from.clone() {
        Some(from) => Err(StoreError::Unfinished { store, from }),
        None => Ok(()),
    }
}

fn check_empty(to: &mut dyn CopyEndpoint, verb: &str) -> Result<(), StoreError> {
    let Some(table) = table_with_rows(to)? else {
        return Ok(());
    };
    let why = format!(
        "a store can only be {verb} into an empty one, and its table {} has rows; nothing was changed",
        table.name
    );
    Err(refused(to.location(), why))
}

fn write_rows(
    from: &mut dyn CopySource,
    to: &mut dyn CopyEndpoint,
    tables: &[Table],
) -> Result<u64, StoreError> {
    let mut rows = 0;
    for table in tables {
        from.read(table, &mut |batch| {
            rows += batch.len() as u64;
            to.write(table, batch)
        })?;
    }
    Ok(rows)
}

/// Writes all rows of `from` into `to`, which is a new store; nothing is committed.
pub fn write_all(from: &mut dyn CopySource, to: &mut dyn CopyEndpoint) -> Result<u64, StoreError> {
    let tables = common(&from.tables()?, &to.tables()?, &from.location())?;
    write_rows(from, to, &tables)
}

/// The first table that has rows; none in an empty store.
pub fn table_with_rows(of: &mut dyn CopyEndpoint) -> Result<Option<Table>, StoreError> {
    for table in of.tables()? {
        if !of.is_empty(&table)? {
            return Ok(Some(table));
        }
    }
    Ok(None)
}

/// Fills the store `to` with the rows of `from`, in one transaction. An import needs an empty store and is done once; a
/// restored backup takes the place of every row. Before that, `ready` keeps them, or refuses. `name` is random, or that of
/// the export.
///
/// *Crash*: the store is the old one or the new one. Its epochs are above those that either one granted.
pub fn fill(
    from: &mut dyn CopySource,
    to: &mut dyn CopyEndpoint,
    filled: Filled,
    name: &str,
    lease: Duration,
    ready: &mut dyn FnMut(&mut dyn CopyEndpoint) -> Result<(), StoreError>,
) -> Result<Copied, StoreError> {
    let source = from.snapshot()?;
    check_in_use(&source, from.location())?;
    let target = to.lock()?;
    check_in_use(&target, to.location())?;
    if target.copy.as_deref() == Some(name) {
        return Ok(Copied {
            rows: 0,
            was_resumed: true,
        });
    }
    let given = to.tables()?;
    let tables = common(&from.tables()?, &given, &from.location())?;
    ready(to)?;
    if filled == Filled::ByImport {
        check_empty(to, "imported")?;
    } else {
        given.iter().try_for_each(|table| to.clear(table))?;
    }
    let mut sequences = to.sequences()?;
    for (table, last) in from.sequences()? {
        let own = sequences.entry(table).or_default();
        *own = last.max(*own);
    }
    let rows = write_rows(from, to, &tables)?;
    to.commit_filled(&Rest {
        filled,
        copy: name.to_owned(),
        from: from.location(),
        base: source.base.max(target.base).saturating_add(RAISE),
        sequences,
        lease,
    })?;
    Ok(Copied {
        rows,
        was_resumed: false,
    })
}

/// Goes on where a command stopped after it had marked the store as moved.
fn finish(
    from: &dyn CopyEndpoint,
    to: &mut dyn CopyEndpoint,
    moved_to: String,
    copy: Option<String>,
    target: &CopyState,
) -> Result<Copied, StoreError> {
    let Some(copy) = copy.filter(|copy| target.copy.as_ref() == Some(copy)) else {
        return Err(StoreError::Moved {
            store: from.location(),
            to: moved_to,
        });
    };
    if target.copied_from.is_some() {
        to.commit_finished(&copy)?;
    }
    Ok(Copied {
        rows: 0,
        was_resumed: true,
    })
}

/// Columns of one engine that the other one has no use for.
const OWN_COLUMNS: &[(&str, &str)] = &[
    ("events", "written"),
    ("events", "uid"),
    ("events", "by_role"),
    ("events", "by_address"),
    ("sessions", "by_role"),
];

/// The tables with the columns that both have. What one of them lacks is an error, never left out.
fn common(taken: &[Table], given: &[Table], store: &str) -> Result<Vec<Table>, StoreError> {
    let names = |tables: &[Table]| -> Vec<(String, String)> {
        let mut all: Vec<_> = tables
            .iter()
            .flat_map(|table| {
                table
                    .columns
                    .iter()
                    .map(|column| (table.name.clone(), column.clone()))
            })
            .filter(|(table, column)| !OWN_COLUMNS.contains(&(table.as_str(), column.as_str())))
            .collect();
        all.sort();
        all
    };
    if names(taken) != names(given) {
        let why = "its tables differ from those of the other store; update both with this version of tenure first";
        return Err(refused(store.to_owned(), why));
    }
    let in_both = |table: &Table| {
        let other = given.iter().find(|other| other.name == table.name)?;
        let columns = table
            .columns
            .iter()
            .filter(|&column| other.columns.contains(column));
        Some(Table {
            name: table.name.clone(),
            columns: columns.cloned().collect(),
        })
    };
    Ok(taken.iter().filter_map(in_both).collect())
}
