//! Missions: shared work that sessions join as participants, each with a role, a focus and a drive.
//!
//! A participant is a session, so two agents of one user are two participants. A stored participant is text
//! that anyone with access to the file could have changed, so it is a [`StoredParticipant`] until
//! [`check::participant`] has found no fault in it. [`pointer::resolve`] decides which mission is selected; it
//! is never guessed. Whether a participant is active follows from its row and from whether its session is alive
//! at that moment.
//!
//! *Crash*: a change is one row, replaced completely or not at all. *Clock jump*: the last activity never moves
//! backwards, and is for people only. *Older version*: a row that breaks a rule is reported with a remedy, and
//! never "repaired".

mod name;
mod record;

pub mod change;
pub mod check;
pub mod collision;
pub mod pointer;

pub use name::{ApiUrl, Drive, Focus, MissionId, MissionRunId, ParticipantId, Role};
pub use record::{Mission, Participant, StoredParticipant};
