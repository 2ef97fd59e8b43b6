//! Stopping a run.
//!
//! The request is recorded first. The runner then signals its agent. If there is no runner any
//! more, the stopping process does that itself: it sends the agent's own signal to its process
//! group, gives it time to exit, sends SIGKILL, and then ends every process that carries the
//! variable of this run and belongs to no other session. Every process is signalled through its own
//! descriptor, or as a group whose leader is known to be alive, so no other process is ever hit.

use std::time::Duration;

use rustix::process::Signal;
use tenure_core::id::RunId;
use tenure_core::process::{Process, Survivor};
use tenure_core::time::Span;
use tenure_host::pidfd::ProcessWatch;
use tenure_service::answer::Problem;
use tenure_service::view::RunView;
use tenure_service::{LeftRun, Stoppable};

use super::agent::signal_group;
use super::driver::Driver;
use super::settle;
use tenure_app::kill::{self, EndedBy};
use tenure_app::open::Context;

/// How long a process may take to exit after SIGKILL.
const GONE_WITHIN: Duration = Duration::from_secs(10);
/// How many times survivors are searched for: a killed one may just have started another.
const ROUNDS: usize = 5;
/// How much longer than the agent's grace period a runner may take to record the end.
const RECORDED_WITHIN: Duration = Duration::from_secs(30);

/// A run that was stopped, or is about to end.
#[derive(Debug)]
pub struct StoppedRun {
    pub run: RunView,
    /// Processes that continue and were left alone, because they belong to another session or
    /// cannot be killed.
    pub survivors: Vec<Survivor>,
}

/// Ends the runs of this host that have no runner any more and are past their timeout.
pub fn end_overdue(context: &mut Context) -> Result<Vec<StoppedRun>, Problem> {
    let mut ended = Vec::new();
    for LeftRun { run, record, .. } in settle::all(context)? {
        if run.past_timeout {
            let why = match record.timeout {
                Some(timeout) => format!("it did not end within {}", Span(timeout)),
                None => "it did not end in time".to_owned(),
            };
            let asked = context.service().run_timed_out(&record.id, &why)?.value;
            ended.push(finish(context, asked)?);
        }
    }
    Ok(ended)
}

/// Asks a run to stop and makes sure that it does.
pub fn stop(context: &mut Context, name: &str, why: &str) -> Result<StoppedRun, Problem> {
    let asked = context.service().ask_run_to_stop(name, why)?.value;
    finish(context, asked)
}

/// Makes sure that a run ends that was asked to stop.
#[allow(clippy::needless_pass_by_value)] // it is over with this call
pub fn finish(context: &mut Context, asked: Stoppable) -> Result<StoppedRun, Problem> {
    let id = RunId::parse(&asked.run.id)?;
    let grace = context.settings.stop_grace;
    if let Some(runner) = asked.runner.as_ref().and_then(ProcessWatch::open) {
        let patience = grace + GONE_WITHIN + RECORDED_WITHIN;
        let told = runner
            .signal(Signal::TERM)
            .and_then(|()| runner.wait(patience));
        if told.is_ok_and(|gone| gone) {
            let run = settle::one(context, &id)?;
            let survivors = settle::survivors(&run);
            return Ok(StoppedRun { run, survivors });
        }
    }
    if let Some(agent) = &asked.agent {
        let driver = tenure_core::id::AgentName::parse(&asked.run.agent)
            .ok()
            .and_then(|agent| Driver::of(&context.settings, &agent).ok());
        let signal = driver.map_or(Signal::TERM, |driver| driver.stop_signal());
        end_agent(agent, signal, grace);
    }
    let survivors = end_survivors(context, &id).left;
    let run = settle::one(context, &id)?;
    Ok(StoppedRun { run, survivors })
}

/// Signals an agent to stop, and kills it if it does not.
fn end_agent(agent: &Process, signal: Signal, grace: Duration) {
    for (signal, patience) in [(signal, grace), (Signal::KILL, GONE_WITHIN)] {
        // The descriptor refers only to this process, so its pid is still the group's id.
        let Some(watch) = ProcessWatch::open(agent) else {
            return;
        };
        let told = signal_group(agent, signal).is_ok();
        if told && watch.wait(patience).is_ok_and(|gone| gone) {
            return;
        }
    }
}

/// What a run left running.
#[derive(Debug, Default)]
pub(super) struct LeftRunning {
    /// Those that were killed.
    pub ended: Vec<Survivor>,
    /// Those that go on.
    pub left: Vec<Survivor>,
}

/// Kills what only this run can have started.
pub(super) fn end_survivors(context: &mut Context, id: &RunId) -> LeftRunning {
    let mut all = LeftRunning::default();
    for _ in 0..ROUNDS {
        let Ok(found) = context.service().run_processes(id) else {
            return all;
        };
        let found = found.value;
        all.left = found.others;
        if found.ours.is_empty() {
            return all;
        }
        let (processes, survivors): (Vec<_>, Vec<_>) = found.ours.into_iter().unzip();
        for (ended, survivor) in kill::end_all(&processes, None).into_iter().zip(survivors) {
            match ended {
                Some(EndedBy::Itself) => {}
                Some(_) => all.ended.push(survivor),
                None => all.left.push(survivor),
            }
        }
    }
    all
}
