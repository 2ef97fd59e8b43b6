//! What a history shows about who was alive when, for the model.
//!
//! Whether a process is alive is known from outside, within bounds: it may be dead from the moment
//! before it was killed, and is certainly dead once it was reaped. All processes of a host are visible there, so
//! leases decide nothing: an answer that depends on one is wrong. To another host a process is known by its keeper and by
//! its own calls: it may count as alive whatever happened to it, and its lease is over only if it was not heard of for
//! that long.

use super::history::{Call, History, Tenancy};
use super::memory::last_sign;
use super::model::{Hold, Liveness, Standing};
use super::record::Op;

impl Liveness for History {
    fn may_be(&self, hold: &Hold, standing: Standing, call: &Call) -> bool {
        let life = &self.lives[hold.life];
        if self.are_apart(hold.life, call.life) {
            let delay = self.terms.map_or(0, |terms| terms.delay);
            return match standing {
                Standing::Dead => call.until >= life.doomed,
                Standing::Alive | Standing::Unknown => true,
                Standing::Suspect => self.may_be_over(&hold.session, delay, call),
                Standing::Expired => self.may_be_over(&hold.session, 0, call),
            };
        }
        match standing {
            Standing::Alive => call.asked <= life.gone,
            Standing::Dead => call.until >= life.doomed,
            Standing::Unknown | Standing::Suspect | Standing::Expired => false,
        }
    }

    fn may_have_ended(&self, hold: &Hold, call: &Call) -> bool {
        self.may_be(hold, Standing::Dead, call)
    }

    fn may_find(&self, session: &str, standing: Standing, call: &Call) -> bool {
        let all_through =
            |one: &Tenancy| one.surely_from < call.asked && call.until < one.surely_until;
        let is_apart = |one: &Tenancy| self.are_apart(one.life, call.life);
        match standing {
            Standing::Dead => !self.tenancies_of(session).iter().any(all_through),
            _ => self.tenancies_of(session).iter().any(is_apart),
        }
    }

    fn may_be_untold(&self, key: &str, call: &Call) -> bool {
        let Some(terms) = self.terms else {
            return false;
        };
        let is_recent = |other: &&Call| {
            other.asked <= call.until
                && other.until.saturating_add(2 * terms.at_most()) >= call.asked
        };
        let takes = |other: &Call| match &other.op {
            Op::Takeover { key: taken, .. } => taken == key || taken.starts_with("path:"),
            _ => false,
        };
        self.calls.iter().filter(is_recent).any(takes)
    }

    fn open_in(&self, session: &str, call: &Call) -> Vec<usize> {
        History::open_in(self, session, call)
    }

    fn may_be_noisy(&self, life: usize, call: &Call) -> bool {
        if self.are_apart(life, call.life) {
            return true;
        }
        let mut sent = self.lives[life].sent.iter();
        sent.any(|sent| sent.from <= call.until && call.asked <= sent.until)
    }

    /// Only if the session has not come back in another process.
    fn surely_noisy(&self, session: &str, life: usize, call: &Call) -> bool {
        let tenancies = self.tenancies_of(session);
        let last = tenancies.iter().rev().find(|one| one.from <= call.until);
        let once = tenancies.iter().filter(|one| one.life == life).count() == 1;
        once && !self.are_apart(life, call.life)
            && self.registrations.get(life) == Some(&1)
            && last.is_some_and(|last| last.life == life)
            && self.lives[life]
                .sent
                .iter()
                .any(|sent| sent.surely_from <= call.asked && call.until <= sent.surely_until)
    }
}

impl History {
    /// Whether the lease of a session, and the lock delay but for this much of it, may be over at a call.
    fn may_be_over(&self, session: &str, less: u64, call: &Call) -> bool {
        let surely = self.terms.map_or(0, |terms| terms.surely());
        let last = last_sign(&self.signs, session, call);
        last.is_none_or(|at| at.saturating_add(surely - less) <= call.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Op;
    use crate::story::Story;

    #[test]
    fn a_killed_process_may_be_dead_from_the_kill_and_is_once_reaped() {
        let mut story = Story::default();
        let a = story.life("a");
        story.killed(a, 50, 60);
        let b = story.life("b");
        let hold = Hold {
            session: "S".into(),
            life: a,
            request: None,
            end: None,
        };
        for (asked, until, dead, alive) in [
            (10, 49, false, true),
            (40, 50, true, true),
            (61, 70, true, false),
        ] {
            let call = story.call(b, "T", asked, until, Op::Renew, None);
            let history = story.history();
            let call = history.calls.iter().find(|c| c.tag == call).unwrap();
            assert_eq!(history.may_be(&hold, Standing::Dead, call), dead);
            assert_eq!(history.may_be(&hold, Standing::Alive, call), alive);
        }
    }
}
