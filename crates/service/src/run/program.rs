//! A run whose own process only started the agent: the agent's process becomes the session's, in
//! the same life.

use tenure_core::event::EventKind;
use tenure_core::id::RunId;
use tenure_core::process::{Ancestor, Process};
use tenure_core::run::program::is_program;
use tenure_core::session::Session;
use tenure_core::store::{Lock, TxMode};

use super::progress::open;
use crate::caller::present::sessions_of;
use crate::context::{Ctx, Stop};
use crate::transact::{Reply, Service};

impl Service<'_> {
    /// Makes a process below a run's own process the session's, if it is the agent's. It is the
    /// first of `chain`.
    pub fn run_program_is(&mut self, id: &RunId, chain: &[Ancestor]) -> Reply<bool> {
        self.transact(TxMode::Read, |ctx| {
            let run = open(ctx, id)?;
            step(ctx, chain)?;
            // A hook of the agent may have been faster.
            let now = ctx.session_of_run(&run)?;
            let process = now.and_then(|session| session.process);
            let program = chain.first().map(|one| &one.process);
            Ok(program.is_some_and(|program| process.is_some_and(|now| now.same_as(program))))
        })
    }

    /// The process of a run's session, which a hook of the agent may have named.
    pub fn run_program(&mut self, id: &RunId) -> Reply<Option<Process>> {
        self.transact(TxMode::Read, |ctx| {
            let run = open(ctx, id)?;
            let session = ctx.session_of_run(&run)?;
            Ok(session.and_then(|session| session.process))
        })
    }
}

/// Makes this process the session's, if it is the agent that a run's process above it was started
/// for.
pub(crate) fn step(ctx: &mut Ctx<'_>, chain: &[Ancestor]) -> Result<(), Stop> {
    let Some((program, above)) = chain.split_first() else {
        return Ok(());
    };
    let Some((height, session)) = wrapper(ctx, above)? else {
        return Ok(());
    };
    let Some(run) = ctx.open_run_in(&session)? else {
        return Ok(());
    };
    if !is_program(&session.agent, &chain[..height + 2])
        || !sessions_of(ctx, &program.process)?.is_empty()
    {
        return Ok(());
    }
    ctx.lock([Lock::Session(session.id)])?;
    let stepped = Session {
        process: Some(program.process.clone()),
        ..session
    };
    ctx.tx.update_session(&stepped)?;
    let (id, pid) = (stepped.id, program.process.pid);
    let evidence = format!("{run}: pid {pid} is the agent itself");
    ctx.log(&ctx.event(EventKind::Changed, Some(id), "run", evidence))
}

/// The session of the nearest of these processes, if it still has the process that its life began
/// with.
fn wrapper(ctx: &mut Ctx<'_>, above: &[Ancestor]) -> Result<Option<(usize, Session)>, Stop> {
    let places: Vec<_> = above.iter().map(|one| (&one.process).into()).collect();
    let there = ctx.tx.sessions_at_any(&places)?;
    for (height, one) in above.iter().enumerate() {
        let mut at = there.iter().filter(|session| {
            let its = session.process.as_ref();
            its.is_some_and(|its| its.same_as(&one.process))
        });
        let Some(session) = at.next() else { continue };
        let first = ctx.tx.lives_up_to(session.token(), 1)?;
        let is_first = first
            .iter()
            .any(|(life, process)| *life == session.life && process.same_as(&one.process));
        return Ok(is_first.then(|| (height, session.clone())));
    }
    Ok(None)
}
