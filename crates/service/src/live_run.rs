//! What runs and conversations both need: whether a run is live, and asking it to stop.

use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::SessionId;
use tenure_core::liveness::{Doubt, Liveness, Proof};
use tenure_core::process::Process;
use tenure_core::run::end::Stop as Cause;
use tenure_core::run::{Run, StopAsked};
use tenure_core::session::{ClosedBy, Session};
use tenure_core::store::Lock;

use crate::context::{Ctx, Stop};

/// Whether the two processes of a run are alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLife {
    pub runner: Liveness,
    pub agent: Liveness,
    pub process: Option<Process>,
}

impl RunLife {
    /// Whether both are dead, so nothing more happens in the run by itself.
    pub fn is_over(&self) -> bool {
        matches!(
            (&self.runner, &self.agent),
            (Liveness::Dead(_), Liveness::Dead(_))
        )
    }

    pub fn is_live(&self) -> bool {
        self.runner == Liveness::Alive || self.agent == Liveness::Alive
    }

    /// Why that is unknown, if it is.
    pub fn doubt(&self) -> Option<&Doubt> {
        [&self.runner, &self.agent]
            .into_iter()
            .find_map(|one| match one {
                Liveness::Unknown(doubt) => Some(doubt),
                Liveness::Alive | Liveness::Dead(_) => None,
            })
    }
}

/// For a process that never existed; its proof is shown to nobody.
fn none() -> Liveness {
    Liveness::Dead(Proof::Recorded(String::new()))
}

impl Ctx<'_> {
    /// Observes the processes of a run.
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

    /// The session of a run's agent; `None` if that session continued in another life.
    pub(crate) fn session_of_run(&mut self, run: &Run) -> Result<Option<Session>, Stop> {
        let Some(token) = run.session else {
            return Ok(None);
        };
        let session = self.session(token.id)?;
        Ok((session.life == token.life).then_some(session))
    }

    pub(crate) fn update_run(&mut self, run: &mut Run) -> Result<(), Stop> {
        self.tx.update_run(run)?;
        run.revision += 1;
        Ok(())
    }
}

/// Who asks a run to stop, and the reason if they act for another session.
#[derive(Debug, Default)]
pub(crate) struct AskedBy {
    pub session: Option<SessionId>,
    pub reason: Option<String>,
}

/// Records a request to stop. The first request is kept.
pub(crate) fn ask_to_stop(
    ctx: &mut Ctx<'_>,
    run: &Run,
    by: AskedBy,
    cause: Cause,
    why: &str,
) -> Result<Run, Stop> {
    let mut run = run.clone();
    if run.stop.is_some() {
        return Ok(run);
    }
    ctx.lock([Lock::Run(run.id.clone())])?;
    run.stop = Some(StopAsked {
        cause,
        at: ctx.now.wall,
        by: by.session,
        why: why.to_owned(),
    });
    ctx.update_run(&mut run)?;
    let session = run.session.map(|token| token.id);
    let evidence = format!("{}: {why}", run.id);
    ctx.log(&NewEvent {
        actor: by.session.filter(|by| Some(*by) != session),
        reason: by.reason,
        key: Some(run.item.clone()),
        ..ctx.event(EventKind::RunStopAsked, session, "run", evidence)
    })?;
    Ok(run)
}
