//! Many deaths at once: after a reboot, or after nobody looked for long.
//!
//! Recording a death writes several rows, and whoever writes keeps every hook out. So one transaction
//! records a few deaths only. A look records those that it comes across first and shows the others as
//! what they are: a death that is not recorded yet is derived anew by everybody who asks, and blocks nobody.
//! Where all of them must be recorded, it is done batch by batch, with a pause after each.
//!
//! *Crash*: what was recorded stays; the next look goes on. *Clock jump*: no clock is compared.

use super::context::{Ctx, Stop};
use super::transact::{Failure, Service};
use tenure_core::liveness::Liveness;
use tenure_core::session::Session;
use tenure_core::store::{Mode, SessionFilter};

/// How many deaths one transaction records.
pub const MOST_BURIALS: usize = 100;

impl Ctx<'_> {
    /// Records the death of one of many sessions that a look came across, unless this transaction recorded
    /// enough already.
    pub fn bury_in_passing(&mut self, session: Session) -> Result<Session, Stop> {
        if self.burials >= MOST_BURIALS || !session.is_open() {
            return Ok(session);
        }
        let session = self.bury_if_dead(session)?;
        self.burials += usize::from(!session.is_open());
        Ok(session)
    }
}

impl Service<'_> {
    /// Records every death that can be proved now.
    pub(super) fn bury_the_dead(&mut self) -> Result<(), Failure> {
        let found = self.transact(Mode::Read, |ctx| {
            let open = ctx.tx.list_sessions(&SessionFilter::default())?;
            ctx.look_at_all(&open)?;
            let mut dead = Vec::new();
            for session in &open {
                if let Liveness::Dead(_) = ctx.liveness(session)? {
                    dead.push(session.id);
                }
            }
            Ok(dead)
        })?;
        for (batch, few) in found.value.chunks(MOST_BURIALS).enumerate() {
            if batch > 0 {
                self.give_way();
            }
            self.transact(Mode::Read, |ctx| {
                for id in few {
                    let session = ctx.session(*id)?;
                    ctx.bury_if_dead(session)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
