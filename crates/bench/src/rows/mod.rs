//! The rows, one file for each kind.
//!
//! A new kind is a file with a function that returns its rows, and a line in [`ALL`].

mod contend;
mod crowd;
mod dispatch;
mod grant;
mod hook;
mod keeper;
mod lock;
mod people;
mod postgres;
mod process;
mod run;
mod scale;
mod waiting;

use std::path::PathBuf;

use crate::Failed;
use crate::program::Programs;
use crate::report::Row;

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
pub type Kind = (&'static str, fn(&Bench) -> Result<Vec<Row>, Failed>);

/// All kinds, in the order of the table.
pub const ALL: &[Kind] = &[
    ("hook", hook::rows),
    ("process", process::rows),
    ("scale", scale::rows),
    ("contend", contend::rows),
    ("grant", grant::rows),
    ("crowd", crowd::rows),
    ("waiting", waiting::rows),
    ("lock", lock::rows),
    ("people", people::rows),
    ("run", run::rows),
    ("dispatch", dispatch::rows),
    ("postgres", postgres::rows),
    ("keeper", keeper::rows),
];

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
