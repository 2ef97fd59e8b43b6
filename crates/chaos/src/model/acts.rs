//! Giving back, handing on and taking over.

use super::liveness::Standing;
use super::state::{End, Hold, Item, State};
use super::step::{Model, Step, agrees};
use crate::history::{Call, Name};
use crate::record::{Answer, Grant, Refusal};

/// How somebody gets a path by another act than a claim.
#[derive(Clone, Copy)]
struct Way<'a> {
    place: usize,
    to: &'a str,
    /// From whom it is taken with a reason.
    from: Option<&'a str>,
}

impl<'a> Way<'a> {
    fn given(place: usize, to: &'a str) -> Self {
        let from = None;
        Self { place, to, from }
    }

    fn taken(place: usize, to: &'a str, from: &'a str) -> Self {
        let from = Some(from);
        Self { place, to, from }
    }

    /// Whether a hold is taken along, whoever lives.
    fn takes(&self, hold: &Hold) -> bool {
        self.from.is_some_and(|from| *from == *hold.session)
    }
}

impl Model<'_> {
    pub(super) fn release(
        &self,
        state: &State,
        call: &Call,
        me: &Name,
        (key, epoch, done): (&str, Option<u64>, bool),
        answer: &Answer,
    ) -> Step {
        let Some(place) = self.space.place(key) else {
            return Step::No;
        };
        let item = &state[place];
        match answer {
            Answer::Yes { epoch: said, .. } if agrees(said, &item.epoch) => {
                Step::to(self.imagine_release(state, me, (key, epoch, done)))
            }
            Answer::Refused(refusal) => {
                Step::right_if(self.is_not_mine(item, call, me, epoch, refusal))
            }
            _ => Step::No,
        }
    }

    pub(super) fn imagine_release(
        &self,
        state: &State,
        me: &Name,
        (key, epoch, done): (&str, Option<u64>, bool),
    ) -> Vec<State> {
        let Some(place) = self.own(state, me, key, epoch) else {
            return Vec::new();
        };
        let mut after = state.clone();
        after[place].end(if done { End::Done } else { End::Given });
        vec![after]
    }

    /// Where a key is that the caller has with the epoch that it names.
    fn own(&self, state: &State, me: &Name, key: &str, epoch: Option<u64>) -> Option<usize> {
        let place = self.space.place(key)?;
        let item = &state[place];
        (item.is_of(me) && agrees(&epoch, &item.epoch)).then_some(place)
    }

    /// Whether a key is not the caller's, or not with the epoch that it names, for the reason given.
    pub(super) fn is_not_mine(
        &self,
        item: &Item,
        call: &Call,
        me: &Name,
        epoch: Option<u64>,
        refusal: &Refusal,
    ) -> bool {
        let at = agrees(&refusal.epoch, &item.epoch);
        if item.is_of(me) {
            return match refusal.kind.as_str() {
                "lost" => at && epoch.is_some_and(|epoch| epoch < item.epoch),
                "no_such_epoch" => epoch.is_some_and(|epoch| epoch > item.epoch),
                _ => false,
            };
        }
        if item.lost_by(me).is_some() {
            return refusal.kind == "lost" && at;
        }
        let other = item.open_to_other(me);
        let unheard_of = epoch.is_some_and(|epoch| epoch > item.epoch);
        let is_free = || other.is_none_or(|hold| self.may_be_dead(hold, call));
        match refusal.kind.as_str() {
            "held" => other.is_some_and(|hold| {
                let named = agrees(&refusal.holder.as_deref(), &&*hold.session);
                at && named && self.may_be(hold, Standing::HAS, call)
            }),
            "no_such_epoch" => unheard_of && is_free(),
            "done" => item.is_done() && at && !unheard_of,
            "free" => !item.is_done() && !unheard_of && is_free(),
            _ => false,
        }
    }

    pub(super) fn handoff(
        &self,
        state: &State,
        call: &Call,
        me: &Name,
        (key, epoch, to_whom): (&str, Option<u64>, &str),
        answer: &Answer,
    ) -> Step {
        let Some(place) = self.space.place(key) else {
            return Step::No;
        };
        let item = &state[place];
        match answer {
            Answer::Yes {
                epoch: said,
                holder,
            } => {
                let named = agrees(&holder.as_deref(), &to_whom);
                if !named || !agrees(said, &(item.epoch + 1)) {
                    return Step::No;
                }
                Step::to(self.imagine_handoff(state, call, me, (key, epoch, to_whom)))
            }
            Answer::Refused(refusal) => {
                let mine = self.own(state, me, key, epoch).is_some();
                let may_find = |standings: &[Standing]| {
                    let mut possible = standings.iter();
                    possible.any(|standing| self.liveness.may_find(to_whom, *standing, call))
                };
                let right = match refusal.kind.as_str() {
                    "not_live" => mine && may_find(&[Standing::Dead]),
                    "cannot_tell" => {
                        mine && may_find(&[Standing::Unknown, Standing::Suspect, Standing::Expired])
                    }
                    "already_held" => mine && *to_whom == **me,
                    "overlaps" => {
                        mine && self.bars(state, call, Way::given(place, to_whom), refusal)
                    }
                    _ => self.is_not_mine(item, call, me, epoch, refusal),
                };
                Step::right_if(right)
            }
            _ => Step::No,
        }
    }

    /// Whether a living session may stand in the way of whoever gets a path by another act than a claim.
    fn bars(&self, state: &State, call: &Call, way: Way<'_>, said: &Refusal) -> bool {
        self.space.rivals(way.place).any(|rival| {
            let item = &state[rival];
            let hold = item
                .open_to_other(way.to)
                .filter(|hold| !way.takes(hold) && self.may_be(hold, Standing::BARS, call));
            let named = agrees(&said.rival, &self.space.keys[rival]);
            hold.is_some() && named && agrees(&said.epoch, &item.epoch)
        })
    }

    /// The state after rivals that are gone, and those that are taken along, made way for a path; none
    /// where a living one does not.
    fn made_way(&self, state: &State, call: &Call, way: Way<'_>) -> Option<State> {
        let mut after = state.clone();
        for rival in self.space.rivals(way.place) {
            if let Some(hold) = state[rival].open_to_other(way.to) {
                if !way.takes(hold) && !self.may_be(hold, Standing::YIELDS, call) {
                    return None;
                }
                let taken = way.takes(hold);
                after[rival].end(if taken { End::Taken } else { End::Fallen });
            }
        }
        Some(after)
    }

    /// What a takeover from this session takes along, with the epochs, in the order of the keys.
    fn taken_along(&self, state: &State, place: usize, from: &str) -> Vec<(String, u64)> {
        let theirs = self.space.rivals(place);
        theirs
            .filter(|rival| state[*rival].is_of(from))
            .map(|rival| (self.space.keys[rival].clone(), state[rival].epoch))
            .collect()
    }

    pub(super) fn imagine_handoff(
        &self,
        state: &State,
        call: &Call,
        me: &Name,
        (key, epoch, to_whom): (&str, Option<u64>, &str),
    ) -> Vec<State> {
        let Some(place) = self.own(state, me, key, epoch) else {
            return Vec::new();
        };
        if *to_whom == **me {
            return Vec::new();
        }
        let Some(cleared) = self.made_way(state, call, Way::given(place, to_whom)) else {
            return Vec::new();
        };
        let lives = self.liveness.open_in(to_whom, call);
        let handed = |life: usize| {
            let mut after = cleared.clone();
            after[place].end(End::Given);
            after[place].grant(to_whom.into(), life, None);
            after
        };
        lives.into_iter().map(handed).collect()
    }

    pub(super) fn takeover(
        &self,
        state: &State,
        call: &Call,
        me: &Name,
        (key, epoch, from): (&str, Option<u64>, Option<&str>),
        answer: &Answer,
    ) -> Step {
        let Some(place) = self.space.place(key) else {
            return Step::No;
        };
        let item = &state[place];
        match answer {
            Answer::Granted { grants } => {
                let [grant] = grants.as_slice() else {
                    return Step::No;
                };
                if !self.is_taken(state, place, me, grant) {
                    return Step::No;
                }
                Step::to(self.imagine_takeover(state, call, me, (key, epoch, from)))
            }
            Answer::Refused(refusal) => {
                let other = item.open_to_other(me);
                let at = agrees(&refusal.epoch, &item.epoch);
                let meant = |hold: &Hold| {
                    let named = from.is_none_or(|from| *from == *hold.session);
                    named && agrees(&epoch, &item.epoch)
                };
                let right = match refusal.kind.as_str() {
                    "done" => item.is_done() && at,
                    "already_held" => item.is_of(me) && at,
                    "free" => {
                        let ended = |hold| self.liveness.may_have_ended(hold, call);
                        let freed = other.is_none_or(ended);
                        freed && !item.is_of(me) && !item.is_done()
                    }
                    "held" => at && other.is_some_and(|hold| !meant(hold)),
                    "overlaps" => {
                        let barred = |hold: &Hold| {
                            let way = Way::taken(place, me, &hold.session);
                            meant(hold) && self.bars(state, call, way, refusal)
                        };
                        other.is_some_and(barred)
                    }
                    _ => false,
                };
                Step::right_if(right)
            }
            _ => Step::No,
        }
    }

    pub(super) fn imagine_takeover(
        &self,
        state: &State,
        call: &Call,
        me: &Name,
        (key, epoch, from): (&str, Option<u64>, Option<&str>),
    ) -> Vec<State> {
        let Some(place) = self.space.place(key) else {
            return Vec::new();
        };
        let item = &state[place];
        let Some(hold) = item.open_to_other(me) else {
            return Vec::new();
        };
        if !agrees(&epoch, &item.epoch) || from.is_some_and(|from| *from != *hold.session) {
            return Vec::new();
        }
        let way = Way::taken(place, me, &hold.session);
        let Some(mut after) = self.made_way(state, call, way) else {
            return Vec::new();
        };
        after[place].end(End::Taken);
        after[place].grant(me.clone(), call.life, None);
        vec![after]
    }

    /// Whether an answer is that of a takeover from the present holder.
    fn is_taken(&self, state: &State, place: usize, me: &Name, grant: &Grant) -> bool {
        let item = &state[place];
        let Some(hold) = item.open_to_other(me) else {
            return false;
        };
        let from = (hold.session.to_string(), item.epoch);
        let by_me = grant.holder.as_deref().is_none_or(|holder| *holder == **me);
        let along = self.taken_along(state, place, &hold.session);
        by_me
            && grant.epoch == item.epoch + 1
            && agrees(&grant.taken_from, &from)
            && grant.also_ended == along
    }
}
