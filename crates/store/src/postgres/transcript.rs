//! Transcripts in rows: one session per path, one path per conversation of a session.

use tenure_core::id::{NativeId, SessionId};
use tenure_core::store::{StoreError, TranscriptRows};
use tenure_core::time::Timestamp;
use tenure_core::transcript::Transcript;

use super::handle::PostgresTx;
use super::row::Cells;
use super::value::params;

const OF: &str = "SELECT path, session, native_id, at FROM transcripts \
     WHERE session = $1 AND native_id = $2";
const OF_MANY: &str = "SELECT path, session, native_id, at FROM transcripts \
     WHERE (session, native_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))";
/// How many are read at once.
const MANY: usize = 100;
const OWNER: &str = "SELECT session FROM transcripts WHERE path = $1";
const SET_ASIDE: &str = "SELECT path, session, native_id, since, why FROM quarantine \
     WHERE session = $1 ORDER BY id";

fn read(cells: &mut Cells<'_>) -> Result<Transcript, StoreError> {
    Ok(Transcript {
        path: cells.text()?,
        session: cells.parsed(SessionId::parse)?,
        native_id: cells.parsed(NativeId::parse)?,
        at: Timestamp(cells.number()?),
    })
}

impl TranscriptRows for PostgresTx<'_> {
    fn transcript_of(
        &mut self,
        session: SessionId,
        native_id: &NativeId,
    ) -> Result<Option<Transcript>, StoreError> {
        let key = params![session.to_string(), native_id.as_str()];
        self.first("transcripts", OF, key, read)
    }

    fn transcripts_of(
        &mut self,
        conversations: &[(SessionId, NativeId)],
    ) -> Result<Vec<Transcript>, StoreError> {
        let mut found = Vec::new();
        for some in conversations.chunks(MANY) {
            let sessions: Vec<String> = some.iter().map(|(id, _)| id.to_string()).collect();
            let natives: Vec<String> = some.iter().map(|(_, id)| id.to_string()).collect();
            let of = params![sessions, natives];
            found.extend(self.all("transcripts", OF_MANY, of, read)?);
        }
        Ok(found)
    }

    fn transcript_owner(&mut self, path: &str) -> Result<Option<SessionId>, StoreError> {
        self.first("transcripts", OWNER, params![path], |cells| {
            cells.parsed(SessionId::parse)
        })
    }

    fn set_transcript(&mut self, transcript: &Transcript) -> Result<(), StoreError> {
        let session = transcript.session.to_string();
        let native_id = transcript.native_id.as_str();
        self.run(
            "DELETE FROM transcripts WHERE session = $1 AND native_id = $2",
            params![&session, native_id],
        )?;
        let changed = self.run(
            "INSERT INTO transcripts (path, session, native_id, at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (path) DO UPDATE SET native_id = excluded.native_id, at = excluded.at \
             WHERE transcripts.session = excluded.session",
            params![&transcript.path, &session, native_id, transcript.at.0],
        )?;
        if changed == 0 {
            Err(StoreError::Conflict)
        } else {
            Ok(())
        }
    }

    fn quarantine_transcript(
        &mut self,
        transcript: &Transcript,
        why: &str,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let (session, native_id) = (
            transcript.session.to_string(),
            transcript.native_id.as_str(),
        );
        self.run(
            "INSERT INTO quarantine (session, path, native_id, since, why, at) VALUES ($1, $2, $3, $4, $5, $6)",
            params![&session, &transcript.path, native_id, transcript.at.0, why, at.0],
        )?;
        self.run(
            "DELETE FROM transcripts WHERE path = $1 AND session = $2",
            params![&transcript.path, &session],
        )?;
        Ok(())
    }

    fn quarantined_transcripts(
        &mut self,
        session: SessionId,
    ) -> Result<Vec<(Transcript, String)>, StoreError> {
        self.all(
            "quarantine",
            SET_ASIDE,
            params![session.to_string()],
            |cells| Ok((read(cells)?, cells.text()?)),
        )
    }
}
