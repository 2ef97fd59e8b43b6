//! The conformance suite on SQLite, in a file and in memory, and the plan of every statement that it prepares.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

/// No statement reads a whole table, unless it says in a comment why it may.
mod plans {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    use rusqlite::Connection;
    use rusqlite::types::Value;

    thread_local! {
        /// The statements that this test has looked at.
        static CHECKED: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
    }

    /// Asks SQLite for the plan of a statement, once.
    pub fn check(conn: &Connection, sql: &str) {
        let is_new = CHECKED.with_borrow_mut(|checked| checked.insert(sql.to_owned()));
        if is_new && let Some(plan) = unexplained_scan(conn, sql) {
            panic!("{sql}\nreads a whole table, and has no `/* may scan: why */`:\n{plan}");
        }
    }

    /// The plan of a statement that reads a whole table and does not say why.
    fn unexplained_scan(conn: &Connection, sql: &str) -> Option<String> {
        if sql == "COMMIT" || sql.contains("/* may scan: ") {
            return None;
        }
        let steps = steps(conn, sql);
        let tables = tables(conn);
        let scans = |step: &String| {
            let scanned = step.strip_prefix("SCAN ");
            let table = scanned.and_then(|rest| rest.split(' ').next());
            table.is_some_and(|table| is_table(sql, table, &tables))
        };
        steps.iter().any(scans).then(|| steps.join("\n"))
    }

    /// SQLite's plan, one line per step.
    fn steps(conn: &Connection, sql: &str) -> Vec<String> {
        let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let nulls = vec![Value::Null; statement.parameter_count()];
        let steps = statement
            .query_map(rusqlite::params_from_iter(nulls), |row| row.get(3))
            .unwrap();
        steps.collect::<Result<_, _>>().unwrap()
    }

    fn tables(conn: &Connection) -> Vec<String> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table'";
        let mut statement = conn.prepare(sql).unwrap();
        let names = statement.query_map([], |row| row.get(0)).unwrap();
        names.collect::<Result<_, _>>().unwrap()
    }

    /// Whether a name in a plan is a table of the statement, or an alias of one. Others are what the statement itself
    /// gathered, or are read only while a foreign key is violated.
    fn is_table(sql: &str, name: &str, tables: &[String]) -> bool {
        tables.iter().any(|table| {
            (table == name && sql.contains(&format!(" {table} ")))
                || sql.contains(&format!("{table} {name} "))
                || sql.contains(&format!("{table} AS {name} "))
        })
    }

    #[test]
    fn a_scan_is_found_under_an_alias_too() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE big (a)").unwrap();
        for (sql, is_found) in [
            ("SELECT a FROM big WHERE a = ?1", true),
            ("SELECT b.a FROM big b WHERE b.a = ?1", true),
            (
                "SELECT a FROM big /* may scan: a test */ WHERE a = ?1",
                false,
            ),
            ("SELECT value FROM json_each(?1)", false),
        ] {
            assert_eq!(unexplained_scan(&conn, sql).is_some(), is_found, "{sql}");
        }
    }
}

mod in_a_file {
    use tenure_core::store::Store;
    use tenure_store::SqliteStore;
    use tenure_testkit::conformance::sample::clock;

    fn run(case: fn(&mut dyn Store)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tenure.db");
        let mut store = SqliteStore::open(&path, clock()).unwrap();
        assert_eq!(store.location(), path.display().to_string());
        assert!(!store.is_shared());
        case(&mut store);
    }

    tenure_testkit::conformance!(run);
}

mod together {
    use tenure_core::store::Store;
    use tenure_store::SqliteStore;
    use tenure_testkit::conformance::sample::clock;
    use tenure_testkit::conformance::together::*;

    type Open<'a> = &'a (dyn Fn() -> Box<dyn Store> + Sync);

    fn in_a_file(case: fn(Open<'_>)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tenure.db");
        case(&|| Box::new(SqliteStore::open(&path, clock()).unwrap()));
    }

    #[test]
    fn a_reader_misses_no_event() {
        in_a_file(a_reader_that_goes_on_from_its_cursor_misses_no_event);
    }

    #[test]
    fn a_deadline_bounds_a_transaction() {
        in_a_file(a_transaction_is_begun_by_its_deadline_or_not_at_all);
    }
}

mod in_memory {
    use tenure_core::store::Store;
    use tenure_store::SqliteStore;
    use tenure_testkit::conformance::sample::clock;

    fn run(case: fn(&mut dyn Store)) {
        let mut store = SqliteStore::in_memory(clock()).unwrap();
        store.check_statements(super::plans::check);
        case(&mut store);
    }

    tenure_testkit::conformance!(run);
}
