//! Databases of other programs, read only.

use std::path::Path;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags};

/// How long to wait for a program that has the database locked.
const PATIENCE: Duration = Duration::from_secs(2);

/// The rows of a query, every cell as text. Nothing of the database is changed.
pub fn rows(path: &Path, query: &str) -> Result<Vec<Vec<Option<String>>>, String> {
    read(path, query).map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program has it locked".to_owned()
        }
        Some(ErrorCode::NotADatabase) => "it is not an SQLite database".to_owned(),
        Some(ErrorCode::CannotOpen) => "it cannot be opened".to_owned(),
        _ => error.to_string(),
    })
}

fn read(path: &Path, query: &str) -> rusqlite::Result<Vec<Vec<Option<String>>>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    let mut statement = connection.prepare(query)?;
    let width = statement.column_count();
    let rows = statement.query_map([], |row| {
        (0..width)
            .map(|at| Ok(text(row.get_ref(at)?)))
            .collect::<rusqlite::Result<Vec<_>>>()
    })?;
    rows.collect()
}

fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}
