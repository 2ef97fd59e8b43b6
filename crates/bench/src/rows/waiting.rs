//! What an hour of waiting costs, in a quiet store and beside a session that beats ten times a second, and
//! what a crowd of waiters costs for each beat of a stranger.

use std::time::{Duration, Instant};

use tenure_core::key::Key;
use tenure_host::pause;
use tenure_service::{ActFor, RenewRequest};

use super::Bench;
use super::grant::Actor;
use crate::Failed;
use crate::place::answered;
use crate::program::Surroundings;
use crate::report::{Budget, Measurement, Unit};
use crate::seeded::{SMALL, Seeded};
use crate::worker::request;

const KEY: &str = "issue:bench/wait#1";
const BEAT: Duration = Duration::from_millis(100);
/// How many wait in the crowd, and how often a stranger beats beside them.
const CROWD: usize = 30;
const BEATS: u32 = 40;
/// How long a waiter may be restless after it has come.
const SETTLING: Duration = Duration::from_secs(3);

/// What a process has used so far.
#[derive(Debug, Clone, Copy)]
struct Used {
    cpu: Duration,
    switches: u64,
}

impl Used {
    fn by(pid: u32) -> Result<Self, Failed> {
        let schedstat = fs_err::read_to_string(format!("/proc/{pid}/schedstat"))?;
        let nanos = schedstat.split_ascii_whitespace().next().unwrap_or("0");
        let status = fs_err::read_to_string(format!("/proc/{pid}/status"))?;
        let switches = status
            .lines()
            .filter_map(|line| line.split_once("ctxt_switches:"))
            .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
            .sum();
        Ok(Self {
            cpu: Duration::from_nanos(nanos.parse()?),
            switches,
        })
    }
}

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let dir = bench.dir("waiting")?;
    let seeded = Seeded::fresh(&dir.join("state"), SMALL)?;
    let place = &seeded.place;
    let around = Surroundings::make(&dir, place.dir())?;
    let mut store = place.store()?;
    place.register(&mut store)?;
    let wanted = request(Key::parse(KEY)?);
    answered(place.service(&mut store).claim(&ActFor::default(), &wanted))?;
    let mut waiter = Actor::waiter(bench, &around, place, KEY, "1h")?;
    let pid = waiter.child.id();
    let length = Duration::from_secs(if bench.quick { 3 } else { 20 });

    bench.say("waiting: in a quiet store");
    pause::sleep(SETTLING);
    let quiet = over(pid, || {
        pause::sleep(length);
        Ok(())
    })?;
    bench.say("waiting: beside a session that beats");
    let busy = over(pid, || {
        let end = Instant::now() + length;
        while Instant::now() < end {
            let mut service = place.service(&mut store);
            answered(service.renew(&ActFor::default(), &RenewRequest::default()))?;
            pause::sleep(BEAT);
        }
        Ok(())
    })?;
    still_waits(&mut waiter)?;
    waiter.child.kill()?;
    waiter.child.wait()?;
    bench.say("waiting: a crowd beside a session that beats");
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        crowd.push(Actor::waiter(bench, &around, place, KEY, "1h")?);
    }
    pause::sleep(SETTLING);
    let pids: Vec<u32> = crowd.iter().map(|waiter| waiter.child.id()).collect();
    let used = |pids: &[u32]| -> Result<Duration, Failed> {
        let each = pids.iter().map(|pid| Used::by(*pid).map(|used| used.cpu));
        each.sum()
    };
    let before = used(&pids)?;
    for _ in 0..BEATS {
        let mut service = place.service(&mut store);
        answered(service.renew(&ActFor::default(), &RenewRequest::default()))?;
        pause::sleep(BEAT);
    }
    let spent = used(&pids)?.saturating_sub(before);
    for mut waiter in crowd {
        still_waits(&mut waiter)?;
        waiter.child.kill()?;
        waiter.child.wait()?;
    }
    Ok(vec![
        row("claim --wait in a quiet store", quiet),
        row("claim --wait beside a beat each 100 ms", busy),
        crowd_row(spent / BEATS),
    ])
}

/// Fails if a waiter has ended: from then on it cost nothing.
fn still_waits(waiter: &mut Actor) -> Result<(), Failed> {
    match waiter.child.try_wait()? {
        None => Ok(()),
        Some(status) => Err(format!("a waiter ended with {status}").into()),
    }
}

/// The processor time of all waiters together for one beat of a session that they do not wait for.
fn crowd_row(each: Duration) -> Measurement {
    Measurement {
        group: "waiting",
        what: format!("{CROWD} waiters, for each beat of a stranger"),
        ours: format!("{:.2} ms of CPU", each.as_secs_f64() * 1000.0),
        baseline: String::new(),
        number: each.as_secs_f64() * 1000.0,
        unit: Unit::Millis,
        budget: Budget::AtMost(3.0),
        more: Default::default(),
    }
}

/// What a process uses while something goes on, for an hour of it: seconds and switches.
fn over(pid: u32, what: impl FnOnce() -> Result<(), Failed>) -> Result<(f64, f64), Failed> {
    let before = Used::by(pid)?;
    let began = Instant::now();
    what()?;
    let hours = began.elapsed().as_secs_f64() / 3600.0;
    let after = Used::by(pid)?;
    let cpu = after.cpu.saturating_sub(before.cpu).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let switches = after.switches.saturating_sub(before.switches) as f64;
    Ok((cpu / hours, switches / hours))
}

fn row(what: &str, (seconds, switches): (f64, f64)) -> Measurement {
    let mut row = Measurement {
        group: "waiting",
        what: what.to_owned(),
        ours: format!("{switches:.0} switches/h"),
        baseline: String::new(),
        number: seconds,
        unit: Unit::CpuSecondsPerHour,
        budget: Budget::None,
        more: Default::default(),
    };
    row.add("context_switches_per_hour", switches);
    row
}
