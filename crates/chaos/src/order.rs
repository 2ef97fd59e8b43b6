//! The search for an order: are there instants, one within each call, at which all answers are
//! correct?
//!
//! This is the checker of Wing and Gong with a memory of what was tried (Lowe). A call may come
//! next if no other unplaced call was answered before it was asked. A call without an answer may
//! come at any time before its process was gone, or never. Two things keep the search short without
//! excluding anything. First, an answer that can never change the state is placed as soon as it is
//! correct, because waiting gains nothing (unless it was asked after the end of an unanswered
//! caller, whose call can no longer come once this one is placed: then both ways are tried).
//! Second, the store's own event log suggests which change to try first. It only suggests: whatever
//! order is found, the model judged every answer in it.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::history::Call;
use super::model::{KeyStates, Model, Transition};

/// How many situations are tried before the search gives up.
pub const MAX_TRIED: usize = 400_000;

/// Calls to put in order.
pub struct Puzzle<'a> {
    pub model: Model<'a>,
    /// The calls, in order of asking.
    pub calls: Vec<&'a Call>,
    /// The state before all of them.
    pub start: KeyStates,
    /// The position in the store's log at which a call took effect, by its tag.
    pub log: &'a HashMap<String, u64>,
    /// Whether the state after all of them is the one found at the end.
    pub fits: &'a dyn Fn(&KeyStates) -> bool,
    /// How many situations to try.
    pub most_tried: usize,
}

/// The result of the search.
#[derive(Debug, Clone)]
pub enum SearchOutcome {
    Ordered {
        /// How many situations were tried.
        tried: usize,
    },
    Stuck(Stuck),
}

/// The end of the longest order that was found.
#[derive(Debug, Clone)]
pub struct Stuck {
    pub state: KeyStates,
    /// How many calls were placed.
    pub placed: usize,
    /// Calls that were asked and not placed, as indexes.
    pub waiting: Vec<usize>,
    /// The placed calls, in order.
    pub order: Vec<usize>,
    /// Whether everything was tried; otherwise the search gave up.
    pub exhausted: bool,
}

/// A partial order.
#[derive(Debug, Clone)]
struct Situation {
    state: KeyStates,
    /// All calls before this index are placed or waiting.
    next: usize,
    waiting: Vec<usize>,
    /// The latest time of asking among the placed calls.
    latest: u64,
    /// The last placed call, as an index into the trail.
    last: usize,
}

impl Situation {
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.state, self.next, &self.waiting, self.latest).hash(&mut hasher);
        hasher.finish()
    }
}

/// The placed calls, each with the previous one.
type Trail = Vec<(usize, usize)>;

/// A situation with the possible continuations, best one last.
struct Fork {
    from: Situation,
    ways: Vec<(usize, KeyStates)>,
}

impl Puzzle<'_> {
    pub fn solve(&self) -> SearchOutcome {
        let mut trail: Trail = vec![(0, 0)];
        let first = Situation {
            state: self.start.clone(),
            next: 0,
            waiting: Vec::new(),
            latest: 0,
            last: 0,
        };
        let first = self.settled(first, &mut trail);
        let mut best = first.clone();
        let mut seen = HashSet::from([first.fingerprint()]);
        let mut path = Vec::new();
        let mut here = Some(first);
        loop {
            if let Some(situation) = here.take() {
                if self.placed(&situation) >= self.placed(&best) {
                    best = situation.clone();
                }
                if self.is_over(&situation) {
                    return SearchOutcome::Ordered { tried: seen.len() };
                }
                if seen.len() >= self.most_tried {
                    return self.stuck(best, &trail, false);
                }
                path.push(self.fork(situation));
            }
            let Some(fork) = path.last_mut() else {
                return self.stuck(best, &trail, true);
            };
            match fork.ways.pop() {
                None => drop(path.pop()),
                Some((call, state)) => {
                    let mut next = fork.from.clone();
                    next.state = state;
                    self.place(&mut next, call, &mut trail);
                    let next = self.settled(next, &mut trail);
                    here = seen.insert(next.fingerprint()).then_some(next);
                }
            }
        }
    }

    fn stuck(&self, best: Situation, trail: &Trail, exhausted: bool) -> SearchOutcome {
        let back = |at: &usize| Some(trail[*at].0).filter(|before| *before != 0);
        let last = Some(best.last).filter(|last| *last != 0);
        let mut order: Vec<usize> = std::iter::successors(last, back)
            .map(|at| trail[at].1)
            .collect();
        order.reverse();
        SearchOutcome::Stuck(Stuck {
            placed: self.placed(&best),
            state: best.state,
            waiting: best.waiting,
            order,
            exhausted,
        })
    }

    fn placed(&self, situation: &Situation) -> usize {
        let answered = |call: &&usize| self.calls[**call].answer.is_some();
        situation.next - situation.waiting.iter().filter(answered).count()
    }

    fn is_over(&self, situation: &Situation) -> bool {
        let answered = |call: &usize| self.calls[*call].answer.is_some();
        situation.next == self.calls.len()
            && !situation.waiting.iter().any(answered)
            && (self.fits)(&situation.state)
    }

    fn place(&self, situation: &mut Situation, call: usize, trail: &mut Trail) {
        trail.push((situation.last, call));
        situation.last = trail.len() - 1;
        situation.waiting.retain(|waiting| *waiting != call);
        situation.latest = situation.latest.max(self.calls[call].asked);
    }

    /// Adds all calls that can have been asked, and places those that can never change the state.
    fn settled(&self, mut situation: Situation, trail: &mut Trail) -> Situation {
        loop {
            self.let_ask(&mut situation);
            let last_chance = self.last_chance(&situation.waiting);
            let looks = |call: &&usize| {
                let call = self.calls[**call];
                call.answer.is_some()
                    && call.asked <= last_chance
                    && !self.model.may_change_later(call)
                    && self.model.step(&situation.state, call) == Transition::Same
            };
            let Some(look) = situation.waiting.iter().find(looks).copied() else {
                return situation;
            };
            self.place(&mut situation, look, trail);
        }
    }

    /// The earliest end of a waiting caller that will not be answered.
    fn last_chance(&self, waiting: &[usize]) -> u64 {
        let unanswered = waiting.iter().map(|call| self.calls[*call]);
        let ends = unanswered
            .filter(|call| call.answer.is_none())
            .map(|call| call.until);
        ends.min().unwrap_or(u64::MAX)
    }

    fn let_ask(&self, situation: &mut Situation) {
        let end = |call: &usize| {
            let call = self.calls[*call];
            call.answer.as_ref().map_or(u64::MAX, |_| call.until)
        };
        let mut deadline = situation.waiting.iter().map(end).min().unwrap_or(u64::MAX);
        while let Some(call) = self.calls.get(situation.next) {
            if call.asked > deadline {
                break;
            }
            situation.waiting.push(situation.next);
            deadline = deadline.min(end(&situation.next));
            situation.next += 1;
        }
        let latest = situation.latest;
        // A caller that was gone before a placed call began can no longer change anything.
        situation
            .waiting
            .retain(|call| self.calls[*call].answer.is_some() || self.calls[*call].until >= latest);
    }

    fn fork(&self, from: Situation) -> Fork {
        let mut ways: Vec<(usize, KeyStates)> = Vec::new();
        for place in &from.waiting {
            let call = self.calls[*place];
            let states = match self.model.step(&from.state, call) {
                Transition::No => continue,
                Transition::Same => vec![from.state.clone()],
                Transition::To(states) => states,
            };
            ways.extend(states.into_iter().map(|state| (*place, state)));
        }
        let logged = |place: &usize| {
            let call = self.calls[*place];
            call.answer.is_none() && self.log.contains_key(&call.tag)
        };
        let unlogged = if from.waiting.iter().any(logged) {
            u64::MAX - 1
        } else {
            0
        };
        ways.sort_by_key(|(place, _)| std::cmp::Reverse(self.rank(*place, unlogged)));
        Fork { from, ways }
    }

    /// The order of attempts is that of the log. Answered calls that are not in it change nothing:
    /// they come first, unless they would exclude an unanswered call that is in the log. Unanswered
    /// calls that are not in it come last.
    fn rank(&self, place: usize, unlogged: u64) -> (u64, u64) {
        let call = self.calls[place];
        match self.log.get(&call.tag) {
            Some(event) => (*event, call.until),
            None if call.answer.is_some() => (unlogged, call.until),
            None => (u64::MAX, call.until),
        }
    }
}
