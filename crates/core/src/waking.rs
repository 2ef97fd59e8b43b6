//! Whom a keeper wakes, of the waiters of its machine.
//!
//! A keeper looks at the lines of all keys that are free and that somebody on its machine waits for. It wakes the first
//! of each line, and only that one: a waiter that is woken claims the key or reports that it cannot, and both are seen
//! with the next look. A waiter that does not react costs those behind it a moment each ([`STEP`]). Whether a waiter gets the
//! key is decided by [`crate::line`], never here: to wake one too many costs a look, and one too few is woken later.
//!
//! A path can be free and still overlap another one that is held. So a waiter for a path is woken again only when the
//! paths that are held have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::id::{Epoch, Ticket};
use crate::key::Key;

/// How long a waiter that was woken has before the next one is woken too, and before it is woken again.
pub const STEP: Duration = Duration::from_secs(1);

/// The line of a free key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeLine {
    pub key: Key,
    pub epoch: Epoch,
    /// Those who may act, of all machines, in order of arrival, without those who reported that they cannot.
    pub waiters: Vec<Ticket>,
}

/// Whom a keeper has woken.
#[derive(Debug, Default)]
pub struct Wakes {
    /// Since when each key is seen to be free, at which epoch, behind whom.
    free: BTreeMap<Key, Free>,
    /// When each waiter was woken last.
    woken: BTreeMap<Ticket, Instant>,
    held_paths: Vec<(Key, Epoch)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Free {
    epoch: Epoch,
    first: Ticket,
    since: Instant,
}

impl Wakes {
    /// The waiters to wake now, of those that want to be woken, in order. `held_paths` is what a waiter for a path may
    /// wait for.
    pub fn due(
        &mut self,
        lines: &[FreeLine],
        held_paths: &[(Key, Epoch)],
        waiting: &BTreeSet<Ticket>,
        now: Instant,
    ) -> BTreeSet<Ticket> {
        let paths_changed = self.held_paths != held_paths;
        self.held_paths = held_paths.to_vec();
        self.free
            .retain(|key, _| lines.iter().any(|line| line.key == *key));
        self.woken.retain(|ticket, _| waiting.contains(ticket));
        let mut due = BTreeSet::new();
        for line in lines {
            let Some(first) = line.waiters.first() else {
                continue;
            };
            let fresh = Free {
                epoch: line.epoch,
                first: *first,
                since: now,
            };
            let free = self.free.entry(line.key.clone()).or_insert(fresh.clone());
            if (free.epoch, free.first) != (fresh.epoch, fresh.first) {
                *free = fresh;
            }
            let steps = now.duration_since(free.since).as_secs() / STEP.as_secs();
            let ranks = usize::try_from(steps).unwrap_or(usize::MAX);
            let is_path = line.key.path_parts().is_some();
            for ticket in line.waiters.iter().take(ranks.saturating_add(1)) {
                let again = match self.woken.get(ticket) {
                    None => true,
                    Some(_) if is_path => paths_changed,
                    Some(at) => now.duration_since(*at) >= STEP,
                };
                if again && waiting.contains(ticket) {
                    due.insert(*ticket);
                }
            }
        }
        self.woken.extend(due.iter().map(|ticket| (*ticket, now)));
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: &str, epoch: u64, waiters: &[u64]) -> FreeLine {
        FreeLine {
            key: Key::parse(key).unwrap(),
            epoch: Epoch(epoch),
            waiters: waiters.iter().map(|ticket| Ticket(*ticket)).collect(),
        }
    }

    fn tickets(all: &[u64]) -> BTreeSet<Ticket> {
        all.iter().map(|ticket| Ticket(*ticket)).collect()
    }

    #[allow(clippy::disallowed_methods, reason = "any moment will do")]
    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn only_the_first_of_a_line_is_woken_and_once() {
        let (mut wakes, now) = (Wakes::default(), start());
        let (free, here) = ([line("wp:1", 1, &[4, 5, 6])], tickets(&[4, 5, 6]));
        assert_eq!(wakes.due(&free, &[], &here, now), tickets(&[4]));
        let soon = now + STEP / 4;
        assert_eq!(wakes.due(&free, &[], &here, soon), tickets(&[]));
        // It took the key, and gave it up again.
        assert_eq!(wakes.due(&[], &[], &here, soon), tickets(&[]));
        let free = [line("wp:1", 2, &[5, 6])];
        assert_eq!(wakes.due(&free, &[], &here, soon), tickets(&[5]));
    }

    #[test]
    fn one_that_reports_that_it_cannot_gives_way_at_once() {
        let (mut wakes, now) = (Wakes::default(), start());
        let here = tickets(&[4, 5]);
        wakes.due(&[line("wp:1", 1, &[4, 5])], &[], &here, now);
        let due = wakes.due(&[line("wp:1", 1, &[5])], &[], &here, now + STEP / 4);
        assert_eq!(due, tickets(&[5]));
    }

    #[test]
    fn one_that_does_not_react_costs_those_behind_it_a_moment() {
        let (mut wakes, now) = (Wakes::default(), start());
        // The first is on another machine.
        let (free, here) = ([line("wp:1", 1, &[3, 4, 5])], tickets(&[4, 5]));
        assert_eq!(wakes.due(&free, &[], &here, now), tickets(&[]));
        assert_eq!(wakes.due(&free, &[], &here, now + STEP), tickets(&[4]));
        assert_eq!(
            wakes.due(&free, &[], &here, now + STEP * 2),
            tickets(&[4, 5])
        );
    }

    #[test]
    fn a_waiter_for_a_path_is_woken_again_only_when_held_paths_change() {
        let (mut wakes, now) = (Wakes::default(), start());
        let (free, here) = ([line("path:x/n:a", 1, &[4])], tickets(&[4]));
        let rival = |epoch| vec![(Key::parse("path:x/n:**").unwrap(), Epoch(epoch))];
        assert_eq!(wakes.due(&free, &rival(1), &here, now), tickets(&[4]));
        let later = now + STEP * 5;
        assert_eq!(wakes.due(&free, &rival(1), &here, later), tickets(&[]));
        assert_eq!(wakes.due(&free, &[], &here, later), tickets(&[4]));
    }
}
