//! Sessions: one worker each, followed through its processes and its conversations.
//!
//! The record stores what happened (which process, which life, when closed and on what proof), never what
//! follows from it: whether a session is live, stalled or dead is derived on request. A session is open until
//! it is closed by its end, by a proved death, or by moving into another one. A closed session is kept;
//! resuming opens it again as its next life.
//!
//! *Crash*: a killed worker leaves its session open with a dead process; the next caller proves that and closes
//! it. *Clock jump*: only the lease is a deadline, and it is on the store's monotonic clock.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::{
    AgentName, Handle, Life, Malformed, NativeId, SessionId, SessionToken, stored_enum, text_id,
};
use crate::liveness::{Doubt, Liveness, Proof};
use crate::process::Process;
use crate::time::{Deadline, Now, Remaining, Timestamp};
use crate::woken::Woken;

#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    pub id: SessionId,
    pub handle: Handle,
    pub agent: AgentName,
    /// The current conversation.
    pub native_id: Option<NativeId>,
    /// The conversation that it was forked from, whose id its start event may still name.
    pub fork_of: Option<NativeId>,
    /// The session in whose process tree it was registered, in that life.
    pub parent: Option<SessionToken>,
    /// The session whose live conversation it resumed a second time.
    pub twin_of: Option<SessionId>,
    pub title: Option<Title>,
    pub workdir: Workdir,
    /// When the branch of that directory was last seen.
    pub branch_at: Option<Timestamp>,
    /// Whether it shares its process with other conversations.
    pub hosted: bool,
    pub life: Life,
    /// Its process; none if it could not be identified, and then the session depends on its lease alone.
    pub process: Option<Process>,
    /// The daemon that runs its conversation, if its process is only the window to it. Equal to the process if
    /// no window is known. On the same machine and in the same pid namespace as its process.
    pub daemon: Option<Process>,
    /// How that process was started, if its command line could be read.
    pub start: Option<Start>,
    pub activity: Option<Activity>,
    /// When it last asked its model, if its agent reports each request.
    pub asked_at: Option<Timestamp>,
    /// When it did so before that.
    pub asked_before: Option<Timestamp>,
    /// When messages started turns in it.
    pub woken: Woken,
    /// When a person was last seen with it.
    pub attended_at: Option<Timestamp>,
    pub started_at: Timestamp,
    pub seen_at: Timestamp,
    /// Until when it is presumed alive if its process can't be checked.
    pub lease: Deadline,
    pub closed: Option<Closed>,
    /// Counts the changes to this record, for compare-and-set.
    pub revision: u64,
}

/// A title for a session's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Title {
    pub text: String,
    pub by: TitleBy,
}

stored_enum! {
    /// Who chose a title. A later source in this list replaces an earlier one.
    TitleBy, "source of a title" {
        /// Its first prompt.
        Prompt = "prompt",
        /// The agent.
        Agent = "agent",
        /// A person, or the caller that registered it.
        Person = "person",
    }
}

impl Title {
    /// A title chosen by a person, or by the caller that registered the session.
    pub fn person(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            by: TitleBy::Person,
        }
    }
}

/// How a process of an agent was started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Start {
    /// For one unattended turn.
    pub headless: bool,
    /// Arguments that the agent's own resume does not restore, word by word.
    pub flags: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Workdir {
    pub dir: String,
    /// Owner and name of the repository's remote, else its common directory.
    pub repo: Option<String>,
    /// The branch that is checked out there.
    pub branch: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    pub at: Timestamp,
    pub by: ClosedBy,
    /// The reason or the proof.
    pub why: String,
    pub kind: EndKind,
    /// When a person removed it from the list of what can be resumed.
    pub dismissed_at: Option<Timestamp>,
}

stored_enum! {
    /// What an end means later.
    EndKind, "kind of end" {
        /// A person ended it, or its only turn was over.
        Left = "left",
        /// Its terminal, its process or its machine was taken from it.
        CutOff = "cut_off",
        /// Its conversation moved to another session.
        Moved = "moved",
    }
}

stored_enum! {
    ClosedBy, "way of closing" {
        /// It ended itself.
        End = "end",
        Death = "death",
        /// Its conversation and claims moved to the session that resumed the conversation.
        Moved = "moved",
    }
}

impl ClosedBy {
    /// The resulting state, for people.
    pub fn past(self) -> &'static str {
        match self {
            ClosedBy::End => "ended",
            ClosedBy::Death => "dead",
            ClosedBy::Moved => "moved into another session",
        }
    }

    /// The same after the session's name.
    pub fn as_verb(self) -> &'static str {
        match self {
            ClosedBy::End => "has ended",
            ClosedBy::Death => "is dead",
            ClosedBy::Moved => "has moved into another session",
        }
    }

    /// The kind of an end about which nothing else is known.
    pub fn usual_kind(self) -> EndKind {
        match self {
            ClosedBy::End => EndKind::Left,
            ClosedBy::Death => EndKind::CutOff,
            ClosedBy::Moved => EndKind::Moved,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    pub doing: Doing,
    pub since: Timestamp,
    /// What it waits for a person to answer, on one line.
    pub asks: Option<String>,
    /// Why it failed, is limited or retries, on one line.
    pub why: Option<String>,
    /// Until when it is limited, or when it tries again.
    pub until: Option<Timestamp>,
}

impl Activity {
    /// An activity about which nothing else is known.
    pub fn new(doing: Doing, since: Timestamp) -> Self {
        Self {
            doing,
            since,
            asks: None,
            why: None,
            until: None,
        }
    }
}

stored_enum! {
    #[derive(Serialize, Deserialize)]
    Doing, "activity" {
        /// In a turn.
        Busy = "busy",
        /// For a person's answer.
        Waiting = "waiting",
        /// At its prompt.
        Idle = "idle",
        /// At its prompt, because its turn ended by itself. Shown as idle, or as finished until a person saw it.
        Finished = "finished",
        /// At its prompt, because its turn failed.
        Failed = "failed",
        /// At its prompt, because its provider accepts no more requests for a while.
        Limited = "limited",
        /// In a turn, and its requests to the model fail.
        Retrying = "retrying",
        /// Its process is stopped; derived, never stored.
        Suspended = "suspended",
        /// Its process was started on the conversation and has sent no event yet; derived, never stored.
        Starting = "starting",
    }
}

impl Doing {
    /// Whether its turn is over, whatever ended it.
    pub fn rests(self) -> bool {
        matches!(
            self,
            Doing::Idle | Doing::Finished | Doing::Failed | Doing::Limited
        )
    }

    /// Whether it is in a turn that needs no person.
    pub fn is_in_turn(self) -> bool {
        matches!(self, Doing::Busy | Doing::Retrying)
    }

    /// Whether an event that only reports rest leaves this state as it is: agents send one after the end of a
    /// turn, whatever ended it.
    pub fn outlasts_rest(self) -> bool {
        matches!(self, Doing::Finished | Doing::Failed | Doing::Limited)
    }
}

impl Session {
    /// An open session in its first life, of which nothing else is known yet.
    pub fn new(
        id: SessionId,
        handle: Handle,
        agent: AgentName,
        at: Timestamp,
        lease: Deadline,
    ) -> Self {
        Self {
            id,
            handle,
            agent,
            native_id: None,
            fork_of: None,
            parent: None,
            twin_of: None,
            title: None,
            workdir: Workdir::default(),
            branch_at: None,
            hosted: false,
            life: Life::FIRST,
            process: None,
            start: None,
            activity: None,
            asked_at: None,
            asked_before: None,
            woken: Woken::default(),
            daemon: None,
            attended_at: None,
            started_at: at,
            seen_at: at,
            lease,
            closed: None,
            revision: 0,
        }
    }

    /// The value of TENURE_SESSION for the current life.
    pub fn token(&self) -> SessionToken {
        SessionToken {
            id: self.id,
            life: self.life,
        }
    }

    /// What its events reported last.
    pub fn doing(&self) -> Option<Doing> {
        self.activity.as_ref().map(|activity| activity.doing)
    }

    /// Whether it has neither ended nor been proved dead.
    pub fn is_open(&self) -> bool {
        self.closed.is_none()
    }

    /// The daemon that may be in a turn of it after its window is gone.
    fn turn_in(&self) -> Option<&Process> {
        let in_turn = |doing: Doing| doing == Doing::Waiting || doing.is_in_turn();
        let in_turn = self.doing().is_some_and(in_turn);
        self.daemon.as_ref().filter(|_| in_turn)
    }

    /// Whether the process that keeps it alive is the daemon, because its window is gone.
    pub fn is_left_to(&self, decides: Option<&Process>) -> bool {
        decides.is_some() && decides == self.daemon.as_ref() && decides != self.process.as_ref()
    }

    /// Whether it is alive, given the state of processes and what a daemon reports about its turn, if it was
    /// asked; and the process that decides that.
    ///
    /// A conversation that a daemon runs belongs to its window. Once the window is gone, the session is alive
    /// only while the daemon is in its turn. If that is unknown, the end of the turn has not been reported yet.
    pub fn lives_by<E>(
        &self,
        judge: impl Fn(&Process) -> Result<Liveness, E>,
        has_turn: impl Fn(&Process) -> Result<Option<bool>, E>,
    ) -> Result<(Liveness, Option<&Process>), E> {
        if let Some(settled) = self.settled() {
            return Ok((settled, self.process.as_ref()));
        }
        let Some(process) = &self.process else {
            return Ok((Liveness::Unknown(Doubt::Unverified), None));
        };
        let seen = judge(process)?;
        let Some(daemon) = self.turn_in().filter(|_| matches!(seen, Liveness::Dead(_))) else {
            return Ok((seen, Some(process)));
        };
        match judge(daemon)? {
            Liveness::Dead(_) => Ok((seen, Some(process))),
            Liveness::Alive if has_turn(daemon)? == Some(false) => Ok((seen, Some(process))),
            goes_on => Ok((goes_on, Some(daemon))),
        }
    }

    /// What the record alone settles; `None` means that its process must be observed.
    pub fn settled(&self) -> Option<Liveness> {
        match (&self.closed, &self.process) {
            (Some(closed), _) => Some(Liveness::Dead(Proof::Recorded(closed.why.clone()))),
            (None, None) => Some(Liveness::Unknown(Doubt::Unverified)),
            (None, Some(_)) => None,
        }
    }
}

/// What may be done about a session, given its liveness and its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Alive: only a takeover may take anything from it.
    Live,
    /// Gone: what it held is free.
    Gone(Proof),
    /// Not checkable, and its lease has not expired.
    Trusted {
        doubt: Doubt,
        /// The rest of the lease; none if the clocks can't be compared.
        left: Option<Duration>,
    },
    /// Not checkable, its lease expired, the lock delay has not.
    Suspect { doubt: Doubt, left: Duration },
    /// Not checkable, and both its lease and the lock delay expired.
    Expired(Doubt),
}

impl Standing {
    /// Combines liveness and lease.
    pub fn of(liveness: &Liveness, lease: &Deadline, lock_delay: Duration, now: &Now) -> Self {
        let doubt = match liveness {
            Liveness::Alive => return Standing::Live,
            Liveness::Dead(proof) => return Standing::Gone(proof.clone()),
            Liveness::Unknown(doubt) => doubt.clone(),
        };
        match lease.remaining(now) {
            Remaining::Open(left) => Standing::Trusted {
                doubt,
                left: Some(left),
            },
            Remaining::CannotTell => Standing::Trusted { doubt, left: None },
            Remaining::Over(past) if past < lock_delay => Standing::Suspect {
                doubt,
                left: lock_delay - past,
            },
            Remaining::Over(_) => Standing::Expired(doubt),
        }
    }

    /// Whether the session counts as gone: proved dead, or expired and not checkable.
    pub fn is_gone(&self) -> bool {
        matches!(self, Standing::Gone(_) | Standing::Expired(_))
    }
}

stored_enum! {
    /// A session's state for people; always derived, never stored.
    State, "state" {
        Live = "live",
        /// Alive, in a turn, and silent for a long time.
        Stalled = "stalled",
        /// It ended itself, or its only turn was over.
        Ended = "ended",
        /// It is proved dead, and did not leave.
        Dead = "dead",
        Unknown = "unknown",
    }
}

impl State {
    /// Derives the state for people; `busy_since` is set if it is certainly in a turn.
    pub fn of(
        session: &Session,
        liveness: &Liveness,
        busy_since: Option<Timestamp>,
        stalled_after: Duration,
        now: &Now,
    ) -> Self {
        match (&session.closed, liveness) {
            (
                Some(Closed {
                    by: ClosedBy::Death,
                    kind: EndKind::CutOff | EndKind::Moved,
                    ..
                }),
                _,
            ) => State::Dead,
            (Some(_), _) => State::Ended,
            (None, Liveness::Dead(_)) => State::Dead,
            (None, Liveness::Unknown(doubt)) if !doubt.is_reported_alive() => State::Unknown,
            (None, Liveness::Alive | Liveness::Unknown(_)) => {
                let silent =
                    |since: Timestamp| session.seen_at.max(since).age_at(now.wall) > stalled_after;
                if busy_since.is_some_and(silent) {
                    State::Stalled
                } else {
                    State::Live
                }
            }
        }
    }
}

/// Metadata of a session: a team name, a run id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata(pub BTreeMap<MetaKey, String>);

/// How many metadata values a session may have.
pub const META_KEYS: usize = 64;
/// How long one value may be, in bytes.
pub const META_BYTES: usize = 8 * 1024;

text_id! {
    /// The name of a metadata value.
    MetaKey
}

impl MetaKey {
    /// Parses a name of the form `[A-Za-z0-9_.-]{1,64}`.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        if (1..=64).contains(&text.len()) && text.bytes().all(plain) {
            return Ok(Self(text.to_owned()));
        }
        Err(Malformed::new(
            "metadata key",
            text,
            "expected 1 to 64 of A-Z, a-z, 0-9, _ . and -",
        ))
    }
}

/// The prefix of names that tenure reserves.
const RESERVED: &str = "tenure.";

impl MetaKey {
    /// Whether tenure reserves this value: no caller can set it, and no list shows it.
    pub fn is_reserved(&self) -> bool {
        self.as_str().starts_with(RESERVED)
    }

    /// Where a title is stored while a person's title is shown.
    pub fn title_by(by: TitleBy) -> Self {
        Self(format!("{RESERVED}title.{}", by.as_str()))
    }
}

/// Checks a value before it is kept.
pub fn check_meta_value(value: &str) -> Result<(), Malformed> {
    if value.len() > META_BYTES {
        return Err(Malformed::new(
            "metadata value",
            value,
            "it is longer than 8 KiB",
        ));
    }
    if value.contains('\0') {
        return Err(Malformed::new(
            "metadata value",
            value,
            "it contains a NUL character",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::HostId;
    use crate::process::{BootId, StartTicks};
    use crate::time::Era;

    fn at(steady: i64) -> Now {
        Now {
            wall: Timestamp(steady),
            era: Era {
                id: "b".into(),
                private: false,
            },
            steady,
        }
    }

    #[test]
    fn doubt_is_not_death_until_lease_and_lock_delay_are_over() {
        let lease = at(0).after(Duration::from_secs(60));
        let delay = Duration::from_secs(15);
        let doubt = Liveness::Unknown(Doubt::OtherNamespace);
        let standing = |steady| Standing::of(&doubt, &lease, delay, &at(steady));
        assert!(matches!(standing(59_999), Standing::Trusted { .. }));
        assert!(matches!(standing(60_000), Standing::Suspect { left, .. } if left == delay));
        assert!(matches!(standing(74_999), Standing::Suspect { .. }));
        assert_eq!(standing(75_000), Standing::Expired(Doubt::OtherNamespace));
    }

    #[test]
    fn f_l10_the_living_stand_whatever_the_lease_says() {
        let lease = at(0).after(Duration::ZERO);
        let standing = Standing::of(&Liveness::Alive, &lease, Duration::ZERO, &at(i64::MAX));
        assert_eq!(standing, Standing::Live);
    }

    #[test]
    fn f_l20_a_lease_of_an_incomparable_clock_is_open() {
        let foreign = Deadline {
            era: Era {
                id: "c".into(),
                private: true,
            },
            at: 0,
        };
        let standing = Standing::of(
            &Liveness::Unknown(Doubt::PrivateBoot),
            &foreign,
            Duration::ZERO,
            &at(9_999),
        );
        assert!(matches!(standing, Standing::Trusted { left: None, .. }));
    }

    fn doing(doing: Option<Doing>) -> Session {
        let handle = Handle::parse("claude-k7qd").unwrap();
        let lease = at(0).after(Duration::ZERO);
        Session {
            activity: doing.map(|doing| Activity::new(doing, Timestamp(0))),
            ..Session::new(
                SessionId::mint(0, [7; 10]),
                handle,
                AgentName::known("claude"),
                Timestamp(0),
                lease,
            )
        }
    }

    #[test]
    fn only_a_silent_turn_is_stalled() {
        let after = Duration::from_secs(60);
        let state_as = |activity, liveness: &Liveness, steady| {
            let session = doing(activity);
            let busy = session.activity.as_ref();
            let busy = busy.filter(|activity| activity.doing == Doing::Busy);
            let since = busy.map(|activity| activity.since);
            State::of(&session, liveness, since, after, &at(steady))
        };
        let state = |activity, steady| state_as(activity, &Liveness::Alive, steady);
        assert_eq!(state(Some(Doing::Busy), 60_000), State::Live);
        assert_eq!(state(Some(Doing::Busy), 60_001), State::Stalled);
        for calm in [None, Some(Doing::Idle), Some(Doing::Waiting)] {
            assert_eq!(state(calm, 60_001), State::Live, "{calm:?}");
        }
        let gone = Liveness::Unknown(Doubt::Unverified);
        let unseen = state_as(Some(Doing::Busy), &gone, 60_001);
        assert_eq!(unseen, State::Unknown);
    }

    #[test]
    fn without_its_window_a_conversation_lives_only_while_the_daemon_is_in_its_turn() {
        let process = |pid| Process {
            host: HostId::new("h"),
            boot: BootId {
                id: "b".into(),
                private: false,
            },
            pid_ns: 1,
            pid,
            start: StartTicks {
                ticks: 100,
                shifted: false,
            },
        };
        let (window, daemon) = (process(7), process(8));
        let gone = |pid| Liveness::Dead(Proof::Absent { pid });
        let unseen = Liveness::Unknown(Doubt::OtherNamespace);
        let alive = Liveness::Alive;
        let rows = [
            (Some(Doing::Idle), &alive, &alive, &alive, 7),
            (Some(Doing::Busy), &alive, &alive, &alive, 7),
            (Some(Doing::Busy), &alive, &gone(8), &alive, 7),
            (Some(Doing::Busy), &unseen, &alive, &unseen, 7),
            (Some(Doing::Idle), &gone(7), &alive, &gone(7), 7),
            (None, &gone(7), &alive, &gone(7), 7),
            (Some(Doing::Busy), &gone(7), &alive, &alive, 8),
            (Some(Doing::Waiting), &gone(7), &alive, &alive, 8),
            (Some(Doing::Busy), &gone(7), &unseen, &unseen, 8),
            (Some(Doing::Busy), &gone(7), &gone(8), &gone(7), 7),
        ];
        for (activity, of_window, of_daemon, expected, by) in rows {
            let session = Session {
                process: Some(window.clone()),
                daemon: Some(daemon.clone()),
                ..doing(activity)
            };
            let judge = |process: &Process| {
                let seen = if *process == window {
                    of_window
                } else {
                    of_daemon
                };
                Ok::<_, ()>(seen.clone())
            };
            let (liveness, decides) = session.lives_by(judge, |_| Ok(None)).unwrap();
            let row = format!("{activity:?} {of_window:?} {of_daemon:?}");
            assert_eq!(liveness, *expected, "{row}");
            assert_eq!(decides.map(|process| process.pid), Some(by), "{row}");
            let (liveness, _) = session.lives_by(judge, |_| Ok(Some(true))).unwrap();
            assert_eq!(liveness, *expected, "{row}");
            // A lost report of the turn's end does not keep a session alive if its daemon reports the turn as
            // over.
            let (liveness, decides) = session.lives_by(judge, |_| Ok(Some(false))).unwrap();
            let over = match of_daemon {
                Liveness::Unknown(_) => expected,
                Liveness::Alive | Liveness::Dead(_) => of_window,
            };
            assert_eq!(liveness, *over, "{row}");
            let by_window = decides.is_some_and(|process| *process == window);
            assert_eq!(by_window, *over == *of_window, "{row}");
            let alone = Session {
                daemon: None,
                ..session
            };
            let (liveness, _) = alone.lives_by(judge, |_| Ok(Some(false))).unwrap();
            assert_eq!(liveness, *of_window, "{row}");
        }
    }

    #[test]
    fn metadata_names_and_values_are_bounded() {
        assert!(MetaKey::parse("team.name").is_ok());
        for bad in ["", "a b", "a/b", "é", &"x".repeat(65)] {
            assert!(MetaKey::parse(bad).is_err(), "{bad:?} was accepted");
        }
        assert!(check_meta_value(&"x".repeat(META_BYTES)).is_ok());
        assert!(check_meta_value(&"x".repeat(META_BYTES + 1)).is_err());
    }
}
