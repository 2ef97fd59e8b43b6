//! The least that a hook can be, as a program: `bench-floor DATABASE`.

use std::path::Path;
use std::process::ExitCode;

use tenure_bench::{Failed, floor};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "this is how a program complains")]
            {
                eprintln!("bench-floor: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failed> {
    let database = std::env::args().nth(1).ok_or("the database is missing")?;
    floor::beat(Path::new(&database))
}
