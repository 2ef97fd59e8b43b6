//! What a history shows about who was alive when, for the model.
//!
//! Whether a process is alive is known from outside, within bounds: it may be dead from the moment
//! before it was killed, and is certainly dead once it was reaped. All processes are visible, so
//! leases decide nothing: an answer that depends on one is wrong.

use super::history::{Call, History, Tenancy};
use super::model::{Hold, Liveness, Standing};

impl Liveness for History {
    fn may_be(&self, hold: &Hold, standing: Standing, call: &Call) -> bool {
        let life = &self.lives[hold.life];
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
        standing == Standing::Dead && !self.tenancies_of(session).iter().any(all_through)
    }

    fn open_in(&self, session: &str, call: &Call) -> Vec<usize> {
        History::open_in(self, session, call)
    }

    fn may_be_noisy(&self, life: usize, call: &Call) -> bool {
        let mut sent = self.lives[life].sent.iter();
        sent.any(|sent| sent.from <= call.until && call.asked <= sent.until)
    }

    /// Only if the session has not come back in another process.
    fn surely_noisy(&self, session: &str, life: usize, call: &Call) -> bool {
        let tenancies = self.tenancies_of(session);
        let last = tenancies.iter().rev().find(|one| one.from <= call.until);
        let once = tenancies.iter().filter(|one| one.life == life).count() == 1;
        once && self.registrations.get(life) == Some(&1)
            && last.is_some_and(|last| last.life == life)
            && self.lives[life]
                .sent
                .iter()
                .any(|sent| sent.surely_from <= call.asked && call.until <= sent.surely_until)
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
