//! Agents that run without being anybody's session.

use super::transact::{Reply, Service};
use tenure_core::process::Process;
use tenure_core::store::Mode;

impl Service<'_> {
    /// Which of these processes are no session's present process. Nobody is told anything on the way.
    pub fn strangers(&mut self, processes: &[Process]) -> Reply<Vec<bool>> {
        self.transact(Mode::Read, |ctx| {
            let mut strange = Vec::with_capacity(processes.len());
            for process in processes {
                let here = ctx.tx.sessions_at(process.into())?;
                let is_known = here.iter().any(|session| {
                    let recorded = session.process.as_ref();
                    recorded.is_some_and(|recorded| recorded.same_as(process))
                });
                strange.push(!is_known);
            }
            Ok(strange)
        })
    }
}
