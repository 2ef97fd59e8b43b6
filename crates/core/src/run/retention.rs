//! How long the files of a run are kept.

use std::time::Duration;

use super::RunEnd;
use crate::time::Timestamp;

/// How long, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    pub age: Duration,
    /// This many of the newest are kept, whatever is older.
    pub count: usize,
}

/// Whether the files of a run with this end may be removed; `newer` is how many newer ones there are. Those of a run
/// without a recorded end stay, and those of one that waits for its agent's usage limit to end.
pub fn may_go(end: Option<&RunEnd>, newer: usize, now: Timestamp, keep: &Retention) -> bool {
    let Some(end) = end else {
        return false;
    };
    let over = end.parked_until.unwrap_or(end.at).max(end.at);
    over <= now && (newer >= keep.count || over.age_at(now) > keep.age)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::fitness::Left;
    use crate::run::Outcome;

    const KEEP: Retention = Retention {
        age: Duration::from_secs(60),
        count: 10,
    };

    fn end(at: i64, parked_until: Option<i64>) -> Option<RunEnd> {
        Some(RunEnd {
            at: Timestamp(at),
            outcome: Outcome::Done,
            why: String::new(),
            exit_code: Some(0),
            left: Left::Sound,
            parked_until: parked_until.map(Timestamp),
        })
    }

    #[test]
    fn age_and_count_decide_once_a_run_is_over() {
        let now = Timestamp(1_000_000);
        let cases = [
            (end(1_000_000, None), 0, false),
            (end(940_000, None), 9, false),
            (end(939_999, None), 0, true),
            (end(1_000_000, None), 10, true),
            (end(1_000_001, None), 99, false),
            (end(0, Some(1_000_001)), 99, false),
            (end(0, Some(950_000)), 0, false),
            (end(0, Some(950_000)), 10, true),
            (None, 99, false),
        ];
        for (end, newer, expected) in cases {
            let goes = may_go(end.as_ref(), newer, now, &KEEP);
            assert_eq!(goes, expected, "{end:?} {newer}");
        }
    }
}
