//! Agents that run outside any session.

use crate::caller::present::{is_among, open_at};
use crate::transact::{Reply, Service};
use tenure_core::process::Process;
use tenure_core::store::TxMode;

impl Service<'_> {
    /// Which of these processes are not the current process of any session. Delivers nothing.
    pub fn unmanaged(&mut self, processes: &[Process]) -> Reply<Vec<bool>> {
        self.transact(TxMode::Read, |ctx| {
            let open = open_at(ctx, processes.iter())?;
            let strange = processes.iter().map(|process| !is_among(&open, process));
            Ok(strange.collect())
        })
    }
}
