//! What this dispatcher knows about stored and undecided deliveries: since when some can be decided, which ids they have,
//! and which questions about them their forges have not answered.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use tenure_core::queue::backlog::ask_again_after;
use tenure_host::clock;

#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Some can be decided.
    pub(super) ready: Option<ReadyDeliveries>,
    /// Their numbers by endpoint and id, so that the same again is recognised. The store would need an index for that, and
    /// forges' ids are random: each delivery would change a page of its own. Those that another dispatcher
    /// has stored meanwhile are not among them; the same as one of those is recognised when it is decided.
    known: HashMap<(String, String), i64>,
    /// By endpoint.
    questions: BTreeMap<String, Questions>,
}

/// There are deliveries that can be decided.
#[derive(Debug, Clone)]
pub(super) struct ReadyDeliveries {
    pub(super) since: Instant,
    /// Not tried before, because the store failed.
    pub(super) retry_at: Option<Instant>,
}

/// The questions to one forge.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// Whether some may be left to ask.
    is_left: bool,
    /// The numbers of the deliveries that are being asked about.
    open: BTreeSet<i64>,
    /// The last one that was asked about.
    last: i64,
    /// How often in a row the forge did not answer, and when it is asked again.
    away: Option<(u32, Instant)>,
}

/// How many questions to one forge may be open at once.
const AT_ONCE: usize = 8;

impl Backlog {
    pub(super) fn number(&self, endpoint: &str, id: Option<&String>) -> Option<i64> {
        let key = (endpoint.to_owned(), id?.clone());
        self.known.get(&key).copied()
    }

    pub(super) fn add(&mut self, endpoint: &str, id: String, number: i64) {
        self.known.insert((endpoint.to_owned(), id), number);
    }

    pub(super) fn remove(&mut self, endpoint: &str, id: Option<&String>) {
        if let Some(id) = id {
            self.known.remove(&(endpoint.to_owned(), id.clone()));
        }
    }

    pub(super) fn set_ready(&mut self) {
        self.ready.get_or_insert_with(|| ReadyDeliveries {
            since: clock::instant(),
            retry_at: None,
        });
    }

    pub(super) fn questions(&mut self, endpoint: &str) -> &mut Questions {
        self.questions.entry(endpoint.to_owned()).or_default()
    }

    /// When a forge is asked again that did not answer.
    pub(super) fn next_question(&self) -> Option<Instant> {
        let left = self.questions.values().filter(|one| one.is_left);
        let away = left.filter(|one| one.open.is_empty());
        away.filter_map(|one| Some(one.away?.1)).min()
    }
}

impl Questions {
    /// A delivery arrived that must be asked about. A forge that did not answer is asked at once.
    pub(super) fn add(&mut self) {
        self.is_left = true;
        if let Some((_, at)) = &mut self.away {
            *at = clock::instant();
        }
    }

    /// How many may be asked now: one, if the forge did not answer the last one.
    pub(super) fn free(&self) -> usize {
        if !self.is_left {
            return 0;
        }
        let most = match self.away {
            None => AT_ONCE,
            Some((_, at)) if at <= clock::instant() => 1,
            Some(_) => 0,
        };
        most.saturating_sub(self.open.len())
    }

    /// There may be deliveries to ask about.
    pub(super) fn left(&mut self) {
        self.is_left = true;
    }

    /// Which of these deliveries are asked about next. While the forge does not answer, each has its turn: it may fail at
    /// one and answer about the others.
    pub(super) fn choose(&mut self, numbers: &[i64], free: usize) -> Vec<i64> {
        let mut left: Vec<i64> = numbers
            .iter()
            .copied()
            .filter(|number| !self.open.contains(number))
            .collect();
        self.is_left = !left.is_empty() || !self.open.is_empty();
        if self.away.is_some() {
            let after = left.partition_point(|number| *number <= self.last);
            let count = left.len().max(1);
            left.rotate_left(after % count);
        }
        left.truncate(free);
        self.open.extend(&left);
        if let Some(last) = left.last() {
            self.last = *last;
        }
        left
    }

    pub(super) fn answered(&mut self, number: i64) {
        self.open.remove(&number);
        self.away = None;
    }

    /// The forge did not answer; it may have named a time. Otherwise it is asked again after `longest` at the latest.
    pub(super) fn unanswered(&mut self, number: i64, until: Option<Instant>, longest: Duration) {
        self.open.remove(&number);
        self.is_left = true;
        let now = clock::instant();
        let failures = self.away.map_or(0, |(failures, _)| failures) + 1;
        let at = until.unwrap_or(now + ask_again_after(failures).min(longest));
        self.away = Some((failures, at.max(now)));
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::queue::backlog::ASKED_EVERY;

    use super::*;

    #[test]
    fn while_a_forge_does_not_answer_one_question_is_open_and_each_delivery_has_its_turn() {
        let mut questions = Questions::default();
        assert_eq!(questions.free(), 0, "there is nothing to ask");
        questions.add();
        assert_eq!(questions.free(), AT_ONCE);
        assert_eq!(questions.choose(&[1, 2, 3], AT_ONCE), [1, 2, 3]);
        for number in [1, 2, 3] {
            questions.unanswered(number, None, ASKED_EVERY);
        }
        assert_eq!(questions.free(), 0, "not at once again");
        let mut asked = Vec::new();
        for _ in 0..4 {
            questions.add();
            assert_eq!(questions.free(), 1, "a new delivery wakes it");
            let next = questions.choose(&[1, 2, 3], 1);
            assert_eq!(questions.free(), 0);
            questions.unanswered(next[0], None, ASKED_EVERY);
            asked.extend(next);
        }
        assert_eq!(asked, [1, 2, 3, 1]);
        questions.add();
        questions.choose(&[1, 2, 3], 1);
        questions.answered(2);
        assert_eq!(questions.free(), AT_ONCE, "it is back");
        assert_eq!(questions.choose(&[1, 3], AT_ONCE), [1, 3]);
    }
}
