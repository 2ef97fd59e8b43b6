//! Agents that run without being anybody's session.

use crate::caller::present::sessions_of;
use crate::transact::{Reply, Service};
use tenure_core::process::Process;
use tenure_core::store::Mode;

impl Service<'_> {
    /// Which of these processes are no session's present process. Nobody is told anything on the way.
    pub fn strangers(&mut self, processes: &[Process]) -> Reply<Vec<bool>> {
        self.transact(Mode::Read, |ctx| {
            let mut strange = Vec::with_capacity(processes.len());
            for process in processes {
                strange.push(sessions_of(ctx, process)?.is_empty());
            }
            Ok(strange)
        })
    }
}
