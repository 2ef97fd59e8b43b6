//! What a keeper does in the store: it renews its row, watches the sessions of its machine and records their deaths.
//!
//! A renewal lists the holds of the sessions that run, so it also finds those that have died. It waits for no row of a
//! claim or session: it only says which sessions are dead, and each death is recorded in a transaction of its own
//! afterwards. Both are safe to call at any time and as often as anything may have changed: a beat, the exit of a
//! watched process and a new session all lead to the same calls.
//!
//! *Crash*: a keeper that dies leaves its row behind, and its sessions count as alive by it until the lease is over. Its
//! next life watches what it sees and records the other deaths. *Clock jump*: the renewal is on the store's clock; what
//! the keeper derives from it is on the boot clock of its machine ([`tenure_core::keeper`]). *Older version*: the row
//! carries the version of the keeper.

mod given_up;
mod lines;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_core::id::{KeeperId, SessionId, SessionToken};
use tenure_core::keeper::{Keeper, KeeperPlace};
use tenure_core::liveness::Liveness;
use tenure_core::process::Process;
use tenure_core::session::Session;
use tenure_core::store::{Lock, TxMode, WatchedHold};
use tenure_core::time::{Deadline, Timestamp};

use crate::context::{Ctx, Stop};
use crate::transact::{Failure, Reply, Service};
use crate::unseen::Unseen;

pub use given_up::{Brought, GivenUp};
pub use lines::FreeLines;
pub use view::KeeperView;

/// How long the row of a keeper that is silent is kept, and how many are removed at once.
const SILENT_FOR: Duration = Duration::from_secs(30 * 24 * 3600);
const MAX_FORGOTTEN: usize = 100;

/// A keeper that renews its row.
#[derive(Debug, Clone)]
pub struct RenewKeeper {
    pub id: KeeperId,
    pub uid: u32,
    pub pid: u32,
    pub version: String,
    /// The name of the machine, for people.
    pub host_name: String,
    pub started_at: Timestamp,
    /// The newest renewal whose answer it has had for a lock delay.
    pub acknowledged: Option<Deadline>,
}

/// A session that a keeper watches.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    pub session: Session,
    /// The process whose exit is the next thing that can happen to it.
    pub process: Process,
}

/// The answer to a renewal.
#[derive(Debug, Clone)]
pub struct Renewed {
    /// When it was made, on the store's clock.
    pub at: Deadline,
    pub watched: Vec<Watched>,
    /// What the watched sessions hold.
    pub holds: Vec<WatchedHold>,
    /// The sessions that have died, and whose deaths are not recorded yet.
    pub dead: Vec<SessionId>,
}

impl Service<'_> {
    /// Renews a keeper's row, watches the sessions that it sees running, and returns the others.
    pub fn renew_keeper(&mut self, request: &RenewKeeper) -> Reply<Renewed> {
        self.transact(TxMode::Write, |ctx| renew(ctx, request))
    }

    /// Records the death of a session, if it is still open and dead.
    pub fn record_death(&mut self, dead: SessionId) -> Result<(), Failure> {
        self.record_deaths(&[dead]).map(drop)
    }

    /// Removes the row of a keeper that ends by itself.
    pub fn remove_keeper(&mut self, id: &KeeperId) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| {
            ctx.lock([Lock::Keeper(id.clone())])?;
            Ok(ctx.tx.remove_keeper(id)?)
        })
    }

    /// The keepers of the machine of which this one is a copy; none if it is not. `known` has the newest renewal of each
    /// keeper that the state directory knows of.
    pub fn originals(&mut self, known: &BTreeMap<String, i64>) -> Reply<Vec<KeeperView>> {
        self.transact(TxMode::Read, |ctx| originals(ctx, known))
    }

    /// The keepers that use the store, the one that renewed last first.
    pub fn keepers(&mut self) -> Reply<Vec<KeeperView>> {
        self.transact(TxMode::Read, |ctx| {
            let all = ctx.tx.keepers()?;
            let view = |keeper: &Keeper| KeeperView::of(keeper, &ctx.now);
            Ok(all.iter().map(view).collect())
        })
    }
}

fn originals(ctx: &mut Ctx<'_>, known: &BTreeMap<String, i64>) -> Result<Vec<KeeperView>, Stop> {
    let Some(since_boot) = ctx.world.since_boot() else {
        return Ok(Vec::new());
    };
    let booted_at = ctx.now.wall.minus(since_boot);
    let all = ctx.tx.keepers()?;
    let here = &ctx.observer;
    let is_own = |one: &Keeper| one.place.host == here.host && one.boot == here.boot;
    // A keeper of this boot has sessions under this id.
    if all.iter().any(is_own) {
        return Ok(Vec::new());
    }
    let is_one = |one: &&Keeper| {
        let known = known.get(one.id.as_str()).copied();
        one.is_original_of(here, booted_at, known, &ctx.now)
    };
    let found = all.iter().filter(is_one);
    Ok(found.map(|one| KeeperView::of(one, &ctx.now)).collect())
}

fn renew(ctx: &mut Ctx<'_>, request: &RenewKeeper) -> Result<Renewed, Stop> {
    ctx.lock([Lock::Keeper(request.id.clone())])?;
    let keeper = row(ctx, request);
    let open = ctx.tx.open_sessions_at(&keeper.place)?;
    let (watched, dead) = look_at(ctx, &keeper, &open)?;
    ctx.tx.renew_keeper(&keeper)?;
    if keeper.acknowledged.is_none() {
        let long_ago = ctx.now.wall.minus(SILENT_FOR);
        ctx.tx.forget_keepers(long_ago, MAX_FORGOTTEN)?;
    }
    if let Some(known) = &keeper.acknowledged {
        ctx.tx.forget_untold(&keeper.id, known)?;
    }
    let tokens: Vec<SessionToken> = watched.iter().map(|one| one.session.token()).collect();
    watch_new(ctx, &keeper, &tokens)?;
    let holds = ctx.tx.watched_holds(&keeper.id)?;
    Ok(Renewed {
        at: keeper.renewed,
        watched,
        holds,
        dead,
    })
}

fn row(ctx: &Ctx<'_>, request: &RenewKeeper) -> Keeper {
    Keeper {
        id: request.id.clone(),
        place: KeeperPlace {
            host: ctx.observer.host.clone(),
            pid_ns: ctx.observer.pid_ns,
        },
        boot: ctx.observer.boot.clone(),
        uid: request.uid,
        pid: request.pid,
        version: request.version.clone(),
        host_name: request.host_name.clone(),
        started_at: request.started_at,
        seen_at: ctx.now.wall,
        renewed: ctx.now.after(Duration::ZERO),
        acknowledged: request.acknowledged.clone(),
        terms: ctx.policy.keeper_terms(),
    }
}

/// The sessions that run and those that are dead, of all that are open here.
fn look_at(
    ctx: &mut Ctx<'_>,
    keeper: &Keeper,
    open: &[Session],
) -> Result<(Vec<Watched>, Vec<SessionId>), Stop> {
    let mut unseen = Unseen::default();
    let mut watched = Vec::new();
    let mut dead = Vec::new();
    for session in open {
        let Some((liveness, decides)) = unseen.gather(ctx.seen_to_live_by(session))? else {
            continue;
        };
        match (liveness, decides) {
            (Liveness::Alive, Some(process)) if keeper.sees(&process) => watched.push(Watched {
                session: session.clone(),
                process,
            }),
            (Liveness::Dead(_), _) => dead.push(session.id),
            _ => {}
        }
    }
    unseen.look()?;
    Ok((watched, dead))
}

/// Records what is not recorded yet.
fn watch_new(ctx: &mut Ctx<'_>, keeper: &Keeper, tokens: &[SessionToken]) -> Result<(), Stop> {
    let ids: Vec<_> = tokens.iter().map(|token| token.id).collect();
    let known = ctx.tx.watchers_of(&ids)?.into_iter();
    let known: BTreeSet<_> = known
        .filter(|(_, by)| by.id == keeper.id)
        .map(|(token, _)| (token.id, token.life))
        .collect();
    let is_new = |token: &&SessionToken| !known.contains(&(token.id, token.life));
    let new: Vec<SessionToken> = tokens.iter().filter(is_new).copied().collect();
    if !new.is_empty() {
        ctx.tx.watch_sessions(&keeper.id, &new)?;
    }
    Ok(())
}
