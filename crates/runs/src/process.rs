//! The runner: a separate process for each run.
//!
//! It leads a process session, so no terminal ends it, and shares only a pipe with the window that
//! started it, which it may lose. It starts the agent behind a gate, writes the record before it
//! opens the gate, follows the agent's output and records the end.
//!
//! *Crash* before the gate is open: the agent never runs, and the next reader ends the record, if
//! there is one. *Crash* later: the agent continues and writes its log; the first reader after its
//! end records it. The end is on disk before it goes to the store ([`super::spool`]), so it is
//! recorded exactly once.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::network;
use tenure_core::dispatch::publish::ResultState;
use tenure_core::ignore::Ignore;
use tenure_core::store::StoreError;
use tenure_host::{clock, pause, secrecy};
use tenure_service::EndRun;
use tenure_service::error::Error;

use super::begin::Begun;
use super::environment;
use super::files::RunFiles;
use super::following::Following;
use super::job;
use super::result;
use super::runner::Runner;
use super::sweep::sweep;
use super::wire::{Message, WireProblem};
use super::worktree;
use tenure_app::open::{self, Purpose};

/// How long a runner tries to record an end while the store is unavailable. After that, the next
/// reader records it.
const TRIES_FOR: Duration = Duration::from_secs(120);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Runs the order in this directory to its recorded end.
pub fn main(dir: &Path) {
    rustix::process::setsid()
        .ignore("it already leads a process group, which only a person can have arranged");
    let files = RunFiles::at(dir);
    // Without this lock, the remains of a run that is never recorded may be removed after a day.
    let _in_use = files.keep_in_use();
    let mut window = io::stdout();
    let begun = if files.job().exists() {
        // Its environment is the dispatcher's, which the agent must not read from here either.
        secrecy::hide_memory();
        let connect = network::linked().map(|network| network.connect);
        job::begin(&files, connect, &mut window)
    } else {
        Runner::prepare(&files).and_then(|mut runner| {
            let begun = runner.begin(&mut window)?;
            Ok((runner, begun))
        })
    };
    match begun {
        Ok((runner, begun)) => runner.follow(begun, &mut window),
        Err(refused) => {
            files.remove();
            remove_temporary(&files);
            Message::Refused(WireProblem::from(refused)).send(&mut window);
        }
    }
}

/// Removes the temporary directory of a run that was not started.
fn remove_temporary(files: &RunFiles) {
    let (dir, state) = (files.dir(), files.dir().ancestors().nth(2));
    if let (Some(state), Some(run)) = (state, dir.file_name().and_then(|name| name.to_str())) {
        environment::remove_temporary(state, run)
            .ignore("the directory is private, and nothing refers to it");
    }
}

impl Runner {
    fn follow(mut self, begun: Begun, window: &mut io::Stdout) {
        sweep(&mut self.context);
        let mut following = Following::new(self, begun);
        let mut end = following.follow_to_end(window);
        let (mut runner, dropped) = following.finish_log(!end.survivors.is_empty());
        end.dropped = dropped;
        if let Some(note) = &runner.order.note {
            end.add_to_answer(note);
        }
        // While the run still has its place.
        runner.take_result(&mut end);
        // The store gets it as soon as it answers; only a crash before that loses it.
        let is_kept = end.write(&runner.files).is_ok();
        if let Ok(record) = end.record() {
            runner.record(&record, end.result.as_ref());
        }
        runner.clean_up();
        let end = (!is_kept).then(|| Box::new(end));
        Message::Ended { end }.send(window);
        let context = &mut runner.context;
        if worktree::remove_over(context).is_ok() {
            result::remove_over(context)
                .ignore("the next run tries again, and `status` shows the remains");
        }
    }

    /// Records the end; retries for a while if the store is unavailable.
    fn record(&mut self, end: &EndRun, result: Option<&ResultState>) {
        let until = clock::instant() + TRIES_FOR;
        let mut wait = FIRST_PAUSE;
        loop {
            let failed = match self.context.service().end_run_with(end, result) {
                Ok(_) => return,
                Err(failure) => failure.error,
            };
            let may_come_back = matches!(
                failed,
                Error::Store(
                    StoreError::Busy { .. }
                        | StoreError::Full { .. }
                        | StoreError::Unavailable { .. }
                        | StoreError::Replaced { .. }
                        | StoreError::Conflict
                )
            );
            let was_removed = !self.files.dir().is_dir();
            if !may_come_back || was_removed || clock::instant() >= until {
                // The end is spooled next to the log.
                return;
            }
            pause::sleep(wait);
            wait = (wait * 2).min(MAX_PAUSE);
            if let Ok(context) = open::open(Purpose::Write) {
                self.context = context;
            }
        }
    }
}
