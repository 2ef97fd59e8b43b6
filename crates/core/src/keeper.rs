//! What a keeper may answer from memory while the store is away, and when others may take what its host held.
//!
//! A keeper renews one row per host in the store and gets back a list of the holds of its sessions. While the store
//! does not answer, the guard of a listed hold is answered from that list. This module owns both sides of the bargain:
//! how long the list is good ([`Terms::margin`]), and how long the store waits before it gives a silent host's holds
//! away ([`Terms::is_over`]). The invariant, which crates/core/tests/keeper_model.rs checks exhaustively: after a yes
//! from memory no other session is granted the key for a lock delay, unless a person takes it over.
//!
//! The two sides never compare clocks. The keeper measures from the moment *before* it sent the renewal, on a clock
//! that also counts while the machine sleeps; the store measures from the moment *after* it locked the row, on its
//! own clock. So the keeper's span always begins first, and it is a fifth shorter.
//!
//! *Crash*: a keeper that starts again has no list and answers nothing from memory. *Clock jump*: the boot clock does
//! not jump; the store's may advance by two beats at once, which the fifth covers.

use std::time::Duration;

use crate::id::{Epoch, HostId, KeeperId};
use crate::process::{BootId, Observer, Process};
use crate::time::{Deadline, Now, Remaining, Timestamp};

/// Where a keeper sees every process: one machine and one pid namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeeperPlace {
    pub host: HostId,
    pub pid_ns: u64,
}

/// One life of a keeper, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeper {
    pub id: KeeperId,
    pub place: KeeperPlace,
    pub boot: BootId,
    pub uid: u32,
    pub pid: u32,
    /// The version of tenure that it runs.
    pub version: String,
    /// The name of its machine, for people.
    pub host_name: String,
    pub started_at: Timestamp,
    /// When it last renewed its row.
    pub seen_at: Timestamp,
    /// The same on the store's clock.
    pub renewed: Deadline,
    /// The newest renewal, on the store's clock, whose answer it has had for a lock delay; none if there is none.
    pub acknowledged: Option<Deadline>,
    /// What it and the judges of its host agree on.
    pub terms: Terms,
}

impl Keeper {
    /// Until when its sessions count as alive by its last renewal.
    pub fn lease(&self) -> Deadline {
        let millis = i64::try_from(self.terms.host_lease.as_millis()).unwrap_or(i64::MAX);
        Deadline {
            era: self.renewed.era.clone(),
            at: self.renewed.at.saturating_add(millis),
        }
    }

    /// How old its last renewal is by the store's clock; none if the clocks cannot be compared.
    pub fn age(&self, now: &Now) -> Option<Duration> {
        let past = now.steady.saturating_sub(self.renewed.at);
        (self.renewed.era == now.era).then(|| Duration::from_millis(past.max(0).unsigned_abs()))
    }

    /// Whether it shows that this machine is a copy of its machine: it has the same host id under another boot, and
    /// renewed its row after this boot began, which an earlier boot of the same machine cannot do.
    ///
    /// `known` is the newest of its renewals that this state directory knows of. A keeper that went on renewing without
    /// this directory writes to another one. A boot id that a container made up is no proof by itself, and the boot
    /// clock counts for all containers of a machine; so such a keeper must count as alive as well.
    pub fn is_original_of(
        &self,
        copy: &Observer,
        booted_at: Timestamp,
        known: Option<i64>,
        now: &Now,
    ) -> bool {
        let is_twin = self.place.host == copy.host && self.boot != copy.boot;
        let went_on = self.seen_at > booted_at && known.is_none_or(|at| self.renewed.at > at);
        let is_private = self.boot.private || copy.boot.private;
        let is_live = matches!(self.lease().remaining(now), Remaining::Open(_));
        is_twin && went_on && (is_live || !is_private)
    }

    /// Whether a process is one that it can watch.
    pub fn sees(&self, process: &Process) -> bool {
        process.host == self.place.host
            && process.pid_ns == self.place.pid_ns
            && process.boot == self.boot
    }
}

/// A moment on a machine's own clock that counts from boot, sleep included (CLOCK_BOOTTIME).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootTime(pub Duration);

impl BootTime {
    #[must_use]
    pub fn plus(self, span: Duration) -> BootTime {
        BootTime(self.0.saturating_add(span))
    }
}

/// The times that a keeper and the judges of its host agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Terms {
    /// How long a host counts as alive after its last renewal.
    pub host_lease: Duration,
    /// How much longer its sessions keep their claims after that.
    pub lock_delay: Duration,
}

impl Terms {
    /// How long after a renewal began its list may be answered from.
    pub fn margin(&self) -> Duration {
        self.host_lease * 4 / 5
    }

    /// Whether a keeper that has had the answer to a renewal for this long reports it as answered.
    ///
    /// A yes from the list before it may have been given in the moment before, and is good for a lock delay.
    pub fn is_acknowledged(&self, answered_for: Duration) -> bool {
        answered_for >= self.lock_delay
    }

    /// Whether the holds of a host that last renewed this long ago, by the store's clock, may be given away.
    pub fn is_over(&self, silent_for: Duration) -> bool {
        silent_for >= self.host_lease.saturating_add(self.lock_delay)
    }
}

/// A renewal whose answer the keeper has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Renewal {
    /// Read before the renewal was sent.
    pub began: BootTime,
    /// The epoch at which the store listed the hold in question; none if it did not.
    pub listed: Option<Epoch>,
}

/// A guard's question, asked of the keeper's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardQuestion {
    /// The epoch that the session was granted.
    pub epoch: Epoch,
    /// Whether the session gave this epoch up since, as far as this host knows: released, handed on, ended or dead.
    /// An epoch is never granted twice, so this stays true.
    pub given_up: bool,
}

/// Why memory does not permit a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    #[error("the keeper of this machine has not reached it yet")]
    NoRenewal,
    #[error("its last answer is too old")]
    MarginOver,
    #[error("the claim was not this session's when it last answered")]
    NotListed,
    #[error("the claim was released since then")]
    GivenUp,
}

/// Answers a guard without the store: until when a write is permitted.
pub fn from_memory(
    terms: &Terms,
    renewal: Option<&Renewal>,
    asked: &GuardQuestion,
    now: BootTime,
) -> Result<BootTime, Unanswered> {
    let renewal = renewal.ok_or(Unanswered::NoRenewal)?;
    let until = renewal.began.plus(terms.margin());
    if now >= until {
        return Err(Unanswered::MarginOver);
    }
    if asked.given_up {
        return Err(Unanswered::GivenUp);
    }
    if renewal.listed != Some(asked.epoch) {
        return Err(Unanswered::NotListed);
    }
    Ok(until)
}

/// Whether a host has learnt of a takeover: its keeper has acknowledged a renewal that the store made after it.
///
/// The renewal itself is not enough. Its answer may be lost, and the keeper goes on by the list before it.
pub fn is_told<Time: PartialOrd>(acknowledged: &Time, taken_over_at: &Time) -> bool {
    acknowledged > taken_over_at
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms {
        host_lease: Duration::from_secs(300),
        lock_delay: Duration::from_secs(30),
    };

    fn at(seconds: u64) -> BootTime {
        BootTime(Duration::from_secs(seconds))
    }

    fn renewal() -> Renewal {
        Renewal {
            began: at(100),
            listed: Some(Epoch(7)),
        }
    }

    fn asked() -> GuardQuestion {
        GuardQuestion {
            epoch: Epoch(7),
            given_up: false,
        }
    }

    #[test]
    fn a_listed_hold_may_be_written_until_the_margin_is_over() {
        let answer = |now| from_memory(&TERMS, Some(&renewal()), &asked(), at(now));
        assert_eq!(answer(100), Ok(at(340)));
        assert_eq!(answer(339), Ok(at(340)));
        assert_eq!(answer(340), Err(Unanswered::MarginOver));
    }

    #[test]
    fn what_is_not_listed_or_was_given_up_is_refused() {
        let older = GuardQuestion {
            epoch: Epoch(6),
            ..asked()
        };
        let given_up = GuardQuestion {
            given_up: true,
            ..asked()
        };
        let answer = |asked| from_memory(&TERMS, Some(&renewal()), asked, at(101));
        assert_eq!(answer(&older), Err(Unanswered::NotListed));
        assert_eq!(answer(&given_up), Err(Unanswered::GivenUp));
        let none = from_memory(&TERMS, None, &asked(), at(101));
        assert_eq!(none, Err(Unanswered::NoRenewal));
    }

    #[test]
    fn holds_are_given_away_after_lease_and_lock_delay() {
        assert!(!TERMS.is_over(Duration::from_secs(329)));
        assert!(TERMS.is_over(Duration::from_secs(330)));
    }
}
