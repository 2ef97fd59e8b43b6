//! Whether a run still runs: its runner and its agent, each by its process.

use tenure_core::id::RunId;
use tenure_core::liveness::{Doubt, Liveness, Proof};
use tenure_core::process::Process;
use tenure_core::run::Run;
use tenure_core::session::{ClosedBy, Session};

use super::error::RunError;
use super::view::{Around, RunView};
use crate::context::{Ctx, Stop};
use crate::error::Error;

/// The two processes of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLife {
    pub runner: Liveness,
    pub agent: Liveness,
    pub process: Option<Process>,
}

impl RunLife {
    /// Whether nothing will ever happen to the run by itself.
    pub fn is_over(&self) -> bool {
        matches!(
            (&self.runner, &self.agent),
            (Liveness::Dead(_), Liveness::Dead(_))
        )
    }

    pub fn is_live(&self) -> bool {
        self.runner == Liveness::Alive || self.agent == Liveness::Alive
    }

    /// Why it cannot be told.
    pub fn doubt(&self) -> Option<&Doubt> {
        [&self.runner, &self.agent]
            .into_iter()
            .find_map(|one| match one {
                Liveness::Unknown(doubt) => Some(doubt),
                Liveness::Alive | Liveness::Dead(_) => None,
            })
    }
}

/// A process that was never there.
fn none() -> Liveness {
    Liveness::Dead(Proof::Recorded("it has none".into()))
}

impl Ctx<'_> {
    /// Looks at the processes of a run.
    pub(crate) fn run_life(&mut self, run: &Run) -> Result<RunLife, Stop> {
        let runner = match &run.runner {
            Some(runner) => self.process_liveness(runner)?,
            None => none(),
        };
        let Some(session) = self.session_of_run(run)? else {
            return Ok(RunLife {
                runner,
                agent: none(),
                process: None,
            });
        };
        let died = session
            .closed
            .as_ref()
            .filter(|closed| closed.by == ClosedBy::Death);
        let agent = match (died, &session.process) {
            (Some(closed), _) => Liveness::Dead(Proof::Recorded(closed.why.clone())),
            (None, Some(process)) => self.process_liveness(process)?,
            (None, None) => Liveness::Unknown(Doubt::Unverified),
        };
        Ok(RunLife {
            runner,
            agent,
            process: session.process,
        })
    }

    /// The session that a run's agent is; none where that went on in another life.
    pub(crate) fn session_of_run(&mut self, run: &Run) -> Result<Option<Session>, Stop> {
        let Some(token) = run.session else {
            return Ok(None);
        };
        let session = self.session(token.id)?;
        Ok((session.life == token.life).then_some(session))
    }

    /// A run by its id or the beginning of it.
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
        let fits = self.tx.match_runs(name, MOST_CANDIDATES)?;
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

    /// A run that is known to be there.
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

/// How many runs are named that fit a part of an id.
const MOST_CANDIDATES: usize = 5;
