//! The keeper: what a hook costs through it, what it takes by itself, and what many of them ask of a server.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value};
use tenure_core::ignore::Ignore;
use tenure_host::pause;
use tenure_testkit::poll;
use tenure_testkit::postgres::PostgresServer;

use super::Bench;
use super::hook::{START, TOOL, written};
use super::process::counts_row;
use crate::Failed;
use crate::counts::Counts;
use crate::program::{ProgramCall, Surroundings};
use crate::report::{Budget, Measurement, Unit};
use crate::sample::Sample;
use crate::seeded::{SMALL, Seeded, fill_log, keep_log_filled};

const GROUP: &str = "keeper";
/// What a beat through the keeper may cost, in hooks on SQLite.
const BUDGET: Budget = Budget::AtMost(1.5);
const MAX_MEMORY: Budget = Budget::AtMost(18.0);
/// How many keepers share a server, and how many sessions each watches.
const KEEPERS: usize = 20;
const SESSIONS: usize = 50;
/// How long they are counted: three beats.
const COUNTED: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(60);
/// How many wait for one key, which, and how long they may be restless after they have come.
const WAITERS: u32 = 50;
const WANTED: &str = "wp:line";
const SETTLING: Duration = Duration::from_secs(5);

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    if std::env::var_os("TENURE_POSTGRES").is_none() {
        return Err("TENURE_POSTGRES names no server".into());
    }
    // Every statement is a line of its log.
    let server = PostgresServer::own(&["log_statement = 'all'", "log_min_messages = log"]);
    let dir = bench.dir(GROUP)?;
    let mut rows = beats(bench, &dir, &server)?;
    rows.append(&mut line(bench, &dir, &server)?);
    rows.append(&mut crowd(bench, &dir, &server)?);
    Ok(rows)
}

/// A machine with a store on the server; its keeper ends with it.
struct Machine<'a> {
    bench: &'a Bench,
    around: Surroundings,
    url: String,
}

impl<'a> Machine<'a> {
    fn make(bench: &'a Bench, dir: &Path, url: &str) -> Result<Self, Failed> {
        fs_err::create_dir_all(dir)?;
        Ok(Self {
            bench,
            around: Surroundings::make(dir, &dir.join("state"))?,
            url: url.to_owned(),
        })
    }

    fn call(&self, args: &[&str]) -> ProgramCall {
        let args = args.iter().map(|word| (*word).to_owned());
        let call = self.around.call(&self.bench.programs.tenure, args);
        call.env("TENURE_STORE", self.url.clone())
    }

    /// What the keeper here says about itself, if one runs.
    fn keeper(&self) -> Result<Value, Failed> {
        let mut command = self.call(&["keeper", "status", "--json"]).command()?;
        let said = command.stdout(Stdio::piped()).output()?;
        let said: Value = serde_json::from_slice(&said.stdout)?;
        Ok(said["keeper"]["local"].clone())
    }

    /// Waits until the keeper watches this many.
    fn watches(&self, sessions: usize) {
        poll(PATIENCE, "the keeper watches its sessions", || {
            let watched = self.keeper().ok()?["sessions"].as_u64()?;
            (usize::try_from(watched) == Ok(sessions)).then_some(())
        });
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        self.call(&["keeper", "stop"])
            .run()
            .ignore("it ends by itself when there is nothing to watch");
    }
}

/// A tool's use through the keeper beside the same on SQLite, and the memory of the keeper.
fn beats(bench: &Bench, dir: &Path, server: &PostgresServer) -> Result<Vec<Measurement>, Failed> {
    let seeded = Seeded::fresh(&dir.join("state"), SMALL)?;
    let around = Surroundings::make(dir, seeded.place.dir())?;
    let machine = Machine::make(bench, &dir.join("one"), &server.url("one"))?;
    machine.call(&["store", "migrate"]).run()?;
    let files = (
        written(dir, "start.json", START)?,
        written(dir, "tool.json", TOOL)?,
    );
    let hook = |call: ProgramCall, event: &Path| {
        let own = std::process::id().to_string();
        call.env("CLAUDE_PID", own).stdin(event)
    };
    let plain = |event: &Path| {
        let call = around.call(&bench.programs.tenure, ["hook", "claude"]);
        hook(call, event)
    };
    let kept = |event: &Path| hook(machine.call(&["hook", "claude"]), event);
    let (ours, theirs) = (kept(&files.1), plain(&files.1));
    for start in [
        kept(&files.0),
        plain(&files.0),
        ours.clone(),
        theirs.clone(),
    ] {
        start.run()?;
    }
    machine.watches(1);
    ours.run()?;
    bench.say("keeper: beats");
    let (mut through, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..bench.times(600) {
        keep_log_filled(&seeded.place)?;
        through.push(ours.timed()?);
        alone.push(theirs.timed()?);
    }
    let what = "a beat through the keeper : a hook on SQLite";
    let (through, alone) = (Sample::of(through), Sample::of(alone));
    let timed = Measurement::ratio(GROUP, what, &through, &alone, BUDGET);
    around.check_outages()?;
    machine.around.check_outages()?;
    bench.say("keeper: counting instructions and system calls");
    let counted = Counts::of(&ours, dir, || ours.run())?;
    let beside = Counts::of(&theirs, dir, || fill_log(&seeded.place))?;
    let what = "a beat through the keeper : a hook on SQLite, counts";
    let counts = counts_row(GROUP, what, counted, beside, BUDGET);
    Ok(vec![timed, counts, memory(&machine)?])
}

fn memory(machine: &Machine<'_>) -> Result<Measurement, Failed> {
    let pid = machine.keeper()?["pid"].as_u64().ok_or("no keeper runs")?;
    let status = fs_err::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: f64 = kib.ok_or("it has no memory")?.parse()?;
    Ok(row(
        "memory of a keeper",
        format!("{kib} KiB"),
        kib / 1024.0,
        Unit::Mebibytes,
        MAX_MEMORY,
    ))
}

fn row(what: &str, ours: String, number: f64, unit: Unit, budget: Budget) -> Measurement {
    Measurement {
        group: GROUP,
        what: what.to_owned(),
        ours,
        baseline: String::new(),
        number,
        unit,
        budget,
        more: Map::new(),
    }
}

/// A process that a keeper watches.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Result<Self, Failed> {
        let child = Command::new("sleep").arg("1d").stdin(Stdio::null()).spawn();
        Ok(Self(child?))
    }

    /// Ends a command as a person does, so that what it runs ends too: killed with -9 it would leave that alive, which
    /// keeps its claim.
    fn end(mut self) -> Result<(), Failed> {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::TERM)?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0
            .kill()
            .and_then(|()| self.0.wait().map(drop))
            .ignore("it has ended");
    }
}

/// What many keepers ask of one server while nothing happens.
fn crowd(bench: &Bench, dir: &Path, server: &PostgresServer) -> Result<Vec<Measurement>, Failed> {
    let keepers = if bench.quick { 3 } else { KEEPERS };
    let url = server.url("crowd");
    let mut sleepers = Vec::new();
    let mut machines = Vec::new();
    for number in 0..keepers {
        let machine = Machine::make(bench, &dir.join(format!("crowd-{number}")), &url)?;
        if number == 0 {
            machine.call(&["store", "migrate"]).run()?;
        }
        bench.say(&format!("keeper: {} of {keepers}", number + 1));
        for _ in 0..SESSIONS {
            let sleeper = Sleeper::start()?;
            let pid = sleeper.0.id().to_string();
            let words = ["register", "--agent", "sleeper", "--pid", &pid];
            machine.call(&words).run()?;
            sleepers.push(sleeper);
        }
        machine.watches(SESSIONS);
        machines.push(machine);
    }
    let connections =
        server.ask("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tenure'");
    let before = statements(server)?;
    bench.say("keeper: counting statements");
    pause::sleep(COUNTED);
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let asked = (statements(server)? - before) as f64 / COUNTED.as_secs_f64();
    for machine in &machines {
        machine.watches(SESSIONS);
    }
    drop(machines);
    drop(sleepers);
    let connections = connections.first().cloned().unwrap_or_default();
    let what = format!("{} sessions on {keepers} keepers", keepers * SESSIONS);
    Ok(vec![
        row(
            &format!("{what}: statements in a second"),
            format!("{asked:.1}/s"),
            asked,
            Unit::Statements,
            Budget::None,
        ),
        row(
            &format!("{what}: connections"),
            connections.clone(),
            connections.parse()?,
            Unit::Connections,
            Budget::None,
        ),
    ])
}

/// What waiters of two machines for one key ask of the server while they wait, and how soon each is granted.
fn line(bench: &Bench, dir: &Path, server: &PostgresServer) -> Result<Vec<Measurement>, Failed> {
    let url = server.url("line");
    let machines: Vec<Machine<'_>> = ["line-a", "line-b"]
        .iter()
        .map(|name| Machine::make(bench, &dir.join(name), &url))
        .collect::<Result<_, _>>()?;
    machines[0].call(&["store", "migrate"]).run()?;
    bench.say("keeper: waiters");
    let starts = |machine: &Machine<'_>, words: &[&str]| -> Result<Sleeper, Failed> {
        let mut command = machine.call(words).command()?;
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Sleeper(command.spawn()?))
    };
    let number = |sql: &str| -> Result<f64, Failed> {
        let found = server.ask(sql);
        Ok(found.first().ok_or("no row")?.parse()?)
    };
    let held = "SELECT count(*) FROM line.holds WHERE ended_at IS NULL";
    let holder = starts(&machines[0], &["claim", WANTED, "--", "sleep", "1d"])?;
    poll(PATIENCE, "the key is held", || {
        (number(held).ok()? > 0.0).then_some(())
    });
    let mut waiters = Vec::new();
    for count in 0..WAITERS {
        let words = ["claim", WANTED, "--wait", "1h", "--", "true"];
        waiters.push(starts(&machines[usize::from(count % 2 == 1)], &words)?);
    }
    let waiting = "SELECT count(DISTINCT ticket) FROM line.waiters";
    poll(PATIENCE, "all wait", || {
        (number(waiting).ok()? + 0.5 > f64::from(WAITERS)).then_some(())
    });
    let made = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    pause::sleep(SETTLING);
    let before = number(made)?;
    pause::sleep(COUNTED);
    let asked = (number(made)? - before) / COUNTED.as_secs_f64();
    holder.end()?;
    poll(PATIENCE, "all were granted", || {
        (number(waiting).ok()? + number(held).ok()? < 0.5).then_some(())
    });
    let granted = number(
        "SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY next.granted_at - one.ended_at) \
         FROM line.holds one JOIN line.holds next ON next.key = one.key AND next.epoch = one.epoch + 1",
    )?;
    let what = format!("{WAITERS} waiters on two machines");
    Ok(vec![
        row(
            &format!("{what}: transactions in a second"),
            format!("{asked:.1}/s"),
            asked,
            Unit::Statements,
            Budget::AtMost(20.0),
        ),
        row(
            &format!("{what}: a grant after a release, nine of ten"),
            format!("{granted} ms"),
            granted,
            Unit::Millis,
            Budget::AtMost(500.0),
        ),
    ])
}

/// How many statements the server has logged.
fn statements(server: &PostgresServer) -> Result<usize, Failed> {
    let log = fs_err::read_to_string(server.dir().join("log"))?;
    let is_one =
        |line: &&str| line.contains(" LOG:  statement: ") || line.contains(" LOG:  execute ");
    Ok(log.lines().filter(is_one).count())
}
