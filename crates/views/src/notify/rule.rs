//! When a notification is sent: one per session and reason until it changed, not two of them within a minute, and one
//! digest instead of a burst.
//!
//! Pure; [`super::ledger`] keeps it between processes. *Crash* of a process that was to send a digest or to look again:
//! its time is over then, and the next notification takes over. *Clock jump*: what was sent in the future is forgotten.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::notification::Reason;
use tenure_core::time::Timestamp;

/// The shortest time between two notifications of one session for one reason.
pub const GAP: Duration = Duration::from_secs(60);
/// How many notifications of a channel are sent one by one within [`BURST`].
pub const MAX_SINGLE: usize = 5;
pub const BURST: Duration = Duration::from_secs(10);
/// After this long an incident that goes on is reported again.
pub const REMINDER: Duration = Duration::from_secs(24 * 60 * 60);
/// How long is remembered what was sent.
const KEPT_FOR: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// What changed, and what tells this change from the next of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    pub reason: Reason,
    /// The session's id; empty for what concerns all of them.
    pub of: String,
    pub since: String,
    /// When an outage began, which every process that sees it finds at a time of its own.
    pub began: Option<Timestamp>,
}

/// What becomes of an edge on a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendDecision {
    Send,
    /// It was sent, or another process sends it.
    Skip,
    /// Look again then: the one before was just sent.
    Wait(Timestamp),
    /// It is counted, and the caller sends the digest then.
    Digest(Timestamp),
}

/// What was sent on a channel.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    last: BTreeMap<String, Last>,
    /// When the newest single ones were sent.
    recent: Vec<Timestamp>,
    /// What the next digest counts, by reason, and when it is sent.
    held: BTreeMap<String, usize>,
    digest_at: Option<Timestamp>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Last {
    since: String,
    at: Timestamp,
    /// Until when a process waits to look again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waits_until: Option<Timestamp>,
}

impl Sent {
    /// Decides about an edge; `waited` says whether the caller has waited for it.
    pub fn decide(&mut self, edge: &Edge, now: Timestamp, waited: bool) -> SendDecision {
        self.forget(now);
        let key = format!("{} {}", edge.reason.as_str(), edge.of);
        if let Some(last) = self.last.get_mut(&key) {
            // An outage that began before it was last reported, or within a minute, is the one that was.
            let is_known = |began: Timestamp| began <= last.at.plus(GAP);
            let is_same = last.since == edge.since || edge.began.is_some_and(is_known);
            if is_same && last.at.age_at(now) < REMINDER {
                return SendDecision::Skip;
            }
            let next = last.at.plus(GAP);
            if now < next {
                if !waited && last.waits_until.is_some_and(|until| now < until) {
                    return SendDecision::Skip;
                }
                last.waits_until = Some(next);
                return SendDecision::Wait(next);
            }
        }
        let last = Last {
            since: edge.since.clone(),
            at: now,
            waits_until: None,
        };
        self.last.insert(key, last);
        self.recent.retain(|at| at.age_at(now) < BURST);
        let waits = self.digest_at.is_some_and(|at| now < at);
        if !waits && self.recent.len() < MAX_SINGLE {
            self.recent.push(now);
            return SendDecision::Send;
        }
        *self
            .held
            .entry(edge.reason.as_str().to_owned())
            .or_default() += 1;
        if waits {
            return SendDecision::Skip;
        }
        let at = now.plus(BURST);
        self.digest_at = Some(at);
        SendDecision::Digest(at)
    }

    /// What the digest counts; nothing if another process was faster.
    pub fn take_digest(&mut self) -> BTreeMap<String, usize> {
        self.digest_at = None;
        self.recent.clear();
        std::mem::take(&mut self.held)
    }

    /// What a digest counts whose time is over: the process that was to send it is gone, or slower.
    pub fn overdue(&mut self, now: Timestamp) -> BTreeMap<String, usize> {
        if self.held.is_empty() || self.digest_at.is_some_and(|at| now < at) {
            return BTreeMap::new();
        }
        self.take_digest()
    }

    /// Keeps that there was nothing to send for this reason when it was looked at.
    pub fn settle(&mut self, reason: Reason, of: &str, now: Timestamp) {
        let key = format!("{} {of}", reason.as_str());
        let kept = self.last.entry(key).or_insert(Last {
            since: String::new(),
            at: now,
            waits_until: None,
        });
        kept.at = now;
    }

    /// Whether this reason was looked at since then.
    pub fn has_seen(&self, reason: Reason, of: &str, since: Timestamp) -> bool {
        let last = self.last.get(&format!("{} {of}", reason.as_str()));
        last.is_some_and(|last| last.at >= since)
    }

    fn forget(&mut self, now: Timestamp) {
        let is_new = |at: Timestamp| at <= now.plus(GAP) && at.age_at(now) < KEPT_FOR;
        self.last.retain(|_, last| is_new(last.at));
        self.recent.retain(|at| *at <= now);
        self.digest_at = self.digest_at.filter(|at| *at <= now.plus(BURST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(of: &str, since: usize) -> Edge {
        Edge {
            reason: Reason::Failed,
            of: of.to_owned(),
            since: since.to_string(),
            began: None,
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp(1_000_000_000 + seconds * 1000)
    }

    #[test]
    fn an_outage_that_several_processes_see_is_sent_once() {
        let outage = |began: i64| Edge {
            reason: Reason::Store,
            of: String::new(),
            since: at(began).to_string(),
            began: Some(at(began)),
        };
        let mut sent = Sent::default();
        assert_eq!(sent.decide(&outage(0), at(30), false), SendDecision::Send);
        // Another process found it later, and looks after it still says so.
        assert_eq!(sent.decide(&outage(9), at(39), false), SendDecision::Skip);
        assert_eq!(sent.decide(&outage(61), at(100), false), SendDecision::Skip);
        assert_eq!(
            sent.decide(&outage(500), at(530), false),
            SendDecision::Send
        );
        let day = i64::try_from(REMINDER.as_secs()).unwrap();
        assert_eq!(
            sent.decide(&outage(500), at(530 + day), false),
            SendDecision::Send
        );
        assert_eq!(
            sent.decide(&outage(505), at(535 + day), false),
            SendDecision::Skip
        );
    }

    #[test]
    fn one_state_of_a_session_is_sent_once_however_often_it_is_seen() {
        let mut sent = Sent::default();
        assert_eq!(sent.decide(&edge("a", 1), at(0), false), SendDecision::Send);
        for second in 1..600 {
            assert_eq!(
                sent.decide(&edge("a", 1), at(second), false),
                SendDecision::Skip
            );
        }
        assert_eq!(
            sent.decide(&edge("b", 1), at(600), false),
            SendDecision::Send
        );
        assert_eq!(
            sent.decide(&edge("a", 2), at(601), false),
            SendDecision::Send
        );
    }

    #[test]
    fn f_v15_twenty_turns_that_end_within_a_minute_are_one_notification_and_one_process_that_waits()
    {
        let mut sent = Sent::default();
        let verdicts: Vec<SendDecision> = (0..20)
            .map(|turn| {
                sent.decide(
                    &edge("a", turn),
                    at(i64::try_from(turn).unwrap() * 2),
                    false,
                )
            })
            .collect();
        assert_eq!(verdicts[0], SendDecision::Send);
        assert_eq!(verdicts[1], SendDecision::Wait(at(60)));
        assert!(
            verdicts[2..]
                .iter()
                .all(|verdict| *verdict == SendDecision::Skip)
        );
        // It looks again, and what is so then is news.
        assert_eq!(
            sent.decide(&edge("a", 19), at(60), true),
            SendDecision::Send
        );
        // A process that was to wait is gone: the next one waits in its place.
        assert_eq!(
            sent.decide(&edge("a", 20), at(61), false),
            SendDecision::Wait(at(120))
        );
        assert_eq!(
            sent.decide(&edge("a", 21), at(119), false),
            SendDecision::Skip
        );
        assert_eq!(
            sent.decide(&edge("a", 22), at(121), false),
            SendDecision::Send
        );
    }

    #[test]
    fn the_sixth_within_ten_seconds_begins_a_digest() {
        let mut sent = Sent::default();
        let verdicts: Vec<SendDecision> = (0..12)
            .map(|n| sent.decide(&edge(&format!("s{n}"), 1), at(1), false))
            .collect();
        assert!(
            verdicts[..5]
                .iter()
                .all(|verdict| *verdict == SendDecision::Send)
        );
        assert_eq!(verdicts[5], SendDecision::Digest(at(11)));
        assert!(
            verdicts[6..]
                .iter()
                .all(|verdict| *verdict == SendDecision::Skip)
        );
        assert_eq!(
            sent.take_digest(),
            BTreeMap::from([("failed".to_owned(), 7)])
        );
        assert!(sent.take_digest().is_empty());
        assert_eq!(
            sent.decide(&edge("t", 1), at(12), false),
            SendDecision::Send
        );
        // Nobody sent the digest that was due.
        for n in 0..5 {
            sent.decide(&edge(&format!("u{n}"), 1), at(13), false);
        }
        assert!(sent.overdue(at(22)).is_empty());
        assert_eq!(
            sent.overdue(at(30)),
            BTreeMap::from([("failed".to_owned(), 1)])
        );
        assert!(sent.overdue(at(30)).is_empty());
        assert_eq!(
            sent.decide(&edge("v", 1), at(30), false),
            SendDecision::Send
        );
    }

    #[test]
    fn a_death_without_anything_to_say_is_looked_at_once() {
        let mut sent = Sent::default();
        assert!(!sent.has_seen(Reason::Died, "a", at(1)));
        sent.settle(Reason::Died, "a", at(2));
        assert!(sent.has_seen(Reason::Died, "a", at(1)));
        // It was resumed, and died again.
        assert!(!sent.has_seen(Reason::Died, "a", at(3)));
    }

    #[test]
    fn f_v20_an_incident_that_goes_on_is_repeated_once_a_day() {
        let mut sent = Sent::default();
        let day = i64::try_from(REMINDER.as_secs()).unwrap();
        assert_eq!(sent.decide(&edge("", 1), at(0), false), SendDecision::Send);
        assert_eq!(
            sent.decide(&edge("", 1), at(day - 1), false),
            SendDecision::Skip
        );
        assert_eq!(
            sent.decide(&edge("", 1), at(day), false),
            SendDecision::Send
        );
        assert_eq!(
            sent.decide(&edge("", 2), at(day + 60), false),
            SendDecision::Send
        );
    }

    #[test]
    fn a_clock_that_was_set_back_silences_nothing_for_long() {
        let mut sent = Sent::default();
        sent.decide(&edge("a", 1), at(100_000), false);
        assert_eq!(sent.decide(&edge("a", 2), at(0), false), SendDecision::Send);
    }
}
