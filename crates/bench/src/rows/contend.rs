//! Claim and release in process, eight processes on one store, beside the same transactions by hand.

use super::Bench;
use super::process::counts_row;
use crate::Failed;
use crate::bare::Who;
use crate::counts::Counts;
use crate::crew::{Round, Summary};
use crate::program::{ProgramCall, Surroundings};
use crate::report::{Budget, Measurement};
use crate::seeded::{SMALL, Seeded, cut_log};

const WORKERS: u32 = 8;

const BUDGET: Budget = Budget::AtLeast(0.8);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Same,
    Lean,
}

const SIDES: [Side; 3] = [Side::Same, Side::Ours, Side::Lean];

struct ContendBench<'a> {
    bench: &'a Bench,
    seeded: Seeded,
    around: Surroundings,
}

impl ContendBench<'_> {
    fn call(&self, side: Side, worker: u32, key: &str, until: &str) -> ProgramCall {
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
        let call = |worker: u32| {
            let number = if same_key { 0 } else { worker + 1 };
            let key = format!("issue:bench/{side:?}#{number}");
            self.call(side, worker, &key, until)
        };
        Round::of((0..WORKERS).map(call))
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
        let per_pair = |few: u64, many: u64| many.saturating_sub(few) / (MANY - FEW);
        Ok(Counts {
            instructions: per_pair(few.instructions, many.instructions),
            system_calls: per_pair(few.system_calls, many.system_calls),
        })
    }
}

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let dir = bench.dir("contend")?;
    let seeded = Seeded::fresh(&dir.join("state"), SMALL)?;
    let around = Surroundings::make(&dir, seeded.place.dir())?;
    let field = ContendBench {
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
        rows.push(ours.beside(&same, "contend", what, BUDGET));
        let what = format!("claim+release, 8 processes, {name} : by hand, no statement too many");
        rows.push(ours.beside(&lean, "contend", what, Budget::None));
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
