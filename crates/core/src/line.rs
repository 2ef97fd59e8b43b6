//! Waiting in line: whose turn it is when a key becomes free.
//!
//! Waiters are the waiting tenure processes, in order of arrival. The first one that can act has the turn. A
//! dead waiter is not in line. Passed over are a stopped waiter, one that does not act within a second of its
//! turn, and one that reports that it cannot use the turn ([`must_pass`]), because another of its keys is held
//! or processes of a dead holder still run. A waiter that is passed over keeps its position.
//!
//! A turn belongs to the key's epoch. Every grant raises the epoch, so earlier turns no longer count and need
//! not be deleted. Within one epoch a waiter's turn only moves forward: not recorded, recorded, passed. So a
//! free key costs each waiter at most two writes, and whatever the waiters before it do, a waiter that can act
//! gets its turn after at most a second for each of them.
//!
//! The turn is not a reservation: nothing is held for a waiter, and a plain claim may take a free key even
//! while others wait. *Crash*: the row of a killed waiter is removed by the next one that sees it. *Clock
//! jump*: the second is measured on the store's monotonic clock. *Older version*: a turn recorded without an
//! epoch counts as not recorded.

use std::time::Duration;

use crate::id::{Epoch, SessionToken, Ticket};
use crate::key::Key;
use crate::process::Process;
use crate::time::{Deadline, Now, Remaining, Timestamp};

/// How long a waiter may take to act in its turn, on one machine.
pub const TURN: Duration = Duration::from_secs(1);

/// A process that waits for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// Its position; the same for all keys that it waits for.
    pub ticket: Ticket,
    pub key: Key,
    /// The session that it waits for; none if the session begins with the grant.
    pub session: Option<SessionToken>,
    pub process: Process,
    pub since: Timestamp,
    /// The last turn recorded for it.
    pub turn: Option<NotedTurn>,
}

impl Waiter {
    /// The turn recorded for it at this epoch.
    fn turn_in(&self, epoch: Epoch) -> Option<&NotedTurn> {
        self.turn.as_ref().filter(|turn| turn.epoch == epoch)
    }

    /// Whether it has reported that it cannot use its turn at this epoch.
    pub fn has_passed(&self, epoch: Epoch) -> bool {
        self.turn_in(epoch).is_some_and(|turn| turn.until.is_none())
    }
}

/// A waiter's turn, as recorded by any process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotedTurn {
    /// The key's epoch at that time.
    pub epoch: Epoch,
    /// Until when it may act; none once it has reported that it cannot.
    pub until: Option<Deadline>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fitness {
    /// As far as is visible.
    Ready,
    Stopped,
    Dead,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinePosition {
    Next,
    /// It is this waiter's turn, for at most this long.
    After {
        ticket: Ticket,
        /// Whether the start of that turn has been recorded.
        noted: bool,
        left: Duration,
    },
}

/// Whether it is the turn of `me` while the key is free at this epoch; `line` is in order of arrival.
pub fn line_position(
    line: &[(Waiter, Fitness)],
    me: Ticket,
    epoch: Epoch,
    now: &Now,
    turn: Duration,
) -> LinePosition {
    for (waiter, fitness) in line {
        if waiter.ticket == me {
            return LinePosition::Next;
        }
        if *fitness != Fitness::Ready {
            continue;
        }
        let (noted, left) = match waiter.turn_in(epoch) {
            None => (false, turn),
            Some(noted) => match noted.until.as_ref().map(|until| until.remaining(now)) {
                Some(Remaining::Open(left)) => (true, left),
                Some(Remaining::Over(_) | Remaining::CannotTell) | None => continue,
            },
        };
        return LinePosition::After {
            ticket: waiter.ticket,
            noted,
            left,
        };
    }
    LinePosition::Next
}

/// Whether a waiter that cannot use a key must report so, so that others do not wait for it.
///
/// It must if its turn was recorded, or if the key is free and another waiter is behind it; once per epoch.
pub fn must_pass(line: &[Waiter], me: Ticket, epoch: Epoch, is_free: bool) -> bool {
    let Some(at) = line.iter().position(|waiter| waiter.ticket == me) else {
        return false;
    };
    match line[at].turn_in(epoch) {
        Some(turn) => turn.until.is_some(),
        None => is_free && at + 1 < line.len(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::time::Era;

    const FREE: Epoch = Epoch(7);

    fn now(steady: i64) -> Now {
        Now {
            wall: Timestamp(0),
            era: Era {
                id: "b".into(),
                private: false,
            },
            steady,
        }
    }

    fn waiter(ticket: u64, turn: Option<NotedTurn>) -> Waiter {
        Waiter {
            ticket: Ticket(ticket),
            key: Key::parse("wp:1").unwrap(),
            session: None,
            process: Process::sample(1),
            since: Timestamp(0),
            turn,
        }
    }

    fn noted(epoch: Epoch, at: i64) -> Option<NotedTurn> {
        Some(NotedTurn {
            epoch,
            until: Some(now(at).after(TURN)),
        })
    }

    fn passed(epoch: Epoch) -> Option<NotedTurn> {
        Some(NotedTurn { epoch, until: None })
    }

    #[test]
    fn the_first_that_can_act_has_the_turn() {
        let line = [
            (waiter(1, None), Fitness::Dead),
            (waiter(2, None), Fitness::Stopped),
            (waiter(3, None), Fitness::Ready),
            (waiter(4, None), Fitness::Ready),
        ];
        assert_eq!(
            line_position(&line, Ticket(3), FREE, &now(0), TURN),
            LinePosition::Next
        );
        let after = LinePosition::After {
            ticket: Ticket(3),
            noted: false,
            left: TURN,
        };
        assert_eq!(line_position(&line, Ticket(4), FREE, &now(0), TURN), after);
    }

    #[test]
    fn f_c22_a_waiter_that_does_not_act_is_passed_over() {
        let line = [
            (waiter(1, noted(FREE, 0)), Fitness::Ready),
            (waiter(2, None), Fitness::Ready),
        ];
        assert!(matches!(
            line_position(&line, Ticket(2), FREE, &now(999), TURN),
            LinePosition::After { noted: true, .. }
        ));
        assert_eq!(
            line_position(&line, Ticket(2), FREE, &now(1000), TURN),
            LinePosition::Next
        );
        assert_eq!(
            line_position(&line, Ticket(1), FREE, &now(5000), TURN),
            LinePosition::Next
        );
    }

    #[test]
    fn f_c22_a_waiter_that_cannot_use_its_turn_is_passed_over_until_the_next_grant() {
        let line = [
            (waiter(1, passed(FREE)), Fitness::Ready),
            (waiter(2, None), Fitness::Ready),
        ];
        assert_eq!(
            line_position(&line, Ticket(2), FREE, &now(0), TURN),
            LinePosition::Next
        );
        assert_eq!(
            line_position(&line, Ticket(1), FREE, &now(0), TURN),
            LinePosition::Next
        );
        let next = line_position(&line, Ticket(2), Epoch(8), &now(0), TURN);
        assert!(matches!(next, LinePosition::After { noted: false, .. }));
    }

    #[test]
    fn a_turn_of_an_older_epoch_counts_no_more() {
        let line = [
            (waiter(1, noted(Epoch(6), 0)), Fitness::Ready),
            (waiter(2, None), Fitness::Ready),
        ];
        let after = line_position(&line, Ticket(2), FREE, &now(5000), TURN);
        assert!(matches!(after, LinePosition::After { noted: false, .. }));
    }

    #[test]
    fn a_waiter_passes_once_and_only_where_somebody_may_wait_for_it() {
        let alone = [waiter(1, None)];
        let two = |turn| [waiter(1, turn), waiter(2, None)];
        let must = |line: &[Waiter], free| must_pass(line, Ticket(1), FREE, free);
        assert!(!must(&alone, true));
        assert!(must(&two(None), true));
        assert!(!must(&two(None), false));
        assert!(must(&two(noted(FREE, 0)), false));
        assert!(!must(&two(passed(FREE)), true));
        assert!(must(&two(passed(Epoch(6))), true));
        assert!(!must_pass(&alone, Ticket(9), FREE, true));
    }

    /// How a waiter behaves while the key is free.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Manner {
        Acts,
        CannotUse,
        Hangs,
        Stopped,
        Dead,
    }

    /// A line for one free key; each check may write.
    struct WaitLine {
        waiters: Vec<Waiter>,
        manners: Vec<Manner>,
        steady: i64,
        writes: usize,
    }

    impl WaitLine {
        fn new(manners: &[Manner]) -> Self {
            let waiters = (1..).take(manners.len()).map(|ticket| waiter(ticket, None));
            Self {
                waiters: waiters.collect(),
                manners: manners.to_vec(),
                steady: 0,
                writes: 0,
            }
        }

        /// One check of a waiter; true if the key is granted to it.
        fn look(&mut self, at: usize) -> bool {
            let me = self.waiters[at].ticket;
            let time = now(self.steady);
            match self.manners[at] {
                Manner::Hangs | Manner::Stopped | Manner::Dead => {}
                Manner::CannotUse => {
                    if must_pass(&self.waiters, me, FREE, true) {
                        self.waiters[at].turn = passed(FREE);
                        self.writes += 1;
                    }
                }
                Manner::Acts => match line_position(&self.seen(), me, FREE, &time, TURN) {
                    LinePosition::Next => return true,
                    LinePosition::After {
                        ticket,
                        noted: false,
                        ..
                    } => {
                        let before = self.waiters.iter_mut().find(|one| one.ticket == ticket);
                        before.unwrap().turn = noted(FREE, self.steady);
                        self.writes += 1;
                    }
                    LinePosition::After { .. } => {}
                },
            }
            false
        }

        fn seen(&self) -> Vec<(Waiter, Fitness)> {
            let fitness = |manner: &Manner| match manner {
                Manner::Stopped => Fitness::Stopped,
                Manner::Dead => Fitness::Dead,
                Manner::Acts | Manner::CannotUse | Manner::Hangs => Fitness::Ready,
            };
            let pairs = self.waiters.iter().cloned().zip(&self.manners);
            pairs
                .map(|(waiter, manner)| (waiter, fitness(manner)))
                .collect()
        }
    }

    fn manner() -> impl Strategy<Value = Manner> {
        prop_oneof![
            2 => Just(Manner::Acts),
            4 => Just(Manner::CannotUse),
            1 => Just(Manner::Hangs),
            1 => Just(Manner::Stopped),
            1 => Just(Manner::Dead),
        ]
    }

    proptest! {
        #[test]
        fn f_c22_whatever_the_others_do_one_that_can_act_gets_it_in_bounded_writes(
            manners in prop::collection::vec(manner(), 1..8),
            looks in prop::collection::vec((0usize..8, 0i64..300), 0..200),
        ) {
            let mut line = WaitLine::new(&manners);
            let mut winner = None;
            for (who, pause) in &looks {
                line.steady += pause;
                let who = who % manners.len();
                if line.look(who) {
                    winner = Some(who);
                    break;
                }
            }
            // From here on every waiter checks again within a tenth of a second.
            for _ in 0..manners.len() * 12 {
                if winner.is_some() {
                    break;
                }
                line.steady += 100;
                winner = (0..manners.len()).find(|who| line.look(*who));
            }
            prop_assert_eq!(winner.is_some(), manners.contains(&Manner::Acts));
            prop_assert!(line.writes <= 2 * manners.len(), "{} writes", line.writes);
            let fresh = |waiter: &Waiter| waiter.turn_in(Epoch(FREE.0 + 1)).is_none();
            prop_assert!(line.waiters.iter().all(fresh));
        }

        #[test]
        fn those_who_look_in_time_are_served_in_order(
            manners in prop::collection::vec(manner(), 1..8),
        ) {
            let mut line = WaitLine::new(&manners);
            let rounds = manners.len() * 12;
            let winner = (0..rounds).find_map(|_| {
                line.steady += 100;
                (0..manners.len()).rev().find(|who| line.look(*who))
            });
            prop_assert_eq!(winner, manners.iter().position(|one| *one == Manner::Acts));
        }
    }
}
