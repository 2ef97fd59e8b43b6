//! What a shared store forgets: sessions that keepers watched, and the rows of machines that are long silent.

use std::collections::BTreeMap;

use tenure_core::id::KeeperId;
use tenure_core::time::Timestamp;
use tenure_service::RenewKeeper;
use tenure_testkit::FakeWorld;
use tenure_testkit::postgres::PostgresServer;

use super::{Desk, bytes, made};

fn renewal(number: u32) -> RenewKeeper {
    RenewKeeper {
        id: KeeperId::mint(bytes(number)),
        uid: 0,
        pid: 99,
        version: "0".into(),
        host_name: "here".into(),
        started_at: Timestamp(0),
        acknowledged: None,
    }
}

/// Sessions `n0` to `n5`, watched by keeper 1.
fn watched(url: &str) -> Desk {
    let world = FakeWorld::new();
    let mut desk = Desk::new(url, &world, &[100]);
    for number in 0..6 {
        desk.at(&[100 + number]);
        desk.register(&format!("n{number}")).unwrap();
    }
    let renewed = desk.call(|service| service.renew_keeper(&renewal(1)));
    assert_eq!(renewed.unwrap().watched.len(), 6);
    desk
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn ended_sessions_go_although_a_keeper_watched_them() {
    let server = PostgresServer::shared();
    let url = made(&server);
    let schema = url.rsplit_once("schema=").unwrap().1.to_owned();
    let mut desk = watched(&url);
    server.run(&format!(
        "UPDATE {schema}.sessions SET closed_at = 5, closed_by = 'end', closed_why = 'it ended' WHERE native_id <> 'n0'; \
         UPDATE {schema}.events SET at = 5"
    ));
    let before = Timestamp(1000);
    let found = desk
        .call(|service| service.forget_sessions(before, None, false))
        .unwrap();
    let kept = BTreeMap::from([("event", 1)]);
    assert_eq!(
        (found.sessions, &found.kept),
        (4, &kept),
        "the newest event"
    );
    while desk
        .call(|service| service.forget_events_before(Some(before)))
        .unwrap()
    {}
    let gone = desk
        .call(|service| service.forget_sessions(before, None, true))
        .unwrap();
    assert_eq!((gone.sessions, gone.kept), (4, kept));
    let again = desk
        .call(|service| service.forget_sessions(before, None, true))
        .unwrap();
    assert_eq!(again.sessions, 0);
    // The keeper goes on with what is left.
    let renewed = desk.call(|service| service.renew_keeper(&renewal(1)));
    assert_eq!(renewed.unwrap().watched.len(), 1);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_machine_that_was_silent_for_30_days_goes_once_none_of_its_sessions_is_open() {
    let server = PostgresServer::shared();
    let url = made(&server);
    let schema = url.rsplit_once("schema=").unwrap().1.to_owned();
    let mut desk = watched(&url);
    let left = |desk: &mut Desk, newest: u32| {
        desk.call(|service| service.renew_keeper(&renewal(newest)))
            .unwrap();
        desk.call(|service| service.keepers()).unwrap().len()
    };
    // Nobody sees its sessions from there, and they are open.
    server.run(&format!(
        "UPDATE {schema}.keepers SET host_id = 'elsewhere', seen_at = seen_at - 31 * 86400000::bigint; \
         UPDATE {schema}.sessions SET host_id = 'elsewhere'"
    ));
    assert_eq!(left(&mut desk, 2), 2);
    server.run(&format!(
        "UPDATE {schema}.sessions SET closed_at = 5, closed_by = 'end', closed_why = 'it ended'; \
         UPDATE {schema}.keepers SET seen_at = seen_at + 2 * 86400000::bigint WHERE host_id = 'elsewhere'"
    ));
    assert_eq!(left(&mut desk, 3), 3, "29 days");
    server.run(&format!(
        "UPDATE {schema}.keepers SET seen_at = seen_at - 2 * 86400000::bigint WHERE host_id = 'elsewhere'"
    ));
    assert_eq!(left(&mut desk, 4), 3, "31 days");
}
