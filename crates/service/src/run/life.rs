//! Finding runs by name, and their views.

use tenure_core::id::RunId;
use tenure_core::liveness::Liveness;
use tenure_core::run::Run;

use super::error::RunError;
use super::view::{Around, RunView};
use crate::context::{Ctx, Stop};
use crate::error::Error;

impl Ctx<'_> {
    /// A run by its id or a prefix of it.
    pub(crate) fn find_run(&mut self, name: &str) -> Result<Run, Stop> {
        if let Ok(id) = RunId::parse(name)
            && let Some(run) = self.tx.run_by_id(&id)?
        {
            return Ok(run);
        }
        let missing = || {
            Error::from(RunError::NoSuchRun {
                name: name.to_owned(),
            })
        };
        if name.is_empty() {
            return Err(missing().into());
        }
        let fits = self.tx.match_runs(name, MAX_CANDIDATES)?;
        match fits.as_slice() {
            [] => Err(missing().into()),
            [one] => self.run_of(one),
            several => {
                let candidates = several.iter().map(ToString::to_string).collect();
                let name = name.to_owned();
                Err(Error::from(RunError::SeveralRuns { name, candidates }).into())
            }
        }
    }

    /// A run that must exist.
    pub(crate) fn run_of(&mut self, id: &RunId) -> Result<Run, Stop> {
        let name = id.to_string();
        let missing = || Error::from(RunError::NoSuchRun { name });
        Ok(self.tx.run_by_id(id)?.ok_or_else(missing)?)
    }

    pub(crate) fn run_view(&mut self, run: &Run) -> Result<RunView, Stop> {
        let mut around = Around::default();
        if let Some(token) = run.session {
            around.session = Some(self.session(token.id)?.handle.to_string());
        }
        if let Some(by) = run.stop.as_ref().and_then(|stop| stop.by) {
            around.stop_by = Some(self.session(by)?.handle.to_string());
        }
        if run.is_open() {
            let life = self.run_life(run)?;
            around.past_timeout = matches!(life.runner, Liveness::Dead(_))
                && !matches!(life.agent, Liveness::Dead(_))
                && run.is_past_timeout(self.now.wall);
            around.runner = Some(match life.runner {
                Liveness::Alive => "live",
                Liveness::Dead(_) => "dead",
                Liveness::Unknown(_) => "unknown",
            });
            let runs = life.agent == Liveness::Alive;
            around.pid = life.process.filter(|_| runs).map(|process| process.pid);
        }
        Ok(RunView::of(run, around))
    }
}

/// How many matching runs an ambiguous prefix lists.
const MAX_CANDIDATES: usize = 5;
