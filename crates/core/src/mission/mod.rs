//! Missions: shared work that sessions join as participants, each with a role, a focus and a drive.
//!
//! A participant is a session, so two agents of one user are two participants. What a store keeps of one
//! is text that anybody with the file could have changed: it is a [`StoredParticipant`] until
//! [`check::participant`] has found nothing wrong with it. Which mission is meant is decided by
//! [`pointer::resolve`], never by a guess. Whether a participant drives follows from its row and from
//! whether its session lives, when it is asked.
//!
//! *Crash*: a change is one row, replaced wholly or not at all. *Clock jump*: the last activity never goes
//! backwards, and is for people only. *Older version*: a row that breaks a rule is said, with the way out,
//! and never "repaired".

mod name;
mod record;

pub mod change;
pub mod check;
pub mod collision;
pub mod pointer;

pub use name::{Drive, Focus, MissionId, ParticipantId, Role};
pub use record::{Mission, Participant, StoredParticipant};
