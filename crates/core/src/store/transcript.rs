//! Which file is which conversation.

use super::StoreError;
use crate::id::{NativeId, SessionId};
use crate::time::Timestamp;
use crate::transcript::Transcript;

/// Rows of a transaction.
pub trait TranscriptRows {
    /// A session's transcript of a conversation.
    fn transcript_of(
        &mut self,
        session: SessionId,
        native_id: &NativeId,
    ) -> Result<Option<Transcript>, StoreError>;

    /// The session whose transcript a path is.
    fn transcript_owner(&mut self, path: &str) -> Result<Option<SessionId>, StoreError>;

    /// Keeps a session's transcript, in the place of an earlier one of the same conversation. A path that
    /// is another session's is a conflict.
    fn set_transcript(&mut self, transcript: &Transcript) -> Result<(), StoreError>;

    /// Sets a transcript aside: it is kept, with the reason, and no longer a session's.
    fn quarantine_transcript(
        &mut self,
        transcript: &Transcript,
        why: &str,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// What was set aside of a session, with the reasons, the oldest first.
    fn quarantined_transcripts(
        &mut self,
        session: SessionId,
    ) -> Result<Vec<(Transcript, String)>, StoreError>;
}
