//! The conformance suite on SQLite, in a file and in memory.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

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
        case(&mut SqliteStore::in_memory(clock()).unwrap());
    }

    tenure_testkit::conformance!(run);
}
