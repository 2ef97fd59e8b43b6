//! Which file holds which conversation.

use super::StoreError;
use crate::id::{NativeId, SessionId};
use crate::time::Timestamp;
use crate::transcript::Transcript;

pub trait TranscriptRows {
    /// A session's transcript of a conversation.
    fn transcript_of(
        &mut self,
        session: SessionId,
        native_id: &NativeId,
    ) -> Result<Option<Transcript>, StoreError>;

    /// The transcripts of several conversations, without those that have none.
    fn transcripts_of(
        &mut self,
        conversations: &[(SessionId, NativeId)],
    ) -> Result<Vec<Transcript>, StoreError>;

    /// All transcripts of these sessions.
    fn transcripts_of_sessions(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<Vec<Transcript>, StoreError>;

    /// The session that owns a transcript path.
    fn transcript_owner(&mut self, path: &str) -> Result<Option<SessionId>, StoreError>;

    /// Stores a session's transcript, replacing an earlier one of the same conversation. A path of another
    /// session is a conflict.
    fn set_transcript(&mut self, transcript: &Transcript) -> Result<(), StoreError>;

    /// Quarantines a transcript: it is kept with the reason, and no longer belongs to a session.
    fn quarantine_transcript(
        &mut self,
        transcript: &Transcript,
        why: &str,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// The quarantined transcripts of a session with the reasons, oldest first.
    fn quarantined_transcripts(
        &mut self,
        session: SessionId,
    ) -> Result<Vec<(Transcript, String)>, StoreError>;
}
