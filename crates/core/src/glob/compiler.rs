//! Compiles a glob's text into an automaton, in one pass.

use std::{iter, str};

use super::automaton::*;
use super::set::*;

/// Braces within braces, at most.
const MAX_NESTING: usize = 8;

/// How much of a segment has been written at a point in the glob.
#[derive(Clone, Copy)]
pub(super) enum SegmentState {
    /// Nothing, not even its `/`: only `**` can follow.
    Fresh,
    /// Its `/`: a character must follow.
    Opened,
    /// `.`, which cannot be a whole segment.
    Dot,
    /// `..`, which cannot be a whole segment.
    Dots,
    /// Text that can be a whole segment.
    Inside,
    /// A `**` that stood for some segments: a slash or the end must follow.
    Crossed,
    /// A `**` that stood for none: a slash must follow.
    Skipped,
}

/// How a character changes the mode: from, whether the character is a dot, to.
pub(super) const ADVANCE: [(SegmentState, bool, SegmentState); 8] = [
    (SegmentState::Opened, true, SegmentState::Dot),
    (SegmentState::Opened, false, SegmentState::Inside),
    (SegmentState::Dot, true, SegmentState::Dots),
    (SegmentState::Dot, false, SegmentState::Inside),
    (SegmentState::Dots, true, SegmentState::Inside),
    (SegmentState::Dots, false, SegmentState::Inside),
    (SegmentState::Inside, true, SegmentState::Inside),
    (SegmentState::Inside, false, SegmentState::Inside),
];

/// The states of the automaton at a point in the glob, by mode.
///
/// A state in a front may start several alternatives. From then on it only gets edges that leave it, never
/// edges that enter it.
pub(super) type Front = [Option<usize>; 7];

pub(super) const GLUED: &str = "** must be a whole segment, as in a/**/b; write * within a segment";

/// Reads the text once and builds the automaton on the way.
pub(super) struct Compiler<'a> {
    pub(super) rest: iter::Peekable<str::Chars<'a>>,
    pub(super) literal: Option<String>,
    pub(super) nfa: Nfa,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            rest: text.chars().peekable(),
            literal: Some(String::new()),
            nfa: Nfa::default(),
        }
    }

    pub(super) fn compile(mut self) -> Result<(Nfa, Option<String>), &'static str> {
        let start = self.nfa.state();
        let begin = self.open(start);
        let end = self.sequence(0, begin)?;
        let accept = self.nfa.state();
        for mode in [SegmentState::Inside, SegmentState::Crossed] {
            self.nfa.link(end[mode as usize], accept);
        }
        (self.nfa.start, self.nfa.accept) = (start, accept);
        Ok((self.nfa, self.literal))
    }

    /// Reads up to the end or, within braces, up to the `,` or `}` that ends an alternative.
    pub(super) fn sequence(
        &mut self,
        depth: usize,
        mut front: Front,
    ) -> Result<Front, &'static str> {
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

    pub(super) fn escaped(&mut self) -> Result<char, &'static str> {
        match self.rest.next() {
            None => Err("nothing follows its last backslash"),
            Some('/') => Err("it has a / after a backslash, but / always separates"),
            Some(c) => Ok(c),
        }
    }

    pub(super) fn class(&mut self) -> Result<Set, &'static str> {
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

    pub(super) fn class_char(&mut self) -> Result<char, &'static str> {
        match self.rest.next() {
            None => Err("it has a [ without a ]; write \\[ for the character"),
            Some('[') => Err("it has a [ within a class; write \\[ for the character"),
            Some('/') => Err("it has a / within a class, which never matches one"),
            Some('\\') => self.escaped(),
            Some(c) => Ok(c),
        }
    }

    pub(super) fn group(&mut self, depth: usize, from: Front) -> Result<Front, &'static str> {
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

    pub(super) fn slash(&mut self, from: Front) -> Front {
        self.literal.iter_mut().for_each(|text| text.push('/'));
        let ended = [
            SegmentState::Inside,
            SegmentState::Crossed,
            SegmentState::Skipped,
        ]
        .map(|m| from[m as usize]);
        if ended == [None; 3] {
            return Front::default();
        }
        let fresh = self.nfa.join(ended.into_iter().flatten());
        self.open(fresh)
    }

    /// The front at the start of a segment.
    pub(super) fn open(&mut self, fresh: usize) -> Front {
        let opened = self.nfa.state();
        self.nfa.edge(fresh, &only('/'), opened);
        let mut front = Front::default();
        front[SegmentState::Fresh as usize] = Some(fresh);
        front[SegmentState::Opened as usize] = Some(opened);
        front
    }

    pub(super) fn one(&mut self, set: &[(u32, u32)], from: Front) -> Result<Front, &'static str> {
        if [SegmentState::Crossed, SegmentState::Skipped].map(|m| from[m as usize]) != [None; 2] {
            return Err(GLUED);
        }
        Ok(self.advance(set, Some(from), Front::default()))
    }

    /// Reads one character of `set` after `from`, or any number of them within `to`.
    pub(super) fn advance(
        &mut self,
        set: &[(u32, u32)],
        from: Option<Front>,
        mut to: Front,
    ) -> Front {
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

    pub(super) fn stars(&mut self, from: Front) -> Result<Front, &'static str> {
        let more = iter::from_fn(|| self.rest.next_if_eq(&'*')).count();
        let has = |modes: &[SegmentState]| modes.iter().any(|m| from[*m as usize].is_some());
        let after_text = has(&[SegmentState::Dot, SegmentState::Dots, SegmentState::Inside]);
        if has(&[SegmentState::Crossed, SegmentState::Skipped])
            || more > 1
            || (more == 1 && after_text)
        {
            return Err(GLUED);
        }
        Ok(if more == 0 {
            self.run(from)
        } else {
            self.deep(from)
        })
    }

    /// `*`: any characters of a segment.
    pub(super) fn run(&mut self, from: Front) -> Front {
        let mut to = Front::default();
        to[SegmentState::Opened as usize] = from[SegmentState::Opened as usize];
        for mode in
            [SegmentState::Dot, SegmentState::Dots, SegmentState::Inside].map(|m| m as usize)
        {
            to[mode] = from[mode].map(|state| self.nfa.join([state]));
        }
        self.advance(&SEGMENT, None, to)
    }

    /// `**`: any segments.
    pub(super) fn deep(&mut self, from: Front) -> Front {
        let mut to = Front::default();
        if let Some(fresh) = from[SegmentState::Fresh as usize] {
            let begin = self.nfa.join([fresh]);
            let opened = self.open(begin);
            let ended = self.run(opened)[SegmentState::Inside as usize];
            self.nfa.link(ended, begin);
            to[SegmentState::Crossed as usize] = ended;
            to[SegmentState::Skipped as usize] = Some(fresh);
        }
        to
    }
}
