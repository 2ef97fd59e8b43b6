//! `lock`: a short exclusive section among the users of one state directory.

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use serde_json::json;
use tenure_app::location;
use tenure_app::supervise::{readable, under_lock};
use tenure_core::time::Span;
use tenure_core::world::World;
use tenure_host::kernel_lock::{HeldLock, LockDir, LockError, LockName, Patience, Sharing};
use tenure_host::lock_table::{self, HolderNote};
use tenure_host::machine::Machine;
use tenure_host::{clock, process};
use tenure_service::answer::{Class, Hint};

use crate::app::App;
use crate::child;
use crate::exit::Exit;
use crate::output::{CliError, Outcome, Output, put, warn, where_state_is};

/// Run a command while holding a lock: one at a time per state directory
///
/// The kernel holds the lock: the lock is released the moment its holder dies. The command inherits it, so
/// killing tenure does not release it while the command still runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure lock db-migrate -- make migrate
  tenure lock db-migrate --wait 10s -- make migrate
  tenure lock --path ./data.json --wait forever -- ./update
  tenure lock nightly --hold                print one JSON line once held; hold until stdin closes")]
pub struct Args {
    /// Name of the lock
    #[arg(
        value_name = "NAME",
        required_unless_present = "path",
        conflicts_with = "path"
    )]
    name: Option<String>,

    /// Lock a file or directory, by canonical path
    #[arg(long, value_name = "FILE")]
    path: Option<PathBuf>,

    /// Wait for the lock at most this long, or forever
    #[arg(long, value_name = "TIME|forever", allow_hyphen_values = true)]
    wait: Option<String>,

    /// Take a shared (read) lock
    #[arg(long)]
    shared: bool,

    /// Hold the lock until stdin closes; for use from other languages
    #[arg(long, conflicts_with = "command")]
    hold: bool,

    /// Exit code if the lock can't be acquired
    #[arg(long, value_name = "N", default_value_t = 125)]
    conflict_exit: u8,

    /// Command to run while holding the lock
    #[arg(last = true, value_name = "CMD", required_unless_present = "hold")]
    command: Vec<OsString>,
}

/// After this long, a waiter prints what it waits for.
const PATIENT_SILENCE: Duration = Duration::from_secs(1);

pub fn run(args: &Args, app: &App) -> Outcome {
    let conflict = Exit(args.conflict_exit);
    hold_or_run(args, app).map_err(|failure| child::conflict_or_failure(failure, conflict))
}

/// Whatever needs the state directory is asked before the lock is taken: the directory may be moved while
/// the lock is held.
fn hold_or_run(args: &Args, app: &App) -> Outcome {
    app.make_state_dir()?;
    let machine = location::machine()?;
    let session = app.open().ok().and_then(|mut context| {
        let answer = context.service().peek(&app.act_for(None)).ok()?;
        Some(answer.value)
    });
    let caller = caller(&machine);
    let (locks, name, held) = held_lock(args, caller)?;
    lock_table::leave_note(&locks, &name, &note(args, session, caller, &name));
    if args.hold {
        hold(&name, held)
    } else {
        run_command(args, app, &machine, held)
    }
}

fn name_of(args: &Args) -> Result<LockName, CliError> {
    match (&args.name, &args.path) {
        (Some(name), _) => LockName::plain(name),
        (None, Some(path)) => LockName::of_path(path),
        (None, None) => LockName::plain(""),
    }
    .map_err(lock_error)
}

/// The program that started this one: its pid, and the ticks at which it started.
type Caller = Option<(u32, u64)>;

fn caller(machine: &Machine) -> Caller {
    let parent = rustix::process::getppid()?.as_raw_nonzero().get();
    let parent = u32::try_from(parent).ok()?;
    let found = process::identify(parent, machine.observer()).ok()?;
    Some((found.pid, found.start.ticks))
}

fn held_lock(args: &Args, caller: Caller) -> Result<(LockDir, LockName, HeldLock), CliError> {
    let name = name_of(args)?;
    let sharing = if args.shared {
        Sharing::Shared
    } else {
        Sharing::Exclusive
    };
    let patience = patience(args)?;
    let locks = location::locks()?;
    let (done, running) = sync_channel::<()>(0);
    let waits = patience != Patience::None;
    let announcer = waits.then(|| {
        let (locks, name) = (locks.clone(), name.clone());
        std::thread::spawn(move || {
            if running.recv_timeout(PATIENT_SILENCE) == Err(RecvTimeoutError::Timeout) {
                warn(waiting_text(&locks, &name, caller));
            }
        })
    });
    let held = locks.lock(&name, sharing, patience);
    drop(done);
    if let Some(Err(_)) = announcer.map(std::thread::JoinHandle::join) {
        // Saying it failed; the lock did not.
    }
    let held = held.map_err(|error| explain(error, &locks, &name, patience, caller))?;
    Ok((locks, name, held))
}

fn patience(args: &Args) -> Result<Patience, CliError> {
    Ok(match args.wait.as_deref() {
        None => Patience::None,
        Some("forever") => Patience::Endless,
        Some(text) => match text.parse::<Span>()?.0 {
            Duration::ZERO => Patience::None,
            limit => Patience::AtMost(limit),
        },
    })
}

/// Who holds a lock, as far as that is known.
fn holder_text(locks: &LockDir, name: &LockName, caller: Caller) -> String {
    let state = lock_table::state(locks, name);
    match state.holder {
        Some(note) if is_own(&note, caller) => {
            format!(
                "not free; you hold it: pid {}, since {}",
                note.pid, note.since
            )
        }
        Some(note) => {
            let who = note.session.map_or(format!("pid {}", note.pid), |session| {
                format!("{session} (pid {})", note.pid)
            });
            let since = crate::output::ago(note.since, clock::wall());
            match note.command.as_str() {
                HOLD => format!("held by {who}, taken {since} with --hold"),
                command => format!("held by {who}, taken {since} for `{command}`"),
            }
        }
        None if state.pids.is_empty() => "held".to_owned(),
        None => {
            let pids: Vec<String> = state.pids.iter().map(u32::to_string).collect();
            format!("held by pid {}", pids.join(", "))
        }
    }
}

/// Whether the program that asks now took the lock itself, with `--hold`.
fn is_own(note: &HolderNote, caller: Caller) -> bool {
    note.command == HOLD && note.caller.is_some() && note.caller == caller
}

fn waiting_text(locks: &LockDir, name: &LockName, caller: Caller) -> String {
    format!(
        "waiting for the lock {}, {}",
        name.shown(),
        holder_text(locks, name, caller)
    )
}

/// How long it waited.
fn after(patience: Patience) -> String {
    match patience {
        Patience::AtMost(time) => format!(" after {}", Span(time)),
        Patience::None | Patience::Endless => String::new(),
    }
}

fn explain(
    error: LockError,
    locks: &LockDir,
    name: &LockName,
    patience: Patience,
    caller: Caller,
) -> CliError {
    if !matches!(error, LockError::Held { .. }) {
        return lock_error(error);
    }
    let holder = holder_text(locks, name, caller);
    let message = format!("the lock {} is {holder}", name.shown());
    let state = lock_table::state(locks, name);
    let is_own = state.holder.is_some_and(|note| is_own(&note, caller));
    match patience {
        Patience::None if is_own => CliError::new(
            Class::Held,
            "held",
            message,
            Hint::step("close the stdin of that process to release it first"),
        )
        .or(Hint::verb("locks", "to list all locks")),
        Patience::None => CliError::new(
            Class::Held,
            "held",
            message,
            Hint::step("add --wait 10s to wait for it"),
        )
        .or(Hint::verb("locks", "to list all locks")),
        _ => CliError::new(
            Class::TimedOut,
            "timed_out",
            format!("timed out{}: {message}", after(patience)),
            Hint::verb("locks", "to see the holder and the waiters"),
        ),
    }
}

#[allow(clippy::needless_pass_by_value)] // for map_err
fn lock_error(error: LockError) -> CliError {
    let message = error.to_string();
    match error {
        LockError::Name { .. } => CliError::new(
            Class::Usage,
            "usage",
            message,
            Hint::run(
                "lock",
                ["db-migrate", "--", "make", "migrate"],
                "to use a valid name, for example",
            ),
        ),
        LockError::Held { .. } => CliError::new(
            Class::Held,
            "held",
            message,
            Hint::verb("locks", "to see the holder"),
        ),
        LockError::HeldHere { .. } | LockError::Nested { .. } => {
            let hint = Hint::step(
                "run the command without `tenure lock`; it already runs under that lock",
            );
            CliError::new(Class::Invalid, "nested", message, hint)
        }
        LockError::Unusable { .. } => {
            CliError::new(Class::Store, "store_unavailable", message, where_state_is())
        }
    }
}

/// What stands in the place of a command.
const HOLD: &str = "--hold";

fn note(args: &Args, session: Option<String>, caller: Caller, name: &LockName) -> HolderNote {
    HolderNote {
        lock: name.shown().to_owned(),
        session,
        pid: std::process::id(),
        caller: caller.filter(|_| args.hold),
        command: if args.hold {
            HOLD.to_owned()
        } else {
            readable(&args.command)
        },
        since: clock::wall(),
        shared: args.shared,
    }
}

/// Prints that the lock is held, and holds it until stdin closes.
fn hold(name: &LockName, held: HeldLock) -> Outcome {
    let word = json!({"v": 1, "lock": {"name": name.shown(), "held": true, "pid": std::process::id()}, "notices": []});
    put(&word.to_string())?;
    let mut bytes = [0; 4096];
    while std::io::stdin()
        .read(&mut bytes)
        .is_ok_and(|count| count > 0)
    {}
    held.unlock();
    Ok(Output::silent(Exit::DONE))
}

/// Runs the command with the lock's descriptor, and unlocks when it has ended.
fn run_command(args: &Args, app: &App, machine: &Machine, held: HeldLock) -> Outcome {
    let name = held.name().to_owned();
    let status = under_lock(machine, &args.command, held).map_err(child::unfinished)?;
    let exit = child::exit_of(status);
    if app.style.json {
        let report =
            json!({"v": 1, "lock": {"name": name}, "command": {"exit": exit.0}, "notices": []});
        app.style.report(&report);
    }
    Ok(Output::silent(exit))
}
