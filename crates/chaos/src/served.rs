//! Checks that a free key reaches a waiter: no one waits long for a key that is free all the time,
//! whatever those before it in line do.
//!
//! A key is free from the moment when the release of an epoch was answered, or its holder was gone,
//! until the next epoch was granted: at most a second before that call was answered, and not before
//! it was asked. The store's rows show which call that was; if that is unknown, nothing is
//! concluded. Paths are left out, because other paths can block them, and so are waiters that
//! require quiet.
//!
//! A waiter may wait a second for each one before it, and as long as the store lets others wait for a simple call at that
//! time: a stopped process may hold the write lock, and SQLite gives it to those who ask for it in no order.

use std::collections::{BTreeMap, HashMap};

use super::audit::Audit;
use super::history::{Call, History};
use super::record::{CallAnswer, Op};
use super::rule::{Violation, observed};

/// How long a waiter may take in its turn, in nanoseconds.
const TURN: u64 = 1_000_000_000;

/// How long a session may wait after those before it: it may be stopped too, and writes beside all others.
const OWN: u64 = 2_000_000_000;

/// How long a worker that is never stopped may take from a grant to recording it, in nanoseconds.
const ANSWERING: u64 = 1_000_000_000;

/// The times during which a key is certainly free after an epoch.
type Gaps = BTreeMap<String, Vec<(u64, Gap)>>;

#[derive(Debug, Clone, Copy)]
struct Gap {
    epoch: u64,
    /// The call that ended it, and its earliest possible time.
    ended: Option<(usize, u64)>,
}

/// Waiters that waited in vain, or for too long.
pub fn violations(history: &History, audit: Option<&Audit>) -> Vec<Violation> {
    let Some(audit) = audit else {
        return Vec::new();
    };
    let gaps = gaps(history, audit);
    let mut found = Vec::new();
    for (place, call) in history.calls.iter().enumerate() {
        let (Op::Claim(claim), Some(_)) = (&call.op, &call.answer) else {
            continue;
        };
        let [key] = &claim.keys[..] else { continue };
        if claim.wait.is_none() || claim.quiet || key.starts_with("path:") {
            continue;
        }
        for (from, gap) in gaps.get(key).into_iter().flatten() {
            let until = match gap.ended {
                Some((by, _)) if by == place => call.until,
                Some((_, earliest)) => earliest.min(call.until),
                None => call.until,
            };
            let from = (*from).max(call.asked);
            let free = until.saturating_sub(from);
            if free <= OWN {
                continue;
            }
            let before = before(history, call, key, from);
            let may = OWN + before * TURN + slowest(history, from, until);
            if free > may && free - may > history.stalled(from, until) {
                let what = format!(
                    "{} waited for {key} for {} ms while it was free after epoch {}",
                    call.tag,
                    free / 1_000_000,
                    gap.epoch
                );
                let calls = std::iter::once(place).chain(gap.ended.map(|(by, _)| by));
                found.push(Violation::new(
                    "a free key is granted",
                    what,
                    calls.collect(),
                ));
            }
        }
    }
    found
}

/// How many others waited for a key at a time, before this one in line.
fn before(history: &History, me: &Call, key: &str, at: u64) -> u64 {
    let is_before = |call: &&Call| {
        let Op::Claim(claim) = &call.op else {
            return false;
        };
        let waits = claim.wait.is_some() && claim.keys.iter().any(|one| one == key);
        waits && call.asked < me.asked && call.until > at
    };
    let all = history.calls.iter().filter(is_before).count();
    u64::try_from(all).unwrap_or(u64::MAX)
}

/// How long the slowest simple call took that was under way between these times.
fn slowest(history: &History, from: u64, until: u64) -> u64 {
    let is_simple = |call: &&Call| match &call.op {
        Op::Claim(claim) => claim.wait.is_none(),
        _ => true,
    };
    let under_way = |call: &&Call| call.asked < until && call.until > from;
    let answered = history.calls.iter().filter(|call| call.answer.is_some());
    let calls = answered.filter(is_simple).filter(under_way);
    calls.map(|call| call.until - call.asked).max().unwrap_or(0)
}

fn gaps(history: &History, audit: &Audit) -> Gaps {
    let tags: HashMap<&str, usize> = history
        .calls
        .iter()
        .enumerate()
        .map(|(place, call)| (call.tag.as_str(), place))
        .collect();
    let mut found = Gaps::new();
    for (key, freed) in freed(history) {
        let rows = audit.holds.get(&key);
        for (epoch, from) in freed {
            let next = rows.and_then(|rows| rows.get(&(epoch + 1)));
            let newest = audit.claims.get(&key).copied();
            let by = next
                .and_then(|row| row.note.as_deref())
                .and_then(|tag| tags.get(tag));
            let ended = match by {
                Some(place) => Some((*place, earliest(&history.calls[*place]))),
                None if newest == Some(epoch) => None,
                None => continue,
            };
            let gap = Gap { epoch, ended };
            found.entry(key.clone()).or_default().push((from, gap));
        }
    }
    found
}

/// The earliest time at which a call can have got its key.
fn earliest(call: &Call) -> u64 {
    match call.answer {
        Some(_) => call.asked.max(call.until.saturating_sub(ANSWERING)),
        None => call.asked,
    }
}

/// When each key became free after each epoch: its holder released it, or was gone.
fn freed(history: &History) -> BTreeMap<String, BTreeMap<u64, u64>> {
    let mut found: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
    for (key, sightings) in observed(history) {
        for seen in sightings {
            let Some(life) = seen.life else { continue };
            let gone = history.lives[life].gone;
            let keys = found.entry(key.clone()).or_default();
            let from = keys.entry(seen.epoch).or_insert(gone);
            *from = (*from).max(gone);
        }
    }
    for call in &history.calls {
        if let (
            Op::Release {
                key, done: false, ..
            },
            Some(CallAnswer::Yes {
                epoch: Some(epoch), ..
            }),
        ) = (&call.op, &call.answer)
        {
            let keys = found.entry(key.clone()).or_default();
            keys.insert(*epoch, call.until);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::audit::HoldRow;
    use super::super::pulse::Stall;
    use super::super::record::{Claim, RefusalRecord};
    use super::super::story::{Story, claim, grant, granted, release, yes};
    use super::*;

    const KEY: &str = "wp:1";
    const SECOND: u64 = 1_000_000_000;

    fn waits() -> Op {
        Op::Claim(Claim {
            keys: vec![KEY.into()],
            wait: Some(6_000),
            ..Claim::default()
        })
    }

    fn rows(audit: &mut Audit, epoch: u64, note: &str) {
        let row = HoldRow {
            session: "x".into(),
            means: "claim".into(),
            note: Some(note.into()),
            ended_by: None,
        };
        audit.claims.insert(KEY.into(), epoch);
        audit
            .holds
            .entry(KEY.into())
            .or_default()
            .insert(epoch, row);
    }

    /// A key that was released after one second, and a session that waits for it from then until
    /// `end`.
    fn story(end: u64, answer: Option<CallAnswer>) -> (Story, String, Audit) {
        let mut story = Story::default();
        let (a, b) = (story.life("a"), story.life("b"));
        let first = story.call(a, "A", 1, 2, claim(&[KEY]), granted(&[grant(KEY, 1)]));
        story.call(a, "A", 3, SECOND, release(KEY), yes(1));
        let tag = story.call(b, "B", SECOND, end, waits(), answer);
        let mut audit = Audit::default();
        rows(&mut audit, 1, &first);
        (story, tag, audit)
    }

    fn timed_out() -> Option<CallAnswer> {
        Some(CallAnswer::Refused(RefusalRecord {
            kind: "timed_out".into(),
            ..RefusalRecord::default()
        }))
    }

    fn count(story: &Story, audit: &Audit) -> usize {
        violations(&story.history(), Some(audit)).len()
    }

    #[test]
    fn who_waits_in_vain_for_a_free_key_is_found() {
        let (story, _, audit) = story(7 * SECOND, timed_out());
        assert_eq!(count(&story, &audit), 1);
    }

    #[test]
    fn who_is_granted_a_free_key_late_is_found_and_in_time_is_not() {
        for (end, expected) in [(2 * SECOND, 0), (6 * SECOND, 1)] {
            let (story, tag, mut audit) = story(end, granted(&[grant(KEY, 2)]));
            rows(&mut audit, 2, &tag);
            assert_eq!(count(&story, &audit), expected);
        }
    }

    #[test]
    fn those_before_it_and_a_slow_store_are_allowed_for() {
        let late = |also: &dyn Fn(&mut Story)| {
            let (mut story, tag, mut audit) = story(5 * SECOND, granted(&[grant(KEY, 2)]));
            also(&mut story);
            rows(&mut audit, 2, &tag);
            count(&story, &audit)
        };
        assert_eq!(late(&|_| {}), 1);
        let before = |story: &mut Story, life: &'static str| {
            let life = story.life(life);
            story.call(life, "C", SECOND / 2, 7 * SECOND, waits(), None);
        };
        assert_eq!(late(&|story| before(story, "c")), 1);
        assert_eq!(
            late(&|story| ["c", "d"].iter().for_each(|one| before(story, one))),
            0
        );
        let slow = |story: &mut Story| {
            let life = story.life("c");
            story.call(life, "C", SECOND, 3 * SECOND, release("wp:9"), yes(1));
        };
        assert_eq!(late(&slow), 0);
    }

    #[test]
    fn a_machine_that_stalls_for_a_second_allows_four_more() {
        for (stall, expected) in [(SECOND / 10, 1), (SECOND, 0)] {
            let (story, tag, mut audit) = story(6 * SECOND, granted(&[grant(KEY, 2)]));
            rows(&mut audit, 2, &tag);
            let mut history = story.history();
            history.stalls.push(Stall {
                from: 2 * SECOND,
                until: 2 * SECOND + stall,
            });
            assert_eq!(violations(&history, Some(&audit)).len(), expected);
        }
    }

    #[test]
    fn a_key_that_another_got_meanwhile_was_not_free() {
        let (mut story, _, mut audit) = story(7 * SECOND, timed_out());
        let c = story.life("c");
        let at = 2 * SECOND;
        let tag = story.call(c, "C", at, at + 1, claim(&[KEY]), granted(&[grant(KEY, 2)]));
        rows(&mut audit, 2, &tag);
        assert_eq!(count(&story, &audit), 0);
    }

    #[test]
    fn a_key_that_nobody_knows_to_be_free_is_not() {
        let (mut story, _, mut audit) = story(7 * SECOND, timed_out());
        rows(&mut audit, 2, "somebody else");
        assert_eq!(count(&story, &audit), 0);
        story = Story::default();
        let (a, b) = (story.life("a"), story.life("b"));
        story.call(a, "A", 1, 2, claim(&[KEY]), granted(&[grant(KEY, 1)]));
        story.call(b, "B", 3, 7 * SECOND, waits(), timed_out());
        let mut held = Audit::default();
        rows(&mut held, 1, "a#0");
        assert_eq!(count(&story, &held), 0, "it is held");
        story.killed(a, 2 * SECOND, 2 * SECOND);
        assert_eq!(count(&story, &held), 1, "its holder was gone");
    }
}
