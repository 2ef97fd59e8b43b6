//! The rows of a store as text, for other programs and for a store of the other kind.
//!
//! One JSON value a line: first an object that says what it is; for each table an object with its name and columns, then
//! its rows, each an array; last an object with the number of rows. A file without the last line is not whole.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::{Map, Value, json};
use tenure_core::store::StoreError;

use crate::copy::{CopiedCell, CopiedRow, CopySource, CopyState, Table, check_in_use};

/// The version of the format.
const VERSION: u64 = 1;
/// Rows that are read at once.
const BATCH: usize = 200;
/// The key of a value that is bytes, in hexadecimal digits.
const BYTES: &str = "hex";

/// Writes all rows of a store; returns how many. `name` is random.
pub fn write(
    from: &mut dyn CopySource,
    name: &str,
    out: &mut dyn Write,
    file: &str,
) -> Result<u64, StoreError> {
    let standing = from.snapshot()?;
    check_in_use(&standing, from.location())?;
    let mut line = |value: &Value| {
        writeln!(out, "{value}").map_err(|error| StoreError::Unavailable {
            store: file.to_owned(),
            why: error.to_string(),
        })
    };
    line(&json!({
        "tenure_export": VERSION,
        "name": name,
        "base": standing.base,
        "sequences": from.sequences()?,
    }))?;
    let mut rows = 0u64;
    for table in from.tables()? {
        line(&json!({"table": table.name, "columns": table.columns}))?;
        from.read(&table, &mut |batch| {
            rows += batch.len() as u64;
            batch
                .into_iter()
                .try_for_each(|row| line(&Value::Array(row.into_iter().map(value_of).collect())))
        })?;
    }
    line(&json!({"rows": rows}))?;
    Ok(rows)
}

fn value_of(cell: CopiedCell) -> Value {
    match cell {
        CopiedCell::Null => Value::Null,
        CopiedCell::Number(number) => number.into(),
        CopiedCell::Real(number) => number.into(),
        CopiedCell::Text(text) => text.into(),
        CopiedCell::Bytes(bytes) => {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            json!({BYTES: digits.concat()})
        }
    }
}

fn cell_of(value: Value) -> Option<CopiedCell> {
    Some(match value {
        Value::Null => CopiedCell::Null,
        Value::String(text) => CopiedCell::Text(text),
        Value::Number(number) => match number.as_i64() {
            Some(number) => CopiedCell::Number(number),
            None => CopiedCell::Real(number.as_f64()?),
        },
        Value::Object(one) => CopiedCell::Bytes(bytes_of(one.get(BYTES)?.as_str()?)?),
        Value::Bool(_) | Value::Array(_) => return None,
    })
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect()
}

/// A file that was written by [`write()`].
#[derive(Debug)]
pub struct ExportFile {
    location: String,
    file: BufReader<fs_err::File>,
    /// The name of the export.
    pub name: String,
    base: i64,
    sequences: BTreeMap<String, i64>,
    tables: Vec<ExportedTable>,
}

/// A table, where its rows begin, and how many there are.
#[derive(Debug)]
pub struct ExportedTable {
    pub table: Table,
    from: u64,
    pub rows: usize,
}

impl ExportFile {
    /// Reads all of it, so that nothing is taken from a file that is not whole.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let location = path.display().to_string();
        let unreadable = |error: io::Error| StoreError::Unavailable {
            store: location.clone(),
            why: error.to_string(),
        };
        let file = fs_err::File::open(path).map_err(unreadable)?;
        let mut export = Self {
            file: BufReader::new(file),
            location: location.clone(),
            name: String::new(),
            base: 0,
            sequences: BTreeMap::new(),
            tables: Vec::new(),
        };
        let first = export.line()?;
        let head = first.as_ref().and_then(Value::as_object);
        export.begin(head).ok_or_else(|| {
            export.wrong("its first line is not that of an export by this version of tenure")
        })?;
        let mut rows = 0;
        loop {
            match export.line()? {
                Some(Value::Array(cells)) => {
                    rows += 1;
                    let is_whole = export.tables.last_mut().is_some_and(|last| {
                        last.rows += 1;
                        last.table.columns.len() == cells.len()
                    });
                    if !is_whole || cells.into_iter().any(|one| cell_of(one).is_none()) {
                        return Err(export.wrong(&format!("row {rows} is not one of its table")));
                    }
                }
                Some(Value::Object(end)) if end.get("rows") == Some(&json!(rows)) => break,
                Some(Value::Object(head)) => {
                    let from = export.file.stream_position().map_err(unreadable)?;
                    let table = table_of(&head)
                        .ok_or_else(|| export.wrong("a line names no table and its columns"))?;
                    export.tables.push(ExportedTable {
                        table,
                        from,
                        rows: 0,
                    });
                }
                Some(_) | None => return Err(export.wrong("its end is missing")),
            }
        }
        Ok(export)
    }

    pub fn tables_with_rows(&self) -> &[ExportedTable] {
        &self.tables
    }

    fn begin(&mut self, head: Option<&Map<String, Value>>) -> Option<()> {
        let head = head?;
        if head.get("tenure_export")?.as_u64()? != VERSION {
            return None;
        }
        head.get("name")?.as_str()?.clone_into(&mut self.name);
        self.base = head.get("base")?.as_i64()?;
        for (table, last) in head.get("sequences")?.as_object()? {
            self.sequences.insert(table.clone(), last.as_i64()?);
        }
        Some(())
    }

    fn wrong(&self, why: &str) -> StoreError {
        StoreError::Damaged {
            store: self.location.clone(),
            why: why.to_owned(),
        }
    }

    /// The next line; none at the end.
    fn line(&mut self) -> Result<Option<Value>, StoreError> {
        let mut line = String::new();
        let read = self.file.read_line(&mut line);
        let length = read.map_err(|error| self.wrong(&error.to_string()))?;
        if length == 0 {
            return Ok(None);
        }
        serde_json::from_str(&line)
            .map(Some)
            .map_err(|error| self.wrong(&format!("a line is not JSON: {error}")))
    }
}

fn table_of(head: &Map<String, Value>) -> Option<Table> {
    let is_name = |name: &str| {
        let mut characters = name.chars();
        !name.is_empty() && characters.all(|one| one.is_ascii_lowercase() || one == '_')
    };
    let columns: Option<Vec<String>> = head
        .get("columns")?
        .as_array()?
        .iter()
        .map(|one| one.as_str().map(str::to_owned))
        .collect();
    let (name, columns) = (head.get("table")?.as_str()?.to_owned(), columns?);
    // They become part of statements.
    let are_names = is_name(&name) && columns.iter().all(|one| is_name(one));
    are_names.then_some(Table { name, columns })
}

impl CopySource for ExportFile {
    fn location(&self) -> String {
        self.location.clone()
    }

    fn snapshot(&mut self) -> Result<CopyState, StoreError> {
        Ok(CopyState {
            id: self.name.clone(),
            moved_to: None,
            copied_from: None,
            copy: None,
            base: self.base,
        })
    }

    fn tables(&mut self) -> Result<Vec<Table>, StoreError> {
        Ok(self.tables.iter().map(|one| one.table.clone()).collect())
    }

    fn read(
        &mut self,
        table: &Table,
        each: &mut dyn FnMut(Vec<CopiedRow>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let found = self.tables.iter().find(|one| one.table.name == table.name);
        let Some(found) = found else { return Ok(()) };
        let (from, rows) = (found.from, found.rows);
        let own = found.table.columns.clone();
        // The other store may have its columns in another order.
        let place = |column: &String| own.iter().position(|one| one == column);
        let places: Vec<usize> = table.columns.iter().filter_map(place).collect();
        let moved = self.file.seek(SeekFrom::Start(from));
        moved.map_err(|error| self.wrong(&error.to_string()))?;
        let mut batch = Vec::new();
        for _ in 0..rows {
            let Some(Value::Array(mut cells)) = self.line()? else {
                return Err(self.wrong("it was changed while it was read"));
            };
            let cells = places.iter().map(|at| cells.get_mut(*at).map(Value::take));
            let row: Option<CopiedRow> = cells.map(|cell| cell_of(cell?)).collect();
            batch.push(row.ok_or_else(|| self.wrong("it was changed while it was read"))?);
            if batch.len() == BATCH {
                each(std::mem::take(&mut batch))?;
            }
        }
        each(batch)
    }

    fn sequences(&mut self) -> Result<BTreeMap<String, i64>, StoreError> {
        Ok(self.sequences.clone())
    }
}
