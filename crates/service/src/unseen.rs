//! Observations that several steps of a use case need, made in one pass.
//!
//! Each observation restarts the use case, so a list that stopped for each of its sessions would begin as often as it has
//! sessions. It gathers what its steps lack and stops once.

use tenure_core::agent::{DaemonSpec, Traces};
use tenure_core::id::{NativeId, SessionToken};
use tenure_core::process::{Process, Signs};
use tenure_core::session::Session;

use crate::context::{Ctx, Stop};
use crate::evidence::Want;

/// What several steps need to observe, gathered so that it is observed in one pass.
#[derive(Debug, Default)]
pub struct Unseen {
    processes: Vec<Process>,
    left_behind: Vec<(SessionToken, Signs)>,
    turns: Vec<(DaemonSpec, Process, NativeId)>,
    exit_traces: Vec<(Traces, String, Process)>,
}

impl Unseen {
    /// The outcome of a step; `None` means that it must run again after the observation.
    pub fn gather<T>(&mut self, step: Result<T, Stop>) -> Result<Option<T>, Stop> {
        match step {
            Ok(done) => return Ok(Some(done)),
            Err(Stop::Look(Want::Processes(processes))) => self.processes.extend(processes),
            Err(Stop::Look(Want::Survivors(left_behind))) => self.left_behind.extend(left_behind),
            Err(Stop::Look(Want::Turns(turns))) => self.turns.extend(turns),
            Err(Stop::Look(Want::ExitTraces(exit_traces))) => self.exit_traces.extend(exit_traces),
            Err(other) => return Err(other),
        }
        Ok(None)
    }

    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
            && self.left_behind.is_empty()
            && self.turns.is_empty()
            && self.exit_traces.is_empty()
    }

    /// Stops for the observation, if one is needed.
    pub fn look(mut self) -> Result<(), Stop> {
        if !self.processes.is_empty() {
            self.processes
                .sort_by_key(|process| (process.pid, process.start.ticks));
            self.processes.dedup();
            return Err(Stop::Look(Want::Processes(self.processes)));
        }
        if !self.left_behind.is_empty() {
            self.left_behind
                .sort_by_key(|(token, _)| (token.id, token.life));
            self.left_behind.dedup_by_key(|(token, _)| *token);
            return Err(Stop::Look(Want::Survivors(self.left_behind)));
        }
        if !self.turns.is_empty() {
            return Err(Stop::Look(Want::Turns(self.turns)));
        }
        if !self.exit_traces.is_empty() {
            return Err(Stop::Look(Want::ExitTraces(self.exit_traces)));
        }
        Ok(())
    }
}

impl Ctx<'_> {
    /// Makes sure that all these sessions have been observed, in one pass.
    pub fn look_at_all(&mut self, sessions: &[Session]) -> Result<(), Stop> {
        self.read_watchers(sessions)?;
        let mut unseen = Unseen::default();
        for session in sessions {
            unseen.gather(self.liveness(session))?;
        }
        unseen.look()
    }
}
