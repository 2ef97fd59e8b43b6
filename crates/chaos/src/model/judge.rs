//! Which rule judges which call.

use super::state::State;
use super::step::{Model, Step, Turn};
use crate::history::Call;
use crate::record::{Answer, Op};
use crate::rule::is_known;

impl Model<'_> {
    /// Whether a call concerns these keys.
    pub fn concerns(&self, call: &Call) -> bool {
        // These answers promise nothing; unexpected ones are reported elsewhere.
        if let Some(Answer::Refused(refusal)) = &call.answer
            && (refusal.kind == "timed_out" || !is_known(&call.op, &refusal.kind))
        {
            return false;
        }
        let here = |key: &String| self.space.place(key).is_some();
        match &call.op {
            // What a host remembers may be older than the store: it has a rule of its own.
            Op::Renew | Op::Recall { .. } => false,
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

    /// The result of a call. One without an answer may lead to any state that it can change this
    /// one to.
    pub fn step(&self, state: &State, call: &Call) -> Step {
        let (answered, Some(me)) = (call.answer.is_some(), &call.session) else {
            return Step::right_if(call.answer.is_some());
        };
        let turn = Turn { state, call, me };
        let step = match (&call.op, &call.answer) {
            (Op::Renew | Op::Recall { .. }, _) => Step::Same,
            (Op::Register { .. }, Some(Answer::Registered { regranted, .. })) => {
                self.resume(turn, regranted)
            }
            (Op::Register { .. }, None) => Step::to(self.imagine_resume(turn)),
            (Op::End, None | Some(Answer::Yes { .. })) => self.end(turn),
            (Op::Register { .. } | Op::End, Some(_)) => Step::No,
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
            Step::To(states) => Step::to(states.into_iter().filter(|to| to != state).collect()),
            Step::No | Step::Same => Step::No,
        }
    }
}
