//! Sessions on other machines, judged by what the keepers there report.
//!
//! No process of another machine can be observed. What is known about it is when the keeper there last renewed its row,
//! and that this life of the keeper watches the session's process. So such a session has two leases: its own, which its
//! calls renew, and that of its machine. The later end counts. A keeper records a death that it sees in the store, so
//! that it is known at once.
//!
//! A judge that takes something because a machine is silent locks the keeper's row first and reads it again: a renewal
//! that was made in between counts.
//!
//! *Crash*: nothing is stored here. *Clock jump*: leases are on the store's clock, and a copied machine is recognised by
//! comparing its boot with the last sign of life, both by the store's wall clock. *Older version*: a session that no
//! keeper watches lives by its own lease.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tenure_core::claim::Hold;
use tenure_core::id::{SessionId, SessionToken};
use tenure_core::keeper::{self, Keeper};
use tenure_core::key::Key;
use tenure_core::liveness::{Doubt, Liveness, Proof};
use tenure_core::session::{Session, Standing};
use tenure_core::store::{Lock, Untold};
use tenure_core::time::{Deadline, Remaining};

use crate::context::{Ctx, Stop};

impl Ctx<'_> {
    /// Who watches a session in its present life, on a store that several machines use.
    pub fn watcher(&mut self, session: &Session) -> Result<Option<Keeper>, Stop> {
        if !self.observer.shared_store {
            return Ok(None);
        }
        if let Some(known) = self.watchers.get(&session.id) {
            return Ok(known.clone());
        }
        self.read_watchers(std::slice::from_ref(session))?;
        Ok(self.watchers.get(&session.id).cloned().flatten())
    }

    /// The same for many sessions, in one question.
    pub fn read_watchers(&mut self, sessions: &[Session]) -> Result<(), Stop> {
        let is_new = |session: &&Session| !self.watchers.contains_key(&session.id);
        let unknown: Vec<&Session> = sessions.iter().filter(is_new).collect();
        if !self.observer.shared_store || unknown.is_empty() {
            return Ok(());
        }
        let ids: Vec<SessionId> = unknown.iter().map(|session| session.id).collect();
        let mut found: HashMap<SessionToken, Vec<Keeper>> = HashMap::new();
        for (token, keeper) in self.tx.watchers_of(&ids)? {
            found.entry(token).or_default().push(keeper);
        }
        for session in unknown {
            let process = session.process.as_ref();
            let sees = |keeper: &Keeper| process.is_some_and(|process| keeper.sees(process));
            let keepers = found.remove(&session.token()).unwrap_or_default();
            let keeper = keepers.into_iter().find(sees);
            self.watchers.insert(session.id, keeper);
        }
        Ok(())
    }

    /// What is known about an open session whose process was not seen running from here.
    pub(super) fn reported(&mut self, session: &Session, seen: Liveness) -> Result<Liveness, Stop> {
        match seen {
            Liveness::Dead(Proof::Rebooted) if self.is_copied(session)? => {
                self.doubt(session, Doubt::OtherHost)
            }
            Liveness::Unknown(doubt) => self.doubt(session, doubt),
            settled => Ok(settled),
        }
    }

    fn doubt(&mut self, session: &Session, doubt: Doubt) -> Result<Liveness, Stop> {
        let Some(keeper) = self.watcher(session)? else {
            return Ok(Liveness::Unknown(doubt));
        };
        let age = keeper.age(&self.now).unwrap_or_default();
        let host = keeper.host_name.clone();
        Ok(Liveness::Unknown(
            match keeper.lease().remaining(&self.now) {
                Remaining::Open(_) | Remaining::CannotTell => Doubt::Watched { host, age },
                Remaining::Over(_) => Doubt::HostSilent { host, age },
            },
        ))
    }

    /// The name of the machine that a session runs on, if that is not this one.
    pub(super) fn other_machine(&mut self, session: &Session) -> Result<Option<String>, Stop> {
        let host = session.process.as_ref().map(|process| process.host.clone());
        let Some(host) = host.filter(|host| *host != self.observer.host) else {
            return Ok(None);
        };
        if !self.observer.shared_store {
            return Ok(None);
        }
        let keeper = self.watcher(session)?;
        Ok(Some(keeper.map_or_else(
            || host.to_string(),
            |keeper| keeper.host_name,
        )))
    }

    /// Whether a session that names an earlier boot of this machine reported after this boot began. Then the machine
    /// is a copy, and the session runs on the other one.
    fn is_copied(&mut self, session: &Session) -> Result<bool, Stop> {
        let Some(since_boot) = self.world.since_boot() else {
            return Ok(true);
        };
        let booted_at = self.now.wall.minus(since_boot);
        let renewed_at = self.watcher(session)?.map(|keeper| keeper.seen_at);
        Ok(session.seen_at.max(renewed_at.unwrap_or(session.seen_at)) > booted_at)
    }

    /// How a session stands whose liveness is known.
    pub fn standing_as(
        &mut self,
        session: &Session,
        liveness: &Liveness,
    ) -> Result<Standing, Stop> {
        let (lease, lock_delay) = match liveness {
            Liveness::Unknown(_) => self.lease_of(session)?,
            Liveness::Alive | Liveness::Dead(_) => (session.lease.clone(), self.policy.lock_delay),
        };
        Ok(Standing::of(liveness, &lease, lock_delay, &self.now))
    }

    /// The lease of a session that cannot be seen, and how long its claims stay held after that.
    fn lease_of(&mut self, session: &Session) -> Result<(Deadline, Duration), Stop> {
        let (lease, delay) = (session.lease.clone(), self.policy.lock_delay);
        Ok(match self.watcher(session)? {
            Some(keeper) => (
                lease.or_later(keeper.lease()),
                delay.max(keeper.terms.lock_delay),
            ),
            None => (lease, delay),
        })
    }

    /// Records that a session on another machine loses a key to a takeover that its keeper has not learnt of.
    pub(super) fn note_untold(&mut self, holder: &Session, hold: &Hold) -> Result<(), Stop> {
        if holder.is_open()
            && let Some(keeper) = self.watcher(holder)?
        {
            self.tx.add_untold(&Untold {
                key: hold.key.clone(),
                epoch: hold.epoch,
                keeper: keeper.id,
                at: self.now.after(Duration::ZERO),
            })?;
        }
        Ok(())
    }

    /// How long machines may still permit writes to keys that were taken over from their sessions, because they have not
    /// learnt of that. Keys of which all have are left out.
    pub(super) fn may_be_written_for(
        &mut self,
        keys: &[Key],
    ) -> Result<BTreeMap<Key, Duration>, Stop> {
        let mut longest: BTreeMap<Key, Duration> = BTreeMap::new();
        if !self.observer.shared_store || keys.is_empty() {
            return Ok(longest);
        }
        for (untold, keeper) in self.tx.untold(keys)? {
            let knows = keeper
                .acknowledged
                .as_ref()
                .is_some_and(|at| keeper::is_told(&at.at, &untold.at.at));
            let left = match keeper.lease().remaining(&self.now) {
                Remaining::Open(left) => Some(left.saturating_add(keeper.terms.lock_delay)),
                Remaining::Over(past) => keeper.terms.lock_delay.checked_sub(past),
                Remaining::CannotTell => Some(keeper.terms.host_lease),
            };
            if let Some(left) = left.filter(|_| !knows) {
                let known = longest.entry(untold.key).or_default();
                *known = left.max(*known);
            }
        }
        Ok(longest)
    }

    /// The rows of the keepers by which the sessions among these locks were judged.
    pub(super) fn keepers_of(&self, locks: &[Lock]) -> Vec<Lock> {
        let keeper = |lock: &Lock| match lock {
            Lock::Session(id) => self.watchers.get(id).cloned().flatten(),
            _ => None,
        };
        let keepers = locks.iter().filter_map(keeper);
        keepers.map(|keeper| Lock::Keeper(keeper.id)).collect()
    }
}
