//! The dashboard in Chromium: what of it a browser loads, and how soon it shows a fleet, beside a plain HTML table with the
//! same rows.

use std::process::{Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Map, Value, json};
use tenure_testkit::seed::{Seed, seed};

use super::Bench;
use super::serve_process::ServeProcess;
use crate::Failed;
use crate::place::BenchStore;
use crate::program::Surroundings;
use crate::report::{Budget, Measurement, Unit};
use crate::sample::Sample;

const SESSIONS: u32 = 1_000;
/// How many rows the page draws before somebody asks for more.
const ROWS: u32 = 100;
/// The page, as it is sent.
const MAX_KILOBYTES: f64 = 200.0;
/// How much longer than the plain table the page may take: docs/decisions/0050 says why it is not less.
const PAINT: Budget = Budget::AtMost(5.0);
const SCRIPT: &str = include_str!("dashboard.mjs");

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let dir = bench.dir("dashboard")?;
    let place = BenchStore::open(&dir.join("state"))?;
    let around = Surroundings::make(&dir, place.dir())?;
    // Before this process is a session: an agent makes no token.
    let server = ServeProcess::start(bench, &around)?;
    live_fleet(&place)?;
    bench.say("serve: the dashboard in Chromium");
    let chromium = tool("TENURE_CHROMIUM")?;
    let script = dir.join("dashboard.mjs");
    fs_err::write(&script, SCRIPT)?;
    let asked = json!({
        "address": server.address,
        "token": server.token,
        "chromium": chromium,
        "profile": dir.join("profile"),
        "rows": ROWS,
        "rounds": bench.times(30),
    });
    let output = Command::new("node")
        .arg(&script)
        .arg(asked.to_string())
        .env("TENURE_WEB_TOOLS", tool("TENURE_WEB_TOOLS")?)
        .env("HOME", &dir)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("the script in Chromium ended with {}", output.status).into());
    }
    let shown: Value = serde_json::from_slice(&output.stdout)?;
    let bytes = shown["bytes"].as_f64().ok_or("it counted no bytes")?;
    let kilobytes = bytes / 1000.0;
    let page = Measurement {
        group: "serve",
        what: "what a browser loads of the dashboard".to_owned(),
        ours: format!("{kilobytes:.0} kB"),
        baseline: String::new(),
        number: kilobytes,
        unit: Unit::Kilobytes,
        budget: Budget::AtMost(MAX_KILOBYTES),
        more: Map::new(),
    };
    let what = format!(
        "until a fleet of {SESSIONS} sessions is painted : a plain HTML table of the {ROWS} rows drawn"
    );
    let (ours, plain) = (sample(&shown["page"])?, sample(&shown["plain"])?);
    let paint = Measurement::ratio("serve", what, &ours, &plain, PAINT);
    Ok(vec![page, paint])
}

/// Times in milliseconds.
fn sample(times: &Value) -> Result<Sample, Failed> {
    let times = times.as_array().ok_or("it measured nothing")?.iter();
    let times = times.map(|time| time.as_f64().ok_or("a time is no number"));
    let times = times.map(|time| time.map(|time| Duration::from_secs_f64(time / 1000.0)));
    let times: Vec<Duration> = times.collect::<Result<_, _>>()?;
    Ok(Sample::of(times))
}

fn tool(variable: &str) -> Result<String, Failed> {
    let found = std::env::var(variable);
    found.map_err(|_| format!("{variable} is not set; run scripts/bench").into())
}

/// Fills the store with sessions that this process hosts, so that all of them live.
fn live_fleet(place: &BenchStore) -> Result<(), Failed> {
    let mut store = place.store()?;
    place.register(&mut store)?;
    let observer = place.observer();
    let all = Seed {
        sessions: SESSIONS - 1,
        open: SESSIONS - 1,
        host: observer.host.clone(),
        boot: observer.boot.clone(),
        pid_ns: observer.pid_ns,
    };
    seed(&mut store, &all)?;
    drop(store);
    let conn = Connection::open(place.database())?;
    conn.execute(
        "UPDATE sessions SET hosted = 1, title = 'Work on ' || handle, \
           (host_id, boot_id, boot_private, pid_ns, pid, start_ticks, start_shifted) = \
           (SELECT host_id, boot_id, boot_private, pid_ns, pid, start_ticks, start_shifted FROM sessions WHERE agent = 'bench') \
         WHERE agent <> 'bench'",
        [],
    )?;
    Ok(())
}
