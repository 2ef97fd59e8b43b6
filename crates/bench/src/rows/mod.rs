//! The rows, one file for each kind.
//!
//! A new kind is a file with a function that returns its rows, and a line in [`ALL`].

mod contend;
mod crowd;
mod dashboard;
mod dispatch;
mod doctor;
mod grant;
mod hook;
mod keeper;
mod lock;
mod people;
mod postgres;
mod process;
mod run;
mod scale;
mod serve;
mod serve_process;
mod waiting;
mod year;

pub(crate) use hook::{START, TOOL, written};

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use crate::Failed;
use crate::program::Programs;
use crate::report::Measurement;

/// What every kind of row is given.
#[derive(Debug)]
pub struct Bench {
    pub programs: Programs,
    /// A directory of its own, removed afterwards.
    pub scratch: PathBuf,
    /// Where stores are kept from run to run.
    pub kept: PathBuf,
    /// A rough look instead of a careful one.
    pub quick: bool,
    /// Whether the program is linked statically, which has budgets of its own.
    pub is_static: bool,
}

impl Bench {
    /// How often to measure: so often, or a tenth of that.
    pub fn times(&self, careful: usize) -> usize {
        if self.quick {
            (careful / 10).max(3)
        } else {
            careful
        }
    }

    /// A directory for one kind of row.
    pub fn dir(&self, name: &str) -> Result<PathBuf, Failed> {
        let dir = self.scratch.join(name);
        fs_err::create_dir_all(&dir)?;
        Ok(dir)
    }

    /// Tells what is being done.
    pub fn say(&self, what: &str) {
        #[expect(clippy::print_stderr, reason = "the table goes to stdout")]
        {
            eprintln!("bench: {what}");
        }
    }
}

/// A kind of row: its name, and what measures it.
pub type RowKind = (&'static str, fn(&Bench) -> Result<Vec<Measurement>, Failed>);

/// All kinds, in the order of the table.
pub const ALL: &[RowKind] = &[
    ("hook", hook::rows),
    ("process", process::rows),
    ("scale", scale::rows),
    ("contend", contend::rows),
    ("grant", grant::rows),
    ("crowd", crowd::rows),
    ("waiting", waiting::rows),
    ("lock", lock::rows),
    ("people", people::rows),
    ("serve", serve::rows),
    ("run", run::rows),
    ("dispatch", dispatch::rows),
    ("postgres", postgres::rows),
    ("keeper", keeper::rows),
    ("year", year::rows),
    ("doctor", doctor::rows),
];

/// What a run of the benchmark came to.
#[derive(Debug, Default)]
pub struct Measured {
    pub rows: Vec<Measurement>,
    /// What could not be measured, and why.
    pub failures: Vec<String>,
}

impl Measured {
    /// Measures one kind of row. Whatever goes wrong is a failure of its own; the other kinds are still measured.
    pub fn add(&mut self, name: &str, measure: impl FnOnce() -> Result<Vec<Measurement>, Failed>) {
        let found = catch_unwind(AssertUnwindSafe(measure));
        let rows = match found.unwrap_or_else(|panic| Err(said(panic.as_ref()).into())) {
            Ok(rows) => rows,
            Err(error) => return self.failures.push(format!("{name}: {error}")),
        };
        if rows.is_empty() {
            self.failures.push(format!("{name}: nothing was measured"));
        }
        for row in rows.iter().filter(|row| !row.is_measured()) {
            self.failures
                .push(format!("{name}: {}: there is no number", row.what));
        }
        self.rows.extend(rows);
    }
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "it panicked".to_owned())
}

/// Says in an error which row it is about.
fn of_row(what: &str) -> impl FnOnce(Failed) -> Failed {
    move |error| format!("{what}: {error}").into()
}

/// A number that follows no order, for picking keys; the same ones in every run.
#[derive(Debug, Clone)]
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        Self(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from(self.0 % u64::from(limit.max(1))).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Budget, Unit};

    fn row(number: f64) -> Measurement {
        Measurement {
            group: "grant",
            what: "from a release to the grant".into(),
            ours: String::new(),
            baseline: String::new(),
            number,
            unit: Unit::Millis,
            budget: Budget::AtMost(50.0),
            more: Default::default(),
        }
    }

    fn failures(measure: impl FnOnce() -> Result<Vec<Measurement>, Failed>) -> Vec<String> {
        let mut measured = Measured::default();
        measured.add("grant", measure);
        measured.failures
    }

    #[test]
    fn a_row_that_cannot_be_measured_fails_by_its_name() {
        assert_eq!(failures(|| Ok(vec![row(3.0)])), [""; 0]);
        assert_eq!(failures(|| Ok(Vec::new())), ["grant: nothing was measured"]);
        assert_eq!(
            failures(|| Ok(vec![row(3.0), row(f64::NAN)])),
            ["grant: from a release to the grant: there is no number"]
        );
        let failed = || Err(of_row("from a release to the grant")("no answer".into()));
        assert_eq!(
            failures(failed),
            ["grant: from a release to the grant: no answer"]
        );
    }

    #[test]
    fn a_kind_of_row_that_panics_does_not_end_the_others() {
        let mut measured = Measured::default();
        measured.add("waiting", || panic!("the waiter stands in line"));
        measured.add("grant", || Ok(vec![row(3.0)]));
        assert_eq!(measured.failures, ["waiting: the waiter stands in line"]);
        assert_eq!(measured.rows.len(), 1);
    }
}
