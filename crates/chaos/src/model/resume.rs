//! A session ends and comes back.

use super::liveness::Standing;
use super::state::{HoldEnd, Item, KeyStates};
use super::step::{Model, StateCall, Transition};

/// What a resumed session can expect for a key.
struct Again {
    may: bool,
    must: bool,
}

/// A hold of an earlier life that was not granted again ended with that life.
fn fall(item: &mut Item) {
    if item.open().is_some() {
        item.end(HoldEnd::Death);
    }
}

impl Model<'_> {
    pub(super) fn end(&self, StateCall { state, call, me }: StateCall<'_>) -> Transition {
        let mut after = state.clone();
        for item in after.iter_mut().filter(|item| item.is_of(me)) {
            if item.open().is_some_and(|hold| hold.life == call.life) {
                item.end(HoldEnd::End);
            }
        }
        Transition::to_or_same(after, state)
    }

    /// A session comes back in this process, and reports what it was granted again.
    pub(super) fn resume(&self, turn: StateCall<'_>, regranted: &[(String, u64)]) -> Transition {
        let state = turn.state;
        let mut after = state.clone();
        for place in 0..state.len() {
            let said = regranted
                .iter()
                .find(|(key, _)| *key == self.space.keys[place]);
            let Some(claim) = self.claim_of_resumed(turn, place) else {
                if said.is_some() {
                    return Transition::No;
                }
                continue;
            };
            match said {
                Some((_, epoch)) if claim.may && *epoch == state[place].epoch + 1 => {
                    self.regrant(&mut after, turn, place);
                }
                None if !claim.must => fall(&mut after[place]),
                _ => return Transition::No,
            }
        }
        Transition::to_or_same(after, state)
    }

    pub(super) fn imagine_resume(&self, turn: StateCall<'_>) -> Vec<KeyStates> {
        let mut found = vec![turn.state.clone()];
        for place in 0..turn.state.len() {
            let Some(claim) = self.claim_of_resumed(turn, place) else {
                continue;
            };
            if claim.must && !claim.may {
                return Vec::new();
            }
            let mut more = Vec::new();
            for after in &mut found {
                if claim.may && !claim.must {
                    let mut granted = after.clone();
                    self.regrant(&mut granted, turn, place);
                    more.push(granted);
                }
                if claim.must {
                    self.regrant(after, turn, place);
                } else {
                    fall(&mut after[place]);
                }
            }
            found.extend(more);
        }
        found
    }

    /// Whether a resumed session may, or must, be granted a key again; none if it has no right to
    /// it.
    fn claim_of_resumed(&self, turn: StateCall<'_>, place: usize) -> Option<Again> {
        let StateCall { state, call, me } = turn;
        let hold = state[place]
            .newest
            .as_ref()
            .filter(|hold| hold.session == *me)?;
        let sure = match hold.end {
            None if !self.may_be(hold, Standing::YIELDS, call) || hold.life == call.life => {
                return Some(Again {
                    may: false,
                    must: true,
                });
            }
            None | Some(HoldEnd::End | HoldEnd::Death) => true,
            Some(HoldEnd::Fallen) => false,
            Some(HoldEnd::Given | HoldEnd::Done | HoldEnd::Taken) => return None,
        };
        let mut barred = false;
        let mut surely_barred = false;
        for rival in self.space.rivals(place) {
            if let Some(other) = state[rival].open_to_other(me) {
                barred |= self.may_be(other, Standing::BARS, call);
                surely_barred |= !self.may_be(other, Standing::YIELDS, call);
            }
        }
        Some(Again {
            may: !surely_barred,
            must: sure && !barred,
        })
    }

    fn regrant(
        &self,
        after: &mut KeyStates,
        StateCall { call, me, .. }: StateCall<'_>,
        place: usize,
    ) {
        for rival in self.space.rivals(place) {
            if after[rival].open_to_other(me).is_some() {
                after[rival].end(HoldEnd::Fallen);
            }
        }
        let request = after[place]
            .newest
            .as_ref()
            .and_then(|hold| hold.request.clone());
        after[place].grant(me.clone(), call.life, request);
    }
}
