//! Runs the chaos, or is one of its workers.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use tenure_app::keeper::Stage;
use tenure_chaos::hosts::Host;
use tenure_chaos::nemesis::STORE_VARIABLE;
use tenure_chaos::queue::worker::{self as queue, AgentOrders};
use tenure_chaos::record::monotonic;
use tenure_chaos::run::{Backend, Judgement, Options, Report, judge, run, run_queue};
use tenure_chaos::verb::work;
use tenure_chaos::worker::{DATABASE, Orders, STATE, stay};
use tenure_chaos::world;
use tenure_core::ignore::Ignore;
use tenure_core::store::{Store, StoreError, TxMode};
use tenure_store::SqliteStore;
use tenure_testkit::conformance::sample;

/// Race workers for few keys and jobs while they are killed, stopped and continued, and check every answer
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// For how many seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,

    /// How many workers
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=200))]
    workers: u16,

    /// What decides the choices; printed, so that they can be made again
    #[arg(long)]
    seed: Option<u64>,

    /// Where the store is
    #[arg(long, default_value = "sqlite")]
    store: BackendChoice,

    /// Through a pooler with three connections
    #[arg(long)]
    pooler: bool,

    /// Only the claims, or only the queue; else both, the queue for a quarter of the time
    #[arg(long)]
    only: Option<Only>,

    /// Cut the power at many moments, and let one of N writes and syncs fail; 0 for none. Claims on SQLite alone
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "150")]
    faults: Option<u64>,

    /// A part of so many seconds or more in which a kind of harm never happened is inconclusive: exit 3
    #[arg(long, value_name = "SECONDS", default_value_t = 150)]
    conclusive_from: u64,

    /// Keep the files of the run even if nothing was found
    #[arg(long)]
    keep: bool,

    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Only {
    Claims,
    Queue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum BackendChoice {
    Sqlite,
    Postgres,
}

#[derive(Debug, clap::Subcommand)]
enum Role {
    /// Check what a run left in its directory once more
    #[command(hide = true)]
    Check {
        /// The directory that was kept
        dir: PathBuf,
    },
    /// Keep the session of this number in the store of a directory, and be killed
    #[command(hide = true)]
    KeepOne { dir: PathBuf, number: u32 },
    /// Be a worker of a run
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Be a worker of a run of the queue
    #[command(hide = true)]
    QueueWorker(WorkerArgs),
    /// Be the agent of a job
    #[command(hide = true)]
    Agent {
        #[arg(long)]
        dir: PathBuf,
        #[arg(long)]
        run: String,
        #[arg(long)]
        job: String,
        #[arg(long)]
        item: String,
        #[arg(long)]
        millis: u64,
    },
    /// Be one of the processes of a keeper
    #[command(hide = true, name = "__keeper")]
    Keeper {
        stage: String,
        #[arg(long)]
        lock: i32,
    },
    /// Be the first process of a host
    #[command(hide = true)]
    Host {
        #[arg(long)]
        name: String,
        #[arg(long)]
        seed: u64,
        #[arg(long)]
        until: u64,
        #[arg(long)]
        dir: PathBuf,
    },
    /// Be a process that a worker left behind
    #[command(hide = true)]
    Stay {
        #[arg(long)]
        dir: PathBuf,
        #[arg(long)]
        name: String,
        #[arg(long)]
        millis: u64,
    },
}

#[derive(Debug, clap::Args)]
struct WorkerArgs {
    #[arg(long)]
    dir: PathBuf,
    #[arg(long)]
    name: String,
    #[arg(long)]
    slot: String,
    #[arg(long)]
    native: String,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    until: u64,
    #[arg(long)]
    line: bool,
    #[arg(long)]
    silent: bool,
    #[arg(long)]
    crowd: bool,
    /// The host that it runs on
    #[arg(long)]
    host: Option<String>,
    /// The mounts of that host
    #[arg(long)]
    mounts: Option<PathBuf>,
}

/// Nothing was found, in a run that did not do all that it should have done.
const INCONCLUSIVE: u8 = 3;

fn main() -> ExitCode {
    tenure_app::server_store::link(&tenure_postgres::Postgres);
    let args = Args::parse();
    let outcome = match args.role {
        Some(Role::Worker(worker)) => be_worker(worker, work),
        Some(Role::QueueWorker(worker)) => be_worker(worker, queue::work),
        Some(Role::Agent {
            dir,
            run,
            job,
            item,
            millis,
        }) => be_agent(
            &dir,
            &AgentOrders {
                run,
                job,
                item,
                millis,
            },
        ),
        Some(Role::Keeper { stage, lock }) => be_keeper(&stage, lock),
        Some(Role::Host {
            name,
            seed,
            until,
            dir,
        }) => be_host(&name, seed, until, dir),
        Some(Role::Stay { dir, name, millis }) => be_left(&dir, &name, millis),
        Some(Role::Check { dir }) => be_judge(&dir),
        Some(Role::KeepOne { dir, number }) => keep_one(&dir, number),
        None => be_nemesis(&args),
    };
    outcome.unwrap_or_else(|error| {
        // If standard error fails too, there is nowhere left to report.
        writeln!(io::stderr(), "chaos: {error}").ignore("there is nowhere else to report it");
        ExitCode::FAILURE
    })
}

fn be_nemesis(args: &Args) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let seed = args.seed.unwrap_or_else(|| monotonic() % 1_000_000);
    let options = |seconds: u64| -> io::Result<Options> {
        Ok(Options {
            program: std::env::current_exe()?,
            length: Duration::from_secs(seconds),
            workers: usize::from(args.workers),
            seed,
            own_pids: std::env::var_os("TENURE_APART").is_some(),
            keep: args.keep,
            faults: args.faults,
            store: match (args.store, args.pooler) {
                (BackendChoice::Sqlite, _) => Backend::Sqlite,
                (BackendChoice::Postgres, false) => Backend::Postgres,
                (BackendChoice::Postgres, true) => Backend::Pooled,
            },
        })
    };
    let (claims, jobs) = match args.only {
        _ if args.faults.is_some() => (args.seconds, 0),
        Some(Only::Claims) => (args.seconds, 0),
        Some(Only::Queue) => (0, args.seconds),
        None => (args.seconds - args.seconds / 4, args.seconds / 4),
    };
    let (mut is_wrong, mut is_inconclusive) = (false, false);
    let mut proof = Vec::new();
    for (part, seconds, run) in [
        ("claims", claims, run as fn(&Options) -> io::Result<Report>),
        ("queue", jobs, run_queue),
    ] {
        if seconds == 0 {
            continue;
        }
        let report = run(&options(seconds)?).map_err(|error| format!("seed {seed}: {error}"))?;
        writeln!(io::stdout(), "{part}, {report}")?;
        is_wrong |= !report.judgement.violations.is_empty();
        let mut summary = format!("{part}, {}", report.summary());
        let missing = report.missing();
        if seconds >= args.conclusive_from && !missing.is_empty() {
            is_inconclusive = true;
            let missing = missing.join(", ");
            writeln!(
                io::stdout(),
                "{part}: inconclusive, never happened: {missing}"
            )?;
            summary.push_str(", inconclusive");
        }
        proof.push(summary);
    }
    // Scripts take this line.
    writeln!(io::stdout(), "proof: {}", proof.join("; "))?;
    Ok(match (is_wrong, is_inconclusive) {
        (true, _) => ExitCode::FAILURE,
        (false, true) => INCONCLUSIVE.into(),
        (false, false) => ExitCode::SUCCESS,
    })
}

/// Exits before anything is closed, as a process that is killed then.
fn keep_one(dir: &Path, number: u32) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let database = dir.join(STATE).join(DATABASE);
    let mut store = SqliteStore::open(&database, sample::clock())?;
    let kept = store.begin(TxMode::Write).and_then(|mut tx| {
        tx.insert_session(&sample::session(number))?;
        tx.commit()
    });
    let code: u8 = match kept {
        Ok(()) => 0,
        Err(StoreError::OutcomeUnknown { .. }) => 2,
        Err(error) => {
            writeln!(io::stderr(), "{error}")?;
            1
        }
    };
    std::mem::forget(store);
    Ok(code.into())
}

fn be_judge(dir: &Path) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let judgement = judge(dir)?;
    writeln!(io::stdout(), "{judgement}")?;
    Ok(verdict(&judgement))
}

fn verdict(judgement: &Judgement) -> ExitCode {
    if judgement.violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn be_keeper(stage: &str, lock: i32) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let stage = Stage::of(stage).ok_or("a keeper has no such process")?;
    // Workers send no events of agents, so there is nothing to put into words.
    let code = tenure_keeper::main(
        stage,
        lock,
        |_, _, _| Default::default(),
        // Nobody is notified either.
        |_, _| Err(io::ErrorKind::Unsupported.into()),
    )?;
    Ok(code.into())
}

fn be_host(
    name: &str,
    seed: u64,
    until: u64,
    dir: PathBuf,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let store = std::env::var("TENURE_STORE")?;
    let host = Host::named(name, &dir, store).ok_or("a run has no such host")?;
    let program = std::env::current_exe()?;
    let orders = world::Orders {
        program,
        seed,
        until,
        dir,
    };
    world::be_first(&host, &orders)?;
    Ok(ExitCode::SUCCESS)
}

fn be_left(dir: &Path, name: &str, millis: u64) -> Result<ExitCode, Box<dyn std::error::Error>> {
    stay(dir, name, millis)?;
    Ok(ExitCode::SUCCESS)
}

fn be_agent(dir: &Path, orders: &AgentOrders) -> Result<ExitCode, Box<dyn std::error::Error>> {
    queue::be_agent(dir, orders)?;
    Ok(ExitCode::SUCCESS)
}

fn be_worker(
    args: WorkerArgs,
    work: fn(Orders) -> Result<(), Box<dyn std::error::Error>>,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let parent = getppid();
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != parent {
        return Err("the nemesis died".into());
    }
    if let Some(mounts) = &args.mounts {
        world::enter(mounts, &args.dir)?;
    }
    work(Orders {
        dir: args.dir,
        name: args.name,
        slot: args.slot,
        native: args.native,
        seed: args.seed,
        until: args.until,
        line: args.line,
        silent: args.silent,
        crowd: args.crowd,
        host: args.host,
        store: std::env::var(STORE_VARIABLE).ok(),
    })?;
    Ok(ExitCode::SUCCESS)
}
