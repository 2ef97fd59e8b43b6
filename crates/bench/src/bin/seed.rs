//! Fills a state directory with the sessions and keys of a long use: `bench-seed DIR COUNT`.

use std::path::PathBuf;
use std::process::ExitCode;

use tenure_bench::Failed;
use tenure_bench::seeded::Seeded;

fn main() -> ExitCode {
    let said = match run() {
        Ok(()) => return ExitCode::SUCCESS,
        Err(error) => error,
    };
    #[expect(clippy::print_stderr, reason = "this is how a program complains")]
    {
        eprintln!("bench-seed: {said}\nusage: bench-seed DIR COUNT");
    }
    ExitCode::FAILURE
}

fn run() -> Result<(), Failed> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().ok_or("the directory is missing")?);
    let count = args.next().ok_or("the count is missing")?.parse()?;
    let database = dir.join("tenure.db");
    if database.exists() {
        return Err(format!("{} is there already", database.display()).into());
    }
    Seeded::fresh(&dir, count).map(|_| ())
}
