//! Counts what a hook and the hot verbs cost, and compares the counts with those that are held: `scripts/counts`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tenure_bench::counts_by_verb::{CountsByVerb, MORE_PERCENT};
use tenure_bench::{Failed, hot};

/// Count what a hook and the hot verbs cost
#[derive(Debug, Parser)]
#[command(name = "bench-counts")]
struct Args {
    /// The program that is counted
    #[arg(long, value_name = "PROGRAM")]
    tenure: PathBuf,

    /// The counts that are held
    #[arg(long, value_name = "FILE")]
    file: PathBuf,

    /// Write the counts to the file instead of comparing them
    #[arg(long)]
    write: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "this is how a program complains")]
            {
                eprintln!("counts: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Failed> {
    let held = match fs_err::read_to_string(&args.file) {
        Err(error) if args.write && error.kind() == std::io::ErrorKind::NotFound => {
            CountsByVerb::default()
        }
        found => CountsByVerb::parse(&found?)?,
    };
    // Not where the build is: a path with more directories takes more calls.
    let dir = tempfile::Builder::new()
        .prefix("counts-")
        .tempdir_in("/tmp")?;
    let tenure = fs_err::canonicalize(&args.tenure)?;
    let counted = hot::count(&tenure, &fs_err::canonicalize(dir.path())?)?;
    let mut stdout = std::io::stdout().lock();
    write!(stdout, "{}", held.table(&counted))?;
    if args.write {
        fs_err::write(&args.file, counted.text())?;
        writeln!(stdout, "written to {}", args.file.display())?;
        return Ok(());
    }
    let exceeded = held.exceeded_by(&counted);
    if exceeded.is_empty() {
        return Ok(());
    }
    let lines = exceeded.join("\n  ");
    Err(format!("more than what is held and {MORE_PERCENT} %:\n  {lines}").into())
}
