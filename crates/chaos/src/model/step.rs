//! The model's inputs and results.

use super::liveness::{Liveness, Standing};
use super::state::{Hold, KeyStates, Space};
use crate::history::{Call, Name};
use crate::record::CallAnswer;

/// The result of a call in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// Its answer is impossible here.
    No,
    /// Its answer is correct, and nothing changes.
    Same,
    /// Its answer is correct, and one of these states follows.
    To(Vec<KeyStates>),
}

impl Transition {
    pub(super) fn right_if(right: bool) -> Self {
        if right {
            Transition::Same
        } else {
            Transition::No
        }
    }

    /// One of these states; an empty list means impossible.
    pub(super) fn to(states: Vec<KeyStates>) -> Self {
        if states.is_empty() {
            Transition::No
        } else {
            Transition::To(states)
        }
    }

    pub(super) fn to_or_same(after: KeyStates, before: &KeyStates) -> Self {
        if after == *before {
            Transition::Same
        } else {
            Transition::To(vec![after])
        }
    }
}

/// A call in a state.
#[derive(Clone, Copy)]
pub(super) struct StateCall<'a> {
    pub state: &'a KeyStates,
    pub call: &'a Call,
    pub me: &'a Name,
}

impl StateCall<'_> {
    /// Whether the caller has a key, with the epoch that it names.
    pub fn owns(&self, place: usize, epoch: Option<u64>) -> bool {
        let item = &self.state[place];
        item.is_of(self.me) && agrees(&epoch, &item.epoch)
    }

    /// Whether the answer may be yes with this epoch.
    pub fn may_be_yes(&self, epoch: u64) -> bool {
        match &self.call.answer {
            None => true,
            Some(CallAnswer::Yes { epoch: said, .. }) => agrees(said, &epoch),
            Some(_) => false,
        }
    }
}

/// The model of some keys, with what is known about liveness.
#[derive(Debug, Clone, Copy)]
pub struct Model<'a> {
    pub space: &'a Space,
    pub liveness: &'a dyn Liveness,
}

impl Model<'_> {
    /// Whether the holder may have one of these standings at this call.
    pub(super) fn may_be(&self, hold: &Hold, standings: &[Standing], call: &Call) -> bool {
        let mut possible = standings.iter();
        possible.any(|standing| self.liveness.may_be(hold, *standing, call))
    }

    pub(super) fn may_be_dead(&self, hold: &Hold, call: &Call) -> bool {
        self.may_be(hold, &[Standing::Dead], call)
    }
}

/// Whether an answer, if it contains this value, is correct.
pub(super) fn agrees<T: PartialEq>(said: &Option<T>, is: &T) -> bool {
    said.as_ref().is_none_or(|said| said == is)
}
