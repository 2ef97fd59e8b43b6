//! Processes that contend: they are started, begin at one word, and what they say is added up.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::Failed;
use crate::program::ProgramCall;
use crate::report::{Budget, Measurement, Unit, divide};

/// What one round of all workers came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Round {
    /// How often one of them got it and gave it back.
    pub pairs_per_second: f64,
    /// How often one of them was refused.
    pub refused_per_second: f64,
    /// What one in a hundred pairs of the slowest worker exceeds.
    pub p99_us: f64,
    /// The longest pair of all.
    pub longest_us: f64,
}

impl Round {
    /// Starts all of them, lets them begin together, and waits for their ends.
    pub fn of(calls: impl Iterator<Item = ProgramCall>) -> Result<Self, Failed> {
        let workers: Result<Vec<BenchWorker>, Failed> =
            calls.map(|call| BenchWorker::start(&call)).collect();
        let mut workers = workers?;
        for worker in &mut workers {
            worker.await_ready()?;
        }
        for worker in &mut workers {
            worker.stdin.write_all(b"go\n")?;
        }
        let mut round = Self::default();
        for worker in workers {
            let tally = worker.finish()?;
            let number = |name: &str| {
                let number = tally.get(name).and_then(Value::as_f64);
                number.ok_or_else(|| format!("a worker said {tally}, without {name}"))
            };
            round.pairs_per_second += divide(number("pairs")?, number("seconds")?);
            round.refused_per_second += divide(number("refused")?, number("seconds")?);
            // Who was refused every time has no pair whose time could be told.
            if number("pairs")? > 0.0 {
                round.p99_us = round.p99_us.max(number("p99_us")?);
                round.longest_us = round.longest_us.max(number("longest_us")?);
            }
        }
        Ok(round)
    }
}

struct BenchWorker {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl BenchWorker {
    fn start(call: &ProgramCall) -> Result<Self, Failed> {
        let mut child = call
            .command()?
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
        let status = self.child.wait()?;
        if !status.success() {
            return Err(format!("a worker ended with {status}").into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

/// The middle of several rounds.
#[derive(Debug)]
pub struct Summary {
    pub middle: Round,
    /// The longest pair of all rounds.
    pub longest_us: f64,
    all: Vec<f64>,
}

impl Summary {
    /// Finds it.
    pub fn of(rounds: Vec<Round>) -> Self {
        let all: Vec<f64> = rounds.iter().map(|round| round.pairs_per_second).collect();
        let longest = rounds.iter().map(|round| round.longest_us);
        let longest_us = longest.fold(0.0, f64::max);
        let mut sorted = rounds;
        sorted.sort_by(|a, b| a.pairs_per_second.total_cmp(&b.pairs_per_second));
        let nothing = Round {
            pairs_per_second: f64::NAN,
            ..Round::default()
        };
        let middle = sorted.get(sorted.len() / 2).copied().unwrap_or(nothing);
        Self {
            middle,
            longest_us,
            all,
        }
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
            "longest_us": self.longest_us,
            "rounds": self.all,
        })
    }

    /// Compares how much was done.
    pub fn beside(
        &self,
        baseline: &Summary,
        group: &'static str,
        what: String,
        budget: Budget,
    ) -> Measurement {
        let mut row = Measurement {
            group,
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
