//! The order of sessions in lists: first those that need a person.
//!
//! Pure, and the same for every list. Among sessions that wait, failed or stall, the longest wait comes first.
//! Among the others the newest comes first: by the time of their end if they ended, finished or died, otherwise by
//! their start, so that rows do not move at every turn.

use std::time::Duration;

use crate::session::{Closed, Doing, EndKind, State};
use crate::time::Timestamp;

/// How long a death that lost work stays among what needs a person.
pub const DEATH_IS_NEWS_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// How much a session needs a person; the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// It continues only when a person answers.
    Waiting,
    /// Its turn failed.
    Failed,
    /// Its provider accepts no more requests for a while.
    Limited,
    DiedWithWork,
    LostClaim,
    Collides,
    Stalled,
    Retrying,
    Suspended,
    /// Its turn ended since a person was there.
    Finished,
    /// Its process was started and has sent no event yet.
    Starting,
    Busy,
    Idle,
    Ended,
}

impl Rank {
    pub fn as_str(self) -> &'static str {
        match self {
            Rank::Waiting => "waiting",
            Rank::Failed => "failed",
            Rank::Limited => "limited",
            Rank::DiedWithWork => "died_with_work",
            Rank::LostClaim => "lost_claim",
            Rank::Collides => "collides",
            Rank::Stalled => "stalled",
            Rank::Retrying => "retrying",
            Rank::Suspended => "suspended",
            Rank::Finished => "finished",
            Rank::Starting => "starting",
            Rank::Busy => "busy",
            Rank::Idle => "idle",
            Rank::Ended => "ended",
        }
    }
}

/// What a rank is derived from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub state: State,
    pub doing: Option<Doing>,
    /// Since when.
    pub since: Option<Timestamp>,
    pub finished: bool,
    /// See [`died_with_work`].
    pub died_with_work: bool,
    /// Whether another session holds a claim that it lost.
    pub lost_claim: bool,
    /// Whether another live session works on its focus, writes its files or is in its conversation.
    pub collides: bool,
    pub started_at: Timestamp,
    /// When it ended or was found dead.
    pub ended_at: Option<Timestamp>,
}

/// Whether a death still concerns a person: the session was cut off within a day, was not dismissed, and held
/// something when it died.
pub fn died_with_work(closed: &Closed, held_at_death: bool, now: Timestamp) -> bool {
    closed.kind == EndKind::CutOff
        && closed.dismissed_at.is_none()
        && held_at_death
        && closed.at.age_at(now) < DEATH_IS_NEWS_FOR
}

/// A session's rank, and its order among those of the same rank; both ascending.
pub fn rank(facts: &Facts) -> (Rank, i64) {
    let rank = rank_of(facts);
    let since = facts.since.unwrap_or(facts.started_at).0;
    let key = match rank {
        Rank::Waiting | Rank::Failed | Rank::Stalled => since,
        Rank::Finished | Rank::Limited | Rank::Retrying | Rank::Suspended | Rank::Starting => {
            since.saturating_neg()
        }
        Rank::DiedWithWork | Rank::Ended => facts
            .ended_at
            .unwrap_or(facts.started_at)
            .0
            .saturating_neg(),
        Rank::LostClaim | Rank::Collides | Rank::Busy | Rank::Idle => {
            facts.started_at.0.saturating_neg()
        }
    };
    (rank, key)
}

fn rank_of(facts: &Facts) -> Rank {
    match (facts.state, facts.doing) {
        (State::Ended | State::Dead, _) => {
            if facts.died_with_work {
                Rank::DiedWithWork
            } else {
                Rank::Ended
            }
        }
        (State::Live, Some(Doing::Waiting)) => Rank::Waiting,
        (State::Live, Some(Doing::Failed)) => Rank::Failed,
        (State::Live, Some(Doing::Limited)) => Rank::Limited,
        _ if facts.lost_claim => Rank::LostClaim,
        _ if facts.collides => Rank::Collides,
        (State::Stalled, _) => Rank::Stalled,
        (State::Live, Some(Doing::Retrying)) => Rank::Retrying,
        (State::Live, Some(Doing::Suspended)) => Rank::Suspended,
        (State::Live, Some(Doing::Idle)) if facts.finished => Rank::Finished,
        (State::Live, Some(Doing::Starting)) => Rank::Starting,
        (_, Some(Doing::Busy)) => Rank::Busy,
        (State::Live | State::Unknown, _) => Rank::Idle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::ClosedBy;

    const CALM: Facts = Facts {
        state: State::Live,
        doing: Some(Doing::Idle),
        since: Some(Timestamp(50)),
        finished: false,
        died_with_work: false,
        lost_claim: false,
        collides: false,
        started_at: Timestamp(10),
        ended_at: None,
    };

    fn doing(doing: Doing) -> Facts {
        Facts {
            doing: Some(doing),
            ..CALM
        }
    }

    #[test]
    fn what_needs_a_person_most_comes_first() {
        let over = |state, died_with_work| Facts {
            state,
            died_with_work,
            ended_at: Some(Timestamp(99)),
            ..CALM
        };
        let all = [
            doing(Doing::Waiting),
            doing(Doing::Failed),
            doing(Doing::Limited),
            over(State::Dead, true),
            Facts {
                lost_claim: true,
                ..doing(Doing::Busy)
            },
            Facts {
                collides: true,
                ..doing(Doing::Busy)
            },
            Facts {
                state: State::Stalled,
                ..doing(Doing::Busy)
            },
            doing(Doing::Retrying),
            doing(Doing::Suspended),
            Facts {
                finished: true,
                ..CALM
            },
            doing(Doing::Starting),
            doing(Doing::Busy),
            CALM,
            over(State::Ended, false),
        ];
        let ranks: Vec<Rank> = all.iter().map(|facts| rank(facts).0).collect();
        assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
        assert_eq!(rank(&over(State::Dead, false)).0, Rank::Ended);
    }

    #[test]
    fn who_waits_for_a_person_does_so_whatever_else_is_wrong() {
        let all_at_once = Facts {
            lost_claim: true,
            collides: true,
            ..doing(Doing::Waiting)
        };
        assert_eq!(rank(&all_at_once).0, Rank::Waiting);
        let unseen = Facts {
            state: State::Unknown,
            ..doing(Doing::Waiting)
        };
        assert_eq!(rank(&unseen).0, Rank::Idle);
    }

    #[test]
    fn the_longest_wait_and_the_newest_of_the_rest_come_first() {
        let at = |since: i64, started: i64, facts: Facts| {
            rank(&Facts {
                since: Some(Timestamp(since)),
                started_at: Timestamp(started),
                ended_at: Some(Timestamp(since)),
                ..facts
            })
        };
        let stalled = Facts {
            state: State::Stalled,
            ..doing(Doing::Busy)
        };
        for longest_first in [doing(Doing::Waiting), doing(Doing::Failed), stalled] {
            assert!(at(1, 9, longest_first) < at(2, 8, longest_first));
        }
        let finished = Facts {
            finished: true,
            ..CALM
        };
        let ended = Facts {
            state: State::Ended,
            ..CALM
        };
        for newest_end_first in [finished, ended, doing(Doing::Limited)] {
            assert!(at(2, 1, newest_end_first) < at(1, 2, newest_end_first));
        }
        for newest_start_first in [CALM, doing(Doing::Busy)] {
            assert!(at(1, 2, newest_start_first) < at(2, 1, newest_start_first));
        }
    }

    #[test]
    fn a_death_with_work_is_news_for_a_day_or_until_it_is_dismissed() {
        let closed = |kind, dismissed_at: Option<i64>| Closed {
            at: Timestamp(0),
            by: ClosedBy::Death,
            why: "gone".into(),
            kind,
            dismissed_at: dismissed_at.map(Timestamp),
        };
        let day = 24 * 60 * 60 * 1000;
        let cut_off = closed(EndKind::CutOff, None);
        assert!(died_with_work(&cut_off, true, Timestamp(day - 1)));
        assert!(!died_with_work(&cut_off, true, Timestamp(day)));
        assert!(!died_with_work(&cut_off, false, Timestamp(1)));
        let left = closed(EndKind::Left, None);
        assert!(!died_with_work(&left, true, Timestamp(1)));
        let dismissed = closed(EndKind::CutOff, Some(1));
        assert!(!died_with_work(&dismissed, true, Timestamp(2)));
    }
}
