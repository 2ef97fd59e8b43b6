//! From the end of a hold to the grant to a waiter: after kill -9 of the holder, and after a release.
//!
//! Holder and waiter are processes with sessions of their own; the waiter is `tenure claim --wait`. The
//! time runs from before the kill, or before the release, to the waiter's first line on stdout. It holds
//! one commit after a kill and two after a release; what a bare release and claim take on this disk in the
//! same rounds stands beside it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_core::key::Key;
use tenure_service::{ActFor, ReleaseRequest};
use tenure_store::sqlite::SqliteStore;
use tenure_testkit::poll;

use super::process::register;
use super::{Bench, of_row};
use crate::Failed;
use crate::bare::{Bare, Manner};
use crate::place::{BenchStore, answered};
use crate::program::Surroundings;
use crate::report::{Budget, Measurement, Unit};
use crate::sample::Sample;
use crate::seeded::{SMALL, Seeded, reader};
use crate::worker::request;

const BUDGET: Budget = Budget::AtMost(50.0);
const KILLED: &str = "from kill -9 of the holder to the grant, the longest";
const RELEASED: &str = "from a release to the grant, the longest";

/// A process that is a session, registers itself and then becomes what it is to be.
pub(super) struct Actor {
    pub(super) child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Actor {
    /// A shell that runs `script`, in which `$T` is tenure and `$1` the key.
    fn start(
        bench: &Bench,
        around: &Surroundings,
        script: &str,
        key: &str,
    ) -> Result<Self, Failed> {
        let args = ["-c", script, "actor", key];
        let mut child = around
            .call(std::path::Path::new("/bin/sh"), args)
            .command()?
            .env("T", &bench.programs.tenure)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let stdout = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        Ok(Self { child, stdout })
    }

    /// One that holds a key until it is killed.
    fn holder(bench: &Bench, around: &Surroundings, key: &str) -> Result<Self, Failed> {
        let script = "\"$T\" -q register --agent holder --pid $$ && \"$T\" -q claim \"$1\" \
                      && echo ready && exec sleep 600";
        let mut holder = Self::start(bench, around, script, key)?;
        loop {
            let line = holder.line()?;
            if line.trim() == "ready" {
                return Ok(holder);
            }
            if line.is_empty() {
                return Err("the holder did not get the key".into());
            }
        }
    }

    /// One that waits for a key; it is in line when this returns.
    pub(super) fn waiter(
        bench: &Bench,
        around: &Surroundings,
        place: &BenchStore,
        key: &str,
        patience: &str,
    ) -> Result<Self, Failed> {
        let script = format!(
            "\"$T\" register --agent waiter --pid $$ >/dev/null && exec \"$T\" claim \"$1\" --wait {patience} --json"
        );
        let waiter = Self::start(bench, around, &script, key)?;
        let conn = reader(place)?;
        poll(Duration::from_secs(30), "the waiter stands in line", || {
            let sql = "SELECT count(*) FROM waiters WHERE key = ?1";
            match conn.query_row(sql, [key], |row| row.get::<_, i64>(0)) {
                Ok(0) => None,
                Ok(_) => Some(Ok(())),
                Err(error) => Some(Err(error)),
            }
        })?;
        // It stands in line before it sleeps.
        tenure_host::pause::sleep(Duration::from_millis(50));
        Ok(waiter)
    }

    fn line(&mut self) -> Result<String, Failed> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(line)
    }

    /// Waits until it says that it has the key.
    fn await_grant(&mut self, key: &str) -> Result<(), Failed> {
        let line = self.line()?;
        if is_grant(&line, key) {
            return Ok(());
        }
        Err(format!("the waiter said {line:?}").into())
    }

    fn end(mut self) -> Result<(), Failed> {
        self.stdout.read_to_string(&mut String::new())?;
        self.child.wait()?;
        Ok(())
    }
}

/// Whether a line of `claim --json` is the grant of this key.
fn is_grant(line: &str, key: &str) -> bool {
    let answer: Value = serde_json::from_str(line).unwrap_or_default();
    answer["claim"]["key"] == key && answer["claim"]["epoch"].is_u64()
}

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let dir = bench.dir("grant")?;
    let seeded = Seeded::fresh(&dir.join("state"), SMALL)?;
    let place = &seeded.place;
    let around = Surroundings::make(&dir, place.dir())?;
    let rounds = bench.times(100);
    let (mut killed, mut released, mut bare_pairs) = (Vec::new(), Vec::new(), Vec::new());
    let who = register(place)?;
    let mut store = place.store()?;
    let bare = Bare::open(&place.database(), who, Manner::Same, 1)?;
    bare.be_durable()?;
    for round in 0..rounds {
        if round % 10 == 0 {
            bench.say(&format!("grant: round {} of {rounds}", round + 1));
        }
        let key = format!("issue:bench/kill#{round}");
        killed.push(after_kill(bench, &around, place, &key).map_err(of_row(KILLED))?);
        let key = format!("issue:bench/release#{round}");
        let took = after_release(bench, &around, place, &mut store, &key);
        released.push(took.map_err(of_row(RELEASED))?);
        let key = format!("issue:bench/bare#{round}");
        let began = Instant::now();
        if !bare.claim(&key)? {
            return Err(format!("{key} is held").into());
        }
        bare.release(&key)?;
        bare_pairs.push(began.elapsed());
    }
    let bare = Sample::of(bare_pairs);
    Ok(vec![
        row(KILLED, killed, &bare),
        row(RELEASED, released, &bare),
    ])
}

fn after_kill(
    bench: &Bench,
    around: &Surroundings,
    place: &BenchStore,
    key: &str,
) -> Result<Duration, Failed> {
    let mut holder = Actor::holder(bench, around, key)?;
    let mut waiter = Actor::waiter(bench, around, place, key, "30s")?;
    let began = Instant::now();
    holder.child.kill()?;
    waiter.await_grant(key)?;
    let took = began.elapsed();
    holder.end()?;
    waiter.end()?;
    Ok(took)
}

fn after_release(
    bench: &Bench,
    around: &Surroundings,
    place: &BenchStore,
    store: &mut SqliteStore,
    key: &str,
) -> Result<Duration, Failed> {
    let wanted = request(Key::parse(key)?);
    answered(place.service(store).claim(&ActFor::default(), &wanted))?;
    let mut waiter = Actor::waiter(bench, around, place, key, "30s")?;
    let back = ReleaseRequest {
        key: Key::parse(key)?,
        epoch: None,
        done: false,
    };
    let began = Instant::now();
    let answer = place.service(store).release(&ActFor::default(), &back);
    waiter.await_grant(key)?;
    let took = began.elapsed();
    answered(answer)?;
    waiter.end()?;
    Ok(took)
}

fn row(what: &str, times: Vec<Duration>, bare: &Sample) -> Measurement {
    let sample = Sample::of(times);
    let mut row = Measurement {
        group: "grant",
        what: what.to_owned(),
        ours: sample.shown(),
        baseline: bare.shown(),
        number: sample.max() / 1000.0,
        unit: Unit::Millis,
        budget: BUDGET,
        more: Default::default(),
    };
    row.add("ours", sample.json());
    row.add("two_bare_commits", bare.json());
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_known_by_its_data_and_not_by_its_words() {
        let key = "issue:bench/kill#1";
        let line = r#"{"v":1,"claim":{"key":"issue:bench/kill#1","epoch":7},"notices":[]}"#;
        assert!(is_grant(line, key));
        assert!(!is_grant(line, "issue:bench/kill#2"));
        assert!(!is_grant("issue:bench/kill#1 is yours", key));
        let refused = r#"{"v":1,"error":{"kind":"held","key":"issue:bench/kill#1","epoch":7}}"#;
        assert!(!is_grant(refused, key));
        assert!(!is_grant("", key));
    }
}
