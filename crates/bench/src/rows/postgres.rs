//! Claim and release in process on PostgreSQL, beside the same statements by hand over the same socket; and how often
//! each use case waits for the server.

use std::time::Instant;

use serde_json::Map;
use tenure_core::key::Key;
use tenure_postgres::PostgresStore;
use tenure_postgres::migrate;
use tenure_service::{ActFor, GuardRequest, ReleaseRequest, RenewRequest};
use tenure_store::server::{Access, PostgresUrl};
use tenure_testkit::postgres::PostgresServer;

use super::Bench;
use crate::Failed;
use crate::bare_postgres::{BarePostgres, Claimer};
use crate::place::{BenchStore, answered};
use crate::report::{Budget, Measurement, Unit, divide};
use crate::sample::Sample;
use crate::worker::request;

/// What part of the speed of hand-written statements ours has at least.
const BUDGET: Budget = Budget::AtLeast(0.7);
/// How often a claim may wait for the server.
const TRIPS: Budget = Budget::AtMost(5.0);

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    if std::env::var_os("TENURE_POSTGRES").is_none() {
        return Err("TENURE_POSTGRES names no server".into());
    }
    let server = PostgresServer::own(&[]);
    let schema = server.new_schema();
    let url = PostgresUrl::parse(&server.url(&schema)).map_err(|bad| bad.to_string())?;
    let access = Access {
        password: None,
        url,
        root_certificates: None,
        through: None,
    };
    migrate(&access)?;
    let mut store = PostgresStore::open(access, [1; 16], None)?;
    let place = BenchStore::open(&bench.dir("postgres")?.join("state"))?;
    let session = place.register(&mut store)?.session;
    let observer = place.observer();
    let who = Claimer {
        life: i64::from(session.process.life),
        session: session.id,
        pids: place.pids().into_iter().map(i64::from).collect(),
        host: observer.host.as_str().to_owned(),
        boot: observer.boot.id.clone(),
        boot_private: observer.boot.private,
        pid_ns: observer.pid_ns.cast_signed(),
    };
    let mut bare = BarePostgres::connect(&server.socket_dir(), server.port(), &schema, who)?;
    let mut rows = vec![pairs(bench, &place, &mut store, &mut bare)?];
    rows.append(&mut trips(&place, &mut store)?);
    Ok(rows)
}

fn release(key: &str) -> Result<ReleaseRequest, Failed> {
    Ok(ReleaseRequest {
        key: Key::parse(key)?,
        epoch: None,
        done: false,
    })
}

fn pairs(
    bench: &Bench,
    place: &BenchStore,
    store: &mut PostgresStore,
    bare: &mut BarePostgres,
) -> Result<Measurement, Failed> {
    let (mut ours, mut by_hand) = (Vec::new(), Vec::new());
    bench.say("postgres: claim and release");
    for _ in 0..bench.times(2000) {
        let at = Instant::now();
        let me = ActFor::default();
        answered(
            place
                .service(store)
                .claim(&me, &request(Key::parse("wp:ours")?)),
        )?;
        answered(place.service(store).release(&me, &release("wp:ours")?))?;
        ours.push(at.elapsed());
        let at = Instant::now();
        bare.claim("wp:bare")?;
        bare.release("wp:bare")?;
        by_hand.push(at.elapsed());
    }
    let (ours, by_hand) = (Sample::of(ours), Sample::of(by_hand));
    let what = "claim+release in process : by hand, same statements";
    let mut row = Measurement::ratio("postgres", what, &ours, &by_hand, BUDGET);
    // As much work in the same time.
    row.number = divide(by_hand.median(), ours.median());
    Ok(row)
}

fn trips(place: &BenchStore, store: &mut PostgresStore) -> Result<Vec<Measurement>, Failed> {
    let mut rows = Vec::new();
    let mut count = |store: &mut PostgresStore,
                     what: &str,
                     budget: Budget,
                     act: &dyn Fn(&mut PostgresStore) -> Result<(), Failed>|
     -> Result<(), Failed> {
        let before = store.traffic().round_trips;
        act(store)?;
        let trips = u32::try_from(store.traffic().round_trips - before)?;
        rows.push(Measurement {
            group: "postgres",
            what: format!("round trips of {what}"),
            ours: trips.to_string(),
            baseline: String::new(),
            number: f64::from(trips),
            unit: Unit::RoundTrips,
            budget,
            more: Map::new(),
        });
        Ok(())
    };
    let me = ActFor::default();
    let claim = request(Key::parse("wp:trips")?);
    let guard = GuardRequest {
        key: Key::parse("wp:trips")?,
        epoch: None,
    };
    let back = release("wp:trips")?;
    count(store, "a claim", TRIPS, &|store| {
        answered(place.service(store).claim(&me, &claim)).map(|_| ())
    })?;
    count(store, "a guard", Budget::None, &|store| {
        answered(place.service(store).guard(&me, &guard)).map(|_| ())
    })?;
    count(store, "a renewal", Budget::None, &|store| {
        answered(
            place
                .service(store)
                .renew(&me, &RenewRequest { length: None }),
        )
        .map(|_| ())
    })?;
    count(store, "a release", Budget::None, &|store| {
        answered(place.service(store).release(&me, &back)).map(|_| ())
    })?;
    Ok(rows)
}
