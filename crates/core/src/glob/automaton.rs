//! Automata of paths, and the two searches over pairs of them.

use std::collections::{HashMap, HashSet};
use std::mem;

use super::set::*;

/// States that `Glob::includes` visits before it gives up: under a tenth of a second.
const INCLUDES_BUDGET: usize = 2_000_000;

#[derive(Clone, Default)]
pub(super) struct State {
    /// Targets reached without reading.
    pub(super) silent: Vec<usize>,
    /// Targets reached by a character of a set, given by its index in [`Nfa::sets`].
    pub(super) edges: Vec<(usize, usize)>,
}

/// An automaton of paths, each read with a leading `/`.
#[derive(Clone, Default)]
pub(super) struct Nfa {
    pub(super) states: Vec<State>,
    pub(super) sets: Vec<Set>,
    pub(super) start: usize,
    pub(super) accept: usize,
}

impl Nfa {
    pub(super) fn state(&mut self) -> usize {
        self.states.push(State::default());
        self.states.len() - 1
    }

    pub(super) fn link(&mut self, from: Option<usize>, to: usize) {
        from.into_iter()
            .for_each(|from| self.states[from].silent.push(to));
    }

    pub(super) fn join(&mut self, from: impl IntoIterator<Item = usize>) -> usize {
        let to = self.state();
        from.into_iter().for_each(|from| self.link(Some(from), to));
        to
    }

    pub(super) fn edge(&mut self, from: usize, set: &[(u32, u32)], to: usize) {
        let known = self.sets.iter().position(|s| s == set);
        if known.is_none() {
            self.sets.push(set.to_vec());
        }
        let set = known.unwrap_or(self.sets.len() - 1);
        self.states[from].edges.push((set, to));
    }

    /// The states reached without reading, or with `reading` by any text, in order.
    pub(super) fn reach(&self, from: impl IntoIterator<Item = usize>, reading: bool) -> Vec<usize> {
        let mut seen = vec![false; self.states.len()];
        let mut open: Vec<usize> = from.into_iter().collect();
        let mut reached = Vec::new();
        while let Some(at) = open.pop() {
            if !mem::replace(&mut seen[at], true) {
                reached.push(at);
                open.extend(&self.states[at].silent);
                let read = self.states[at].edges.iter().filter(|_| reading);
                open.extend(read.map(|(_, to)| *to));
            }
        }
        reached.sort_unstable();
        reached
    }

    pub(super) fn step(&self, now: &[usize], c: char) -> Vec<usize> {
        let edges = now.iter().flat_map(|at| &self.states[*at].edges);
        let read = edges.filter(|(set, _)| contains(&self.sets[*set], c));
        self.reach(read.map(|(_, to)| *to), false)
    }
}

/// A pair of states that one text reaches in both automata, and how.
#[derive(Clone, Copy)]
pub(super) struct StatePair {
    pub(super) pair: u32,
    pub(super) from: u32,
    pub(super) read: Option<char>,
}

/// The search for a text that two automata accept, breadth first over pairs of states.
pub(super) struct Search<'a> {
    pub(super) a: &'a Nfa,
    pub(super) b: &'a Nfa,
    pub(super) seen: Vec<u64>,
    pub(super) found: Vec<StatePair>,
}

impl<'a> Search<'a> {
    pub(super) fn new(a: &'a Nfa, b: &'a Nfa) -> Self {
        let pairs = a.states.len() * b.states.len();
        let (seen, found) = (vec![0; pairs.div_ceil(64)], Vec::new());
        Self { a, b, seen, found }
    }

    /// A text that both accept.
    pub(super) fn run(mut self) -> Option<String> {
        let accept = self.a.accept * self.b.states.len() + self.b.accept;
        let at = self.visit(|found, at| found[at].pair as usize == accept)?;
        Some(self.spell(at))
    }

    /// Whether more pairs than this are reached in all.
    pub(super) fn exceeds(mut self, most: usize) -> bool {
        self.visit(|found, _| found.len() > most).is_some()
    }

    /// Visits pair after pair until `ends` is true for one.
    fn visit(&mut self, ends: impl Fn(&[StatePair], usize) -> bool) -> Option<usize> {
        let (a, b) = (self.a, self.b);
        let row = |x: &Set| b.sets.iter().map(|y| pick(x, y)).collect();
        let common: Vec<Vec<Option<char>>> = a.sets.iter().map(row).collect();
        self.add(a.start, b.start, 0, None);
        let mut at = 0;
        while let Some(found) = self.found.get(at) {
            let pair = found.pair as usize;
            let (left, right) = (pair / b.states.len(), pair % b.states.len());
            if ends(&self.found, at) {
                return Some(at);
            }
            let (from_a, from_b) = (&a.states[left], &b.states[right]);
            from_a
                .silent
                .iter()
                .for_each(|to| self.add(*to, right, at, None));
            from_b
                .silent
                .iter()
                .for_each(|to| self.add(left, *to, at, None));
            for &(set_a, to_a) in &from_a.edges {
                for &(set_b, to_b) in &from_b.edges {
                    if let Some(c) = common[set_a][set_b] {
                        self.add(to_a, to_b, at, Some(c));
                    }
                }
            }
            at += 1;
        }
        None
    }

    /// Adds a pair once. The numbers fit: 512 bytes make a few thousand states.
    pub(super) fn add(&mut self, left: usize, right: usize, from: usize, read: Option<char>) {
        let pair = left * self.b.states.len() + right;
        let (word, bit) = (&mut self.seen[pair / 64], 1 << (pair % 64));
        if *word & bit == 0 {
            *word |= bit;
            let (pair, from) = (pair as u32, from as u32);
            self.found.push(StatePair { pair, from, read });
        }
    }

    /// The path that was read on the way, without its leading `/`.
    pub(super) fn spell(&self, mut at: usize) -> String {
        let mut read = Vec::new();
        while at > 0 {
            read.extend(self.found[at].read);
            at = self.found[at].from as usize;
        }
        read.iter().rev().skip(1).collect()
    }
}

/// The sets of states that texts lead to, built on demand.
pub(super) struct Subsets<'a> {
    pub(super) whole: &'a Nfa,
    pub(super) part: &'a Nfa,
    pub(super) letters: Vec<char>,
    pub(super) sets: Vec<Vec<usize>>,
    pub(super) places: HashMap<Vec<usize>, usize>,
    /// For each set and letter, the next set, once that is known.
    pub(super) steps: Vec<Option<usize>>,
    pub(super) budget: usize,
}

impl<'a> Subsets<'a> {
    pub(super) fn new(whole: &'a Nfa, part: &'a Nfa) -> Self {
        let mut subsets = Self {
            whole,
            part,
            letters: letters(whole, part),
            sets: Vec::new(),
            places: HashMap::new(),
            steps: Vec::new(),
            budget: INCLUDES_BUDGET,
        };
        subsets.place(whole.reach([whole.start], false));
        subsets
    }

    /// Whether `whole` accepts every text that `part` accepts; none when the budget is spent.
    pub(super) fn hold(mut self) -> Option<bool> {
        let of = |set: &Set| -> Vec<usize> {
            let all = 0..self.letters.len();
            all.filter(|at| contains(set, self.letters[*at])).collect()
        };
        let readable: Vec<Vec<usize>> = self.part.sets.iter().map(of).collect();
        let mut open = vec![(self.part.start, 0)];
        let mut seen = HashSet::from([(self.part.start, 0)]);
        while let Some((at, set)) = open.pop() {
            if at == self.part.accept && !self.sets[set].contains(&self.whole.accept) {
                return Some(false);
            }
            let state = &self.part.states[at];
            let mut next: Vec<_> = state.silent.iter().map(|to| (*to, set)).collect();
            for &(read, to) in &state.edges {
                for letter in &readable[read] {
                    next.push((to, self.step(set, *letter)?));
                }
            }
            open.extend(next.into_iter().filter(|pair| seen.insert(*pair)));
        }
        Some(true)
    }

    pub(super) fn step(&mut self, from: usize, letter: usize) -> Option<usize> {
        let at = from * self.letters.len() + letter;
        self.budget = self.budget.checked_sub(1)?;
        if self.steps[at].is_none() {
            let set = self.whole.step(&self.sets[from], self.letters[letter]);
            self.budget = (self.budget).checked_sub(self.sets[from].len() + set.len())?;
            self.steps[at] = Some(self.place(set));
        }
        self.steps[at]
    }

    /// Keeps the part of a set that decides its future, and finds or adds it.
    pub(super) fn place(&mut self, mut set: Vec<usize>) -> usize {
        let whole = self.whole;
        set.retain(|at| *at == whole.accept || !whole.states[*at].edges.is_empty());
        *self.places.entry(set).or_insert_with_key(|set| {
            self.sets.push(set.clone());
            self.steps
                .resize(self.sets.len() * self.letters.len(), None);
            self.sets.len() - 1
        })
    }
}

/// One character for each way in which the sets of both automata distinguish characters.
pub(super) fn letters(a: &Nfa, b: &Nfa) -> Vec<char> {
    let sets: Vec<&Set> = a.sets.iter().chain(&b.sets).collect();
    let ranges = sets.iter().flat_map(|set| set.iter());
    let mut edges: Vec<u32> = ranges.flat_map(|&(lo, hi)| [lo, hi + 1]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut told = HashSet::new();
    let mut is_new =
        |c: &char| told.insert(sets.iter().map(|s| contains(s, *c)).collect::<Vec<_>>());
    let chars = edges.into_iter().filter_map(char::from_u32);
    chars.filter(|c| is_new(c)).collect()
}
