//! The search for an order: are there instants, one within each call, at which all answers are right?
//!
//! This is the checker of Wing and Gong with a memory of what was tried (Lowe). A call may come next if
//! no other call that has not had its instant was answered before it was asked. A call without an answer
//! may come at any time before its process was gone, or never. Two things keep the search short without
//! leaving anything out: an answer that can only ever be a look is placed as soon as it is right, for
//! then nothing is gained by waiting (unless it was asked after the end of somebody unanswered, whose call
//! can come no more once the look is placed: then both ways are tried); and the store's own log of events
//! proposes which change to try first. The log only proposes: whatever order is found, every answer in
//! it was judged by the model.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::history::Call;
use super::model::{Model, State, Step};

/// How many situations are tried before the search gives up.
pub const MOST_TRIED: usize = 400_000;

/// Calls to be put in order.
pub struct Puzzle<'a> {
    pub model: Model<'a>,
    /// The calls, in order of asking.
    pub calls: Vec<&'a Call>,
    /// The state before all of them.
    pub start: State,
    /// When the store's log says that a call took effect, by its tag.
    pub log: &'a HashMap<String, u64>,
    /// Whether the state after all of them is the one that was found in the end.
    pub fits: &'a dyn Fn(&State) -> bool,
    /// How many situations to try.
    pub most_tried: usize,
}

/// What came of the search.
#[derive(Debug, Clone)]
pub enum Outcome {
    Ordered {
        /// How many situations were tried.
        tried: usize,
    },
    Stuck(Stuck),
}

/// Where the longest order that was found ends.
#[derive(Debug, Clone)]
pub struct Stuck {
    pub state: State,
    /// How many calls had their instant.
    pub placed: usize,
    /// Those that were asked and had not: their places among the calls.
    pub waiting: Vec<usize>,
    /// Those that had, in their order.
    pub order: Vec<usize>,
    /// Whether everything was tried; otherwise the search gave up.
    pub exhausted: bool,
}

/// How far an order has come.
#[derive(Debug, Clone)]
struct Situation {
    state: State,
    /// Calls before this place had their instant, or are waiting.
    next: usize,
    waiting: Vec<usize>,
    /// The latest asking among those that had their instant.
    latest: u64,
    /// The last of those: its place in the trail.
    last: usize,
}

impl Situation {
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.state, self.next, &self.waiting, self.latest).hash(&mut hasher);
        hasher.finish()
    }
}

/// The calls that had their instant, each with the one before it.
type Trail = Vec<(usize, usize)>;

/// A situation with the ways on from it, the best one last.
struct Fork {
    from: Situation,
    ways: Vec<(usize, State)>,
}

impl Puzzle<'_> {
    pub fn solve(&self) -> Outcome {
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
                    return Outcome::Ordered { tried: seen.len() };
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

    fn stuck(&self, best: Situation, trail: &Trail, exhausted: bool) -> Outcome {
        let back = |at: &usize| Some(trail[*at].0).filter(|before| *before != 0);
        let last = Some(best.last).filter(|last| *last != 0);
        let mut order: Vec<usize> = std::iter::successors(last, back)
            .map(|at| trail[at].1)
            .collect();
        order.reverse();
        Outcome::Stuck(Stuck {
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

    /// Lets everybody ask who can have asked, and places whatever can only be a look.
    fn settled(&self, mut situation: Situation, trail: &mut Trail) -> Situation {
        loop {
            self.let_ask(&mut situation);
            let last_chance = self.last_chance(&situation.waiting);
            let looks = |call: &&usize| {
                let call = self.calls[**call];
                call.answer.is_some()
                    && call.asked <= last_chance
                    && !self.model.may_change_later(call)
                    && self.model.step(&situation.state, call) == Step::Same
            };
            let Some(look) = situation.waiting.iter().find(looks).copied() else {
                return situation;
            };
            self.place(&mut situation, look, trail);
        }
    }

    /// The first end of anybody who is waiting and will not be answered.
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
        // A caller that was gone before a placed call began can change nothing any more.
        situation
            .waiting
            .retain(|call| self.calls[*call].answer.is_some() || self.calls[*call].until >= latest);
    }

    fn fork(&self, from: Situation) -> Fork {
        let mut ways: Vec<(usize, State)> = Vec::new();
        for place in &from.waiting {
            let call = self.calls[*place];
            let states = match self.model.step(&from.state, call) {
                Step::No => continue,
                Step::Same => vec![from.state.clone()],
                Step::To(states) => states,
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

    /// What is tried first: the order of the log. What is not in it and was answered changes nothing: it
    /// comes first, unless it would shut out somebody unanswered who is in the log. What is not in it
    /// and was not answered comes last.
    fn rank(&self, place: usize, unlogged: u64) -> (u64, u64) {
        let call = self.calls[place];
        match self.log.get(&call.tag) {
            Some(event) => (*event, call.until),
            None if call.answer.is_some() => (unlogged, call.until),
            None => (u64::MAX, call.until),
        }
    }
}
