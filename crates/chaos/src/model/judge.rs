//! Which rule judges which call.

use super::state::State;
use super::step::{Model, Step};
use crate::history::Call;
use crate::record::{Answer, Op};
use crate::rule::is_known;

impl Model<'_> {
    /// Whether a call has anything to do with these keys.
    pub fn concerns(&self, call: &Call) -> bool {
        // Nobody was promised anything by these; the strange ones are told of elsewhere.
        if let Some(Answer::Refused(refusal)) = &call.answer
            && (refusal.kind == "timed_out" || !is_known(&call.op, &refusal.kind))
        {
            return false;
        }
        let here = |key: &String| self.space.place(key).is_some();
        match &call.op {
            Op::Renew => false,
            Op::Register { .. } => match &call.answer {
                Some(Answer::Registered { word, .. }) => word == "resumed",
                Some(_) => false,
                None => call.session.is_some(),
            },
            Op::End => !matches!(call.answer, Some(Answer::Refused(_))),
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

    /// What an answered call comes to.
    pub fn judge(&self, state: &State, call: &Call) -> Step {
        let Some(answer) = &call.answer else {
            return Step::No;
        };
        let Some(me) = &call.session else {
            return Step::Same;
        };
        match (&call.op, answer) {
            (Op::Renew, _) => Step::Same,
            (Op::Register { .. }, Answer::Registered { regranted, .. }) => {
                self.resume(state, call, me, regranted)
            }
            (Op::End, Answer::Yes { .. }) => self.end(state, call, me),
            (Op::Claim(claim), answer) => self.claim(state, call, me, claim, answer),
            (Op::Release { key, epoch, done }, answer) => {
                self.release(state, call, me, (key, *epoch, *done), answer)
            }
            (Op::Handoff { key, to, epoch }, answer) => {
                self.handoff(state, call, me, (key, *epoch, to), answer)
            }
            (Op::Takeover { key, from, epoch }, answer) => {
                self.takeover(state, call, me, (key, *epoch, from.as_deref()), answer)
            }
            (Op::Guard { key, epoch }, answer) => {
                self.guard(state, call, me, (key, *epoch), answer)
            }
            _ => Step::No,
        }
    }

    /// The states that a call without an answer may have led to.
    pub fn imagine(&self, state: &State, call: &Call) -> Vec<State> {
        let Some(me) = &call.session else {
            return Vec::new();
        };
        let states = match &call.op {
            Op::Renew | Op::Guard { .. } => Vec::new(),
            Op::Register { .. } => self.imagine_resume(state, call, me),
            Op::End => match self.end(state, call, me) {
                Step::To(states) => states,
                Step::No | Step::Same => Vec::new(),
            },
            Op::Claim(claim) => self.imagine_claim(state, call, me, claim),
            Op::Release { key, epoch, done } => {
                self.imagine_release(state, me, (key, *epoch, *done))
            }
            Op::Handoff { key, to, epoch } => {
                self.imagine_handoff(state, call, me, (key, *epoch, to))
            }
            Op::Takeover { key, from, epoch } => {
                self.imagine_takeover(state, call, me, (key, *epoch, from.as_deref()))
            }
        };
        states.into_iter().filter(|after| after != state).collect()
    }
}
