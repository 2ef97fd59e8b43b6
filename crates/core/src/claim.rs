//! Claims: who holds which work item, decided in one place.
//!
//! A claim key has one row that has only its epoch. Every grant is stored as a [`Hold`] with that epoch. The
//! newest hold decides everything else (who holds it, whether it is free, whether it is done), so no fact is
//! stored twice. An epoch grows by one with every grant and is never reset, which makes it a fencing number: an
//! act with an older epoch is refused.
//!
//! [`decide`] is the whole rule for granting. It is pure: the state of the holder's process, its lease and the
//! asker are arguments. The caller's own newest hold decides three things: whether it *lost* the key, whether
//! its request is a *retry*, and what a resumed session is *granted again*.
//!
//! *Crash*: the hold of a dead holder stays open until someone proves the death; it blocks no one. *Clock
//! jump*: nothing here reads a clock. *Older version*: unknown ways of ending are refused as damage, never read
//! as free.

use std::time::Duration;

use crate::id::{Epoch, Life, RequestId, SessionId, stored_enum};
use crate::key::Key;
use crate::liveness::{Doubt, Proof};
use crate::process::Survivor;
use crate::repository::Home;
use crate::session::Standing;
use crate::time::Timestamp;

/// One grant of a key to a session, from start to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    pub key: Key,
    pub epoch: Epoch,
    pub session: SessionId,
    /// The holder's process life at the time of the grant.
    pub life: Life,
    /// The holder's own id for the request, so that a retry gets the same answer.
    pub request: Option<RequestId>,
    pub means: Means,
    /// The holder's own note.
    pub note: Option<String>,
    /// The repository of a path, if it was claimed in one.
    pub home: Option<Home>,
    pub granted_at: Timestamp,
    /// The previous holder, as reported at the grant.
    pub taken_from: Option<TakenFrom>,
    pub ended: Option<HoldEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldEnd {
    pub at: Timestamp,
    pub by: EndedBy,
}

stored_enum! {
    /// How a claim is granted.
    Means, "way of granting" {
        /// The session asked and the key was free.
        Claim = "claim",
        /// Its holder handed it over.
        Handoff = "handoff",
        /// It was taken with a reason.
        Takeover = "takeover",
        /// The session resumed and no one had taken it.
        Resume = "resume",
        /// The session resumed the conversation of a dead one.
        Moved = "moved",
    }
}

stored_enum! {
    /// How a hold ends.
    EndedBy, "way of ending" {
        /// The holder released it.
        Release = "release",
        /// The holder finished the item.
        Done = "done",
        /// The holder's session ended.
        End = "end",
        /// The holder's process was proved dead.
        Death = "death",
        /// The holder's lease and the lock delay expired, and its process could not be checked.
        Lease = "lease",
        /// It was taken with a reason.
        Taken = "taken",
        /// The holder handed it over.
        Handoff = "handoff",
    }
}

/// The previous holder, for the new one.
#[derive(
    Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct TakenFrom {
    /// The previous holder's id.
    pub session: String,
    pub handle: String,
    pub epoch: u64,
    /// What freed the claim: `death`, `end`, `lease` or `taken`.
    pub by: String,
    /// The proof, or the reason that was given.
    pub proof: String,
    /// Where it worked; unfinished work may be there.
    pub dir: String,
    /// The branch that was checked out there.
    pub branch: Option<String>,
    /// Processes that it left running and that may still write.
    #[serde(default)]
    pub survivors: Vec<Survivor>,
    /// Why this list may be incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survivors_unsure: Option<String>,
    /// Its other paths that overlapped this one and were taken with it.
    #[serde(default)]
    pub also_ended: Vec<TakenAlong>,
}

/// A hold that ended because an overlapping path was taken from the same holder.
#[derive(
    Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct TakenAlong {
    pub key: String,
    pub epoch: u64,
}

impl TakenAlong {
    /// The key and epoch of a hold.
    pub fn of(hold: &Hold) -> Self {
        Self {
            key: hold.key.to_string(),
            epoch: hold.epoch.0,
        }
    }
}

/// A key's row with its newest hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRecord {
    pub key: Key,
    pub epoch: Epoch,
    /// The hold of that epoch; none if the key was never granted.
    pub newest: Option<Hold>,
}

impl ClaimRecord {
    /// A key that was never granted.
    pub fn unknown(key: Key) -> Self {
        Self {
            key,
            epoch: Epoch::NONE,
            newest: None,
        }
    }

    pub fn current(&self) -> Option<&Hold> {
        self.newest.as_ref().filter(|hold| hold.ended.is_none())
    }

    /// How the newest hold ended, if it did.
    pub fn ended_by(&self) -> Option<EndedBy> {
        self.newest.as_ref()?.ended.map(|end| end.by)
    }

    pub fn is_done(&self) -> bool {
        self.ended_by() == Some(EndedBy::Done)
    }

    /// Whether the session of `hold` lost the key: the hold ended without its act, and another was granted
    /// since.
    pub fn was_lost(&self, hold: &Hold) -> bool {
        let robbed = matches!(
            hold.ended.map(|end| end.by),
            Some(EndedBy::Death | EndedBy::Lease | EndedBy::Taken)
        );
        robbed && self.epoch > hold.epoch
    }

    /// Whether a resumed session is granted again what `hold` held.
    pub fn is_regrantable(&self, hold: &Hold) -> bool {
        let ended = hold.ended.map(|end| end.by);
        matches!(ended, Some(EndedBy::End | EndedBy::Death | EndedBy::Lease))
            && self.epoch == hold.epoch
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimOptions {
    /// The caller's own id for the request.
    pub request: Option<RequestId>,
    /// Refuse what the session already holds.
    pub once: bool,
    /// Claim an item that is done.
    pub reopen: bool,
    /// The caller runs in a sandbox and cannot see other sessions' processes.
    pub blind: bool,
}

/// The answer to a request for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is granted with the next epoch.
    Grant(PreviousHolder),
    /// The caller has it already.
    AlreadyHeld,
    /// This same request was granted before; it gets the same answer.
    Retry,
    /// The caller holds it already and asked for a new hold only.
    HeldByYou,
    Done,
    /// This request was granted, and the key was lost since.
    Lost,
    /// A session holds it that is alive, or presumed alive.
    Held(Standing),
    /// The holder's lease expired; this much of the lock delay is left.
    Suspect {
        /// Why the holder's process could not be checked.
        doubt: Doubt,
        left: Duration,
    },
    /// The caller cannot see whether the holder is alive.
    CannotTell(Doubt),
}

/// Who held the key before this grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreviousHolder {
    /// No one whose unfinished work could matter.
    None,
    /// A session that is proved gone.
    Gone(Proof),
    /// A session that could not be checked and whose lease expired.
    Expired(Doubt),
}

/// Decides a request for a key.
///
/// `mine` is the caller's newest hold of the key. `holder` is the standing of the session with the open hold,
/// if that is not the caller.
pub fn decide(
    record: &ClaimRecord,
    me: SessionId,
    mine: Option<&Hold>,
    holder: Option<&Standing>,
    ask: &ClaimOptions,
) -> Verdict {
    let same_request = |hold: &&Hold| ask.request.is_some() && hold.request == ask.request;
    if mine
        .filter(same_request)
        .is_some_and(|hold| record.was_lost(hold))
    {
        return Verdict::Lost;
    }
    if record.is_done() && !ask.reopen {
        return Verdict::Done;
    }
    let Some(current) = record.current() else {
        return Verdict::Grant(PreviousHolder::None);
    };
    if current.session == me {
        return if same_request(&current) {
            Verdict::Retry
        } else if ask.once {
            Verdict::HeldByYou
        } else {
            Verdict::AlreadyHeld
        };
    }
    match holder {
        None => Verdict::CannotTell(Doubt::Unverified),
        Some(Standing::Gone(proof)) => Verdict::Grant(PreviousHolder::Gone(proof.clone())),
        Some(Standing::Live) => Verdict::Held(Standing::Live),
        Some(
            Standing::Trusted { doubt, .. }
            | Standing::Suspect { doubt, .. }
            | Standing::Expired(doubt),
        ) if ask.blind => Verdict::CannotTell(doubt.clone()),
        Some(trusted @ Standing::Trusted { .. }) => Verdict::Held(trusted.clone()),
        Some(Standing::Suspect { doubt, left }) => Verdict::Suspect {
            doubt: doubt.clone(),
            left: *left,
        },
        Some(Standing::Expired(doubt)) => Verdict::Grant(PreviousHolder::Expired(doubt.clone())),
    }
}

#[cfg(test)]
impl Hold {
    /// For tests: granted at zero, and ended a millisecond later if it is over.
    pub(crate) fn sample(session: SessionId, epoch: u64, ended: Option<EndedBy>) -> Self {
        Self {
            key: Key::parse("wp:1").unwrap(),
            epoch: Epoch(epoch),
            session,
            life: Life::FIRST,
            request: None,
            means: Means::Claim,
            note: None,
            home: None,
            granted_at: Timestamp(0),
            taken_from: None,
            ended: ended.map(|by| HoldEnd {
                at: Timestamp(1),
                by,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: u8 = 1;
    const OTHER: u8 = 2;

    fn session(n: u8) -> SessionId {
        SessionId::mint(0, [n; 10])
    }

    fn hold(who: u8, epoch: u64, ended: Option<EndedBy>) -> Hold {
        Hold::sample(session(who), epoch, ended)
    }

    fn record(newest: Hold) -> ClaimRecord {
        ClaimRecord {
            key: newest.key.clone(),
            epoch: newest.epoch,
            newest: Some(newest),
        }
    }

    #[allow(clippy::needless_pass_by_value)]
    fn ask_of(newest: Hold, holder: Option<Standing>, ask: &ClaimOptions) -> Verdict {
        decide(&record(newest), session(ME), None, holder.as_ref(), ask)
    }

    #[test]
    fn a_free_key_is_granted() {
        let fresh = ClaimRecord::unknown(Key::parse("wp:1").unwrap());
        assert_eq!(
            decide(&fresh, session(ME), None, None, &ClaimOptions::default()),
            Verdict::Grant(PreviousHolder::None)
        );
        for by in [
            EndedBy::Release,
            EndedBy::End,
            EndedBy::Death,
            EndedBy::Lease,
            EndedBy::Handoff,
        ] {
            assert_eq!(
                ask_of(hold(OTHER, 1, Some(by)), None, &ClaimOptions::default()),
                Verdict::Grant(PreviousHolder::None)
            );
        }
    }

    #[test]
    fn f_c19_a_finished_item_is_refused_until_reopened() {
        let done = hold(OTHER, 1, Some(EndedBy::Done));
        assert_eq!(
            ask_of(done.clone(), None, &ClaimOptions::default()),
            Verdict::Done
        );
        let reopen = ClaimOptions {
            reopen: true,
            ..ClaimOptions::default()
        };
        assert_eq!(
            ask_of(done, None, &reopen),
            Verdict::Grant(PreviousHolder::None)
        );
    }

    #[test]
    fn only_the_gone_and_the_expired_are_robbed() {
        let doubt = Doubt::OtherNamespace;
        let held = || hold(OTHER, 1, None);
        let ask = ClaimOptions::default();
        assert_eq!(
            ask_of(held(), Some(Standing::Live), &ask),
            Verdict::Held(Standing::Live)
        );
        let trusted = Standing::Trusted {
            doubt: doubt.clone(),
            left: None,
        };
        assert_eq!(
            ask_of(held(), Some(trusted.clone()), &ask),
            Verdict::Held(trusted)
        );
        let suspect = Standing::Suspect {
            doubt: doubt.clone(),
            left: Duration::from_secs(1),
        };
        assert!(matches!(
            ask_of(held(), Some(suspect), &ask),
            Verdict::Suspect { .. }
        ));
        let gone = Standing::Gone(Proof::Rebooted);
        assert_eq!(
            ask_of(held(), Some(gone), &ask),
            Verdict::Grant(PreviousHolder::Gone(Proof::Rebooted))
        );
        let expired = Standing::Expired(doubt.clone());
        assert_eq!(
            ask_of(held(), Some(expired), &ask),
            Verdict::Grant(PreviousHolder::Expired(doubt))
        );
    }

    #[test]
    fn f_i23_from_a_sandbox_doubt_is_never_resolved_by_the_lease() {
        let blind = ClaimOptions {
            blind: true,
            ..ClaimOptions::default()
        };
        let doubt = Doubt::OtherNamespace;
        for standing in [
            Standing::Expired(doubt.clone()),
            Standing::Suspect {
                doubt: doubt.clone(),
                left: Duration::ZERO,
            },
            Standing::Trusted {
                doubt: doubt.clone(),
                left: None,
            },
        ] {
            assert_eq!(
                ask_of(hold(OTHER, 1, None), Some(standing), &blind),
                Verdict::CannotTell(doubt.clone())
            );
        }
        let recorded = Standing::Gone(Proof::Recorded("pid 7 is gone".into()));
        assert!(matches!(
            ask_of(hold(OTHER, 1, None), Some(recorded), &blind),
            Verdict::Grant(_)
        ));
    }

    #[test]
    fn the_holder_is_told_that_it_holds_it() {
        let mine = hold(ME, 4, None);
        assert_eq!(
            ask_of(mine.clone(), None, &ClaimOptions::default()),
            Verdict::AlreadyHeld
        );
        let once = ClaimOptions {
            once: true,
            ..ClaimOptions::default()
        };
        assert_eq!(ask_of(mine, None, &once), Verdict::HeldByYou);
    }

    #[test]
    fn f_c14_a_retry_gets_the_same_answer_and_never_a_second_grant() {
        let request = RequestId::parse("r1").ok();
        let retry = ClaimOptions {
            request: request.clone(),
            once: true,
            ..ClaimOptions::default()
        };
        let mine = Hold {
            request,
            ..hold(ME, 4, None)
        };
        assert_eq!(ask_of(mine.clone(), None, &retry), Verdict::Retry);

        let taken = Hold {
            ended: hold(ME, 4, Some(EndedBy::Taken)).ended,
            ..mine
        };
        let moved_on = record(hold(OTHER, 5, None));
        let verdict = decide(
            &moved_on,
            session(ME),
            Some(&taken),
            Some(&Standing::Live),
            &retry,
        );
        assert_eq!(verdict, Verdict::Lost);
    }

    #[test]
    fn lost_means_ended_without_an_act_and_moved_on() {
        for (by, lost) in [
            (EndedBy::Taken, true),
            (EndedBy::Death, true),
            (EndedBy::Lease, true),
            (EndedBy::Release, false),
            (EndedBy::Done, false),
            (EndedBy::End, false),
            (EndedBy::Handoff, false),
        ] {
            let mine = hold(ME, 1, Some(by));
            assert_eq!(record(hold(OTHER, 2, None)).was_lost(&mine), lost, "{by:?}");
            assert!(
                !record(mine.clone()).was_lost(&mine),
                "{by:?} with nobody else since"
            );
        }
    }

    #[test]
    fn a_resumed_session_gets_back_only_what_nobody_took() {
        for (by, back) in [
            (EndedBy::End, true),
            (EndedBy::Death, true),
            (EndedBy::Lease, true),
            (EndedBy::Release, false),
            (EndedBy::Done, false),
            (EndedBy::Taken, false),
            (EndedBy::Handoff, false),
        ] {
            let mine = hold(ME, 1, Some(by));
            assert_eq!(record(mine.clone()).is_regrantable(&mine), back, "{by:?}");
            assert!(
                !record(hold(OTHER, 2, None)).is_regrantable(&mine),
                "{by:?} after another grant"
            );
        }
    }
}
