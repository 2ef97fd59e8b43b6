//! Claims: one key, the first free of several, or all of them.

use super::liveness::Standing;
use super::state::{Hold, HoldEnd, Item, KeyStates};
use super::step::{Model, StateCall, Transition, agrees};
use crate::history::{Call, Name};
use crate::record::{CallAnswer, Claim, Grant, RefusalRecord};

#[derive(Clone, Copy)]
struct Asking<'a> {
    call: &'a Call,
    me: &'a Name,
    claim: &'a Claim,
}

impl Asking<'_> {
    /// Whether the claimer has it, and if so, whether by this same request.
    fn has(&self, item: &Item) -> Option<bool> {
        let hold = item.open().filter(|hold| hold.session == *self.me)?;
        Some(self.is_request(&hold.request))
    }

    fn is_request(&self, request: &Option<Name>) -> bool {
        let mine = self.claim.request.as_deref();
        mine.is_some() && request.as_deref() == mine
    }

    /// Whether this same request was granted, and lost since.
    fn lost(&self, item: &Item) -> bool {
        item.lost_by(self.me)
            .is_some_and(|request| self.is_request(request))
    }
}

impl Model<'_> {
    pub(super) fn claim(&self, turn: StateCall<'_>, claim: &Claim) -> Transition {
        let StateCall { state, call, me } = turn;
        let asking = Asking { call, me, claim };
        match &call.answer {
            None => Transition::to(self.imagine_claim(state, asking)),
            Some(CallAnswer::Granted { grants }) if claim.any => {
                self.first_free(state, asking, grants)
            }
            Some(CallAnswer::Granted { grants }) => self.all_granted(state, asking, grants),
            Some(CallAnswer::Refused(refusal)) if claim.any => {
                Transition::right_if(self.none_free(state, asking, refusal))
            }
            Some(CallAnswer::Refused(refusal)) => {
                Transition::right_if(self.not_all(state, asking, refusal))
            }
            Some(CallAnswer::Registered { .. } | CallAnswer::Yes { .. }) => Transition::No,
        }
    }

    fn imagine_claim(&self, state: &KeyStates, asking: Asking<'_>) -> Vec<KeyStates> {
        let claim = asking.claim;
        let here = || claim.keys.iter().filter_map(|key| self.space.place(key));
        if claim.any {
            let mut found = Vec::new();
            for place in here() {
                if asking.has(&state[place]) == Some(true) {
                    return Vec::new();
                }
                if self.may_be_granted(state, asking, place) {
                    found.push(self.granted(state, asking, place));
                }
                if !self.may_be_unfree(state, asking, place) {
                    break;
                }
            }
            return found;
        }
        let mut after = state.clone();
        for place in here() {
            if self.may_be_granted(state, asking, place) {
                after = self.granted(&after, asking, place);
            } else if asking.has(&state[place]).is_none() {
                return Vec::new();
            }
        }
        vec![after]
    }

    /// The answer to a claim of the first free key.
    fn first_free(&self, state: &KeyStates, asking: Asking<'_>, grants: &[Grant]) -> Transition {
        let [grant] = grants else {
            return Transition::No;
        };
        for key in &asking.claim.keys {
            let place = self.space.place(key);
            if *key == grant.key {
                return match place {
                    Some(place) => self.one_granted(state, asking, place, grant),
                    None => Transition::Same,
                };
            }
            // A retry is answered before any free key, whatever its position.
            let repeats = grant_is_retry(self, state, asking, grant);
            let passed = |place| {
                let retry = asking.has(&state[place]) == Some(true);
                repeats || (!retry && self.may_be_unfree(state, asking, place))
            };
            if place.is_some_and(|place| !passed(place)) {
                return Transition::No;
            }
        }
        Transition::No
    }

    /// The answer to a claim of all keys.
    fn all_granted(&self, state: &KeyStates, asking: Asking<'_>, grants: &[Grant]) -> Transition {
        let named: Vec<&String> = grants.iter().map(|grant| &grant.key).collect();
        if named != asking.claim.keys.iter().collect::<Vec<_>>() {
            return Transition::No;
        }
        let mut after = state.clone();
        for grant in grants {
            let Some(place) = self.space.place(&grant.key) else {
                continue;
            };
            match self.one_granted(state, asking, place, grant) {
                Transition::No => return Transition::No,
                Transition::Same => {}
                Transition::To(_) => after = self.granted(&after, asking, place),
            }
        }
        Transition::to_or_same(after, state)
    }

    /// One key of an answer: held before, held by this request, or granted.
    fn one_granted(
        &self,
        state: &KeyStates,
        asking: Asking<'_>,
        place: usize,
        grant: &Grant,
    ) -> Transition {
        let item = &state[place];
        if grant
            .holder
            .as_deref()
            .is_some_and(|holder| *holder != **asking.me)
        {
            return Transition::No;
        }
        if let Some(retry) = asking.has(item) {
            let right = grant.epoch == item.epoch && grant.already_held != retry;
            return Transition::right_if(right && (retry || !asking.claim.once));
        }
        let right = !grant.already_held
            && grant.epoch == item.epoch + 1
            && grant.taken_from == previous(item, asking.me)
            && self.may_be_granted(state, asking, place);
        if !right {
            return Transition::No;
        }
        Transition::To(vec![self.granted(state, asking, place)])
    }

    /// None of several keys was free; with one key only, that one was not.
    fn none_free(&self, state: &KeyStates, asking: Asking<'_>, refusal: &RefusalRecord) -> bool {
        let keys = &asking.claim.keys;
        if (keys.len() > 1) != refusal.none_free {
            return false;
        }
        let unfree = |(rank, key): (usize, &String)| {
            self.space.place(key).is_none_or(|place| match rank {
                0 => self.may_be_refused(state, asking, place, refusal),
                _ => self.may_be_unfree(state, asking, place),
            })
        };
        keys.iter().enumerate().all(unfree)
    }

    /// One of the keys was refused, so all were.
    fn not_all(&self, state: &KeyStates, asking: Asking<'_>, refusal: &RefusalRecord) -> bool {
        for key in &asking.claim.keys {
            let place = self.space.place(key);
            if refusal.key.as_ref() == Some(key) {
                let refused = |place| self.may_be_refused(state, asking, place, refusal);
                return place.is_none_or(refused);
            }
            let Some(place) = place else { continue };
            let had = asking.has(&state[place]).is_some();
            if !had && !self.may_be_granted(state, asking, place) {
                return false;
            }
        }
        false
    }

    /// Whether a key may be granted, regardless of other requests.
    fn may_be_granted(&self, state: &KeyStates, asking: Asking<'_>, place: usize) -> bool {
        self.is_open(state, asking, place)
            && !(asking.claim.quiet && self.is_surely_noisy(&state[place], asking))
    }

    /// Whether a claimer that does not require quiet may be granted a key.
    fn is_open(&self, state: &KeyStates, asking: Asking<'_>, place: usize) -> bool {
        let rival_is_dead = |rival: usize| {
            let open = state[rival].open_to_other(asking.me);
            open.is_none_or(|hold| self.yields(hold, asking))
        };
        self.is_for_granting(state, asking, place) && self.space.rivals(place).all(rival_is_dead)
    }

    /// Whether a claim may take from this holder.
    fn yields(&self, hold: &Hold, asking: Asking<'_>) -> bool {
        self.may_be(hold, Standing::YIELDS, asking.call)
    }

    /// The hold that may have left processes behind: another session's, which it did not release.
    fn left<'s>(&self, item: &'s Item, asking: Asking<'_>) -> Option<&'s Hold> {
        let hold = item.newest.as_ref()?;
        let left = hold.end.is_none_or(|end| end.robs() || end == HoldEnd::End);
        (left && hold.session != *asking.me).then_some(hold)
    }

    fn may_be_noisy(&self, item: &Item, asking: Asking<'_>) -> bool {
        let left = self.left(item, asking);
        left.is_some_and(|hold| self.liveness.may_be_noisy(hold.life, asking.call))
    }

    fn is_surely_noisy(&self, item: &Item, asking: Asking<'_>) -> bool {
        let left = self.left(item, asking);
        let by_death = left.filter(|hold| hold.end.is_none_or(|end| end == HoldEnd::Death));
        by_death.is_some_and(|hold| {
            self.liveness
                .surely_noisy(&hold.session, hold.life, asking.call)
        })
    }

    /// The same, without considering overlapping paths of others.
    fn is_for_granting(&self, state: &KeyStates, asking: Asking<'_>, place: usize) -> bool {
        let item = &state[place];
        if asking.lost(item) || (item.is_done() && !asking.claim.reopen) {
            return false;
        }
        match item.open() {
            None => true,
            Some(hold) if hold.session == *asking.me => false,
            Some(hold) => self.yields(hold, asking),
        }
    }

    /// Whether a key may count as not free, for whatever reason.
    fn may_be_unfree(&self, state: &KeyStates, asking: Asking<'_>, place: usize) -> bool {
        let kinds = "held suspect done already_held lost overlaps survivors";
        let untold = || {
            let key = &self.space.keys[place];
            self.liveness.may_be_untold(key, asking.call)
        };
        let refused = kinds.split(' ').any(|kind| {
            let refusal = RefusalRecord {
                kind: kind.to_owned(),
                ..RefusalRecord::default()
            };
            self.may_be_refused(state, asking, place, &refusal)
        });
        refused || untold()
    }

    /// Whether a key may be refused with this error.
    fn may_be_refused(
        &self,
        state: &KeyStates,
        asking: Asking<'_>,
        place: usize,
        refusal: &RefusalRecord,
    ) -> bool {
        let item = &state[place];
        let at = |item: &Item| agrees(&refusal.epoch, &item.epoch);
        let by = |session: &Name| agrees(&refusal.holder.as_deref(), &&**session);
        let lost = asking.lost(item);
        let shut = item.is_done() && !asking.claim.reopen;
        match refusal.kind.as_str() {
            "lost" => lost && at(item),
            "done" => !lost && shut && at(item),
            "already_held" => {
                let refuses = asking.claim.once || asking.claim.any;
                asking.has(item) == Some(false) && refuses && at(item)
            }
            "held" | "suspect" => {
                let standings = match refusal.kind.as_str() {
                    "held" => Standing::HOLDS,
                    _ => &[Standing::Suspect],
                };
                let other = item.open_to_other(asking.me);
                let stands = |hold: &&Hold| self.may_be(hold, standings, asking.call);
                !lost && at(item) && other.filter(stands).is_some_and(|hold| by(&hold.session))
            }
            "survivors" => {
                asking.claim.quiet
                    && self.is_open(state, asking, place)
                    && self.may_be_noisy(item, asking)
            }
            "overlaps" => {
                let bars = |rival: usize| {
                    let open = state[rival].open_to_other(asking.me);
                    let named = agrees(&refusal.rival, &self.space.keys[rival]);
                    open.is_some_and(|hold| {
                        self.may_be(hold, Standing::BARS, asking.call)
                            && named
                            && at(&state[rival])
                            && by(&hold.session)
                    })
                };
                self.is_for_granting(state, asking, place) && self.space.rivals(place).any(bars)
            }
            _ => false,
        }
    }

    /// The state after a grant. Overlapping holds of dead sessions end; how is not reported.
    fn granted(&self, state: &KeyStates, asking: Asking<'_>, place: usize) -> KeyStates {
        let mut after = state.clone();
        for rival in self.space.rivals(place) {
            if after[rival].open_to_other(asking.me).is_some() {
                after[rival].end(HoldEnd::Fallen);
            }
        }
        let request = asking.claim.request.as_deref().map(Name::from);
        after[place].grant(asking.me.clone(), asking.call.life, request);
        after
    }
}

/// Whether an answer repeats what the same request was granted before.
fn grant_is_retry(model: &Model<'_>, state: &KeyStates, asking: Asking<'_>, grant: &Grant) -> bool {
    let place = model.space.place(&grant.key);
    place.is_none_or(|place| asking.has(&state[place]) == Some(true))
}

/// The previous holder that a grant reports: one that did not release the key itself.
fn previous(item: &Item, me: &Name) -> Option<(String, u64)> {
    let hold = item.newest.as_ref().filter(|hold| hold.session != *me)?;
    let left = hold.end.is_none_or(|end| end.robs() || end == HoldEnd::End);
    left.then(|| (hold.session.to_string(), item.epoch))
}
