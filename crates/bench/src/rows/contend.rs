//! Claim and release in process, eight processes on one store, beside the same transactions by hand.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::Bench;
use super::process::counts_row;
use crate::Failed;
use crate::bare::Who;
use crate::counts::Counts;
use crate::program::{Call, Surroundings};
use crate::report::{Budget, Row, Unit, divide};
use crate::seeded::{SMALL, Seeded, cut_log};

/// How many processes contend.
const WORKERS: u32 = 8;

const BUDGET: Budget = Budget::AtLeast(0.8);

/// Who contends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Same,
    Lean,
}

const SIDES: [Side; 3] = [Side::Same, Side::Ours, Side::Lean];

/// What one round of all workers came to.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    pairs_per_second: f64,
    refused_per_second: f64,
    p99_us: f64,
}

struct Field<'a> {
    bench: &'a Bench,
    seeded: Seeded,
    around: Surroundings,
}

impl Field<'_> {
    fn call(&self, side: Side, worker: u32, key: &str, until: &str) -> Call {
        let seed = &self.seeded.seed;
        let n = seed.sessions - 1 - worker;
        let who = Who {
            token: seed.token(n),
            process: seed.process(n),
        };
        let place = &self.seeded.place;
        let mut args = match side {
            Side::Ours => {
                let home = place.dir().to_string_lossy().into_owned();
                let args = ["worker".into(), home, key.into(), until.into()];
                return self.around.call(&self.bench.programs.own, args);
            }
            Side::Same => vec!["same".to_owned()],
            Side::Lean => vec!["lean".to_owned()],
        };
        args.insert(0, place.database().to_string_lossy().into_owned());
        args.push("1".into());
        args.extend(who.args());
        args.extend(["contend".into(), key.into(), until.into()]);
        self.around.call(&self.bench.programs.bare, args)
    }

    fn round(&self, side: Side, same_key: bool) -> Result<Round, Failed> {
        let until = if self.bench.quick { "0.5s" } else { "2s" };
        let workers: Result<Vec<Worker>, Failed> = (0..WORKERS)
            .map(|worker| {
                let number = if same_key { 0 } else { worker + 1 };
                let key = format!("issue:bench/{side:?}#{number}");
                Worker::start(&self.call(side, worker, &key, until))
            })
            .collect();
        let mut workers = workers?;
        for worker in &mut workers {
            worker.await_ready()?;
        }
        for worker in &mut workers {
            worker.stdin.write_all(b"go\n")?;
        }
        let mut round = Round::default();
        for worker in workers {
            let tally = worker.finish()?;
            let number = |name: &str| tally.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            round.pairs_per_second += divide(number("pairs"), number("seconds"));
            round.refused_per_second += divide(number("refused"), number("seconds"));
            round.p99_us = round.p99_us.max(number("p99_us"));
        }
        Ok(round)
    }

    /// What one pair costs without anybody else: the difference of two runs, without their start.
    fn counts(&self, side: Side) -> Result<Counts, Failed> {
        const FEW: u64 = 20;
        const MANY: u64 = 120;
        let key = format!("issue:bench/{side:?}#99");
        let scratch = self.bench.dir("counts")?;
        let run = |pairs: u64| {
            let call = self.call(side, 0, &key, &pairs.to_string());
            Counts::of(&call, &scratch, || cut_log(&self.seeded.place))
        };
        let (few, many) = (run(FEW)?, run(MANY)?);
        let per_pair =
            |few: Option<u64>, many: Option<u64>| Some(many?.saturating_sub(few?) / (MANY - FEW));
        Ok(Counts {
            instructions: per_pair(few.instructions, many.instructions),
            system_calls: per_pair(few.system_calls, many.system_calls),
            peak_kib: None,
        })
    }
}

struct Worker {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Worker {
    fn start(call: &Call) -> Result<Self, Failed> {
        let mut child = call
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let stdin = child.stdin.take().ok_or("no stdin")?;
        let stdout = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        Ok(Self {
            child,
            stdin,
            stdout,
        })
    }

    fn line(&mut self) -> Result<String, Failed> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(line)
    }

    fn await_ready(&mut self) -> Result<(), Failed> {
        match self.line()?.trim() {
            "ready" => Ok(()),
            other => Err(format!("a worker said {other:?}").into()),
        }
    }

    fn finish(mut self) -> Result<Value, Failed> {
        let line = self.line()?;
        self.child.wait()?;
        Ok(serde_json::from_str(&line)?)
    }
}

pub(super) fn rows(bench: &Bench) -> Result<Vec<Row>, Failed> {
    let dir = bench.dir("contend")?;
    let seeded = Seeded::fresh(&dir.join("state"), SMALL)?;
    let around = Surroundings::make(&dir, seeded.place.dir())?;
    let field = Field {
        bench,
        seeded,
        around,
    };
    let mut rows = Vec::new();
    for (same_key, name) in [(false, "own keys"), (true, "one key")] {
        let mut rounds: [Vec<Round>; 3] = Default::default();
        let count = bench.times(100) / 10;
        for round in 1..=count.max(2) {
            bench.say(&format!(
                "contend: {name}, round {round} of {}",
                count.max(2)
            ));
            for (side, rounds) in SIDES.into_iter().zip(&mut rounds) {
                rounds.push(field.round(side, same_key)?);
            }
        }
        let [same, ours, lean] = rounds.map(Summary::of);
        let what = format!("claim+release, 8 processes, {name} : by hand, same statements");
        rows.push(ours.beside(&same, what, BUDGET));
        let what = format!("claim+release, 8 processes, {name} : by hand, no statement too many");
        rows.push(ours.beside(&lean, what, Budget::None));
    }
    bench.say("contend: counting instructions and system calls of one pair");
    let [same, ours, lean] = [
        field.counts(Side::Same)?,
        field.counts(Side::Ours)?,
        field.counts(Side::Lean)?,
    ];
    let what = "one claim+release alone : by hand, same statements";
    rows.push(counts_row("contend", what, ours, same, Budget::None));
    let what = "one claim+release alone : by hand, no statement too many";
    rows.push(counts_row("contend", what, ours, lean, Budget::None));
    Ok(rows)
}

/// The middle of several rounds.
struct Summary {
    middle: Round,
    all: Vec<f64>,
}

impl Summary {
    fn of(rounds: Vec<Round>) -> Self {
        let all: Vec<f64> = rounds.iter().map(|round| round.pairs_per_second).collect();
        let mut sorted = rounds;
        sorted.sort_by(|a, b| a.pairs_per_second.total_cmp(&b.pairs_per_second));
        let middle = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
        Self { middle, all }
    }

    fn shown(&self) -> String {
        let mut shown = format!("{:.0}/s", self.middle.pairs_per_second);
        if self.middle.refused_per_second > 0.0 {
            shown.push_str(&format!(
                ", {:.0} refused/s",
                self.middle.refused_per_second
            ));
        }
        shown
    }

    fn json(&self) -> Value {
        json!({
            "pairs_per_second": self.middle.pairs_per_second,
            "refused_per_second": self.middle.refused_per_second,
            "p99_us": self.middle.p99_us,
            "rounds": self.all,
        })
    }

    fn beside(&self, baseline: &Summary, what: String, budget: Budget) -> Row {
        let mut row = Row {
            group: "contend",
            what,
            ours: self.shown(),
            baseline: baseline.shown(),
            number: divide(
                self.middle.pairs_per_second,
                baseline.middle.pairs_per_second,
            ),
            unit: Unit::Times,
            budget,
            more: Default::default(),
        };
        row.add("ours", self.json());
        row.add("baseline", baseline.json());
        row
    }
}
