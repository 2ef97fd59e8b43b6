//! Which rule judges which call.

use super::state::KeyStates;
use super::step::{Model, StateCall, Transition};
use crate::history::Call;
use crate::record::{CallAnswer, Op};
use crate::rule::is_known;

impl Model<'_> {
    /// Whether a call concerns these keys.
    pub fn concerns(&self, call: &Call) -> bool {
        // These answers promise nothing; unexpected ones are reported elsewhere.
        if let Some(CallAnswer::Refused(refusal)) = &call.answer
            && (refusal.kind == "timed_out" || !is_known(&call.op, &refusal.kind))
        {
            return false;
        }
        let here = |key: &String| self.space.place(key).is_some();
        match &call.op {
            // What a host remembers may be older than the store: it has a rule of its own.
            Op::Renew | Op::Recall { .. } => false,
            Op::Register { .. } => match &call.answer {
                Some(CallAnswer::Registered { word, .. }) => word == "resumed",
                Some(_) => false,
                None => call.session.is_some(),
            },
            Op::End => !matches!(call.answer, Some(CallAnswer::Refused(_))),
            Op::Claim(claim) => claim.keys.iter().any(here),
            Op::Release { key, .. }
            | Op::Handoff { key, .. }
            | Op::Takeover { key, .. }
            | Op::Guard { key, .. } => here(key),
        }
    }

    /// Whether a call that changes nothing in one state may change something in a later one.
    pub fn may_change_later(&self, call: &Call) -> bool {
        matches!(call.op, Op::Register { .. } | Op::End)
    }

    /// The result of a call. One without an answer may lead to any state that it can change this
    /// one to.
    pub fn step(&self, state: &KeyStates, call: &Call) -> Transition {
        let (answered, Some(me)) = (call.answer.is_some(), &call.session) else {
            return Transition::right_if(call.answer.is_some());
        };
        let turn = StateCall { state, call, me };
        let step = match (&call.op, &call.answer) {
            (Op::Renew | Op::Recall { .. }, _) => Transition::Same,
            (Op::Register { .. }, Some(CallAnswer::Registered { regranted, .. })) => {
                self.resume(turn, regranted)
            }
            (Op::Register { .. }, None) => Transition::to(self.imagine_resume(turn)),
            (Op::End, None | Some(CallAnswer::Yes { .. })) => self.end(turn),
            (Op::Register { .. } | Op::End, Some(_)) => Transition::No,
            (Op::Claim(claim), _) => self.claim(turn, claim),
            (Op::Release { key, epoch, done }, _) => self.release(turn, key, *epoch, *done),
            (Op::Handoff { key, to, epoch }, _) => self.handoff(turn, key, *epoch, to),
            (Op::Takeover { key, from, epoch }, _) => {
                self.takeover(turn, key, *epoch, from.as_deref())
            }
            (Op::Guard { key, epoch }, _) => self.guard(turn, key, *epoch),
        };
        match step {
            step if answered => step,
            Transition::To(states) => {
                Transition::to(states.into_iter().filter(|to| to != state).collect())
            }
            Transition::No | Transition::Same => Transition::No,
        }
    }
}
