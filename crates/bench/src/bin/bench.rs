//! Measures the rows of the design's table and prints them.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde_json::json;
use tenure_bench::flock::{BareLock, LOCK, OurLock, Side};
use tenure_bench::place::BenchStore;
use tenure_bench::program::Programs;
use tenure_bench::report::{Measurement, table};
use tenure_bench::rows::{ALL, Bench, Measured};
use tenure_bench::worker::{Ours, WorkLimit, contend};
use tenure_bench::{Failed, machine};
use tenure_host::kernel_lock::LockDir;

/// Measure what tenure costs, as ratios against bare baselines
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Args {
    /// Measure less: a rough look
    #[arg(long)]
    quick: bool,

    /// Only this kind of row; may be given several times
    #[arg(long, value_name = "ROW")]
    only: Vec<String>,

    /// Where stores are made; beside the build by default
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Where the results are written; target/bench.json by default
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Measure this program, which is linked statically, instead of the one beside this
    #[arg(long = "static", value_name = "PROGRAM")]
    static_program: Option<PathBuf>,

    /// The revision that is measured
    #[arg(long, value_name = "TEXT", default_value = "unknown")]
    revision: String,

    #[command(subcommand)]
    part: Option<BenchCommand>,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// One of the processes that contend
    #[command(hide = true)]
    Worker {
        /// The state directory.
        home: PathBuf,
        key: String,
        /// How long.
        until: String,
    },
    /// One of the processes that contend for a lock
    #[command(hide = true)]
    Locker {
        /// With our locks, or with bare calls.
        side: Side,
        /// The directory of the lock.
        dir: PathBuf,
        /// How long.
        until: String,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match &args.part {
        Some(BenchCommand::Worker { home, key, until }) => worker(home, key, until),
        Some(BenchCommand::Locker { side, dir, until }) => locker(*side, dir, until),
        None => measure(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "this is how a program complains")]
            {
                eprintln!("bench: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn worker(home: &std::path::Path, key: &str, until: &str) -> Result<(), Failed> {
    let mut ours = Ours::register(BenchStore::open(home)?)?;
    contend(&mut ours, key, WorkLimit::parse(until)?)
}

fn locker(side: Side, dir: &std::path::Path, until: &str) -> Result<(), Failed> {
    let until = WorkLimit::parse(until)?;
    match side {
        Side::Ours => contend(&mut OurLock::new(LockDir::open(dir)?), LOCK, until),
        Side::Bare => contend(&mut BareLock::new(dir), LOCK, until),
    }
}

fn measure(args: &Args) -> Result<(), Failed> {
    for name in &args.only {
        if !ALL.iter().any(|(known, _)| known == name) {
            let known: Vec<&str> = ALL.iter().map(|(known, _)| *known).collect();
            return Err(format!("no row is called {name}; there are {}", known.join(", ")).into());
        }
    }
    let mut programs = Programs::find()?;
    if let Some(program) = &args.static_program {
        programs.tenure = fs_err::canonicalize(program)?;
    }
    let target = programs.own.parent().and_then(|dir| dir.parent());
    let target = target.ok_or("the executable lies nowhere")?.to_owned();
    let kept = args.dir.clone().unwrap_or_else(|| target.join("bench"));
    fs_err::create_dir_all(&kept)?;
    let scratch = tempfile::Builder::new().prefix("run-").tempdir_in(&kept)?;
    let bench = Bench {
        programs,
        scratch: fs_err::canonicalize(scratch.path())?,
        kept: fs_err::canonicalize(&kept)?,
        quick: args.quick,
        is_static: args.static_program.is_some(),
    };
    let load_before = machine::load();
    let mut measured = Measured::default();
    for (name, measure) in ALL {
        if !args.only.is_empty() && !args.only.iter().any(|only| only == name) {
            continue;
        }
        bench.say(name);
        measured.add(name, || measure(&bench));
    }
    let Measured { rows, failures } = measured;
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| target.join("bench.json"));
    let results = json!({
        "v": 1,
        "revision": args.revision,
        "quick": args.quick,
        "static": bench.is_static,
        "machine": machine::json(&load_before),
        "rows": rows.iter().map(Measurement::json).collect::<Vec<_>>(),
        "failures": failures,
    });
    fs_err::write(&out, format!("{results:#}\n"))?;
    let (kernel, cpu) = machine::names();
    let mut stdout = std::io::stdout().lock();
    writeln!(
        stdout,
        "tenure {}{}{}\n{} cores, {cpu}, Linux {kernel}; load {load_before} before, {} after\n",
        args.revision,
        if bench.is_static { ", static" } else { "" },
        if args.quick { " (quick)" } else { "" },
        machine::cores(),
        machine::load(),
    )?;
    write!(stdout, "{}", table(&rows))?;
    writeln!(stdout, "\nwritten to {}", out.display())?;
    if failures.is_empty() {
        return Ok(());
    }
    Err(format!("not measured:\n{}", failures.join("\n")).into())
}
