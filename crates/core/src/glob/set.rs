//! Sets of characters as ranges.

/// Ranges of characters, sorted and disjoint.
pub(super) type Set = Vec<(u32, u32)>;

pub(super) const LAST: u32 = char::MAX as u32;
/// What a segment may contain: everything except NUL, `/` and numbers that are not characters.
pub(super) const SEGMENT: [(u32, u32); 3] = [(1, 0x2e), (0x30, 0xd7ff), (0xe000, LAST)];

pub(super) fn only(c: char) -> Set {
    vec![(c.into(), c.into())]
}

pub(super) fn contains(set: &[(u32, u32)], c: char) -> bool {
    set.iter().any(|&(lo, hi)| (lo..=hi).contains(&c.into()))
}

pub(super) fn intersect(a: &[(u32, u32)], b: &[(u32, u32)]) -> Set {
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

/// Everything else; the ranges only need to be sorted by their start.
pub(super) fn complement(set: &[(u32, u32)]) -> Set {
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

/// A character of both sets, preferably a readable one.
pub(super) fn pick(a: &[(u32, u32)], b: &[(u32, u32)]) -> Option<char> {
    let both = intersect(a, b);
    let liked = [(0x61, 0x7a), (0x21, 0x7e), (0, LAST)];
    let mut found = liked.iter().flat_map(|range| intersect(&both, &[*range]));
    found.next().and_then(|(lo, _)| char::from_u32(lo))
}
