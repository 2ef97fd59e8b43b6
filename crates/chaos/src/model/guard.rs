//! Guards: may the caller write to what a key protects?

use super::liveness::Standing;
use super::state::{HoldEnd, Item, KeyStates};
use super::step::{Model, StateCall, Transition, agrees};
use crate::history::Name;
use crate::record::{CallAnswer, RefusalRecord};

/// Whether the caller lost what it asks about against its will.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Robbed {
    No,
    /// It died: it lost the path only if another session holds it now.
    IfBarred,
    /// It died, or another session took it.
    Perhaps,
    Surely,
}

impl Model<'_> {
    pub(super) fn guard(&self, turn: StateCall<'_>, key: &str, epoch: Option<u64>) -> Transition {
        let StateCall { state, call, me } = turn;
        let (Some(place), Some(answer)) = (self.space.place(key), &call.answer) else {
            return Transition::No;
        };
        let covers = |at: &usize| {
            let other = *at != place;
            state[*at].is_of(me) && (!other || self.space.includes(*at, place))
        };
        let own = Some(place).filter(covers);
        if let Some(cover) = own.or_else(|| self.space.rivals(place).find(covers)) {
            let item = &state[cover];
            return match answer {
                CallAnswer::Yes { epoch: said, .. } => {
                    Transition::right_if(agrees(said, &item.epoch) && agrees(&epoch, &item.epoch))
                }
                CallAnswer::Refused(refusal) => {
                    Transition::right_if(self.is_not_mine(turn, item, epoch, refusal))
                }
                _ => Transition::No,
            };
        }
        let CallAnswer::Refused(refusal) = answer else {
            return Transition::No;
        };
        Transition::right_if(self.guard_refuses(turn, place, epoch, refusal))
    }

    /// A guard's refusal, for a caller without a hold that covers the key.
    fn guard_refuses(
        &self,
        turn: StateCall<'_>,
        place: usize,
        epoch: Option<u64>,
        refusal: &RefusalRecord,
    ) -> bool {
        let StateCall { state, call, me } = turn;
        if self.space.rivals(place).next().is_none() {
            return self.is_not_mine(turn, &state[place], epoch, refusal);
        }
        let alive = |at: &usize| {
            let hold = state[*at].open_to_other(me);
            hold.is_some_and(|hold| self.may_be(hold, Standing::HAS, call))
        };
        let surely_alive = |at: usize| {
            let hold = state[at].open_to_other(me);
            hold.is_some_and(|hold| !self.may_be_dead(hold, call))
        };
        let beside = || self.space.rivals(place).chain([place]);
        let robbed = self.was_robbed(state, me, place);
        match refusal.kind.as_str() {
            "lost" => match robbed {
                Robbed::Surely | Robbed::Perhaps => true,
                Robbed::IfBarred => beside().any(|at| alive(&at)),
                Robbed::No => false,
            },
            "overlaps" => {
                let named = |at: &usize| {
                    agrees(&refusal.rival, &self.space.keys[*at])
                        && agrees(&refusal.epoch, &state[*at].epoch)
                };
                let bars = self.space.rivals(place).filter(alive).any(|at| named(&at));
                bars && robbed == Robbed::No && !surely_alive(place)
            }
            kind => {
                let barred = match kind {
                    "held" => robbed != Robbed::No,
                    _ => robbed == Robbed::Surely || beside().any(surely_alive),
                };
                !barred && self.is_not_mine(turn, &state[place], epoch, refusal)
            }
        }
    }

    /// Whether the caller lost a path that covers this one against its will.
    fn was_robbed(&self, state: &KeyStates, me: &Name, place: usize) -> Robbed {
        let covers = |at: &usize| *at == place || self.space.includes(*at, place);
        let places = (0..self.space.keys.len()).filter(covers);
        let of = |item: &Item| {
            if item.lost_by(me).is_some() {
                return Robbed::Surely;
            }
            let mine = item.newest.as_ref().filter(|hold| hold.session == *me);
            match mine.and_then(|hold| hold.end) {
                Some(HoldEnd::Taken) => Robbed::Surely,
                Some(HoldEnd::Fallen) => Robbed::Perhaps,
                Some(HoldEnd::Death) => Robbed::IfBarred,
                _ => Robbed::No,
            }
        };
        places.map(|at| of(&state[at])).max().unwrap_or(Robbed::No)
    }
}
