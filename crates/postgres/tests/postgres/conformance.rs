//! The conformance suite on PostgreSQL, directly and through a transaction pooler.

use tenure_core::store::Store;
use tenure_testkit::postgres::{Bouncer, PoolMode, PostgresServer};

use super::support::{made, open};

mod direct {
    use super::*;

    fn run(case: fn(&mut dyn Store)) {
        let server = PostgresServer::shared();
        let url = server.url(&server.new_schema());
        let mut store = made(&url);
        assert!(store.is_shared() && store.locks_rows());
        case(&mut store);
    }

    tenure_testkit::conformance!(ignored run);
}

mod pooled {
    use super::*;

    fn run(case: fn(&mut dyn Store)) {
        let server = PostgresServer::shared();
        let schema = server.new_schema();
        drop(made(&server.url(&schema)));
        let bouncer = Bouncer::start(&server, PoolMode::Transaction, 3);
        case(&mut open(&bouncer.url(&schema)));
    }

    tenure_testkit::conformance!(ignored run);
}

mod together {
    use tenure_testkit::conformance::together::*;

    use super::*;

    type Open<'a> = &'a (dyn Fn() -> Box<dyn Store> + Sync);

    fn direct(case: fn(Open<'_>)) {
        let server = PostgresServer::shared();
        let url = server.url(&server.new_schema());
        drop(made(&url));
        case(&|| Box::new(open(&url)));
    }

    fn pooled(case: fn(Open<'_>)) {
        let server = PostgresServer::shared();
        let schema = server.new_schema();
        drop(made(&server.url(&schema)));
        let bouncer = Bouncer::start(&server, PoolMode::Transaction, 3);
        let url = bouncer.url(&schema);
        case(&|| Box::new(open(&url)));
    }

    #[test]
    #[ignore = "needs a server: scripts/test --stage postgres"]
    fn a_reader_misses_no_event() {
        direct(a_reader_that_goes_on_from_its_cursor_misses_no_event);
    }

    #[test]
    #[ignore = "needs a server: scripts/test --stage postgres"]
    fn a_reader_misses_no_event_through_a_pooler() {
        pooled(a_reader_that_goes_on_from_its_cursor_misses_no_event);
    }

    #[test]
    #[ignore = "needs a server: scripts/test --stage postgres"]
    fn a_deadline_bounds_a_transaction() {
        direct(a_transaction_is_begun_by_its_deadline_or_not_at_all);
    }
}
