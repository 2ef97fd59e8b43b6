//! `lock NAME -- CMD`: a command that runs under a kernel lock.

use std::ffi::OsString;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use tenure_core::world::World;
use tenure_host::kernel_lock::HeldLock;
use tenure_host::machine::Machine;
use tenure_host::pidfd::ProcessWatch;
use tenure_host::process;
use tenure_host::watch::{WakeCause, Watch};
use tenure_service::answer::{Class, Hint, Problem};

use super::child::{cannot_run, pass_on, unwaited};
use crate::unfinished::Unfinished;

/// Runs a command with the lock's descriptor, passes signals on, and unlocks when it has ended.
pub fn under_lock(
    machine: &Machine,
    words: &[OsString],
    held: HeldLock,
) -> Result<ExitStatus, Unfinished> {
    let failed = |error: std::io::Error| cannot(&error);
    let mut watch = Watch::on_nothing();
    watch.catch_signals().map_err(failed)?;
    held.pass_on().map_err(failed)?;
    let mut running = Command::new(&words[0])
        .args(&words[1..])
        .spawn()
        .map_err(|error| cannot_run(&words[0], &error))?;
    let watched: Vec<ProcessWatch> = process::identify(running.id(), machine.observer())
        .ok()
        .and_then(|process| ProcessWatch::open(&process))
        .into_iter()
        .collect();
    let status = loop {
        match running.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) => {}
            Err(error) => break Err(unwaited(&error)),
        }
        let limit = watched.is_empty().then_some(Duration::from_millis(50));
        if let WakeCause::Signal(signal) = watch.wait(&watched, limit).map_err(failed)? {
            pass_on(&running, signal);
        }
    };
    held.unlock_for_all().map_err(failed)?;
    Ok(status?)
}

fn cannot(error: &std::io::Error) -> Problem {
    let message = format!("cannot run the command: {error}");
    let hint = Hint::step("run it again; the lock is free");
    Problem::new(Class::Internal, "internal", message, hint)
}
