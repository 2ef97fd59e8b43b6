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

use rusqlite::{Connection, OptionalExtension};
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

/// All steps, in order.
pub(super) const MIGRATIONS: &[Migration] = &[
    Migration {
        number: 1,
        sql: include_str!("schema/0001.sql"),
        min_writer: 1,
        needs: "0.1.0",
    },
    Migration {
        number: 2,
        sql: include_str!("schema/0002.sql"),
        min_writer: 2,
        needs: "0.1.0",
    },
    // An index that only refuses: a version without it gets a conflict, as from any other.
    Migration {
        number: 3,
        sql: include_str!("schema/0003.sql"),
        min_writer: 2,
        needs: "0.1.0",
    },
    // A version without these would store an end without its kind, or a new life with the old one's.
    Migration {
        number: 4,
        sql: include_str!("schema/0004.sql"),
        min_writer: 4,
        needs: "0.1.0",
    },
    // A version without these would take a window's end for the end of a turn that continues, or store a new
    // life with the old one's daemon.
    Migration {
        number: 5,
        sql: include_str!("schema/0005.sql"),
        min_writer: 5,
        needs: "0.1.0",
    },
    // Who does not know them would end the session of a run that goes on.
    Migration {
        number: 6,
        sql: include_str!("schema/0006.sql"),
        min_writer: 6,
        needs: "0.1.0",
    },
    // Who does not know them would end a run and leave its job begun.
    Migration {
        number: 7,
        sql: include_str!("schema/0007.sql"),
        min_writer: 7,
        needs: "0.1.0",
    },
    // Who does not know them would take a delivery that waits for damage.
    Migration {
        number: 8,
        sql: include_str!("schema/0008.sql"),
        min_writer: 8,
        needs: "0.1.0",
    },
    // An index that a version without it keeps up to date.
    Migration {
        number: 9,
        sql: include_str!("schema/0009.sql"),
        min_writer: 8,
        needs: "0.1.0",
    },
    // A version without it records every stop as one on request, as before.
    Migration {
        number: 10,
        sql: include_str!("schema/0010.sql"),
        min_writer: 8,
        needs: "0.1.0",
    },
    // A version without them decides what it receives at once, and leaves these to the next that knows them.
    Migration {
        number: 11,
        sql: include_str!("schema/0011.sql"),
        min_writer: 8,
        needs: "0.1.0",
    },
    // A version without it would keep the host of another conversation.
    Migration {
        number: 12,
        sql: include_str!("schema/0012.sql"),
        min_writer: 12,
        needs: "0.1.0",
    },
];

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
    let damaged = |why: String| StoreError::Damaged {
        store: store.to_owned(),
        why,
    };
    let newest = known.last().map_or(0, |step| step.number);
    let found: i64 = conn
        .prepare_cached("PRAGMA user_version")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(sql)?;
    let found =
        u32::try_from(found).map_err(|_| damaged(format!("its schema number is {found}")))?;
    if found == newest {
        return Ok(Fit::Ready);
    }
    if found > SET_ASIDE {
        return Err(set_aside(conn, store).map_err(sql)?);
    }
    let meta = |name: &str| -> Result<String, StoreError> {
        if found == 0 {
            return Err(damaged("its schema number is missing".to_owned()));
        }
        conn.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| {
            row.get(0)
        })
        .optional()
        .map_err(sql)?
        .ok_or_else(|| damaged(format!("table meta has no {name}")))
    };
    let schema = meta("schema")?;
    if schema != found.to_string() {
        return Err(damaged(format!(
            "its header has schema {found}, its table meta has {schema:?}"
        )));
    }
    if found < newest {
        return Ok(Fit::Behind);
    }
    let min_writer = meta("min_writer")?;
    let min_writer: u32 = min_writer
        .parse()
        .map_err(|_| damaged(format!("table meta has min_writer {min_writer:?}")))?;
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
    use tenure_core::key::Key;

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

    /// A store of the first schema with one key of each spelling, none of them held.
    fn spelt(keys: &[&str]) -> Connection {
        let conn = at(&MIGRATIONS[..1]);
        for key in keys {
            conn.execute("INSERT INTO claims (key, epoch) VALUES (?1, 1)", [key])
                .unwrap();
        }
        migrate(&conn, "s", MIGRATIONS).unwrap();
        conn
    }

    fn pairs(conn: &Connection, sql: &str) -> Vec<(String, String)> {
        let mut statement = conn.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    }

    /// The migration normalises as core does.
    #[test]
    fn f_c20_keys_of_old_spellings_are_listed_under_their_canonical_one() {
        let keys = [
            "issue:Acme/Web#42",
            "issue:acme/web#042",
            "issue:acme/web.git#42",
            "issue:acme/web#000",
            "issue:acme/web#7",
            "issue:JIRA-042",
            "issue:acme/web#x",
            "mr:acme/web#7",
            "pr:ACME/web#7",
            "path:Acme/Web.git:src/DB/**",
            "path:acme/web:src/**",
            "path:/Home/Me/web.git:src/**",
            "wp:041/WP03",
            "doc:A#042",
        ];
        let conn = spelt(&keys);
        let found = pairs(&conn, "SELECT key, canonical FROM spellings");
        for key in keys {
            let canonical = Key::stored(key).unwrap().canonical().to_string();
            let listed = found.iter().find(|(old, _)| old == key);
            let expected = (canonical != key).then_some(&canonical);
            assert_eq!(listed.map(|(_, now)| now), expected, "{key}");
        }
        assert_eq!(found.len(), 7);
    }

    #[test]
    fn f_c20_a_path_that_names_a_directory_gets_it_as_its_home() {
        let conn = at(&MIGRATIONS[..1]);
        conn.execute_batch(
            "PRAGMA foreign_keys = OFF;
             INSERT INTO holds (key, epoch, session, life, means, granted_at) VALUES
                ('path:/a:b/.git:src/**', 1, 's', 1, 'claim', 0),
                ('path:acme/web:src/**', 1, 's', 1, 'claim', 0),
                ('wp:1', 1, 's', 1, 'claim', 0);",
        )
        .unwrap();
        migrate(&conn, "s", MIGRATIONS).unwrap();
        let found = pairs(
            &conn,
            "SELECT key, ifnull(home, '') FROM holds ORDER BY key",
        );
        let homes: Vec<&str> = found.iter().map(|(_, home)| home.as_str()).collect();
        assert_eq!(homes, ["/a:b/.git", "", ""]);
    }

    #[test]
    fn pointers_of_repositories_follow_the_new_spelling_of_their_names() {
        let conn = at(&MIGRATIONS[..1]);
        conn.execute_batch(
            "INSERT INTO pointers (scope, name, mission, at) VALUES
                ('repo', 'Acme/Web', 'm1', 0), ('repo', '/Home/Me/.git', 'm2', 0),
                ('repo', 'Acme/Api', 'old', 0), ('repo', 'acme/api', 'new', 0),
                ('user', 'Me', 'm3', 0)",
        )
        .unwrap();
        migrate(&conn, "s", MIGRATIONS).unwrap();
        let found = pairs(&conn, "SELECT name, mission FROM pointers");
        for (name, mission) in [
            ("acme/web", "m1"),
            ("/Home/Me/.git", "m2"),
            ("acme/api", "new"),
            ("Me", "m3"),
        ] {
            assert!(found.contains(&(name.into(), mission.into())), "{found:?}");
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

    /// What an older binary would write lacks what the newer ones rely on.
    #[test]
    fn a_binary_that_knows_the_first_schema_only_is_refused_after_the_second() {
        let conn = at(&MIGRATIONS[..1]);
        assert_eq!(fit(&conn, "s", &MIGRATIONS[..1]), Ok(Fit::Ready));
        migrate(&conn, "s", &MIGRATIONS[..2]).unwrap();
        let refused = fit(&conn, "s", &MIGRATIONS[..1]);
        assert!(
            matches!(
                refused,
                Err(StoreError::TooNew {
                    found: 2,
                    known: 1,
                    ..
                })
            ),
            "{refused:?}"
        );
    }

    /// An older store may contain what the index forbids; opening it must still work.
    #[test]
    fn of_two_sessions_in_one_hosted_conversation_the_newer_keeps_it() {
        let conn = at(&MIGRATIONS[..2]);
        let sql = "INSERT INTO sessions (id, handle, code, agent, native_id, dir, hosted, life, host_id, \
             boot_id, boot_private, pid_ns, pid, start_ticks, start_shifted, started_at, seen_at, \
             lease_era, lease_era_private, lease_at, revision) \
             VALUES (?1, ?1, ?1, 'a', 'n', '/', 1, 1, 'h', 'b', 0, 1, ?2, 1, 0, ?3, 1, 'b', 0, 1, 0)";
        for (id, pid, started) in [("old", 7, 1), ("new", 7, 2), ("other", 8, 1)] {
            conn.execute(sql, rusqlite::params![id, pid, started])
                .unwrap();
        }
        conn.execute_batch("INSERT INTO natives VALUES ('a', 'n', 'old', 1)")
            .unwrap();
        migrate(&conn, "s", MIGRATIONS).unwrap();
        let owner = pairs(&conn, "SELECT native_id, owner FROM natives");
        assert_eq!(owner, [("n".into(), "new".into())]);
        let kept = "SELECT id, COALESCE(native_id, 'none') FROM sessions ORDER BY id";
        let kept = pairs(&conn, kept);
        let expected = [("new", "n"), ("old", "none"), ("other", "n")];
        assert_eq!(
            kept,
            expected.map(|(id, native)| (id.into(), native.into()))
        );
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
