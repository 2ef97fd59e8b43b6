//! The schema and how it grows.
//!
//! Each migration is a numbered file that only adds. It runs in one exclusive transaction together with the
//! rows of `meta` that describe the result: `schema` (its number, which must agree with SQLite's
//! `user_version`), `min_writer` (the oldest schema whose binaries may still write) and `needs` (the tenure
//! that can write it). `store_id` identifies the store.
//!
//! *Crash*: a migration happens completely or not at all. *Clock jump*: no clock is read. *Older version*: a
//! store with a newer schema is used as long as `min_writer` allows it, else refused unchanged. This is checked
//! again in every write transaction, since another process may migrate while this one runs.

use rusqlite::Connection;
use tenure_core::store::StoreError;

use super::connection::classify;
use super::moved;

/// One step of the schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Migration {
    /// Its number; the first is 1, with no gaps.
    pub(super) number: u32,
    /// What it adds.
    pub(super) sql: &'static str,
    /// The oldest schema whose binaries may still write after it.
    pub(super) min_writer: u32,
    /// The oldest tenure that may still write after it.
    pub(super) needs: &'static str,
}

/// Added to the number of a store that is not in use: it was moved, or it is an unfinished copy. No real schema has such
/// a number, and a version that does not know it finds a store that is too new.
pub(super) const SET_ASIDE: u32 = 1 << 24;

/// All steps, in order. Nothing is released yet, so there is one, and it is edited in place.
pub(super) const MIGRATIONS: &[Migration] = &[Migration {
    number: 1,
    sql: concat!(include_str!("../schema.sql"), include_str!("own.sql")),
    min_writer: 1,
    needs: "0.1.0",
}];

/// What a store's schema allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// Use it.
    Ready,
    /// Migrate it first.
    Behind,
}

/// Compares a store's schema with the known steps.
pub(super) fn fit(conn: &Connection, store: &str, known: &[Migration]) -> Result<Fit, StoreError> {
    let sql = |error: rusqlite::Error| classify(store, Some(conn), &error);
    let newest = known.last().map_or(0, |step| step.number);
    if schema_number(conn, store)? == newest {
        return Ok(Fit::Ready);
    }
    // All that follows is read from one state: another process may be migrating.
    let _tx = if conn.is_autocommit() {
        Some(conn.unchecked_transaction().map_err(sql)?)
    } else {
        None
    };
    let found = schema_number(conn, store)?;
    if found == newest {
        return Ok(Fit::Ready);
    }
    if found > SET_ASIDE {
        return Err(set_aside(conn, store).map_err(sql)?);
    }
    if found == 0 {
        return Err(damaged(store, "its schema number is missing".to_owned()));
    }
    let meta = |name: &str| -> Result<String, StoreError> {
        let value = moved::meta(conn, name).map_err(sql)?;
        value.ok_or_else(|| damaged(store, format!("table meta has no {name}")))
    };
    let schema = meta("schema")?;
    if schema != found.to_string() {
        let why = format!("its header has schema {found}, its table meta has {schema:?}");
        return Err(damaged(store, why));
    }
    if found < newest {
        return Ok(Fit::Behind);
    }
    let min_writer = meta("min_writer")?;
    let Ok(min_writer) = min_writer.parse::<u32>() else {
        let why = format!("table meta has min_writer {min_writer:?}");
        return Err(damaged(store, why));
    };
    if min_writer <= newest {
        return Ok(Fit::Ready);
    }
    Err(StoreError::TooNew {
        store: store.to_owned(),
        found,
        known: newest,
        needs: meta("needs")?,
    })
}

fn schema_number(conn: &Connection, store: &str) -> Result<u32, StoreError> {
    let found: i64 = conn
        .prepare_cached("PRAGMA user_version")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(|error| classify(store, Some(conn), &error))?;
    u32::try_from(found).map_err(|_| damaged(store, format!("its schema number is {found}")))
}

fn damaged(store: &str, why: String) -> StoreError {
    StoreError::Damaged {
        store: store.to_owned(),
        why,
    }
}

/// Why a store is not in use.
fn set_aside(conn: &Connection, store: &str) -> rusqlite::Result<StoreError> {
    let store = store.to_owned();
    if let Some(to) = moved::meta(conn, moved::MOVED_TO)? {
        return Ok(StoreError::Moved { store, to });
    }
    Ok(match moved::meta(conn, moved::COPIED_FROM)? {
        Some(from) => StoreError::Unfinished { store, from },
        None => StoreError::Damaged {
            store,
            why: "it was moved, but it does not say where to".to_owned(),
        },
    })
}

/// Creates the first schema and all that follow in an empty database, and marks it as ours.
pub(super) fn build(conn: &Connection, store: &str, known: &[Migration]) -> Result<(), StoreError> {
    for step in known {
        apply(conn, step).map_err(|error| classify(store, Some(conn), &error))?;
    }
    let own = format!(
        "PRAGMA application_id = {}; \
         INSERT INTO meta (name, value) VALUES ('store_id', lower(hex(randomblob(16))))",
        super::header::APPLICATION_ID
    );
    conn.execute_batch(&own)
        .map_err(|error| classify(store, Some(conn), &error))
}

/// Migrates a store to the newest schema; the caller excludes other migrating processes.
pub(super) fn migrate(
    conn: &Connection,
    store: &str,
    known: &[Migration],
) -> Result<(), StoreError> {
    for step in known {
        // Read again before each step: a process that had the lock before may have done it.
        let found: u32 = conn
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .map_err(|error| classify(store, Some(conn), &error))?;
        if step.number > found {
            apply(conn, step).map_err(|error| classify(store, Some(conn), &error))?;
        }
    }
    Ok(())
}

fn apply(conn: &Connection, step: &Migration) -> rusqlite::Result<()> {
    let tx = rusqlite::Transaction::new_unchecked(conn, rusqlite::TransactionBehavior::Exclusive)?;
    tx.execute_batch(step.sql)?;
    for (name, value) in [
        ("schema", step.number.to_string()),
        ("min_writer", step.min_writer.to_string()),
        ("needs", step.needs.to_owned()),
    ] {
        tx.execute(
            "INSERT INTO meta (name, value) VALUES (?1, ?2) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [name, &value],
        )?;
    }
    tx.execute_batch(&format!("PRAGMA user_version = {}", step.number))?;
    tx.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Migration = Migration {
        number: 2,
        sql: "CREATE TABLE more (x TEXT) STRICT",
        min_writer: 1,
        needs: "0.1.0",
    };
    const THIRD: Migration = Migration {
        number: 3,
        sql: "CREATE TABLE most (x TEXT) STRICT",
        min_writer: 3,
        needs: "0.3.0",
    };

    fn at(steps: &[Migration]) -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        build(&conn, "s", steps).unwrap();
        conn
    }

    #[test]
    fn migrations_are_numbered_without_gaps() {
        for (index, step) in MIGRATIONS.iter().enumerate() {
            assert_eq!(usize::try_from(step.number).unwrap(), index + 1);
            assert!(step.min_writer <= step.number);
        }
    }

    #[test]
    fn a_store_that_is_behind_is_migrated_and_migrating_again_changes_nothing() {
        let steps = [MIGRATIONS[0], SECOND, THIRD];
        let conn = at(&steps[..1]);
        assert_eq!(fit(&conn, "s", &steps), Ok(Fit::Behind));
        migrate(&conn, "s", &steps).unwrap();
        migrate(&conn, "s", &steps).unwrap();
        assert_eq!(fit(&conn, "s", &steps), Ok(Fit::Ready));
    }

    /// Who asks while another process migrates is told one state or the other, never that the store is damaged.
    #[test]
    fn many_callers_read_the_version_while_another_migrates() {
        const MANY: Migration = Migration {
            number: 2,
            sql: "CREATE TABLE more (x TEXT) STRICT",
            min_writer: 1,
            needs: "0.1.0",
        };
        let dir = tempfile::tempdir().unwrap();
        let steps = [MIGRATIONS[0], MANY];
        for round in 0..20 {
            let file = dir.path().join(format!("{round}.db"));
            let open = || {
                let conn = Connection::open(&file).unwrap();
                conn.busy_timeout(std::time::Duration::from_secs(10))
                    .unwrap();
                conn
            };
            let first = open();
            first.execute_batch("PRAGMA journal_mode = WAL").unwrap();
            build(&first, "s", &steps[..1]).unwrap();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let conn = open();
                        for _ in 0..200 {
                            match fit(&conn, "s", &steps).unwrap() {
                                Fit::Ready => break,
                                Fit::Behind => {}
                            }
                        }
                    });
                }
                migrate(&first, "s", &steps).unwrap();
            });
        }
    }

    #[test]
    fn a_newer_store_is_used_while_it_lets_us_write() {
        let steps = [MIGRATIONS[0], SECOND, THIRD];
        assert_eq!(fit(&at(&steps[..2]), "s", &steps[..1]), Ok(Fit::Ready));
        let refused = fit(&at(&steps), "s", &steps[..2]);
        let expected = StoreError::TooNew {
            store: "s".into(),
            found: 3,
            known: 2,
            needs: "0.3.0".into(),
        };
        assert_eq!(refused, Err(expected));
    }

    #[test]
    fn a_schema_number_that_meta_does_not_confirm_is_damage() {
        let conn = at(&MIGRATIONS[..1]);
        for wrong in [0, 5] {
            conn.execute_batch(&format!("PRAGMA user_version = {wrong}"))
                .unwrap();
            let answer = fit(&conn, "s", &MIGRATIONS[..1]);
            assert!(
                matches!(answer, Err(StoreError::Damaged { .. })),
                "{answer:?}"
            );
        }
    }

    #[test]
    fn a_migration_that_fails_leaves_nothing() {
        let broken = Migration {
            sql: "CREATE TABLE more (x TEXT) STRICT; CREATE TABLE more (x TEXT) STRICT",
            ..SECOND
        };
        let conn = at(&MIGRATIONS[..1]);
        assert!(migrate(&conn, "s", &[MIGRATIONS[0], broken]).is_err());
        assert_eq!(fit(&conn, "s", &MIGRATIONS[..1]), Ok(Fit::Ready));
        assert!(conn.prepare("SELECT * FROM more").is_err());
    }
}
