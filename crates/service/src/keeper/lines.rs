//! Whose turn it is, for all waiters of a machine in one look.

use tenure_core::id::{Epoch, Ticket};
use tenure_core::keeper::{Keeper, KeeperPlace};
use tenure_core::key::Key;
use tenure_core::line::{Fitness, Waiter};
use tenure_core::store::{ClaimFilter, TxMode};
use tenure_core::waking::FreeLine;

use crate::context::{Ctx, Stop};
use crate::transact::{Reply, Service};
use crate::unseen::Unseen;

/// The lines that matter to the waiters of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FreeLines {
    pub lines: Vec<FreeLine>,
    /// The paths that are held, if somebody waits for one.
    pub held_paths: Vec<(Key, Epoch)>,
    /// Waiters that have died, or whose machine has vanished.
    pub gone: Vec<Ticket>,
}

impl Service<'_> {
    /// The lines of free keys that somebody at a place waits for.
    pub fn free_lines(&mut self, place: &KeeperPlace) -> Reply<FreeLines> {
        self.transact(TxMode::Read, |ctx| free_lines(ctx, place))
    }
}

fn free_lines(ctx: &mut Ctx<'_>, place: &KeeperPlace) -> Result<FreeLines, Stop> {
    let waiters = ctx.tx.free_lines(place)?;
    let mut found = FreeLines::default();
    if waiters.is_empty() {
        return Ok(found);
    }
    let is_elsewhere = |waiter: &Waiter| waiter.process.host != place.host;
    let keepers = if waiters.iter().any(is_elsewhere) {
        ctx.tx.keepers()?
    } else {
        Vec::new()
    };
    let mut keys: Vec<Key> = waiters.iter().map(|waiter| waiter.key.clone()).collect();
    keys.dedup();
    let records = ctx.claim_records(&keys)?;
    let mut unseen = Unseen::default();
    for record in &records {
        let mut line = FreeLine {
            key: record.key.clone(),
            epoch: record.epoch,
            waiters: Vec::new(),
        };
        for waiter in waiters.iter().filter(|waiter| waiter.key == record.key) {
            let Some(fitness) = unseen.gather(ctx.fitness(&waiter.process))? else {
                continue;
            };
            if fitness == Fitness::Dead || has_vanished(ctx, waiter, &keepers) {
                found.gone.push(waiter.ticket);
            } else if fitness == Fitness::Ready && !waiter.has_passed(record.epoch) {
                line.waiters.push(waiter.ticket);
            }
        }
        found.lines.push(line);
    }
    unseen.look()?;
    found.gone.sort();
    found.gone.dedup();
    if keys.iter().any(|key| key.path_parts().is_some()) {
        let paths = ClaimFilter {
            prefix: Some("path:".into()),
            ..ClaimFilter::default()
        };
        let held = ctx.tx.list_claims(&paths)?.into_iter();
        found.held_paths = held.map(|record| (record.key, record.epoch)).collect();
    }
    Ok(found)
}

/// Whether the machine of a waiter has been silent for so long that what it holds may be given away. A machine without a
/// keeper is not known to be.
fn has_vanished(ctx: &Ctx<'_>, waiter: &Waiter, keepers: &[Keeper]) -> bool {
    let process = &waiter.process;
    let is_its =
        |one: &&Keeper| one.place.host == process.host && one.place.pid_ns == process.pid_ns;
    let mut its = keepers.iter().filter(is_its).peekable();
    let is_over = |one: &Keeper| one.age(&ctx.now).is_some_and(|age| one.terms.is_over(age));
    its.peek().is_some() && its.all(is_over)
}
