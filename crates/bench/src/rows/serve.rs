//! `tenure serve`: a list of ten thousand sessions over HTTP beside the same query in process, 200 readers of the live
//! stream, and its dashboard.

use std::io::{BufRead, BufReader};
use std::time::Instant;

use serde_json::Map;
use tenure_core::key::Key;
use tenure_service::{ActFor, ListRequest};

use super::serve_process::ServeProcess;
use super::{Bench, dashboard};
use crate::Failed;
use crate::place::{BenchStore, answered};
use crate::program::Surroundings;
use crate::report::{Budget, Measurement, Unit};
use crate::sample::Sample;
use crate::seeded::Seeded;
use crate::worker::request;

const SESSIONS: u32 = 10_000;
const READERS: usize = 200;
pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let dir = bench.dir("serve")?;
    let seeded = Seeded::fresh(&dir.join("state"), SESSIONS)?;
    let place = seeded.place;
    let around = Surroundings::make(&dir, place.dir())?;
    // The first read records the deaths that the seed left open.
    around.call(&bench.programs.tenure, ["ps", "-a"]).run()?;
    // Before this process is a session: an agent makes no token.
    let server = ServeProcess::start(bench, &around)?;
    let mut store = place.store()?;
    place.register(&mut store)?;
    server.timed("/readyz")?;
    let idle = server.memory()?;
    let mut rows = vec![mebibytes("an idle server, without a reader", idle, 30.0)];
    rows.push(lists(bench, &server, &place)?);
    rows.extend(readers(bench, &server, &place)?);
    rows.extend(dashboard::rows(bench)?);
    Ok(rows)
}

fn lists(bench: &Bench, server: &ServeProcess, place: &BenchStore) -> Result<Measurement, Failed> {
    let (mut over_http, mut in_process) = (Vec::new(), Vec::new());
    let request = ListRequest {
        closed_too: true,
        limit: 0,
        ..ListRequest::default()
    };
    let mut store = place.store()?;
    let mut bytes = 0;
    for round in 0..bench.times(20) {
        if round % 10 == 0 {
            bench.say(&format!("serve: round {}", round + 1));
        }
        let (took, length) = server.timed("/api/v1/sessions?all=true&limit=10000")?;
        over_http.push(took);
        bytes = length;
        let began = Instant::now();
        let listed = answered(place.service(&mut store).list(&request))?;
        let text = serde_json::to_vec(&listed.items)?;
        in_process.push(began.elapsed());
        if text.len() > bytes * 2 {
            return Err("the server leaves rows out".into());
        }
    }
    let (ours, theirs) = (Sample::of(over_http), Sample::of(in_process));
    let what = "a list of 10,000 sessions over HTTP : the same query in process";
    let mut row = Measurement::ratio("serve", what, &ours, &theirs, Budget::AtMost(2.0));
    row.add("bytes", bytes);
    Ok(row)
}

/// From a commit until every reader of the stream has it.
fn readers(
    bench: &Bench,
    server: &ServeProcess,
    place: &BenchStore,
) -> Result<Vec<Measurement>, Failed> {
    let before = server.memory()?;
    let mut streams = Vec::new();
    for _ in 0..READERS {
        let more = "Accept: text/event-stream\r\n";
        streams.push(BufReader::new(server.ask("/api/v1/events?rows=10", more)?));
    }
    for stream in &mut streams {
        until(stream, "event: snapshot")?;
    }
    let after = server.memory()?;
    let mut store = place.store()?;
    let mut lags = Vec::new();
    for number in 0..bench.times(20) {
        let key = format!("issue:bench/serve#{}", number + 1);
        let claim = request(Key::parse(&key)?);
        answered(place.service(&mut store).claim(&ActFor::default(), &claim))?;
        let began = Instant::now();
        for stream in &mut streams {
            until(stream, &key)?;
        }
        lags.push(began.elapsed());
    }
    let lags = Sample::of(lags);
    let lag = Measurement {
        group: "serve",
        what: format!("from a claim's commit until {READERS} readers of the stream have it"),
        ours: lags.shown(),
        baseline: String::new(),
        number: lags.median() / 1000.0,
        unit: Unit::Millis,
        budget: Budget::AtMost(1000.0),
        more: Map::new(),
    };
    let what = format!("a server with {READERS} readers of the stream, beyond one without");
    Ok(vec![mebibytes(&what, after - before, 30.0), lag])
}

/// Reads until a line has these words.
fn until(stream: &mut impl BufRead, words: &str) -> Result<(), Failed> {
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(format!("the stream ended before {words:?}").into());
        }
        if line.contains(words) {
            return Ok(());
        }
    }
}

fn mebibytes(what: &str, number: f64, most: f64) -> Measurement {
    Measurement {
        group: "serve",
        what: what.to_owned(),
        ours: format!("{number:.1} MiB"),
        baseline: String::new(),
        number,
        unit: Unit::Mebibytes,
        budget: Budget::AtMost(most),
        more: Map::new(),
    }
}
