//! The timeline: who held which item from when to when, and how each hold ended.
//!
//! Pure. Holds are listed by their end: first those that are still held, by key, then the others, the latest end first.
//! A hold changes its place once, when it ends, and then moves back behind every reader that listed it as held, so a
//! reader that goes on from a [`TimelineCursor`] misses none. It may meet a hold a second time that ended in between;
//! the later one is right.
//!
//! *Clock jump*: times are shown as they were stored; the end of a hold may lie before its beginning. *Older version*:
//! nothing here is stored.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::claim::{EndedBy, Hold, HoldEnd};
use crate::id::{Epoch, Malformed, SessionId};
use crate::key::Key;
use crate::session::{Session, Standing};
use crate::time::{Now, Remaining, Timestamp};

/// Which holds to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimelineFilter {
    /// Only what was held at this time or later.
    pub since: Option<Timestamp>,
    pub key: Option<Key>,
    pub session: Option<SessionId>,
    /// Go on behind this one.
    pub after: Option<TimelineCursor>,
    /// At most this many; zero means all.
    pub limit: usize,
}

/// A hold, and the hold that followed it if its holder did not release the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineHold {
    pub hold: Hold,
    pub next: Option<Hold>,
}

/// A place in the list of holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimelineCursor {
    /// Among those that are still held: behind this key.
    Held(Key),
    /// Among those that ended: behind this one.
    Ended {
        at: Timestamp,
        epoch: Epoch,
        key: Key,
    },
}

impl TimelineCursor {
    /// The place of a hold.
    pub fn of(hold: &Hold) -> Self {
        match hold.ended {
            None => Self::Held(hold.key.clone()),
            Some(HoldEnd { at, .. }) => Self::Ended {
                at,
                epoch: hold.epoch,
                key: hold.key.clone(),
            },
        }
    }
}

impl fmt::Display for TimelineCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(key) => write!(f, "held/{key}"),
            Self::Ended { at, epoch, key } => write!(f, "{}/{epoch}/{key}", at.0),
        }
    }
}

impl FromStr for TimelineCursor {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let parsed = || {
            if let Some(key) = text.strip_prefix("held/") {
                return Key::stored(key).ok().map(Self::Held);
            }
            let (at, rest) = text.split_once('/')?;
            let (epoch, key) = rest.split_once('/')?;
            Some(Self::Ended {
                at: Timestamp(at.parse().ok()?),
                epoch: Epoch(epoch.parse().ok()?),
                key: Key::stored(key).ok()?,
            })
        };
        let why = "expected the value of `next` in an earlier answer";
        parsed().ok_or_else(|| Malformed::new("timeline cursor", text, why))
    }
}

/// How a hold stands now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldPhase {
    Held,
    /// Its holder's lease expired at that time, and its process can't be checked. It may be claimed after the lock delay,
    /// which takes this much longer.
    Suspect {
        since: Timestamp,
        left: Duration,
    },
    Ended(HoldEnd),
}

impl HoldPhase {
    /// The phase of a hold; `holder` is its session with its standing. What a dead session holds has ended, whether or
    /// not its death is recorded.
    pub fn of(hold: &Hold, holder: &Session, standing: &Standing, now: &Now) -> Self {
        if let Some(end) = hold.ended {
            return Self::Ended(end);
        }
        let left = match standing {
            Standing::Live | Standing::Trusted { .. } => return Self::Held,
            Standing::Gone(_) => {
                return Self::Ended(HoldEnd {
                    at: now.wall,
                    by: EndedBy::Death,
                });
            }
            Standing::Suspect { left, .. } => *left,
            Standing::Expired(_) => Duration::ZERO,
        };
        match holder.lease.remaining(now) {
            Remaining::Over(past) => Self::Suspect {
                since: now.wall.minus(past),
                left,
            },
            Remaining::Open(_) | Remaining::CannotTell => Self::Held,
        }
    }
}

/// Why a hold ended without its holder's act: the reason of the takeover, or the proof. Its session is asked where the
/// next holder was not told, as long as it was not resumed.
pub fn why_ended(held: &TimelineHold, holder: &Session) -> Option<String> {
    let (hold, end) = (&held.hold, held.hold.ended?);
    match end.by {
        EndedBy::Release | EndedBy::Done | EndedBy::Handoff => return None,
        EndedBy::End | EndedBy::Death | EndedBy::Lease | EndedBy::Taken => {}
    }
    let told = held.next.as_ref().and_then(|next| next.taken_from.as_ref());
    let told = told.filter(|from| from.epoch == hold.epoch.0);
    if let Some(from) = told {
        return Some(from.proof.clone());
    }
    let closed = holder.closed.as_ref();
    let closed = closed.filter(|_| matches!(end.by, EndedBy::End | EndedBy::Death));
    closed.map(|closed| closed.why.clone())
}

/// The session that got the key from the holder by an act: it took it over, or was handed it.
pub fn passed_to(held: &TimelineHold) -> Option<SessionId> {
    let end = held.hold.ended?;
    let passed = matches!(end.by, EndedBy::Taken | EndedBy::Handoff);
    let next = held.next.as_ref().filter(|_| passed)?;
    Some(next.session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::TakenFrom;
    use crate::id::{AgentName, Handle};
    use crate::liveness::{Doubt, Proof};
    use crate::session::{Closed, ClosedBy, EndKind};
    use crate::time::{Deadline, Era};

    fn session() -> Session {
        let handle = Handle::parse("claude-k7qd").unwrap();
        let id = SessionId::mint(0, [1; 10]);
        let agent = AgentName::known("claude");
        Session::new(id, handle, agent, Timestamp(0), lease(1_000))
    }

    fn lease(at: i64) -> Deadline {
        Deadline { era: era(), at }
    }

    fn era() -> Era {
        Era {
            id: "boot".into(),
            private: false,
        }
    }

    fn hold(epoch: u64, ended: Option<EndedBy>) -> Hold {
        let session = SessionId::mint(0, [u8::try_from(epoch).unwrap(); 10]);
        Hold {
            key: Key::parse("wp:a/b").unwrap(),
            ended: ended.map(|by| HoldEnd {
                at: Timestamp(-5),
                by,
            }),
            ..Hold::sample(session, epoch, None)
        }
    }

    fn taken_from(epoch: u64) -> TakenFrom {
        TakenFrom {
            session: "s".into(),
            handle: "claude-k7qd".into(),
            epoch,
            by: "taken".into(),
            proof: "stuck".into(),
            dir: "/work".into(),
            branch: None,
            survivors: Vec::new(),
            survivors_unsure: None,
            also_ended: Vec::new(),
        }
    }

    #[test]
    fn a_cursor_reads_back_whatever_the_key() {
        for held in [hold(3, None), hold(3, Some(EndedBy::Done))] {
            let cursor = TimelineCursor::of(&held);
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for bad in [
            "",
            "held/",
            "12",
            "12/3",
            "x/3/wp:1",
            "12/x/wp:1",
            "12/3/wp",
        ] {
            assert!(bad.parse::<TimelineCursor>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_an_unseen_holder_has_is_suspect_once_its_lease_is_over() {
        let now = Now {
            wall: Timestamp(100_000),
            era: era(),
            steady: 4_000,
        };
        let phase = |standing: &Standing| HoldPhase::of(&hold(1, None), &session(), standing, &now);
        let doubt = Doubt::OtherNamespace;
        assert_eq!(phase(&Standing::Live), HoldPhase::Held);
        let trusted = Standing::Trusted {
            doubt: doubt.clone(),
            left: None,
        };
        assert_eq!(phase(&trusted), HoldPhase::Held);
        let left = Duration::from_secs(2);
        let since = Timestamp(97_000);
        let suspect = Standing::Suspect {
            doubt: doubt.clone(),
            left,
        };
        assert_eq!(phase(&suspect), HoldPhase::Suspect { since, left });
        let left = Duration::ZERO;
        assert_eq!(
            phase(&Standing::Expired(doubt)),
            HoldPhase::Suspect { since, left }
        );
        let ended = HoldEnd {
            at: now.wall,
            by: EndedBy::Death,
        };
        let gone = Standing::Gone(Proof::Rebooted);
        assert_eq!(phase(&gone), HoldPhase::Ended(ended));
    }

    #[test]
    fn the_reason_is_the_next_holders_or_that_of_the_end_of_the_session() {
        let held = |by, next: Option<Hold>| TimelineHold {
            hold: hold(1, Some(by)),
            next,
        };
        let next = |epoch| Hold {
            taken_from: Some(taken_from(epoch)),
            ..hold(2, None)
        };
        let closed = Session {
            closed: Some(Closed {
                at: Timestamp(1),
                by: ClosedBy::Death,
                why: "pid 7 exited".into(),
                kind: EndKind::CutOff,
                dismissed_at: None,
            }),
            ..session()
        };
        let why = |by, next, holder: &Session| why_ended(&held(by, next), holder);
        let stuck = Some("stuck".to_owned());
        assert_eq!(why(EndedBy::Taken, Some(next(1)), &session()), stuck);
        assert_eq!(why(EndedBy::Taken, None, &closed), None);
        let exited = Some("pid 7 exited".to_owned());
        assert_eq!(why(EndedBy::Death, Some(next(9)), &closed), exited);
        assert_eq!(why(EndedBy::Death, None, &session()), None);
        assert_eq!(why(EndedBy::Done, Some(next(1)), &closed), None);
        assert_eq!(why_ended(&held_open(), &closed), None);
    }

    fn held_open() -> TimelineHold {
        TimelineHold {
            hold: hold(1, None),
            next: None,
        }
    }

    #[test]
    fn a_key_passes_to_who_took_it_or_was_handed_it() {
        for (by, passes) in [
            (EndedBy::Taken, true),
            (EndedBy::Handoff, true),
            (EndedBy::Death, false),
            (EndedBy::Release, false),
        ] {
            let held = TimelineHold {
                hold: hold(1, Some(by)),
                next: Some(hold(2, None)),
            };
            let expected = passes.then(|| hold(2, None).session);
            assert_eq!(passed_to(&held), expected, "{by:?}");
        }
    }
}
