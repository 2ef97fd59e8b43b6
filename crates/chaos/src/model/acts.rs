//! Releasing, handing off and taking over.

use super::liveness::Standing;
use super::state::{Hold, HoldEnd, Item, KeyStates};
use super::step::{Model, StateCall, Transition, agrees};
use crate::record::{CallAnswer, RefusalRecord};

/// How a session gets a path by an act other than a claim.
#[derive(Clone, Copy)]
struct Transfer<'a> {
    place: usize,
    to: &'a str,
    /// The holder that it is taken over from.
    from: Option<&'a str>,
}

impl<'a> Transfer<'a> {
    fn given(place: usize, to: &'a str) -> Self {
        let from = None;
        Self { place, to, from }
    }

    fn taken(place: usize, to: &'a str, from: &'a str) -> Self {
        let from = Some(from);
        Self { place, to, from }
    }

    /// Whether a hold ends together with the one that is taken, even if its holder is alive.
    fn takes(&self, hold: &Hold) -> bool {
        self.from.is_some_and(|from| *from == *hold.session)
    }
}

impl Model<'_> {
    pub(super) fn release(
        &self,
        turn: StateCall<'_>,
        key: &str,
        epoch: Option<u64>,
        done: bool,
    ) -> Transition {
        let Some(place) = self.space.place(key) else {
            return Transition::No;
        };
        let item = &turn.state[place];
        if let Some(CallAnswer::Refused(refusal)) = &turn.call.answer {
            return Transition::right_if(self.is_not_mine(turn, item, epoch, refusal));
        }
        if !turn.owns(place, epoch) || !turn.may_be_yes(item.epoch) {
            return Transition::No;
        }
        let mut after = turn.state.clone();
        after[place].end(if done { HoldEnd::Done } else { HoldEnd::Given });
        Transition::To(vec![after])
    }

    /// Whether the given reason is right: the key is not the caller's, or not with the epoch that
    /// it named.
    pub(super) fn is_not_mine(
        &self,
        StateCall { call, me, .. }: StateCall<'_>,
        item: &Item,
        epoch: Option<u64>,
        refusal: &RefusalRecord,
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
        turn: StateCall<'_>,
        key: &str,
        epoch: Option<u64>,
        to: &str,
    ) -> Transition {
        let Some(place) = self.space.place(key) else {
            return Transition::No;
        };
        let item = &turn.state[place];
        let (mine, myself) = (turn.owns(place, epoch), *to == **turn.me);
        let way = Transfer::given(place, to);
        let may_find = |standings: &[Standing]| {
            let mut possible = standings.iter();
            possible.any(|standing| self.liveness.may_find(to, *standing, turn.call))
        };
        match &turn.call.answer {
            Some(CallAnswer::Refused(refusal)) => {
                return Transition::right_if(match refusal.kind.as_str() {
                    "not_live" => mine && may_find(&[Standing::Dead]),
                    "cannot_tell" => {
                        mine && may_find(&[Standing::Unknown, Standing::Suspect, Standing::Expired])
                    }
                    "already_held" => mine && myself,
                    "overlaps" => mine && self.bars(turn, way, refusal),
                    _ => self.is_not_mine(turn, item, epoch, refusal),
                });
            }
            Some(CallAnswer::Yes { holder, .. }) if !agrees(&holder.as_deref(), &to) => {
                return Transition::No;
            }
            _ if !mine || myself || !turn.may_be_yes(item.epoch + 1) => return Transition::No,
            _ => {}
        }
        let Some(cleared) = self.made_way(turn, way) else {
            return Transition::No;
        };
        let handed = |life: usize| {
            let mut after = cleared.clone();
            after[place].end(HoldEnd::Given);
            after[place].grant(to.into(), life, None);
            after
        };
        let lives = self.liveness.open_in(to, turn.call);
        Transition::to(lives.into_iter().map(handed).collect())
    }

    pub(super) fn takeover(
        &self,
        turn: StateCall<'_>,
        key: &str,
        epoch: Option<u64>,
        from: Option<&str>,
    ) -> Transition {
        let Some(place) = self.space.place(key) else {
            return Transition::No;
        };
        let item = &turn.state[place];
        let other = item.open_to_other(turn.me);
        let meant = |hold: &&Hold| {
            let named = from.is_none_or(|from| *from == *hold.session);
            named && agrees(&epoch, &item.epoch)
        };
        if let Some(CallAnswer::Refused(refusal)) = &turn.call.answer {
            let at = agrees(&refusal.epoch, &item.epoch);
            let ended = |hold| self.liveness.may_have_ended(hold, turn.call);
            let may_be_free = other.is_none_or(ended) && !item.is_of(turn.me) && !item.is_done();
            return Transition::right_if(match refusal.kind.as_str() {
                "done" => item.is_done() && at,
                "already_held" => item.is_of(turn.me) && at,
                "free" => may_be_free,
                "held" => at && other.is_some_and(|hold| !meant(&hold)),
                // For a held key, or for a free one that a claim overlaps.
                "overlaps" => {
                    let held = other.filter(meant).is_some_and(|hold| {
                        self.bars(
                            turn,
                            Transfer::taken(place, turn.me, &hold.session),
                            refusal,
                        )
                    });
                    held || may_be_free && self.bars(turn, Transfer::given(place, turn.me), refusal)
                }
                _ => false,
            });
        }
        let Some(hold) = other.filter(meant) else {
            return Transition::No;
        };
        let way = Transfer::taken(place, turn.me, &hold.session);
        let Some(mut after) = self.made_way(turn, way).filter(|_| self.is_told(turn, way)) else {
            return Transition::No;
        };
        after[place].end(HoldEnd::Taken);
        after[place].grant(turn.me.clone(), turn.call.life, None);
        Transition::To(vec![after])
    }

    /// Whether a takeover may have had this answer.
    fn is_told(&self, turn: StateCall<'_>, way: Transfer<'_>) -> bool {
        let (Some(answer), Some(from)) = (&turn.call.answer, way.from) else {
            return true;
        };
        let CallAnswer::Granted { grants } = answer else {
            return false;
        };
        let [grant] = grants.as_slice() else {
            return false;
        };
        let theirs = self.space.rivals(way.place);
        let along: Vec<_> = theirs
            .filter(|rival| turn.state[*rival].is_of(from))
            .map(|rival| (self.space.keys[rival].clone(), turn.state[rival].epoch))
            .collect();
        let epoch = turn.state[way.place].epoch;
        agrees(&grant.holder.as_deref(), &&**turn.me)
            && grant.epoch == epoch + 1
            && agrees(&grant.taken_from, &(from.to_owned(), epoch))
            && grant.also_ended == along
    }

    /// Whether a live session may block a session that gets a path by an act other than a claim.
    fn bars(&self, turn: StateCall<'_>, way: Transfer<'_>, said: &RefusalRecord) -> bool {
        self.space.rivals(way.place).any(|rival| {
            let item = &turn.state[rival];
            let hold = item
                .open_to_other(way.to)
                .filter(|hold| !way.takes(hold) && self.may_be(hold, Standing::BARS, turn.call));
            let named = agrees(&said.rival, &self.space.keys[rival]);
            hold.is_some() && named && agrees(&said.epoch, &item.epoch)
        })
    }

    /// The state after rivals that are gone, and those that are taken along, made way for a path;
    /// none if a live one does not.
    fn made_way(&self, turn: StateCall<'_>, way: Transfer<'_>) -> Option<KeyStates> {
        let mut after = turn.state.clone();
        for rival in self.space.rivals(way.place) {
            if let Some(hold) = turn.state[rival].open_to_other(way.to) {
                if !way.takes(hold) && !self.may_be(hold, Standing::YIELDS, turn.call) {
                    return None;
                }
                let taken = way.takes(hold);
                after[rival].end(if taken {
                    HoldEnd::Taken
                } else {
                    HoldEnd::Fallen
                });
            }
        }
        Some(after)
    }
}
