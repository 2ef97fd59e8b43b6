//! Path globs within a repository, and whether two of them can match one file.
//!
//! Two `path:` keys that can match one file conflict, so the overlap test decides who may write. It
//! has to be exact: an answer of "no" that is wrong lets two sessions write one file, and an answer of
//! "yes" that is wrong stops work that disturbs nobody. Comparing prefixes or trying sample names gives
//! both errors. [`Glob::witness`] therefore looks for an actual path, and finds one if there is one.
//!
//! Syntax: characters and `\x`; `*` (a run within a segment, also empty); `?`; `[a-z]`, `[!a]`, `[^a]`
//! (never `/`); `{a,b/c,}` (alternatives, nested, also empty); and `**` as a whole segment for zero or
//! more segments, at the end for one or more, so that `src/**` is everything below `src` but not `src`.
//! A brace alternative that yields no path (`{a,}/b` without the `a`) matches nothing; a glob of only
//! such alternatives is refused, since holding it would hold nothing.
//!
//! A path is one or more non-empty segments, none of them `.` or `..`, joined by single `/`. A glob is
//! compiled to an automaton of exactly the paths it matches, which reads the path with a `/` put before
//! it: every segment then begins with its `/`, and `**` is a loop over whole segments. While compiling,
//! `Mode` tracks how much of a segment is written, which keeps `.`, `..`, empty segments and `**`
//! glued to other text out. Alternatives become branches, never copies, so the automaton is linear in
//! the text, and the search for a common path visits each pair of states at most once.
//!
//! Characters are compared as they are, in their case: keys are in NFC, and the caller brings paths to
//! NFC. Only the text of a glob is stored, and is read again by every version: a later syntax may give
//! a meaning to what is refused here, never another meaning to what is accepted.

use std::collections::{HashMap, HashSet};
use std::{fmt, iter, mem, str};

use crate::id::Malformed;
use crate::key::MAX_BYTES;

/// Braces within braces, at most.
const MAX_NESTING: usize = 8;
/// States that [`Glob::includes`] looks at before it gives up: under a tenth of a second.
const INCLUDES_BUDGET: usize = 2_000_000;

/// A pattern of relative paths that matches at least one.
#[derive(Clone)]
pub struct Glob {
    text: String,
    literal: Option<String>,
    nfa: Nfa,
}

impl Glob {
    /// Reads a glob of at most 512 bytes.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let bad = |why| Malformed::new("path glob", text, why);
        check_text(text).map_err(bad)?;
        let (nfa, literal) = Compiler::new(text).compile().map_err(bad)?;
        if !nfa.reach([nfa.start], true).contains(&nfa.accept) {
            return Err(bad("there is no path that it could match"));
        }
        let text = text.to_owned();
        Ok(Self { text, literal, nfa })
    }

    /// The path itself, when the glob has no wildcards, classes or braces.
    pub fn is_literal(&self) -> Option<String> {
        self.literal.clone()
    }

    /// Whether the glob matches a plain relative path; what is not one is never matched.
    pub fn matches(&self, path: &str) -> bool {
        let start = self.nfa.reach([self.nfa.start], false);
        let read = iter::once('/').chain(path.chars());
        let end = read.fold(start, |now, c| self.nfa.step(&now, c));
        end.contains(&self.nfa.accept)
    }

    /// Whether there is a path that both match.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.witness(other).is_some()
    }

    /// A path that both match, if there is one.
    pub fn witness(&self, other: &Self) -> Option<String> {
        Search::new(&self.nfa, &other.nfa).run()
    }

    /// Whether this glob was shown to match every path that `other` matches.
    ///
    /// Always right when `other` is literal. In general the question is exponential, so a search that
    /// exceeds its budget answers false: not shown.
    pub fn includes(&self, other: &Self) -> bool {
        self.text == other.text || Subsets::new(&self.nfa, &other.nfa).hold().unwrap_or(false)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Glob").field(&self.text).finish()
    }
}

/// The rules that can be seen without parsing.
fn check_text(text: &str) -> Result<(), &'static str> {
    let mut segments = text.split('/');
    if text.is_empty() {
        Err("it is empty")
    } else if text.len() > MAX_BYTES {
        Err("it is longer than 512 bytes")
    } else if text.starts_with('/') {
        Err("it begins with /; paths are relative to the repository")
    } else if text.ends_with('/') {
        Err("it ends with /; write DIR/** for what is below DIR")
    } else if text.contains("//") {
        Err("it has an empty segment")
    } else if segments.any(|s| s == "." || s == "..") {
        Err("it has a segment . or ..")
    } else if text.contains(':') {
        Err("it contains a colon")
    } else if text.contains(char::is_control) {
        Err("it contains a control character")
    } else {
        Ok(())
    }
}

/// Ranges of characters, in order and apart.
type Set = Vec<(u32, u32)>;

const LAST: u32 = char::MAX as u32;
/// What a segment may contain: all but NUL, `/`, and the numbers that are no characters.
const SEGMENT: [(u32, u32); 3] = [(1, 0x2e), (0x30, 0xd7ff), (0xe000, LAST)];

fn only(c: char) -> Set {
    vec![(c.into(), c.into())]
}

fn contains(set: &[(u32, u32)], c: char) -> bool {
    set.iter().any(|&(lo, hi)| (lo..=hi).contains(&c.into()))
}

fn intersect(a: &[(u32, u32)], b: &[(u32, u32)]) -> Set {
    let (mut i, mut j, mut both) = (0, 0, Set::new());
    while let (Some(&(a_lo, a_hi)), Some(&(b_lo, b_hi))) = (a.get(i), b.get(j)) {
        if a_lo.max(b_lo) <= a_hi.min(b_hi) {
            both.push((a_lo.max(b_lo), a_hi.min(b_hi)));
        }
        let next = if a_hi < b_hi { &mut i } else { &mut j };
        *next += 1;
    }
    both
}

/// Everything else; the ranges need only be sorted by where they begin.
fn complement(set: &[(u32, u32)]) -> Set {
    let (mut next, mut rest) = (0, Set::new());
    for &(lo, hi) in set {
        if next < lo {
            rest.push((next, lo - 1));
        }
        next = next.max(hi + 1);
    }
    if next <= LAST {
        rest.push((next, LAST));
    }
    rest
}

/// A character of both sets, one that reads well if possible.
fn pick(a: &[(u32, u32)], b: &[(u32, u32)]) -> Option<char> {
    let both = intersect(a, b);
    let liked = [(0x61, 0x7a), (0x21, 0x7e), (0, LAST)];
    let mut found = liked.iter().flat_map(|range| intersect(&both, &[*range]));
    found.next().and_then(|(lo, _)| char::from_u32(lo))
}

/// How much of a segment is written at some place in the glob.
#[derive(Clone, Copy)]
enum Mode {
    /// Nothing, not even its `/`: only `**` goes on from here.
    Fresh,
    /// Its `/`: a character must follow.
    Opened,
    /// `.`, which cannot be all.
    Dot,
    /// `..`, which cannot be all.
    Dots,
    /// Something that can be all.
    Inside,
    /// A `**` that stood for some segments: a slash or the end must follow.
    Crossed,
    /// A `**` that stood for none: a slash must follow.
    Skipped,
}

/// How a character changes the mode: from, whether the character is a dot, to.
const ADVANCE: [(Mode, bool, Mode); 8] = [
    (Mode::Opened, true, Mode::Dot),
    (Mode::Opened, false, Mode::Inside),
    (Mode::Dot, true, Mode::Dots),
    (Mode::Dot, false, Mode::Inside),
    (Mode::Dots, true, Mode::Inside),
    (Mode::Dots, false, Mode::Inside),
    (Mode::Inside, true, Mode::Inside),
    (Mode::Inside, false, Mode::Inside),
];

/// The states in which the automaton can be at some place in the glob, by mode.
///
/// A state in a front may be the beginning of several alternatives: from then on it is given edges
/// that leave it, never edges that enter it.
type Front = [Option<usize>; 7];

const GLUED: &str = "** must be a whole segment, as in a/**/b; write * within a segment";

/// Reads the text once and builds the automaton as it goes.
struct Compiler<'a> {
    rest: iter::Peekable<str::Chars<'a>>,
    literal: Option<String>,
    nfa: Nfa,
}

impl<'a> Compiler<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            rest: text.chars().peekable(),
            literal: Some(String::new()),
            nfa: Nfa::default(),
        }
    }

    fn compile(mut self) -> Result<(Nfa, Option<String>), &'static str> {
        let start = self.nfa.state();
        let begin = self.open(start);
        let end = self.sequence(0, begin)?;
        let accept = self.nfa.state();
        for mode in [Mode::Inside, Mode::Crossed] {
            self.nfa.link(end[mode as usize], accept);
        }
        (self.nfa.start, self.nfa.accept) = (start, accept);
        Ok((self.nfa, self.literal))
    }

    /// Reads up to the end or, within braces, up to the `,` or `}` that ends an alternative.
    fn sequence(&mut self, depth: usize, mut front: Front) -> Result<Front, &'static str> {
        while let Some(c) = self.rest.next_if(|c| depth == 0 || !matches!(c, ',' | '}')) {
            if matches!(c, '*' | '?' | '[' | '{') {
                self.literal = None;
            }
            front = match c {
                '/' => self.slash(front),
                '*' => self.stars(front)?,
                '?' => self.one(&SEGMENT, front)?,
                '[' => {
                    let set = self.class()?;
                    self.one(&set, front)?
                }
                '{' => self.group(depth + 1, front)?,
                ']' => return Err("it has a ] without a [; write \\] for the character"),
                '}' => return Err("it has a } without a {; write \\} for the character"),
                _ => {
                    let c = if c == '\\' { self.escaped()? } else { c };
                    self.literal.iter_mut().for_each(|text| text.push(c));
                    self.one(&only(c), front)?
                }
            };
        }
        Ok(front)
    }

    fn escaped(&mut self) -> Result<char, &'static str> {
        match self.rest.next() {
            None => Err("nothing follows its last backslash"),
            Some('/') => Err("it has a / after a backslash, but / always separates"),
            Some(c) => Ok(c),
        }
    }

    fn class(&mut self) -> Result<Set, &'static str> {
        let negated = self.rest.next_if(|c| matches!(c, '!' | '^')).is_some();
        let mut ranges = Set::new();
        while self.rest.next_if_eq(&']').is_none() {
            let lo = self.class_char()?;
            let mut ahead = self.rest.clone();
            let is_range = ahead.next() == Some('-') && ahead.next() != Some(']');
            let hi = if is_range {
                self.rest.next();
                self.class_char()?
            } else {
                lo
            };
            if lo > hi {
                return Err("it has a range whose end comes before its beginning");
            }
            ranges.push((lo.into(), hi.into()));
        }
        if ranges.is_empty() {
            return Err("it has an empty class []");
        }
        ranges.sort_unstable();
        let others = complement(&ranges);
        let set = if negated { others } else { complement(&others) };
        Ok(intersect(&set, &SEGMENT))
    }

    fn class_char(&mut self) -> Result<char, &'static str> {
        match self.rest.next() {
            None => Err("it has a [ without a ]; write \\[ for the character"),
            Some('[') => Err("it has a [ within a class; write \\[ for the character"),
            Some('/') => Err("it has a / within a class, which never matches one"),
            Some('\\') => self.escaped(),
            Some(c) => Ok(c),
        }
    }

    fn group(&mut self, depth: usize, from: Front) -> Result<Front, &'static str> {
        if depth > MAX_NESTING {
            return Err("its braces are nested deeper than 8");
        }
        let mut ends = vec![self.sequence(depth, from)?];
        while self.rest.next_if_eq(&',').is_some() {
            ends.push(self.sequence(depth, from)?);
        }
        if self.rest.next().is_none() {
            return Err("it has a { without a }; write \\{ for the character");
        }
        let mut to = Front::default();
        for (mode, joined) in to.iter_mut().enumerate() {
            let mut states: Vec<usize> = ends.iter().filter_map(|end| end[mode]).collect();
            states.dedup();
            *joined = states.first().copied();
            if states.len() > 1 {
                *joined = Some(self.nfa.join(states));
            }
        }
        Ok(to)
    }

    fn slash(&mut self, from: Front) -> Front {
        self.literal.iter_mut().for_each(|text| text.push('/'));
        let ended = [Mode::Inside, Mode::Crossed, Mode::Skipped].map(|m| from[m as usize]);
        if ended == [None; 3] {
            return Front::default();
        }
        let fresh = self.nfa.join(ended.into_iter().flatten());
        self.open(fresh)
    }

    /// The front where a segment begins.
    fn open(&mut self, fresh: usize) -> Front {
        let opened = self.nfa.state();
        self.nfa.edge(fresh, &only('/'), opened);
        let mut front = Front::default();
        front[Mode::Fresh as usize] = Some(fresh);
        front[Mode::Opened as usize] = Some(opened);
        front
    }

    fn one(&mut self, set: &[(u32, u32)], from: Front) -> Result<Front, &'static str> {
        if [Mode::Crossed, Mode::Skipped].map(|m| from[m as usize]) != [None; 2] {
            return Err(GLUED);
        }
        Ok(self.advance(set, Some(from), Front::default()))
    }

    /// Reads one character of `set` after `from`, or any number of them within `to`.
    fn advance(&mut self, set: &[(u32, u32)], from: Option<Front>, mut to: Front) -> Front {
        let dot = only('.');
        let parts = [intersect(set, &complement(&dot)), intersect(set, &dot)];
        for (mode, is_dot, next) in ADVANCE {
            let part = &parts[usize::from(is_dot)];
            if let (Some(source), false) = (from.unwrap_or(to)[mode as usize], part.is_empty()) {
                let target = *to[next as usize].get_or_insert_with(|| self.nfa.state());
                self.nfa.edge(source, part, target);
            }
        }
        to
    }

    fn stars(&mut self, from: Front) -> Result<Front, &'static str> {
        let more = iter::from_fn(|| self.rest.next_if_eq(&'*')).count();
        let has = |modes: &[Mode]| modes.iter().any(|m| from[*m as usize].is_some());
        let after_text = has(&[Mode::Dot, Mode::Dots, Mode::Inside]);
        if has(&[Mode::Crossed, Mode::Skipped]) || more > 1 || (more == 1 && after_text) {
            return Err(GLUED);
        }
        Ok(if more == 0 {
            self.run(from)
        } else {
            self.deep(from)
        })
    }

    /// `*`: any characters of a segment.
    fn run(&mut self, from: Front) -> Front {
        let mut to = Front::default();
        to[Mode::Opened as usize] = from[Mode::Opened as usize];
        for mode in [Mode::Dot, Mode::Dots, Mode::Inside].map(|m| m as usize) {
            to[mode] = from[mode].map(|state| self.nfa.join([state]));
        }
        self.advance(&SEGMENT, None, to)
    }

    /// `**`: any segments.
    fn deep(&mut self, from: Front) -> Front {
        let mut to = Front::default();
        if let Some(fresh) = from[Mode::Fresh as usize] {
            let begin = self.nfa.join([fresh]);
            let opened = self.open(begin);
            let ended = self.run(opened)[Mode::Inside as usize];
            self.nfa.link(ended, begin);
            to[Mode::Crossed as usize] = ended;
            to[Mode::Skipped as usize] = Some(fresh);
        }
        to
    }
}

#[derive(Clone, Default)]
struct State {
    /// Where it goes without reading.
    silent: Vec<usize>,
    /// Where it goes on a character of a set, named by its place in [`Nfa::sets`].
    edges: Vec<(usize, usize)>,
}

/// An automaton of paths, each read with a `/` before it.
#[derive(Clone, Default)]
struct Nfa {
    states: Vec<State>,
    sets: Vec<Set>,
    start: usize,
    accept: usize,
}

impl Nfa {
    fn state(&mut self) -> usize {
        self.states.push(State::default());
        self.states.len() - 1
    }

    fn link(&mut self, from: Option<usize>, to: usize) {
        from.into_iter()
            .for_each(|from| self.states[from].silent.push(to));
    }

    fn join(&mut self, from: impl IntoIterator<Item = usize>) -> usize {
        let to = self.state();
        from.into_iter().for_each(|from| self.link(Some(from), to));
        to
    }

    fn edge(&mut self, from: usize, set: &[(u32, u32)], to: usize) {
        let known = self.sets.iter().position(|s| s == set);
        if known.is_none() {
            self.sets.push(set.to_vec());
        }
        let set = known.unwrap_or(self.sets.len() - 1);
        self.states[from].edges.push((set, to));
    }

    /// The states that are reached without reading, or with `reading` by any text, in order.
    fn reach(&self, from: impl IntoIterator<Item = usize>, reading: bool) -> Vec<usize> {
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

    fn step(&self, now: &[usize], c: char) -> Vec<usize> {
        let edges = now.iter().flat_map(|at| &self.states[*at].edges);
        let read = edges.filter(|(set, _)| contains(&self.sets[*set], c));
        self.reach(read.map(|(_, to)| *to), false)
    }
}

/// A pair of states that one text reaches in both automata, and how.
#[derive(Clone, Copy)]
struct Found {
    pair: u32,
    from: u32,
    read: Option<char>,
}

/// The search for a text that two automata accept, breadth first over pairs of states.
struct Search<'a> {
    a: &'a Nfa,
    b: &'a Nfa,
    seen: Vec<u64>,
    found: Vec<Found>,
}

impl<'a> Search<'a> {
    fn new(a: &'a Nfa, b: &'a Nfa) -> Self {
        let pairs = a.states.len() * b.states.len();
        let (seen, found) = (vec![0; pairs.div_ceil(64)], Vec::new());
        Self { a, b, seen, found }
    }

    fn run(mut self) -> Option<String> {
        let (a, b) = (self.a, self.b);
        let row = |x: &Set| b.sets.iter().map(|y| pick(x, y)).collect();
        let common: Vec<Vec<Option<char>>> = a.sets.iter().map(row).collect();
        self.add(a.start, b.start, 0, None);
        let mut at = 0;
        while let Some(found) = self.found.get(at) {
            let pair = found.pair as usize;
            let (left, right) = (pair / b.states.len(), pair % b.states.len());
            if (left, right) == (a.accept, b.accept) {
                return Some(self.spell(at));
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
    fn add(&mut self, left: usize, right: usize, from: usize, read: Option<char>) {
        let pair = left * self.b.states.len() + right;
        let (word, bit) = (&mut self.seen[pair / 64], 1 << (pair % 64));
        if *word & bit == 0 {
            *word |= bit;
            let (pair, from) = (pair as u32, from as u32);
            self.found.push(Found { pair, from, read });
        }
    }

    /// The path that was read on the way, without the `/` before it.
    fn spell(&self, mut at: usize) -> String {
        let mut read = Vec::new();
        while at > 0 {
            read.extend(self.found[at].read);
            at = self.found[at].from as usize;
        }
        read.iter().rev().skip(1).collect()
    }
}

/// The sets of states that texts lead to, made as they are needed.
struct Subsets<'a> {
    whole: &'a Nfa,
    part: &'a Nfa,
    letters: Vec<char>,
    sets: Vec<Vec<usize>>,
    places: HashMap<Vec<usize>, usize>,
    /// For each set and letter, where it leads, once that is known.
    steps: Vec<Option<usize>>,
    budget: usize,
}

impl<'a> Subsets<'a> {
    fn new(whole: &'a Nfa, part: &'a Nfa) -> Self {
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

    /// Whether every text that `part` accepts is accepted by `whole`; nothing when the budget is spent.
    fn hold(mut self) -> Option<bool> {
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

    fn step(&mut self, from: usize, letter: usize) -> Option<usize> {
        let at = from * self.letters.len() + letter;
        self.budget = self.budget.checked_sub(1)?;
        if self.steps[at].is_none() {
            let set = self.whole.step(&self.sets[from], self.letters[letter]);
            self.budget = (self.budget).checked_sub(self.sets[from].len() + set.len())?;
            self.steps[at] = Some(self.place(set));
        }
        self.steps[at]
    }

    /// Keeps of a set what decides its future, and finds or adds it.
    fn place(&mut self, mut set: Vec<usize>) -> usize {
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

/// One character for each way in which the sets of both automata tell characters apart.
fn letters(a: &Nfa, b: &Nfa) -> Vec<char> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> Glob {
        Glob::parse(text).unwrap()
    }

    #[test]
    fn each_construct_matches_what_it_says() {
        let nested = "{a,{b,c{,/d}}}";
        let cases: [(&str, &[&str], &[&str]); 17] = [
            (
                "a/b.rs",
                &["a/b.rs"],
                &["a", "a/b", "a/b.rs/c", "A/b.rs", "a/bxrs"],
            ),
            (r"\*\[\{\,é", &["*[{,é"], &["x[{,é", r"\*\[\{\,é"]),
            ("a,b", &["a,b"], &["a", "b"]),
            ("a*c", &["ac", "abc", "a*c", "a.c"], &["a/c", "ab", "xac"]),
            (
                "*",
                &["a", ".a", "...", "a:b"],
                &["", ".", "..", "a/b", "/a", "a/"],
            ),
            ("a/*", &["a/b"], &["a", "a/", "a/b/c", "a/..", "a//b"]),
            ("a?c", &["abc", "aéc", "a.c"], &["ac", "a/c", "abbc"]),
            ("[abx-z]", &["a", "b", "y"], &["c", "w", "ab", "-"]),
            ("[!a]x", &["bx", ".x"], &["ax", "x", "/x"]),
            ("[^a-]x", &["bx"], &["ax", "-x"]),
            ("a[+-9]b", &["a+b", "a.b", "a5b"], &["a/b", "a:b"]),
            (r"[\]\-\\]", &["]", "-", r"\"], &["a"]),
            (
                "src/**",
                &["src/a", "src/a/b"],
                &["src", "src/", "srcs/a", "src/../a"],
            ),
            (
                "**/x",
                &["x", "a/x", "a/b/x"],
                &["ax", "x/a", "./x", "a//x", "/x"],
            ),
            (
                "a/**/b",
                &["a/b", "a/x/b", "a/x/y/b"],
                &["ab", "a", "b", "a/b/c"],
            ),
            ("**", &["a", "a/b/c"], &["", ".", "a/..", "a/", "/"]),
            (nested, &["a", "b", "c", "c/d"], &["", "d", "ab", "c/"]),
        ];
        for (text, yes, no) in cases {
            let it = glob(text);
            yes.iter()
                .for_each(|p| assert!(it.matches(p), "{text} {p}"));
            no.iter()
                .for_each(|p| assert!(!it.matches(p), "{text} {p}"));
        }
    }

    #[test]
    fn alternatives_may_hold_slashes_nothing_and_whole_segments() {
        let it = glob("a{/**,.rs,}");
        assert!(["a", "a.rs", "a/b", "a/b/c"].iter().all(|p| it.matches(p)));
        assert!(!it.matches("a/") && !it.matches("ab"));
        let it = glob("{a,}/{**,b}/{c/,}**");
        assert!(it.matches("a/b") && it.matches("a/x/y") && !it.matches("b/c"));
        let it = glob("x{*a,/**,b}");
        assert!(it.matches("xca") && it.matches("xb") && !it.matches("xcb") && !it.matches("x/"));
        let it = glob("{**,a}/{a,b}");
        assert!(it.matches("a") && it.matches("c/d/b"));
        assert!(glob("{,a/}**").matches("b"));
        assert!(glob("foo{.,_}rs").matches("foo.rs"));
        assert!(glob("{*,a}*").matches("ab") && !glob("{*,a}*").matches("a/b"));
    }

    #[test]
    fn what_is_not_a_glob_is_refused_with_its_reason() {
        let nested = |n| format!("{}a{}", "{".repeat(n), "}".repeat(n));
        assert!(Glob::parse(&nested(8)).is_ok());
        let (deep, long) = (nested(9), "x".repeat(513));
        assert!(Glob::parse(&long[1..]).is_ok());
        let cases: [(&str, &[&str]); 17] = [
            ("empty", &[""]),
            ("longer than 512", &[&long]),
            ("begins with /", &["/a", "/"]),
            ("ends with /", &["a/", "**/"]),
            ("empty segment", &["a//b", "{a//b,c}"]),
            (
                "segment . or ..",
                &[".", "..", "./a", "a/../b", "a/.", "{a/./b,c}"],
            ),
            ("colon", &["a:b", "[:]", r"\:"]),
            ("control character", &["a\0b", "a\nb", "a\u{7f}", "a\u{85}"]),
            ("] without a [", &["a]", "]"]),
            ("[ without a ]", &["[", "[a", "[!", "[a-", r"[\]"]),
            ("[ within a class", &["[[a]", "[a-[]"]),
            ("/ within a class", &["[a/b]", "[+-/]"]),
            ("empty class", &["[]", "[]a]", "[!]", "[^]"]),
            ("end comes before", &["[z-a]", "[!b-a]"]),
            ("backslash", &["a\\", "[\\", r"a\/b"]),
            (
                "no path that it could",
                &["{}", "{,}", "a/{}", "{/a}", r"\.", "[.]/a", ".{,.}"],
            ),
            (
                "whole segment",
                &[
                    "a**", "**a", "a/***/b", "{,a}**", "**{,a}", "*{,/}**", "{**}?",
                ],
            ),
        ];
        let braces: [(&str, &[&str]); 3] = [
            ("} without a {", &["}", "a}b", "{a}}"]),
            ("{ without a }", &["{", "{a,b", "{a,{b}", "a{/b"]),
            ("nested deeper", &[&deep]),
        ];
        for (why, texts) in cases.into_iter().chain(braces) {
            for text in texts {
                let error = Glob::parse(text).expect_err(text);
                assert!(error.why.contains(why), "{text:?}: {}", error.why);
            }
        }
    }

    #[test]
    fn two_globs_overlap_only_if_one_path_matches_both() {
        let yes = [
            ("src/**", "**/*.rs"),
            ("a*", "*b"),
            ("a/**/c", "a/b/*"),
            ("{a,b}/x", "{b,c}/*"),
            ("[a-m]", "[m-z]"),
            ("[!a]", "?"),
            (".?", "*[.]*"),
        ];
        let no = [
            ("src/**", "src"),
            ("src/db/**", "src/web/**"),
            ("*.rs", "**/*.toml"),
            ("*", "*/*"),
            ("[a-m]", "[n-z]"),
            ("a?", "?"),
            (".*", "?"),
            (".[.]*", "??"),
            ("{a,b}{,/c}", "c/**"),
        ];
        for (a, b) in yes {
            let (a, b) = (glob(a), glob(b));
            let path = a.witness(&b).unwrap();
            assert!(a.matches(&path) && b.matches(&path), "{a:?} {b:?} {path}");
            assert!(b.overlaps(&a));
        }
        for (a, b) in no {
            assert_eq!(glob(a).witness(&glob(b)), None, "{a} {b}");
            assert!(!glob(b).overlaps(&glob(a)), "{b} {a}");
        }
    }

    #[test]
    fn inclusion_is_shown_or_denied() {
        let yes = [
            ("**", "a/{b,c}/*"),
            ("src/**", "src/**/*.rs"),
            ("src/**", "src/**/x"),
            ("**/*", "**"),
            ("{a,b}", "[ab]"),
            ("?*", "*"),
            ("[!x]", "[a-c]"),
            ("a/b", "a/b"),
            ("{.?*,[!.]*}", "*"),
        ];
        let no = [
            ("src/**", "src"),
            ("src/*", "src/**"),
            ("[a-c]", "[a-d]"),
            ("a/**/b", "a/**"),
            ("*a", "*"),
        ];
        yes.iter()
            .for_each(|(a, b)| assert!(glob(a).includes(&glob(b)), "{a} {b}"));
        no.iter()
            .for_each(|(a, b)| assert!(!glob(a).includes(&glob(b)), "{a} {b}"));
    }

    #[test]
    fn only_a_plain_path_is_literal() {
        assert_eq!(glob(r"a/\*b").is_literal().as_deref(), Some("a/*b"));
        for text in ["a/*", "a?", "[a]", "{a}", "**"] {
            assert_eq!(glob(text).is_literal(), None, "{text}");
        }
    }
}
