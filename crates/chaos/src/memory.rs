//! What hosts owe each other: how long a permission from memory is good, and how long a dead holder blocks the other
//! host.
//!
//! A permission from memory is no look at the store, so it has no place in the order of all calls. It is a promise: for
//! a lock delay no other session is granted the key, takeovers excepted; and nothing is permitted that the session
//! itself gave up. After a takeover, a session that claims the key waits until the host of the first holder knows.

use std::collections::BTreeMap;

use super::audit::Audit;
use super::history::{Call, History};
use super::hosts::Terms;
use super::record::{CallAnswer, Disturbance, Op};
use super::rule::{Sighting, Violation, observed};

/// How long it may take until a death is recorded that a keeper sees, in nanoseconds, on a machine that is busy.
const SOON: u64 = 3_000_000_000;

/// Checks a history with several hosts.
pub fn violations(history: &History, audit: Option<&Audit>) -> Vec<Violation> {
    let Some(terms) = history.terms else {
        return Vec::new();
    };
    let known = PermissionFacts::of(history, audit, terms);
    let mut found = Vec::new();
    for (place, call) in history.calls.iter().enumerate() {
        if let Some((key, epoch)) = permitted(call) {
            found.extend(known.given_up(place, key, epoch));
            found.extend(known.overrun(place, key, epoch));
        }
        found.extend(blocked(history, &terms, place));
    }
    found
}

/// What a call was permitted from memory.
fn permitted(call: &Call) -> Option<(&str, u64)> {
    match (&call.op, &call.answer) {
        (Op::Recall { key, .. }, Some(CallAnswer::Yes { epoch, .. })) => Some((key, (*epoch)?)),
        _ => None,
    }
}

/// What permissions are compared with.
struct PermissionFacts<'a> {
    history: &'a History,
    terms: Terms,
    /// The grants to claims, by key, in order of their epochs.
    granted: BTreeMap<String, Vec<Sighting>>,
    /// The acts by which each process gave something up, unless they were refused.
    gave: Vec<Vec<usize>>,
}

impl<'a> PermissionFacts<'a> {
    fn of(history: &'a History, audit: Option<&Audit>, terms: Terms) -> Self {
        let by_claim = |seen: &Sighting| {
            let rows = audit.and_then(|audit| audit.holds.get(&seen.key));
            let row = rows.and_then(|rows| rows.get(&seen.epoch));
            let asks = matches!(history.calls[seen.call].op, Op::Claim(_) | Op::Guard { .. });
            asks && row.is_none_or(|row| row.means == "claim")
        };
        let mut granted = observed(history);
        for seen in granted.values_mut() {
            seen.retain(by_claim);
            seen.sort_by_key(|seen| (seen.epoch, seen.until));
        }
        let mut gave = vec![Vec::new(); history.lives.len()];
        for (place, call) in history.calls.iter().enumerate() {
            let gives = matches!(call.op, Op::Release { .. } | Op::Handoff { .. } | Op::End);
            if gives && !matches!(call.answer, Some(CallAnswer::Refused(_))) {
                gave[call.life].push(place);
            }
        }
        Self {
            history,
            terms,
            granted,
            gave,
        }
    }

    /// A permission although the session had given the key up before it asked.
    fn given_up(&self, place: usize, key: &str, epoch: u64) -> Option<Violation> {
        let call = &self.history.calls[place];
        let gave = |other: &&usize| {
            let other = &self.history.calls[**other];
            let Some(CallAnswer::Yes {
                epoch: Some(given), ..
            }) = &other.answer
            else {
                return false;
            };
            let is_it = match &other.op {
                Op::Release { key: gone, .. } => gone == key && *given == epoch,
                Op::Handoff { key: gone, .. } => gone == key && *given == epoch + 1,
                _ => false,
            };
            is_it && other.until < call.asked
        };
        let by = *self.gave[call.life].iter().find(gave)?;
        let what = format!("{key} epoch {epoch} was permitted after it was given up");
        let rule = "what was given up is not permitted";
        Some(Violation::new(rule, what, vec![by, place]))
    }

    /// A grant to another session before the permission was over.
    fn overrun(&self, place: usize, key: &str, epoch: u64) -> Option<Violation> {
        let call = &self.history.calls[place];
        let me = call.session.as_ref()?;
        let good_until = call.asked.saturating_add(self.terms.delay);
        let seen = self.granted.get(key)?;
        let later = &seen[seen.partition_point(|seen| seen.epoch <= epoch)..];
        let is_early = |seen: &&Sighting| seen.session != *me && seen.until < good_until;
        // Later epochs are granted later.
        let other = later.iter().take(16).find(is_early)?;
        // A holder that was dying by then writes nothing, and one that gave it up is judged elsewhere.
        if self.history.lives[call.life].doomed <= other.until
            || self.lets_go(call, key, other.until)
        {
            return None;
        }
        let what = format!(
            "{} was permitted epoch {epoch} of {key} from memory, and epoch {} was granted within the lock delay",
            call.tag, other.epoch
        );
        let rule = "a permission is good for the lock delay";
        Some(Violation::new(rule, what, vec![place, other.call]))
    }

    /// Whether a session may have given a key up by an act of its own between a call and this time.
    fn lets_go(&self, call: &Call, key: &str, until: u64) -> bool {
        self.gave[call.life].iter().any(|other| {
            let other = &self.history.calls[*other];
            let gives = match &other.op {
                Op::Release { key: given, .. } | Op::Handoff { key: given, .. } => given == key,
                _ => true,
            };
            gives && other.asked <= until && other.until >= call.asked
        })
    }
}

/// A claim that was refused because of a holder that was dead, long after its host or its silence must have freed the
/// key.
fn blocked(history: &History, terms: &Terms, place: usize) -> Option<Violation> {
    let call = &history.calls[place];
    let (Op::Claim(claim), Some(CallAnswer::Refused(why))) = (&call.op, &call.answer) else {
        return None;
    };
    let holder = why.holder.as_deref()?;
    if why.kind != "held" || claim.wait.is_some() {
        return None;
    }
    let tenancies = history.tenancies_of(holder);
    let lives = tenancies.iter().map(|one| &history.lives[one.life]);
    let gone = lives.clone().map(|life| life.gone).max()?;
    let host = lives.clone().next_back()?.host.as_deref();
    if gone >= call.asked || host == history.lives[call.life].host.as_deref() {
        return None;
    }
    let concerns = |trouble: &&Disturbance| {
        let is_there = trouble.host.is_none() || trouble.host.as_deref() == host;
        let is_here = trouble.host == history.lives[call.life].host;
        (is_there || is_here) && trouble.from < call.asked && trouble.until > gone
    };
    let end = |wanted: fn(&Disturbance) -> bool| {
        let troubles = history.troubles.iter().filter(concerns);
        let ends = troubles.filter(|one| wanted(one)).map(|one| one.until);
        ends.max().unwrap_or(gone).max(gone)
    };
    // A keeper that could speak to the store for this long has said it; without a keeper the lease is over.
    let seen = end(|_| true).saturating_add(SOON);
    let lapsed = end(|one| !one.is_keeper)
        .saturating_add(terms.at_most())
        .saturating_add(SOON);
    // Where the machine stalled, so did the keeper.
    let asked = call.asked.saturating_sub(history.stalled(gone, call.asked));
    let is_late = asked > seen || asked > lapsed && is_silent(history, host, lapsed, asked);
    is_late.then(|| {
        let what = format!(
            "{} was refused because of {holder}, which had been dead for {} ms",
            call.tag,
            (call.asked - gone) / 1_000_000
        );
        Violation::new("the dead do not block", what, vec![place])
    })
}

/// Whether the keeper of a host could not renew from a lease and a lock delay before this moment on.
fn is_silent(history: &History, host: Option<&str>, lapsed: u64, asked: u64) -> bool {
    let terms = history.terms.map_or(0, |terms| terms.at_most());
    history.troubles.iter().any(|one| {
        one.is_keeper
            && one.host.as_deref() == host
            && one.from.saturating_add(terms).saturating_add(SOON) < asked
            && one.until > asked
            && lapsed < asked
    })
}

/// The last moment before a call at which a session was certainly heard.
pub fn last_sign(
    signs: &BTreeMap<super::history::Name, Vec<(u64, u64)>>,
    session: &str,
    call: &Call,
) -> Option<u64> {
    let signs = signs.get(session)?;
    let earlier = signs.iter().filter(|(_, until)| *until <= call.asked);
    earlier.map(|(asked, _)| *asked).max()
}

#[cfg(test)]
mod tests {
    use super::super::pulse::Stall;
    use super::*;
    use crate::story::{Story, claim, grant, granted, held, release, takeover, yes};

    const KEY: &str = "wp:1";
    const SECOND: u64 = 1_000_000_000;

    fn recall(epoch: u64) -> Op {
        Op::Recall {
            key: KEY.into(),
            epoch: Some(epoch),
        }
    }

    /// Two processes on two hosts; the first is granted the key.
    fn two() -> (Story, usize, usize) {
        let mut story = Story::default();
        let (a, b) = (story.life("a"), story.life("b"));
        story.on(a, "a");
        story.on(b, "b");
        story.call(a, "A", 1, 2, claim(&[KEY]), granted(&[grant(KEY, 1)]));
        (story, a, b)
    }

    fn rules(story: &Story, troubles: Vec<Disturbance>) -> Vec<&'static str> {
        rules_beside(story, troubles, Vec::new())
    }

    /// The same on a machine that stalled.
    fn rules_beside(
        story: &Story,
        troubles: Vec<Disturbance>,
        stalls: Vec<Stall>,
    ) -> Vec<&'static str> {
        let history = History {
            stalls,
            terms: Some(Terms {
                lease: 2 * SECOND,
                delay: SECOND,
            }),
            troubles,
            ..story.history()
        };
        let found = violations(&history, None);
        found.iter().map(|violation| violation.rule).collect()
    }

    #[test]
    fn a_grant_within_the_lock_delay_of_a_permission_is_found() {
        let late = 10 * SECOND;
        for (at, expected) in [
            (
                late + SECOND / 2,
                &["a permission is good for the lock delay"][..],
            ),
            (late + 2 * SECOND, &[]),
        ] {
            let (mut story, a, b) = two();
            story.call(a, "A", late, late + 1, recall(1), yes(1));
            story.call(b, "B", at, at + 1, claim(&[KEY]), granted(&[grant(KEY, 2)]));
            assert_eq!(rules(&story, Vec::new()), expected);
            story.killed(a, late + 2, late + 3);
            assert_eq!(rules(&story, Vec::new()), [""; 0], "it is dead");
        }
    }

    #[test]
    fn a_permission_after_a_grant_is_found_and_after_a_takeover_it_is_not() {
        let (mut story, a, b) = two();
        let mut taken = story.clone();
        story.call(b, "B", 3, 4, claim(&[KEY]), granted(&[grant(KEY, 2)]));
        story.call(a, "A", 5, 6, recall(1), yes(1));
        assert_eq!(rules(&story, Vec::new()).len(), 1);
        taken.call(b, "B", 3, 4, takeover(KEY), granted(&[grant(KEY, 2)]));
        taken.call(a, "A", 5, 6, recall(1), yes(1));
        assert_eq!(rules(&taken, Vec::new()), [""; 0]);
    }

    #[test]
    fn a_permission_of_what_was_given_up_is_found() {
        let (mut story, a, _) = two();
        story.call(a, "A", 3, 4, release(KEY), yes(1));
        story.call(a, "A", 5, 6, recall(1), yes(1));
        assert_eq!(
            rules(&story, Vec::new()),
            ["what was given up is not permitted"]
        );
    }

    #[test]
    fn a_dead_holder_that_blocks_the_other_host_is_found_unless_its_keeper_could_not_say_so() {
        let (mut story, a, b) = two();
        let register = Op::Register { native: "n".into() };
        let registered = crate::story::registered("A", "new", &[]);
        story.call(a, "", 0, 1, register, registered);
        story.killed(a, SECOND, SECOND);
        let at = 5 * SECOND;
        story.call(b, "B", at, at + 1, claim(&[KEY]), held(KEY, "A", 1));
        assert_eq!(rules(&story, Vec::new()), ["the dead do not block"]);
        let stall = Stall {
            from: 2 * SECOND,
            until: 3 * SECOND,
        };
        let found = rules_beside(&story, Vec::new(), vec![stall]);
        assert_eq!(found, [""; 0], "the keeper stalled, too");
        let stopped = Disturbance {
            from: SECOND / 2,
            until: 6 * SECOND,
            host: Some("a".into()),
            is_keeper: true,
        };
        assert_eq!(rules(&story, vec![stopped.clone()]), [""; 0]);
        let longer = Disturbance {
            until: 20 * SECOND,
            ..stopped
        };
        let at = 12 * SECOND;
        story.call(b, "B", at, at + 1, claim(&[KEY]), held(KEY, "A", 1));
        let found = rules(&story, vec![longer]);
        assert_eq!(found, ["the dead do not block"], "the lease was over");
    }
}
