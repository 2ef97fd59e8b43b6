//! Waiting in line: whose turn it is when a key becomes free.
//!
//! Waiters are the waiting tenure processes, in order of arrival. The first one that can act has the
//! turn. A dead waiter is no waiter; a stopped one is passed over; one that does not act within a second
//! of its turn is passed over, so that nobody waits for a process that hangs. Passed over is not
//! thrown out: it keeps its place for the next turn.
//!
//! The turn is not a reservation: nothing is held for a waiter, and a plain claim may take a free key
//! even when others wait. *Crash*: a killed waiter's row is removed by whoever sees it next.
//! *Clock jump*: the second is on the store's steady clock.

use std::time::Duration;

use crate::id::{SessionToken, Ticket};
use crate::key::Key;
use crate::process::Process;
use crate::time::{Deadline, Now, Remaining, Timestamp};

/// How long a waiter may take to act in its turn.
pub const TURN: Duration = Duration::from_secs(1);

/// A process that waits for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// Its place; the same for all keys that it waits for.
    pub ticket: Ticket,
    /// The key.
    pub key: Key,
    /// The session that it waits for; none where the session begins with the grant.
    pub session: Option<SessionToken>,
    /// The waiting process.
    pub process: Process,
    /// Since when.
    pub since: Timestamp,
    /// Until when it may act, if somebody saw that it is its turn.
    pub turn_until: Option<Deadline>,
}

/// Whether a waiter can act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fitness {
    /// As far as anybody can see.
    Ready,
    /// It is stopped.
    Stopped,
    /// Its process is dead.
    Dead,
}

/// Where a waiter stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// It is its turn.
    Next,
    /// It is this waiter's turn, for at most this long.
    After {
        /// Who is before.
        ticket: Ticket,
        /// Whether it has been noted since when that is so.
        noted: bool,
        /// The time left.
        left: Duration,
    },
}

/// Finds out whether it is the turn of `me`; `line` is in order of arrival.
pub fn place(line: &[(Waiter, Fitness)], me: Ticket, now: &Now) -> Place {
    for (waiter, fitness) in line {
        if waiter.ticket == me {
            return Place::Next;
        }
        if *fitness != Fitness::Ready {
            continue;
        }
        let (noted, left) = match waiter.turn_until.as_ref().map(|until| until.remaining(now)) {
            None => (false, TURN),
            Some(Remaining::Open(left)) => (true, left),
            Some(Remaining::Over(_) | Remaining::CannotTell) => continue,
        };
        return Place::After {
            ticket: waiter.ticket,
            noted,
            left,
        };
    }
    Place::Next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::HostId;
    use crate::process::{BootId, StartTicks};
    use crate::time::Era;

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

    fn waiter(ticket: u64, turn_until: Option<Deadline>) -> Waiter {
        Waiter {
            ticket: Ticket(ticket),
            key: Key::parse("wp:1").unwrap(),
            session: None,
            process: Process {
                host: HostId::new("h"),
                boot: BootId {
                    id: "b".into(),
                    private: false,
                },
                pid_ns: 1,
                pid: 1,
                start: StartTicks {
                    ticks: 1,
                    shifted: false,
                },
            },
            since: Timestamp(0),
            turn_until,
        }
    }

    #[test]
    fn the_first_that_can_act_has_the_turn() {
        let line = [
            (waiter(1, None), Fitness::Dead),
            (waiter(2, None), Fitness::Stopped),
            (waiter(3, None), Fitness::Ready),
            (waiter(4, None), Fitness::Ready),
        ];
        assert_eq!(place(&line, Ticket(3), &now(0)), Place::Next);
        let after = Place::After {
            ticket: Ticket(3),
            noted: false,
            left: TURN,
        };
        assert_eq!(place(&line, Ticket(4), &now(0)), after);
    }

    #[test]
    fn f_c22_a_waiter_that_does_not_act_is_passed_over() {
        let line = [
            (waiter(1, Some(now(0).after(TURN))), Fitness::Ready),
            (waiter(2, None), Fitness::Ready),
        ];
        assert!(matches!(
            place(&line, Ticket(2), &now(999)),
            Place::After { noted: true, .. }
        ));
        assert_eq!(place(&line, Ticket(2), &now(1000)), Place::Next);
        assert_eq!(place(&line, Ticket(1), &now(5000)), Place::Next);
    }
}
